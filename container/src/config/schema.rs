//! The tables and keys that a configuration can have.

use linkme::distributed_slice;

/// Every table, collected from the files that read them.
#[distributed_slice]
pub(crate) static TABLES: [TableSchema];

/// A table of the configuration's first level.
#[derive(Debug)]
pub(crate) struct TableSchema {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) keys: &'static [KeySchema],
}

/// What stands under a table of the first level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Its keys.
    Single,
    /// Names that the user chose, each with the keys: `[templates.order_template]`.
    Named,
    /// As `Named`, with keys of the user's own beside ours: `[beans.mailer]`.
    Open,
}

/// A key.
#[derive(Debug)]
pub(crate) struct KeySchema {
    pub(crate) name: &'static str,
    /// What its value should be, to follow "expected".
    pub(crate) expects: &'static str,
    pub(crate) kind: Kind,
}

/// How much is known of a key.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A value of its own.
    Value,
    /// A list of texts; in the environment written as in the file, or with commas only.
    List,
    /// A table of further keys.
    Table(&'static [KeySchema]),
    /// Of another broker, and with no meaning in this one; says why. Any value will do.
    WithoutEffect(&'static str),
}

impl KeySchema {
    pub(crate) const fn value(name: &'static str, expects: &'static str) -> Self {
        Self { name, expects, kind: Kind::Value }
    }

    pub(crate) const fn list(name: &'static str, expects: &'static str) -> Self {
        Self { name, expects, kind: Kind::List }
    }

    pub(crate) const fn table(name: &'static str, keys: &'static [KeySchema]) -> Self {
        Self { name, expects: "a table", kind: Kind::Table(keys) }
    }

    pub(crate) const fn without_effect(name: &'static str, reason: &'static str) -> Self {
        Self { name, expects: "anything", kind: Kind::WithoutEffect(reason) }
    }
}

/// The names of the tables, sorted, since the linker's order means nothing.
pub(crate) fn table_names() -> Vec<&'static str> {
    let mut names: Vec<_> = TABLES.iter().map(|table| table.name).collect();
    names.sort_unstable();
    names
}

pub(crate) fn table(name: &str) -> Option<&'static TableSchema> {
    TABLES.iter().find(|table| table.name == name)
}

pub(crate) const DURATION: &str = "a duration such as \"20s\", \"500ms\", \"2m\" or \"1h30m\"";
pub(crate) const BOOLEAN: &str = "true or false";
pub(crate) const CONCURRENCY: &str =
    "a range of workers such as \"2-8\", or a single upper bound such as \"8\", from 1 up";
pub(crate) const ACKNOWLEDGE: &str = "\"auto\", \"client\", \"transacted\" or \"manual\"";
pub(crate) const PREFETCH: &str = "a whole number of messages, 0 or more";
pub(crate) const DESTINATION: &str = "the name of a destination";

#[cfg(test)]
mod tests {
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

    #[test]
    fn the_documentation_has_a_row_for_every_key_of_every_table_and_no_other_table() {
        let text = include_str!("../../../docs/configuration.md");
        let sections: Vec<_> = text.split("\n## `[").skip(1).collect();
        assert_eq!(sections.len(), TABLES.len());
        for table in TABLES {
            let heading =
                format!("{}{}]`", table.name, if table.shape == Shape::Single { "" } else { ".NAME" });
            let section = sections
                .iter()
                .find(|section| {
                    section.starts_with(&heading) || section.starts_with(&format!("{}]`", table.name))
                })
                .or_else(|| {
                    sections.iter().find(|section| section.starts_with(&format!("{}.ID]`", table.name)))
                });
            let section =
                section.unwrap_or_else(|| panic!("docs/configuration.md has no section for {heading}"));
            for key in table.keys {
                let names = match key.kind {
                    Kind::Table(keys) => {
                        keys.iter().map(|inner| format!("`{}.{}`", key.name, inner.name)).collect()
                    }
                    Kind::Value | Kind::List | Kind::WithoutEffect(_) => {
                        vec![format!("`{}`", key.name)]
                    }
                };
                for name in names {
                    assert!(
                        section.contains(&name),
                        "docs/configuration.md does not say what {name} in {heading} is"
                    );
                }
            }
        }
    }
}
