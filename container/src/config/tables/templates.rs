//! `[templates.NAME]`.

use std::time::Duration;

use config::{Value, ValueKind};
use corriere_core::{DeliveryMode, Priority};
use corriere_templates::ReceiveTimeout;
use linkme::distributed_slice;

use super::super::error::Place;
use super::super::reading::{Reading, Setting};
use super::super::schema::{DESTINATION, DURATION, KeySchema, Shape, TABLES, TableSchema};
use super::super::value;
use super::Named;

#[expect(unsafe_code, reason = "linkme names a link section")]
#[distributed_slice(TABLES)]
static SCHEMA: TableSchema = TableSchema {
    name: "templates",
    shape: Shape::Named,
    keys: &[
        KeySchema::value("connection_factory", "the name of a connection factory"),
        KeySchema::value("default_destination", DESTINATION),
        KeySchema::value(
            "receive_timeout",
            "a duration such as \"60s\", a number of milliseconds such as 60000, 0 to wait for ever, or -1 not to wait",
        ),
        KeySchema::value("message_converter", "the name of a message converter"),
        KeySchema::value("delivery_mode", "\"persistent\" or \"non_persistent\""),
        KeySchema::value("priority", "a whole number from 0 to 9"),
        KeySchema::value("time_to_live", DURATION),
    ],
};

/// `[templates.NAME]`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TemplateTable {
    /// Where the table stands.
    pub place: Place,
    /// Where the connections come from.
    pub connection_factory: Option<Setting<String>>,
    /// Where messages go to, and come from, when the call names no destination.
    pub default_destination: Option<Setting<String>>,
    /// How long a receive waits.
    pub receive_timeout: Option<ReceiveTimeout>,
    /// What turns values into messages and back.
    pub message_converter: Option<Setting<String>>,
    /// Whether sent messages survive a stop of the broker.
    pub delivery_mode: Option<DeliveryMode>,
    /// How urgent sent messages are.
    pub priority: Option<Priority>,
    /// How long sent messages live.
    pub time_to_live: Option<Duration>,
}

impl TemplateTable {
    pub(super) fn read(reading: &Reading<'_>) -> Named<Self> {
        reading
            .named("templates")
            .into_iter()
            .map(|(name, table)| {
                let read = Self {
                    place: table.own_place(),
                    connection_factory: table.setting("connection_factory", value::text),
                    default_destination: table.setting("default_destination", value::text),
                    receive_timeout: table.value("receive_timeout", receive_timeout),
                    message_converter: table.setting("message_converter", value::text),
                    delivery_mode: table.value("delivery_mode", delivery_mode),
                    priority: table.value("priority", priority),
                    time_to_live: table.value("time_to_live", value::duration),
                };
                (name.to_owned(), read)
            })
            .collect()
    }
}

/// 0 and -1 are Spring's, and mean the same with a unit, as nobody asks for a template that cannot wait by `"0s"`.
fn receive_timeout(value: &Value) -> Option<ReceiveTimeout> {
    let timeout = match value::integer(value) {
        Some(-1) => return Some(ReceiveTimeout::NoWait),
        Some(milliseconds) => Duration::from_millis(u64::try_from(milliseconds).ok()?),
        None => value::duration(value)?,
    };
    Some(if timeout.is_zero() { ReceiveTimeout::Indefinite } else { ReceiveTimeout::After(timeout) })
}

fn delivery_mode(value: &Value) -> Option<DeliveryMode> {
    match &value.kind {
        ValueKind::String(text) if text == "persistent" => Some(DeliveryMode::Persistent),
        ValueKind::String(text) if text == "non_persistent" => Some(DeliveryMode::NonPersistent),
        _ => None,
    }
}

fn priority(value: &Value) -> Option<Priority> {
    Priority::new(u8::try_from(value::integer(value)?).ok()?).ok()
}
