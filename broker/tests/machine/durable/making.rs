//! Durable subscriptions that are made, and made anew.

use corriere_broker::machine::{Input, Ticket};
use corriere_broker::store::StoreError;
use corriere_core::provider::{Command, Confirmation, ProviderError, Subscribe};
use corriere_core::{Destination, SubscriptionId};

use super::{fleeting, prices};
use crate::world::*;

/// What makes a subscription another one of the same name.
const CHANGES: [fn(&mut Subscribe); 2] = [
    |subscribe| subscribe.destination = Destination::topic("news").unwrap(),
    |subscribe| subscribe.no_local = true,
];

#[test]
fn another_topic_or_another_no_local_makes_it_anew() {
    for change in CHANGES {
        let mut world = World::new();
        world.leave_durable("c", "d");
        let sender = world.connect();
        world.publish(sender, 1..=2);
        let client = world.connect_as(Some("c"));
        let (consumer, outcome) = world.try_durable(client, "d", change);
        assert_eq!(outcome, Ok(Confirmation::Done));
        assert!(world.received(consumer).is_empty());
        let counts = world.counts(&prices());
        assert_eq!((counts.discarded, counts.pending, world.machine.memory_used()), (2, 0, 0));
        assert_eq!(world.machine.durable_subscriptions().len(), 1);
    }
}

#[test]
fn one_that_could_not_be_made_anew_is_what_it_was() {
    for change in CHANGES {
        let mut world = World::new();
        world.leave_durable("c", "d");
        let sender = world.connect();
        world.publish(sender, 1..=2);
        let client = world.connect_as(Some("c"));
        world.hold_store = true;
        let ticket = world.submit_durable(client, 7, change);
        world.store(Err(StoreError::Full { reason: "no room".into() }));
        assert!(matches!(world.outcome(ticket), Some(Err(ProviderError::Store { .. }))));
        assert!(world.unstored.is_empty(), "nothing of it is removed: {:?}", world.operations.last());
        world.hold_store = false;
        assert_eq!((world.described("d").is_active, world.described("d").topic), (false, prices()));
        world.publish(sender, [3]);
        let consumer = world.durable(client, "d");
        assert_eq!(sequences(&world.received(consumer)), [1, 2, 3]);
        let counts = world.counts(&prices());
        assert_eq!((counts.discarded, counts.pending), (0, 3));
    }
}

#[test]
fn of_several_that_are_being_made_the_last_one_stays_that_the_store_made() {
    for (first, second, stays) in [(true, true, "prices"), (true, false, "news"), (false, false, "prices")] {
        let mut world = World::new();
        world.leave_durable("c", "d");
        let sender = world.connect();
        world.publish(sender, 1..=2);
        let client = world.connect_as(Some("c"));
        world.hold_store = true;
        world.submit_durable(client, 7, |subscribe| {
            subscribe.destination = Destination::topic("news").unwrap();
        });
        let subscription = SubscriptionId(7);
        world.done(client, Command::CloseSubscription { subscription, last_handed_over: 0 });
        let ticket = world.submit_durable(client, 8, |subscribe| subscribe.no_local = true);
        for made in [first, second] {
            let refused = Err(StoreError::Full { reason: "no room".into() });
            world.store(if made { Ok(()) } else { refused });
        }
        assert_eq!(world.outcome(ticket).unwrap().is_ok(), second);
        let described = world.described("d");
        assert_eq!((described.topic.name(), described.no_local), (stays, second));
        let left = if first { 0 } else { 2 };
        assert_eq!((described.counts.pending, world.counts(&prices()).pending), (left, left));
        assert_eq!(world.machine.memory_used() > 0, !first);
    }
}

#[test]
fn it_is_to_a_topic_that_lasts() {
    let mut world = World::new();
    let client = world.connect_as(Some("c"));
    for destination in [queue("orders"), world.temporary_queue(client)] {
        let (_, refused) = world.try_durable(client, "d", |subscribe| subscribe.destination = destination);
        assert!(matches!(refused, Err(ProviderError::InvalidDestination { .. })), "{refused:?}");
    }
    assert!(world.machine.durable_subscriptions().is_empty());
}

#[test]
fn one_that_the_store_does_not_take_is_refused_and_leaves_nothing() {
    let mut world = World::new();
    let client = world.connect_as(Some("c"));
    let session = world.session(client);
    let mut wanted = subscribe(session, SubscriptionId(7), &prices(), window(5));
    wanted.durable_name = Some("d".into());
    world.hold_store = true;
    let ticket = world.submit(client, Command::OpenSubscription(Box::new(wanted.clone())));
    assert_eq!(world.outcome(ticket), None, "it is confirmed when it is durable");
    world.step(Input::Command {
        connection: client,
        ticket: Ticket::NOBODY,
        command: send(fleeting(1), None),
    });
    world.store(Err(StoreError::Full { reason: "no room".into() }));
    assert!(matches!(world.outcome(ticket), Some(Err(ProviderError::Store { .. }))));
    assert!(world.machine.durable_subscriptions().is_empty());
    assert_eq!((world.machine.memory_used(), world.unstored.len()), (0, 0));
    world.hold_store = false;
    world.done(client, Command::OpenSubscription(Box::new(wanted)));
}

#[test]
fn one_that_is_closed_and_opened_again_before_it_is_durable_is_confirmed_only_then() {
    let mut world = World::new();
    let client = world.connect_as(Some("c"));
    let session = world.session(client);
    let open = |number| {
        let mut wanted = subscribe(session, SubscriptionId(number), &prices(), window(5));
        wanted.durable_name = Some("d".into());
        Command::OpenSubscription(Box::new(wanted))
    };
    world.hold_store = true;
    world.submit(client, open(7));
    world.done(client, Command::CloseSubscription { subscription: SubscriptionId(7), last_handed_over: 0 });
    let again = world.submit(client, open(8));
    assert_eq!(world.outcome(again), None);
    world.store(Ok(()));
    assert_eq!(world.outcome(again), Some(&Ok(Confirmation::Done)));
}
