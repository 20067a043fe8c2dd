//! `[destinations]`.

use corriere_core::Destination;
use linkme::distributed_slice;

use super::super::destinations::Destinations;
use super::super::error::ConfigError;
use super::super::reading::{Reading, TableReader};
use super::super::schema::{KeySchema, Kind, Shape, TABLES, TableSchema};
use super::super::value;

#[expect(unsafe_code, reason = "linkme names a link section")]
#[distributed_slice(TABLES)]
static SCHEMA: TableSchema = TableSchema {
    name: "destinations",
    shape: Shape::Named,
    meaning: "A queue or a topic under the name that code and configuration have for it.",
    keys: &[
        KeySchema::new(
            "queue",
            Kind::Text("the physical name of a queue"),
            "The name of the queue at the broker; `?consumer.prefetchSize=N` may follow.",
        )
        .answers("`DestinationResolver`, `new ActiveMQQueue(…)`"),
        KeySchema::new(
            "topic",
            Kind::Text("the physical name of a topic"),
            "The name of the topic at the broker. One of the two is given.",
        )
        .answers("`spring.jms.pub-sub-domain`, `new ActiveMQTopic(…)`"),
    ],
};

pub(super) fn read(reading: &Reading<'_>) -> Destinations {
    if reading.table("destinations").is_none() {
        return Destinations::default();
    }
    let tables = reading.named("destinations").into_iter();
    Destinations::of_table(
        tables.filter_map(|(name, table)| Some((name.to_owned(), destination(&table)?))).collect(),
    )
}

fn destination(table: &TableReader<'_>) -> Option<Destination> {
    let queue = table.setting("queue", value::text);
    let topic = table.setting("topic", value::text);
    let (made, place) = match (queue, topic) {
        (Some(queue), None) => (Destination::queue(&queue.value), queue.place),
        (None, Some(topic)) => (Destination::topic(&topic.value), topic.place),
        (Some(_), Some(_)) => {
            table.problem(ConfigError::Value {
                place: table.own_place(),
                found: "a queue and a topic at once".to_owned(),
                expected: "one of them".to_owned(),
            });
            return None;
        }
        (None, None) => {
            if !table.values().contains_key("queue") && !table.values().contains_key("topic") {
                table.problem(ConfigError::Value {
                    place: table.own_place(),
                    found: "without a physical name".to_owned(),
                    expected: "{ queue = \"…\" } or { topic = \"…\" }".to_owned(),
                });
            }
            return None;
        }
    };
    made.map_err(|source| {
        let expected = || "the physical name of a queue or a topic".to_owned();
        table.problem(place.error(expected, |place| ConfigError::Destination { place, source }));
    })
    .ok()
}
