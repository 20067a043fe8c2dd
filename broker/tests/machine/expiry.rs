//! Expiration: when it is noticed, and what becomes of the message.

use std::time::Duration;

use corriere_core::DeliveryMode;
use corriere_core::provider::AckKind;

use super::world::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_waiting_message_expires_by_itself_and_a_persistent_one_becomes_a_dead_letter() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let at = world.now.0 + 1_000;
    world.send(connection, with_expiration(&orders, 1, at));
    let mut passing = with_expiration(&orders, 2, at);
    passing.headers_mut().delivery_mode = DeliveryMode::NonPersistent;
    world.send(connection, passing);
    world.advance(Duration::from_millis(999));
    assert_eq!(world.counts(&orders).pending, 2);
    world.advance(Duration::from_millis(1));
    assert_eq!((world.counts(&orders).expired, world.counts(&orders).pending), (2, 0));
    assert_eq!(world.pending(&queue("DLQ.orders")), [1]);
}

#[test]
fn what_is_expired_when_it_arrives_is_never_delivered() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(5));
    world.send(connection, with_expiration(&orders, 1, world.now.0));
    assert!(world.received(consumer).is_empty());
    let counts = world.counts(&orders);
    assert_eq!((counts.enqueued, counts.expired), (1, 1));
}

#[test]
fn a_command_after_the_expiration_finds_the_message_gone_even_without_a_tick() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    world.send(connection, with_expiration(&orders, 1, world.now.0 + 10));
    world.now = world.now.saturating_add(SECOND);
    let consumer = world.consumer(connection, &orders, window(5));
    assert!(world.received(consumer).is_empty());
    assert_eq!(world.counts(&orders).expired, 1);
}

#[test]
fn a_message_that_expires_with_its_consumer_may_still_be_settled() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(5));
    world.send(connection, with_expiration(&orders, 1, world.now.0 + 10));
    world.advance(SECOND);
    world.ack(consumer, 1, 1, AckKind::Standard);
    let counts = world.counts(&orders);
    assert_eq!((counts.acknowledged, counts.expired), (1, 0));
}

#[test]
fn a_message_that_comes_back_too_late_expires() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(5));
    world.send(connection, with_expiration(&orders, 1, world.now.0 + 10));
    world.advance(SECOND);
    world.close(consumer, 0);
    assert_eq!(world.counts(&orders).expired, 1);
}

#[test]
fn a_message_that_waits_for_its_redelivery_expires_and_lets_go_of_its_consumer() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(5));
    world.send(connection, with_expiration(&orders, 1, world.now.0 + 500));
    world.send(connection, message(&orders, 2));
    world.received(consumer);
    world.ack(consumer, 1, 1, failed());
    assert!(world.received(consumer).is_empty());
    world.advance(Duration::from_millis(500));
    assert_eq!(sequences(&world.received(consumer)), [2], "nothing is reserved any more");
    assert_eq!(world.wake_at, None);
}

#[test]
fn messages_that_expire_in_a_buffer_free_the_window() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(400));
    for sequence in 1..=100 {
        world.send(connection, with_expiration(&orders, sequence, world.now.0 + 4_000));
    }
    world.send(connection, message(&orders, 101));
    world.advance(SECOND * 5);
    assert_eq!(world.received(consumer).len(), 101);
    world.ack(consumer, 1, 100, AckKind::Expired);
    world.ack(consumer, 101, 101, AckKind::Standard);
    for sequence in 200..400 {
        world.send(connection, message(&orders, sequence));
    }
    assert_eq!(world.received(consumer).len(), 200);
    world.ack(consumer, 1, u64::MAX, AckKind::Standard);
    let counts = world.counts(&orders);
    assert_eq!((counts.in_flight, counts.expired, counts.acknowledged), (0, 100, 201));
    assert_eq!(world.counts(&queue("DLQ.orders")).moved_in, 100);
}

#[test]
fn a_settled_message_leaves_nothing_that_waits_for_time() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(5));
    world.send(connection, with_expiration(&orders, 1, world.now.0 + 10_000));
    world.ack(consumer, 1, 1, AckKind::Standard);
    assert_eq!(world.wake_at, None);
}
