//! The name that serde has for a type: that of the struct or enum, or its `#[serde(rename)]`. Unlike
//! `std::any::type_name` it is stable. It is found without writing or reading anything, as the first call that a
//! type makes to a format tells it.

use std::cell::Cell;
use std::fmt::Display;

use serde::de::{self, Deserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde::ser::{Impossible, Serialize, Serializer};

type Stop = de::value::Error;

/// The name of the type of `value`; `None` for what has none, such as a number or a list.
pub(super) fn name_of<T: Serialize + ?Sized>(value: &T) -> Option<&'static str> {
    let name = Cell::new(None);
    // The probe fails as soon as it knows, which is what makes this cheap.
    let _ = value.serialize(Probe(&name));
    name.get()
}

/// The name that a type asks a deserializer for; `None` where it has none. `visit` is called with a deserializer that
/// always fails.
pub(super) fn name_asked_for(visit: impl FnOnce(Probe<'_>)) -> Option<&'static str> {
    let name = Cell::new(None);
    visit(Probe(&name));
    name.get()
}

/// A format that notes the name of the first type that it meets.
#[derive(Clone, Copy)]
pub(super) struct Probe<'a>(&'a Cell<Option<&'static str>>);

impl Probe<'_> {
    fn found<T>(self, name: &'static str) -> Result<T, Stop> {
        self.0.set(Some(name));
        Err(stop())
    }
}

fn stop() -> Stop {
    de::Error::custom("only the name of the type was asked for")
}

macro_rules! nameless {
    ($($method:ident($($argument:ident: $type:ty),*) -> $ok:ty;)*) => {$(
        fn $method(self, $($argument: $type),*) -> Result<$ok, Stop> {
            $(let _ = $argument;)*
            Err(stop())
        }
    )*};
}

impl Serializer for Probe<'_> {
    type Ok = ();
    type Error = Stop;
    type SerializeSeq = Impossible<(), Stop>;
    type SerializeTuple = Impossible<(), Stop>;
    type SerializeTupleStruct = Impossible<(), Stop>;
    type SerializeTupleVariant = Impossible<(), Stop>;
    type SerializeMap = Impossible<(), Stop>;
    type SerializeStruct = Impossible<(), Stop>;
    type SerializeStructVariant = Impossible<(), Stop>;

    nameless! {
        serialize_bool(_v: bool) -> ();
        serialize_i8(_v: i8) -> ();
        serialize_i16(_v: i16) -> ();
        serialize_i32(_v: i32) -> ();
        serialize_i64(_v: i64) -> ();
        serialize_i128(_v: i128) -> ();
        serialize_u8(_v: u8) -> ();
        serialize_u16(_v: u16) -> ();
        serialize_u32(_v: u32) -> ();
        serialize_u64(_v: u64) -> ();
        serialize_u128(_v: u128) -> ();
        serialize_f32(_v: f32) -> ();
        serialize_f64(_v: f64) -> ();
        serialize_char(_v: char) -> ();
        serialize_str(_v: &str) -> ();
        serialize_bytes(_v: &[u8]) -> ();
        serialize_none() -> ();
        serialize_unit() -> ();
        serialize_seq(_len: Option<usize>) -> Self::SerializeSeq;
        serialize_tuple(_len: usize) -> Self::SerializeTuple;
        serialize_map(_len: Option<usize>) -> Self::SerializeMap;
    }

    fn collect_str<T: Display + ?Sized>(self, _value: &T) -> Result<(), Stop> {
        Err(stop())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Stop> {
        value.serialize(self)
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<(), Stop> {
        self.found(name)
    }

    fn serialize_unit_variant(self, name: &'static str, _: u32, _: &'static str) -> Result<(), Stop> {
        self.found(name)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, _: &T) -> Result<(), Stop> {
        self.found(name)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Stop> {
        self.found(name)
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Stop> {
        self.found(name)
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Stop> {
        self.found(name)
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Self::SerializeStruct, Stop> {
        self.found(name)
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Stop> {
        self.found(name)
    }
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Stop;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Stop> {
        Err(stop())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_some(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, name: &'static str, _: V) -> Result<V::Value, Stop> {
        self.found(name)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, _: V) -> Result<V::Value, Stop> {
        self.found(name)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: usize,
        _: V,
    ) -> Result<V::Value, Stop> {
        self.found(name)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Stop> {
        self.found(name)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Stop> {
        self.found(name)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit seq tuple map
        identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Serialize, Deserialize)]
    #[serde(rename = "shop.Order")]
    struct Order {
        id: u64,
    }

    #[derive(Serialize, Deserialize)]
    enum Event {
        Shipped(u8),
        Lost,
    }

    fn asked_by<T: for<'de> Deserialize<'de>>() -> Option<&'static str> {
        name_asked_for(|probe| drop(T::deserialize(probe)))
    }

    #[test]
    fn both_directions_tell_the_same_name() {
        assert_eq!(name_of(&Order { id: 1 }), Some("shop.Order"));
        assert_eq!(asked_by::<Order>(), Some("shop.Order"));
        assert_eq!(name_of(&Some(&Event::Shipped(1))), Some("Event"));
        assert_eq!(name_of(&Event::Lost), Some("Event"));
        assert_eq!(asked_by::<Option<Event>>(), Some("Event"));
        assert_eq!(name_of(&[1, 2]), None);
        assert_eq!(asked_by::<Vec<u8>>(), None);
    }
}
