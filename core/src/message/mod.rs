//! The message: headers, typed properties and one of five bodies (Jakarta Messaging 3.1, chapter 3).

mod body;
mod error;
mod headers;
mod properties;
mod value;

pub use body::{Body, BytesBody, MapBody, ObjectBody, StreamBody};
pub use error::MessageError;
pub use headers::{DeliveryMode, Headers, Priority};
pub use properties::Properties;
pub use value::{FromValue, Value};

/// A message. Cloning it is cheap: bodies and properties are shared until one of the copies is changed.
///
/// A received message is read-only until [`Message::clear_body`] and [`Message::clear_properties`] (section 3.10 of
/// the specification); a message that was sent stays the sender's to change, as it is copied by the send.
#[derive(Clone, Debug, PartialEq)]
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
    pub fn bytes(bytes: impl Into<bytes::Bytes>) -> Self {
        Self::new(Body::bytes(bytes))
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

    /// Reads a property as `T`, converting by the table of section 3.5.4; `None` when it is absent.
    ///
    /// # Errors
    /// [`MessageError::Format`] where the table allows no conversion, [`MessageError::Number`] for text that is no number.
    pub fn property<T: FromValue>(&self, name: &str) -> Result<Option<T>, MessageError> {
        self.properties.get(name).map(|value| T::from_value(value)).transpose()
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

    /// Bytes that this message is taken to hold in memory: body, properties and a fixed share for the headers.
    #[must_use]
    pub fn size(&self) -> usize {
        const HEADERS: usize = 256;
        HEADERS + self.properties.size() + self.body.size()
    }
}
