//! Reads a bean's settings, and says what is wrong with them without showing a value.
//!
//! Nobody but the bean knows which of its keys is a secret, and serde's own errors quote what they found.

use config::{Map, Value, ValueKind};
use serde::de::value::{MapAccessDeserializer, SeqDeserializer, StringDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, Expected, IntoDeserializer, MapAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

use super::settings_error::SettingsError;
use crate::config::{boolean, hidden_within, list_of};

/// A value of a bean's settings.
pub(super) struct SettingsReader(Value);

impl SettingsReader {
    pub(super) fn new(value: Value) -> Self {
        Self(value)
    }

    /// Reads, and has an error hide what comes from the environment.
    fn read<T>(self, read: impl FnOnce(Value) -> Result<T, SettingsError>) -> Result<T, SettingsError> {
        let hidden = hidden_within(&self.0);
        read(self.0).map_err(|error| match hidden {
            Some(hidden) => error.hiding(hidden),
            None => error,
        })
    }
}

/// A number that may have come as text.
enum Number {
    Signed(i128),
    Unsigned(u128),
    Float(f64),
}

fn number(value: &Value, expected: &dyn Expected) -> Result<Number, SettingsError> {
    let found = match &value.kind {
        ValueKind::I64(number) => Some(Number::Signed((*number).into())),
        ValueKind::U64(number) => Some(Number::Unsigned((*number).into())),
        ValueKind::I128(number) => Some(Number::Signed(*number)),
        ValueKind::U128(number) => Some(Number::Unsigned(*number)),
        ValueKind::Float(number) => Some(Number::Float(*number)),
        ValueKind::String(text) => {
            let text = text.trim();
            let signed = text.parse().ok().map(Number::Signed);
            signed
                .or_else(|| text.parse().ok().map(Number::Unsigned))
                .or_else(|| text.parse().ok().map(Number::Float))
        }
        _ => None,
    };
    found.ok_or_else(|| SettingsError::invalid_type(unexpected(value), expected))
}

/// What serde calls the value's kind; what it is does not matter, as it is not shown.
fn unexpected(value: &Value) -> Unexpected<'static> {
    match &value.kind {
        ValueKind::Nil => Unexpected::Unit,
        ValueKind::Boolean(value) => Unexpected::Bool(*value),
        ValueKind::Float(number) => Unexpected::Float(*number),
        ValueKind::String(_) => Unexpected::Str(""),
        ValueKind::Table(_) => Unexpected::Map,
        ValueKind::Array(_) => Unexpected::Seq,
        _ => Unexpected::Signed(0),
    }
}

impl Number {
    /// Tells the visitor, in the smallest kind of number that holds it, as serde's own numbers take no larger one.
    fn visit<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingsError> {
        match self {
            Self::Float(number) => visitor.visit_f64(number),
            Self::Signed(number) => match (i64::try_from(number), u64::try_from(number)) {
                (Ok(number), _) => visitor.visit_i64(number),
                (_, Ok(number)) => visitor.visit_u64(number),
                _ => visitor.visit_i128(number),
            },
            Self::Unsigned(number) => match u64::try_from(number) {
                Ok(number) => visitor.visit_u64(number),
                Err(_) => visitor.visit_u128(number),
            },
        }
    }
}

macro_rules! numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingsError> {
            self.read(|value| number(&value, &visitor)?.visit(visitor))
        }
    )*};
}

macro_rules! texts {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingsError> {
            self.read(|value| match &value.kind {
                ValueKind::Table(_) | ValueKind::Array(_) | ValueKind::Nil => {
                    Err(SettingsError::invalid_type(unexpected(&value), &visitor))
                }
                _ => visitor.visit_string(value.to_string()),
            })
        }
    )*};
}

impl<'de> Deserializer<'de> for SettingsReader {
    type Error = SettingsError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingsError> {
        self.read(|value| match value.kind {
            ValueKind::Nil => visitor.visit_unit(),
            ValueKind::Boolean(value) => visitor.visit_bool(value),
            ValueKind::String(text) => visitor.visit_string(text),
            ValueKind::Array(values) => {
                visitor.visit_seq(SeqDeserializer::new(values.into_iter().map(SettingsReader)))
            }
            ValueKind::Table(table) => visitor.visit_map(TableReader::new(table)),
            _ => number(&value, &visitor)?.visit(visitor),
        })
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingsError> {
        self.read(|value| match boolean(&value) {
            Some(value) => visitor.visit_bool(value),
            None => Err(SettingsError::invalid_type(unexpected(&value), &visitor)),
        })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingsError> {
        match self.0.kind {
            ValueKind::Nil => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, SettingsError> {
        let hidden = hidden_within(&self.0);
        visitor.visit_newtype_struct(self).map_err(|error| match hidden {
            Some(hidden) => error.hiding(hidden),
            None => error,
        })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SettingsError> {
        self.read(|value| match value.kind {
            ValueKind::String(text) => {
                StringDeserializer::new(text).deserialize_enum(name, variants, visitor)
            }
            ValueKind::Table(table) => {
                MapAccessDeserializer::new(TableReader::new(table)).deserialize_enum(name, variants, visitor)
            }
            _ => Err(SettingsError::invalid_type(unexpected(&value), &visitor)),
        })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingsError> {
        // What a variable or a placeholder brings is a text, which stands for a list as it does for the lists of ours.
        self.read(|value| match &value.kind {
            ValueKind::String(text) if hidden_within(&value).is_some() => match list_of(text) {
                Some(items) => visitor.visit_seq(SeqDeserializer::new(
                    items.into_iter().map(|item| Self(Value::new(None, item))),
                )),
                None => Err(SettingsError::invalid_type(unexpected(&value), &visitor)),
            },
            _ => Self(value).deserialize_any(visitor),
        })
    }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64
    }

    texts! { deserialize_char deserialize_str deserialize_string }

    forward_to_deserialize_any! {
        bytes byte_buf unit unit_struct tuple tuple_struct map struct identifier ignored_any
    }
}

impl IntoDeserializer<'_, SettingsError> for SettingsReader {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The entries of a table, whose keys the errors of its values get in front.
struct TableReader {
    entries: <Map<String, Value> as IntoIterator>::IntoIter,
    next: Option<(String, Value)>,
}

impl TableReader {
    fn new(table: Map<String, Value>) -> Self {
        Self { entries: table.into_iter(), next: None }
    }
}

impl<'de> MapAccess<'de> for TableReader {
    type Error = SettingsError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, SettingsError> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        let read = seed.deserialize(StringDeserializer::new(key.clone()))?;
        self.next = Some((key, value));
        Ok(Some(read))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, SettingsError> {
        let Some((key, value)) = self.next.take() else {
            return Err(SettingsError::custom("a value was asked for before its key"));
        };
        seed.deserialize(SettingsReader(value)).map_err(|error| error.at(key))
    }
}
