//! What the store is told, and what waits for it.

use std::collections::BTreeMap;

use corriere_broker::store::{Removal, StoreError, StoreOperation, StoredId};
use corriere_core::Timestamp;
use corriere_core::provider::{AckKind, Confirmation, ProviderError};

use super::world::*;

/// An operation in short; `names` is what was appended so far.
fn line(names: &mut BTreeMap<StoredId, String>, operation: &StoreOperation) -> String {
    match operation {
        StoreOperation::Append { stored, queue, message, transaction, .. } => {
            let sequence = message.headers().message_id.as_ref().unwrap().sequence;
            let double = names.insert(*stored, format!("{} {sequence}", queue.name()));
            assert_eq!(double, None, "two messages are stored under one name");
            format!("append {} {sequence}{}", queue.name(), if transaction.is_some() { " tx" } else { "" })
        }
        StoreOperation::Remove { stored, reason, transaction } => {
            format!("remove {} {reason:?}{}", names[stored], if transaction.is_some() { " tx" } else { "" })
        }
        StoreOperation::DeliveryState { stored, state } => format!(
            "state {} {} {} {}",
            names[stored],
            state.failed_deliveries,
            state.not_before.map_or(0, |Timestamp(at)| at),
            state.conversion_failed
        ),
        StoreOperation::Commit(_) => "commit".to_owned(),
        StoreOperation::Rollback(_) => "rollback".to_owned(),
        other => format!("{other:?}"),
    }
}

fn lines(world: &World) -> Vec<String> {
    let mut names = BTreeMap::new();
    world.operations.iter().map(|operation| line(&mut names, operation)).collect()
}

#[test]
fn a_persistent_message_is_visible_and_confirmed_when_it_is_stored() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(9));
    world.hold_store = true;
    let first = world.send(connection, message(&orders, 1));
    let second = world.send(connection, message(&orders, 2));
    let passing = world.send(connection, non_persistent(&orders, 3));
    assert_eq!(sequences(&world.received(consumer)), [3], "one that is not stored waits for nobody");
    assert_eq!(world.outcome(passing), Some(&Ok(Confirmation::Done)));
    assert_eq!(world.outcome(first), None);
    world.store(Ok(()));
    assert_eq!(sequences(&world.received(consumer)), [1]);
    assert_eq!(world.outcome(first), Some(&Ok(Confirmation::Done)));
    assert_eq!(world.outcome(second), None);
    world.store(Ok(()));
    assert_eq!(world.pending(&orders), [3, 1, 2], "in the order in which they became visible");
}

#[test]
fn a_message_that_the_store_refused_is_refused() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    world.hold_store = true;
    let send = world.send(connection, message(&orders, 1));
    world.store(Err(StoreError::Io("disk is full".to_owned())));
    let refused = Err(ProviderError::Store { reason: "disk is full".to_owned() });
    assert_eq!(world.outcome(send), Some(&refused));
    assert_eq!((world.counts(&orders).came_in(), world.machine.memory_used()), (0, 0));
}

#[test]
fn an_acknowledgement_takes_effect_at_once_and_is_confirmed_when_it_is_stored() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(1));
    world.send(connection, message(&orders, 1));
    world.send(connection, message(&orders, 2));
    world.received(consumer);
    world.hold_store = true;
    let ack = world.submit(connection, acknowledge(consumer, 1, 1, AckKind::Standard, None));
    assert_eq!(sequences(&world.received(consumer)), [2], "the window is free before the disk is done");
    assert_eq!(world.outcome(ack), None);
    world.store(Ok(()));
    assert_eq!(world.outcome(ack), Some(&Ok(Confirmation::Done)));
}

#[test]
fn what_is_not_persistent_never_reaches_the_store() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(9));
    for sequence in 1..=3 {
        world.send(connection, non_persistent(&orders, sequence));
    }
    world.ack(consumer, 1, 1, AckKind::Standard);
    world.ack(consumer, 2, 2, failed());
    world.ack(consumer, 3, 3, AckKind::Standard);
    world.begin(connection, 1);
    world.send_in(connection, 1, non_persistent(&orders, 4));
    world.commit(connection, 1);
    assert!(world.operations.is_empty(), "{:?}", lines(&world));
}

#[test]
fn the_store_learns_of_counts_delays_and_dead_letters() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(9));
    world.send(connection, message(&orders, 1));
    world.hold_store = true;
    world.submit(connection, acknowledge(consumer, 1, 1, failed(), None));
    world.store(Ok(()));
    world.advance(std::time::Duration::from_secs(1));
    world.submit(connection, acknowledge(consumer, 2, 2, poison(), None));
    assert_eq!(world.unstored.len(), 1, "the removal and the dead letter are one batch");
    assert_eq!(
        lines(&world),
        [
            "append orders 1",
            "state orders 1 1 1001000 false",
            "remove orders 1 DeadLettered",
            "append DLQ.orders 1"
        ]
    );
    assert_eq!(world.counts(&queue("DLQ.orders")).pending, 0);
    world.store(Ok(()));
    assert_eq!(world.pending(&queue("DLQ.orders")), [1]);
}

#[test]
fn a_transaction_is_written_as_it_grows_and_takes_effect_by_its_commit() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(1));
    world.send(connection, message(&orders, 1));
    world.begin(connection, 1);
    world.send_in(connection, 1, message(&orders, 2));
    world.ack_in(consumer, 1, 1, 1);
    world.commit(connection, 1);
    world.begin(connection, 2);
    world.send_in(connection, 2, message(&orders, 3));
    world.submit(
        connection,
        corriere_core::provider::Command::Rollback {
            transaction: corriere_core::TransactionId::Local(2),
            cause: None,
        },
    );
    assert_eq!(
        lines(&world),
        [
            "append orders 1",
            "append orders 2 tx",
            "remove orders 1 Acknowledged tx",
            "commit",
            "append orders 3 tx",
            "rollback"
        ]
    );
}

#[test]
fn reasons_of_removal_are_told_apart() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(9));
    world.send(connection, message(&orders, 1));
    world.ack(consumer, 1, 1, AckKind::Standard);
    world.send(connection, with_expiration(&orders, 2, world.now.0));
    let reasons: Vec<_> = world
        .operations
        .iter()
        .filter_map(|operation| match operation {
            StoreOperation::Remove { reason, .. } => Some(*reason),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, [Removal::Acknowledged, Removal::Expired]);
}
