//! Values of both sides.

use bytes::Bytes;
use corriere_core::Value;

use super::kept;
use crate::codec::error::EncodeError;
use crate::codec::primitive::{Primitive, PrimitiveLimits};

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
    match value {
        Primitive::Plain(Value::Bytes(bytes)) if !bytes.starts_with(NESTED) => Ok(Value::Bytes(kept(&bytes))),
        nested @ (Primitive::Plain(Value::Bytes(_)) | Primitive::Map(_) | Primitive::List(_)) => {
            let encoded = Primitive::encode_all([&nested])?;
            Ok(Value::Bytes(Bytes::from([NESTED, &encoded].concat())))
        }
        Primitive::Plain(value) => Ok(value),
    }
}

pub(super) fn from_core(value: &Value) -> Primitive {
    nested_value(value).unwrap_or_else(|| Primitive::Plain(value.clone()))
}
