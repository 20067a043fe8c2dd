//! Durable subscriptions: what they keep while nobody consumes, who may have them, and what is left when they go.

use std::time::Duration;

use corriere_broker::machine::{ConnectionKey, Input, Machine, Ticket};
use corriere_broker::store::{
    DeliveryState, PreparedTransaction, Recipient, Recovered, RecoveredMessage, RecoveredSubscription,
    StoreError, StoreOperation, StoredId, SubscriptionName, Totals,
};
use corriere_broker::{DurableSubscription, Settings};
use corriere_core::provider::{AckKind, Command, Confirmation, ProviderError, Subscribe};
use corriere_core::{Destination, Message, SessionId, SubscriptionId, TransactionId, Xid};

use super::world::*;

fn prices() -> Destination {
    Destination::topic("prices").unwrap()
}

fn unsubscribe(name: &str) -> Command {
    Command::Unsubscribe { name: name.into() }
}

impl World {
    /// What would be a consumer of a durable subscription, and what it was told.
    fn try_durable(
        &mut self,
        connection: ConnectionKey,
        name: &str,
        change: impl FnOnce(&mut Subscribe),
    ) -> (Consumer, Outcome) {
        let session = self.session(connection);
        // Sessions are numbered apart from all else here.
        let subscription = SubscriptionId(session.0 + 10_000);
        let mut wanted = subscribe(session, subscription, &prices(), window(100));
        wanted.durable_name = Some(name.into());
        change(&mut wanted);
        let outcome = self.ask(connection, Command::OpenSubscription(Box::new(wanted)));
        (Consumer { connection, session, subscription }, outcome)
    }

    /// Asks for a consumer of the durable subscription `d`, in session 1.
    fn submit_durable(
        &mut self,
        connection: ConnectionKey,
        number: u64,
        change: impl FnOnce(&mut Subscribe),
    ) -> Ticket {
        let mut wanted = subscribe(SessionId(1), SubscriptionId(number), &prices(), window(100));
        wanted.durable_name = Some("d".into());
        change(&mut wanted);
        self.submit(connection, Command::OpenSubscription(Box::new(wanted)))
    }

    #[track_caller]
    fn durable(&mut self, connection: ConnectionKey, name: &str) -> Consumer {
        let (consumer, outcome) = self.try_durable(connection, name, |_| {});
        assert_eq!(outcome, Ok(Confirmation::Done));
        consumer
    }

    /// Makes one that nobody consumes from.
    #[track_caller]
    pub(crate) fn leave_durable(&mut self, client_id: &str, name: &str) {
        let connection = self.connect_as(Some(client_id));
        let consumer = self.durable(connection, name);
        self.close(consumer, 0);
        self.done(connection, Command::Close);
    }

    pub(crate) fn described(&self, name: &str) -> DurableSubscription {
        let all = self.machine.durable_subscriptions();
        all.into_iter().find(|described| &*described.name == name).expect("it is there")
    }

    fn publish(&mut self, connection: ConnectionKey, sequences: impl IntoIterator<Item = u64>) {
        for sequence in sequences {
            let sent = self.send(connection, message(&prices(), sequence));
            assert_eq!(self.outcome(sent), Some(&Ok(Confirmation::Done)));
        }
    }
}

/// One that is not persistent.
fn fleeting(sequence: u64) -> Message {
    non_persistent(&prices(), sequence)
}

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

/// C-33 (a) and (b).
#[test]
fn unsubscribing_an_unknown_or_used_subscription_is_refused_by_name_and_changes_nothing() {
    let mut world = World::new();
    let (sender, client) = (world.connect(), world.connect_as(Some("c")));
    world.leave_durable("other", "orders-archive");
    let consumer = world.durable(client, "orders");
    let refused = world.ask(client, unsubscribe("ordres"));
    let unknown = |name: &str, nearest: Option<&str>| ProviderError::UnknownSubscription {
        name: name.to_owned(),
        client_id: "c".to_owned(),
        nearest: nearest.map(str::to_owned),
    };
    assert_eq!(refused, Err(unknown("ordres", Some("orders"))));
    assert_eq!(world.ask(client, unsubscribe("orders-archive")), Err(unknown("orders-archive", None)));
    let Err(ProviderError::SubscriptionInUse { name, holder, .. }) = world.ask(client, unsubscribe("orders"))
    else {
        panic!("a consumer has it")
    };
    assert_eq!((&*name, &*holder), ("orders", "a consumer of connection ID:connection-2"));

    world.publish(sender, 1..=2);
    world.begin(client, 1);
    world.ack_in(consumer, 1, 1, 1);
    world.close(consumer, 1);
    assert!(!world.described("orders").is_active);
    let refused = world.ask(client, unsubscribe("orders"));
    assert!(
        matches!(&refused, Err(ProviderError::SubscriptionInUse { holder, .. })
            if holder.contains("connection ID:connection-2") && holder.contains("1 of its messages")),
        "{refused:?}"
    );
    world.roll_back(client, 1);
    let consumer = world.durable(client, "orders");
    assert_eq!(counted(&world.received(consumer)), [(1, 2), (2, 1)], "it is intact");
}

/// C-33 (b): a received message that nothing was said of.
#[test]
fn what_a_session_has_not_settled_keeps_the_subscription_until_the_session_has() {
    let mut world = World::new();
    let (sender, client) = (world.connect(), world.connect_as(Some("c")));
    let consumer = world.durable(client, "d");
    world.publish(sender, [1]);
    world.close(consumer, 1);
    assert!(matches!(world.ask(client, unsubscribe("d")), Err(ProviderError::SubscriptionInUse { .. })));
    let (_, refused) = world.try_durable(client, "d", |subscribe| subscribe.no_local = true);
    assert!(matches!(refused, Err(ProviderError::SubscriptionInUse { .. })), "made anew it would lose that");
    world.close_session(consumer);
    world.done(client, unsubscribe("d"));
}

/// C-33 (c) and (d).
#[test]
fn an_unsubscribed_one_takes_all_with_it_and_is_not_made_by_a_name_without_a_client() {
    let mut world = World::new();
    let (sender, client) = (world.connect(), world.connect_as(Some("c")));
    world.leave_durable("c2", "d");
    world.publish(sender, 1..=3);
    let client2 = world.connect_as(Some("c2"));
    world.hold_store = true;
    let ticket = world.submit(client2, unsubscribe("d"));
    assert_eq!(world.outcome(ticket), None, "it is confirmed when that is durable");
    let removed = |operation: &StoreOperation| matches!(operation, StoreOperation::RemoveSubscription(_));
    assert!(removed(world.operations.last().unwrap()));
    world.store(Ok(()));
    world.hold_store = false;
    assert_eq!(world.outcome(ticket), Some(&Ok(Confirmation::Done)));
    assert_eq!((world.machine.memory_used(), world.wake_at), (0, None));
    assert_eq!((world.counts(&prices()).discarded, world.counts(&prices()).pending), (3, 0));
    assert!(world.machine.durable_subscriptions().is_empty());
    world.operations.clear();
    world.publish(sender, [4]);
    assert!(world.operations.is_empty(), "nothing of the topic is stored any more");
    let refused = world.ask(sender, unsubscribe("d"));
    assert_eq!(refused, Err(ProviderError::NoClientId { name: "d".into() }));
    world.done(client, Command::Close);
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
fn another_topic_or_another_no_local_makes_it_anew() {
    let others: [fn(&mut Subscribe); 2] = [
        |subscribe| subscribe.destination = Destination::topic("news").unwrap(),
        |subscribe| subscribe.no_local = true,
    ];
    for change in others {
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
    let others: [fn(&mut Subscribe); 2] = [
        |subscribe| subscribe.destination = Destination::topic("news").unwrap(),
        |subscribe| subscribe.no_local = true,
    ];
    for change in others {
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
fn a_transaction_goes_to_those_that_were_there_when_it_sent_and_are_there_when_it_commits() {
    let mut world = World::new();
    world.leave_durable("c", "stays");
    world.leave_durable("c", "goes");
    let sender = world.connect();
    world.begin(sender, 1);
    world.send_in(sender, 1, message(&prices(), 1));
    world.send_in(sender, 1, fleeting(2));
    world.leave_durable("c", "late");
    let client = world.connect_as(Some("c"));
    world.done(client, unsubscribe("goes"));
    // One of the same name is another one.
    world.done(client, Command::Close);
    world.leave_durable("c", "goes");
    let committed = world.commit(sender, 1);
    assert_eq!(world.outcome(committed), Some(&Ok(Confirmation::Done)));
    let pending = |name| world.described(name).counts.pending;
    assert_eq!((pending("stays"), pending("goes"), pending("late")), (2, 0, 0));
    let client = world.connect_as(Some("c"));
    world.done(client, unsubscribe("stays"));
    assert_eq!(world.machine.memory_used(), 0);
}

#[test]
fn what_a_rolled_back_transaction_sent_leaves_nothing() {
    let mut world = World::new();
    world.leave_durable("c", "d");
    let sender = world.connect();
    world.begin(sender, 1);
    world.send_in(sender, 1, message(&prices(), 1));
    world.roll_back(sender, 1);
    assert_eq!((world.described("d").counts.pending, world.machine.memory_used()), (0, 0));
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

fn row(stored: u64) -> RecoveredMessage {
    RecoveredMessage {
        stored: StoredId(stored),
        priority: corriere_core::message::Priority::default(),
        expiration: None,
        size: 100,
        state: DeliveryState::default(),
    }
}

/// A store that brings back one subscription with two messages, and a prepared transaction that has acknowledged the first and
/// sends it another.
fn recovered() -> Recovered {
    let subscription = SubscriptionName { client_id: "c".into(), name: "d".into() };
    let xid = Xid { format: 1, global: vec![1].into(), branch: vec![2].into() };
    let prepared = PreparedTransaction {
        xid,
        sends: vec![(Recipient::Subscription(subscription.clone()), row(3))],
        ids: vec![None],
        acknowledged: vec![StoredId(1)],
    };
    let totals = Totals { enqueued: 5, acknowledged: 3, dead_lettered: 0 };
    let messages = vec![row(1), row(2)];
    let subscription =
        RecoveredSubscription { subscription, topic: prices(), no_local: true, totals, messages };
    Recovered {
        subscriptions: vec![subscription],
        prepared: vec![prepared],
        last_id: StoredId(3),
        ..Recovered::default()
    }
}

#[test]
fn a_start_brings_it_back_with_its_messages_and_with_what_is_prepared_for_it() {
    let mut world = World::on(Machine::recovered(Settings::default(), recovered(), true, NOW));
    let found = world.described("d");
    assert_eq!((found.is_active, found.no_local, found.counts.recovered), (false, true, 2));
    assert_eq!((found.totals.enqueued, world.counts(&prices()).recovered), (5, 2));
    let client = world.connect_as(Some("c"));
    let refused = world.ask(client, unsubscribe("d"));
    assert!(
        matches!(&refused, Err(ProviderError::SubscriptionInUse { holder, .. }) if holder.contains("prepared")),
        "{refused:?}"
    );
    let xid = Xid { format: 1, global: vec![1].into(), branch: vec![2].into() };
    let transaction = TransactionId::Distributed(xid);
    world.done(client, Command::Commit { transaction, one_phase: false });
    assert_eq!((world.described("d").counts.pending, world.counts(&prices()).acknowledged), (2, 1));
    world.done(client, unsubscribe("d"));
    assert!(world.counts(&prices()).are_conserved());
}

#[test]
fn a_prepared_send_to_one_that_is_gone_since_leaves_nothing() {
    let mut world = World::new();
    world.leave_durable("c", "d");
    let sender = world.connect();
    let xid = Xid { format: 1, global: vec![1].into(), branch: vec![2].into() };
    let transaction = TransactionId::Distributed(xid);
    world.done(sender, Command::Begin { transaction: transaction.clone() });
    world.submit(sender, send(message(&prices(), 1), Some(transaction.clone())));
    world.done(sender, Command::End { transaction: transaction.clone() });
    let vote = world.ask(sender, Command::Prepare { transaction: transaction.clone() });
    assert_eq!(vote, Ok(Confirmation::Prepared { must_commit: true }));
    let client = world.connect_as(Some("c"));
    world.done(client, unsubscribe("d"));
    world.done(sender, Command::Commit { transaction, one_phase: false });
    assert_eq!((world.counts(&prices()).pending, world.machine.memory_used()), (0, 0));
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

impl World {
    /// A consumer for which bodies are read back.
    fn durable_loading(&mut self, connection: ConnectionKey, name: &str) -> Consumer {
        let session = self.session(connection);
        let subscription = SubscriptionId(session.0 + 10_000);
        let mut wanted = subscribe(session, subscription, &prices(), window(100));
        wanted.durable_name = Some(name.into());
        let ticket = self.submit(connection, Command::OpenSubscription(Box::new(wanted)));
        self.bring_back();
        assert_eq!(self.outcome(ticket), Some(&Ok(Confirmation::Done)));
        Consumer { connection, session, subscription }
    }
}
