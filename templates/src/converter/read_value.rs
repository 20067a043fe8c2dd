//! Typed values of a message on their way into scalars.

use std::str::FromStr;

use corriere_core::{Message, Value};
use serde::de::value::{Error, SeqDeserializer, StrDeserializer};
use serde::de::{Deserializer, Error as _, Unexpected, Visitor};

use super::{ConversionError, Visit};

/// Calls `visit` with the one value that a message holds.
pub(super) fn read_value(message: &Message, value: &Value, visit: Visit<'_>) -> Result<(), ConversionError> {
    visit(&mut <dyn erased_serde::Deserializer<'_>>::erase(ValueDeserializer(value)))
        .map_err(|error| ConversionError::read(message, error))
}

/// Calls `visit` for a message without a body.
pub(super) fn read_nothing(message: &Message, visit: Visit<'_>) -> Result<(), ConversionError> {
    read_value(message, &Value::Null, visit)
}

/// Reads a typed value as what is asked for, by the conversion table of section 3.5.4 of the specification: text
/// gives a number or boolean, any scalar gives text, and bytes give nothing but bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueDeserializer<'de>(pub(super) &'de Value);

impl<'de> ValueDeserializer<'de> {
    /// What text says as a number or boolean.
    fn parsed<T: FromStr>(self, expected: &str) -> Result<Option<T>, Error> {
        let Some(text) = self.0.as_str() else { return Ok(None) };
        match text.trim().parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(Error::custom(format_args!("`{text}` is not {expected}"))),
        }
    }

    fn integer<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.parsed::<i128>("an integer")? {
            None => self.deserialize_any(visitor),
            // The visitors of integers check the range of what they are given, but few of them take an `i128`.
            Some(number) => match (i64::try_from(number), u64::try_from(number)) {
                (Ok(number), _) => visitor.visit_i64(number),
                (_, Ok(number)) => visitor.visit_u64(number),
                _ => visitor.visit_i128(number),
            },
        }
    }

    fn float<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.parsed::<f64>("a number")? {
            None => self.deserialize_any(visitor),
            Some(number) => visitor.visit_f64(number),
        }
    }
}

macro_rules! by {
    ($how:ident: $($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.$how(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for ValueDeserializer<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => {
                Err(Error::custom(format_args!("nothing is there, which only an `Option` or `()` can take")))
            }
            Value::Boolean(value) => visitor.visit_bool(*value),
            Value::Byte(value) => visitor.visit_i8(*value),
            Value::Short(value) => visitor.visit_i16(*value),
            Value::Char(unit) => match char::from_u32((*unit).into()) {
                Some(character) => visitor.visit_char(character),
                None => {
                    Err(Error::custom(format_args!("the char {unit:#06x} is one half of a surrogate pair")))
                }
            },
            Value::Int(value) => visitor.visit_i32(*value),
            Value::Long(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f32(*value),
            Value::Double(value) => visitor.visit_f64(*value),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
        }
    }

    by! { integer: deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128 }
    by! { integer: deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 }
    by! { float: deserialize_f32 deserialize_f64 }
    by! { deserialize_string: deserialize_str }
    by! { deserialize_any: deserialize_char deserialize_map deserialize_identifier }
    by! { deserialize_bytes: deserialize_byte_buf }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.parsed::<bool>("`true` or `false`")? {
            None => self.deserialize_any(visitor),
            Some(value) => visitor.visit_bool(value),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Boolean(value) => visitor.visit_string(value.to_string()),
            Value::Byte(value) => visitor.visit_string(value.to_string()),
            Value::Short(value) => visitor.visit_string(value.to_string()),
            Value::Int(value) => visitor.visit_string(value.to_string()),
            Value::Long(value) => visitor.visit_string(value.to_string()),
            Value::Float(value) => visitor.visit_string(value.to_string()),
            Value::Double(value) => visitor.visit_string(value.to_string()),
            // A `String` would take bytes that happen to be UTF-8, which the table does not allow.
            Value::Bytes(bytes) => Err(Error::invalid_type(Unexpected::Bytes(bytes), &visitor)),
            Value::Null | Value::Char(_) | Value::String(_) => self.deserialize_any(visitor),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            // Text is not the bytes of its encoding.
            Value::String(text) => Err(Error::invalid_type(Unexpected::Str(text), &visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Bytes(bytes) => visitor.visit_seq(SeqDeserializer::new(bytes.iter().copied())),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0.as_str() {
            Some(variant) => StrDeserializer::new(variant).deserialize_enum(name, variants, visitor),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }
}
