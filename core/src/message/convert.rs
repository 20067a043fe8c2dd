//! The conversion table (Jakarta Messaging 3.1, sections 3.5.4 and 3.11.3).

use std::fmt::LowerExp;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;

use super::{MessageError, Value};

/// A type that a [`Value`] can be read as.
///
/// | stored as | can be read as |
/// | --- | --- |
/// | `boolean` | `bool`, `String` |
/// | `byte` | `i8`, `i16`, `i32`, `i64`, `String` |
/// | `short` | `i16`, `i32`, `i64`, `String` |
/// | `char` | `char`, `String` |
/// | `int` | `i32`, `i64`, `String` |
/// | `long` | `i64`, `String` |
/// | `float` | `f32`, `f64`, `String` |
/// | `double` | `f64`, `String` |
/// | `String` | `String`, `bool` (true for `true` in any case, else false), and every number that it can be parsed as |
/// | `byte[]` | [`Bytes`], `Vec<u8>` |
///
/// Anything else is a format error; nothing is ever rounded or cut. `Arc<str>` reads as `String` does, [`Value`] takes
/// whatever is there, and `Option<T>` takes null as `None`. Text is made of numbers as Java makes it (`1.0`, `1.0E10`).
#[diagnostic::on_unimplemented(
    message = "a message's value cannot be read as `{Self}`",
    note = "values are read as bool, i8, i16, i32, i64, f32, f64, char, String, Arc<str>, Bytes, Vec<u8>, Value or an Option of these"
)]
pub trait FromValue: Sized {
    /// Reads `value` as this type.
    ///
    /// # Errors
    /// [`MessageError::Format`] where the table allows no conversion, [`MessageError::Number`] for text that is no such
    /// number.
    fn from_value(value: &Value) -> Result<Self, MessageError>;
}

/// Reads what is stored under a name. Null reads as absent, except by the types that can say null themselves.
pub(super) fn read_named<T: FromValue>(
    value: Option<&Value>,
    kind: &str,
    name: &str,
) -> Result<Option<T>, MessageError> {
    match value {
        None => Ok(None),
        Some(Value::Null) => Ok(T::from_value(&Value::Null).ok()),
        Some(value) => {
            T::from_value(value).map(Some).map_err(|error| error.at(|| format!("{kind} `{name}`")))
        }
    }
}

impl FromValue for Value {
    fn from_value(value: &Value) -> Result<Self, MessageError> {
        Ok(value.clone())
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Result<Self, MessageError> {
        match value {
            Value::Null => Ok(None),
            value => T::from_value(value).map(Some),
        }
    }
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Result<Self, MessageError> {
        match value {
            Value::Boolean(value) => Ok(*value),
            Value::String(text) => Ok(text.eq_ignore_ascii_case("true")),
            other => Err(MessageError::conversion(other, "boolean")),
        }
    }
}

macro_rules! number_from_value {
    ($($type:ty as $name:literal from $($kind:ident),+ or $parse:ident;)*) => {$(
        impl FromValue for $type {
            fn from_value(value: &Value) -> Result<Self, MessageError> {
                match value {
                    $(Value::$kind(value) => Ok(Self::from(*value)),)+
                    Value::String(text) => $parse(text).ok_or_else(|| MessageError::number(text, $name)),
                    other => Err(MessageError::conversion(other, $name)),
                }
            }
        }
    )*};
}

number_from_value! {
    i8 as "byte" from Byte or parse_integer;
    i16 as "short" from Byte, Short or parse_integer;
    i32 as "int" from Byte, Short, Int or parse_integer;
    i64 as "long" from Byte, Short, Int, Long or parse_integer;
    f32 as "float" from Float or parse_float;
    f64 as "double" from Float, Double or parse_float;
}

impl FromValue for char {
    fn from_value(value: &Value) -> Result<Self, MessageError> {
        let character = match value {
            Value::Char(unit) => Self::from_u32((*unit).into()),
            // What `Value::from(char)` makes of one that has no room in a UTF-16 unit. No `char` of Java looks so.
            Value::String(text) => {
                let mut characters = text.chars();
                characters.next().filter(|first| first.len_utf16() == 2 && characters.next().is_none())
            }
            _ => None,
        };
        character.ok_or_else(|| MessageError::conversion(value, "char"))
    }
}

impl FromValue for Arc<str> {
    fn from_value(value: &Value) -> Result<Self, MessageError> {
        match value {
            Value::String(text) => Ok(Self::clone(text)),
            other => String::from_value(other).map(Into::into),
        }
    }
}

impl FromValue for String {
    fn from_value(value: &Value) -> Result<Self, MessageError> {
        match value {
            Value::Boolean(value) => Ok(value.to_string()),
            Value::Byte(value) => Ok(value.to_string()),
            Value::Short(value) => Ok(value.to_string()),
            Value::Char(_) => char::from_value(value).map(Into::into),
            Value::Int(value) => Ok(value.to_string()),
            Value::Long(value) => Ok(value.to_string()),
            Value::Float(value) => Ok(float_text(*value, (*value).into())),
            Value::Double(value) => Ok(float_text(*value, *value)),
            Value::String(text) => Ok((**text).to_owned()),
            Value::Null | Value::Bytes(_) => Err(MessageError::conversion(value, "String")),
        }
    }
}

impl FromValue for Bytes {
    fn from_value(value: &Value) -> Result<Self, MessageError> {
        match value {
            Value::Bytes(bytes) => Ok(bytes.clone()),
            other => Err(MessageError::conversion(other, "byte[]")),
        }
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: &Value) -> Result<Self, MessageError> {
        Bytes::from_value(value).map(Into::into)
    }
}

fn parse_integer<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

/// As `Double.valueOf`: white space around the number is passed over, a number out of range is infinite, and of Rust's
/// words for what is no finite number only Java's own are known.
fn parse_float<T: FromStr>(text: &str) -> Option<T> {
    let text = text.trim();
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_digits = unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    if is_digits || unsigned == "NaN" || unsigned == "Infinity" { text.parse().ok() } else { None }
}

/// As `Double.toString` and `Float.toString`: the fewest digits that tell the number from its neighbours, with at least
/// one behind the point, and with an exponent from 10^7 on and below 10^-3.
fn float_text<T: LowerExp + std::fmt::Debug>(shown: T, value: f64) -> String {
    let magnitude = value.abs();
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() }
    } else if magnitude == 0.0 || (1e-3..1e7).contains(&magnitude) {
        format!("{shown:?}")
    } else {
        let text = format!("{shown:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let fraction = if digits.contains('.') { "" } else { ".0" };
        format!("{digits}{fraction}E{exponent}")
    }
}
