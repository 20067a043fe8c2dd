//! The merged configuration as a person reads it: every value with where it came from, secrets hidden, defaults included.

use std::fmt;

use config::{Map, Value, ValueKind};

use super::Preset;
use super::reading::Reading;
use super::schema::{self, KeySchema, Kind, Shape};
use super::secret::{self, MASK};
use super::{key_path, place::Place};

/// The merged configuration, to be shown. It has no secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    files: Vec<String>,
    tables: Vec<Table>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Table {
    /// Its header, without brackets.
    name: String,
    values: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    key: String,
    /// As it is written in TOML.
    value: String,
    origin: String,
    /// Whether the configuration does not say it.
    is_default: bool,
}

impl Listing {
    pub(super) fn of(files: Vec<String>, reading: &Reading<'_>, preset: Option<Preset>) -> Self {
        let mut tables = Vec::new();
        for table in schema::table_names().into_iter().filter_map(schema::table) {
            let Some(ValueKind::Table(values)) = reading.tree().get(table.name).map(|value| &value.kind)
            else {
                continue;
            };
            let lister = Lister { reading, preset, is_open: table.shape == Shape::Open };
            if table.shape == Shape::Single {
                let path = vec![table.name];
                tables.push(lister.table(&path, table.keys, values));
                continue;
            }
            for (name, value) in values {
                if let ValueKind::Table(values) = &value.kind {
                    tables.push(lister.table(&[table.name, name], table.keys, values));
                }
            }
        }
        Self { files, tables }
    }

    /// Corrects what holds for a key that the configuration does not say, and why, where more than the schema is known.
    pub(crate) fn set_default(&mut self, table: &[&str], key: &[&str], value: &str, origin: &str) {
        let (table, key) = (key_path::written(table), key_path::written(key));
        let table = self.tables.iter_mut().find(|found| found.name == table);
        let lines = table.into_iter().flat_map(|table| &mut table.values);
        for line in lines.filter(|line| line.is_default && line.key == key) {
            (line.value, line.origin) = (value.to_owned(), origin.to_owned());
        }
    }
}

struct Lister<'a> {
    reading: &'a Reading<'a>,
    preset: Option<Preset>,
    /// Whether a table has keys of the user's own.
    is_open: bool,
}

impl Lister<'_> {
    fn table(&self, path: &[&str], keys: &[KeySchema], values: &Map<String, Value>) -> Table {
        let mut lines = Vec::new();
        self.known(path, &mut Vec::new(), keys, Some(values), &mut lines);
        if self.is_open {
            for (name, value) in values.iter().filter(|(name, _)| keys.iter().all(|key| key.name != *name)) {
                self.own(path, &mut vec![name.as_str()], value, &mut lines);
            }
        }
        Table { name: key_path::written(path), values: lines }
    }

    /// The keys of the schema: what is there, and what holds without it.
    fn known<'k>(
        &self,
        table: &[&'k str],
        within: &mut Vec<&'k str>,
        keys: &[KeySchema],
        values: Option<&'k Map<String, Value>>,
        lines: &mut Vec<Line>,
    ) {
        for key in keys {
            let value = values.and_then(|values| values.get(key.name));
            within.push(key.name);
            match (key.kind, value.map(|value| &value.kind)) {
                (Kind::Table(keys), inner) => {
                    let inner = match inner {
                        Some(ValueKind::Table(inner)) => Some(inner),
                        _ => None,
                    };
                    self.known(table, within, keys, inner, lines);
                }
                (Kind::Tables(keys), inner) => {
                    let tables = match inner {
                        Some(ValueKind::Table(tables)) => Some(tables),
                        _ => None,
                    };
                    for (name, value) in tables.into_iter().flatten() {
                        if let ValueKind::Table(values) = &value.kind {
                            within.push(name);
                            self.known(table, within, keys, Some(values), lines);
                            within.pop();
                        }
                    }
                }
                (kind, Some(_)) => {
                    // What could be read as a number or a size, say, is no secret, wherever it came from.
                    let may_be_secret = matches!(kind, Kind::Text(_) | Kind::Name(_) | Kind::List(_));
                    lines.extend(value.map(|value| self.line(table, within, value, may_be_secret)));
                }
                (_, None) if self.has_other_name(table, within) => {}
                (_, None) => lines.extend(self.default(within, key)),
            }
            within.pop();
        }
    }

    /// Whether a key that is not there stands under the other name that the store has for it.
    fn has_other_name(&self, table: &[&str], within: &[&str]) -> bool {
        let inner =
            |values: &'_ Map<String, Value>, name: &str| match values.get(name).map(|value| &value.kind) {
                Some(ValueKind::Table(inner)) => Some(inner.clone()),
                _ => None,
            };
        let store = inner(self.reading.tree(), "broker").and_then(|broker| inner(&broker, "store"));
        table == ["broker"]
            && within == ["sync_on_write"]
            && store.is_some_and(|store| store.contains_key("sync_on_write"))
    }

    /// A key of the user's own, and those within it.
    fn own<'k>(&self, table: &[&'k str], within: &mut Vec<&'k str>, value: &'k Value, lines: &mut Vec<Line>) {
        let ValueKind::Table(inner) = &value.kind else {
            lines.push(self.line(table, within, value, true));
            return;
        };
        for (name, value) in inner {
            within.push(name);
            self.own(table, within, value, lines);
            within.pop();
        }
    }

    fn line(&self, table: &[&str], within: &[&str], value: &Value, may_be_secret: bool) -> Line {
        let path = [table, within].concat();
        let is_secret = may_be_secret && secret::hidden(&path, value).is_some();
        let value = if is_secret { format!("\"{MASK}\"") } else { written(value) };
        Line {
            key: key_path::written(within),
            value,
            origin: origin(&self.reading.place(&path)),
            is_default: false,
        }
    }

    fn default(&self, within: &[&str], key: &KeySchema) -> Option<Line> {
        let of_preset = self.preset.and(key.activemq);
        let (value, origin) = match (of_preset, self.preset) {
            (Some(value), Some(preset)) => (value, format!("default of the preset `{}`", preset.name())),
            _ => (key.default?, "default".to_owned()),
        };
        Some(Line { key: key_path::written(within), value: value.to_owned(), origin, is_default: true })
    }
}

fn origin(place: &Place) -> String {
    let mut origin = place.origin().to_string();
    for note in place.notes() {
        origin.push_str(", ");
        origin.push_str(note);
    }
    origin
}

/// A value as TOML has it, without the password of a URL.
fn written(value: &Value) -> String {
    match &value.kind {
        ValueKind::String(text) => quoted(&secret::without_passwords(text)),
        ValueKind::Array(items) => {
            let items: Vec<_> = items.iter().map(written).collect();
            format!("[{}]", items.join(", "))
        }
        ValueKind::Table(table) => {
            let pair = |(name, value): (&String, &Value)| {
                format!("{} = {}", key_path::written(&[name]), written(value))
            };
            format!("{{ {} }}", table.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        _ => value.to_string(),
    }
}

/// A text as TOML has it, whose escapes JSON has as well.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// As TOML, with where each value came from in a comment.
impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.files.is_empty() {
            writeln!(f, "# From {}, the environment, and the program.", self.files.join(", "))?;
        }
        for table in &self.tables {
            writeln!(f, "\n[{}]", table.name)?;
            let assignment = |line: &Line| format!("{} = {}", line.key, line.value);
            let lengths = table.values.iter().map(|line| assignment(line).chars().count());
            let width = lengths.filter(|length| *length <= 60).max().unwrap_or_default();
            for line in &table.values {
                writeln!(f, "{:width$}  # {}", assignment(line), line.origin)?;
            }
        }
        Ok(())
    }
}
