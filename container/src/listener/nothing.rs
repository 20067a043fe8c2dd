//! Tells `()` and `None` from values, and a `Result` from both, for any type that can be serialized.

use std::fmt::{self, Display};

use serde::Serialize;
use serde::ser::{Error, Impossible, Serializer};

/// What a value is to a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `()` or `None`.
    Nothing,
    /// A `Result` that was taken for a value.
    Result,
    /// Anything else.
    Value,
}

/// What `value` is to a reply.
///
/// The trait that makes replies of all serializable types takes in `()`, `Option<T>` and `Result<T, E>`, and cannot except
/// them; so the value is asked how it would begin to serialize. Nothing is serialized beyond that beginning.
pub(super) fn kind_of<T: Serialize + ?Sized>(value: &T) -> Kind {
    match value.serialize(Beginning) {
        Ok(()) => Kind::Nothing,
        Err(Something::Result) => Kind::Result,
        Err(Something::Value) => Kind::Value,
    }
}

/// `Ok` for nothing, `Err` for anything else.
struct Beginning;

#[derive(Debug)]
enum Something {
    Result,
    Value,
}

impl Display for Something {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Result => "a result",
            Self::Value => "a value",
        })
    }
}

impl std::error::Error for Something {}

impl Error for Something {
    fn custom<T: Display>(_: T) -> Self {
        Self::Value
    }
}

macro_rules! something {
    ($($method:ident($($type:ty),*) -> $ok:ty;)*) => {$(
        fn $method(self, $(_: $type),*) -> Result<$ok, Something> {
            Err(Something::Value)
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
        Err(Something::Value)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: &T,
    ) -> Result<(), Something> {
        Err(Something::Value)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: &T,
    ) -> Result<(), Something> {
        match (name, variant) {
            // How serde begins a `Result`.
            ("Result", "Ok" | "Err") => Err(Something::Result),
            _ => Err(Something::Value),
        }
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
    fn only_unit_and_none_are_nothing_and_a_result_is_no_value() {
        assert_eq!(kind_of(&()), Kind::Nothing);
        assert_eq!(kind_of(&None::<u8>), Kind::Nothing);
        assert_eq!(kind_of(&Some(())), Kind::Value);
        assert_eq!(kind_of(&0), Kind::Value);
        assert_eq!(kind_of(""), Kind::Value);
        assert_eq!(kind_of(&Vec::<u8>::new()), Kind::Value);
        let map: std::collections::BTreeMap<_, _> = [(1, 2)].into_iter().collect();
        assert_eq!(kind_of(&map), Kind::Value);
        assert_eq!(kind_of(&Ok::<(), String>(())), Kind::Result);
        assert_eq!(kind_of(&Err::<(), _>("no")), Kind::Result);
    }
}
