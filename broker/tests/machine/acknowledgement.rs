//! What an acknowledgement of each kind does.

use corriere_core::provider::{AckKind, ProviderError};

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
