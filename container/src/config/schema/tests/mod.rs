//! What the schema says is what is read, what is written down, and what editors are told.

mod accepting;
mod samples;

pub(crate) use samples::samples;

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::markdown::{rendered, tables};
use super::*;

#[test]
fn every_table_is_linked_in_once() {
    assert_eq!(
        table_names(),
        [
            "application",
            "beans",
            "broker",
            "connection_factories",
            "destinations",
            "listener_containers",
            "listeners",
            "message_converters",
            "templates"
        ]
    );
}

/// Compares a file of `docs` with what it should be, or writes it where `CONFIG_DOCS=overwrite` is in the environment.
fn written(name: &str, expected: impl FnOnce(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    let there = fs::read_to_string(&path).unwrap_or_default();
    let expected = expected(&there);
    if std::env::var_os("CONFIG_DOCS").is_some_and(|wish| wish == "overwrite") {
        fs::write(&path, expected).expect("it can be written");
        return;
    }
    assert!(
        there == expected,
        "docs/{name} is not what the schema says; `CONFIG_DOCS=overwrite cargo test -p corriere-container schema` writes it anew"
    );
}

#[test]
fn the_documentation_has_the_tables_of_the_schema() {
    written("configuration.md", |there| {
        let (text, mut marks) = rendered(there);
        let mut expected: Vec<_> = tables().into_iter().map(|(name, _)| name).collect();
        expected.push("preset activemq".to_owned());
        expected.sort();
        marks.sort();
        assert_eq!(marks, expected, "the marks of docs/configuration.md");
        text
    });
}

#[test]
fn the_json_schema_beside_the_documentation_is_that_of_the_schema() {
    written("configuration.schema.json", |_| {
        serde_json::to_string_pretty(&json_schema()).expect("it is JSON") + "\n"
    });
}

#[test]
fn what_is_written_as_toml_is_json_as_well() {
    for (table, keys) in tables() {
        for key in keys {
            for written in [key.default, key.activemq].into_iter().flatten() {
                serde_json::from_str::<Value>(written)
                    .unwrap_or_else(|error| panic!("{table}.{}: {written}: {error}", key.name));
            }
        }
    }
}

#[test]
fn every_key_says_what_it_does_in_one_row_of_a_table() {
    for (table, keys) in tables() {
        for key in keys {
            let texts = [Some(key.meaning), key.answers, key.default, key.activemq];
            assert!(!key.meaning.is_empty(), "{table}.{}", key.name);
            assert!(texts.into_iter().flatten().all(|text| !text.contains('\n')), "{table}.{}", key.name);
            assert!(!(key.is_required && key.default.is_some()), "{table}.{}", key.name);
            assert!(key.activemq.is_none() || key.activemq != key.default, "{table}.{}", key.name);
        }
    }
}
