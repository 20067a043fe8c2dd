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
    let refuse = |expected| {
        Err(MessageError::PropertyType { name: name.to_owned(), found: value.type_name(), expected })
    };
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
