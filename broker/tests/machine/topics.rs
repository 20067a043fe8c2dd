//! Topics: a private queue for each subscription.

use std::time::Duration;

use corriere_core::provider::{AckKind, Command, Confirmation};
use corriere_core::{Destination, SessionId, SubscriptionId, TransactionId, Xid};

use super::world::*;

fn prices() -> Destination {
    Destination::topic("prices").unwrap()
}

#[test]
fn every_subscription_gets_its_own_and_fails_by_itself() {
    let mut world = World::new();
    let (connection, prices) = (world.connect(), prices());
    let [left, right] = [0; 2].map(|_| world.consumer(connection, &prices, window(5)));
    for sequence in 1..=2 {
        world.send(connection, message(&prices, sequence));
    }
    assert_eq!(sequences(&world.received(left)), [1, 2]);
    assert_eq!(sequences(&world.received(right)), [1, 2]);
    world.ack(left, 1, 1, failed());
    world.ack(right, 1, 2, AckKind::Standard);
    world.advance(Duration::from_secs(1));
    assert_eq!(counted(&world.received(left)), [(1, 2), (2, 1)]);
    assert!(world.received(right).is_empty());
    assert_eq!(world.counts(&prices).pending, 2);
    assert!(world.operations.is_empty(), "without a durable subscription nothing is stored");
}

#[test]
fn a_message_that_nobody_subscribed_to_is_confirmed_and_gone() {
    let mut world = World::new();
    let (connection, prices) = (world.connect(), prices());
    let send = world.send(connection, message(&prices, 1));
    assert_eq!(world.outcome(send), Some(&Ok(Confirmation::Done)));
    let late = world.consumer(connection, &prices, window(5));
    assert!(world.received(late).is_empty());
    assert_eq!((world.counts(&prices).came_in(), world.machine.memory_used()), (0, 0));
}

#[test]
fn a_closed_subscription_discards_what_it_left_and_keeps_what_it_handed_over() {
    let mut world = World::new();
    let (connection, prices) = (world.connect(), prices());
    let consumer = world.consumer(connection, &prices, window(2));
    for sequence in 1..=4 {
        world.send(connection, message(&prices, sequence));
    }
    world.close(consumer, 1);
    let counts = world.counts(&prices);
    assert_eq!((counts.discarded, counts.in_flight), (3, 1));
    world.send(connection, message(&prices, 5));
    assert_eq!(world.counts(&prices).enqueued, 4, "it is not bound any more");
    world.ack(consumer, 1, 1, AckKind::Standard);
    let counts = world.counts(&prices);
    assert_eq!((counts.acknowledged, counts.pending), (1, 0));
    assert_eq!(world.machine.memory_used(), 0);
}

#[test]
fn what_a_closed_subscription_gives_back_is_discarded() {
    let mut world = World::new();
    let (connection, prices) = (world.connect(), prices());
    let consumer = world.consumer(connection, &prices, window(2));
    for sequence in 1..=2 {
        world.send(connection, message(&prices, sequence));
    }
    world.close(consumer, 2);
    world.ack(consumer, 1, 1, failed());
    assert_eq!(world.counts(&prices).discarded, 1);
    world.close_session(consumer);
    assert_eq!(world.counts(&prices).discarded, 2);
    assert_eq!((world.wake_at, world.machine.memory_used()), (None, 0));
}

#[test]
fn poison_on_a_topic_goes_to_the_dead_letters_of_the_topic() {
    let mut world = World::new();
    let (connection, prices) = (world.connect(), prices());
    let consumer = world.consumer(connection, &prices, window(2));
    world.send(connection, message(&prices, 1));
    world.ack(consumer, 1, 1, poison());
    assert_eq!(world.pending(&queue("DLQ.topic.prices")), [1]);
    assert_eq!(world.counts(&prices).dead_lettered, 1);
}

#[test]
fn a_subscription_may_leave_out_what_its_own_connection_sends() {
    let mut world = World::new();
    let (own, other, prices) = (world.connect(), world.connect(), prices());
    let session = world.session(own);
    let subscription = SubscriptionId(77);
    let mut subscribe = subscribe(session, subscription, &prices, window(5));
    subscribe.no_local = true;
    world.done(own, Command::OpenSubscription(Box::new(subscribe)));
    world.send(own, message(&prices, 1));
    world.send(other, message(&prices, 2));
    let consumer = Consumer { connection: own, session, subscription };
    assert_eq!(sequences(&world.received(consumer)), [2]);
}

#[test]
fn a_transaction_reaches_those_who_are_subscribed_when_it_commits() {
    let mut world = World::new();
    let (connection, prices) = (world.connect(), prices());
    world.begin(connection, 1);
    world.send_in(connection, 1, message(&prices, 1));
    let consumer = world.consumer(connection, &prices, window(5));
    world.commit(connection, 1);
    assert_eq!(sequences(&world.received(consumer)), [1]);
}

#[test]
fn counts_of_subscriptions_that_are_gone_stay_in_the_topics() {
    let mut world = World::new();
    let (connection, prices) = (world.connect(), prices());
    for _ in 0..3 {
        let consumer = world.consumer(connection, &prices, window(5));
        world.send(connection, message(&prices, 1));
        world.ack(consumer, 1, 1, AckKind::Standard);
        world.close_session(consumer);
    }
    let counts = world.counts(&prices);
    assert_eq!((counts.enqueued, counts.acknowledged), (3, 3));
}

#[test]
fn what_a_connection_sends_in_a_transaction_is_left_out_of_its_own_no_local_subscription() {
    let mut world = World::new();
    let (own, other, prices) = (world.connect(), world.connect(), prices());
    let mut no_local = subscribe(SessionId(1), SubscriptionId(50), &prices, window(5));
    no_local.no_local = true;
    world.done(own, Command::OpenSubscription(Box::new(no_local)));
    let consumer = Consumer { connection: own, session: SessionId(1), subscription: SubscriptionId(50) };
    for (connection, sequence) in [(own, 1), (other, 2)] {
        world.begin(connection, 1);
        world.send_in(connection, 1, message(&prices, sequence));
        world.commit(connection, 1);
    }
    // Prepared it is nobody's, and still came from where it came from.
    let xid = Xid { format: 1, global: "g".into(), branch: "b".into() };
    let transaction = TransactionId::Distributed(xid);
    world.done(own, Command::Begin { transaction: transaction.clone() });
    world.done(own, send(message(&prices, 3), Some(transaction.clone())));
    world.ask(own, Command::Prepare { transaction: transaction.clone() }).unwrap();
    world.done(other, Command::Commit { transaction, one_phase: false });
    assert_eq!(sequences(&world.received(consumer)), [2]);
    assert_eq!(world.counts(&prices).enqueued, 1);
}
