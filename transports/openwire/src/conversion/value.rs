//! Values of both sides.

use bytes::Bytes;
use corriere_core::Value;

use super::kept;
use crate::error::EncodeError;
use crate::primitive::{Primitive, PrimitiveLimits};

/// What bytes begin with that stand for a map or a list.
const NESTED: &[u8] = b"\0openwire:nested\0";

/// The map or list that stands on the wire for `value`.
///
/// Core has no maps and lists within properties and bodies. One that comes from a peer is kept as bytes: a mark, and the
/// value as the wire has it. Bytes of a peer that begin with the mark are kept in the same way, so that nothing else is
/// taken for one.
#[must_use]
pub fn nested_value(value: &Value) -> Option<Primitive> {
    let Value::Bytes(bytes) = value else {
        return None;
    };
    let encoded = bytes.slice_ref(bytes.strip_prefix(NESTED)?);
    let mut values = Primitive::decode_all(&encoded, PrimitiveLimits::of_memory(usize::MAX)).ok()?;
    values.pop().filter(|_| values.is_empty())
}

pub(super) fn to_core(value: Primitive) -> Result<Value, EncodeError> {
    Ok(match value {
        Primitive::Null => Value::Null,
        Primitive::Boolean(value) => Value::Boolean(value),
        Primitive::Byte(value) => Value::Byte(value),
        Primitive::Char(value) => Value::Char(value),
        Primitive::Short(value) => Value::Short(value),
        Primitive::Int(value) => Value::Int(value),
        Primitive::Long(value) => Value::Long(value),
        Primitive::Double(value) => Value::Double(value),
        Primitive::Float(value) => Value::Float(value),
        Primitive::String(text) => Value::String(text),
        Primitive::Bytes(bytes) if !bytes.starts_with(NESTED) => Value::Bytes(kept(&bytes)),
        nested @ (Primitive::Bytes(_) | Primitive::Map(_) | Primitive::List(_)) => {
            let encoded = Primitive::encode_all([&nested])?;
            Value::Bytes(Bytes::from([NESTED, &encoded].concat()))
        }
    })
}

pub(super) fn from_core(value: &Value) -> Primitive {
    match value {
        Value::Null => Primitive::Null,
        Value::Boolean(value) => Primitive::Boolean(*value),
        Value::Byte(value) => Primitive::Byte(*value),
        Value::Char(value) => Primitive::Char(*value),
        Value::Short(value) => Primitive::Short(*value),
        Value::Int(value) => Primitive::Int(*value),
        Value::Long(value) => Primitive::Long(*value),
        Value::Double(value) => Primitive::Double(*value),
        Value::Float(value) => Primitive::Float(*value),
        Value::String(text) => Primitive::String(text.clone()),
        Value::Bytes(bytes) => nested_value(value).unwrap_or_else(|| Primitive::Bytes(bytes.clone())),
    }
}
