//! What the arguments of a listener are made of.

use std::any::Any;

use corriere_core::{Body, Delivery, Headers, Message, Properties, Session};
use corriere_templates::JmsTemplate;
use serde::de::value::{Error as UnitError, UnitDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

use super::{Header, HeaderKey, Invocation, ListenerError};
use crate::beans::{Bean, BeanRequest};

/// A type that can be an argument of a `#[jms_listener]` function.
///
/// There are two ways, which `Via` keeps apart: anything that is [`Deserialize`](serde::Deserialize) is the payload and is read by the
/// listener's converter ([`via::Body`]), and some types are made from the rest of the delivery ([`via::Context`], which
/// is the one to implement for a type of your own). A type that could be either needs [`Payload`] around it.
///
/// An error here is the end of the run: the function is not called, and the error's own disposition decides. For what is
/// wrong with the message that should be [`ListenerError::dead_letter`], as another delivery would not change it.
///
/// ```
/// use corriere_container::listener::{FromDelivery, Invocation, ListenerError, OrListenerError};
///
/// struct Tenant(String);
///
/// impl FromDelivery for Tenant {
///     async fn from_delivery(invocation: &mut Invocation) -> Result<Self, ListenerError> {
///         let tenant = invocation.message().property::<String>("tenant").or_dead_letter()?;
///         Ok(Self(tenant.unwrap_or_else(|| "nobody".to_owned())))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a `#[jms_listener]` function",
    label = "neither a payload that can be deserialized, nor made from a delivery",
    note = "a payload type needs `#[derive(serde::Deserialize)]`",
    note = "other arguments are `Payload<T>`, `Header<K>`, `Headers`, `Properties`, `Delivery`, `Session`, `Bean<T>`, `Message`, or a type of your own with `impl FromDelivery`"
)]
pub trait FromDelivery<Via = via::Context>: Sized {
    /// Whether it is the payload, of which there can be only one.
    const IS_PAYLOAD: bool = false;

    /// The beans that it needs, which are checked before the start; [`Invocation::bean`] has them.
    const BEANS: &'static [BeanRequest] = &[];

    /// Makes it for one run of a listener.
    ///
    /// # Errors
    /// When the message does not have what is needed.
    fn from_delivery(invocation: &mut Invocation)
    -> impl Future<Output = Result<Self, ListenerError>> + Send;
}

/// The two ways to be an argument of a listener; see [`FromDelivery`].
pub mod via {
    /// Read from the body by the converter.
    #[derive(Clone, Copy, Debug)]
    pub enum Body {}

    /// Made from the delivery and its surroundings.
    #[derive(Clone, Copy, Debug)]
    pub enum Context {}
}

/// The payload, for types that could be more than that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Payload<T>(pub T);

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + Send> FromDelivery<via::Body> for T {
    const IS_PAYLOAD: bool = true;

    async fn from_delivery(invocation: &mut Invocation) -> Result<Self, ListenerError> {
        payload(invocation)
    }
}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + Send> FromDelivery for Payload<T> {
    const IS_PAYLOAD: bool = true;

    async fn from_delivery(invocation: &mut Invocation) -> Result<Self, ListenerError> {
        payload(invocation).map(Self)
    }
}

impl FromDelivery for Delivery {
    async fn from_delivery(invocation: &mut Invocation) -> Result<Self, ListenerError> {
        Ok(invocation.delivery().clone())
    }
}

impl FromDelivery for Message {
    async fn from_delivery(invocation: &mut Invocation) -> Result<Self, ListenerError> {
        Ok(invocation.message().clone())
    }
}

impl FromDelivery for Headers {
    async fn from_delivery(invocation: &mut Invocation) -> Result<Self, ListenerError> {
        Ok(invocation.message().headers().clone())
    }
}

impl FromDelivery for Properties {
    async fn from_delivery(invocation: &mut Invocation) -> Result<Self, ListenerError> {
        Ok(invocation.message().properties().clone())
    }
}

impl FromDelivery for Session {
    async fn from_delivery(invocation: &mut Invocation) -> Result<Self, ListenerError> {
        Ok(invocation.session().clone())
    }
}

impl<K: HeaderKey> FromDelivery for Header<K> {
    async fn from_delivery(invocation: &mut Invocation) -> Result<Self, ListenerError> {
        Self::required(invocation.message())
    }
}

impl<K: HeaderKey> FromDelivery for Option<Header<K>> {
    async fn from_delivery(invocation: &mut Invocation) -> Result<Self, ListenerError> {
        Header::optional(invocation.message())
    }
}

impl<T: ?Sized + Send + Sync + 'static> FromDelivery for Bean<T> {
    const BEANS: &'static [BeanRequest] = &[BeanRequest::of::<T>()];

    async fn from_delivery(invocation: &mut Invocation) -> Result<Self, ListenerError> {
        let bean = invocation.bean()?;
        Ok(if invocation.session().is_transacted() { for_transaction(bean) } else { bean })
    }
}

/// A template that knows that it is in the hands of a transacted listener; any other bean as it is.
fn for_transaction<T: ?Sized + Send + Sync + 'static>(bean: Bean<T>) -> Bean<T> {
    let Some(template) = (&bean as &dyn Any).downcast_ref::<Bean<JmsTemplate>>() else { return bean };
    let given: Box<dyn Any> = Box::new(Bean::new(template.for_transaction()));
    given.downcast().map_or(bean, |given| *given)
}

fn payload<T: DeserializeOwned>(invocation: &Invocation) -> Result<T, ListenerError> {
    let message = invocation.message();
    let converted = invocation.converter().decode::<T>(message);
    converted.or_else(|error| {
        // Without a body there is nothing for a converter to read, yet `Option<T>` and `()` have a value for that.
        let nothing: UnitDeserializer<UnitError> = ().into_deserializer();
        let absent = is_absent(message.body()).then(|| T::deserialize(nothing).ok()).flatten();
        absent.ok_or_else(|| ListenerError::dead_letter(error))
    })
}

fn is_absent(body: &Body) -> bool {
    match body {
        Body::Empty | Body::Text(None) => true,
        Body::Text(_) | Body::Bytes(_) | Body::Object(_) => body.size() == 0,
        Body::Map(_) | Body::Stream(_) => false,
    }
}
