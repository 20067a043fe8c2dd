//! Values as they stand in a configuration, read as what they mean.

use std::time::Duration;

use config::{Value, ValueKind};

use super::secret;
use super::source::printable;

/// A value as an error shows it, to follow "is"; `path` is its key.
pub(super) fn shown(path: &[&str], value: &Value) -> String {
    let is_empty = matches!(&value.kind, ValueKind::String(text) if text.is_empty());
    if let Some(hidden) = secret::hidden(path, value).filter(|_| !is_empty) {
        return hidden;
    }
    match &value.kind {
        ValueKind::Nil => "nothing".to_owned(),
        ValueKind::String(text) => format!("\"{}\"", printable(&secret::without_passwords(text))),
        ValueKind::Table(_) => "a table".to_owned(),
        ValueKind::Array(items) if items.len() <= 3 => {
            let items: Vec<_> = items.iter().map(|item| shown(path, item).replace('`', "")).collect();
            format!("`[{}]`", items.join(", "))
        }
        ValueKind::Array(_) => "a list".to_owned(),
        _ => format!("`{value}`"),
    }
}

pub(crate) fn text(value: &Value) -> Option<String> {
    match &value.kind {
        ValueKind::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// A number, which environment variables and placeholders bring as text.
pub(crate) fn integer(value: &Value) -> Option<i64> {
    match &value.kind {
        ValueKind::I64(number) => Some(*number),
        ValueKind::U64(number) => i64::try_from(*number).ok(),
        ValueKind::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A number of things.
pub(crate) fn count(value: &Value) -> Option<u32> {
    integer(value).and_then(|number| u32::try_from(number).ok())
}

pub(crate) fn number(value: &Value) -> Option<f64> {
    match &value.kind {
        ValueKind::Float(number) => Some(*number),
        ValueKind::String(text) => text.trim().parse().ok(),
        _ => integer(value).and_then(|number| i32::try_from(number).ok()).map(f64::from),
    }
}

pub(crate) fn boolean(value: &Value) -> Option<bool> {
    match &value.kind {
        ValueKind::Boolean(value) => Some(*value),
        ValueKind::String(text) => match text.trim() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

pub(crate) fn texts(value: &Value) -> Option<Vec<String>> {
    match &value.kind {
        ValueKind::Array(values) => values.iter().map(text).collect(),
        _ => None,
    }
}

/// A duration with its units: `20s`, `500ms`, `1h30m`. A bare number is none, as nobody can see its unit.
pub(crate) fn duration(value: &Value) -> Option<Duration> {
    text(value).and_then(|text| parse_duration(&text))
}

/// A size in bytes: `64MiB`, `1GB`, `32mb`, or a whole number.
pub(crate) fn size(value: &Value) -> Option<u64> {
    match &value.kind {
        ValueKind::String(text) => parse_size(text),
        _ => integer(value).and_then(|number| u64::try_from(number).ok()),
    }
}

fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (amount, unit, behind) = amount_and_unit(rest)?;
        let unit = match unit {
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" => Duration::from_mins(1),
            "h" => Duration::from_hours(1),
            "d" => Duration::from_hours(24),
            _ => return None,
        };
        total = total.checked_add(unit.checked_mul(u32::try_from(amount).ok()?)?)?;
        rest = behind.trim_start();
    }
    Some(total)
}

fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Ok(bytes) = text.parse() {
        return Some(bytes);
    }
    let (amount, unit, behind) = amount_and_unit(text)?;
    let unit: u64 = match unit {
        "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        // In small letters they are ActiveMQ's, whose units are those of memory.
        "KiB" | "kb" => 1 << 10,
        "MiB" | "mb" => 1 << 20,
        "GiB" | "gb" => 1 << 30,
        _ => return None,
    };
    behind.is_empty().then_some(amount)?.checked_mul(unit)
}

/// Splits `20s rest` into 20, `s` and the rest.
fn amount_and_unit(text: &str) -> Option<(u64, &str, &str)> {
    let digits = text.find(|character: char| !character.is_ascii_digit())?;
    let amount = text[..digits].parse().ok()?;
    let behind = text[digits..].trim_start();
    let letters = behind.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(behind.len());
    Some((amount, &behind[..letters], &behind[letters..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, milliseconds) in
            [("20s", 20_000), ("500ms", 500), ("2m", 120_000), ("1h30m", 5_400_000), ("0s", 0)]
        {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", " ", "20", "-5s", "s", "5 parsecs", "1.5s", "5s!", "99999999999999999999s"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_have_units_or_are_bytes() {
        for (text, bytes) in
            [("64MiB", 64 << 20), ("1 GB", 1_000_000_000), ("512", 512), ("0B", 0), ("32mb", 32 << 20)]
        {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for text in ["", "-1", "64 MiBs", "64Mi", "99999999999GiB", "1GB 2"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }
}
