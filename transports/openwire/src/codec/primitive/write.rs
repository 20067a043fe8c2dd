//! Writes primitive values.

use std::borrow::Borrow;

use bytes::Bytes;
use corriere_core::Value;

use super::{Primitive, PrimitiveLimits};
use crate::codec::error::{EncodeError, EncodeFault};
use crate::codec::format::WireFormat;
use crate::codec::loose::Writer;

/// From this many UTF-16 units on a text is written with a length of 32 bits, as Java writes it.
const BIG_STRING: usize = i16::MAX as usize / 4;

/// The bytes of a map of `count` entries.
pub(crate) fn map(
    count: usize,
    entries: impl IntoIterator<Item = (impl AsRef<str>, impl Borrow<Primitive>)>,
) -> Result<Bytes, EncodeError> {
    let mut bytes = Vec::new();
    write_map(count, entries, &mut Writer::new(&mut bytes, WireFormat::default()), 1)?;
    Ok(bytes.into())
}

pub(super) fn all(values: impl IntoIterator<Item = impl Borrow<Primitive>>) -> Result<Bytes, EncodeError> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, WireFormat::default());
    values.into_iter().try_for_each(|value| write(value.borrow(), &mut writer, 0))?;
    Ok(bytes.into())
}

fn write_map(
    count: usize,
    entries: impl IntoIterator<Item = (impl AsRef<str>, impl Borrow<Primitive>)>,
    writer: &mut Writer<'_>,
    depth: usize,
) -> Result<(), EncodeError> {
    writer.length(count)?;
    entries.into_iter().try_for_each(|(name, value)| {
        writer.short_text(name.as_ref())?;
        write(value.borrow(), writer, depth)
    })
}

fn write(value: &Primitive, writer: &mut Writer<'_>, depth: usize) -> Result<(), EncodeError> {
    match value {
        Primitive::Plain(value) => return write_plain(value, writer),
        Primitive::Map(map) => {
            writer.u8(11);
            write_map(map.0.len(), map.iter(), writer, deeper(depth)?)?;
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

fn write_plain(value: &Value, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
    let mut fixed = |tag, bytes: &[u8]| {
        writer.u8(tag);
        writer.bytes(bytes);
    };
    match value {
        Value::Null => fixed(0, &[]),
        Value::Boolean(value) => fixed(1, &[u8::from(*value)]),
        Value::Byte(value) => fixed(2, &value.to_be_bytes()),
        Value::Char(value) => fixed(3, &value.to_be_bytes()),
        Value::Short(value) => fixed(4, &value.to_be_bytes()),
        Value::Int(value) => fixed(5, &value.to_be_bytes()),
        Value::Long(value) => fixed(6, &value.to_be_bytes()),
        Value::Double(value) => fixed(7, &value.to_be_bytes()),
        Value::Float(value) => fixed(8, &value.to_be_bytes()),
        Value::String(text) if is_big(text) => {
            writer.u8(13);
            writer.long_text(text)?;
        }
        Value::String(text) => {
            writer.u8(9);
            writer.short_text(text)?;
        }
        Value::Bytes(bytes) => {
            writer.u8(10);
            writer.length(bytes.len())?;
            writer.bytes(bytes);
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
