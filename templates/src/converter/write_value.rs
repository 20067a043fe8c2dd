//! Scalars on their way into a message, as typed values.

use std::fmt::Display;
use std::sync::Arc;

use corriere_core::Value;
use serde::ser::{self, Impossible, Serialize, SerializeSeq, SerializeTuple, Serializer};
use thiserror::Error;

/// Why something is no scalar.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(super) enum NoScalar {
    #[error("{0}")]
    Shape(&'static str),
    #[error("{0}")]
    Custom(String),
}

impl ser::Error for NoScalar {
    fn custom<T: Display>(message: T) -> Self {
        Self::Custom(message.to_string())
    }
}

/// The typed value of a scalar: a boolean, number, character, text, byte sequence, or nothing.
///
/// A number without a sign takes the next larger type, as Java's have one: `u8` is a `short`, `u16` an `int`, `u32` and `u64` a
/// `long`.
pub(super) fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Value, NoScalar> {
    value.serialize(ValueSerializer)
}

struct ValueSerializer;

impl ValueSerializer {
    fn long<N: TryInto<i64>>(number: N) -> Result<Value, NoScalar> {
        number.try_into().map(Value::Long).map_err(|_| NoScalar::Shape("a number beyond the range of a long"))
    }
}

impl Serializer for ValueSerializer {
    type Ok = Value;
    type Error = NoScalar;
    type SerializeSeq = Octets;
    type SerializeTuple = Octets;
    type SerializeTupleStruct = Impossible<Value, NoScalar>;
    type SerializeTupleVariant = Impossible<Value, NoScalar>;
    type SerializeMap = Impossible<Value, NoScalar>;
    type SerializeStruct = Impossible<Value, NoScalar>;
    type SerializeStructVariant = Impossible<Value, NoScalar>;

    fn serialize_bool(self, v: bool) -> Result<Value, NoScalar> {
        Ok(Value::Boolean(v))
    }

    fn serialize_i8(self, v: i8) -> Result<Value, NoScalar> {
        Ok(Value::Byte(v))
    }

    fn serialize_i16(self, v: i16) -> Result<Value, NoScalar> {
        Ok(Value::Short(v))
    }

    fn serialize_i32(self, v: i32) -> Result<Value, NoScalar> {
        Ok(Value::Int(v))
    }

    fn serialize_i64(self, v: i64) -> Result<Value, NoScalar> {
        Ok(Value::Long(v))
    }

    fn serialize_i128(self, v: i128) -> Result<Value, NoScalar> {
        Self::long(v)
    }

    fn serialize_u8(self, v: u8) -> Result<Value, NoScalar> {
        Ok(Value::Short(v.into()))
    }

    fn serialize_u16(self, v: u16) -> Result<Value, NoScalar> {
        Ok(Value::Int(v.into()))
    }

    fn serialize_u32(self, v: u32) -> Result<Value, NoScalar> {
        Ok(Value::Long(v.into()))
    }

    fn serialize_u64(self, v: u64) -> Result<Value, NoScalar> {
        Self::long(v)
    }

    fn serialize_u128(self, v: u128) -> Result<Value, NoScalar> {
        Self::long(v)
    }

    fn serialize_f32(self, v: f32) -> Result<Value, NoScalar> {
        Ok(Value::Float(v))
    }

    fn serialize_f64(self, v: f64) -> Result<Value, NoScalar> {
        Ok(Value::Double(v))
    }

    fn serialize_char(self, v: char) -> Result<Value, NoScalar> {
        // What does not fit into one UTF-16 unit is no Java `char`; as text it reads back as the same character.
        Ok(u16::try_from(u32::from(v)).map_or_else(|_| Value::String(v.to_string().into()), Value::Char))
    }

    fn serialize_str(self, v: &str) -> Result<Value, NoScalar> {
        Ok(Value::String(v.into()))
    }

    fn serialize_bytes(self, v: &[u8]) -> Result<Value, NoScalar> {
        Ok(Value::Bytes(bytes::Bytes::copy_from_slice(v)))
    }

    fn serialize_none(self) -> Result<Value, NoScalar> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, NoScalar> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, NoScalar> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, NoScalar> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value, NoScalar> {
        Ok(Value::String(Arc::from(variant)))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Value, NoScalar> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Value, NoScalar> {
        Err(NoScalar::Shape("an enum with data"))
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Octets, NoScalar> {
        // The length is only a hint, so it must not decide how much is set aside.
        Ok(Octets(Vec::with_capacity(len.unwrap_or(0).min(64 * 1024))))
    }

    fn serialize_tuple(self, len: usize) -> Result<Octets, NoScalar> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, NoScalar> {
        Err(NoScalar::Shape("a tuple"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, NoScalar> {
        Err(NoScalar::Shape("an enum with data"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, NoScalar> {
        Err(NoScalar::Shape("a map"))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, NoScalar> {
        Err(NoScalar::Shape("a struct"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, NoScalar> {
        Err(NoScalar::Shape("an enum with data"))
    }
}

/// A sequence of `u8`, as a `Vec<u8>` or an array is to serde, becomes bytes.
pub(super) struct Octets(Vec<u8>);

impl Octets {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoScalar> {
        let octet = value.serialize(OctetSerializer)?;
        self.0.push(octet);
        Ok(())
    }
}

impl SerializeSeq for Octets {
    type Ok = Value;
    type Error = NoScalar;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoScalar> {
        self.push(value)
    }

    fn end(self) -> Result<Value, NoScalar> {
        Ok(Value::Bytes(self.0.into()))
    }
}

impl SerializeTuple for Octets {
    type Ok = Value;
    type Error = NoScalar;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoScalar> {
        self.push(value)
    }

    fn end(self) -> Result<Value, NoScalar> {
        SerializeSeq::end(self)
    }
}

/// Takes a `u8` and nothing else.
struct OctetSerializer;

const LIST: NoScalar = NoScalar::Shape("a list of something other than u8");

macro_rules! refuse {
    ($($method:ident($($type:ty),*) -> $ok:ty;)*) => {$(
        fn $method(self, $(_: $type),*) -> Result<$ok, NoScalar> {
            Err(LIST)
        }
    )*};
}

impl Serializer for OctetSerializer {
    type Ok = u8;
    type Error = NoScalar;
    type SerializeSeq = Impossible<u8, NoScalar>;
    type SerializeTuple = Impossible<u8, NoScalar>;
    type SerializeTupleStruct = Impossible<u8, NoScalar>;
    type SerializeTupleVariant = Impossible<u8, NoScalar>;
    type SerializeMap = Impossible<u8, NoScalar>;
    type SerializeStruct = Impossible<u8, NoScalar>;
    type SerializeStructVariant = Impossible<u8, NoScalar>;

    fn serialize_u8(self, v: u8) -> Result<u8, NoScalar> {
        Ok(v)
    }

    refuse! {
        serialize_bool(bool) -> u8;
        serialize_i8(i8) -> u8;
        serialize_i16(i16) -> u8;
        serialize_i32(i32) -> u8;
        serialize_i64(i64) -> u8;
        serialize_u16(u16) -> u8;
        serialize_u32(u32) -> u8;
        serialize_u64(u64) -> u8;
        serialize_f32(f32) -> u8;
        serialize_f64(f64) -> u8;
        serialize_char(char) -> u8;
        serialize_str(&str) -> u8;
        serialize_bytes(&[u8]) -> u8;
        serialize_none() -> u8;
        serialize_unit() -> u8;
        serialize_unit_struct(&'static str) -> u8;
        serialize_unit_variant(&'static str, u32, &'static str) -> u8;
        serialize_seq(Option<usize>) -> Self::SerializeSeq;
        serialize_tuple(usize) -> Self::SerializeTuple;
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_map(Option<usize>) -> Self::SerializeMap;
        serialize_struct(&'static str, usize) -> Self::SerializeStruct;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<u8, NoScalar> {
        Err(LIST)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<u8, NoScalar> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<u8, NoScalar> {
        Err(LIST)
    }
}
