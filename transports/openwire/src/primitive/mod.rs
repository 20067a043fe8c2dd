//! Primitive values (OpenWire, section 6): what properties, map bodies and stream bodies are made of.

mod read;
mod write;

use std::sync::Arc;

use bytes::Bytes;

use crate::error::{DecodeError, EncodeError};

/// A value as the wire has it. Beside what [`corriere_core::Value`] can be, it may be a map or a list.
#[derive(Clone, Debug)]
pub enum Primitive {
    /// 0
    Null,
    /// 1
    Boolean(bool),
    /// 2
    Byte(i8),
    /// 3, one UTF-16 unit.
    Char(u16),
    /// 4
    Short(i16),
    /// 5
    Int(i32),
    /// 6
    Long(i64),
    /// 7
    Double(f64),
    /// 8
    Float(f32),
    /// 9, and 13 for what is too long for that.
    String(Arc<str>),
    /// 10
    Bytes(Bytes),
    /// 11
    Map(PrimitiveMap),
    /// 12
    List(Vec<Primitive>),
}

/// Two values are equal when they have the same type and the same bits.
impl PartialEq for Primitive {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Boolean(this), Self::Boolean(that)) => this == that,
            (Self::Byte(this), Self::Byte(that)) => this == that,
            (Self::Char(this), Self::Char(that)) => this == that,
            (Self::Short(this), Self::Short(that)) => this == that,
            (Self::Int(this), Self::Int(that)) => this == that,
            (Self::Long(this), Self::Long(that)) => this == that,
            (Self::Double(this), Self::Double(that)) => this.to_bits() == that.to_bits(),
            (Self::Float(this), Self::Float(that)) => this.to_bits() == that.to_bits(),
            (Self::String(this), Self::String(that)) => this == that,
            (Self::Bytes(this), Self::Bytes(that)) => this == that,
            (Self::Map(this), Self::Map(that)) => this == that,
            (Self::List(this), Self::List(that)) => this == that,
            _ => false,
        }
    }
}

impl Eq for Primitive {}

/// Values by name, in the order in which they stand on the wire; of a name that is there twice the last counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrimitiveMap(pub Vec<(Arc<str>, Primitive)>);

/// How much is accepted of a stranger's values. Bytes beyond those that were sent are never taken whatever is said here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrimitiveLimits {
    /// How many entries a map may have.
    pub entries: usize,
    /// How many bytes a name, a text or a byte array may have.
    pub bytes: usize,
    /// How many maps and lists may stand within each other, the outermost counted.
    pub depth: usize,
    /// How much memory all of it together may take. A value that takes one byte on the wire takes more than that here.
    pub memory: usize,
}

impl PrimitiveLimits {
    /// How deep ActiveMQ nests at most.
    pub const MAXIMUM_DEPTH: usize = 127;

    /// Whatever fits into so much memory.
    #[must_use]
    pub fn of_memory(memory: usize) -> Self {
        Self { entries: usize::MAX, bytes: usize::MAX, depth: Self::MAXIMUM_DEPTH, memory }
    }
}

impl PrimitiveMap {
    /// Reads a map that is all of `bytes`; `None` is the null map.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn decode(bytes: &Bytes, limits: PrimitiveLimits) -> Result<Option<Self>, DecodeError> {
        read::map(bytes, limits)
    }

    /// The bytes of this map.
    ///
    /// # Errors
    /// A name or a number of values that has no room, or too many maps and lists within each other.
    pub fn encode(&self) -> Result<Bytes, EncodeError> {
        write::map(self)
    }

    /// The value of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Primitive> {
        self.0.iter().rev().find(|(known, _)| &**known == name).map(|(_, value)| value)
    }

    /// Adds a value.
    pub fn push(&mut self, name: &str, value: Primitive) {
        self.0.push((name.into(), value));
    }
}

impl Primitive {
    /// Reads values in a row, up to the end of `bytes`, as a stream body has them.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn decode_all(bytes: &Bytes, limits: PrimitiveLimits) -> Result<Vec<Self>, DecodeError> {
        read::all(bytes, limits)
    }

    /// The bytes of values in a row.
    ///
    /// # Errors
    /// As [`PrimitiveMap::encode`].
    pub fn encode_all<'a>(values: impl IntoIterator<Item = &'a Self>) -> Result<Bytes, EncodeError> {
        write::all(values)
    }
}

#[cfg(test)]
mod tests;
