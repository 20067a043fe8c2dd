//! Beans: the values that an application makes once and hands to its listeners, by type or by name.

mod error;
mod registration;
mod registry;
mod settings;
mod settings_error;
mod settings_reader;

use std::any::{TypeId, type_name};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

pub use error::BeanError;
pub use registration::{BeanBuildError, BeanType, IntoBean};
pub use registry::{BeanName, Beans};
pub use settings::BeanSettings;

/// A bean as its users hold it. Clones are the same bean.
///
/// As an argument of a listener, `Bean<T>` is found by its type before the application starts.
pub struct Bean<T: ?Sized>(Arc<T>);

impl<T> Bean<T> {
    /// Makes a bean of a value.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T: ?Sized> Clone for Bean<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: ?Sized> Deref for Bean<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Bean<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bean").field(&&*self.0).finish()
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for Bean<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A bean type that a listener asks for, checked before the listener starts.
#[derive(Clone, Copy, Debug)]
pub struct BeanRequest {
    /// The type's name, for errors.
    pub type_name: fn() -> &'static str,
    /// The type itself.
    pub type_id: fn() -> TypeId,
}

impl BeanRequest {
    /// The request for a `Bean<T>`.
    #[must_use]
    pub const fn of<T: 'static>() -> Self {
        Self { type_name: type_name::<T>, type_id: TypeId::of::<T> }
    }
}
