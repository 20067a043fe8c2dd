//! What can be wrong with reading or writing a message.

use thiserror::Error;

use super::Value;
use crate::text::shown;

/// Why a message, a body or a property could not be read or written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageError {
    /// A received message was to be changed (`MessageNotWriteableException`).
    #[error("the {part} of a received message cannot be changed; clear it first")]
    NotWriteable {
        /// `body` or `properties`.
        part: &'static str,
    },
    /// A value has another type than the one asked for (`MessageFormatException`).
    #[error("{what} is of type {found} and cannot be read as {expected}")]
    Format {
        /// The property, entry, item or body.
        what: String,
        /// The type that is there.
        found: &'static str,
        /// The type that was asked for.
        expected: &'static str,
    },
    /// Text that was to be read as a number is none (`NumberFormatException`).
    #[error("{what} is the text `{text}`, which is not a number of type {expected}")]
    Number {
        /// The property, entry or item.
        what: String,
        /// The text that is there, cut where it is long.
        text: String,
        /// The type that was asked for.
        expected: &'static str,
    },
    /// A property was to hold what it may not hold (`MessageFormatException`).
    #[error("property `{name}` cannot hold a value of type {found}; expected {expected}")]
    PropertyType {
        /// The property.
        name: String,
        /// The type that was given.
        found: &'static str,
        /// The types that it may have.
        expected: &'static str,
    },
    /// A `byte[]` of a stream was begun with `read_bytes` and has to be finished with it (`MessageFormatException`).
    #[error("{what} is a byte[] that `read_bytes` has not finished; expected more calls until it says so")]
    PartlyRead {
        /// The item.
        what: String,
    },
    /// The stream or the bytes end here (`MessageEOFException`).
    #[error("the message ends here; there is nothing more to read")]
    EndOfStream,
    /// Text in a bytes body that is not in the encoding of `writeUTF`.
    #[error("the text at byte {offset} is not modified UTF-8")]
    Encoding {
        /// The first byte that does not fit.
        offset: usize,
    },
    /// Text that has no room behind the 16-bit length of `writeUTF`.
    #[error("a text of {length} encoded bytes is too long for `write_utf`; expected at most 65,535")]
    TextTooLong {
        /// Its length as modified UTF-8.
        length: usize,
    },
    /// A name that no property or entry may have.
    #[error("`{name}` cannot be the name of a property or an entry: {reason}")]
    Name {
        /// The name that was refused, cut where it is long.
        name: String,
        /// Which rule it breaks.
        reason: &'static str,
    },
    /// A priority above 9.
    #[error("priority {level} is out of range; expected 0 to 9")]
    Priority {
        /// The level that was asked for.
        level: u8,
    },
}

impl MessageError {
    /// A value that cannot be read as `expected`. Whoever knows where it stands says so with [`MessageError::at`].
    pub(super) fn conversion(value: &Value, expected: &'static str) -> Self {
        Self::Format { what: "the value".to_owned(), found: value.type_name(), expected }
    }

    pub(super) fn number(text: &str, expected: &'static str) -> Self {
        Self::Number { what: "the value".to_owned(), text: shown(text), expected }
    }

    pub(super) fn name(name: &str, reason: &'static str) -> Self {
        Self::Name { name: shown(name), reason }
    }

    pub(super) fn property_type(name: &str, value: &Value, expected: &'static str) -> Self {
        Self::PropertyType { name: shown(name), found: value.type_name(), expected }
    }

    /// The same error, of a value whose place is known.
    pub(super) fn at(mut self, place: impl FnOnce() -> String) -> Self {
        if let Self::Format { what, .. } | Self::Number { what, .. } = &mut self {
            *what = place();
        }
        self
    }
}
