//! The typed values of properties, map entries and stream items.

use std::sync::Arc;

use bytes::Bytes;

/// A typed value: what a property, an entry of a map body or an item of a stream body holds.
///
/// It is made with `From` and read with [`FromValue`](super::FromValue). Two values are equal when they have the same
/// type and the same bits, so `NaN` equals itself and `-0.0` differs from `0.0`.
///
/// ```
/// # use corriere_core::Value;
/// assert_eq!(Value::from(12), Value::Int(12));
/// assert_eq!(Value::from("twelve").as_str(), Some("twelve"));
/// assert_eq!(Value::from(None::<bool>), Value::Null);
/// ```
#[derive(Clone, Debug)]
pub enum Value {
    /// No value.
    Null,
    /// `boolean`.
    Boolean(bool),
    /// `byte`.
    Byte(i8),
    /// `short`.
    Short(i16),
    /// `char`, one UTF-16 unit; in maps and streams only.
    Char(u16),
    /// `int`.
    Int(i32),
    /// `long`.
    Long(i64),
    /// `float`.
    Float(f32),
    /// `double`.
    Double(f64),
    /// `String`.
    String(Arc<str>),
    /// `byte[]`; in maps and streams only.
    Bytes(Bytes),
}

impl Value {
    /// The specification's name of this value's type, as errors show it: `boolean`, `int`, `byte[]`.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "boolean",
            Self::Byte(_) => "byte",
            Self::Short(_) => "short",
            Self::Char(_) => "char",
            Self::Int(_) => "int",
            Self::Long(_) => "long",
            Self::Float(_) => "float",
            Self::Double(_) => "double",
            Self::String(_) => "String",
            Self::Bytes(_) => "byte[]",
        }
    }

    /// Whether this is [`Value::Null`].
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The text of a [`Value::String`], without conversion and without a copy.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Bytes that this value is taken to hold in memory.
    pub(super) fn size(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::String(text) => text.len(),
                Self::Bytes(bytes) => bytes.len(),
                _ => 0,
            }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Boolean(this), Self::Boolean(that)) => this == that,
            (Self::Byte(this), Self::Byte(that)) => this == that,
            (Self::Short(this), Self::Short(that)) => this == that,
            (Self::Char(this), Self::Char(that)) => this == that,
            (Self::Int(this), Self::Int(that)) => this == that,
            (Self::Long(this), Self::Long(that)) => this == that,
            (Self::Float(this), Self::Float(that)) => this.to_bits() == that.to_bits(),
            (Self::Double(this), Self::Double(that)) => this.to_bits() == that.to_bits(),
            (Self::String(this), Self::String(that)) => this == that,
            (Self::Bytes(this), Self::Bytes(that)) => this == that,
            _ => false,
        }
    }
}

impl Eq for Value {}

macro_rules! value_from {
    ($($type:ty => $kind:ident,)*) => {$(
        impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Self::$kind(value.into())
            }
        }
    )*};
}

value_from! {
    bool => Boolean,
    i8 => Byte,
    i16 => Short,
    i32 => Int,
    i64 => Long,
    f32 => Float,
    f64 => Double,
    &str => String,
    String => String,
    Arc<str> => String,
    Bytes => Bytes,
    Vec<u8> => Bytes,
    &'static [u8] => Bytes,
}

impl From<char> for Value {
    /// A `char` of one UTF-16 unit is a [`Value::Char`]. One beyond U+FFFF fits none and is a [`Value::String`], which
    /// can be read as `char` again.
    fn from(character: char) -> Self {
        u16::try_from(u32::from(character))
            .map_or_else(|_| Self::String(Arc::from(&*character.encode_utf8(&mut [0; 4]))), Self::Char)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C-30.
    #[test]
    fn values_are_equal_when_type_and_bits_are() {
        assert_eq!(Value::Float(f32::NAN), Value::Float(f32::NAN));
        assert_ne!(Value::Double(-0.0), Value::Double(0.0));
        assert_ne!(Value::Int(1), Value::Long(1));
        assert_ne!(Value::Null, Value::from(""));
    }

    #[test]
    fn what_it_is_made_of_decides_its_type() {
        let made = [
            (Value::from(true), "boolean"),
            (Value::from(1_i8), "byte"),
            (Value::from(1_i16), "short"),
            (Value::from('A'), "char"),
            (Value::from(1), "int"),
            (Value::from(1_i64), "long"),
            (Value::from(1.0_f32), "float"),
            (Value::from(1.0), "double"),
            (Value::from("a"), "String"),
            (Value::from("a".to_owned()), "String"),
            (Value::from(Arc::<str>::from("a")), "String"),
            (Value::from(vec![1]), "byte[]"),
            (Value::from(Bytes::new()), "byte[]"),
            (Value::from(Some("a")), "String"),
            (Value::from(None::<i32>), "null"),
        ];
        for (value, expected) in made {
            assert_eq!(value.type_name(), expected);
        }
    }
}
