//! What durable subscriptions keep while nobody consumes, and who may have it.

use std::time::Duration;

use corriere_broker::Settings;
use corriere_broker::machine::Input;
use corriere_broker::store::{StoreError, StoreOperation};
use corriere_core::provider::{AckKind, Command, Confirmation, ProviderError};

use super::{fleeting, prices};
use crate::world::*;

#[test]
fn what_is_sent_while_nobody_consumes_waits_in_order_persistent_or_not() {
    let mut world = World::new();
    let sender = world.connect();
    world.publish(sender, [1]);
    world.leave_durable("c", "d");
    world.publish(sender, [2]);
    world.send(sender, fleeting(3));
    world.publish(sender, [4]);
    let described = world.described("d");
    assert_eq!((described.is_active, described.counts.pending, described.topic), (false, 3, prices()));
    let client = world.connect_as(Some("c"));
    let consumer = world.durable(client, "d");
    assert!(world.described("d").is_active);
    assert_eq!(sequences(&world.received(consumer)), [2, 3, 4]);
    world.ack(consumer, 1, 3, AckKind::Standard);
    assert_eq!((world.counts(&prices()).acknowledged, world.machine.memory_used()), (3, 0));
}

#[test]
fn a_message_is_stored_once_for_all_and_each_settles_its_own() {
    let mut world = World::new();
    ["a", "b", "c"].into_iter().for_each(|name| world.leave_durable("c", name));
    let sender = world.connect();
    world.operations.clear();
    world.publish(sender, [1]);
    let [StoreOperation::Publish { stored, subscriptions, .. }] = &*world.operations else {
        panic!("{:?}", world.operations)
    };
    let names: Vec<&str> = subscriptions.iter().map(|subscription| &*subscription.name).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let second = stored.with(1);
    let one = message(&prices(), 1).size() as u64;
    assert_eq!(world.machine.memory_used(), one, "one body is in memory once");
    let client = world.connect_as(Some("c"));
    let consumer = world.durable(client, "b");
    world.operations.clear();
    world.ack(consumer, 1, 1, AckKind::Standard);
    assert!(
        matches!(&*world.operations, [StoreOperation::Remove { stored, .. }] if *stored == second),
        "{:?}",
        world.operations
    );
    assert_eq!((world.described("a").counts.pending, world.described("b").counts.pending), (1, 0));
    assert_eq!(world.machine.memory_used(), one);
}

#[test]
fn a_consumer_that_goes_leaves_all_in_its_place_and_what_it_was_handed_counted() {
    for vanishes in [false, true] {
        let mut world = World::new();
        let sender = world.connect();
        let client = world.connect_as(Some("c"));
        let consumer = world.durable(client, "d");
        world.publish(sender, 1..=4);
        world.ack(consumer, 1, 1, AckKind::Standard);
        world.hand_over(consumer, 2);
        if vanishes {
            world.step(Input::Vanished { connection: client });
        } else {
            world.done(client, Command::Close);
        }
        world.publish(sender, [5]);
        let client = world.connect_as(Some("c"));
        let consumer = world.durable(client, "d");
        assert_eq!(counted(&world.received(consumer)), [(2, 2), (3, 1), (4, 1), (5, 1)]);
    }
}

#[test]
fn a_failed_message_is_reserved_delayed_and_at_last_a_dead_letter_of_its_topic() {
    let mut world = World::new();
    let sender = world.connect();
    world.leave_durable("other", "d");
    let client = world.connect_as(Some("c"));
    let consumer = world.durable(client, "d");
    world.publish(sender, 1..=2);
    let mut last = 0;
    for delivery in 1..=3 {
        let received = world.received(consumer);
        let first = received.first().unwrap();
        assert_eq!((first.number > last, first.delivery_count), (true, delivery));
        last = first.number;
        world.ack(consumer, last, last, failed());
        assert!(delivery == 3 || world.received(consumer).is_empty(), "it blocks");
        world.advance(Duration::from_secs(1));
    }
    assert_eq!(world.pending(&queue("DLQ.topic.prices")), [1]);
    assert_eq!(sequences(&world.received(consumer)), [2]);
    let counts = world.counts(&prices());
    assert_eq!((counts.dead_lettered, counts.pending), (1, 3), "that of the other one is still there");
}

#[test]
fn what_expires_while_nobody_consumes_dies_in_each() {
    let mut world = World::new();
    world.leave_durable("c", "a");
    world.leave_durable("c", "b");
    let sender = world.connect();
    world.send(sender, with_expiration(&prices(), 1, NOW.0 + 1_000));
    world.advance(Duration::from_secs(1));
    assert_eq!((world.counts(&prices()).expired, world.counts(&prices()).pending), (2, 0));
    assert_eq!(world.pending(&queue("DLQ.topic.prices")), [1, 1]);
}

#[test]
fn a_second_consumer_is_refused_and_named_the_first() {
    let mut world = World::new();
    let client = world.connect_as(Some("c"));
    let first = world.durable(client, "d");
    let (_, refused) = world.try_durable(client, "d", |_| {});
    let holder = "a consumer of connection ID:connection-1".to_owned();
    let (name, client_id) = ("d".to_owned(), "c".to_owned());
    assert_eq!(refused, Err(ProviderError::SubscriptionInUse { name, client_id, holder }));
    let other = world.connect_as(Some("other"));
    let same_name = world.durable(other, "d");
    world.publish(other, [1]);
    assert_eq!(sequences(&world.received(first)), [1]);
    assert_eq!(sequences(&world.received(same_name)), [1], "names are each client's own");
}

#[test]
fn no_local_leaves_out_what_its_client_sends_over_any_connection_and_while_nobody_consumes() {
    let mut world = World::new();
    let client = world.connect_as(Some("c"));
    let (consumer, _) = world.try_durable(client, "d", |subscribe| subscribe.no_local = true);
    let other = world.connect_as(Some("other"));
    world.publish(client, [1]);
    world.publish(other, [2]);
    assert_eq!(sequences(&world.received(consumer)), [2]);
    world.done(client, Command::Close);
    let again = world.connect_as(Some("c"));
    world.operations.clear();
    world.publish(again, [3]);
    assert!(world.operations.is_empty(), "it goes to nobody");
    world.publish(other, [4]);
    let (consumer, outcome) = world.try_durable(again, "d", |subscribe| subscribe.no_local = true);
    assert_eq!(outcome, Ok(Confirmation::Done));
    assert_eq!(sequences(&world.received(consumer)), [2, 4]);
}

#[test]
fn a_send_is_confirmed_and_visible_when_it_is_stored_and_is_stored_once_when_it_is_sent_again() {
    let mut world = World::new();
    let client = world.connect_as(Some("c"));
    let consumer = world.durable(client, "d");
    let sender = world.connect();
    let plain = world.consumer(sender, &prices(), window(10));
    world.hold_store = true;
    let sent = message(&prices(), 1);
    let first = world.send(sender, sent.clone());
    let again = world.send(sender, sent);
    assert!(world.received(consumer).is_empty() && world.received(plain).is_empty());
    world.store(Ok(()));
    for ticket in [first, again] {
        assert_eq!(world.outcome(ticket), Some(&Ok(Confirmation::Done)));
    }
    assert_eq!(sequences(&world.received(consumer)), [1]);
    assert_eq!(sequences(&world.received(plain)), [1]);
    assert_eq!(world.counts(&prices()).duplicates, 1);
}

#[test]
fn a_send_to_one_waits_while_the_store_is_full() {
    let mut world = World::new();
    world.leave_durable("c", "d");
    let sender = world.connect();
    world.hold_store = true;
    let sent = world.send(sender, message(&prices(), 1));
    world.store(Err(StoreError::Full { reason: "no room".into() }));
    assert_eq!((world.outcome(sent), world.described("d").counts.pending), (None, 0));
    world.step(Input::StoreRoom);
    world.store(Ok(()));
    assert_eq!(world.outcome(sent), Some(&Ok(Confirmation::Done)));
    assert_eq!(world.described("d").counts.pending, 1);
}

/// C-57.
#[test]
fn the_bodies_of_many_that_nobody_consumes_from_are_with_the_store_only() {
    const SUBSCRIPTIONS: usize = 2_000;
    let size = message(&prices(), 1).size() as u64;
    let memory_limit = size * 20;
    let mut world = World::loading(Settings { memory_limit, ..Settings::default() });
    let client = world.connect_as(Some("c"));
    for number in 0..SUBSCRIPTIONS {
        let consumer = world.durable(client, &format!("d{number}"));
        world.close(consumer, 0);
    }
    let sender = world.connect();
    world.publish(sender, 1..=50);
    assert_eq!(world.counts(&prices()).pending, 50 * SUBSCRIPTIONS as u64);
    assert!(world.machine.memory_used() <= memory_limit / 2, "{} bytes", world.machine.memory_used());
    let consumer = world.durable_loading(client, "d1999");
    assert_eq!(sequences(&world.received(consumer)), (1..=50).collect::<Vec<_>>());
}
