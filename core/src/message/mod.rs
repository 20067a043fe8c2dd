//! The message: headers, typed properties and one of five bodies (Jakarta Messaging 3.1, chapter 3).

mod body;
mod convert;
mod data;
mod entries;
mod error;
mod headers;
mod map;
pub mod modified_utf8;
mod properties;
mod property_name;
mod stream;
mod value;

use std::sync::Arc;

use ::bytes::Bytes;

pub use body::{Body, ObjectBody};
pub use convert::FromValue;
pub use data::{BytesBody, BytesReader, BytesWriter};
pub use error::MessageError;
pub use headers::{DeliveryMode, Headers, Priority};
pub use map::MapBody;
pub use properties::Properties;
pub use stream::{StreamBody, StreamReader};
pub use value::Value;

pub(crate) const DELIVERY_COUNT: &str = "JMSXDeliveryCount";

/// A message. Cloning it is cheap: bodies and properties are shared until one of the copies is changed.
///
/// A received message is read-only until [`Message::clear_body`] and [`Message::clear_properties`] (section 3.10 of
/// the specification); a message that was sent stays the sender's to change, as it is copied by the send. Two messages
/// are equal when their headers, properties and bodies are, whether or not they are read-only.
///
/// ```
/// # use corriere_core::Message;
/// # fn main() -> Result<(), corriere_core::MessageError> {
/// let mut message = Message::text("one espresso");
/// message.set_property("table", 7)?;
///
/// let received = message.received(1);
/// assert_eq!(received.as_text()?, Some("one espresso"));
/// assert_eq!(received.property::<i64>("table")?, Some(7));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Message {
    headers: Headers,
    properties: Properties,
    body: Body,
    body_is_read_only: bool,
    properties_are_read_only: bool,
}

impl Message {
    /// A message with this body, default headers and no properties.
    #[must_use]
    pub fn new(body: Body) -> Self {
        Self {
            headers: Headers::default(),
            properties: Properties::default(),
            body,
            body_is_read_only: false,
            properties_are_read_only: false,
        }
    }

    /// A text message.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Body::text(text))
    }

    /// A bytes message.
    #[must_use]
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self::new(Body::bytes(bytes))
    }

    /// A map message.
    #[must_use]
    pub fn map(body: MapBody) -> Self {
        Self::new(Body::Map(body))
    }

    /// A stream message.
    #[must_use]
    pub fn stream(body: StreamBody) -> Self {
        Self::new(Body::Stream(body))
    }

    /// An object message: the object as bytes, their media type (the property `content_type`), and the name of the type
    /// that was serialised (the property `_type`).
    #[must_use]
    pub fn object(bytes: impl Into<Bytes>, content_type: &str, type_name: &str) -> Self {
        let mut message = Self::new(Body::Object(ObjectBody::new(bytes)));
        message.properties.set_unchecked(Properties::CONTENT_TYPE, content_type.into());
        message.properties.set_unchecked(Properties::TYPE_NAME, type_name.into());
        message
    }

    /// The headers.
    #[must_use]
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// The headers, to change. Those that a provider sets are overwritten by the next send.
    pub fn headers_mut(&mut self) -> &mut Headers {
        &mut self.headers
    }

    /// The properties.
    #[must_use]
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// The properties, to change whatever their names and also on a received message.
    ///
    /// For providers, which add properties of their own to messages under way; an application's way is
    /// [`Message::set_property`].
    pub fn properties_mut_unchecked(&mut self) -> &mut Properties {
        &mut self.properties
    }

    /// Sets a property.
    ///
    /// # Errors
    /// [`MessageError::NotWriteable`] on a received message, an illegal name, or a value that no property may hold.
    pub fn set_property(&mut self, name: &str, value: impl Into<Value>) -> Result<&mut Self, MessageError> {
        if self.properties_are_read_only {
            return Err(MessageError::NotWriteable { part: "properties" });
        }
        self.properties.set(name, value.into())?;
        Ok(self)
    }

    /// Reads a property as `T`, converting by the table at [`FromValue`]; `None` when it is absent or null, whatever
    /// `T` is. As a [`Value`] or an `Option`, null is told from absent.
    ///
    /// `JMSXDeliveryCount` is the number of the present delivery; on a dead letter, where the broker stored it, that of
    /// the deliveries that failed.
    ///
    /// # Errors
    /// [`MessageError::Format`] where the table allows no conversion, [`MessageError::Number`] for text that is no number.
    pub fn property<T: FromValue>(&self, name: &str) -> Result<Option<T>, MessageError> {
        if name == DELIVERY_COUNT && self.headers.delivery_count > 0 && self.properties.get(name).is_none() {
            let count = Value::Int(i32::try_from(self.headers.delivery_count).unwrap_or(i32::MAX));
            return convert::read_named(Some(&count), "property", name);
        }
        self.properties.read(name)
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// The body, to change.
    ///
    /// # Errors
    /// [`MessageError::NotWriteable`] on a received message.
    pub fn body_mut(&mut self) -> Result<&mut Body, MessageError> {
        if self.body_is_read_only {
            return Err(MessageError::NotWriteable { part: "body" });
        }
        Ok(&mut self.body)
    }

    /// The text of a text message; `None` when it is absent, which is not the same as empty.
    ///
    /// # Errors
    /// [`MessageError::Format`] when the body is of another kind, or there is none.
    pub fn as_text(&self) -> Result<Option<&str>, MessageError> {
        match &self.body {
            Body::Text(text) => Ok(text.as_deref()),
            other => Err(other.is_no("text")),
        }
    }

    /// The body of a bytes message.
    ///
    /// # Errors
    /// [`MessageError::Format`] when the body is of another kind, or there is none.
    pub fn as_bytes(&self) -> Result<&BytesBody, MessageError> {
        match &self.body {
            Body::Bytes(body) => Ok(body),
            other => Err(other.is_no("bytes")),
        }
    }

    /// The body of a map message.
    ///
    /// # Errors
    /// [`MessageError::Format`] when the body is of another kind, or there is none.
    pub fn as_map(&self) -> Result<&MapBody, MessageError> {
        match &self.body {
            Body::Map(body) => Ok(body),
            other => Err(other.is_no("map")),
        }
    }

    /// The body of a stream message.
    ///
    /// # Errors
    /// [`MessageError::Format`] when the body is of another kind, or there is none.
    pub fn as_stream(&self) -> Result<&StreamBody, MessageError> {
        match &self.body {
            Body::Stream(body) => Ok(body),
            other => Err(other.is_no("stream")),
        }
    }

    /// The body of an object message.
    ///
    /// # Errors
    /// [`MessageError::Format`] when the body is of another kind, or there is none.
    pub fn as_object(&self) -> Result<&ObjectBody, MessageError> {
        match &self.body {
            Body::Object(body) => Ok(body),
            other => Err(other.is_no("object")),
        }
    }

    /// Empties the body and makes it writeable; headers and properties stay.
    pub fn clear_body(&mut self) {
        self.body.clear();
        self.body_is_read_only = false;
    }

    /// Removes all properties and makes them writeable; headers and body stay.
    pub fn clear_properties(&mut self) {
        self.properties = Properties::default();
        self.properties_are_read_only = false;
    }

    /// The message as a consumer sees it: read-only, with the number of its present delivery (1 for the first).
    #[must_use]
    pub fn received(mut self, delivery_count: u32) -> Self {
        self.headers.delivery_count = delivery_count;
        self.body_is_read_only = true;
        self.properties_are_read_only = true;
        self
    }

    /// Bytes that this message is taken to hold in memory: body, properties and headers. Costs next to nothing.
    #[must_use]
    pub fn size(&self) -> usize {
        /// The message itself, and the texts of its headers that it most often shares with others.
        const FIXED: usize = 256;
        let text = |text: &Option<Arc<str>>| text.as_deref().map_or(0, str::len);
        FIXED
            + text(&self.headers.correlation_id)
            + text(&self.headers.message_type)
            + self.properties.size()
            + self.body.size()
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.headers == other.headers && self.properties == other.properties && self.body == other.body
    }
}

impl Eq for Message {}

#[cfg(test)]
mod tests;
