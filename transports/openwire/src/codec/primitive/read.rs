//! Reads primitive values.

use std::sync::Arc;

use bytes::Bytes;
use corriere_core::Value;

use super::{Primitive, PrimitiveLimits, PrimitiveMap};
use crate::codec::error::{DecodeError, DecodeFault};
use crate::codec::format::WireFormat;
use crate::codec::loose::Reader;

pub(super) fn map(bytes: &Bytes, limits: PrimitiveLimits) -> Result<Option<PrimitiveMap>, DecodeError> {
    let mut values = Values::new(bytes, limits);
    let map = values.deeper(Values::map)?;
    values.reader.finish()?;
    Ok(map)
}

pub(super) fn all(bytes: &Bytes, limits: PrimitiveLimits) -> Result<Vec<Primitive>, DecodeError> {
    let mut values = Values::new(bytes, limits);
    let mut all = Vec::new();
    while values.reader.left() > 0 {
        all.push(values.value()?);
    }
    Ok(all)
}

struct Values<'a> {
    reader: Reader<'a>,
    limits: PrimitiveLimits,
    depth: usize,
    memory: usize,
}

impl<'a> Values<'a> {
    fn new(bytes: &'a Bytes, limits: PrimitiveLimits) -> Self {
        Self { reader: Reader::new(bytes, WireFormat::default()), limits, depth: 0, memory: 0 }
    }

    fn map(&mut self) -> Result<Option<PrimitiveMap>, DecodeError> {
        /// A name's length and a tag.
        const LEAST: usize = 3;
        let Some(count) = self.reader.nullable_length(LEAST)? else {
            return Ok(None);
        };
        self.bounded(count, "entries", self.limits.entries)?;
        let mut map = PrimitiveMap::default();
        for _ in 0..count {
            let length = self.reader.u16()?;
            let name = self.text(length.into())?;
            // The name's place in the map, and the counts before its text.
            self.charge(size_of::<(Arc<str>, Primitive)>())?;
            map.0.push((name, self.value()?));
        }
        Ok(Some(map))
    }

    fn list(&mut self) -> Result<Vec<Primitive>, DecodeError> {
        let count = self.reader.length(1)?;
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(self.value()?);
        }
        Ok(list)
    }

    fn value(&mut self) -> Result<Primitive, DecodeError> {
        self.charge(size_of::<Primitive>())?;
        Ok(match self.reader.u8()? {
            11 => self.deeper(Self::map)?.map_or(Primitive::Plain(Value::Null), Primitive::Map),
            12 => Primitive::List(self.deeper(Self::list)?),
            tag => Primitive::Plain(self.plain(tag)?),
        })
    }

    fn plain(&mut self, tag: u8) -> Result<Value, DecodeError> {
        let reader = &mut self.reader;
        Ok(match tag {
            0 => Value::Null,
            1 => Value::Boolean(reader.flag()?),
            2 => Value::Byte(reader.i8()?),
            3 => Value::Char(reader.u16()?),
            4 => Value::Short(reader.i16()?),
            5 => Value::Int(reader.i32()?),
            6 => Value::Long(reader.i64()?),
            7 => Value::Double(f64::from_be_bytes(reader.array()?)),
            8 => Value::Float(f32::from_be_bytes(reader.array()?)),
            9 => {
                let length = reader.u16()?;
                Value::String(self.text(length.into())?)
            }
            10 => {
                let length = reader.length(1)?;
                self.bounded(length, "bytes of an array", self.limits.bytes)?;
                Value::Bytes(self.reader.shared(length)?)
            }
            13 => {
                let length = reader.length(1)?;
                Value::String(self.text(length)?)
            }
            tag => return Err(reader.fault(1, DecodeFault::UnknownTag { tag })),
        })
    }

    fn text(&mut self, length: usize) -> Result<Arc<str>, DecodeError> {
        self.bounded(length, "bytes of a text", self.limits.bytes)?;
        self.charge(length)?;
        self.reader.text(length)
    }

    fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        if self.depth == self.limits.depth {
            return Err(self.reader.fault(1, DecodeFault::TooDeep { maximum: self.limits.depth }));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn bounded(&self, count: usize, what: &'static str, maximum: usize) -> Result<(), DecodeError> {
        if count <= maximum {
            return Ok(());
        }
        Err(self.reader.fault(0, DecodeFault::TooMuch { count, what, maximum }))
    }

    /// Says that `bytes` more of memory are about to be taken.
    fn charge(&mut self, bytes: usize) -> Result<(), DecodeError> {
        self.memory = self.memory.saturating_add(bytes);
        self.bounded(self.memory, "bytes of memory", self.limits.memory)
    }
}
