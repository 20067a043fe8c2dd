//! Reads values out of a configuration's tree and collects what is wrong with them.

use std::cell::RefCell;
use std::fmt;
use std::str::FromStr;

use config::{Map, Value, ValueKind};

use super::error::{ConfigError, Origin, Place, Problems};
use super::lines::Lines;
use super::schema::{self, KeySchema, Kind, Shape};
use super::{key_path, origin, value};
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
    file: &'a str,
    lines: &'a Lines,
    problems: RefCell<Problems>,
    without_effect: RefCell<Vec<WithoutEffect>>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(
        tree: &'a Map<String, Value>,
        file: &'a str,
        lines: &'a Lines,
        problems: Problems,
    ) -> Self {
        Self { tree, file, lines, problems: RefCell::new(problems), without_effect: RefCell::default() }
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

    /// Where a key was set, or its table if it is not there.
    pub(super) fn place(&self, path: &[&str]) -> Place {
        let value = self.value(path);
        let origin = origin::of(value, || match self.file {
            "" => Origin::Code,
            file => Origin::File { name: file.to_owned(), line: self.lines.line(path) },
        });
        Place::new(key_path::written(path), origin, value.and_then(origin::hidden))
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
            found: value::shown(value),
            expected: "a table".to_owned(),
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
                    self.without_effect.borrow_mut().push(WithoutEffect { place: self.place(&path), reason });
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
            place: self.place(path),
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
        match read(value) {
            Some(value) => Some(Setting { value, place }),
            None => {
                self.reading.problem(ConfigError::Value {
                    place,
                    found: value::shown(value),
                    expected: self.expects(key),
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
            self.reading
                .problem(ConfigError::Missing { place: self.place(key), expected: self.expects(key) });
        }
        self.setting(key, read)
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

    pub(super) fn problem(&self, error: ConfigError) {
        self.reading.problem(error);
    }

    pub(super) fn place(&self, key: &str) -> Place {
        let mut path = self.path.clone();
        path.push(key);
        self.reading.place(&path)
    }

    /// Where the table itself stands.
    pub(super) fn own_place(&self) -> Place {
        self.reading.place(&self.path)
    }

    /// Everything in the table.
    pub(super) fn values(&self) -> &'a Map<String, Value> {
        self.values
    }

    fn expects(&self, key: &str) -> String {
        let schema = self.keys.iter().find(|schema| schema.name == key);
        debug_assert!(schema.is_some(), "`{key}` is read but not in the schema of {:?}", self.path);
        schema.map_or_else(|| "a value".to_owned(), KeySchema::expects)
    }
}
