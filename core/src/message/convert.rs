//! The conversion table (Jakarta Messaging 3.1, sections 3.5.4 and 3.11.3).

use std::fmt::LowerExp;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;

use super::{MessageError, Value};
use crate::text::shown;

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
            T::from_value(value).map(Some).map_err(|error| error.at(|| format!("{kind} `{}`", shown(name))))
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Which types a value can be read as, an `x` for each that it can: the columns of the table below.
    fn readings(value: &Value) -> String {
        fn mark<T: FromValue>(value: &Value) -> char {
            if T::from_value(value).is_ok() { 'x' } else { '.' }
        }
        [
            mark::<bool>(value),
            mark::<i8>(value),
            mark::<i16>(value),
            mark::<char>(value),
            mark::<i32>(value),
            mark::<i64>(value),
            mark::<f32>(value),
            mark::<f64>(value),
            mark::<String>(value),
            mark::<Bytes>(value),
        ]
        .into_iter()
        .collect()
    }

    /// C-30.
    #[test]
    fn every_type_reads_as_the_types_of_the_table_and_no_other() {
        let table = [
            // boolean, byte, short, char, int, long, float, double, String, byte[]
            (Value::Boolean(true), "x.......x."),
            (Value::Byte(1), ".xx.xx..x."),
            (Value::Short(1), "..x.xx..x."),
            (Value::Char(0x41), "...x....x."),
            (Value::Int(1), "....xx..x."),
            (Value::Long(1), ".....x..x."),
            (Value::Float(1.0), "......xxx."),
            (Value::Double(1.0), ".......xx."),
            (Value::from("1"), "xxx.xxxxx."),
            (Value::from(vec![1]), ".........x"),
            (Value::Null, ".........."),
        ];
        for (value, expected) in table {
            assert_eq!(readings(&value), expected, "a {}", value.type_name());
        }
    }

    #[test]
    fn widening_and_text_keep_the_value() {
        assert_eq!(i64::from_value(&Value::Byte(i8::MIN)), Ok(-128));
        assert_eq!(i32::from_value(&Value::Short(i16::MIN)), Ok(-32_768));
        assert_eq!(i64::from_value(&Value::Long(i64::MIN)), Ok(i64::MIN));
        assert_eq!(String::from_value(&Value::Long(i64::MIN)), Ok("-9223372036854775808".into()));
        assert_eq!(String::from_value(&Value::Boolean(false)), Ok("false".into()));
        assert_eq!(f64::from_value(&Value::Float(0.1)), Ok(f64::from(0.1_f32)));
        assert!(f32::from_value(&Value::Float(-0.0)).unwrap().is_sign_negative());
        assert!(f64::from_value(&Value::Float(f32::NAN)).unwrap().is_nan());
    }

    /// C-30.
    #[test]
    fn text_is_a_number_only_as_a_whole_and_within_its_range() {
        let number = |text: &str| i32::from_value(&Value::from(text));
        assert_eq!(number("12"), Ok(12));
        assert_eq!(number("+12"), Ok(12));
        for text in ["12x", "", " 12", "1.5", "2147483648", "0x10", "TRUE"] {
            let refused = Err(MessageError::Number {
                what: "the value".to_owned(),
                text: text.to_owned(),
                expected: "int",
            });
            assert_eq!(number(text), refused);
        }
        assert!(i8::from_value(&Value::from("128")).is_err());
        assert_eq!(i64::from_value(&Value::from("-9223372036854775808")), Ok(i64::MIN));

        let float = |text: &str| f64::from_value(&Value::from(text));
        assert_eq!(float(" -1.5e3 "), Ok(-1_500.0));
        assert_eq!(float("1e400"), Ok(f64::INFINITY), "out of range is infinite, as in Java");
        assert_eq!(float("-Infinity"), Ok(f64::NEG_INFINITY));
        assert!(float("NaN").unwrap().is_nan());
        for text in ["", ".", "inf", "nan", "infinity", "+-1", "1,5", "1e"] {
            assert!(float(text).is_err(), "`{text}` is no float");
        }
    }

    #[test]
    fn text_is_true_only_where_it_says_so() {
        for (text, expected) in
            [("true", true), ("TRUE", true), ("12x", false), ("", false), ("1", false), (" true", false)]
        {
            assert_eq!(bool::from_value(&Value::from(text)), Ok(expected), "`{text}`");
        }
    }

    #[test]
    fn a_char_survives_whatever_its_width_and_half_of_one_is_none() {
        for character in ['A', '\0', '名', '\u{ffff}', '😀'] {
            let value = Value::from(character);
            assert_eq!(char::from_value(&value), Ok(character));
            assert_eq!(String::from_value(&value), Ok(character.to_string()));
        }
        assert!(char::from_value(&Value::Char(0xd83d)).is_err());
        assert!(String::from_value(&Value::Char(0xd83d)).is_err());
        assert!(char::from_value(&Value::from("A")).is_err(), "a String is no char");
        assert!(char::from_value(&Value::from("😀😀")).is_err());
    }

    #[test]
    fn null_is_none_and_no_invented_value() {
        assert_eq!(Option::<i32>::from_value(&Value::Null), Ok(None));
        assert_eq!(Option::<i32>::from_value(&Value::Int(1)), Ok(Some(1)));
        assert_eq!(Value::from_value(&Value::Null), Ok(Value::Null));
        assert!(Option::<i32>::from_value(&Value::Boolean(true)).is_err());
    }

    #[test]
    fn errors_name_the_place_the_type_there_and_the_type_asked_for() {
        let read =
            |value: Value| read_named::<i32>(Some(&value), "property", "count").unwrap_err().to_string();
        assert_eq!(read(Value::Float(1.0)), "property `count` is of type float and cannot be read as int");
        assert_eq!(
            read(Value::from("12x\n")),
            "property `count` is the text `12x\\n`, which is not a number of type int"
        );
    }

    #[test]
    fn floats_are_written_as_java_writes_them() {
        let double = |value: f64| String::from_value(&Value::Double(value)).unwrap();
        let float = |value: f32| String::from_value(&Value::Float(value)).unwrap();
        assert_eq!(double(1.0), "1.0");
        assert_eq!(double(-0.0), "-0.0");
        assert_eq!(double(0.001), "0.001");
        assert_eq!(double(0.000_1), "1.0E-4");
        assert_eq!(double(9_999_999.5), "9999999.5");
        assert_eq!(double(1e7), "1.0E7");
        assert_eq!(double(1.25e300), "1.25E300");
        assert_eq!(double(f64::NAN), "NaN");
        assert_eq!(double(f64::NEG_INFINITY), "-Infinity");
        assert_eq!(float(0.1), "0.1");
        assert_eq!(float(f32::MAX), "3.4028235E38");
    }

    proptest! {
        #[test]
        fn a_number_written_as_text_reads_back_bit_by_bit(long: i64, double: f64, float: f32) {
            let text = |value: Value| Value::from(String::from_value(&value).unwrap());
            prop_assert_eq!(i64::from_value(&text(long.into())), Ok(long));
            prop_assert_eq!(f64::from_value(&text(double.into())).unwrap().to_bits(), double.to_bits());
            prop_assert_eq!(f32::from_value(&text(float.into())).unwrap().to_bits(), float.to_bits());
        }
    }
}
