//! Messages of durable subscriptions that are to become dead letters, or are past their time, while the store has no room for that
//! or is making another subscription of that name.

use std::time::Duration;

use corriere_broker::machine::{ConnectionKey, Input};
use corriere_broker::store::{StoreError, StoreOperation};
use corriere_core::provider::{Command, Subscribe};
use corriere_core::{Destination, SubscriptionId};

use super::world::*;

fn prices() -> Destination {
    Destination::topic("prices").unwrap()
}

fn full() -> Result<(), StoreError> {
    Err(StoreError::Full { reason: "no segment is free".into() })
}

impl World {
    /// Asks for a consumer of a durable subscription, in a session of its own.
    fn consume_durably(&mut self, connection: ConnectionKey, name: &str, no_local: bool) -> Consumer {
        let session = self.session(connection);
        let subscription = SubscriptionId(session.0 + 20_000);
        let plain = subscribe(session, subscription, &prices(), window(9));
        let wanted = Subscribe { durable_name: Some(name.into()), no_local, ..plain };
        self.submit(connection, Command::OpenSubscription(Box::new(wanted)));
        Consumer { connection, session, subscription }
    }

    /// Has the store make another subscription of this name, which it has not done yet, and forgets what it was given before.
    fn begin_to_make_anew(&mut self, connection: ConnectionKey, name: &str) {
        self.hold_store = true;
        self.operations.clear();
        self.consume_durably(connection, name, true);
        assert!(matches!(*self.operations, [StoreOperation::CreateSubscription { .. }]));
    }

    /// Nothing but the new subscription was stored since.
    fn assert_nothing_followed(&self) {
        assert_eq!(self.operations.len(), 1, "the old one's messages end with it: {:?}", self.operations);
    }

    /// The store has not made the new one, and does all else.
    fn refuse_to_make_anew(&mut self) {
        self.store(full());
        self.hold_store = false;
        while !self.unstored.is_empty() {
            self.store(Ok(()));
        }
    }
}

/// A client whose subscription has a message that could not be moved to the dead letters.
fn with_one_put_off(world: &mut World) -> ConnectionKey {
    world.leave_durable("c", "d");
    let client = world.connect_as(Some("c"));
    world.send(client, message(&prices(), 1));
    let consumer = world.consume_durably(client, "d", false);
    assert_eq!(sequences(&world.received(consumer)), [1]);
    world.hold_store = true;
    world.submit(client, acknowledge(consumer, 1, 1, poison(), None));
    world.store(full());
    world.hold_store = false;
    while !world.unstored.is_empty() {
        world.store(Ok(()));
    }
    world.close(consumer, 1);
    client
}

#[test]
fn a_body_that_another_subscription_shares_is_counted_once_when_a_dead_letter_of_it_is_put_off() {
    let mut world = World::new();
    world.leave_durable("c", "other");
    with_one_put_off(&mut world);
    assert_eq!(world.counts(&prices()).pending, 2);
    assert_eq!(world.machine.memory_used(), message(&prices(), 1).size() as u64);
}

#[test]
fn a_dead_letter_that_is_put_off_ends_with_a_subscription_that_is_made_anew() {
    let mut world = World::new();
    let client = with_one_put_off(&mut world);
    world.begin_to_make_anew(client, "d");
    world.step(Input::StoreRoom);
    world.advance(Duration::from_secs(60));
    world.assert_nothing_followed();
    world.store(Ok(()));
    world.assert_nothing_followed();
    assert_eq!((world.counts(&prices()).pending, world.machine.memory_used()), (0, 0));
    assert_eq!(world.counts(&queue("DLQ.topic.prices")).pending, 0);
}

#[test]
fn a_dead_letter_that_is_put_off_goes_on_when_the_subscription_is_not_made_anew() {
    let mut world = World::new();
    let client = with_one_put_off(&mut world);
    world.begin_to_make_anew(client, "d");
    world.step(Input::StoreRoom);
    world.refuse_to_make_anew();
    assert_eq!(world.counts(&prices()).pending, 0);
    assert_eq!(world.pending(&queue("DLQ.topic.prices")), [1]);
}

#[test]
fn a_dead_letter_that_finds_no_room_while_its_subscription_is_made_anew_says_nothing_to_the_store() {
    let mut world = World::new();
    world.leave_durable("c", "d");
    let client = world.connect_as(Some("c"));
    world.send(client, message(&prices(), 1));
    let consumer = world.consume_durably(client, "d", false);
    world.hold_store = true;
    world.submit(client, acknowledge(consumer, 1, 1, poison(), None));
    let close = Command::CloseSubscription { subscription: consumer.subscription, last_handed_over: 1 };
    world.submit(client, close);
    world.begin_to_make_anew(client, "d");
    world.store(full());
    world.assert_nothing_followed();
    world.refuse_to_make_anew();
    assert_eq!(world.pending(&queue("DLQ.topic.prices")), [1]);
}

#[test]
fn what_expires_while_its_subscription_is_made_anew_expires_only_if_that_fails() {
    for is_made in [true, false] {
        let mut world = World::new();
        world.leave_durable("c", "d");
        let client = world.connect_as(Some("c"));
        world.send(client, with_expiration(&prices(), 1, NOW.0 + 1_000));
        world.begin_to_make_anew(client, "d");
        world.advance(Duration::from_secs(2));
        world.assert_nothing_followed();
        if is_made {
            world.store(Ok(()));
            world.assert_nothing_followed();
        } else {
            world.refuse_to_make_anew();
            assert_eq!(world.pending(&queue("DLQ.topic.prices")), [1]);
        }
        let counts = world.counts(&prices());
        let expected = if is_made { (1, 0, 0) } else { (0, 1, 0) };
        assert_eq!((counts.discarded, counts.expired, counts.pending), expected);
    }
}

#[test]
fn what_becomes_visible_past_its_time_while_its_subscription_is_made_anew_ends_with_that() {
    let mut world = World::new();
    world.leave_durable("c", "d");
    let client = world.connect_as(Some("c"));
    world.hold_store = true;
    world.send(client, with_expiration(&prices(), 1, NOW.0 + 1_000));
    world.begin_to_make_anew(client, "d");
    world.advance(Duration::from_secs(2));
    world.store(Ok(()));
    world.assert_nothing_followed();
    world.store(Ok(()));
    world.assert_nothing_followed();
    assert_eq!((world.counts(&prices()).pending, world.machine.memory_used()), (0, 0));
}
