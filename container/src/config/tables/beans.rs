//! `[beans.NAME]`.

use std::collections::HashMap;

use config::{Map, Value, ValueKind};
use linkme::distributed_slice;

use super::super::place::Place;
use super::super::reading::{Reading, Setting, TableReader};
use super::super::schema::{KeySchema, Kind, Shape, TABLES, TableSchema};
use super::super::value;
use super::Named;
use crate::beans::{BeanSettings, KeyPlaces};

#[expect(unsafe_code, reason = "linkme names a link section")]
#[distributed_slice(TABLES)]
static SCHEMA: TableSchema = TableSchema {
    name: "beans",
    shape: Shape::Open,
    meaning: "A bean of a type of your own.",
    keys: &[KeySchema::new(
        "type",
        Kind::Text("the type name of a `#[corriere::bean]`"),
        "The type name of a `#[corriere::bean]`. All other keys are the bean's own, for its constructor.",
    )
    .answers("`@Bean`, `@ConfigurationProperties`")
    .required()],
};

/// `[beans.NAME]`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BeanTable {
    /// Where the table stands.
    pub place: Place,
    /// The type name of a `#[corriere::bean]`.
    pub bean_type: Setting<String>,
    /// The keys besides the type, for the bean itself.
    pub settings: BeanSettings,
}

impl BeanTable {
    pub(super) fn read(reading: &Reading<'_>) -> Named<Self> {
        reading
            .named("beans")
            .into_iter()
            .filter_map(|(name, table)| {
                let bean_type = table.required("type", value::text)?;
                let settings = settings(&table);
                Some((name.to_owned(), Self { place: table.own_place(), bean_type, settings }))
            })
            .collect()
    }
}

/// What stands in a table besides its type.
pub(super) fn settings(table: &TableReader<'_>) -> BeanSettings {
    let others = table.values().iter().filter(|(key, _)| *key != "type");
    let settings: Map<String, Value> = others.map(|(key, value)| (key.clone(), value.clone())).collect();
    let mut places = HashMap::new();
    note_places(table, &settings, &mut Vec::new(), &mut places);
    BeanSettings::new(Value::new(None, settings), places)
}

fn note_places<'a>(
    table: &TableReader<'_>,
    values: &'a Map<String, Value>,
    path: &mut Vec<&'a str>,
    places: &mut HashMap<Vec<String>, KeyPlaces>,
) {
    for (key, value) in values {
        path.push(key);
        let owned = path.iter().map(ToString::to_string).collect();
        places
            .insert(owned, KeyPlaces { key: table.key_place_within(path), value: table.place_within(path) });
        if let ValueKind::Table(inner) = &value.kind {
            note_places(table, inner, path, places);
        }
        path.pop();
    }
}
