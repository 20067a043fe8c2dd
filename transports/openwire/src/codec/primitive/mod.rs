//! Primitive values (OpenWire, section 6): what properties, map bodies and stream bodies are made of.

mod read;
mod write;

pub(crate) use write::map as encode_map;

use std::borrow::Borrow;
use std::sync::Arc;

use bytes::Bytes;
use corriere_core::Value;

use crate::codec::error::{DecodeError, EncodeError};

/// A value as the wire has it: one of core's, or a map or a list.
///
/// ```
/// # use corriere_core::Value;
/// # use corriere_openwire::primitive::Primitive;
/// assert_eq!(Primitive::from(12), Primitive::Plain(Value::Int(12)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Primitive {
    /// 0 to 10, and 13 for a text that is too long for 9.
    Plain(Value),
    /// 11
    Map(PrimitiveMap),
    /// 12
    List(Vec<Primitive>),
}

impl<T: Into<Value>> From<T> for Primitive {
    fn from(value: T) -> Self {
        Self::Plain(value.into())
    }
}

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
        write::map(self.0.len(), self.iter())
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &Primitive)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    /// The value of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Primitive> {
        self.0.iter().rev().find(|(known, _)| &**known == name).map(|(_, value)| value)
    }

    /// Adds a value.
    pub fn push(&mut self, name: &str, value: impl Into<Primitive>) {
        self.0.push((name.into(), value.into()));
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
    pub fn encode_all(values: impl IntoIterator<Item = impl Borrow<Self>>) -> Result<Bytes, EncodeError> {
        write::all(values)
    }
}

#[cfg(test)]
mod tests;
