//! `[listener_containers.NAME]`.

use std::time::Duration;

use config::Value;
use linkme::distributed_slice;

use super::super::error::ConfigError;
use super::super::reading::{Reading, Setting, TableReader};
use super::super::schema::{KeySchema, Kind, Shape, TABLES, TableSchema};
use super::super::value;
use super::Named;
use crate::listener::{Acknowledge, Concurrency};

#[expect(unsafe_code, reason = "linkme names a link section")]
#[distributed_slice(TABLES)]
static SCHEMA: TableSchema = TableSchema {
    name: "listener_containers",
    shape: Shape::Named,
    meaning: "What the listeners of a container share; a listener is in `default` unless it says `container`.",
    keys: &[
        KeySchema::new(
            "enabled",
            Kind::Boolean,
            "Whether its listeners are started; of one that is not, the destination and the rest need not exist.",
        )
        .default("true")
        .answers("`spring.jms.listener.auto-startup`"),
        KeySchema::new(
            "connection_factory",
            Kind::Name("a connection factory"),
            "Where the connections come from; not needed where there is only one.",
        )
        .answers("`DefaultJmsListenerContainerFactory`"),
        KeySchema::new(
            "concurrency",
            Kind::Concurrency,
            "Bounds of the number of workers, `\"2-8\"`; a single number is the upper bound. A listener to a topic always has \
             one.",
        )
        .default("\"1\"")
        .answers("`spring.jms.listener.min-concurrency`, `max-concurrency`"),
        KeySchema::new(
            "prefetch",
            PREFETCH,
            "Messages that a worker has ahead. The option `consumer.prefetchSize` of the destination wins over it.",
        )
        .default("10")
        .expecting(PREFETCHED)
        .answers("`consumer.prefetchSize`"),
        KeySchema::new(
            "message_converter",
            Kind::Name("a message converter"),
            "What reads payloads and writes replies: a key of `[message_converters]`, or the type of a converter.",
        )
        .default("\"json\"")
        .answers("`MessageConverter`"),
        KeySchema::new(
            "ack",
            ACKNOWLEDGE,
            "When a message is settled: when the function has returned `Ok`, by the function itself or else then, then too but on \
             a topic told of many at once, by the function or else then one by one, with the transaction, or by the function \
             alone.",
        )
        .default("\"auto\"")
        .answers("`spring.jms.listener.session.acknowledge-mode`"),
        KeySchema::new(
            "transacted",
            Kind::Boolean,
            "`true` is `ack = \"transacted\"`, and wins over another `ack`, with a warning.",
        )
        .answers("`spring.jms.listener.session.transacted`"),
        KeySchema::new(
            "shutdown_timeout",
            Kind::Duration { may_be_zero: true },
            "How long a stop waits for functions at work.",
        )
        .default("\"20s\"")
        .answers("`spring.lifecycle.timeout-per-shutdown-phase`"),
        KeySchema::new(
            "idle_timeout",
            Kind::Duration { may_be_zero: false },
            "How long a worker above the lower bound waits for a message before it ends.",
        )
        .default("\"10s\"")
        .answers("`idleReceivesPerTaskLimit`"),
        KeySchema::new(
            "recovery_interval",
            Kind::Duration { may_be_zero: false },
            "The pause before the second attempt to connect; it doubles with each further one.",
        )
        .default("\"500ms\"")
        .answers("`recoveryInterval`, `backOff`"),
        KeySchema::new(
            "maximum_recovery_interval",
            Kind::Duration { may_be_zero: false },
            "The longest pause between two attempts to connect.",
        )
        .default("\"30s\"")
        .answers("`backOff`"),
    ],
};

pub(super) const ACKNOWLEDGE: Kind =
    Kind::Words(&["auto", "client", "dups_ok", "individual", "transacted", "manual"]);
pub(super) const PREFETCHED: &str = "a whole number of messages, 1 or more";
/// A listener does not pull.
pub(super) const PREFETCH: Kind = Kind::Number { least: 1, most: u32::MAX as i64 };

/// `[listener_containers.NAME]`: what holds for the listeners of this container where they say nothing else.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ListenerContainerTable {
    /// Whether its listeners are started.
    pub enabled: Option<Setting<bool>>,
    /// Where the connections come from.
    pub connection_factory: Option<Setting<String>>,
    /// How many workers.
    pub concurrency: Option<Concurrency>,
    /// How long a stop waits for the handlers that are at work.
    pub shutdown_timeout: Option<Duration>,
    /// How long a worker above the lower bound waits for a message before it ends.
    pub idle_timeout: Option<Duration>,
    /// The pause before the second attempt to connect.
    pub recovery_interval: Option<Duration>,
    /// The longest pause between two attempts to connect.
    pub maximum_recovery_interval: Option<Duration>,
    /// How many messages may wait with a worker.
    pub prefetch: Option<u32>,
    /// What reads the payloads.
    pub message_converter: Option<Setting<String>>,
    /// Who acknowledges, and when.
    pub acknowledge: Option<Setting<Acknowledge>>,
    /// Whether it is with a transaction, whatever `acknowledge` says.
    pub transacted: Option<Setting<bool>>,
}

impl ListenerContainerTable {
    pub(super) fn read(reading: &Reading<'_>) -> Named<Self> {
        reading
            .named("listener_containers")
            .into_iter()
            .map(|(name, table)| {
                let above_zero =
                    |key| table.value(key, |value| value::duration(value).filter(|time| !time.is_zero()));
                let read = Self {
                    enabled: table.setting("enabled", value::boolean),
                    connection_factory: table.setting("connection_factory", value::text),
                    concurrency: table.parsed("concurrency"),
                    shutdown_timeout: table.value("shutdown_timeout", value::duration),
                    idle_timeout: above_zero("idle_timeout"),
                    recovery_interval: above_zero("recovery_interval"),
                    maximum_recovery_interval: above_zero("maximum_recovery_interval"),
                    prefetch: table.value("prefetch", prefetch),
                    message_converter: table.setting("message_converter", value::text),
                    acknowledge: acknowledge(&table),
                    transacted: table.setting("transacted", value::boolean),
                };
                refuse_contradiction(&table, read.transacted.as_ref(), read.acknowledge.as_ref());
                (name.to_owned(), read)
            })
            .collect()
    }
}

/// How many messages may wait with a worker.
pub(super) fn prefetch(value: &Value) -> Option<u32> {
    value::count(value).filter(|count| *count > 0)
}

pub(super) fn acknowledge(table: &TableReader<'_>) -> Option<Setting<Acknowledge>> {
    table.parsed("ack").map(|value| Setting { value, place: table.place("ack") })
}

/// Refuses a table that says both that its listeners are transacted and that they are not.
pub(super) fn refuse_contradiction(
    table: &TableReader<'_>,
    transacted: Option<&Setting<bool>>,
    acknowledge: Option<&Setting<Acknowledge>>,
) {
    if let (Some(transacted), Some(acknowledge)) = (transacted, acknowledge)
        && let Some(error) = contradiction(transacted, acknowledge)
    {
        table.problem(error);
    }
}

/// The error of `transacted = false` where the acknowledge mode is that of a transaction.
pub(crate) fn contradiction(
    transacted: &Setting<bool>,
    acknowledge: &Setting<Acknowledge>,
) -> Option<ConfigError> {
    (!transacted.value && acknowledge.value == Acknowledge::Transacted).then(|| ConfigError::Value {
        place: transacted.place.clone(),
        found: format!("at odds with {}, the mode of a transacted listener", acknowledge.place),
        expected: "`transacted = true` beside that mode, or another mode".to_owned(),
    })
}
