//! Writes primitive values.

use bytes::Bytes;

use super::{Primitive, PrimitiveLimits, PrimitiveMap};
use crate::error::{EncodeError, EncodeFault};
use crate::format::WireFormat;
use crate::loose::Writer;

/// From this many UTF-16 units on a text is written with a length of 32 bits, as Java writes it.
const BIG_STRING: usize = i16::MAX as usize / 4;

pub(super) fn map(map: &PrimitiveMap) -> Result<Bytes, EncodeError> {
    let mut bytes = Vec::new();
    write_map(map, &mut Writer::new(&mut bytes, WireFormat::default()), 1)?;
    Ok(bytes.into())
}

pub(super) fn all<'a>(values: impl IntoIterator<Item = &'a Primitive>) -> Result<Bytes, EncodeError> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, WireFormat::default());
    values.into_iter().try_for_each(|value| write(value, &mut writer, 0))?;
    Ok(bytes.into())
}

fn write_map(map: &PrimitiveMap, writer: &mut Writer<'_>, depth: usize) -> Result<(), EncodeError> {
    writer.length(map.0.len())?;
    map.0.iter().try_for_each(|(name, value)| {
        writer.short_text(name)?;
        write(value, writer, depth)
    })
}

fn write(value: &Primitive, writer: &mut Writer<'_>, depth: usize) -> Result<(), EncodeError> {
    match value {
        Primitive::Null => writer.u8(0),
        Primitive::Boolean(value) => {
            writer.u8(1);
            writer.flag(*value);
        }
        Primitive::Byte(value) => {
            writer.u8(2);
            writer.i8(*value);
        }
        Primitive::Char(value) => {
            writer.u8(3);
            writer.u16(*value);
        }
        Primitive::Short(value) => {
            writer.u8(4);
            writer.i16(*value);
        }
        Primitive::Int(value) => {
            writer.u8(5);
            writer.i32(*value);
        }
        Primitive::Long(value) => {
            writer.u8(6);
            writer.i64(*value);
        }
        Primitive::Double(value) => {
            writer.u8(7);
            writer.bytes(&value.to_be_bytes());
        }
        Primitive::Float(value) => {
            writer.u8(8);
            writer.bytes(&value.to_be_bytes());
        }
        Primitive::String(text) if is_big(text) => {
            writer.u8(13);
            writer.long_text(text)?;
        }
        Primitive::String(text) => {
            writer.u8(9);
            writer.short_text(text)?;
        }
        Primitive::Bytes(bytes) => {
            writer.u8(10);
            writer.length(bytes.len())?;
            writer.bytes(bytes);
        }
        Primitive::Map(map) => {
            writer.u8(11);
            write_map(map, writer, deeper(depth)?)?;
        }
        Primitive::List(values) => {
            writer.u8(12);
            writer.length(values.len())?;
            let depth = deeper(depth)?;
            values.iter().try_for_each(|value| write(value, writer, depth))?;
        }
    }
    Ok(())
}

fn is_big(text: &str) -> bool {
    // Counting takes a while, and no text has more units than bytes.
    text.len() >= BIG_STRING && text.encode_utf16().take(BIG_STRING).count() == BIG_STRING
}

fn deeper(depth: usize) -> Result<usize, EncodeError> {
    let maximum = PrimitiveLimits::MAXIMUM_DEPTH;
    if depth < maximum { Ok(depth + 1) } else { Err(EncodeError::new(EncodeFault::TooDeep { maximum })) }
}
