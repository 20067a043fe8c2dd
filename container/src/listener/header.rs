//! Typed properties as arguments.

use std::fmt;
use std::ops::Deref;

use corriere_core::message::FromValue;
use corriere_core::{Message, MessageError};
use thiserror::Error;

use super::ListenerError;

/// The name and the type of a property that listeners take as [`Header`]; [`header!`](crate::header) defines one.
pub trait HeaderKey: 'static {
    /// The name of the property.
    const NAME: &'static str;

    /// The type that its value is read as.
    type Value: FromValue + Send;
}

/// A property of the message as an argument: `Header<TenantId>`, or `Option<Header<TenantId>>` where it may be absent.
///
/// A message that lacks it, or has a value of another type, goes to the dead letters.
pub struct Header<K: HeaderKey>(pub K::Value);

/// Defines a key for [`Header`](crate::listener::Header): the name of a property and the type of its value.
///
/// ```
/// use corriere_container::header;
/// use corriere_container::listener::Header;
///
/// header! {
///     /// Whose order it is.
///     pub TenantId = "tenant": String;
/// }
///
/// async fn on_order(tenant: Header<TenantId>) {
///     println!("{}", *tenant);
/// }
/// ```
#[macro_export]
macro_rules! header {
    ($($(#[$attribute:meta])* $visibility:vis $key:ident = $name:literal : $value:ty);+ $(;)?) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug)]
        $visibility struct $key;

        impl $crate::listener::HeaderKey for $key {
            const NAME: &'static str = $name;
            type Value = $value;
        }
    )+};
}

impl<K: HeaderKey> Header<K> {
    /// The value.
    #[must_use]
    pub fn into_inner(self) -> K::Value {
        self.0
    }

    pub(super) fn required(message: &Message) -> Result<Self, ListenerError> {
        Self::optional(message)?
            .ok_or_else(|| ListenerError::dead_letter(HeaderError::Missing { name: K::NAME }))
    }

    pub(super) fn optional(message: &Message) -> Result<Option<Self>, ListenerError> {
        let value = message.property::<K::Value>(K::NAME);
        let value = value.map_err(|source| HeaderError::Type { name: K::NAME, source });
        value.map(|value| value.map(Self)).map_err(ListenerError::dead_letter)
    }
}

impl<K: HeaderKey> Deref for Header<K> {
    type Target = K::Value;

    fn deref(&self) -> &K::Value {
        &self.0
    }
}

impl<K: HeaderKey<Value: fmt::Debug>> fmt::Debug for Header<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Header").field(&self.0).finish()
    }
}

impl<K: HeaderKey<Value: fmt::Display>> fmt::Display for Header<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<K: HeaderKey<Value: Clone>> Clone for Header<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Why a message has no such header.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
enum HeaderError {
    #[error("the message has no property `{name}`, which the listener requires")]
    Missing { name: &'static str },
    #[error("the property `{name}` is not what the listener expects")]
    Type { name: &'static str, source: MessageError },
}
