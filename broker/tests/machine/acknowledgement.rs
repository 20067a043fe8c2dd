//! What an acknowledgement of each kind does.

use std::time::Duration;

use corriere_broker::Settings;
use corriere_core::provider::{AckKind, Credit, ProviderError};
use corriere_core::{RedeliveryPolicy, TransactionId};

use super::world::*;

#[test]
fn a_range_settles_what_is_left_in_it() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(10));
    for sequence in 1..=5 {
        world.send(connection, message(&orders, sequence));
    }
    world.ack(consumer, 2, 2, AckKind::Individual);
    world.ack(consumer, 1, 4, AckKind::Standard);
    assert_eq!(world.pending(&orders), [5]);
    assert_eq!(world.counts(&orders).acknowledged, 4);
}

#[test]
fn a_second_acknowledgement_changes_nothing_and_the_next_one_works() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(10));
    world.send(connection, message(&orders, 1));
    world.send(connection, message(&orders, 2));
    world.ack(consumer, 1, 1, AckKind::Standard);
    world.ack(consumer, 1, 1, AckKind::Standard);
    world.ack(consumer, 2, 2, AckKind::Standard);
    assert_eq!(world.counts(&orders).acknowledged, 2);
    assert_eq!(world.counts(&orders).pending, 0);
}

#[test]
fn absurd_ranges_settle_nothing_that_is_not_there() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(10));
    world.send(connection, message(&orders, 1));
    world.ack(consumer, 5, 2, AckKind::Standard);
    world.ack(consumer, 2, u64::MAX, AckKind::Standard);
    world.ack(consumer, u64::MAX, u64::MAX, failed());
    assert_eq!(world.counts(&orders).pending, 1);
    world.ack(consumer, 0, u64::MAX, AckKind::Standard);
    assert_eq!(world.counts(&orders).pending, 0);
}

#[test]
fn consumers_that_finish_out_of_order_settle_their_own() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(10));
    for sequence in 1..=10 {
        world.send(connection, message(&orders, sequence));
    }
    for number in [7, 3, 9] {
        world.ack(consumer, number, number, AckKind::Individual);
    }
    world.close(consumer, 10);
    world.close_session(consumer);
    let next = world.consumer(connection, &orders, window(10));
    assert_eq!(sequences(&world.received(next)), [1, 2, 4, 5, 6, 8, 10]);
}

#[test]
fn a_message_can_be_settled_after_its_consumer_was_closed() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(10));
    world.send(connection, message(&orders, 3));
    world.close(consumer, 1);
    let other = world.consumer(connection, &orders, window(10));
    assert!(world.received(other).is_empty(), "it stays with the session");
    world.ack(consumer, 1, 1, AckKind::Standard);
    assert_eq!(world.counts(&orders).acknowledged, 1);
}

#[test]
fn a_message_cannot_be_settled_after_its_session_was_closed() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(10));
    world.send(connection, message(&orders, 4));
    world.hand_over(consumer, 1);
    world.close_session(consumer);
    let late = world.ask(connection, acknowledge(consumer, 1, 1, AckKind::Standard, None));
    assert!(matches!(late, Err(ProviderError::Unknown { .. })), "{late:?}");
    let next = world.consumer(connection, &orders, window(10));
    assert_eq!(counted(&world.received(next)), [(4, 2)]);
}

#[test]
fn what_does_not_match_is_settled_and_what_expired_is_expired() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(10));
    world.send(connection, message(&orders, 1));
    world.send(connection, with_expiration(&orders, 2, world.now.0 + 20_000));
    world.ack(consumer, 1, 1, AckKind::Unmatched);
    // The client's clock runs ahead: to the broker the message is not expired, but it must leave all the same.
    world.ack(consumer, 2, 2, AckKind::Expired);
    let counts = world.counts(&orders);
    assert_eq!((counts.acknowledged, counts.expired, counts.in_flight), (1, 1, 0));
    let letters = queue("DLQ.orders");
    let reader = world.consumer(connection, &letters, window(1));
    let letter = world.received(reader).remove(0).message;
    let cause: String = letter.property("dlqDeliveryFailureCause").unwrap().unwrap();
    assert_eq!(cause, "expired by the clock of its consumer, 20s early by that of the broker");
}

#[test]
fn a_message_that_cannot_expire_is_not_removed_as_expired() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(10));
    world.send(connection, message(&orders, 1));
    assert_eq!(counted(&world.received(consumer)), [(1, 1)]);
    world.ack(consumer, 1, 1, AckKind::Expired);
    assert_eq!(
        counted(&world.received(consumer)),
        [(1, 1)],
        "it comes again, and the first time did not count"
    );
    let counts = world.counts(&orders);
    assert_eq!((counts.expired, counts.pending), (0, 1));
}

fn undeliverable() -> AckKind {
    AckKind::Undeliverable { reason: "it is too large".into() }
}

#[test]
fn what_cannot_be_delivered_dies_uncounted_and_hands_nothing_over() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(4));
    for sequence in 1..=5 {
        world.send(connection, message(&orders, sequence));
    }
    world.received(consumer);
    world.ack(consumer, 3, 3, undeliverable());
    assert_eq!(
        sequences(&world.received(consumer)),
        [5],
        "it makes room for one, as nothing was handed over"
    );
    let reader = world.consumer(connection, &queue("DLQ.orders"), window(1));
    let letter = world.received(reader).remove(0).message;
    let cause: String = letter.property("dlqDeliveryFailureCause").unwrap().unwrap();
    assert_eq!(cause, "it is too large");
    assert_eq!(letter.property::<i32>("JMSXDeliveryCount").unwrap(), Some(0));
    // The consumer had the first only, and gives it back.
    world.ack(consumer, 1, 1, failed());
    world.advance(Duration::from_secs(1));
    assert_eq!(counted(&world.received(consumer)), [(1, 2), (2, 1), (4, 1), (5, 1)]);
    world.close(consumer, 0);
    world.close_session(consumer);
    let next = world.consumer(connection, &orders, window(5));
    assert_eq!(counted(&world.received(next)), [(1, 2), (2, 1), (4, 1), (5, 1)]);
}

#[test]
fn credit_that_went_into_what_cannot_be_delivered_brings_the_next_one() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let puller = world.consumer(connection, &orders, Credit::Explicit);
    for sequence in 1..=3 {
        world.send(connection, message(&orders, sequence));
    }
    world.grant(puller, 1);
    assert_eq!(sequences(&world.received(puller)), [1]);
    world.ack(puller, 1, 1, undeliverable());
    assert_eq!(sequences(&world.received(puller)), [2]);
    // What was said of a later one changes nothing of that.
    world.grant(puller, 1);
    world.hand_over(puller, 3);
    world.ack(puller, 2, 2, undeliverable());
    world.send(connection, message(&orders, 4));
    assert_eq!(sequences(&world.received(puller)), [3, 4]);
}

#[test]
fn a_dead_letter_that_cannot_be_delivered_waits_uncounted_for_a_minute_at_least() {
    for (initial_delay, wait) in [(0, 60), (1, 60), (90, 90)] {
        let initial_delay = Duration::from_secs(initial_delay);
        let mut world = World::with(Settings {
            redelivery: RedeliveryPolicy { initial_delay, ..RedeliveryPolicy::default() },
            ..Settings::default()
        });
        let (connection, letters) = (world.connect(), queue("DLQ.orders"));
        let consumer = world.consumer(connection, &letters, window(1));
        world.send(connection, message(&letters, 1));
        for number in 1..=9 {
            assert_eq!(counted(&world.received(consumer)), [(1, 1)]);
            world.ack(consumer, number, number, undeliverable());
            world.advance(Duration::from_secs(wait) - Duration::from_millis(1));
            assert!(world.received(consumer).is_empty(), "it is not tried again and again");
            world.advance(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_retained_message_stays_with_its_consumer_and_counts() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(10));
    world.send(connection, message(&orders, 1));
    world.ack(consumer, 1, 1, AckKind::Retained);
    assert_eq!(world.received(consumer).len(), 1, "it is not delivered again");
    assert_eq!(world.counts(&orders).in_flight, 1);
    world.close(consumer, 0);
    let next = world.consumer(connection, &orders, window(10));
    assert!(
        world.received(next).is_empty(),
        "it was in the application's hands, so its session may still settle it"
    );
    world.close_session(consumer);
    assert_eq!(counted(&world.received(next)), [(1, 3)]);
}

#[test]
fn an_individual_acknowledgement_says_nothing_of_the_deliveries_before_it() {
    for in_transaction in [false, true] {
        let mut world = World::new();
        let orders = queue("orders");
        let client = world.connect();
        let consumer = world.consumer(client, &orders, window(10));
        for sequence in 1..=3 {
            world.send(client, message(&orders, sequence));
        }
        let transaction = in_transaction.then_some(TransactionId::Local(1));
        if in_transaction {
            world.begin(client, 1);
        }
        world.done(client, acknowledge(consumer, 2, 2, AckKind::Individual, transaction));
        world.close(consumer, 0);
        if in_transaction {
            world.roll_back(client, 1);
        }
        let again = world.consumer(client, &orders, window(10));
        let received = counted(&world.received(again));
        let expected = if in_transaction { vec![(1, 1), (2, 2), (3, 1)] } else { vec![(1, 1), (3, 1)] };
        assert_eq!(received, expected, "what only sat in a buffer does not count");
    }
}
