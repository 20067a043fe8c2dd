//! Advisory topics: word of temporary destinations, which ActiveMQ's clients need before they send to one.
//!
//! A consumer on `ActiveMQ.Advisory.TempQueue` or `TempTopic` is none of the broker's: it is fed with the provider's
//! events. All other advisory topics can be consumed from, and nothing ever comes.

use std::collections::BTreeSet;

use corriere_core::{Destination, DestinationKind};

use crate::codec::Structure;
use crate::codec::primitive::PrimitiveMap;
use crate::codec::structures::{self as wire, DestinationOperation};

const PREFIX: &str = "ActiveMQ.Advisory.";
const QUEUES: &str = "ActiveMQ.Advisory.TempQueue";
const TOPICS: &str = "ActiveMQ.Advisory.TempTopic";

/// Which word a consumer wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    queues: bool,
    topics: bool,
}

impl Wanted {
    /// What a consumer from `destination` wants; `None` when that is not, or not only, advisory topics.
    pub(super) fn of(destination: &wire::Destination) -> Option<Self> {
        let mut wanted = Self { queues: false, topics: false };
        let mut count = 0;
        for element in destination.elements() {
            if element.kind != DestinationKind::Topic || !element.physical_name.starts_with(PREFIX) {
                return None;
            }
            // Behind a question mark stand options.
            let name = element.physical_name.split('?').next().unwrap_or_default();
            wanted.queues |= name == QUEUES;
            wanted.topics |= name == TOPICS;
            count += 1;
        }
        (count > 0).then_some(wanted)
    }

    fn wants(self, destination: &Destination) -> bool {
        if destination.is_topic() { self.topics } else { self.queues }
    }

    /// Whether anything will ever come.
    pub(super) fn is_anything(self) -> bool {
        self.queues || self.topics
    }
}

/// Word of a temporary destination, for one consumer.
#[derive(Debug)]
pub(super) struct Advisory {
    consumer: wire::ConsumerId,
    destination: Destination,
    exists: bool,
}

/// The consumers of one connection that want word, and what they were told.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    consumers: Vec<(wire::ConsumerId, Wanted)>,
    known: BTreeSet<Destination>,
}

impl Watchers {
    /// Adds a consumer, which is told of what is there.
    pub(super) fn add(&mut self, consumer: &wire::ConsumerId, wanted: Wanted) -> Vec<Advisory> {
        self.consumers.push((consumer.clone(), wanted));
        let there = self.known.iter().filter(|destination| wanted.wants(destination));
        there
            .map(|destination| Advisory {
                consumer: consumer.clone(),
                destination: destination.clone(),
                exists: true,
            })
            .collect()
    }

    /// Whether there is such a consumer.
    pub(super) fn has(&self, consumer: &wire::ConsumerId) -> bool {
        self.consumers.iter().any(|(known, _)| known == consumer)
    }

    /// Removes the consumers that are not to be kept.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&wire::ConsumerId) -> bool) {
        self.consumers.retain(|(consumer, _)| keep(consumer));
    }

    /// A temporary destination came or went: what that is to whom, unless it was known.
    pub(super) fn change(&mut self, destination: &Destination, exists: bool) -> Vec<Advisory> {
        let is_new =
            if exists { self.known.insert(destination.clone()) } else { self.known.remove(destination) };
        let told = self.consumers.iter().filter(|(_, wanted)| is_new && wanted.wants(destination));
        told.map(|(consumer, _)| Advisory {
            consumer: consumer.clone(),
            destination: destination.clone(),
            exists,
        })
        .collect()
    }
}

/// The broker as the sender of advisories.
#[derive(Debug)]
pub(super) struct Advisor {
    pub(super) broker_id: wire::BrokerId,
    pub(super) broker_name: std::sync::Arc<str>,
    pub(super) broker_url: std::sync::Arc<str>,
    last_message: std::sync::atomic::AtomicI64,
}

impl Advisor {
    pub(super) fn new(broker_id: &str, broker_name: std::sync::Arc<str>, broker_url: &str) -> Self {
        Self {
            broker_id: wire::BrokerId { value: broker_id.into() },
            broker_name,
            broker_url: broker_url.into(),
            last_message: std::sync::atomic::AtomicI64::new(0),
        }
    }

    /// An advisory as a message of its topic.
    pub(super) fn dispatch(&self, advisory: &Advisory) -> Structure {
        let Advisory { consumer, destination, exists } = advisory;
        let topic = if destination.is_topic() { TOPICS } else { QUEUES };
        let topic = wire::Destination::new(DestinationKind::Topic, topic);
        let temporary = wire::Destination::from(destination);
        let owner = temporary.owner().map(|owner| wire::ConnectionId { value: owner.into() });
        let operation_type = if *exists { DestinationOperation::Add } else { DestinationOperation::Remove };
        let change = wire::DestinationInfo {
            connection_id: owner,
            destination: Some(temporary),
            operation_type,
            ..wire::DestinationInfo::default()
        };
        let producer =
            wire::ProducerId { connection_id: self.broker_id.value.clone(), ..wire::ProducerId::default() };
        let number = self.last_message.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        let message = wire::Message {
            producer_id: Some(producer.clone()),
            message_id: Some(wire::MessageId {
                producer_id: Some(producer),
                producer_sequence_id: number,
                ..wire::MessageId::default()
            }),
            destination: Some(topic.clone()),
            message_type: Some("Advisory".into()),
            marshalled_properties: self.properties().encode().ok(),
            data_structure: Some(change.into()),
            ..wire::Message::default()
        };
        let dispatch = wire::MessageDispatch {
            consumer_id: consumer.clone(),
            destination: Some(topic),
            message: Some(Box::new(message)),
            ..wire::MessageDispatch::default()
        };
        dispatch.into()
    }

    fn properties(&self) -> PrimitiveMap {
        let mut properties = PrimitiveMap::default();
        properties.push("originBrokerId", self.broker_id.value.clone());
        properties.push("originBrokerName", self.broker_name.clone());
        properties.push("originBrokerURL", self.broker_url.clone());
        properties
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(names: &str) -> wire::Destination {
        wire::Destination::new(DestinationKind::Topic, names)
    }

    #[test]
    fn only_advisory_topics_are_not_the_brokers() {
        let both = Wanted::of(&topics("ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic"));
        assert_eq!(both, Some(Wanted { queues: true, topics: true }));
        let other = Wanted::of(&topics("ActiveMQ.Advisory.Connection")).unwrap();
        assert!(!other.is_anything());
        for not_only in
            ["ActiveMQ.Advisory.TempQueue,orders", "orders", "", "queue://ActiveMQ.Advisory.TempQueue"]
        {
            assert_eq!(Wanted::of(&topics(not_only)), None, "{not_only}");
        }
    }

    #[test]
    fn a_new_consumer_is_told_of_what_is_there_and_all_of_each_change_once() {
        let mut watchers = Watchers::default();
        let queue = Destination::temporary(DestinationKind::Queue, "ID:a:1").unwrap();
        let topic = Destination::temporary(DestinationKind::Topic, "ID:a:2").unwrap();
        assert!(watchers.change(&queue, true).is_empty() && watchers.change(&topic, true).is_empty());
        let consumer = wire::ConsumerId::default();
        let replayed = watchers.add(&consumer, Wanted { queues: true, topics: false });
        assert_eq!(replayed.len(), 1);
        assert!(watchers.change(&queue, true).is_empty(), "it was told");
        assert_eq!(watchers.change(&queue, false).len(), 1);
        assert!(watchers.change(&topic, false).is_empty(), "it is not wanted");
        watchers.retain(|_| false);
        assert!(watchers.change(&queue, true).is_empty());
    }

    #[test]
    fn an_advisory_carries_the_destination_and_its_owner() {
        let advisor = Advisor::new("ID:broker-1", "local".into(), "tcp://127.0.0.1:1");
        let destination = Destination::temporary(DestinationKind::Queue, "ID:host-1:1:7").unwrap();
        let consumer = wire::ConsumerId::default();
        let dispatch = advisor.dispatch(&Advisory { consumer, destination, exists: true });
        let Structure::MessageDispatch(dispatch) = dispatch else { panic!("it is a dispatch") };
        let message = dispatch.message.unwrap();
        let Some(Structure::DestinationInfo(info)) = message.data_structure else { panic!("it has one") };
        assert_eq!(info.connection_id.map(|id| id.value.to_string()).as_deref(), Some("ID:host-1:1"));
        assert_eq!(info.operation_type, DestinationOperation::Add);
        assert_eq!(message.message_type.as_deref(), Some("Advisory"));
    }
}
