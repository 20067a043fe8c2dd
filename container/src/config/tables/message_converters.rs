//! `[message_converters.NAME]`.

use linkme::distributed_slice;

use super::super::place::Place;
use super::super::reading::{Reading, Setting};
use super::super::schema::{KeySchema, Kind, Shape, TABLES, TableSchema};
use super::super::value;
use super::{Named, beans};
use crate::beans::BeanSettings;

#[expect(unsafe_code, reason = "linkme names a link section")]
#[distributed_slice(TABLES)]
static SCHEMA: TableSchema = TableSchema {
    name: "message_converters",
    shape: Shape::Open,
    meaning: "A message converter under a name.",
    keys: &[KeySchema::new(
        "type",
        Kind::Text("the type name of a message converter, such as \"json\""),
        "`\"json\"`, `\"text\"`, `\"bytes\"`, `\"map\"`, `\"object\"`, or the type name of a `#[corriere::bean]` that is a `MessageConverter`, whose configuration the other keys are.",
    )
    .answers("`MessageConverter`")
    .required()],
};

/// `[message_converters.NAME]`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MessageConverterTable {
    /// Where the table stands.
    pub place: Place,
    /// The type name under which the converter is registered.
    pub converter_type: Setting<String>,
    /// The keys besides the type, for the converter itself.
    pub settings: BeanSettings,
}

impl MessageConverterTable {
    pub(super) fn read(reading: &Reading<'_>) -> Named<Self> {
        let tables = reading.named("message_converters").into_iter();
        tables
            .filter_map(|(name, table)| {
                let read = Self {
                    place: table.own_place(),
                    converter_type: table.required("type", value::text)?,
                    settings: beans::settings(&table),
                };
                Some((name.to_owned(), read))
            })
            .collect()
    }
}
