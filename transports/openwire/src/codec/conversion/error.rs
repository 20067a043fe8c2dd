//! Why a message of one side is none of the other.

use corriere_core::DestinationError;
use thiserror::Error;

use crate::codec::error::{DecodeError, EncodeError};

/// Why a message, an identifier or a destination cannot be had on the other side.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConversionError {
    /// The properties cannot be read.
    #[error("the properties of the message cannot be read: {0}")]
    Properties(DecodeError),
    /// The body cannot be read.
    #[error("the body of the message cannot be read: {0}")]
    Body(DecodeError),
    /// A message without a body has one.
    #[error("a message of a kind that has no body has one of {length} bytes")]
    Unexpected {
        /// How long it is.
        length: usize,
    },
    /// The body is somewhere else.
    #[error("the body of the message is at another place; such messages are not offered")]
    Blob,
    /// The compressed body cannot be inflated.
    #[error("the compressed body of the message cannot be inflated: its bytes are damaged or end too early")]
    Compressed,
    /// The compressed body is shorter than it says.
    #[error("the compressed body of the message is said to have {announced} bytes and has {found}")]
    CompressedLength {
        /// What stands before it.
        announced: i32,
        /// What it has.
        found: usize,
    },
    /// The compressed body is larger than what is accepted.
    #[error("the compressed body of the message has more than the {maximum} bytes that are accepted")]
    TooLarge {
        /// What is accepted.
        maximum: usize,
    },
    /// Core has no such destination.
    #[error("the {field} of the message: {error}")]
    Destination {
        /// Which field.
        field: &'static str,
        /// Why.
        error: DestinationError,
    },
    /// The number of a message or a transaction is negative, or too large for the wire.
    #[error("{number} cannot be the number of a {of}; expected 0 to 9223372036854775807")]
    Number {
        /// The number.
        number: i128,
        /// `message` or `transaction`.
        of: &'static str,
    },
    /// The message has an identity neither by its producer nor as text.
    #[error("the message id has neither a producer nor a text that says one")]
    NoProducer,
    /// The properties cannot be written.
    #[error("the properties of the message cannot be written: {0}")]
    WriteProperties(EncodeError),
    /// The body cannot be written.
    #[error("the body of the message cannot be written: {0}")]
    WriteBody(EncodeError),
}
