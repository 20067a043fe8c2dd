//! `[connection_factories.NAME]`.

use linkme::distributed_slice;

use super::super::reading::{Reading, Setting};
use super::super::schema::{KeySchema, Shape, TABLES, TableSchema};
use super::super::value;
use super::Named;

#[expect(unsafe_code, reason = "linkme names a link section")]
#[distributed_slice(TABLES)]
static SCHEMA: TableSchema = TableSchema {
    name: "connection_factories",
    shape: Shape::Named,
    keys: &[KeySchema::value("url", "the URL of a broker, such as \"vm://local\"")],
};

/// `[connection_factories.NAME]`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionFactoryTable {
    /// The broker's URL with the factory's options.
    pub url: Setting<String>,
}

impl ConnectionFactoryTable {
    pub(super) fn read(reading: &Reading<'_>) -> Named<Self> {
        let tables = reading.named("connection_factories").into_iter();
        tables
            .filter_map(|(name, table)| {
                Some((name.to_owned(), Self { url: table.required("url", value::text)? }))
            })
            .collect()
    }
}
