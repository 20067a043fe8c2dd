//! `[destinations]`.

use corriere_core::Destination;
use linkme::distributed_slice;

use super::super::destinations::Destinations;
use super::super::error::ConfigError;
use super::super::reading::{Reading, TableReader};
use super::super::schema::{KeySchema, Kind, Shape, TABLES, TableSchema};
use super::queue_or_topic::{QueueOrTopic, Wrong};

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
    let wrong = Wrong {
        both: "a queue and a topic at once",
        none: "without a physical name",
        expected: "{ queue = \"…\" } or { topic = \"…\" }",
    };
    let (made, place) = match QueueOrTopic::read(table, &wrong)? {
        QueueOrTopic::Queue(queue) => (Destination::queue(&queue.value), queue.place),
        QueueOrTopic::Topic(topic) => (Destination::topic(&topic.value), topic.place),
    };
    made.map_err(|source| {
        let expected = || "the physical name of a queue or a topic".to_owned();
        table.problem(place.error(expected, |place| ConfigError::Destination { place, source }));
    })
    .ok()
}
