//! What is written is read, bit by bit.

use std::sync::Arc;

use bytes::Bytes;
use corriere_core::id::Xid;
use corriere_core::message::{
    Body, BytesBody, DeliveryMode, MapBody, ObjectBody, Priority, StreamBody, Value,
};
use corriere_core::{ConnectionId, Destination, DestinationKind, Message, MessageId, Timestamp};
use proptest::option;
use proptest::prelude::*;

use super::super::change::{Appended, Change, Recipients};
use super::super::reader::read_message;
use super::*;
use crate::store::{DeliveryState, Removal, SubscriptionName};

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<char>(), 0..12).prop_map(String::from_iter)
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        any::<i16>().prop_map(Value::from),
        any::<u16>().prop_map(Value::Char),
        any::<i32>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u32>().prop_map(|bits| Value::Float(f32::from_bits(bits))),
        any::<u64>().prop_map(|bits| Value::Double(f64::from_bits(bits))),
        text().prop_map(Value::from),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::from),
    ]
}

fn values() -> impl Strategy<Value = Vec<(String, Value)>> {
    prop::collection::vec((text(), value()), 0..6)
}

fn body() -> impl Strategy<Value = Body> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..3_000).prop_map(Bytes::from);
    prop_oneof![
        Just(Body::Empty),
        Just(Body::Text(None)),
        prop::collection::vec(any::<char>(), 0..600).prop_map(|text| Body::text(String::from_iter(text))),
        bytes().prop_map(|bytes| Body::Bytes(BytesBody::new(bytes))),
        bytes().prop_map(|bytes| Body::Object(ObjectBody::new(bytes))),
        values().prop_map(|values| {
            let mut body = MapBody::new();
            values.into_iter().for_each(|(name, value)| body.set_unchecked(name, value));
            Body::Map(body)
        }),
        values().prop_map(|values| {
            let mut body = StreamBody::new();
            for (_, value) in values {
                body.push(value);
            }
            Body::Stream(body)
        }),
    ]
}

fn destination() -> impl Strategy<Value = Destination> {
    use DestinationKind::{Queue, TemporaryQueue, TemporaryTopic, Topic};
    (prop::sample::select(vec![Queue, Topic, TemporaryQueue, TemporaryTopic]), text()).prop_map(
        |(kind, name)| {
            Destination::parse(&name, kind)
                .unwrap_or_else(|_| Destination::parse("orders/eu \u{540d}", kind).unwrap())
        },
    )
}

fn message_id() -> impl Strategy<Value = MessageId> {
    (text(), any::<u64>()).prop_map(|(producer, sequence)| MessageId {
        producer: Arc::from(format!("ID:{producer}")),
        sequence,
    })
}

fn message() -> impl Strategy<Value = Message> {
    let lasting = (0_u8..=9, any::<bool>(), any::<u64>(), option::of(any::<u64>()), option::of(message_id()));
    let optional =
        (option::of(destination()), option::of(text()), option::of(destination()), option::of(text()));
    (body(), values(), lasting, optional).prop_map(|(body, properties, lasting, optional)| {
        let mut message = Message::new(body);
        for (name, value) in properties {
            message.properties_mut_unchecked().set_unchecked(name, value);
        }
        let (priority, persistent, timestamp, expiration, message_id) = lasting;
        let (destination, correlation_id, reply_to, message_type) = optional;
        let headers = message.headers_mut();
        headers.priority = Priority::new(priority).unwrap();
        headers.delivery_mode =
            if persistent { DeliveryMode::Persistent } else { DeliveryMode::NonPersistent };
        headers.timestamp = Timestamp(timestamp);
        headers.expiration = expiration.map(Timestamp);
        headers.message_id = message_id;
        headers.destination = destination;
        headers.correlation_id = correlation_id.map(Arc::from);
        headers.reply_to = reply_to;
        headers.message_type = message_type.map(Arc::from);
        message
    })
}

fn xid() -> impl Strategy<Value = Xid> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..64).prop_map(Bytes::from);
    (any::<i32>(), bytes(), bytes()).prop_map(|(format, global, branch)| Xid { format, global, branch })
}

fn transaction() -> impl Strategy<Value = StoreTransaction> {
    prop_oneof![
        (text(), any::<u64>()).prop_map(|(connection, number)| StoreTransaction::Local(
            ConnectionId::foreign(&connection),
            number
        )),
        xid().prop_map(StoreTransaction::Distributed),
    ]
}

fn subscription() -> impl Strategy<Value = SubscriptionName> {
    (text(), text())
        .prop_map(|(client_id, name)| SubscriptionName { client_id: client_id.into(), name: name.into() })
}

fn operation() -> impl Strategy<Value = StoreOperation> {
    let stored = || any::<u64>().prop_map(StoredId);
    let arrival = || prop::sample::select(vec![Arrival::Sent, Arrival::MovedIn]);
    let reasons = vec![
        Removal::Acknowledged,
        Removal::DeadLettered,
        Removal::Expired,
        Removal::Discarded,
        Removal::Purged,
        Removal::MovedOut,
    ];
    let state = (any::<u32>(), option::of((any::<u64>(), any::<u64>())), any::<bool>()).prop_map(
        |(failed, delay, conversion)| DeliveryState {
            failed_deliveries: failed,
            not_before: delay.map(|(not_before, _)| Timestamp(not_before)),
            since: Timestamp(delay.map_or(0, |(_, since)| since)),
            conversion_failed: conversion,
        },
    );
    prop_oneof![
        4 => (stored(), destination(), arrival(), message(), option::of(transaction())).prop_map(
            |(stored, queue, arrival, message, transaction)| {
                StoreOperation::Append { stored, queue, arrival, message: Arc::new(message), transaction }
            }
        ),
        1 => (stored(), prop::sample::select(reasons), option::of(transaction()))
            .prop_map(|(stored, reason, transaction)| StoreOperation::Remove { stored, reason, transaction }),
        1 => (stored(), state).prop_map(|(stored, state)| StoreOperation::DeliveryState { stored, state }),
        4 => (stored(), destination(), prop::collection::vec(subscription(), 0..4), arrival(), message(), option::of(transaction()))
            .prop_map(|(stored, topic, subscriptions, arrival, message, transaction)| {
                let stored = StoredId(stored.0.min(u64::MAX - 4));
                let message = Arc::new(message);
                StoreOperation::Publish { stored, topic, subscriptions, arrival, message, transaction }
            }),
        1 => (subscription(), destination(), any::<bool>()).prop_map(|(subscription, topic, no_local)| {
            StoreOperation::CreateSubscription { subscription, topic, no_local }
        }),
        1 => subscription().prop_map(StoreOperation::RemoveSubscription),
        1 => xid().prop_map(StoreOperation::Prepare),
        1 => transaction().prop_map(StoreOperation::Commit),
        1 => transaction().prop_map(StoreOperation::Rollback),
    ]
}

/// What the index is to hear of an operation; `large` is taken as it comes.
fn expected(operation: &StoreOperation, found: &Change) -> Change {
    match operation.clone() {
        StoreOperation::Append { stored, queue, arrival, message, transaction } => {
            let to = Recipients::Queue(queue);
            Change::Append(appended(found, (stored, to, arrival), &message, transaction))
        }
        StoreOperation::Publish { stored, topic, subscriptions, arrival, message, transaction } => {
            let to = Recipients::Subscriptions(topic, subscriptions);
            Change::Append(appended(found, (stored, to, arrival), &message, transaction))
        }
        StoreOperation::CreateSubscription { subscription, topic, no_local } => {
            Change::CreateSubscription { subscription, topic, no_local }
        }
        StoreOperation::RemoveSubscription(subscription) => Change::RemoveSubscription(subscription),
        StoreOperation::Remove { stored, reason, transaction } => {
            Change::Remove { stored, reason, transaction }
        }
        StoreOperation::DeliveryState { stored, state } => Change::DeliveryState { stored, state },
        StoreOperation::Prepare(xid) => Change::Prepare(xid),
        StoreOperation::Commit(transaction) => Change::Commit(transaction),
        StoreOperation::Rollback(transaction) => Change::Rollback(transaction),
    }
}

fn appended(
    found: &Change,
    (stored, to, arrival): (StoredId, Recipients, Arrival),
    message: &Message,
    transaction: Option<StoreTransaction>,
) -> Appended {
    let headers = message.headers();
    Appended {
        stored,
        to,
        arrival,
        priority: headers.priority,
        expiration: headers.expiration,
        size: message.size() as u64,
        producer: headers.message_id.clone().map(|id| (id.producer, id.sequence)),
        transaction,
        large: match found {
            Change::Append(found) => found.large,
            _ => None,
        },
    }
}

/// The message of an operation, with its first name and how many it has.
fn of_message(operation: &StoreOperation) -> Option<(StoredId, usize, &Arc<Message>)> {
    match operation {
        StoreOperation::Append { stored, message, .. } => Some((*stored, 1, message)),
        StoreOperation::Publish { stored, subscriptions, message, .. } => {
            Some((*stored, subscriptions.len(), message))
        }
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_operation_comes_back_as_it_was(
        parts in prop::collection::vec(prop::collection::vec(operation(), 0..6), 1..8),
        writes in 1_usize..4,
    ) {
        let mut journal = Journal::new(8_192);
        let mut written = Vec::new();
        for parts in parts.chunks(parts.len().div_ceil(writes)) {
            written.extend(journal.write(parts).unwrap().entries);
        }
        let (entries, scanned) = journal.read(Tail::default()).unwrap();
        prop_assert_eq!(&entries, &written, "who wrote hears the same as who reads");
        prop_assert_eq!((scanned.end, scanned.cut), (journal.writer.end(), None));
        let operations = parts.into_iter().flatten().collect::<Vec<_>>();
        prop_assert_eq!(entries.len(), operations.len());
        for (operation, entry) in operations.iter().zip(&entries) {
            prop_assert_eq!(&entry.change, &expected(operation, &entry.change));
            // Two messages of one name are none of the broker's; their large bodies are in one file.
            if let Some((stored, names, message)) = of_message(operation)
                && operations.iter().filter_map(of_message).filter(|(other, ..)| *other == stored).count() == 1
            {
                for place in 0..names {
                    let reference = reference(entry);
                    let read = read_message(&journal.segments, stored.with(place), &reference);
                    prop_assert_eq!(read.as_ref(), Ok(message));
                }
            }
        }
    }
}

#[test]
fn the_count_of_deliveries_is_not_part_of_a_stored_message() {
    let mut journal = Journal::new(8_192);
    let received = Message::text("x").received(7);
    let StoreOperation::Append { stored, queue, arrival, .. } = append(1, 0) else { unreachable!() };
    let message = Arc::new(received.clone());
    let operation = StoreOperation::Append { stored, queue, arrival, message, transaction: None };
    let written = journal.write(&[vec![operation]]).unwrap();
    let entry = &written.entries[0];
    let read = read_message(&journal.segments, StoredId(1), &reference(entry)).unwrap();
    assert_eq!(read.headers().delivery_count, 0);
    assert_eq!(Message::clone(&read).received(7), received);
}
