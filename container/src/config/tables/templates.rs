//! `[templates.NAME]`.

use std::time::Duration;

use config::{Value, ValueKind};
use corriere_core::{DeliveryMode, Priority};
use corriere_templates::ReceiveTimeout;
use linkme::distributed_slice;

use super::super::place::Place;
use super::super::reading::{Reading, Setting};
use super::super::schema::{KeySchema, Kind, Shape, TABLES, TableSchema};
use super::super::value;
use super::Named;

#[expect(unsafe_code, reason = "linkme names a link section")]
#[distributed_slice(TABLES)]
static SCHEMA: TableSchema = TableSchema {
    name: "templates",
    shape: Shape::Named,
    meaning: "A `JmsTemplate`, which is a bean of this name.",
    keys: &[
        KeySchema::new(
            "connection_factory",
            Kind::Name("a connection factory"),
            "Where its connection comes from; not needed where there is only one.",
        ),
        KeySchema::new(
            "default_destination",
            Kind::Name("a destination"),
            "Where it sends and receives when a call does not say so.",
        )
        .answers("`spring.jms.template.default-destination`"),
        KeySchema::new(
            "receive_timeout",
            Kind::DurationOrMilliseconds { least: -1 },
            "How long a receive waits; `0` waits for ever, `-1` does not wait.",
        )
        .expecting(
            "a duration such as \"60s\", a number of milliseconds such as 60000, 0 to wait for ever, or -1 not to wait",
        )
        .default("0")
        .answers("`spring.jms.template.receive-timeout`"),
        KeySchema::new(
            "message_converter",
            Kind::Name("a message converter"),
            "What turns values into messages and back: a key of `[message_converters]`, or the type of a converter.",
        )
        .default("\"json\"")
        .answers("`MessageConverter`"),
        KeySchema::new(
            "delivery_mode",
            Kind::Words(&["persistent", "non_persistent"]),
            "Whether what it sends survives a stop of the broker.",
        )
        .default("\"persistent\"")
        .answers("`spring.jms.template.delivery-mode`"),
        KeySchema::new(
            "priority",
            Kind::Number { least: 0, most: 9 },
            "How urgent what it sends is; 9 is the most urgent.",
        )
        .default("4")
        .answers("`spring.jms.template.priority`"),
        KeySchema::new(
            "time_to_live",
            Kind::Duration { may_be_zero: true },
            "How long what it sends may wait before it expires; `\"0s\"` for ever.",
        )
        .default("\"0s\"")
        .answers("`spring.jms.template.time-to-live`"),
        KeySchema::new(
            "transacted",
            Kind::Boolean,
            "Whether a call outside a transacted listener is a transaction of its own, which is committed when the call \
             succeeds.",
        )
        .default("false")
        .answers("`spring.jms.template.session.transacted`"),
        KeySchema::new(
            "sessions",
            Kind::Number { least: 1, most: MAXIMUM_SESSIONS },
            "How many sends may be under way at once, and how many sessions are kept for the next calls.",
        )
        .default("128")
        .answers("`spring.jms.cache.session-cache-size`, `spring.activemq.pool.max-sessions-per-connection`"),
    ],
};

const MAXIMUM_SESSIONS: i64 = 65_536;

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
    /// Whether a call is a transaction of its own where no listener has one.
    pub transacted: Option<bool>,
    /// How many sends may be under way at once.
    pub sessions: Option<usize>,
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
                    transacted: table.value("transacted", value::boolean),
                    sessions: table.value("sessions", sessions),
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

fn sessions(value: &Value) -> Option<usize> {
    let number = value::integer(value).filter(|number| (1..=MAXIMUM_SESSIONS).contains(number))?;
    usize::try_from(number).ok()
}
