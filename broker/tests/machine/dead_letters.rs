//! Dead letters: what they say, where they go, and that none is lost or dies twice.

use std::time::Duration;

use corriere_broker::{DeadLetters, Settings};
use corriere_core::provider::AckKind;
use corriere_core::{Destination, Message, Timestamp};

use super::world::*;

const SECOND: Duration = Duration::from_secs(1);

fn letter(world: &mut World, dead_letters: &Destination) -> Message {
    let connection = world.connect();
    let consumer = world.consumer(connection, dead_letters, window(1));
    let dispatch = world.received(consumer).remove(0);
    assert_eq!(dispatch.delivery_count, 1, "it starts anew");
    Message::clone(&dispatch.message)
}

fn text(message: &Message, name: &str) -> Option<String> {
    message.property(name).unwrap()
}

#[test]
fn a_message_dies_after_its_last_redelivery_and_says_why() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(5));
    let mut sent = with_expiration(&orders, 1, world.now.0 + 3_600_000);
    sent.set_property("customer", 42).unwrap();
    world.send(connection, sent.clone());
    for count in 1..=3 {
        let received = world.received(consumer);
        assert_eq!(counted(&received), [(1, count)]);
        world.ack(consumer, received[0].number, received[0].number, failed());
        world.advance(SECOND);
    }
    assert_eq!(world.counts(&orders).dead_lettered, 1);
    let letter = letter(&mut world, &queue("DLQ.orders"));
    assert_eq!(text(&letter, "dlqDeliveryFailureCause").as_deref(), Some("E1"));
    assert_eq!(text(&letter, "dlqOriginalDestination").as_deref(), Some("queue://orders"));
    assert_eq!(text(&letter, "dlqListener"), None);
    assert_eq!(letter.property::<i32>("JMSXDeliveryCount").unwrap(), Some(3));
    assert_eq!(letter.property::<i64>("dlqTime").unwrap(), Some(1_002_000));
    assert_eq!(letter.property::<i64>("dlqOriginalExpiration").unwrap(), Some(4_600_000));
    assert_eq!(letter.headers().expiration, None);
    assert_eq!(letter.property::<i32>("customer").unwrap(), Some(42));
    assert_eq!(letter.headers().message_id, sent.headers().message_id);
    assert_eq!(letter.body(), sent.body());
}

#[test]
fn poison_dies_at_once_and_names_its_listener() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(5));
    world.send(connection, message(&orders, 1));
    world.ack(consumer, 1, 1, poison());
    let letter = letter(&mut world, &queue("DLQ.orders"));
    assert_eq!(text(&letter, "dlqListener").as_deref(), Some("on_order"));
    assert_eq!(letter.property::<i32>("JMSXDeliveryCount").unwrap(), Some(1));
}

#[test]
fn a_received_message_that_was_sent_on_can_die() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(5));
    world.send(connection, message(&orders, 1).received(2));
    world.ack(consumer, 1, 1, poison());
    assert!(text(&letter(&mut world, &queue("DLQ.orders")), "dlqDeliveryFailureCause").is_some());
}

#[test]
fn an_expired_message_says_that_it_expired() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    world.send(connection, with_expiration(&orders, 1, world.now.0 + 10));
    world.advance(SECOND);
    let letter = letter(&mut world, &queue("DLQ.orders"));
    let cause = text(&letter, "dlqDeliveryFailureCause").unwrap();
    assert!(cause.starts_with("expired "), "{cause}");
    assert_eq!(letter.property::<i32>("JMSXDeliveryCount").unwrap(), Some(0));
}

#[test]
fn a_message_that_is_only_ever_abandoned_dies_too() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    world.send(connection, message(&orders, 1));
    for _ in 0..3 {
        let consumer = world.consumer(connection, &orders, window(5));
        world.hand_over(consumer, 1);
        world.close_session(consumer);
    }
    assert_eq!(world.pending(&queue("DLQ.orders")), [1]);
    let letter = letter(&mut world, &queue("DLQ.orders"));
    assert!(text(&letter, "dlqDeliveryFailureCause").unwrap().contains("closed"));
}

#[test]
fn a_dead_letter_never_dies_again() {
    let mut world = World::new();
    let (connection, orders, dead) = (world.connect(), queue("orders"), queue("DLQ.orders"));
    world.send(connection, message(&orders, 1));
    let consumer = world.consumer(connection, &orders, window(5));
    world.ack(consumer, 1, 1, poison());
    let consumer = world.consumer(connection, &dead, window(5));
    for count in 1..=9 {
        let received = world.received(consumer);
        assert_eq!(counted(&received), [(1, count)]);
        let kind = if count % 2 == 0 { poison() } else { failed() };
        world.ack(consumer, received[0].number, received[0].number, kind);
        assert!(world.received(consumer).is_empty(), "after its delay");
        world.advance(SECOND);
    }
    assert_eq!(world.machine.destinations(), [dead, orders]);
}

#[test]
fn what_is_not_persistent_is_dropped_and_counted_unless_it_is_to_be_kept() {
    for keep in [false, true] {
        let settings = Settings { dead_letter_non_persistent: keep, ..Settings::default() };
        let mut world = World::with(settings);
        let (connection, orders) = (world.connect(), queue("orders"));
        let consumer = world.consumer(connection, &orders, window(5));
        world.send(connection, non_persistent(&orders, 1));
        world.ack(consumer, 1, 1, poison());
        let counts = world.counts(&orders);
        assert_eq!((counts.dead_lettered, counts.discarded), if keep { (1, 0) } else { (0, 1) });
        assert_eq!(world.counts(&queue("DLQ.orders")).pending, u64::from(keep));
        assert_eq!(world.machine.memory_used() > 0, keep);
    }
}

#[test]
fn dead_letters_go_where_they_are_set_to() {
    for (setting, name) in [(DeadLetters::Shared, Some("ActiveMQ.DLQ")), (DeadLetters::Discard, None)] {
        let mut world = World::with(Settings { dead_letters: setting, ..Settings::default() });
        let (connection, orders) = (world.connect(), queue("orders"));
        let consumer = world.consumer(connection, &orders, window(5));
        world.send(connection, message(&orders, 1));
        world.ack(consumer, 1, 1, poison());
        assert_eq!(world.machine.destinations().len(), if name.is_some() { 2 } else { 1 });
        if let Some(name) = name {
            assert_eq!(world.pending(&queue(name)), [1]);
        } else {
            assert_eq!(world.counts(&orders).discarded, 1);
        }
    }
}

#[test]
fn a_queue_with_the_longest_name_has_dead_letters_of_its_own() {
    let mut world = World::new();
    let long = queue(&"q".repeat(Destination::MAXIMUM_NAME_BYTES));
    let connection = world.connect();
    let consumer = world.consumer(connection, &long, window(5));
    world.send(connection, message(&long, 1));
    world.ack(consumer, 1, 1, poison());
    assert_eq!(world.pending(&queue(&format!("DLQ.{}", long.name()))), [1]);
}

#[test]
fn dead_letters_do_not_wait_for_memory() {
    let orders = queue("orders");
    let settings = Settings { memory_limit: message(&orders, 1).size() as u64, ..Settings::default() };
    let mut world = World::with(settings);
    let connection = world.connect();
    let consumer = world.consumer(connection, &orders, window(5));
    world.send(connection, message(&orders, 1));
    world.ack(consumer, 1, 1, poison());
    assert_eq!(world.pending(&queue("DLQ.orders")), [1]);
    assert_eq!(world.wake_at, None::<Timestamp>);
}

#[test]
fn an_unlimited_policy_never_kills() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let unlimited = corriere_core::RedeliveryPolicy { maximum_redeliveries: None, ..policy() };
    let consumer = world.consumer_with(connection, &orders, window(5), Some(unlimited));
    world.send(connection, message(&orders, 1));
    for number in 1..=50 {
        world.ack(consumer, number, number, failed());
        world.advance(SECOND);
    }
    assert_eq!(world.received(consumer).last().unwrap().delivery_count, 51);
    world.ack(consumer, 51, 51, AckKind::Standard);
}
