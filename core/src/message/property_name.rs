//! Which names a property may have (Jakarta Messaging 3.1, sections 3.5.1, 3.5.9 and 3.8.1.1).

use super::{MessageError, Value, modified_utf8};

/// Words of the selector language, which no property may be named by, in any case.
const RESERVED: [&str; 11] =
    ["NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"];

/// The properties that the specification defines, with their types, as far as an application may set them.
const SETTABLE: [(&str, &str); 4] =
    [("JMSXGroupID", "String"), ("JMSXGroupSeq", "int"), ("JMSXUserID", "String"), ("JMSXAppID", "String")];

/// The others that the specification defines.
const SET_BY_THE_PROVIDER: [&str; 5] =
    ["JMSXDeliveryCount", "JMSXProducerTXID", "JMSXConsumerTXID", "JMSXRcvTimestamp", "JMSXState"];

/// Every name crosses a wire behind a length of 16 bits.
const MAXIMUM_BYTES: usize = 65_535;

/// Checks a name that an application gives to a property.
pub(super) fn check_name(name: &str) -> Result<(), MessageError> {
    name_fault(name).map_or(Ok(()), |reason| Err(MessageError::name(name, reason)))
}

/// Checks that a property of this name may hold this value.
pub(super) fn check_value(name: &str, value: &Value) -> Result<(), MessageError> {
    let refuse = |expected| Err(MessageError::property_type(name, value, expected));
    if let Some((_, expected)) = SETTABLE.iter().find(|(known, _)| *known == name) {
        return if value.type_name() == *expected { Ok(()) } else { refuse(expected) };
    }
    match value {
        Value::Char(_) | Value::Bytes(_) => {
            refuse("boolean, byte, short, int, long, float, double or String")
        }
        _ => Ok(()),
    }
}

fn name_fault(name: &str) -> Option<&'static str> {
    let mut characters = name.chars();
    let Some(first) = characters.next() else {
        return Some("it is empty");
    };
    if !is_identifier_start(first) {
        return Some("it must begin with a letter, `_` or `$`");
    }
    if !characters.all(is_identifier_part) {
        return Some("after its first character it may hold letters, digits, `_` and `$` only");
    }
    if RESERVED.iter().any(|word| word.eq_ignore_ascii_case(name)) {
        return Some("it is a word of the selector language");
    }
    if SET_BY_THE_PROVIDER.contains(&name) {
        return Some("this property is set by the provider");
    }
    if name.starts_with("JMS") && !SETTABLE.iter().any(|(known, _)| *known == name) {
        return Some(
            "names that begin with JMS are reserved; an application may set JMSXGroupID, JMSXGroupSeq, JMSXUserID and JMSXAppID",
        );
    }
    if modified_utf8::encoded_len(name) > MAXIMUM_BYTES {
        return Some("it is longer than 65,535 bytes");
    }
    None
}

/// As `Character.isJavaIdentifierStart`.
fn is_identifier_start(character: char) -> bool {
    character == '_' || character == '$' || character.is_alphabetic() || is_currency(character)
}

/// As `Character.isJavaIdentifierPart`.
fn is_identifier_part(character: char) -> bool {
    is_identifier_start(character) || character.is_numeric() || is_combining(character)
}

fn is_currency(character: char) -> bool {
    matches!(character, '\u{a2}'..='\u{a5}' | '\u{20a0}'..='\u{20c0}')
}

/// The blocks of combining marks that belong to no single script, so that decomposed letters are letters too.
fn is_combining(character: char) -> bool {
    matches!(
        character,
        '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
            | '\u{3099}' | '\u{309a}' | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C-29, the strict mode.
    #[test]
    fn a_name_that_no_selector_could_say_is_refused_when_it_is_set() {
        for name in ["ok_1", "_a", "$b", "日本", "Ü", "U\u{308}", "preis_€", "nullable", "jmsx", "_JMS"]
        {
            assert_eq!(check_name(name), Ok(()), "`{name}`");
        }
        for name in [
            "",
            "sentry-trace",
            "X.Y",
            "1a",
            "a b",
            " a",
            "a\0",
            "€-",
            "\u{308}U",
            "NULL",
            "true",
            "between",
            "Escape",
            "iS",
        ] {
            assert!(matches!(check_name(name), Err(MessageError::Name { .. })), "`{name}`");
        }
    }

    /// C-29.
    #[test]
    fn a_name_too_long_for_the_wire_is_refused_and_not_shown_whole() {
        assert_eq!(check_name(&"a".repeat(65_535)), Ok(()));
        let error = check_name(&"a".repeat(70_000)).unwrap_err().to_string();
        assert!(error.contains("longer than 65,535 bytes") && error.len() < 300, "{error}");
    }

    /// C-29.
    #[test]
    fn reserved_names_are_refused_and_the_known_ones_keep_their_types() {
        for name in
            ["JMSFoo", "JMS", "JMSXFoo", "JMS_vendor", "JMSPriority", "JMSXDeliveryCount", "JMSXState"]
        {
            assert!(matches!(check_name(name), Err(MessageError::Name { .. })), "`{name}`");
        }
        assert_eq!(check_name("JMSXGroupID"), Ok(()));
        assert_eq!(check_value("JMSXGroupID", &Value::from("red")), Ok(()));
        assert_eq!(check_value("JMSXGroupSeq", &Value::Int(1)), Ok(()));
        let error = check_value("JMSXGroupID", &Value::Int(1)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "property `JMSXGroupID` cannot hold a value of type int; expected String"
        );
        assert!(check_value("JMSXGroupSeq", &Value::Long(1)).is_err());
        assert!(check_value("JMSXUserID", &Value::Null).is_err());
    }

    /// C-30.
    #[test]
    fn bytes_and_chars_are_no_properties_and_null_is_one() {
        assert!(matches!(
            check_value("a", &Value::from(vec![1])),
            Err(MessageError::PropertyType { found: "byte[]", .. })
        ));
        assert!(check_value("a", &Value::Char(0x41)).is_err());
        assert_eq!(check_value("a", &Value::Null), Ok(()));
    }
}
