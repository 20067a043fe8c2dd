//! `[application]`.

use linkme::distributed_slice;

use super::super::reading::{Reading, Setting};
use super::super::schema::{KeySchema, Kind, Shape, TABLES, TableSchema};
use super::super::value;

#[expect(unsafe_code, reason = "linkme names a link section")]
#[distributed_slice(TABLES)]
static SCHEMA: TableSchema = TableSchema {
    name: "application",
    shape: Shape::Single,
    meaning: "The application itself.",
    keys: &[KeySchema::new(
        "expect",
        Kind::List("the ids of listeners"),
        "Listeners without which the start stops: a crate that nothing in the program names is left out by the linker. One \
         that is not `enabled` counts as there.",
    )],
};

/// `[application]`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ApplicationTable {
    /// Listeners without which the application does not start, against crates that were left out of the link.
    pub expect: Option<Setting<Vec<String>>>,
}

impl ApplicationTable {
    pub(super) fn read(reading: &Reading<'_>) -> Self {
        let Some(table) = reading.table("application") else { return Self::default() };
        Self { expect: table.setting("expect", value::texts) }
    }
}
