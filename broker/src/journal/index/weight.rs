//! How many bytes the index takes in a checkpoint: what its rows have, with what a table adds to each.

use corriere_core::Destination;

use super::{Holder, Operation, Reference};
use crate::journal::change::{Appended, Change, Recipients};
use crate::store::{StoreTransaction, SubscriptionName};

/// Bytes of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weight {
    /// Those of messages on queues.
    pub(crate) references: u64,
    /// Of these, the ones that no checkpoint has and that the next one writes.
    pub(crate) fresh: u64,
    /// Those of queues, producers and transactions.
    pub(crate) others: u64,
}

/// What a row takes beside its key and value: where each of them ends, in a leaf and in what is above it.
const ROW: u64 = 16;

/// The fields of a reference that each one has, with the longest state.
const REFERENCE: u64 = 57;

pub(super) fn of_reference(reference: &Reference) -> u64 {
    // The file of one that others share has a name of its own.
    let optional = u64::from(reference.expiration.is_some()) + 2 * u64::from(reference.large.is_some());
    ROW + REFERENCE + 8 * optional
}

pub(super) fn of_holder(holder: &Holder) -> u64 {
    match holder {
        Holder::Queue(destination) => of_queue(destination),
        Holder::Subscription { name, topic, .. } => of_subscription(name, topic),
    }
}

fn of_subscription(name: &SubscriptionName, topic: &Destination) -> u64 {
    of_queue(topic) + 1 + 8 + (name.client_id.len() + name.name.len()) as u64
}

fn of_queue(destination: &Destination) -> u64 {
    // `queue://` and `topic://` are as long as each other.
    ROW + 4 + 24 + 8 + destination.name().len() as u64
}

pub(super) fn of_producer(name: &str) -> u64 {
    ROW + 16 + name.len() as u64
}

pub(super) fn of_transaction(id: &StoreTransaction) -> u64 {
    let id = match id {
        StoreTransaction::Local(connection, _) => connection.as_str().len() + 12,
        StoreTransaction::Distributed(xid) => xid.global.len() + xid.branch.len() + 12,
    };
    ROW + 8 + 10 + id as u64
}

pub(super) fn of_operation(operation: &Operation) -> u64 {
    ROW + 16
        + match operation {
            Operation::Send { reference, producer, .. } => {
                let producer = producer.as_ref().map_or(0, |(name, _)| 12 + name.len() as u64);
                11 + of_reference(reference) + producer
            }
            Operation::Remove { .. } => 10,
        }
}

/// What a record that is to be written may add to the index at most, besides its transaction.
pub(crate) fn greatest_weight(change: &Change) -> Weight {
    match change {
        Change::Append(appended) => of_appended(appended),
        Change::CreateSubscription { subscription, topic, .. } => {
            Weight { others: of_subscription(subscription, topic), ..Weight::default() }
        }
        Change::Remove { transaction: Some(_), .. } => Weight { others: ROW + 16 + 10, ..Weight::default() },
        Change::Remove { transaction: None, .. }
        | Change::DeliveryState { .. }
        | Change::Prepare(_)
        | Change::Commit(_)
        | Change::Rollback(_)
        | Change::RemoveSubscription(_) => Weight::default(),
    }
}

/// What a transaction may add to it that something belongs to, or that is prepared.
pub(crate) fn greatest_weight_of_transaction(id: &StoreTransaction) -> Weight {
    Weight { others: of_transaction(id), ..Weight::default() }
}

fn of_appended(appended: &Appended) -> Weight {
    let each = ROW + REFERENCE + 24;
    let (messages, queue) = match &appended.to {
        Recipients::Queue(queue) => (1, of_queue(queue)),
        Recipients::Subscriptions(_, subscriptions) => (subscriptions.len() as u64, 0),
    };
    let producer = appended.producer.as_ref().map_or(0, |(name, _)| of_producer(name));
    let mut others = queue + producer;
    if appended.transaction.is_some() {
        others += messages * (ROW + 16 + 23 + each + producer);
    }
    let references = messages * each;
    Weight { references, fresh: references, others }
}

impl std::ops::AddAssign for Weight {
    fn add_assign(&mut self, other: Self) {
        self.references += other.references;
        self.fresh += other.fresh;
        self.others += other.others;
    }
}

impl std::ops::SubAssign for Weight {
    fn sub_assign(&mut self, other: Self) {
        self.references -= other.references;
        self.fresh -= other.fresh;
        self.others -= other.others;
    }
}
