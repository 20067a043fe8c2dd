//! The tables and keys that a configuration can have, each with all that is known of it: what a configuration is checked
//! against, the tables of `docs/configuration.md`, and what editors know by `docs/configuration.schema.json`.

mod json;
mod kind;
#[cfg(test)]
mod markdown;
#[cfg(test)]
mod tests;

pub use json::json_schema;
pub(crate) use kind::Kind;
use linkme::distributed_slice;
#[cfg(test)]
pub(crate) use tests::samples;

/// Every table, collected from the files that read them.
#[distributed_slice]
pub(crate) static TABLES: [TableSchema];

/// A table of the configuration's first level.
#[derive(Debug)]
pub(crate) struct TableSchema {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// What it is, in Markdown.
    pub(crate) meaning: &'static str,
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
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeySchema {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// What it does, in Markdown.
    pub(crate) meaning: &'static str,
    /// What holds without it, as it is written in TOML; `None` where nothing does, or something that the meaning says.
    pub(crate) default: Option<&'static str>,
    /// What holds without it under the preset `activemq`, where that is something else.
    pub(crate) activemq: Option<&'static str>,
    /// The property of Spring Boot, or the option of ActiveMQ, that it answers, in Markdown.
    pub(crate) answers: Option<&'static str>,
    /// Whether its table means nothing without it.
    pub(crate) is_required: bool,
    /// What its value should be, where its kind alone says too little.
    expects: Option<&'static str>,
}

impl KeySchema {
    pub(crate) const fn new(name: &'static str, kind: Kind, meaning: &'static str) -> Self {
        Self {
            name,
            kind,
            meaning,
            default: None,
            activemq: None,
            answers: None,
            is_required: false,
            expects: None,
        }
    }

    /// A key of another broker that has no meaning in this one, and why.
    pub(crate) const fn without_effect(name: &'static str, reason: &'static str) -> Self {
        Self::new(name, Kind::WithoutEffect(reason), reason)
    }

    pub(crate) const fn default(mut self, toml: &'static str) -> Self {
        self.default = Some(toml);
        self
    }

    pub(crate) const fn activemq(mut self, toml: &'static str) -> Self {
        self.activemq = Some(toml);
        self
    }

    pub(crate) const fn answers(mut self, answers: &'static str) -> Self {
        self.answers = Some(answers);
        self
    }

    pub(crate) const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    pub(crate) const fn expecting(mut self, expects: &'static str) -> Self {
        self.expects = Some(expects);
        self
    }

    /// What its value should be, to follow "expected".
    pub(crate) fn expects(&self) -> String {
        self.expects.map_or_else(|| self.kind.expects(), str::to_owned)
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
