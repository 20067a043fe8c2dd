//! The five bodies.

use std::sync::Arc;

use bytes::Bytes;

use super::Value;

/// The body of a message.
#[derive(Clone, Debug, Default, PartialEq)]
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
        Self::Bytes(BytesBody(bytes.into()))
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
            Self::Text(Some(text)) => text.len(),
            Self::Bytes(bytes) => bytes.0.len(),
            _ => 0,
        }
    }
}

/// Untyped bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BytesBody(Bytes);

/// Named, typed values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MapBody(Arc<Vec<(Arc<str>, Value)>>);

/// Typed values in a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamBody(Arc<Vec<Value>>);

/// A serialised object: opaque bytes, with what is said of them in the properties `content_type` and `_type`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectBody(Bytes);
