//! The five bodies.

use std::sync::Arc;

use bytes::Bytes;

use super::{BytesBody, MapBody, MessageError, StreamBody};

/// The body of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Body {
    /// No body.
    #[default]
    Empty,
    /// `TextMessage`; the text may be absent, which is not the same as empty.
    Text(Option<Arc<str>>),
    /// `BytesMessage`.
    Bytes(BytesBody),
    /// `MapMessage`.
    Map(MapBody),
    /// `StreamMessage`.
    Stream(StreamBody),
    /// `ObjectMessage`.
    Object(ObjectBody),
}

impl Body {
    /// A text body.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Some(Arc::from(text.into())))
    }

    /// A bytes body.
    #[must_use]
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self::Bytes(BytesBody::new(bytes))
    }

    /// What kind of body this is, as errors show it: `text`, `bytes`, `no body`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Empty => "no body",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::Map(_) => "map",
            Self::Stream(_) => "stream",
            Self::Object(_) => "object",
        }
    }

    /// The error of one who asked for another kind of body.
    pub(super) fn is_no(&self, expected: &'static str) -> MessageError {
        MessageError::Format { what: "the body".to_owned(), found: self.kind(), expected }
    }

    /// Empties the body; its kind stays.
    pub fn clear(&mut self) {
        *self = match self {
            Self::Empty => Self::Empty,
            Self::Text(_) => Self::Text(None),
            Self::Bytes(_) => Self::Bytes(BytesBody::default()),
            Self::Map(_) => Self::Map(MapBody::default()),
            Self::Stream(_) => Self::Stream(StreamBody::default()),
            Self::Object(_) => Self::Object(ObjectBody::default()),
        };
    }

    /// Bytes that the body is taken to hold in memory.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Empty | Self::Text(None) => 0,
            Self::Text(Some(text)) => text.len(),
            Self::Bytes(body) => body.len(),
            Self::Map(body) => body.size(),
            Self::Stream(body) => body.size(),
            Self::Object(body) => body.as_bytes().len(),
        }
    }
}

/// A serialised object: opaque bytes, with what is said of them in the properties `content_type` and `_type`.
///
/// [`Message::object`](super::Message::object) sets both. The object of a Java `ObjectMessage` is kept as it came and
/// has neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectBody(Bytes);

impl ObjectBody {
    /// An object, as these bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self(bytes.into())
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }
}
