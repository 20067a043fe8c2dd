//! Structures within each other.

use super::{Reader, Writer};
use crate::codec::error::{DecodeError, DecodeFault, EncodeError};
use crate::codec::version::Version;

/// The fields of a structure, as its description says them.
pub(crate) trait Fields: Sized {
    /// The structure's name in the specification.
    const NAME: &'static str;

    fn read_all(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;

    fn write_all(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError>;

    /// Any values, as far as the version has them.
    #[cfg(test)]
    fn sample_all(source: &mut crate::codec::sample::Source) -> Self;
}

/// A structure with a type of its own.
pub(crate) trait Described: Fields {
    /// What stands before its fields.
    const TYPE: u8;

    /// Whether a version has it at all.
    fn is_in(_version: Version) -> bool {
        true
    }

    /// Its number and whether it wants an answer, if it is a command.
    fn command(&self) -> Option<(i32, bool)> {
        None
    }

    fn set_command_id(&mut self, _id: i32) {}
}

/// What may stand in a field as a structure: one, or one of a family whose members differ by type.
pub(crate) trait Nested: Sized {
    /// The name of the structure or of the family.
    const NAME: &'static str;

    /// Whether a structure of this type may stand here.
    fn accepts(data_type: u8) -> bool;

    /// Why one of this type may not.
    fn refusal(data_type: u8) -> DecodeFault {
        DecodeFault::UnexpectedType { found: data_type, expected: Self::NAME }
    }

    /// Reads the fields that stand behind a type that is accepted.
    fn read_as(data_type: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError>;

    fn data_type(&self) -> u8;

    fn write_fields(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError>;

    /// Any structure that may stand here.
    #[cfg(test)]
    fn sample_any(source: &mut crate::codec::sample::Source) -> Self;
}

impl<T: Described> Nested for T {
    const NAME: &'static str = <T as Fields>::NAME;

    fn accepts(data_type: u8) -> bool {
        data_type == T::TYPE
    }

    fn read_as(_data_type: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        T::read_all(reader)
    }

    fn data_type(&self) -> u8 {
        T::TYPE
    }

    fn write_fields(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.write_all(writer)
    }

    #[cfg(test)]
    fn sample_any(source: &mut crate::codec::sample::Source) -> Self {
        T::sample_all(source)
    }
}
