//! `[application]`.

use linkme::distributed_slice;

use super::super::reading::{Reading, Setting};
use super::super::schema::{KeySchema, Shape, TABLES, TableSchema};
use super::super::value;

#[expect(unsafe_code, reason = "linkme names a link section")]
#[distributed_slice(TABLES)]
static SCHEMA: TableSchema = TableSchema {
    name: "application",
    shape: Shape::Single,
    keys: &[KeySchema::list("expect", "a list of the ids of listeners")],
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
