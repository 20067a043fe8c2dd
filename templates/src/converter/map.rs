//! Structs and maps as map messages.

use std::cell::RefCell;
use std::fmt::Display;

use corriere_core::message::MapBody;
use corriere_core::{Body, Message, Value};
use serde::de::value::Error as ReadError;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde::ser::{self, Impossible, Serialize, SerializeMap, SerializeStruct, Serializer};
use thiserror::Error;

use super::read_value::{ValueDeserializer, read_nothing};
use super::write_value::{NoScalar, to_value};
use super::{ConversionError, MessageConverter, Visit};

/// Writes the fields of a struct, or the entries of a map with text keys, as the typed entries of a map message, and
/// reads them from it.
///
/// A field may be a boolean, a number, a character, text, bytes, an enum without data, or an `Option` of these: `bool` is a
/// `boolean`, `i32` an `int`, `u32` (which Java has not) a `long`, and so on. A struct in a struct, or a list, is refused
/// by the name of its field.
#[derive(Clone, Copy, Debug, Default)]
pub struct MapConverter;

impl MessageConverter for MapConverter {
    fn to_message(&self, value: &dyn erased_serde::Serialize) -> Result<Message, ConversionError> {
        match value.serialize(MapSerializer) {
            Ok(body) => Ok(Message::new(Body::Map(body))),
            Err(NoMap::Field { field, reason }) => Err(ConversionError::Field { field, reason }),
            Err(no_map) => Err(ConversionError::write(format_args!(
                "it is {no_map}; expected a struct or a map with text keys"
            ))),
        }
    }

    fn read(&self, message: &Message, visit: Visit<'_>) -> Result<(), ConversionError> {
        let body = match message.body() {
            Body::Map(body) => body,
            Body::Empty => return read_nothing(message, visit),
            _ => return Err(ConversionError::unexpected_body(message, "a map body")),
        };
        let failed_at = RefCell::new(None);
        visit(&mut <dyn erased_serde::Deserializer<'_>>::erase(MapDeserializer {
            body,
            failed_at: &failed_at,
        }))
        .map_err(|error| ConversionError::read(message, error).at(failed_at.take().unwrap_or_default()))
    }
}

/// Why something cannot be the body of a map message.
#[derive(Clone, Debug, Error)]
enum NoMap {
    #[error("a map entry `{field}` that is {reason}")]
    Field { field: String, reason: String },
    #[error("{0}")]
    Shape(&'static str),
    #[error("{0}")]
    Custom(String),
}

impl ser::Error for NoMap {
    fn custom<T: Display>(message: T) -> Self {
        Self::Custom(message.to_string())
    }
}

struct MapSerializer;

macro_rules! no_map {
    ($($method:ident($($type:ty),*) -> $ok:ty = $shape:literal;)*) => {$(
        fn $method(self, $(_: $type),*) -> Result<$ok, NoMap> {
            Err(NoMap::Shape($shape))
        }
    )*};
}

impl Serializer for MapSerializer {
    type Ok = MapBody;
    type Error = NoMap;
    type SerializeSeq = Impossible<MapBody, NoMap>;
    type SerializeTuple = Impossible<MapBody, NoMap>;
    type SerializeTupleStruct = Impossible<MapBody, NoMap>;
    type SerializeTupleVariant = Impossible<MapBody, NoMap>;
    type SerializeMap = Entries;
    type SerializeStruct = Entries;
    type SerializeStructVariant = Impossible<MapBody, NoMap>;

    no_map! {
        serialize_bool(bool) -> MapBody = "a boolean";
        serialize_i8(i8) -> MapBody = "a number";
        serialize_i16(i16) -> MapBody = "a number";
        serialize_i32(i32) -> MapBody = "a number";
        serialize_i64(i64) -> MapBody = "a number";
        serialize_u8(u8) -> MapBody = "a number";
        serialize_u16(u16) -> MapBody = "a number";
        serialize_u32(u32) -> MapBody = "a number";
        serialize_u64(u64) -> MapBody = "a number";
        serialize_f32(f32) -> MapBody = "a number";
        serialize_f64(f64) -> MapBody = "a number";
        serialize_char(char) -> MapBody = "a character";
        serialize_str(&str) -> MapBody = "text";
        serialize_bytes(&[u8]) -> MapBody = "bytes";
        serialize_none() -> MapBody = "nothing";
        serialize_unit() -> MapBody = "nothing";
        serialize_unit_variant(&'static str, u32, &'static str) -> MapBody = "an enum";
        serialize_seq(Option<usize>) -> Self::SerializeSeq = "a list";
        serialize_tuple(usize) -> Self::SerializeTuple = "a tuple";
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct = "a tuple";
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant = "an enum";
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant = "an enum";
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<MapBody, NoMap> {
        value.serialize(self)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<MapBody, NoMap> {
        Ok(MapBody::new())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<MapBody, NoMap> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<MapBody, NoMap> {
        Err(NoMap::Shape("an enum"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Entries, NoMap> {
        Ok(Entries::default())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Entries, NoMap> {
        Ok(Entries::default())
    }
}

#[derive(Default)]
struct Entries {
    body: MapBody,
    key: Option<String>,
}

impl Entries {
    fn set<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), NoMap> {
        let refused = |reason: String| NoMap::Field { field: name.to_owned(), reason };
        let value = to_value(value).map_err(|found| refused(found.to_string()))?;
        self.body.set(name, value).map_err(|error| refused(error.to_string()))?;
        Ok(())
    }
}

impl SerializeMap for Entries {
    type Ok = MapBody;
    type Error = NoMap;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), NoMap> {
        self.key = match to_value(key) {
            Ok(Value::String(key)) => Some(key.as_ref().to_owned()),
            Ok(_) | Err(NoScalar::Shape(_)) => return Err(NoMap::Shape("a map whose keys are not text")),
            Err(NoScalar::Custom(reason)) => return Err(NoMap::Custom(reason)),
        };
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoMap> {
        let key = self.key.take().ok_or(NoMap::Shape("a map with a value before its key"))?;
        self.set(&key, value)
    }

    fn end(self) -> Result<MapBody, NoMap> {
        Ok(self.body)
    }
}

impl SerializeStruct for Entries {
    type Ok = MapBody;
    type Error = NoMap;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), NoMap> {
        self.set(name, value)
    }

    fn end(self) -> Result<MapBody, NoMap> {
        Ok(self.body)
    }
}

struct MapDeserializer<'a, 'de> {
    body: &'de MapBody,
    failed_at: &'a RefCell<Option<String>>,
}

impl<'de> Deserializer<'de> for MapDeserializer<'_, 'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_map(Reader { entries: self.body.iter(), value: None, failed_at: self.failed_at })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit seq tuple tuple_struct
        map struct enum identifier ignored_any
    }
}

struct Reader<'a, 'de, I> {
    entries: I,
    value: Option<(&'de str, &'de Value)>,
    failed_at: &'a RefCell<Option<String>>,
}

impl<'de, I: Iterator<Item = (&'de str, &'de Value)>> MapAccess<'de> for Reader<'_, 'de, I> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        self.value = self.entries.next();
        let Some((name, _)) = self.value else { return Ok(None) };
        seed.deserialize(serde::de::value::BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, ReadError> {
        let (name, value) =
            self.value.ok_or_else(|| ReadError::custom("a value was asked for before its key"))?;
        seed.deserialize(ValueDeserializer(value)).inspect_err(|_| {
            self.failed_at.replace(Some(name.to_owned()));
        })
    }
}
