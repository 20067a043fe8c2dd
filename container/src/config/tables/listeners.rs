//! `[listeners.ID]`.

use linkme::distributed_slice;

use super::super::error::ConfigError;
use super::super::place::Place;
use super::super::reading::{Reading, Setting};
use super::super::schema::{KeySchema, Kind, Shape, TABLES, TableSchema};
use super::super::value;
use super::Named;
use super::listener_containers::{
    ACKNOWLEDGE, PREFETCH, PREFETCHED, acknowledge, prefetch, refuse_contradiction,
};
use crate::listener::{Acknowledge, Concurrency};

#[expect(unsafe_code, reason = "linkme names a link section")]
#[distributed_slice(TABLES)]
static SCHEMA: TableSchema = TableSchema {
    name: "listeners",
    shape: Shape::Named,
    meaning: "What is to be different from the attribute of the listener with this id.",
    keys: &[
        KeySchema::new(
            "enabled",
            Kind::Boolean,
            "Whether it is started, whatever its container says; of one that is not, the destination and the rest need not \
             exist.",
        )
        .answers("`spring.jms.listener.auto-startup`"),
        KeySchema::new("container", Kind::Name("a listener container"), "The container that it is in.")
            .answers("`@JmsListener(containerFactory)`"),
        KeySchema::new(
            "queue",
            Kind::Name("a destination"),
            "The queue that it listens to, instead of what the attribute says.",
        )
        .answers("`@JmsListener(destination)`"),
        KeySchema::new("topic", Kind::Name("a destination"), "The topic that it listens to, instead.")
            .answers("`@JmsListener(destination)`, `spring.jms.pub-sub-domain`"),
        KeySchema::new(
            "subscription",
            Kind::Text("a name"),
            "The name of its durable subscription to the topic: what is sent while the program does not run is kept for it.",
        )
        .answers("`@JmsListener(subscription)`, `spring.jms.subscription-durable`"),
        KeySchema::new(
            "client_id",
            Kind::Text("a name"),
            "The client id of its connection, under which that subscription is kept, instead of the connection factory's; only \
             one connection can have it at a time.",
        )
        .answers("`DefaultJmsListenerContainerFactory.setClientId`"),
        KeySchema::new("ack", ACKNOWLEDGE, "When a message is settled; as in a container.")
            .answers("`spring.jms.listener.session.acknowledge-mode`"),
        KeySchema::new(
            "transacted",
            Kind::Boolean,
            "`true` is `ack = \"transacted\"`, and wins over another `ack`, with a warning.",
        )
        .answers("`spring.jms.listener.session.transacted`"),
        KeySchema::new(
            "concurrency",
            Kind::Concurrency,
            "Bounds of the number of workers; of a listener to a topic `\"1\"`.",
        )
        .answers("`@JmsListener(concurrency)`"),
        KeySchema::new(
            "prefetch",
            PREFETCH,
            "Messages that a worker has ahead, whatever the destination's own option says.",
        )
        .expecting(PREFETCHED)
        .answers("`consumer.prefetchSize`"),
        KeySchema::new(
            "send_to",
            Kind::Name("a destination"),
            "Where replies go that the request names no address for.",
        )
        .answers("`@SendTo`"),
        KeySchema::new(
            "message_converter",
            Kind::Name("a message converter"),
            "What reads payloads and writes replies.",
        )
        .answers("`MessageConverter`"),
    ],
};

/// `[listeners.ID]`: what is different from the listener's attribute.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListenerTable {
    /// Where the table stands.
    pub place: Place,
    /// Whether it is started.
    pub enabled: Option<Setting<bool>>,
    /// The container.
    pub container: Option<Setting<String>>,
    /// The queue to listen to.
    pub queue: Option<Setting<String>>,
    /// The topic to listen to.
    pub topic: Option<Setting<String>>,
    /// The name of the durable subscription.
    pub subscription: Option<Setting<String>>,
    /// The client id of its connection.
    pub client_id: Option<Setting<String>>,
    /// Who acknowledges, and when.
    pub acknowledge: Option<Setting<Acknowledge>>,
    /// Whether it is with a transaction, whatever `acknowledge` says.
    pub transacted: Option<Setting<bool>>,
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
                    enabled: table.setting("enabled", value::boolean),
                    container: table.setting("container", value::text),
                    queue: table.setting("queue", value::text),
                    topic: table.setting("topic", value::text),
                    subscription: table.setting("subscription", value::text),
                    client_id: table.setting("client_id", value::text),
                    acknowledge: acknowledge(&table),
                    transacted: table.setting("transacted", value::boolean),
                    concurrency: table
                        .parsed("concurrency")
                        .map(|value| Setting { value, place: table.place("concurrency") }),
                    prefetch: table.value("prefetch", prefetch),
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
                refuse_contradiction(&table, read.transacted.as_ref(), read.acknowledge.as_ref());
                (id.to_owned(), read)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_attribute_says_the_table_can_say_otherwise() {
        // The crate of the macros names nobody, and nobody can name what is in it.
        let macros = include_str!("../../../../macros/src/listener/arguments.rs");
        let keys = macros.split("const KEYS: &[&str] =").nth(1).and_then(|rest| rest.split(']').next());
        let keys: Vec<_> = keys.expect("it has a list of them").split('"').skip(1).step_by(2).collect();
        assert!(keys.contains(&"queue") && keys.len() >= 7, "{keys:?}");
        for key in keys.into_iter().filter(|key| *key != "id") {
            assert!(SCHEMA.keys.iter().any(|known| known.name == key), "`[listeners.ID]` has no `{key}`");
        }
    }
}
