//! What is wrong with a bean's settings.

use std::fmt;

use serde::de::{Error, Expected, Unexpected};

use super::BeanBuildError;
use crate::nearest::nearest;

/// What is wrong with a bean's settings, and at which key.
#[derive(Debug)]
pub(super) struct SettingsError {
    /// Innermost first.
    path: Vec<String>,
    fault: Fault,
}

#[derive(Debug)]
enum Fault {
    /// A value that is not what it should be.
    Value { found: String, expected: String },
    /// Something about keys.
    Keys(String),
    /// A key that must be there.
    Missing(&'static str),
    /// A key that is not known, and those that are.
    Unknown(String, &'static [&'static str]),
    /// What the type's own code says, which may quote the value.
    Told(String),
}

impl SettingsError {
    /// The same within the table or list at this key.
    pub(super) fn at(mut self, key: String) -> Self {
        self.path.push(key);
        self
    }

    /// The same without anything that could be the value, as that comes from the environment.
    pub(super) fn hiding(mut self, hidden: String) -> Self {
        match &mut self.fault {
            Fault::Value { found, .. } if self.path.is_empty() => *found = hidden,
            Fault::Told(_) => {
                let expected = "something else, which cannot be shown, as it could show the value".to_owned();
                self.fault = Fault::Value { found: hidden, expected };
            }
            Fault::Value { .. } | Fault::Keys(_) | Fault::Missing(_) | Fault::Unknown(..) => {}
        }
        self
    }

    fn new(fault: Fault) -> Self {
        Self { path: Vec::new(), fault }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path: Vec<_> = self.path.iter().rev().map(String::as_str).collect();
        let key = (!path.is_empty()).then(|| format!("`{}`", path.join(".")));
        match (&self.fault, key) {
            (Fault::Value { found, expected }, Some(key)) => {
                write!(f, "{key} is {found}; expected {expected}")
            }
            (Fault::Value { found, expected }, None) => write!(f, "it is {found}; expected {expected}"),
            (Fault::Missing(field), Some(key)) => write!(f, "{key}: the key `{field}` is missing"),
            (Fault::Missing(field), None) => write!(f, "the key `{field}` is missing"),
            (Fault::Unknown(field, known), key) => {
                if let Some(key) = key {
                    write!(f, "{key}: ")?;
                }
                write!(f, "the key `{field}` is not known")?;
                if let Some(nearest) = nearest(field, known.iter().copied()) {
                    write!(f, "; did you mean `{nearest}`?")?;
                }
                write!(f, "; expected {}", one_of(known))
            }
            (Fault::Keys(text) | Fault::Told(text), Some(key)) => write!(f, "{key}: {text}"),
            (Fault::Keys(text) | Fault::Told(text), None) => f.write_str(text),
        }
    }
}

impl std::error::Error for SettingsError {}

impl From<SettingsError> for BeanBuildError {
    fn from(error: SettingsError) -> Self {
        let reason = error.to_string();
        let mut path: Vec<_> = error.path.into_iter().rev().collect();
        match error.fault {
            Fault::Unknown(field, _) => {
                path.push(field);
                Self::UnknownSetting { path, reason }
            }
            Fault::Missing(field) => Self::MissingSetting { path, field, reason },
            Fault::Value { .. } | Fault::Keys(_) | Fault::Told(_) => Self::Settings { path, reason },
        }
    }
}

impl Error for SettingsError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Fault::Told(message.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(Fault::Value { found: kind(found).to_owned(), expected: words(expected) })
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = format!("{} that does not fit", kind(found));
        Self::new(Fault::Value { found, expected: words(expected) })
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self::new(Fault::Value { found: format!("of length {length}"), expected: expected.to_string() })
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let nearest = nearest(variant, expected.iter().copied());
        let suggestion = nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
        Self::new(Fault::Value {
            found: "none of those that there are".to_owned(),
            expected: one_of(expected) + &suggestion,
        })
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(Fault::Unknown(field.to_owned(), expected))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(Fault::Missing(field))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new(Fault::Keys(format!("the key `{field}` stands there twice")))
    }
}

/// What serde expects, in words for who does not know Rust's types.
fn words(expected: &dyn Expected) -> String {
    let expected = expected.to_string();
    match expected.as_str() {
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => format!("a whole number, 0 or more ({expected})"),
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => format!("a whole number ({expected})"),
        "f32" | "f64" => format!("a number ({expected})"),
        "a string" => "a text".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        _ => expected,
    }
}

fn one_of(names: &[&str]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or "),
    }
}

fn kind(found: Unexpected<'_>) -> &'static str {
    match found {
        Unexpected::Bool(_) => "true or false",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "a whole number",
        Unexpected::Float(_) => "a number",
        Unexpected::Char(_) | Unexpected::Str(_) => "a text",
        Unexpected::Bytes(_) => "bytes",
        Unexpected::Unit | Unexpected::Option => "nothing",
        Unexpected::Seq => "a list",
        Unexpected::Map => "a table",
        // Unions of these, and what a type's own code calls it.
        _ => "something else",
    }
}
