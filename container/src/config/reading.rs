//! Reads values out of a configuration's tree and collects what is wrong with them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use config::{Map, Value, ValueKind};

use super::error::{ConfigError, Problems};
use super::file::ConfigFile;
use super::origin::{self, Base, Filling};
use super::place::{Origin, Place};
use super::schema::{self, KeySchema, Kind, Shape};
use super::source::{Part, Source};
use super::{key_path, secret, value};
use crate::nearest::nearest;

/// A value together with where it was set. Shown for debugging without the value, which may hold a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it was set.
    pub place: Place,
}

impl<T> fmt::Debug for Setting<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setting").field("place", &self.place).finish_non_exhaustive()
    }
}

/// A key that is accepted and does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WithoutEffect {
    /// The key.
    pub place: Place,
    /// Why not.
    pub reason: &'static str,
}

impl fmt::Display for WithoutEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has no effect: {}", self.place, self.reason)
    }
}

/// One pass over a tree.
pub(super) struct Reading<'a> {
    tree: &'a Map<String, Value>,
    files: &'a [ConfigFile],
    environment: &'a HashMap<String, String>,
    /// Keys whose placeholders cannot be filled, which is said already.
    unfilled: Vec<Vec<String>>,
    problems: RefCell<Problems>,
    without_effect: RefCell<Vec<WithoutEffect>>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(
        tree: &'a Map<String, Value>,
        files: &'a [ConfigFile],
        environment: &'a HashMap<String, String>,
        unfilled: Vec<Vec<String>>,
        problems: Problems,
    ) -> Self {
        let (problems, without_effect) = (RefCell::new(problems), RefCell::default());
        Self { tree, files, environment, unfilled, problems, without_effect }
    }

    pub(super) fn problem(&self, error: ConfigError) {
        self.problems.borrow_mut().push(error);
    }

    /// The keys that [`Reading::check_keys`] found to have no effect.
    pub(super) fn take_without_effect(&self) -> Vec<WithoutEffect> {
        self.without_effect.take()
    }

    pub(super) fn into_problems(self) -> Problems {
        self.problems.into_inner()
    }

    /// Where the value of a key stands, or its table if it is not there.
    pub(super) fn place(&self, path: &[&str]) -> Place {
        let place = self.place_of(path, false);
        match self.value(path) {
            Some(value) => place.noting(self.notes(value)),
            None => place,
        }
    }

    /// Where a key itself stands.
    fn key_place(&self, path: &[&str]) -> Place {
        self.place_of(path, true)
    }

    fn place_of(&self, path: &[&str], is_key: bool) -> Place {
        let key = key_path::written(path);
        let value = self.value(path);
        // What is not there would stand where its table stands.
        let nearest = value.or_else(|| (1..path.len()).rev().find_map(|length| self.value(&path[..length])));
        let place = match nearest.map(|value| origin::of(value).base) {
            Some(Base::Code) => Place::new(key, Origin::Code),
            Some(Base::Variable(name)) => {
                let held = self.environment.get(name).map(String::as_str).unwrap_or_default();
                let is_secret = value.is_some_and(|value| secret::hidden(path, value).is_some());
                let (source, range) = Source::variable(name, held, is_secret);
                let range = if is_key { 0..name.len() } else { range };
                let part = Part { source: Arc::new(source), range };
                Place::new(key, Origin::Environment { variable: name.to_owned() }).of_part(Some(part))
            }
            Some(Base::File(number)) => self.place_in(self.files.get(number), path, key, is_key),
            None => self.place_in(self.files.first(), path, key, is_key),
        };
        let Some(value) = value else { return place };
        place.hiding(secret::hidden(path, value))
    }

    fn place_in(&self, file: Option<&ConfigFile>, path: &[&str], key: String, is_key: bool) -> Place {
        let Some(file) = file else { return Place::new(key, Origin::Code) };
        let range = file.positions.nearest(path).map(|(position, is_own)| match is_own && is_key {
            true => position.key.clone(),
            false => position.value.clone(),
        });
        file.named.place(key, range)
    }

    /// What the placeholders in a value stand for.
    fn notes(&self, value: &Value) -> Vec<String> {
        let note = |filling: &Filling<'_>| match filling {
            Filling::Variable(name) => format!("filled from the environment variable `{name}`"),
            Filling::File(path) => format!("filled from the file `{path}`"),
            Filling::Key(key) => {
                let path = key_path::parse(key).unwrap_or_default();
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                // Without what its own placeholders stand for, which is among these.
                format!("filled from {}", self.place_of(&path, false))
            }
        };
        origin::of(value).fillings.iter().map(note).collect()
    }

    fn is_unfilled(&self, path: &[&str]) -> bool {
        let is_same = |unfilled: &Vec<String>| unfilled.iter().eq(path);
        self.unfilled.iter().any(is_same)
    }

    /// What everything is read from.
    pub(super) fn tree(&self) -> &Map<String, Value> {
        self.tree
    }

    fn value(&self, path: &[&str]) -> Option<&'a Value> {
        let (first, rest) = path.split_first()?;
        let mut value = self.tree.get(*first)?;
        for segment in rest {
            let ValueKind::Table(table) = &value.kind else { return None };
            value = table.get(*segment)?;
        }
        Some(value)
    }

    /// The table of this name, if it is there and is one.
    pub(super) fn table(&self, name: &'static str) -> Option<TableReader<'_>> {
        let schema = schema::table(name)?;
        let values = self.as_table(self.tree.get(name)?, &[name])?;
        Some(TableReader { reading: self, path: vec![name], values, keys: schema.keys })
    }

    /// The tables `[name.…]`, each with the name that the user gave it, in their order.
    pub(super) fn named(&self, name: &'static str) -> Vec<(&str, TableReader<'_>)> {
        let Some(outer) = self.table(name) else { return Vec::new() };
        outer
            .values
            .iter()
            .filter_map(|(inner, value)| {
                let path = vec![name, inner.as_str()];
                let values = self.as_table(value, &path)?;
                Some((inner.as_str(), TableReader { reading: self, path, values, keys: outer.keys }))
            })
            .collect()
    }

    fn as_table<'v>(&self, value: &'v Value, path: &[&str]) -> Option<&'v Map<String, Value>> {
        if let ValueKind::Table(table) = &value.kind {
            return Some(table);
        }
        self.problem(ConfigError::Value {
            place: self.place(path),
            found: value::shown(path, value),
            expected: match path {
                ["destinations", _] => "a table, { queue = \"…\" } or { topic = \"…\" }".to_owned(),
                _ => "a table".to_owned(),
            },
        });
        None
    }

    /// Refuses every key that no schema knows.
    pub(super) fn check_keys(&self) {
        for (name, value) in self.tree {
            let Some(table) = schema::table(name) else {
                self.unknown(&[name], &schema::table_names());
                continue;
            };
            let ValueKind::Table(values) = &value.kind else { continue };
            match table.shape {
                Shape::Single => self.check_table(&[table.name], values, table.keys),
                Shape::Named => {
                    for (inner, value) in values {
                        if let ValueKind::Table(values) = &value.kind {
                            self.check_table(&[table.name, inner], values, table.keys);
                        }
                    }
                }
                Shape::Open => {}
            }
        }
    }

    fn check_table(&self, path: &[&str], values: &Map<String, Value>, keys: &'static [KeySchema]) {
        for (name, value) in values {
            let mut path = path.to_vec();
            path.push(name);
            match keys.iter().find(|key| key.name == name).map(|key| &key.kind) {
                None => {
                    let known: Vec<_> = keys
                        .iter()
                        .filter(|key| !matches!(key.kind, Kind::WithoutEffect(_)))
                        .map(|key| key.name)
                        .collect();
                    self.unknown(&path, &known);
                }
                Some(Kind::WithoutEffect(reason)) => {
                    self.without_effect
                        .borrow_mut()
                        .push(WithoutEffect { place: self.key_place(&path), reason });
                }
                Some(Kind::Tables(keys)) => {
                    let ValueKind::Table(tables) = &value.kind else { continue };
                    for (name, value) in tables {
                        if let ValueKind::Table(values) = &value.kind {
                            path.push(name);
                            self.check_table(&path, values, keys);
                            path.pop();
                        }
                    }
                }
                Some(Kind::Table(keys)) => {
                    if let ValueKind::Table(values) = &value.kind {
                        self.check_table(&path, values, keys);
                    }
                }
                Some(_) => {}
            }
        }
    }

    fn unknown(&self, path: &[&str], known: &[&str]) {
        let name = path.last().copied().unwrap_or_default();
        self.problem(ConfigError::UnknownKey {
            place: self.key_place(path),
            known: known.iter().map(ToString::to_string).collect(),
            nearest: nearest(name, known.iter().copied()),
        });
    }
}

/// Reads the keys of one table.
pub(super) struct TableReader<'a> {
    reading: &'a Reading<'a>,
    path: Vec<&'a str>,
    values: &'a Map<String, Value>,
    keys: &'static [KeySchema],
}

impl<'a> TableReader<'a> {
    /// The value of a key, with its place; what `read` does not understand is a problem.
    pub(super) fn setting<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<Setting<T>> {
        let value = self.values.get(key)?;
        let place = self.place(key);
        let mut path = self.path.clone();
        path.push(key);
        if self.reading.is_unfilled(&path) {
            return None;
        }
        match read(value) {
            Some(value) => Some(Setting { value, place }),
            None => {
                self.reading.problem(ConfigError::Value {
                    place,
                    found: value::shown(&path, value),
                    expected: self.expects(key, Some(value)),
                });
                None
            }
        }
    }

    pub(super) fn value<T>(&self, key: &'static str, read: impl FnOnce(&Value) -> Option<T>) -> Option<T> {
        self.setting(key, read).map(|setting| setting.value)
    }

    /// A value that has a textual form in code too; a whole number is taken as its digits.
    pub(super) fn parsed<T: FromStr>(&self, key: &'static str) -> Option<T> {
        self.value(key, |value| {
            let text =
                value::text(value).or_else(|| value::integer(value).map(|number| number.to_string()))?;
            text.parse().ok()
        })
    }

    /// As [`TableReader::setting`], for a key that must be there.
    pub(super) fn required<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<Setting<T>> {
        if !self.values.contains_key(key) {
            let mut expected = self.expects(key, None);
            if let Some(other) = self.neighbour_with(key) {
                expected.push_str(&format!("; did you mean `[{other}]`?"));
            }
            self.reading.problem(ConfigError::Missing { place: self.place(key), expected });
        }
        self.setting(key, read)
    }

    /// A table beside this one, of nearly the same name, that has the key: one that this was most likely meant to be part of.
    fn neighbour_with(&self, key: &str) -> Option<String> {
        let [table, name] = self.path.as_slice() else { return None };
        let ValueKind::Table(all) = &self.reading.tree.get(*table)?.kind else { return None };
        let has_key = |value: &Value| matches!(&value.kind, ValueKind::Table(keys) if keys.contains_key(key));
        let others = all.iter().filter(|(other, value)| other != name && has_key(value));
        nearest(name, others.map(|(other, _)| other.as_str()))
            .map(|other| key_path::written(&[*table, &other]))
    }

    /// A table within this one.
    pub(super) fn table(&self, key: &'static str) -> Option<TableReader<'a>> {
        let mut path = self.path.clone();
        path.push(key);
        let values = self.reading.as_table(self.values.get(key)?, &path)?;
        let schema = self.keys.iter().find(|schema| schema.name == key)?;
        let Kind::Table(keys) = schema.kind else { return None };
        Some(TableReader { reading: self.reading, path, values, keys })
    }

    /// The tables under a key, each with the name that the user gave it, in their order.
    pub(super) fn tables(&self, key: &'static str) -> Vec<(&'a str, TableReader<'a>)> {
        let outer = [self.path.as_slice(), &[key]].concat();
        let schema = self.keys.iter().find(|schema| schema.name == key);
        let Some(Kind::Tables(keys)) = schema.map(|schema| schema.kind) else { return Vec::new() };
        let tables = self.values.get(key).and_then(|value| self.reading.as_table(value, &outer));
        let tables = tables.into_iter().flatten().filter_map(|(name, value)| {
            let path = [outer.as_slice(), &[name.as_str()]].concat();
            let values = self.reading.as_table(value, &path)?;
            Some((name.as_str(), TableReader { reading: self.reading, path, values, keys }))
        });
        tables.collect()
    }

    pub(super) fn problem(&self, error: ConfigError) {
        self.reading.problem(error);
    }

    pub(super) fn place(&self, key: &str) -> Place {
        let mut path = self.path.clone();
        path.push(key);
        self.reading.place(&path)
    }

    /// Where a value within the table stands.
    pub(super) fn place_within(&self, path: &[&str]) -> Place {
        self.reading.place(&[&self.path, path].concat())
    }

    /// Where a key within the table stands.
    pub(super) fn key_place_within(&self, path: &[&str]) -> Place {
        self.reading.key_place(&[&self.path, path].concat())
    }

    /// Where the table itself stands.
    pub(super) fn own_place(&self) -> Place {
        self.reading.place(&self.path)
    }

    /// Everything in the table.
    pub(super) fn values(&self) -> &'a Map<String, Value> {
        self.values
    }

    /// What the value of a key should be, with the word that a wrong one was most likely meant to be.
    fn expects(&self, key: &str, found: Option<&Value>) -> String {
        let schema = self.keys.iter().find(|schema| schema.name == key);
        debug_assert!(schema.is_some(), "`{key}` is read but not in the schema of {:?}", self.path);
        let Some(schema) = schema else { return "a value".to_owned() };
        let mut expected = schema.expects();
        if let (Kind::Words(words), Some(found)) = (schema.kind, found.and_then(value::text))
            && let Some(nearest) = nearest(&found, words.iter().copied())
        {
            expected.push_str(&format!("; did you mean \"{nearest}\"?"));
        }
        expected
    }
}
