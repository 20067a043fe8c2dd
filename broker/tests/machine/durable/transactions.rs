//! Durable subscriptions and transactions, over restarts too.

use corriere_broker::Settings;
use corriere_broker::machine::Machine;
use corriere_broker::store::{
    DeliveryState, PreparedTransaction, Recipient, Recovered, RecoveredMessage, RecoveredSubscription,
    StoredId, SubscriptionName, Totals,
};
use corriere_core::provider::{Command, Confirmation, ProviderError};
use corriere_core::{TransactionId, Xid};

use super::{fleeting, prices, unsubscribe};
use crate::world::*;

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
