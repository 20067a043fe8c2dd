//! What can be wrong with bytes that are read, and with structures that are written.

use thiserror::Error;

use crate::codec::version::Version;

/// Why a frame, or a part of one, is not what it should be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}byte {offset}: {fault}", .place.before(", "))]
#[non_exhaustive]
pub struct DecodeError {
    place: Place,
    /// Where what is wrong begins, counted from the first byte behind the frame's size, or from that of the properties or
    /// the body that was read.
    pub offset: usize,
    /// What is wrong.
    pub fault: DecodeFault,
}

impl DecodeError {
    pub(crate) fn new(offset: usize, fault: DecodeFault) -> Self {
        Self { place: Place::default(), offset, fault }
    }

    /// The same error, said of a field or of a structure that the place stands in.
    pub(crate) fn within(mut self, name: &'static str) -> Self {
        self.place.0.push(name);
        self
    }

    /// The structure and the fields that it was found in, as `MessageDispatch.message.message_id`; `frame` when it
    /// was found before the structure was known, and empty in properties and bodies, which are read by themselves.
    #[must_use]
    pub fn place(&self) -> String {
        self.place.names()
    }
}

/// What is wrong with bytes that were read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeFault {
    /// The bytes end within a field.
    #[error("{needed} bytes are needed and {left} are left")]
    Truncated {
        /// How many the field takes.
        needed: usize,
        /// How many there are.
        left: usize,
    },
    /// A length or a count that is negative, or that more bytes would have to be there for.
    #[error("a length of {length} cannot be, where {left} bytes are left")]
    Length {
        /// What is announced.
        length: i64,
        /// How many bytes there are.
        left: usize,
    },
    /// A flag that is neither 0 nor 1. So begins what a peer encodes tightly although it was declined.
    #[error("a flag is {byte}; expected 0 or 1")]
    Flag {
        /// What stands there.
        byte: u8,
    },
    /// A text that is not modified UTF-8, or that holds half of a character.
    #[error("a text is not modified UTF-8, or has half of a character in it")]
    Text,
    /// A field that may not be null is.
    #[error("it is null, and may not be")]
    Null,
    /// A code that no operation has.
    #[error("{code} is no {of}")]
    Code {
        /// What stands there.
        code: i8,
        /// What it should be one of.
        of: &'static str,
    },
    /// A type that no structure has.
    #[error("{data_type} is no type of a structure")]
    UnknownType {
        /// What stands there.
        data_type: u8,
    },
    /// A structure that does not belong there.
    #[error("there is a structure of type {found}; expected {expected}")]
    UnexpectedType {
        /// Its type.
        found: u8,
        /// What belongs there.
        expected: &'static str,
    },
    /// A tag that no primitive value has.
    #[error("{tag} is no tag of a value")]
    UnknownTag {
        /// What stands there.
        tag: u8,
    },
    /// Structures, lists or causes within each other, more deeply than anybody needs.
    #[error("it is nested more than {maximum} deep")]
    TooDeep {
        /// How deep is allowed.
        maximum: usize,
    },
    /// More of something than is accepted here.
    #[error("{count} {what} are more than the {maximum} that are accepted")]
    TooMuch {
        /// How many there are.
        count: usize,
        /// Of what.
        what: &'static str,
        /// How many are accepted.
        maximum: usize,
    },
    /// Bytes are left behind the last field.
    #[error("{left} bytes are left behind the last field")]
    Trailing {
        /// How many.
        left: usize,
    },
    /// The peer does not speak OpenWire.
    #[error("it does not begin with the word `ActiveMQ`")]
    Magic,
}

/// Why a structure cannot be written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}{fault}", .place.before(": "))]
#[non_exhaustive]
pub struct EncodeError {
    place: Place,
    /// What is wrong.
    pub fault: EncodeFault,
}

impl EncodeError {
    pub(crate) fn new(fault: EncodeFault) -> Self {
        Self { place: Place::default(), fault }
    }

    /// The same error, said of a field or of a structure that the place stands in.
    pub(crate) fn within(mut self, name: &'static str) -> Self {
        self.place.0.push(name);
        self
    }

    /// The structure and the fields that it was found in, as `MessageDispatch.message.message_id`; empty in
    /// properties and bodies, which are written by themselves.
    #[must_use]
    pub fn place(&self) -> String {
        self.place.names()
    }
}

/// What is wrong with a structure that was to be written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeFault {
    /// A text that has no room behind its 16-bit length.
    #[error("a text of {length} encoded bytes is too long; expected at most 65,535")]
    Text {
        /// Its length.
        length: usize,
    },
    /// An array, a list or bytes that have no room behind their length.
    #[error("{length} elements or bytes are too many; expected at most {maximum}")]
    Length {
        /// How many there are.
        length: usize,
        /// How many there may be.
        maximum: usize,
    },
    /// Structures, lists or causes within each other, more deeply than they could be read again.
    #[error("it is nested more than {maximum} deep")]
    TooDeep {
        /// How deep is allowed.
        maximum: usize,
    },
    /// The peer's version does not know it.
    #[error("version {version} does not have it")]
    Version {
        /// What was agreed on.
        version: Version,
    },
    /// The whole is larger than the peer accepts.
    #[error("a frame of {size} bytes is larger than the {maximum} that were agreed on")]
    Frame {
        /// Its size.
        size: usize,
        /// What is accepted.
        maximum: usize,
    },
}

/// A structure and the fields within it, the innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Place(Vec<&'static str>);

impl Place {
    fn names(&self) -> String {
        let names: Vec<_> = self.0.iter().rev().copied().collect();
        names.join(".")
    }

    /// All of it before something else; nothing where it is not known.
    fn before(&self, separator: &str) -> String {
        if self.0.is_empty() { String::new() } else { self.names() + separator }
    }
}
