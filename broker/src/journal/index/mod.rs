//! What the records of the journal add up to: which messages live and where, transactions, totals, producers, and how
//! many live records each segment has. Pure: records in, state out.

mod changes;
mod holder;
mod producers;
#[cfg(test)]
mod tests;
mod weight;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use corriere_core::message::Priority;
use corriere_core::{Destination, MessageId, Timestamp};

pub(crate) use changes::{Changes, Saved, SavedTransaction, TransactionChange};
pub(crate) use holder::Holder;
pub(crate) use producers::Producer;
pub(crate) use weight::{Weight, greatest_weight, greatest_weight_of_transaction};

use self::holder::Queue;
use self::producers::Producers;
use super::change::{Appended, Change, Entry, LargeFile, Recipients};
use super::lsn::Lsn;
use crate::store::{
    Arrival, Attempt, DeliveryState, PreparedTransaction, Recovered, RecoveredMessage, Removal,
    StoreTransaction, StoredId, SubscriptionName,
};

/// The state that the journal describes. Records are applied in the order of the journal.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// In the order of their names, which is about that of their records and of their positions: what is sent last is
    /// entered at the end, and a million of them are read in order.
    references: BTreeMap<StoredId, Reference>,
    /// Queues and durable subscriptions.
    queues: BTreeMap<u32, Queue>,
    queue_numbers: HashMap<Destination, u32>,
    subscription_numbers: HashMap<SubscriptionName, u32>,
    /// Subscriptions that were made as something went to them, where that may be.
    guessed: Option<Vec<SubscriptionName>>,
    transactions: HashMap<StoreTransaction, Transaction>,
    /// What the transactions send that are not over.
    sent: BTreeMap<StoredId, Reference>,
    producers: Producers,
    /// Live records of each segment, by the LSN at which it begins.
    segments: BTreeMap<u64, u64>,
    counters: Counters,
    /// What differs from the checkpoint, and whether that has it at all: one that came and went in between is never
    /// written there.
    changed: BTreeMap<StoredId, bool>,
    ended: Vec<TransactionChange>,
    removed_queues: Vec<u32>,
    /// The messages of durable subscriptions that are gone, as far as they are among the references still.
    gone: Vec<BTreeSet<StoredId>>,
    /// How many live messages are in each large file.
    large: HashMap<StoredId, u32>,
    dead_large: Vec<StoredId>,
    /// What all of this takes in a checkpoint.
    weight: Weight,
}

/// Numbers that only rise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// The position of the message that became visible last.
    pub(crate) position: u64,
    /// The greatest name of a message that was ever used.
    pub(crate) last_id: StoredId,
    /// The number of the transaction that began last.
    pub(crate) transaction: u64,
    /// The place, among those prepared, of the transaction that was prepared last.
    pub(crate) prepared: u64,
    /// How many queues and durable subscriptions were ever numbered.
    pub(crate) queues: u64,
}

/// A live message, without its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) lsn: Lsn,
    /// Bytes of its record.
    pub(crate) length: u32,
    /// The number of its queue or its durable subscription.
    pub(crate) queue: u32,
    /// Its place in there; 0 while its transaction is open.
    pub(crate) position: u64,
    pub(crate) size: u64,
    pub(crate) priority: Priority,
    pub(crate) expiration: Option<Timestamp>,
    pub(crate) state: DeliveryState,
    /// The file of its own that has its body.
    pub(crate) large: Option<LargeFile>,
}

/// What a transaction does when it is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Send { stored: StoredId, reference: Reference, arrival: Arrival, producer: Option<(Arc<str>, u64)> },
    Remove { stored: StoredId, reason: Removal },
}

#[derive(Debug)]
struct Transaction {
    number: u64,
    prepared: Option<u64>,
    operations: Vec<Operation>,
    /// How many of the operations the checkpoint has; `None` while it does not know the transaction at all.
    saved: Option<usize>,
    changed: bool,
}

impl Index {
    /// A segment begins at `base`, behind all that are known.
    pub(crate) fn add_segment(&mut self, base: Lsn) {
        self.segments.entry(base.0).or_default();
    }

    /// A segment is gone.
    pub(crate) fn forget_segment(&mut self, base: Lsn) {
        self.segments.remove(&base.0);
    }

    /// Only these are there, in the order of their bases.
    pub(crate) fn retain_segments(&mut self, bases: &[Lsn]) {
        self.segments.retain(|base, _| bases.binary_search(&Lsn(*base)).is_ok());
    }

    /// Live records of each segment by its base, those of open transactions included.
    #[cfg(test)]
    pub(crate) fn segments(&self) -> &BTreeMap<u64, u64> {
        &self.segments
    }

    /// What all of this takes in a checkpoint.
    pub(crate) fn weight(&self) -> Weight {
        Weight { others: self.weight.others + self.producers.weight(), ..self.weight }
    }

    /// Applies the next record. What it says of a message or a transaction that is not there is without effect.
    pub(crate) fn apply(&mut self, entry: Entry) {
        match entry.change {
            Change::Append(appended) => self.append(entry.lsn, entry.length, &appended),
            Change::CreateSubscription { subscription, topic, no_local } => {
                self.create_subscription(subscription, topic, no_local);
            }
            Change::RemoveSubscription(subscription) => self.remove_subscription(&subscription),
            Change::Remove { stored, reason, transaction: None } => self.remove(stored, reason),
            Change::Remove { stored, reason, transaction: Some(transaction) } => {
                self.add_operation(transaction, Operation::Remove { stored, reason });
            }
            Change::DeliveryState { stored, state } => self.set_state(stored, state),
            Change::Prepare(xid) => {
                self.counters.prepared += 1;
                let place = self.counters.prepared;
                let transaction = self.transaction(StoreTransaction::Distributed(xid));
                transaction.prepared = Some(place);
            }
            Change::Commit(transaction) => self.commit(&transaction),
            Change::Rollback(transaction) => self.roll_back(&transaction),
        }
    }

    /// A message that is on a queue, or in a transaction that is not over.
    pub(crate) fn find(&self, stored: StoredId) -> Option<Reference> {
        self.held(stored).or_else(|| self.sent.get(&stored)).copied()
    }

    /// All live messages, those of open transactions included, in no order.
    pub(crate) fn live(&self) -> impl Iterator<Item = (StoredId, Reference)> {
        let held = self.references.iter().filter(|(_, reference)| self.is_held(reference));
        held.chain(&self.sent).map(|(stored, reference)| (*stored, *reference))
    }

    /// Messages on queues and with durable subscriptions.
    pub(crate) fn messages(&self) -> usize {
        self.references.len() - self.gone.iter().map(BTreeSet::len).sum::<usize>()
    }

    /// Drops the transactions that were open and not prepared when the process ended: nobody can go on with them.
    pub(crate) fn drop_open(&mut self) {
        let open = self.transactions.iter().filter(|(_, transaction)| transaction.prepared.is_none());
        let open: Vec<_> = open.map(|(id, _)| id.clone()).collect();
        for id in open {
            self.roll_back(&id);
        }
    }

    /// Counts a delivery during which the process ended as failed, if its message is still there.
    pub(crate) fn apply_attempt(&mut self, attempt: Attempt) {
        let Some(reference) = self.held(attempt.stored) else { return };
        let mut state = reference.state;
        if state.failed_deliveries < attempt.delivery {
            state.failed_deliveries = attempt.delivery;
            self.set_state(attempt.stored, state);
        }
    }

    /// The state as the broker gets it when it starts.
    pub(crate) fn recovered(&self) -> Recovered {
        let mut found: BTreeMap<u32, (Vec<u64>, Vec<RecoveredMessage>)> = BTreeMap::new();
        for (stored, reference) in &self.references {
            let (positions, messages) = found.entry(reference.queue).or_default();
            positions.push(reference.position);
            messages.push(reference.recovered(*stored));
        }
        let mut recovered = Recovered {
            prepared: self.prepared(),
            producers: self.producers.in_order().map(|(name, producer)| (name, producer.sequence)).collect(),
            last_id: self.counters.last_id,
            ..Recovered::default()
        };
        for (number, queue) in &self.queues {
            let (positions, mut messages) = found.remove(number).unwrap_or_default();
            // Only transactions give positions in another order than that of the names.
            if !positions.is_sorted() {
                let mut placed: Vec<_> = positions.into_iter().zip(messages).collect();
                placed.sort_unstable_by_key(|(position, _)| *position);
                messages = placed.into_iter().map(|(_, message)| message).collect();
            }
            queue.add_to(&mut recovered, messages);
        }
        recovered.queues.sort_unstable_by(|one, other| one.destination.cmp(&other.destination));
        recovered
    }

    fn prepared(&self) -> Vec<PreparedTransaction> {
        let mut prepared = Vec::new();
        for (id, transaction) in &self.transactions {
            let (StoreTransaction::Distributed(xid), Some(place)) = (id, transaction.prepared) else {
                continue;
            };
            let mut found = PreparedTransaction {
                xid: xid.clone(),
                sends: Vec::new(),
                ids: Vec::new(),
                acknowledged: Vec::new(),
            };
            for operation in &transaction.operations {
                match operation {
                    Operation::Send { stored, reference, producer, .. } => {
                        let Some(queue) = self.queues.get(&reference.queue) else { continue };
                        found.sends.push((queue.holder.recipient(), reference.recovered(*stored)));
                        let id = producer.clone();
                        found.ids.push(id.map(|(producer, sequence)| MessageId { producer, sequence }));
                    }
                    Operation::Remove { stored, .. } => {
                        found.acknowledged.extend(self.held(*stored).map(|_| *stored));
                    }
                }
            }
            prepared.push((place, found));
        }
        prepared.sort_unstable_by_key(|(place, _)| *place);
        prepared.into_iter().map(|(_, found)| found).collect()
    }

    fn append(&mut self, lsn: Lsn, length: u32, appended: &Appended) {
        if appended.transaction.is_none() {
            self.note_sent(appended.arrival, appended.producer.as_ref());
        }
        self.counters.last_id = self.counters.last_id.max(appended.last_name());
        match &appended.to {
            Recipients::Queue(destination) => {
                let queue = self.queue_number(destination);
                self.enter(appended.stored, appended.reference(lsn, length, queue), appended);
            }
            Recipients::Subscriptions(topic, names) => {
                let mut is_needed = false;
                for (place, name) in names.iter().enumerate() {
                    let Some(number) = self.subscription_number(topic, name) else { continue };
                    let reference = appended.reference(lsn, length, number);
                    self.enter(appended.stored.with(place), reference, appended);
                    is_needed = true;
                }
                self.dead_large.extend(appended.large.filter(|_| !is_needed).map(|large| large.name));
            }
        }
    }

    /// A message enters a queue or a subscription, now or when its transaction is committed.
    fn enter(&mut self, stored: StoredId, reference: Reference, appended: &Appended) {
        self.raise(&reference);
        match &appended.transaction {
            None => self.show(stored, reference, appended.arrival),
            Some(transaction) => {
                self.sent.insert(stored, reference);
                let (arrival, producer) = (appended.arrival, appended.producer.clone());
                let operation = Operation::Send { stored, reference, arrival, producer };
                self.add_operation(transaction.clone(), operation);
            }
        }
    }

    /// Notes the producer of a message that takes effect.
    fn note_sent(&mut self, arrival: Arrival, producer: Option<&(Arc<str>, u64)>) {
        // What is moved keeps the name that its producer gave it, long ago perhaps.
        if let (Arrival::Sent, Some((name, sequence))) = (arrival, producer) {
            self.producers.note(Arc::clone(name), *sequence);
        }
    }

    /// A message becomes visible, unless the subscription that it was sent to is gone.
    fn show(&mut self, stored: StoredId, mut reference: Reference, arrival: Arrival) {
        let Some(queue) = self.queues.get_mut(&reference.queue) else {
            self.bury(reference);
            return;
        };
        queue.totals.enqueued += u64::from(arrival == Arrival::Sent);
        queue.changed = true;
        queue.note(stored);
        self.counters.position += 1;
        reference.position = self.counters.position;
        self.changed.entry(stored).or_insert(false);
        self.weight.references += weight::of_reference(&reference);
        self.weight.fresh += weight::of_reference(&reference);
        self.references.insert(stored, reference);
    }

    fn remove(&mut self, stored: StoredId, reason: Removal) {
        let Some(reference) = self.held(stored).copied() else { return };
        self.take_out(stored);
        if let Some(queue) = self.queues.get_mut(&reference.queue) {
            match reason {
                Removal::Acknowledged => queue.totals.acknowledged += 1,
                Removal::DeadLettered => queue.totals.dead_lettered += 1,
                Removal::Expired | Removal::Discarded | Removal::Purged | Removal::MovedOut => {}
            }
            queue.changed = true;
            queue.forget(stored);
        }
    }

    /// Takes a message out for good.
    fn take_out(&mut self, stored: StoredId) {
        let Some(reference) = self.references.remove(&stored) else { return };
        self.weight.references -= weight::of_reference(&reference);
        if !*self.changed.entry(stored).or_insert(true) {
            self.changed.remove(&stored);
            self.weight.fresh -= weight::of_reference(&reference);
        }
        self.bury(reference);
    }

    fn set_state(&mut self, stored: StoredId, state: DeliveryState) {
        if self.held(stored).is_some()
            && let Some(reference) = self.references.get_mut(&stored)
        {
            reference.state = state;
            self.changed.entry(stored).or_insert(true);
        }
    }

    fn commit(&mut self, transaction: &StoreTransaction) {
        for operation in self.end(transaction) {
            match operation {
                Operation::Send { stored, reference, arrival, producer } => {
                    self.note_sent(arrival, producer.as_ref());
                    self.show(stored, reference, arrival);
                }
                Operation::Remove { stored, reason } => self.remove(stored, reason),
            }
        }
    }

    fn roll_back(&mut self, transaction: &StoreTransaction) {
        for operation in self.end(transaction) {
            if let Operation::Send { reference, .. } = operation {
                self.bury(reference);
            }
        }
    }

    fn add_operation(&mut self, id: StoreTransaction, operation: Operation) {
        self.weight.others += weight::of_operation(&operation);
        self.transaction(id).operations.push(operation);
    }

    fn end(&mut self, id: &StoreTransaction) -> Vec<Operation> {
        let Some(transaction) = self.transactions.remove(id) else { return Vec::new() };
        self.weight.others -= weight::of_transaction(id);
        self.weight.others -= transaction.operations.iter().map(weight::of_operation).sum::<u64>();
        if let Some(operations) = transaction.saved {
            self.ended.push(TransactionChange::Ended { number: transaction.number, operations });
        }
        for operation in &transaction.operations {
            if let Operation::Send { stored, .. } = operation {
                self.sent.remove(stored);
            }
        }
        transaction.operations
    }

    /// The record of a message is needed, by one more.
    fn raise(&mut self, reference: &Reference) {
        self.count(reference.lsn, 1);
        if let Some(large) = reference.large {
            *self.large.entry(large.name).or_default() += 1;
        }
    }

    /// The record of a message is needed no more, or by one less.
    fn bury(&mut self, reference: Reference) {
        self.count(reference.lsn, -1);
        if let Some(large) = reference.large
            && let Some(live) = self.large.get_mut(&large.name)
        {
            *live -= 1;
            if *live == 0 {
                self.large.remove(&large.name);
                self.dead_large.push(large.name);
            }
        }
    }

    fn count(&mut self, lsn: Lsn, by: i64) {
        if let Some((_, live)) = self.segments.range_mut(..=lsn.0).next_back() {
            *live = live.saturating_add_signed(by);
        }
    }

    fn transaction(&mut self, id: StoreTransaction) -> &mut Transaction {
        let counters = &mut self.counters;
        let others = &mut self.weight.others;
        let own = weight::of_transaction(&id);
        let transaction = self.transactions.entry(id).or_insert_with(|| {
            *others += own;
            counters.transaction += 1;
            let number = counters.transaction;
            Transaction { number, prepared: None, operations: Vec::new(), saved: None, changed: true }
        });
        transaction.changed = true;
        transaction
    }
}

impl Appended {
    /// What the index has of it with one of those that it goes to.
    fn reference(&self, lsn: Lsn, length: u32, queue: u32) -> Reference {
        Reference {
            lsn,
            length,
            queue,
            position: 0,
            size: self.size,
            priority: self.priority,
            expiration: self.expiration,
            state: DeliveryState::default(),
            large: self.large,
        }
    }
}

impl Reference {
    fn recovered(&self, stored: StoredId) -> RecoveredMessage {
        RecoveredMessage {
            stored,
            priority: self.priority,
            expiration: self.expiration,
            size: self.size,
            state: self.state,
        }
    }
}
