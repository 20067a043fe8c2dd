//! What can be wrong with reading or writing a message.

use thiserror::Error;

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
    #[error("{what} holds a {found}, which cannot be read as {expected}")]
    Format {
        /// The property, entry or item.
        what: String,
        /// The type that is there.
        found: &'static str,
        /// The type that was asked for.
        expected: &'static str,
    },
    /// Text that was to be read as a number is none (`NumberFormatException`).
    #[error("`{text}` is not a number of type {expected}")]
    Number {
        /// The text that is there.
        text: String,
        /// The type that was asked for.
        expected: &'static str,
    },
    /// The stream or the bytes end here (`MessageEOFException`).
    #[error("the message ends here; there is nothing more to read")]
    EndOfStream,
    /// A name that no property or entry may have.
    #[error("`{name}` cannot be the name of a property: {reason}")]
    Name {
        /// The name that was refused.
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
