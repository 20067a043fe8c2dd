//! `[listener_containers.NAME]`.

use std::time::Duration;

use linkme::distributed_slice;

use super::super::reading::{Reading, Setting};
use super::super::schema::{
    ACKNOWLEDGE, CONCURRENCY, DURATION, KeySchema, PREFETCH, Shape, TABLES, TableSchema,
};
use super::super::value;
use super::Named;
use crate::listener::{Acknowledge, Concurrency};

#[expect(unsafe_code, reason = "linkme names a link section")]
#[distributed_slice(TABLES)]
static SCHEMA: TableSchema = TableSchema {
    name: "listener_containers",
    shape: Shape::Named,
    keys: &[
        KeySchema::value("connection_factory", "the name of a connection factory"),
        KeySchema::value("concurrency", CONCURRENCY),
        KeySchema::value("shutdown_timeout", DURATION),
        KeySchema::value("prefetch", PREFETCH),
        KeySchema::value("message_converter", "the name of a message converter"),
        KeySchema::value("ack", ACKNOWLEDGE),
    ],
};

/// `[listener_containers.NAME]`: what holds for the listeners of this container where they say nothing else.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ListenerContainerTable {
    /// Where the connections come from.
    pub connection_factory: Option<Setting<String>>,
    /// How many workers.
    pub concurrency: Option<Concurrency>,
    /// How long a stop waits for the handlers that are at work.
    pub shutdown_timeout: Option<Duration>,
    /// How many messages may wait with a worker.
    pub prefetch: Option<u32>,
    /// What reads the payloads.
    pub message_converter: Option<Setting<String>>,
    /// Who acknowledges, and when.
    pub acknowledge: Option<Acknowledge>,
}

impl ListenerContainerTable {
    pub(super) fn read(reading: &Reading<'_>) -> Named<Self> {
        reading
            .named("listener_containers")
            .into_iter()
            .map(|(name, table)| {
                let read = Self {
                    connection_factory: table.setting("connection_factory", value::text),
                    concurrency: table.parsed("concurrency"),
                    shutdown_timeout: table.value("shutdown_timeout", value::duration),
                    prefetch: table.value("prefetch", value::count),
                    message_converter: table.setting("message_converter", value::text),
                    acknowledge: table.parsed("ack"),
                };
                (name.to_owned(), read)
            })
            .collect()
    }
}
