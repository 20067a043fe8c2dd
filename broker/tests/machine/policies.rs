//! Policies of destinations: the most specific one holds, between the broker's settings and what a subscription wants.

use std::time::Duration;

use corriere_broker::machine::Input;
use corriere_broker::{DeadLetters, DestinationPolicy, Settings};
use corriere_core::provider::{Command, Confirmation, Credit, Event};
use corriere_core::{Destination, DestinationPattern, RedeliveryOverrides, SubscriptionId};

use super::world::*;

const SECOND: Duration = Duration::from_secs(1);

fn policy_for(queues: &str) -> DestinationPolicy {
    DestinationPolicy::new(DestinationPattern::queue(queues).unwrap())
}

fn redelivering(queues: &str, maximum: u32) -> DestinationPolicy {
    let redelivery =
        RedeliveryOverrides { maximum_redeliveries: Some(Some(maximum)), ..RedeliveryOverrides::default() };
    DestinationPolicy { redelivery, ..policy_for(queues) }
}

fn world(policies: impl IntoIterator<Item = DestinationPolicy>) -> World {
    let policies = policies.into_iter().collect();
    World::with(Settings { redelivery: policy(), policies, ..Settings::default() })
}

/// How often a message of a destination is delivered until it dies.
fn deliveries_of(world: &mut World, destination: &Destination, own: Option<u32>) -> u32 {
    let connection = world.connect();
    let own = own
        .map(|maximum| corriere_core::RedeliveryPolicy { maximum_redeliveries: Some(maximum), ..policy() });
    let consumer = world.consumer_with(connection, destination, window(1), own);
    world.send(connection, message(destination, 1));
    let mut count = 0;
    while let Some(dispatch) = world.received(consumer).pop() {
        count += 1;
        world.ack(consumer, dispatch.number, dispatch.number, failed());
        world.advance(SECOND);
    }
    count
}

#[test]
fn the_most_specific_policy_holds_alone_over_the_broker_and_below_the_subscription() {
    let mut world =
        world([redelivering("orders.>", 4), redelivering("orders.eu", 0), redelivering("*.us", 5)]);
    for (name, own, expected) in [
        ("returns", None, 3),
        ("orders", None, 5),
        ("orders.us", None, 5),
        ("orders.eu", None, 1),
        ("returns.us", None, 6),
        ("orders.eu.de", Some(1), 2),
    ] {
        assert_eq!(deliveries_of(&mut world, &queue(name), own), expected, "{name}");
    }
    let topic = Destination::topic("orders.eu").unwrap();
    assert_eq!(deliveries_of(&mut world, &topic, None), 3, "a topic is no queue");
}

#[test]
fn what_a_policy_does_not_say_is_as_the_broker_has_it() {
    let mut patient = policy_for("orders");
    patient.redelivery.initial_delay = Some(SECOND * 5);
    let mut world = world([patient]);
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(1));
    world.send(connection, message(&orders, 1));
    for delay in [SECOND * 5, SECOND] {
        let dispatch = world.received(consumer).remove(0);
        world.ack(consumer, dispatch.number, dispatch.number, failed());
        world.advance(delay - Duration::from_millis(1));
        assert!(world.received(consumer).is_empty());
        world.advance(Duration::from_millis(1));
    }
    assert_eq!(counted(&world.received(consumer)), [(1, 3)]);
}

#[test]
fn dead_letters_go_where_the_policy_of_their_destination_says_and_never_die_again() {
    let shared = DestinationPolicy {
        dead_letters: Some(DeadLetters::Shared),
        dead_letter_non_persistent: Some(true),
        ..redelivering("shared", 0)
    };
    let discarded =
        DestinationPolicy { dead_letters: Some(DeadLetters::Discard), ..redelivering("discarded", 0) };
    let mut world = world([shared, discarded, redelivering("ActiveMQ.DLQ", 0), redelivering("own", 0)]);
    for name in ["shared", "discarded", "own"] {
        let (connection, from) = (world.connect(), queue(name));
        let consumer = world.consumer(connection, &from, window(5));
        world.send(connection, message(&from, 1));
        world.send(connection, non_persistent(&from, 2));
        for dispatch in world.received(consumer) {
            world.ack(consumer, dispatch.number, dispatch.number, poison());
        }
    }
    let pending = |world: &World, name: &str| world.counts(&queue(name)).pending;
    assert_eq!((pending(&world, "ActiveMQ.DLQ"), pending(&world, "DLQ.own")), (2, 1));
    assert_eq!((world.counts(&queue("discarded")).discarded, pending(&world, "DLQ.discarded")), (2, 0));
    let connection = world.connect();
    let consumer = world.consumer(connection, &queue("ActiveMQ.DLQ"), window(5));
    world.received(consumer);
    world.ack(consumer, 1, 1, failed());
    assert_eq!(pending(&world, "ActiveMQ.DLQ"), 2);
}

/// A subscription whose client left its prefetch to the broker.
fn default_consumer(world: &mut World, destination: &Destination, credit: Credit) -> Consumer {
    let connection = world.connect();
    let session = world.session(connection);
    let subscription = SubscriptionId(7);
    let mut wanted = subscribe(session, subscription, destination, credit);
    wanted.is_default_credit = true;
    world.done(connection, Command::OpenSubscription(Box::new(wanted)));
    Consumer { connection, session, subscription }
}

fn changes(world: &mut World) -> Vec<u32> {
    let told = std::mem::take(&mut world.changes).into_iter();
    told.map(|(_, event)| match event {
        Event::WindowChanged { prefetch, .. } => prefetch,
        other => panic!("{other:?}"),
    })
    .collect()
}

#[test]
fn the_prefetch_of_a_policy_is_for_those_who_left_theirs_to_the_broker() {
    let mut world = world([DestinationPolicy { prefetch: Some(3), ..policy_for("orders") }]);
    let (connection, orders) = (world.connect(), queue("orders"));
    for sequence in 1..=20 {
        world.send(connection, message(&orders, sequence));
    }
    let chosen = world.consumer(connection, &orders, window(1));
    assert_eq!(world.received(chosen).len(), 1);
    assert_eq!(changes(&mut world), [0; 0]);
    // The extension is half of it, rounded up, where it was bounded.
    for (extension, beyond) in [(Some(50), 2), (Some(0), 0), (None, 3)] {
        let consumer = default_consumer(&mut world, &orders, Credit::Window { prefetch: 100, extension });
        assert_eq!(changes(&mut world), [3]);
        assert_eq!(world.received(consumer).len(), 3);
        world.hand_over(consumer, 3);
        assert_eq!(world.received(consumer).len(), beyond, "{extension:?}");
        world.close_session(consumer);
    }
    // It is what they asked for, so nobody need be told.
    let consumer = default_consumer(&mut world, &orders, Credit::Window { prefetch: 3, extension: Some(2) });
    assert_eq!((changes(&mut world).len(), world.received(consumer).len()), (0, 3));
    let explicit = default_consumer(&mut world, &orders, Credit::Explicit);
    assert_eq!((changes(&mut world).len(), world.received(explicit).len()), (0, 0));
}

#[test]
fn an_operator_changes_the_windows_of_those_who_left_them_to_the_broker() {
    let mut world = world([]);
    let (connection, orders) = (world.connect(), queue("orders"));
    for sequence in 1..=20 {
        world.send(connection, message(&orders, sequence));
    }
    let credit = Credit::Window { prefetch: 2, extension: Some(1) };
    let consumer = default_consumer(&mut world, &orders, credit);
    let chosen = world.consumer(connection, &orders, credit);
    let changed = default_consumer(&mut world, &orders, credit);
    let subscription = changed.subscription;
    let command = Command::ChangeWindow { subscription, prefetch: 4, extension: Some(2) };
    assert_eq!(world.ask(changed.connection, command), Ok(Confirmation::Done));
    for consumer in [consumer, chosen, changed] {
        world.received(consumer);
    }
    world.step(Input::SetPrefetch { queue: orders.clone(), prefetch: 5 });
    assert_eq!(changes(&mut world), [5], "only the one who never chose");
    assert_eq!(world.received(consumer).len(), 3);
    assert!(world.received(chosen).is_empty() && world.received(changed).is_empty());
    // A smaller one takes nothing back, and holds for those who come later.
    world.step(Input::SetPrefetch { queue: orders.clone(), prefetch: 0 });
    assert_eq!(changes(&mut world), [1]);
    world.ack(consumer, 1, 4, corriere_core::provider::AckKind::Standard);
    assert!(world.received(consumer).is_empty());
    let later = default_consumer(&mut world, &orders, credit);
    assert_eq!((changes(&mut world), world.received(later).len()), (vec![1], 1));
}
