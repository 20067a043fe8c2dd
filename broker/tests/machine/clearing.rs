//! What ends with very many messages: it is over at once, and everything else goes on while they leave memory.

use std::time::Duration;

use corriere_broker::Settings;
use corriere_broker::machine::ConnectionKey;
use corriere_core::Destination;
use corriere_core::provider::{AckKind, Command, Confirmation};

use super::durable::{prices, unsubscribe};
use super::world::*;

/// How many messages leave memory in one step.
const AT_ONCE: u64 = 1_024;
const MANY: u64 = 5_000;

/// Bytes of a message at most: what is in its ids differs.
fn most() -> u64 {
    message(&prices(), MANY).size() as u64 + 10
}

impl World {
    /// Lets the rest leave memory, bit by bit, and has a message go to a consumer of `orders` before each. Answers how many
    /// times that was.
    fn clear_beside(&mut self, sender: ConnectionKey, consumer: Consumer) -> u64 {
        let mut steps = 0;
        while self.wake_at.is_some() {
            let before = self.machine.memory_used();
            assert!(steps < MANY, "{before} bytes stay");
            self.send(sender, message(&queue("orders"), steps));
            let received = self.received(consumer);
            assert_eq!(sequences(&received), [steps], "others go on");
            let number = received.first().unwrap().number;
            self.ack(consumer, number, number, AckKind::Standard);
            self.advance(Duration::from_millis(1));
            let cleared = before - self.machine.memory_used();
            assert!(cleared <= AT_ONCE * most(), "{cleared} bytes in one step");
            steps += 1;
        }
        steps
    }
}

#[test]
fn a_subscription_with_very_many_messages_is_over_at_once_and_others_go_on_while_it_is_cleared_away() {
    let mut world = World::new();
    world.leave_durable("c", "d");
    let sender = world.connect();
    let consumer = world.consumer(sender, &queue("orders"), window(10));
    world.publish(sender, 1..=MANY);
    // Some of it would become dead letters by now, were it still there.
    for sequence in 1..=10 {
        world.send(sender, with_expiration(&prices(), MANY + sequence, NOW.0 + 2));
    }
    let client = world.connect_as(Some("c"));
    world.done(client, unsubscribe("d"));
    assert!(world.machine.durable_subscriptions().is_empty());
    let counts = world.counts(&prices());
    assert_eq!((counts.discarded, counts.pending), (MANY + 10, 0));
    assert!(world.machine.memory_used() > 0, "it is too little to be cleared away in several steps");

    // Another one of the same name is made meanwhile.
    let again = world.durable(client, "d");
    assert!(world.received(again).is_empty());
    assert_eq!(world.clear_beside(sender, consumer), MANY / AT_ONCE);
    assert_eq!(world.machine.memory_used(), 0);
    assert!(world.pending(&queue("DLQ.topic.prices")).is_empty());
    assert_eq!(world.counts(&prices()), counts);
    world.publish(sender, [7]);
    assert_eq!(sequences(&world.received(again)), [7]);
}

#[test]
fn one_that_is_made_anew_is_cleared_away_likewise() {
    let mut world = World::new();
    world.leave_durable("c", "d");
    let sender = world.connect();
    let consumer = world.consumer(sender, &queue("orders"), window(10));
    world.publish(sender, 1..=MANY);
    let client = world.connect_as(Some("c"));
    let (again, outcome) = world.try_durable(client, "d", |subscribe| subscribe.no_local = true);
    assert_eq!(outcome, Ok(Confirmation::Done));
    assert_eq!(world.clear_beside(sender, consumer), MANY / AT_ONCE);
    assert!(world.received(again).is_empty() && world.machine.memory_used() == 0);
    world.publish(sender, [7]);
    assert_eq!(sequences(&world.received(again)), [7]);
}

#[test]
fn a_send_that_waits_for_memory_goes_on_before_all_is_cleared_away() {
    let memory_limit = MANY * most();
    let mut world = World::with(Settings { memory_limit, ..Settings::default() });
    world.leave_durable("c", "d");
    let sender = world.connect();
    while world.machine.memory_used() + most() <= memory_limit {
        world.publish(sender, [1]);
    }
    let send = |number| message(&queue("orders"), number);
    let waiting: Vec<_> = (0..2 * AT_ONCE).map(|number| world.send(sender, send(number))).collect();
    let is_in = |world: &World, ticket| world.outcome(ticket) == Some(&Ok(Confirmation::Done));
    let (first, last) = (waiting[9], waiting[waiting.len() - 1]);
    assert!(!is_in(&world, first), "memory is full");
    let client = world.connect_as(Some("c"));
    world.done(client, unsubscribe("d"));
    assert_eq!((is_in(&world, first), is_in(&world, last)), (true, false));
    world.advance(Duration::from_millis(2));
    assert!(waiting.iter().all(|ticket| is_in(&world, *ticket)));
    assert!(world.wake_at.is_some(), "not all is cleared away");
    world.advance(Duration::from_secs(1));
    assert_eq!(world.counts(&queue("orders")).pending, 2 * AT_ONCE);
    assert!(world.machine.memory_used() <= 2 * AT_ONCE * most());
}

#[test]
fn a_subscriber_to_a_topic_that_was_far_behind_leaves_all_that_it_was_not_handed() {
    let mut world = World::new();
    let sender = world.connect();
    let consumer = world.consumer(sender, &queue("orders"), window(10));
    let client = world.connect();
    let behind = world.consumer(client, &prices(), window(10));
    for sequence in 1..=MANY {
        world.send(sender, non_persistent(&prices(), sequence));
    }
    assert_eq!(world.received(behind).len(), 10);
    world.close(behind, 2);
    let counts = world.counts(&prices());
    assert_eq!((counts.discarded, counts.pending, counts.in_flight), (MANY - 2, 2, 2));
    assert!(world.clear_beside(sender, consumer) >= 4);
    let used = world.machine.memory_used();
    assert!(0 < used && used <= 2 * most(), "{used} bytes");
    world.close_session(behind);
    let counts = world.counts(&prices());
    assert_eq!((counts.discarded, counts.pending, world.machine.memory_used()), (MANY, 0, 0));
}

#[test]
fn a_temporary_queue_with_very_many_messages_is_gone_at_once() {
    let mut world = World::new();
    let sender = world.connect();
    let consumer = world.consumer(sender, &queue("orders"), window(10));
    let client = world.connect();
    let destination: Destination = world.temporary_queue(client);
    for sequence in 1..=MANY {
        world.send(sender, non_persistent(&destination, sequence));
    }
    world.done(client, Command::DeleteTemporary { destination: destination.clone() });
    assert_eq!(world.machine.counts(&destination), None);
    assert!(world.machine.memory_used() > 0);
    assert!(world.clear_beside(sender, consumer) >= 4);
    assert_eq!(world.machine.memory_used(), 0);
}
