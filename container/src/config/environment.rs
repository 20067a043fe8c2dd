//! Environment variables over the file: `CORRIERE__TEMPLATES__ORDER_TEMPLATE__RECEIVE_TIMEOUT=5s`.
//!
//! Two underscores stand between the parts, and each part is compared, without case, to what is known at that point: the
//! tables and keys of the schema, and the names that the file and the program gave. So a name with underscores of its
//! own is found, and a variable that matches nothing is a fault that is said, never silence.

use std::collections::HashMap;
use std::sync::Arc;

use config::{Map, Value, ValueKind};

use super::document::put;
use super::error::{ConfigError, Problems};
use super::file::PROFILE;
use super::place::{Origin, Place};
use super::schema::{self, KeySchema, Kind, Shape};
use super::source::{Part, Source};
use super::{key_path, origin};
use crate::nearest::nearest;

const PREFIX: &str = "CORRIERE__";
const CHECK: &str = "CORRIERE_CHECK";

/// The variable that names the profiles, with its value.
pub(super) fn profiles(environment: &HashMap<String, String>) -> Option<(&str, &str)> {
    let found = environment.iter().find(|(variable, _)| variable.eq_ignore_ascii_case(PROFILE));
    found
        .map(|(variable, profiles)| (variable.as_str(), profiles.as_str()))
        .filter(|(_, profiles)| !profiles.is_empty())
}

/// Whether a check is asked for in place of a start.
///
/// # Errors
/// [`ConfigError::Value`] when the variable holds neither yes nor no.
pub(super) fn asks_for_a_check(environment: &HashMap<String, String>) -> Result<bool, ConfigError> {
    let found = environment.iter().find(|(variable, _)| variable.eq_ignore_ascii_case(CHECK));
    let Some((variable, value)) = found else { return Ok(false) };
    match value.trim().to_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "" | "0" | "false" | "no" | "off" => Ok(false),
        _ => {
            let (source, range) = Source::variable(variable, value, false);
            let part = Part { source: Arc::new(source), range };
            let origin = Origin::Environment { variable: variable.clone() };
            Err(ConfigError::Value {
                place: Place::new(CHECK.to_owned(), origin).of_part(Some(part)),
                found: format!("\"{value}\""),
                expected: "1 for a check in place of a start, or 0".to_owned(),
            })
        }
    }
}

/// Puts the values of all variables with the prefix into the tree. `named` is a tree with all names that the file and the
/// program gave.
pub(super) fn overlay(
    tree: &mut Map<String, Value>,
    named: &Map<String, Value>,
    environment: &HashMap<String, String>,
    listeners: &[&str],
    problems: &mut Problems,
) {
    let mut variables: Vec<_> = environment.iter().collect();
    variables.sort_unstable();
    let mut set: HashMap<Vec<String>, &str> = HashMap::new();
    for (variable, value) in variables {
        // By bytes, so that the places of its parts are those of the variable as it is.
        let upper = variable.to_ascii_uppercase();
        if let Some(rest) = upper.strip_prefix(PREFIX) {
            let parts: Vec<&str> = rest.split("__").collect();
            match target(named, &parts, listeners) {
                Ok(target) => {
                    if let Some(other) = set.insert(target.path.clone(), variable) {
                        let key = key_path::written(&target.path);
                        let variables = [other.to_owned(), variable.clone()];
                        problems.push(ConfigError::SameVariable { key, variables });
                    }
                    let origin = origin::variable(variable);
                    let kind = if target.is_list { list(&origin, value) } else { value.clone().into() };
                    let path: Vec<&str> = target.path.iter().map(String::as_str).collect();
                    put(tree, &path, Value::new(Some(&origin), kind));
                }
                Err(miss) => problems.push(ConfigError::UnknownVariable {
                    place: unknown_place(variable, &parts, miss.at),
                    reason: miss.reason,
                    nearest: miss.nearest.map(|parts| format!("{PREFIX}{}", parts.join("__"))),
                }),
            }
        } else if upper.starts_with("CORRIERE_") && upper != PROFILE && upper != CHECK {
            // Not a fault, as others may use this prefix: Kubernetes makes such variables for a service named `corriere`.
            let known = [PROFILE, CHECK];
            match nearest(&upper, known).or_else(|| with_two_underscores(named, &upper, listeners)) {
                Some(meant) => {
                    tracing::warn!("the environment variable {variable} is not read; did you mean {meant}?");
                }
                None => tracing::warn!(
                    "the environment variable {variable} is not read; the form is CORRIERE__TABLE__KEY"
                ),
            }
        }
    }
}

/// The variable that was meant where one underscore stands between the parts, if it is one.
fn with_two_underscores(named: &Map<String, Value>, variable: &str, listeners: &[&str]) -> Option<String> {
    let mut all = Vec::new();
    known_variables(named, listeners, &mut all);
    let one = |text: &str| text.replace("__", "_");
    all.into_iter().find(|known| one(known) == one(variable))
}

/// The variables of all keys that are known.
fn known_variables(named: &Map<String, Value>, listeners: &[&str], all: &mut Vec<String>) {
    for table in schema::table_names().into_iter().filter_map(schema::table) {
        let mut names: Vec<&str> = match named.get(table.name).map(|value| &value.kind) {
            Some(ValueKind::Table(values)) if table.shape != Shape::Single => {
                values.keys().map(String::as_str).collect()
            }
            _ => Vec::new(),
        };
        if table.name == "listeners" {
            names.extend(listeners);
        }
        if table.shape == Shape::Single {
            keys_of(&format!("{PREFIX}{}", table.name), table.keys, all);
        }
        for name in names {
            keys_of(&format!("{PREFIX}{}__{name}", table.name), table.keys, all);
        }
    }
}

fn keys_of(prefix: &str, keys: &[KeySchema], all: &mut Vec<String>) {
    for key in keys {
        let name = format!("{prefix}__{}", key.name);
        match key.kind {
            Kind::Table(keys) => keys_of(&name, keys, all),
            // Their names are the user's.
            Kind::Tables(_) => {}
            _ => all.push(name.to_uppercase()),
        }
    }
}

/// A variable that matches nothing, from its part at `at` on. Its value is not shown, as nobody knows what it is.
fn unknown_place(variable: &str, parts: &[&str], at: usize) -> Place {
    let (source, _) = Source::variable(variable, "", true);
    let start = PREFIX.len() + parts.iter().take(at).map(|part| part.len() + 2).sum::<usize>();
    let end = start + parts.get(at).map_or(0, |part| part.len());
    let part = Part { source: Arc::new(source), range: start.min(variable.len())..end.min(variable.len()) };
    Place::new(variable.to_owned(), Origin::Environment { variable: variable.to_owned() }).of_part(Some(part))
}

struct Target {
    path: Vec<String>,
    is_list: bool,
}

/// Where a variable leaves what is known, and the parts of the one that was most likely meant.
struct Miss {
    /// The part that matches nothing.
    at: usize,
    reason: String,
    nearest: Option<Vec<String>>,
}

fn target(tree: &Map<String, Value>, parts: &[&str], listeners: &[&str]) -> Result<Target, Miss> {
    let (first, rest) = parts.split_first().unwrap_or((&"", &[]));
    let tables = schema::table_names();
    let table = tables
        .iter()
        .find(|table| same(table, first))
        .and_then(|table| schema::table(table))
        .ok_or_else(|| miss("table", parts, 0, &tables))?;
    if table.shape == Shape::Single {
        return key(tree, vec![table.name.to_owned()], table.keys, parts, 1);
    }

    let given = match tree.get(table.name).map(|value| &value.kind) {
        Some(ValueKind::Table(values)) => values.keys().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    let mut names: Vec<&str> = given;
    if table.name == "listeners" {
        names.extend(listeners.iter().filter(|id| !names.contains(id)).copied().collect::<Vec<_>>());
    }
    let Some((name, length)) = named_by(&names, rest) else {
        return Err(if rest.len() < 2 {
            let reason = format!("`{}` needs a name and a key behind it", table.name);
            Miss { at: 0, reason, nearest: None }
        } else {
            miss(&format!("`{}`", table.name), parts, 1, &names)
        });
    };
    let path = vec![table.name.to_owned(), name.to_owned()];
    if table.shape == Shape::Open {
        return Ok(open(tree, path, &parts[1 + length..]));
    }
    key(tree, path, table.keys, parts, 1 + length)
}

/// The name that the first of these parts are, and how many these are; a key follows.
fn named_by<'a>(names: &[&'a str], parts: &[&str]) -> Option<(&'a str, usize)> {
    // The longest match first: a name may hold two underscores itself.
    (1..parts.len()).rev().find_map(|length| {
        let part = parts[..length].join("__");
        // Written alike but for case and unusual characters, the one that is the same to the letter counts.
        let mut alike = names.iter().filter(|name| same(name, &part));
        let exact = names.iter().find(|name| name.eq_ignore_ascii_case(&part));
        exact.or_else(|| alike.next()).map(|name| (*name, length))
    })
}

/// Finds the key at `parts[at..]` in a table.
fn key(
    tree: &Map<String, Value>,
    mut path: Vec<String>,
    keys: &[KeySchema],
    parts: &[&str],
    at: usize,
) -> Result<Target, Miss> {
    let names: Vec<_> = keys.iter().map(|key| key.name).collect();
    let what = format!("key in `{}`", path.join("."));
    let Some(part) = parts.get(at) else {
        let reason = format!("`{}` is a table; a key must follow", path.join("."));
        return Err(Miss { at: at.saturating_sub(1), reason, nearest: None });
    };
    let key_schema =
        keys.iter().find(|key| same(key.name, part)).ok_or_else(|| miss(&what, parts, at, &names))?;
    path.push(key_schema.name.to_owned());
    match key_schema.kind {
        Kind::Table(keys) => key(tree, path, keys, parts, at + 1),
        Kind::Tables(keys) => {
            let names = table_at(tree, &path).into_iter().flat_map(Map::keys).map(String::as_str);
            let names: Vec<_> = names.collect();
            let rest = parts.get(at + 1..).unwrap_or_default();
            let Some((name, length)) = named_by(&names, rest) else {
                return Err(if rest.len() < 2 {
                    let reason = format!("`{}` needs a name and a key behind it", path.join("."));
                    Miss { at, reason, nearest: None }
                } else {
                    miss(&format!("`{}`", path.join(".")), parts, at + 1, &names)
                });
            };
            path.push(name.to_owned());
            key(tree, path, keys, parts, at + 1 + length)
        }
        _ if parts.len() > at + 1 => {
            Err(Miss { at: at + 1, reason: format!("`{}` is no table", path.join(".")), nearest: None })
        }
        kind => Ok(Target { path, is_list: matches!(kind, Kind::List(_)) }),
    }
}

/// Finds a key in a table whose keys are the user's: one that is there, else a new one in lower case.
fn open(tree: &Map<String, Value>, mut path: Vec<String>, parts: &[&str]) -> Target {
    for part in parts {
        let there = table_at(tree, &path).and_then(|table| table.keys().find(|key| same(key, part)));
        path.push(there.cloned().unwrap_or_else(|| part.to_lowercase()));
    }
    Target { path, is_list: false }
}

fn table_at<'a>(tree: &'a Map<String, Value>, path: &[String]) -> Option<&'a Map<String, Value>> {
    let mut table = tree;
    for segment in path {
        match &table.get(segment)?.kind {
            ValueKind::Table(inner) => table = inner,
            _ => return None,
        }
    }
    Some(table)
}

/// Whether a name is what a variable's part says: without case, and with an underscore for what a variable cannot hold.
fn same(name: &str, part: &str) -> bool {
    let written = |text: &str| {
        text.chars()
            .flat_map(char::to_uppercase)
            .map(|character| if character.is_alphanumeric() { character } else { '_' })
            .collect::<String>()
    };
    written(name) == written(part)
}

fn miss(what: &str, parts: &[&str], at: usize, known: &[&str]) -> Miss {
    let part = parts.get(at).copied().unwrap_or_default();
    let reason = if what.starts_with('`') {
        format!("there is no `{}` in {what}", part.to_lowercase())
    } else {
        format!("there is no {what} named `{}`", part.to_lowercase())
    };
    let nearest = nearest(part, known.iter().copied()).map(|name| {
        let mut parts: Vec<_> = parts.iter().map(ToString::to_string).collect();
        parts[at] = name.to_uppercase();
        parts
    });
    Miss { at, reason, nearest }
}

/// A list: `["one", "two"]` as in the file, or `one, two`; `None` for what is begun as the first and is none.
pub(crate) fn list_of(value: &str) -> Option<Vec<String>> {
    if value.trim_start().starts_with('[') {
        return serde_json::from_str(value).ok();
    }
    Some(value.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect())
}

fn list(origin: &str, value: &str) -> ValueKind {
    // Else left as the text that it is, so that whoever reads a list refuses it with the place.
    let Some(items) = list_of(value) else { return value.into() };
    let origin = origin.to_owned();
    ValueKind::Array(items.into_iter().map(|item| Value::new(Some(&origin), item)).collect())
}
