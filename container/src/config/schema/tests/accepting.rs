//! Whether a JSON Schema accepts a value: of all that there is, the words that ours uses.

use config::{FileFormat, Format};
use regex_lite::Regex;
use serde_json::Value;

use super::super::json_schema;

/// Whether editors find nothing wrong with a configuration.
pub(super) fn is_accepted(toml: &str) -> bool {
    accepts(&json_schema(), &json(toml))
}

fn json(toml: &str) -> Value {
    let tree = FileFormat::Toml.parse(None, toml).unwrap_or_else(|error| panic!("{toml}: {error}"));
    config::Value::new(None, tree).try_deserialize().expect("TOML without dates is JSON")
}

fn accepts(schema: &Value, value: &Value) -> bool {
    let words = schema.as_object().expect("a schema of ours is an object");
    words.iter().all(|(word, with)| match word.as_str() {
        "$schema" | "title" | "description" | "default" | "deprecated" => true,
        "type" => match with {
            Value::Array(types) => types.iter().any(|name| is_of_type(value, name)),
            name => is_of_type(value, name),
        },
        "enum" => with.as_array().is_some_and(|values| values.contains(value)),
        "anyOf" => with.as_array().is_some_and(|any| any.iter().any(|schema| accepts(schema, value))),
        "pattern" => value.as_str().is_none_or(|text| {
            Regex::new(with.as_str().expect("a pattern is a text")).expect("it is a pattern").is_match(text)
        }),
        "minimum" => value.as_f64().is_none_or(|number| Some(number) >= with.as_f64()),
        "maximum" => value.as_f64().is_none_or(|number| Some(number) <= with.as_f64()),
        "items" => value.as_array().is_none_or(|items| items.iter().all(|item| accepts(with, item))),
        "properties" => value.as_object().is_none_or(|object| {
            object.iter().all(|(key, value)| with.get(key).is_none_or(|schema| accepts(schema, value)))
        }),
        "additionalProperties" => value.as_object().is_none_or(|object| {
            let known = |key: &str| words.get("properties").is_some_and(|known| known.get(key).is_some());
            let mut others = object.iter().filter(|(key, _)| !known(key));
            match with {
                Value::Bool(may_be) => *may_be || others.next().is_none(),
                schema => others.all(|(_, value)| accepts(schema, value)),
            }
        }),
        _ => panic!("`{word}` is not looked at here"),
    })
}

fn is_of_type(value: &Value, name: &Value) -> bool {
    match name.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        _ => panic!("`{name}` is not looked at here"),
    }
}

#[test]
fn every_configuration_of_the_examples_is_accepted() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut found = 0;
    for example in std::fs::read_dir(examples).expect("there are examples") {
        let path = example.expect("it can be read").path().join("config.toml");
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        assert!(is_accepted(&text), "{}", path.display());
        found += 1;
    }
    assert!(found >= 4, "{found}");
}

#[test]
fn what_no_table_has_is_refused_and_beans_have_keys_of_their_own() {
    for right in [
        "",
        "[beans.mailer]\ntype = \"smtp_mailer\"\nurl = \"smtp://h\"\ntimeout = 30\n[beans.mailer.inner]\na = [1]",
        "[destinations]\norders = { queue = \"shop.orders\" }\n\"Orders.IN\" = { topic = \"x\" }",
        "[broker]\nlisten = [\"tcp://127.0.0.1:${env:PORT:-0}\"]\n[broker.redelivery]\nback_off = \"${env:FACTOR}\"",
        // The rest may be in another layer.
        "[connection_factories.main]\nprefetch = { queue = 1 }",
    ] {
        assert!(is_accepted(right), "{right}");
    }
    for wrong in [
        "[brokr]",
        "broker = 1",
        "[broker]\nnme = \"x\"",
        "[broker.redelivery]\nmax_redeliveries = 6",
        "[templates]\nx = 1",
        "[listeners.on_order]\nconcurency = \"2\"",
        "[connection_factories.main]\nprefetch = { queues = 1 }",
        "[beans.mailer]\ntype = 1",
        "[destinations]\norders = \"shop.orders\"",
    ] {
        assert!(!is_accepted(wrong), "{wrong}");
    }
}
