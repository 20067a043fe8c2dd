//! Destinations, messages, and what to look at in deliveries.

use std::sync::atomic::{AtomicU64, Ordering};

use corriere_broker::machine::ConnectionKey;
use corriere_core::provider::Dispatch;
use corriere_core::{DeliveryMode, Destination, DestinationKind, Message, MessageId, Priority, Timestamp};

pub(crate) fn queue(name: &str) -> Destination {
    Destination::queue(name).unwrap()
}

/// A temporary destination that a connection may make.
pub(crate) fn temporary(kind: DestinationKind, connection: ConnectionKey, number: u64) -> Destination {
    Destination::temporary(kind, &format!("ID:connection-{}:{number}", connection.0)).unwrap()
}

/// A persistent message, each of a producer of its own, so that none is one that was sent before.
pub(crate) fn message(destination: &Destination, sequence: u64) -> Message {
    static PRODUCERS: AtomicU64 = AtomicU64::new(0);
    let producer = format!("ID:test-{}", PRODUCERS.fetch_add(1, Ordering::Relaxed));
    let mut message = Message::text(format!("m{sequence}"));
    let headers = message.headers_mut();
    headers.destination = Some(destination.clone());
    headers.message_id = Some(MessageId { producer: producer.into(), sequence });
    message
}

pub(crate) fn non_persistent(destination: &Destination, sequence: u64) -> Message {
    let mut message = message(destination, sequence);
    message.headers_mut().delivery_mode = DeliveryMode::NonPersistent;
    message
}

pub(crate) fn with_priority(destination: &Destination, sequence: u64, priority: u8) -> Message {
    let mut message = message(destination, sequence);
    message.headers_mut().priority = Priority::new(priority).unwrap();
    message
}

pub(crate) fn with_expiration(destination: &Destination, sequence: u64, at: u64) -> Message {
    let mut message = message(destination, sequence);
    message.headers_mut().expiration = Some(Timestamp(at));
    message
}

/// The sequences of what was delivered.
pub(crate) fn sequences(dispatches: &[Dispatch]) -> Vec<u64> {
    dispatches.iter().map(sequence_of).collect()
}

pub(crate) fn sequence_of(dispatch: &Dispatch) -> u64 {
    dispatch.message.headers().message_id.as_ref().unwrap().sequence
}

/// Sequences and delivery counts of what was delivered.
pub(crate) fn counted(dispatches: &[Dispatch]) -> Vec<(u64, u32)> {
    dispatches.iter().map(|dispatch| (sequence_of(dispatch), dispatch.delivery_count)).collect()
}
