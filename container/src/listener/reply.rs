//! Replies.

use std::sync::Arc;

use corriere_core::{Message, Value};
use corriere_templates::MessageConverter;
use serde::Serialize;

use super::nothing::{Kind, kind_of};
use super::{ListenerError, returned};

/// A reply with more than its value: properties, a type, a correlation id of its own.
///
/// A reply goes to the request's `JMSReplyTo`, else to the listener's `send_to`. Unless one is set here, its correlation
/// id is the request's, or, when that has none, the request's message id.
#[derive(Clone, Debug)]
pub struct Reply<T> {
    value: T,
    properties: Vec<(String, Value)>,
    correlation_id: Option<Arc<str>>,
    message_type: Option<Arc<str>>,
}

impl<T> Reply<T> {
    /// A reply of this value.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self { value, properties: Vec::new(), correlation_id: None, message_type: None }
    }

    /// With a property. A name or a value that no property may have makes the reply fail.
    #[must_use]
    pub fn property(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.properties.push((name.into(), value.into()));
        self
    }

    /// With this `JMSCorrelationID` instead of the request's.
    #[must_use]
    pub fn correlation_id(mut self, correlation_id: impl Into<Arc<str>>) -> Self {
        self.correlation_id = Some(correlation_id.into());
        self
    }

    /// With this `JMSType`.
    #[must_use]
    pub fn message_type(mut self, message_type: impl Into<Arc<str>>) -> Self {
        self.message_type = Some(message_type.into());
        self
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> &T {
        &self.value
    }

    /// The value by itself.
    #[must_use]
    pub fn into_value(self) -> T {
        self.value
    }
}

/// What a `#[jms_listener]` function may return, or have in its `Result`: any [`Serialize`], [`Reply`], or an `Option` of
/// these. `()` and `None` are no reply. A `Result` is none either: it has to be written as `Result` in the function's
/// signature, and behind an alias of another name it fails the run.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the reply of a `#[jms_listener]` function",
    label = "neither `()` nor a reply",
    note = "a reply is any type with `#[derive(serde::Serialize)]`, an `Option` of it, or `Reply<T>`"
)]
pub trait IntoReply<Kind> {
    /// The message to send, if there is one.
    ///
    /// # Errors
    /// When the converter cannot make a message of it. Another run would not change that, so the request goes to the
    /// dead letters.
    fn into_reply(self, converter: &dyn MessageConverter) -> Result<Option<Message>, ListenerError>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize> IntoReply<returned::Value> for T {
    fn into_reply(self, converter: &dyn MessageConverter) -> Result<Option<Message>, ListenerError> {
        match kind_of(&self) {
            Kind::Nothing => Ok(None),
            Kind::Value => converter.to_message(&self).map(Some).map_err(ListenerError::dead_letter),
            // `#[jms_listener]` sees a `Result` by its type, but not one within another, and an error must not pass for a
            // reply.
            Kind::Result => Err(ListenerError::redeliver(
                "the listener's reply is a `Result` itself, so that its errors would be sent as replies; return one `Result`, \
                 or a `Reply` of it where it is meant as a value",
            )),
        }
    }
}

impl<T: Serialize> IntoReply<returned::Decorated> for Reply<T> {
    fn into_reply(self, converter: &dyn MessageConverter) -> Result<Option<Message>, ListenerError> {
        let mut message = converter.to_message(&self.value).map_err(ListenerError::dead_letter)?;
        for (name, value) in self.properties {
            message.set_property(&name, value).map_err(ListenerError::dead_letter)?;
        }
        let headers = message.headers_mut();
        headers.correlation_id = self.correlation_id.or_else(|| headers.correlation_id.take());
        headers.message_type = self.message_type.or_else(|| headers.message_type.take());
        Ok(Some(message))
    }
}

impl<T: Serialize> IntoReply<returned::Decorated> for Option<Reply<T>> {
    fn into_reply(self, converter: &dyn MessageConverter) -> Result<Option<Message>, ListenerError> {
        self.map_or(Ok(None), |reply| reply.into_reply(converter))
    }
}
