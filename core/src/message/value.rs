//! The typed values of properties, map entries and stream items.

use std::sync::Arc;

use bytes::Bytes;

use super::MessageError;

/// A typed value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// `boolean`.
    Boolean(bool),
    /// `byte`.
    Byte(i8),
    /// `short`.
    Short(i16),
    /// `char`, one UTF-16 unit; in maps and streams only.
    Char(u16),
    /// `int`.
    Int(i32),
    /// `long`.
    Long(i64),
    /// `float`.
    Float(f32),
    /// `double`.
    Double(f64),
    /// `String`.
    String(Arc<str>),
    /// `byte[]`; in maps and streams only.
    Bytes(Bytes),
}

/// A type that a [`Value`] can be read as, by the conversion table of section 3.5.4.
pub trait FromValue: Sized {
    /// Reads `value` as this type.
    ///
    /// # Errors
    /// [`MessageError::Format`] or [`MessageError::Number`].
    fn from_value(value: &Value) -> Result<Self, MessageError>;
}
