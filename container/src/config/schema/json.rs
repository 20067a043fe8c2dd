//! The schema as a JSON Schema, for editors.

use serde_json::{Map, Value, json};

use super::{KeySchema, Kind, Shape, TABLES};

/// Placeholders may stand in a text, and become numbers, durations and all else. What is behind them is not known here.
const PLACEHOLDER: &str = r"\$\{";
const DURATION: &str = r"^\s*([0-9]+\s*(ms|s|m|h|d)\s*)+$|\$\{";
const DURATION_OR_MILLISECONDS: &str = r"^\s*-?[0-9]+\s*$|^\s*([0-9]+\s*(ms|s|m|h|d)\s*)+$|\$\{";
const SIZE: &str = r"^\s*[0-9]+\s*(B|kB|KB|MB|GB|KiB|kb|MiB|mb|GiB|gb)?\s*$|\$\{";
const CONCURRENCY: &str = r"^(0*[1-9][0-9]*-)?0*[1-9][0-9]*$|\$\{";

/// The JSON Schema (draft 2020-12) of a configuration, for editors of TOML: its tables and keys with what they mean,
/// what they can be, and what holds without them.
///
/// What another layer can bring is not asked for, as the file of a profile need not say all. What names
/// something that must exist is a text here, and what depends on another key is not checked.
#[must_use]
pub fn json_schema() -> Value {
    let tables: Map<String, Value> =
        TABLES.iter().map(|table| (table.name.to_owned(), of_table(table))).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The configuration of a Corriere application",
        "type": "object",
        "properties": tables,
        "additionalProperties": false,
    })
}

fn of_table(table: &super::TableSchema) -> Value {
    let mut keys = of_keys(table.keys);
    keys.insert("additionalProperties".to_owned(), json!(table.shape == Shape::Open));
    match table.shape {
        Shape::Single => {
            keys.insert("description".to_owned(), json!(table.meaning));
            Value::Object(keys)
        }
        Shape::Named | Shape::Open => {
            json!({ "type": "object", "description": table.meaning, "additionalProperties": keys })
        }
    }
}

fn of_keys(keys: &[KeySchema]) -> Map<String, Value> {
    let properties: Map<String, Value> =
        keys.iter().map(|key| (key.name.to_owned(), Value::Object(of_key(key)))).collect();
    let mut object = Map::new();
    object.insert("type".to_owned(), json!("object"));
    object.insert("properties".to_owned(), Value::Object(properties));
    object.insert("additionalProperties".to_owned(), json!(false));
    object
}

fn of_key(key: &KeySchema) -> Map<String, Value> {
    let mut object = of_kind(key.kind);
    object.insert("description".to_owned(), json!(description(key)));
    // What is written in TOML here is JSON as well: a test sees to it.
    if let Some(default) = key.default.and_then(|toml| serde_json::from_str(toml).ok()) {
        object.insert("default".to_owned(), default);
    }
    object
}

fn description(key: &KeySchema) -> String {
    let mut text = match key.kind {
        Kind::WithoutEffect(reason) => format!("Accepted and without effect: {reason}"),
        _ => key.meaning.to_owned(),
    };
    if let Some(activemq) = key.activemq {
        text.push_str(&format!("\n\nWith the preset `activemq`: `{activemq}`"));
    }
    if let Some(answers) = key.answers {
        text.push_str(&format!("\n\nElsewhere: {answers}"));
    }
    text
}

fn of_kind(kind: Kind) -> Map<String, Value> {
    let value = match kind {
        Kind::Text(_) | Kind::Name(_) => json!({ "type": "string" }),
        Kind::Boolean => json!({ "type": ["boolean", "string"], "pattern": PLACEHOLDER }),
        Kind::Number { least, most } => bounded("integer", json!(least), Some(json!(most)), PLACEHOLDER),
        Kind::Factor => bounded("number", json!(1), None, PLACEHOLDER),
        Kind::Duration { .. } => json!({ "type": "string", "pattern": DURATION }),
        Kind::DurationOrMilliseconds { least } => {
            bounded("integer", json!(least), None, DURATION_OR_MILLISECONDS)
        }
        Kind::Size { least, most } => bounded("integer", json!(least), most.map(Value::from), SIZE),
        Kind::Words(words) => {
            json!({ "type": "string", "anyOf": [{ "enum": words }, { "pattern": PLACEHOLDER }] })
        }
        Kind::Concurrency => bounded("integer", json!(1), None, CONCURRENCY),
        Kind::List(_) => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Tables(keys) => json!({ "type": "object", "additionalProperties": of_keys(keys) }),
        Kind::Table(keys) => Value::Object(of_keys(keys)),
        Kind::WithoutEffect(_) => json!({ "deprecated": true }),
    };
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// A number within bounds, or a text.
fn bounded(number: &str, least: Value, most: Option<Value>, pattern: &str) -> Value {
    let mut object = Map::new();
    object.insert("type".to_owned(), json!([number, "string"]));
    object.insert("minimum".to_owned(), least);
    object.extend(most.map(|most| ("maximum".to_owned(), most)));
    object.insert("pattern".to_owned(), json!(pattern));
    Value::Object(object)
}
