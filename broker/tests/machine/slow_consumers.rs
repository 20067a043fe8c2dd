//! Consumers that stand still: told once for each stall, and never while they could have more.

use std::time::Duration;

use corriere_core::RedeliveryPolicy;
use corriere_core::provider::{AckKind, Credit, Event};

use super::world::*;

fn bounded(prefetch: u32, extension: u32) -> Credit {
    Credit::Window { prefetch, extension: Some(extension) }
}

/// Whom the machine told since this was asked last, and of how many messages.
fn told(world: &mut World, consumer: Consumer) -> Vec<u64> {
    let events = std::mem::take(&mut world.slow_consumers).into_iter();
    events
        .map(|(connection, event)| match event {
            Event::SlowConsumer { subscription, destination, unacknowledged } => {
                assert_eq!((connection, subscription), (consumer.connection, consumer.subscription));
                assert_eq!(destination, queue("orders"));
                unacknowledged
            }
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn a_consumer_that_acknowledges_nothing_is_told_once_in_each_stall() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, bounded(2, 1));
    for sequence in 1..=4 {
        world.send(connection, message(&orders, sequence));
    }
    assert!(told(&mut world, consumer).is_empty(), "nothing is in its hands");
    world.hand_over(consumer, 2);
    assert!(told(&mut world, consumer).is_empty(), "a third one is under way to it");
    world.hand_over(consumer, 3);
    assert_eq!(told(&mut world, consumer), [3]);
    world.send(connection, message(&orders, 5));
    assert!(told(&mut world, consumer).is_empty(), "it was told");
    world.ack(consumer, 1, 1, AckKind::Standard);
    world.hand_over(consumer, 4);
    assert_eq!(told(&mut world, consumer), [3], "it had room, and stalled again");
}

#[test]
fn nobody_is_slow_for_whom_nothing_waits() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, bounded(1, 1));
    world.send(connection, message(&orders, 1));
    world.send(connection, message(&orders, 2));
    world.hand_over(consumer, 1);
    world.hand_over(consumer, 2);
    assert!(told(&mut world, consumer).is_empty());
    let other = world.consumer(connection, &orders, bounded(1, 1));
    world.send(connection, message(&orders, 3));
    assert!(told(&mut world, consumer).is_empty(), "somebody else had room for it");
    world.send(connection, message(&orders, 4));
    assert_eq!(told(&mut world, consumer), [2]);
    world.ack(other, 1, 1, AckKind::Standard);
}

#[test]
fn what_comes_back_to_a_stalled_consumer_waits_for_it_when_its_delay_is_over() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, bounded(1, 1));
    for sequence in 1..=2 {
        world.send(connection, message(&orders, sequence));
    }
    world.hand_over(consumer, 2);
    world.ack(consumer, 2, 2, failed());
    assert!(told(&mut world, consumer).is_empty());
    world.advance(Duration::from_secs(1));
    // It comes by the room that it left.
    assert_eq!(counted(&world.received(consumer)).last(), Some(&(2, 2)));
    assert!(told(&mut world, consumer).is_empty());
}

#[test]
fn a_consumer_that_gets_again_at_once_what_it_gave_back_is_told_of_its_next_stall() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let at_once = RedeliveryPolicy { initial_delay: Duration::ZERO, ..policy() };
    let consumer = world.consumer_with(connection, &orders, bounded(1, 1), Some(at_once));
    for sequence in 1..=3 {
        world.send(connection, message(&orders, sequence));
    }
    world.hand_over(consumer, 1);
    world.hand_over(consumer, 2);
    assert_eq!(told(&mut world, consumer), [2]);
    world.ack(consumer, 2, 2, failed());
    assert_eq!(counted(&world.received(consumer)).last(), Some(&(2, 2)));
    world.hand_over(consumer, 3);
    assert_eq!(told(&mut world, consumer), [2], "it had room for what it got");
}

#[test]
fn windows_without_a_bound_and_granted_credit_never_stall() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let unbounded = world.consumer(connection, &orders, window(1));
    let strict = world.consumer(connection, &orders, bounded(1, 0));
    let granted = world.consumer(connection, &orders, Credit::Explicit);
    world.grant(granted, 1);
    for sequence in 1..=10 {
        world.send(connection, message(&orders, sequence));
    }
    for consumer in [unbounded, strict, granted] {
        world.hand_over(consumer, 1);
    }
    assert!(world.slow_consumers.is_empty());
    assert!(world.counts(&orders).pending > world.counts(&orders).in_flight);
}

#[test]
fn a_closed_consumer_is_told_nothing() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, bounded(1, 1));
    world.send(connection, message(&orders, 1));
    world.send(connection, message(&orders, 2));
    world.hand_over(consumer, 2);
    world.close(consumer, 2);
    world.send(connection, message(&orders, 3));
    assert!(world.slow_consumers.is_empty());
}
