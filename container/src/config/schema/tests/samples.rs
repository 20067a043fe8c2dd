//! Samples of every kind of value, which the code and the JSON Schema must take, or refuse, alike.

use super::super::{KeySchema, Kind, Shape, TABLES, TableSchema};
use super::accepting::is_accepted;
use crate::config::Document;

/// Values that fit a kind, values that do not, and those of them that an editor cannot tell.
pub(crate) struct Samples {
    pub(crate) right: Vec<String>,
    wrong: Vec<String>,
    wrong_unseen: Vec<String>,
}

fn texts(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

pub(crate) fn samples(kind: Kind) -> Samples {
    let (mut right, mut wrong, mut unseen) = match kind {
        Kind::Text(_) | Kind::Name(_) => (texts(&["\"some-name\""]), texts(&["5", "true", "[]"]), vec![]),
        Kind::Boolean => {
            let right = texts(&["true", "false", "\"${env:NONE:-true}\""]);
            (right, texts(&["1", "\"yes\"", "[]"]), vec![])
        }
        Kind::Number { least, most } => {
            let right = vec![least.to_string(), most.to_string(), format!("\"${{env:NONE:-{least}}}\"")];
            let wrong = vec![(least - 1).to_string(), (most + 1).to_string()];
            (right, [wrong, texts(&["1.5", "\"many\"", "true"])].concat(), vec![])
        }
        Kind::Factor => {
            (texts(&["1", "2.5"]), texts(&["0.5", "-1", "\"twice\""]), texts(&["\"${env:NONE:-0}\""]))
        }
        Kind::Duration { may_be_zero } => {
            let zero = texts(&["\"0s\""]);
            let (right, unseen) = if may_be_zero { (zero, vec![]) } else { (vec![], zero) };
            let right = [right, texts(&["\"20s\"", "\"1h 30m\"", "\"${env:NONE:-5ms}\""])].concat();
            (right, texts(&["20", "\"20\"", "\"5 parsecs\"", "\"-5s\"", "true"]), unseen)
        }
        Kind::DurationOrMilliseconds { least } => {
            let right = vec![least.to_string(), "\"60000\"".to_owned(), "\"40s\"".to_owned()];
            (right, vec![(least - 1).to_string(), "\"soon\"".to_owned(), "true".to_owned()], vec![])
        }
        Kind::Size { least, most } => {
            let bounds = [Some(least), most].into_iter().flatten().map(|bytes| bytes.to_string());
            let beyond = [Some(least - 1), most.map(|most| most + 1)];
            let beyond = beyond.into_iter().flatten().map(|bytes| bytes.to_string()).collect();
            let right = bounds.chain(texts(&["\"1MiB\"", "\"2mb\""])).collect();
            (right, [beyond, texts(&["\"64 MiBs\"", "-1", "true"])].concat(), texts(&["\"0B\""]))
        }
        Kind::Words(words) => {
            let right = words.iter().map(|word| format!("\"{word}\"")).collect();
            (right, texts(&["\"AUTO\"", "3"]), vec![])
        }
        Kind::Concurrency => {
            let wrong =
                texts(&["0", "\"0\"", "\"0-2\"", "\"5-\"", "\"a-b\"", "\" 2 - 4 \"", "1.5", "[2, 8]"]);
            (texts(&["5", "\"5\"", "\"2-8\""]), wrong, texts(&["\"5-2\""]))
        }
        Kind::List(_) => (texts(&["[]", "[\"a\", \"b\"]"]), texts(&["5", "[5]", "\"a\""]), vec![]),
        Kind::Table(_) | Kind::Tables(_) => (vec![], texts(&["5", "\"a\"", "[]"]), vec![]),
        Kind::WithoutEffect(_) => (texts(&["5", "\"a\"", "true"]), vec![], vec![]),
    };
    right.dedup();
    wrong.dedup();
    unseen.dedup();
    Samples { right, wrong, wrong_unseen: unseen }
}

/// A configuration with one key in the table at `path`, and what else is needed there.
pub(crate) fn with_key(table: &TableSchema, inner: Option<&str>, key: &KeySchema, value: &str) -> String {
    // Of the names that a user can choose, one that is a listener's.
    let header = match table.shape {
        Shape::Single => table.name.to_owned(),
        Shape::Named | Shape::Open => format!("{}.on_order", table.name),
    };
    let required = table.keys.iter().filter(|other| other.is_required && other.name != key.name);
    let mut text = format!("[{header}]\n");
    for other in required {
        text.push_str(&format!("{} = \"x\"\n", other.name));
    }
    if let Some(inner) = inner {
        text.push_str(&format!("[{header}.{inner}]\n"));
    }
    // A policy is for something.
    if inner.is_some_and(|inner| inner.starts_with("policies.")) && !matches!(key.name, "queue" | "topic") {
        text.push_str("queue = \"orders.>\"\n");
    }
    if key.name == "store_limit" {
        text.push_str("max_file_length = \"16KiB\"\n");
    }
    text + &format!("{} = {value}\n", key.name)
}

#[test]
fn the_code_and_editors_agree_with_the_schema_on_every_key() {
    let is_read = |text: &str| {
        Document::from_text("config.toml", text).expect("it is TOML").read(&["on_order"]).map(drop)
    };
    let check = |table: &TableSchema, inner: Option<&str>, key: &KeySchema| {
        let Samples { right, wrong, wrong_unseen } = samples(key.kind);
        for value in right {
            let text = with_key(table, inner, key, &value);
            is_read(&text).unwrap_or_else(|error| panic!("{text}{error}"));
            assert!(is_accepted(&text), "an editor refuses: {text}");
        }
        for value in wrong {
            let text = with_key(table, inner, key, &value);
            assert!(is_read(&text).is_err(), "it is read: {text}");
            assert!(!is_accepted(&text), "an editor accepts: {text}");
        }
        for value in wrong_unseen {
            let text = with_key(table, inner, key, &value);
            assert!(is_read(&text).is_err(), "it is read: {text}");
            assert!(is_accepted(&text), "an editor knows better: {text}");
        }
    };
    for table in TABLES {
        for key in table.keys {
            check(table, None, key);
            if let Kind::Table(keys) = key.kind {
                keys.iter().for_each(|inner| check(table, Some(key.name), inner));
            }
            if let Kind::Tables(keys) = key.kind {
                let name = format!("{}.some_name", key.name);
                keys.iter().for_each(|inner| check(table, Some(&name), inner));
            }
        }
    }
}
