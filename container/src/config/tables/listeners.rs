//! `[listeners.ID]`.

use linkme::distributed_slice;

use super::super::error::ConfigError;
use super::super::place::Place;
use super::super::reading::{Reading, Setting};
use super::super::schema::{
    ACKNOWLEDGE, CONCURRENCY, DESTINATION, KeySchema, PREFETCH, Shape, TABLES, TableSchema,
};
use super::super::value;
use super::Named;
use crate::listener::{Acknowledge, Concurrency};

#[expect(unsafe_code, reason = "linkme names a link section")]
#[distributed_slice(TABLES)]
static SCHEMA: TableSchema = TableSchema {
    name: "listeners",
    shape: Shape::Named,
    keys: &[
        KeySchema::value("container", "the name of a listener container"),
        KeySchema::value("queue", DESTINATION),
        KeySchema::value("topic", DESTINATION),
        KeySchema::value("ack", ACKNOWLEDGE),
        KeySchema::value("concurrency", CONCURRENCY),
        KeySchema::value("prefetch", PREFETCH),
        KeySchema::value("send_to", DESTINATION),
        KeySchema::value("message_converter", "the name of a message converter"),
    ],
};

/// `[listeners.ID]`: what is different from the listener's attribute.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListenerTable {
    /// Where the table stands.
    pub place: Place,
    /// The container.
    pub container: Option<Setting<String>>,
    /// The queue to listen to.
    pub queue: Option<Setting<String>>,
    /// The topic to listen to.
    pub topic: Option<Setting<String>>,
    /// Who acknowledges, and when.
    pub acknowledge: Option<Acknowledge>,
    /// How many workers.
    pub concurrency: Option<Setting<Concurrency>>,
    /// How many messages may wait with a worker.
    pub prefetch: Option<u32>,
    /// Where the results go.
    pub send_to: Option<Setting<String>>,
    /// What reads the payloads and writes the results.
    pub message_converter: Option<Setting<String>>,
}

impl ListenerTable {
    pub(super) fn read(reading: &Reading<'_>) -> Named<Self> {
        reading
            .named("listeners")
            .into_iter()
            .map(|(id, table)| {
                let read = Self {
                    place: table.own_place(),
                    container: table.setting("container", value::text),
                    queue: table.setting("queue", value::text),
                    topic: table.setting("topic", value::text),
                    acknowledge: table.parsed("ack"),
                    concurrency: table
                        .parsed("concurrency")
                        .map(|value| Setting { value, place: table.place("concurrency") }),
                    prefetch: table.value("prefetch", value::count),
                    send_to: table.setting("send_to", value::text),
                    message_converter: table.setting("message_converter", value::text),
                };
                if let (Some(_), Some(_)) = (&read.queue, &read.topic) {
                    table.problem(ConfigError::Value {
                        place: table.own_place(),
                        found: "on a queue and a topic at once".to_owned(),
                        expected: "one of `queue` and `topic`".to_owned(),
                    });
                }
                (id.to_owned(), read)
            })
            .collect()
    }
}
