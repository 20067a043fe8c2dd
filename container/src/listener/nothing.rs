//! Tells `()` and `None` from values, for any type that can be serialized.

use std::fmt::{self, Display};

use serde::Serialize;
use serde::ser::{Error, Impossible, Serializer};

/// Whether `value` is `()` or `None`.
///
/// The trait that makes replies of all serializable types takes in `()` and `Option<T>`, and cannot except them; so the
/// value is asked how it would begin to serialize. Nothing is serialized beyond that beginning.
pub(super) fn is_nothing<T: Serialize + ?Sized>(value: &T) -> bool {
    value.serialize(Beginning).is_ok()
}

/// `Ok` for nothing, `Err` for anything else.
struct Beginning;

#[derive(Debug)]
struct Something;

impl Display for Something {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
}

impl std::error::Error for Something {}

impl Error for Something {
    fn custom<T: Display>(_: T) -> Self {
        Self
    }
}

macro_rules! something {
    ($($method:ident($($type:ty),*) -> $ok:ty;)*) => {$(
        fn $method(self, $(_: $type),*) -> Result<$ok, Something> {
            Err(Something)
        }
    )*};
}

impl Serializer for Beginning {
    type Ok = ();
    type Error = Something;
    type SerializeSeq = Impossible<(), Something>;
    type SerializeTuple = Impossible<(), Something>;
    type SerializeTupleStruct = Impossible<(), Something>;
    type SerializeTupleVariant = Impossible<(), Something>;
    type SerializeMap = Impossible<(), Something>;
    type SerializeStruct = Impossible<(), Something>;
    type SerializeStructVariant = Impossible<(), Something>;

    fn serialize_unit(self) -> Result<(), Something> {
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Something> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<(), Something> {
        Err(Something)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: &T,
    ) -> Result<(), Something> {
        Err(Something)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Something> {
        Err(Something)
    }

    fn collect_str<T: Display + ?Sized>(self, _: &T) -> Result<(), Something> {
        Err(Something)
    }

    something! {
        serialize_bool(bool) -> ();
        serialize_i8(i8) -> ();
        serialize_i16(i16) -> ();
        serialize_i32(i32) -> ();
        serialize_i64(i64) -> ();
        serialize_i128(i128) -> ();
        serialize_u8(u8) -> ();
        serialize_u16(u16) -> ();
        serialize_u32(u32) -> ();
        serialize_u64(u64) -> ();
        serialize_u128(u128) -> ();
        serialize_f32(f32) -> ();
        serialize_f64(f64) -> ();
        serialize_char(char) -> ();
        serialize_str(&str) -> ();
        serialize_bytes(&[u8]) -> ();
        serialize_unit_struct(&'static str) -> ();
        serialize_unit_variant(&'static str, u32, &'static str) -> ();
        serialize_seq(Option<usize>) -> Self::SerializeSeq;
        serialize_tuple(usize) -> Self::SerializeTuple;
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_map(Option<usize>) -> Self::SerializeMap;
        serialize_struct(&'static str, usize) -> Self::SerializeStruct;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unit_and_none_are_nothing() {
        assert!(is_nothing(&()));
        assert!(is_nothing(&None::<u8>));
        assert!(!is_nothing(&Some(())));
        assert!(!is_nothing(&0));
        assert!(!is_nothing(""));
        assert!(!is_nothing(&Vec::<u8>::new()));
        assert!(!is_nothing(&[(1, 2)].into_iter().collect::<std::collections::BTreeMap<_, _>>()));
    }
}
