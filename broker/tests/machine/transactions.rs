//! Transactions: all of it or nothing.

use std::time::Duration;

use corriere_broker::Settings;
use corriere_broker::machine::Input;
use corriere_broker::store::StoreError;
use corriere_core::provider::{AckKind, Command, Confirmation, ProviderError};
use corriere_core::{ProducerId, RedeliveryPolicy, SessionId, TransactionId};

use super::world::*;

fn is_rolled_back(outcome: Option<&Outcome>) -> bool {
    matches!(outcome, Some(Err(ProviderError::RolledBack { .. })))
}

#[test]
fn nothing_of_a_transaction_shows_before_its_commit_and_all_of_it_after() {
    let mut world = World::new();
    let (connection, orders, emails) = (world.connect(), queue("orders"), queue("emails"));
    world.send(connection, message(&orders, 1));
    let consumer = world.consumer(connection, &orders, window(1));
    let reader = world.consumer(connection, &emails, window(9));
    world.begin(connection, 7);
    world.ack_in(consumer, 7, 1, 1);
    world.send_in(connection, 7, message(&emails, 2));
    world.send_in(connection, 7, non_persistent(&emails, 3));
    assert_eq!(world.counts(&orders).pending, 1);
    assert!(world.received(reader).is_empty());
    let commit = world.commit(connection, 7);
    assert_eq!(world.outcome(commit), Some(&Ok(Confirmation::Done)));
    assert_eq!(world.counts(&orders).acknowledged, 1);
    assert_eq!(sequences(&world.received(reader)), [2, 3]);
}

#[test]
fn a_rollback_undoes_sends_and_leaves_deliveries_with_their_consumer() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    world.send(connection, message(&orders, 1));
    let consumer = world.consumer(connection, &orders, window(1));
    world.received(consumer);
    world.begin(connection, 1);
    world.ack_in(consumer, 1, 1, 1);
    world.send_in(connection, 1, message(&orders, 2));
    world.roll_back(connection, 1);
    assert_eq!(world.pending(&orders), [1]);
    assert!(world.received(consumer).is_empty(), "still in flight, nothing new");
    world.ack(consumer, 1, 1, AckKind::Standard);
    assert_eq!((world.counts(&orders).pending, world.machine.memory_used()), (0, 0));
}

#[test]
fn a_refused_send_makes_the_commit_roll_back() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    world.send(connection, message(&orders, 100));
    let consumer = world.consumer(connection, &orders, window(20));
    world.begin(connection, 1);
    world.ack_in(consumer, 1, 1, 1);
    for sequence in 1..=10 {
        if sequence == 2 {
            let mut without_destination = message(&orders, 2);
            without_destination.headers_mut().destination = None;
            let refused = world.send_in(connection, 1, without_destination);
            assert!(matches!(world.outcome(refused), Some(Err(ProviderError::InvalidDestination { .. }))));
        } else {
            world.send_in(connection, 1, message(&orders, sequence));
        }
    }
    let commit = world.commit(connection, 1);
    assert!(is_rolled_back(world.outcome(commit)));
    assert_eq!(world.pending(&orders), [100]);
    world.begin(connection, 2);
    world.ack_in(consumer, 2, 1, 1);
    world.send_in(connection, 2, message(&orders, 11));
    let next = world.commit(connection, 2);
    assert_eq!(world.outcome(next), Some(&Ok(Confirmation::Done)));
    assert_eq!(world.pending(&orders), [11]);
}

#[test]
fn a_refused_acknowledgement_makes_the_commit_roll_back() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(1));
    world.begin(connection, 1);
    world.send_in(connection, 1, message(&orders, 1));
    let unknown = Consumer { subscription: corriere_core::SubscriptionId(999), ..consumer };
    let transaction = Some(TransactionId::Local(1));
    let refused = world.ask(connection, acknowledge(unknown, 1, 1, AckKind::Standard, transaction));
    assert!(matches!(refused, Err(ProviderError::Unknown { .. })));
    let commit = world.commit(connection, 1);
    assert!(is_rolled_back(world.outcome(commit)));
    assert_eq!(world.counts(&orders).came_in(), 0);
}

#[test]
fn a_commit_that_the_store_fails_is_rolled_back() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    world.send(connection, message(&orders, 1));
    let consumer = world.consumer(connection, &orders, window(9));
    world.received(consumer);
    world.hold_store = true;
    world.begin(connection, 1);
    world.ack_in(consumer, 1, 1, 1);
    world.send_in(connection, 1, message(&orders, 2));
    let commit = world.commit(connection, 1);
    assert_eq!(world.outcome(commit), None);
    // The acknowledgement and the send.
    world.store(Ok(()));
    world.store(Ok(()));
    world.store(Err(StoreError::Io("disk is full".to_owned())));
    assert!(is_rolled_back(world.outcome(commit)));
    assert_eq!(world.pending(&orders), [1]);
    assert!(world.received(consumer).is_empty());
}

#[test]
fn a_send_that_the_store_fails_rolls_its_transaction_back() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    world.hold_store = true;
    world.begin(connection, 1);
    let send = world.send_in(connection, 1, message(&orders, 1));
    assert_eq!(world.outcome(send), Some(&Ok(Confirmation::Done)), "accepted");
    world.store(Err(StoreError::Io("disk is full".to_owned())));
    let commit = world.commit(connection, 1);
    assert!(is_rolled_back(world.outcome(commit)));
    assert_eq!(world.machine.memory_used(), 0);
}

#[test]
fn a_locked_message_is_out_of_reach_until_the_transaction_ends() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    world.send(connection, message(&orders, 1));
    let consumer = world.consumer(connection, &orders, window(1));
    world.begin(connection, 1);
    world.ack_in(consumer, 1, 1, 1);
    world.ack(consumer, 1, 1, AckKind::Standard);
    assert_eq!(world.counts(&orders).pending, 1, "it is the transaction's now");
    world.close(consumer, 1);
    world.close_session(consumer);
    let other = world.consumer(connection, &orders, window(1));
    assert!(world.received(other).is_empty());
    world.roll_back(connection, 1);
    assert_eq!(counted(&world.received(other)), [(1, 2)], "its consumer is closed, so it comes back");
}

#[test]
fn the_end_of_a_connection_rolls_back_what_is_open() {
    for orderly in [true, false] {
        let mut world = World::new();
        let (connection, orders) = (world.connect(), queue("orders"));
        world.send(connection, message(&orders, 1));
        let consumer = world.consumer(connection, &orders, window(1));
        world.begin(connection, 1);
        world.ack_in(consumer, 1, 1, 1);
        world.send_in(connection, 1, message(&orders, 2));
        if orderly {
            let close = world.submit(connection, Command::Close);
            assert_eq!(world.outcome(close), Some(&Ok(Confirmation::Done)));
        } else {
            world.step(Input::Vanished { connection });
        }
        let connection = world.connect();
        let next = world.consumer(connection, &orders, window(5));
        assert_eq!(counted(&world.received(next)), [(1, 2)]);
    }
}

#[test]
fn a_commit_that_the_store_has_outlives_its_connection() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    world.send(connection, message(&orders, 1));
    let consumer = world.consumer(connection, &orders, window(1));
    world.begin(connection, 1);
    world.ack_in(consumer, 1, 1, 1);
    world.send_in(connection, 1, message(&orders, 2));
    world.hold_store = true;
    world.commit(connection, 1);
    world.step(Input::Vanished { connection });
    let connection = world.connect();
    let next = world.consumer(connection, &orders, window(5));
    assert!(world.received(next).is_empty(), "neither the old message nor the new one yet");
    world.store(Ok(()));
    assert_eq!(sequences(&world.received(next)), [2]);
    assert_eq!(world.counts(&orders).acknowledged, 1);
}

#[test]
fn a_late_command_does_not_spoil_a_commit_that_is_under_way() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    world.hold_store = true;
    world.begin(connection, 1);
    world.send_in(connection, 1, message(&orders, 1));
    let commit = world.commit(connection, 1);
    let late = world.send_in(connection, 1, message(&orders, 2));
    assert!(matches!(world.outcome(late), Some(Err(ProviderError::Unknown { .. }))));
    world.store(Ok(()));
    world.store(Ok(()));
    assert_eq!(world.outcome(commit), Some(&Ok(Confirmation::Done)));
    assert_eq!(world.pending(&orders), [1]);
}

#[test]
fn a_commit_waits_for_the_sends_that_wait_for_memory() {
    let orders = queue("orders");
    let size = message(&orders, 1).size() as u64;
    let settings = Settings { memory_limit: size * 2, ..Settings::default() };
    let mut world = World::with(settings);
    let connection = world.connect();
    world.send(connection, message(&orders, 1));
    let consumer = world.consumer(connection, &orders, window(1));
    world.begin(connection, 1);
    world.send_in(connection, 1, message(&orders, 2));
    let parked = world.send_in(connection, 1, message(&orders, 3));
    assert_eq!(world.outcome(parked), None);
    let commit = world.commit(connection, 1);
    assert_eq!(world.outcome(commit), None);
    world.ack(consumer, 1, 1, AckKind::Standard);
    assert_eq!(world.outcome(parked), Some(&Ok(Confirmation::Done)));
    assert_eq!(world.outcome(commit), Some(&Ok(Confirmation::Done)));
    assert_eq!(world.pending(&orders), [2, 3]);
}

#[test]
fn a_send_that_waited_too_long_rolls_its_transaction_back() {
    let orders = queue("orders");
    let settings = Settings { memory_limit: 1, send_deadline: Duration::from_secs(5), ..Settings::default() };
    let mut world = World::with(settings);
    let connection = world.connect();
    world.send(connection, message(&orders, 1));
    world.begin(connection, 1);
    let parked = [2, 3].map(|sequence| world.send_in(connection, 1, message(&orders, sequence)));
    let commit = world.commit(connection, 1);
    world.advance(Duration::from_secs(5));
    assert!(matches!(world.outcome(parked[0]), Some(Err(ProviderError::MemoryFull { .. }))));
    assert!(world.outcome(parked[1]).is_some_and(Result::is_err));
    assert!(is_rolled_back(world.outcome(commit)));
    assert_eq!(world.pending(&orders), [1]);
}

#[test]
fn transactions_of_one_connection_are_not_those_of_another() {
    let mut world = World::new();
    let orders = queue("orders");
    let [left, right] = [world.connect(), world.connect()];
    world.begin(left, 1);
    world.begin(right, 1);
    world.send_in(left, 1, message(&orders, 1));
    world.send_in(right, 1, message(&orders, 2));
    world.roll_back(left, 1);
    world.commit(right, 1);
    assert_eq!(world.pending(&orders), [2]);
}

#[test]
fn a_closed_producer_leaves_what_it_sent() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    world.begin(connection, 1);
    world.send_in(connection, 1, message(&orders, 1));
    world.done(connection, Command::CloseProducer { producer: ProducerId(1) });
    world.done(connection, Command::CloseSession { session: SessionId(1) });
    let commit = world.commit(connection, 1);
    assert_eq!(world.outcome(commit), Some(&Ok(Confirmation::Done)));
    assert_eq!(world.pending(&orders), [1]);
}

#[test]
fn a_second_phase_without_a_first_is_refused_and_changes_nothing() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    world.begin(connection, 1);
    world.send_in(connection, 1, message(&orders, 1));
    let transaction = TransactionId::Local(1);
    let unprepared =
        world.ask(connection, Command::Commit { transaction: transaction.clone(), one_phase: false });
    assert_eq!(unprepared, Err(ProviderError::NotPrepared { transaction: transaction.to_string() }));
    assert!(world.pending(&orders).is_empty());
    let commit = world.commit(connection, 1);
    assert_eq!(world.outcome(commit), Some(&Ok(Confirmation::Done)));
    assert_eq!(world.pending(&orders), [1]);
}

#[test]
fn what_is_sent_again_while_its_commit_is_under_way_is_in_doubt_and_never_stored_twice() {
    for commits in [true, false] {
        for transacted in [true, false] {
            let mut world = World::new();
            let (lost, orders) = (world.connect(), queue("orders"));
            let letter = message(&orders, 1);
            world.hold_store = true;
            world.begin(lost, 1);
            world.send_in(lost, 1, letter.clone());
            world.commit(lost, 1);
            world.step(Input::Vanished { connection: lost });
            let next = world.connect();
            world.begin(next, 1);
            let transaction = transacted.then_some(TransactionId::Local(1));
            let again = world.ask(next, send(letter.clone(), transaction));
            assert!(matches!(again, Err(ProviderError::InDoubt { .. })), "{again:?}");
            world.store(Ok(()));
            world.store(if commits { Ok(()) } else { Err(StoreError::Io("no".to_owned())) });
            world.hold_store = false;
            while !world.unstored.is_empty() {
                world.store(Ok(()));
            }
            let commit = world.commit(next, 1);
            assert_eq!(
                is_rolled_back(world.outcome(commit)),
                transacted,
                "one that lacks it does not commit"
            );
            let now = world.send(next, letter);
            assert_eq!(world.outcome(now), Some(&Ok(Confirmation::Done)));
            assert_eq!(world.pending(&orders), [1]);
            assert_eq!(world.counts(&orders).duplicates, u64::from(commits));
        }
    }
}

#[test]
fn what_a_rollback_ends_is_dead_in_the_order_of_its_queue_not_of_its_acknowledgements() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let never = RedeliveryPolicy { maximum_redeliveries: Some(0), ..policy() };
    let consumer = world.consumer_with(connection, &orders, window(9), Some(never));
    for sequence in 1..=3 {
        world.send(connection, message(&orders, sequence));
    }
    world.begin(connection, 1);
    for number in [3, 1, 2] {
        world.ack_in(consumer, 1, number, number);
    }
    world.close(consumer, 3);
    world.roll_back(connection, 1);
    assert_eq!(world.pending(&queue("DLQ.orders")), [1, 2, 3]);
}
