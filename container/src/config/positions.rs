//! Where the keys and values of a TOML text stand.
//!
//! The `config` crate keeps the file of a value but not its place in it.

use std::collections::HashMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

/// Bytes of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) key: Range<usize>,
    /// For a table with a header of its own, the header.
    pub(super) value: Range<usize>,
    /// Whether there are others within it.
    pub(super) is_table: bool,
}

/// The places of everything in a TOML text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Positions(HashMap<Vec<String>, Position>);

impl Positions {
    /// Finds all of them.
    ///
    /// # Errors
    /// All that makes the text no TOML.
    pub(super) fn of(text: &str) -> Result<Self, Vec<TextFault>> {
        let (table, errors) = DeTable::parse_recoverable(text);
        let fault = |error: Error| TextFault {
            range: error.span().unwrap_or_default(),
            message: error.message().to_owned(),
        };
        let faults = errors.into_iter().map(fault).collect();
        let mut notes = Notes { positions: HashMap::new(), faults };
        notes.table(table.get_ref(), &mut Vec::new());
        let Notes { positions, faults } = notes;
        if faults.is_empty() { Ok(Self(positions)) } else { Err(faults) }
    }

    /// The place of a key, or of the nearest table around it that has one, and whether it is the key's own.
    pub(super) fn nearest(&self, path: &[&str]) -> Option<(&Position, bool)> {
        (1..=path.len()).rev().find_map(|length| {
            let part: Vec<String> = path[..length].iter().map(ToString::to_string).collect();
            self.0.get(&part).map(|position| (position, length == path.len()))
        })
    }

    /// Every key with its place, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[String], &Position)> {
        self.0.iter().map(|(path, position)| (path.as_slice(), position))
    }
}

/// What makes a text no TOML, or none that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextFault {
    pub(super) range: Range<usize>,
    pub(super) message: String,
}

struct Notes {
    positions: HashMap<Vec<String>, Position>,
    faults: Vec<TextFault>,
}

impl Notes {
    fn table(&mut self, table: &DeTable<'_>, path: &mut Vec<String>) {
        for (key, value) in table {
            path.push(key.get_ref().to_string());
            self.value(&key.span(), value, path);
            path.pop();
        }
    }

    /// Notes a value; the items of a list are noted under their numbers.
    fn value(&mut self, key: &Range<usize>, value: &Spanned<DeValue<'_>>, path: &mut Vec<String>) {
        let is_table = matches!(value.get_ref(), DeValue::Table(_));
        self.positions.insert(path.clone(), Position { key: key.clone(), value: value.span(), is_table });
        match value.get_ref() {
            DeValue::Table(inner) => self.table(inner, path),
            DeValue::Array(items) => {
                for (number, item) in items.iter().enumerate() {
                    path.push(number.to_string());
                    self.value(&item.span(), item, path);
                    path.pop();
                }
            }
            DeValue::Integer(number) if i64::from_str_radix(number.as_str(), number.radix()).is_err() => {
                let message = "the number is too large; expected one of 64 bits".to_owned();
                self.faults.push(TextFault { range: value.span(), message });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_found_wherever_they_stand() {
        let text = "# a comment\n[broker]\nname = \"local\"\nstore.ack_sync = true\n\n[ templates . \"order.template\" ]\n\
                    receive_timeout = 5\nnote = \"\"\"\nname = 1\n\"\"\"\nlast = 1\n[destinations]\norders = { queue = \"x\" }\n";
        let positions = Positions::of(text).unwrap();
        let found = |path: &[&str]| {
            positions
                .nearest(path)
                .map(|(position, own)| (&text[position.key.clone()], &text[position.value.clone()], own))
        };
        assert_eq!(found(&["broker", "name"]), Some(("name", "\"local\"", true)));
        assert_eq!(found(&["broker", "store", "ack_sync"]), Some(("ack_sync", "true", true)));
        assert_eq!(found(&["templates", "order.template", "receive_timeout"]).unwrap().1, "5");
        assert_eq!(found(&["templates", "order.template", "last"]).unwrap().1, "1");
        assert_eq!(found(&["destinations", "orders", "queue"]), Some(("queue", "\"x\"", true)));
        assert_eq!(found(&["broker", "absent"]), Some(("broker", "[broker]", false)));
        assert_eq!(found(&["beans"]), None);
    }

    #[test]
    fn every_fault_of_a_text_is_told() {
        assert_eq!(Positions::of("a = \nb = 1\nc = \"x\nd = 2\n").unwrap_err().len(), 2);
    }
}
