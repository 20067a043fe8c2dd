//! What the store would bring back: the batches that it confirmed, applied in their order.

use std::sync::Arc;

use corriere_broker::store::{
    Arrival, Attempt, DeliveryState, PreparedTransaction, Recipient, Recovered, RecoveredMessage,
    RecoveredQueue, RecoveredSubscription, Removal, StoreOperation, StoreTransaction, StoredId,
    SubscriptionName, Totals,
};
use corriere_core::id::Xid;
use corriere_core::{Destination, Message, MessageId, Timestamp};

use super::{Judgement, Model, violation};

/// What is stored of one message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    at: Recipient,
    message: MessageId,
    failed: u32,
    not_before: Option<Timestamp>,
    /// When that was said.
    since: Timestamp,
    /// The same for the process that runs, which may have begun before it was said.
    held_until: Option<Timestamp>,
    conversion_failed: bool,
}

/// The durable state.
#[derive(Debug, Default)]
pub struct Durable {
    rows: Vec<(StoredId, Row)>,
    /// Every message that was ever stored.
    pub(super) messages: Vec<(StoredId, Arc<Message>)>,
    /// What open transactions are to do, and when each was staged.
    staged: Vec<(StoreTransaction, u64, StoreOperation)>,
    /// The durable subscriptions, and when each was made.
    subscriptions: Vec<(SubscriptionName, Destination, bool, u64)>,
    /// Counts what happened.
    moments: u64,
    prepared: Vec<Xid>,
    producers: Vec<(Arc<str>, u64)>,
    totals: Vec<(Recipient, Totals)>,
    complaint: Option<String>,
}

impl Durable {
    /// A batch takes effect as a whole; what carries a transaction waits for its commit.
    pub(super) fn apply(&mut self, batch: &[StoreOperation]) {
        for operation in batch {
            self.moments += 1;
            let now = self.moments;
            match operation {
                StoreOperation::Append { stored, message, .. } => {
                    self.messages.push((*stored, Arc::clone(message)));
                }
                StoreOperation::Publish { stored, subscriptions, message, .. } => {
                    let names = (0..subscriptions.len()).map(|place| stored.with(place));
                    self.messages.extend(names.map(|name| (name, Arc::clone(message))));
                }
                _ => {}
            }
            match operation {
                StoreOperation::Append { transaction: Some(transaction), .. }
                | StoreOperation::Publish { transaction: Some(transaction), .. }
                | StoreOperation::Remove { transaction: Some(transaction), .. } => {
                    self.staged.push((transaction.clone(), now, operation.clone()));
                }
                StoreOperation::Prepare(xid) => {
                    self.prepared.push(xid.clone());
                    let name = StoreTransaction::Distributed(xid.clone());
                    if !self.staged.iter().any(|(other, ..)| *other == name) {
                        self.complain(format!("{xid:?} is prepared with nothing in it"));
                    }
                }
                StoreOperation::Commit(transaction) => {
                    self.end_prepared(transaction);
                    let operations = self.unstage(transaction);
                    if operations.is_empty() {
                        self.complain(format!("{transaction:?} is committed with nothing in it"));
                    }
                    for (staged, operation) in operations {
                        self.perform(&operation, staged);
                    }
                }
                StoreOperation::Rollback(transaction) => {
                    self.end_prepared(transaction);
                    drop(self.unstage(transaction));
                }
                _ => self.perform(operation, now),
            }
        }
    }

    /// What a store would bring back after the end of the process, for one that begins `now`; `attempts` is what it has noted of deliveries. What was
    /// open is gone.
    pub(super) fn recover(&mut self, attempts: &[Attempt], now: Timestamp) -> Recovered {
        let prepared = std::mem::take(&mut self.prepared);
        self.staged.retain(|(transaction, ..)| {
            matches!(transaction, StoreTransaction::Distributed(xid) if prepared.contains(xid))
        });
        for (stored, row) in &mut self.rows {
            for attempt in attempts.iter().filter(|attempt| attempt.stored == *stored) {
                row.failed = row.failed.max(attempt.delivery);
            }
            // A clock that was set back makes no delay longer than it was.
            row.held_until = row.not_before.map(|at| at.min(now.saturating_add(at.since(row.since))));
        }
        let mut recovered = Recovered { producers: self.producers.clone(), ..Recovered::default() };
        let mut names: Vec<_> = self.totals.iter().map(|(at, _)| at.clone()).collect();
        names.extend(self.rows.iter().map(|(_, row)| row.at.clone()));
        names.sort();
        names.dedup();
        for at in names {
            let Recipient::Queue(destination) = &at else { continue };
            let (destination, totals) = (destination.clone(), self.totals(&at));
            let messages = self.messages_at(&at);
            recovered.queues.push(RecoveredQueue { destination, totals, messages });
        }
        for (subscription, topic, no_local, _) in self.subscriptions.clone() {
            let at = Recipient::Subscription(subscription.clone());
            let (totals, messages) = (self.totals(&at), self.messages_at(&at));
            let found = RecoveredSubscription { subscription, topic, no_local, totals, messages };
            recovered.subscriptions.push(found);
        }
        for xid in prepared {
            let name = StoreTransaction::Distributed(xid.clone());
            let mut transaction = PreparedTransaction {
                xid: xid.clone(),
                sends: Vec::new(),
                ids: Vec::new(),
                acknowledged: Vec::new(),
            };
            for (_, staged, operation) in self.staged.iter().filter(|(other, ..)| *other == name) {
                for (stored, at, message) in self.copies(operation, *staged) {
                    let row = Row::new(&at, message);
                    transaction.sends.push((at, self.recovered(stored, &row)));
                    transaction.ids.push(Some(super::id_of(message)));
                }
                if let StoreOperation::Remove { stored, .. } = operation {
                    transaction.acknowledged.push(*stored);
                }
            }
            recovered.prepared.push(transaction);
            self.prepared.push(xid);
        }
        recovered.last_id = self.messages.iter().map(|(stored, _)| *stored).max().unwrap_or_default();
        recovered
    }

    fn messages_at(&self, at: &Recipient) -> Vec<RecoveredMessage> {
        let rows = self.rows.iter().filter(|(_, row)| row.at == *at);
        rows.map(|(stored, row)| self.recovered(*stored, row)).collect()
    }

    /// Where a message goes, as of a moment, and under which name: to those subscriptions that were there then and are now.
    fn copies<'a>(
        &self,
        operation: &'a StoreOperation,
        as_of: u64,
    ) -> Vec<(StoredId, Recipient, &'a Arc<Message>)> {
        match operation {
            StoreOperation::Append { stored, queue, message, .. } => {
                vec![(*stored, Recipient::Queue(queue.clone()), message)]
            }
            StoreOperation::Publish { stored, subscriptions, message, .. } => {
                let is_there = |(_, name): &(usize, &SubscriptionName)| {
                    self.subscriptions.iter().any(|(there, _, _, made)| there == *name && *made < as_of)
                };
                let copies = subscriptions.iter().enumerate().filter(is_there);
                copies
                    .map(|(place, name)| (stored.with(place), Recipient::Subscription(name.clone()), message))
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    fn recovered(&self, stored: StoredId, row: &Row) -> RecoveredMessage {
        let message = self.message(stored).expect("what has a row was stored");
        RecoveredMessage {
            stored,
            priority: message.headers().priority,
            expiration: message.headers().expiration,
            size: message.size() as u64,
            state: DeliveryState {
                failed_deliveries: row.failed,
                not_before: row.not_before,
                since: row.since,
                conversion_failed: row.conversion_failed,
            },
        }
    }

    /// Until when a message is held back in the process that runs.
    pub(super) fn held_until(&self, stored: StoredId) -> Option<Timestamp> {
        self.rows[self.find(stored)?].1.held_until
    }

    /// The message of this name, as it was stored.
    #[must_use]
    pub fn message(&self, stored: StoredId) -> Option<&Arc<Message>> {
        self.messages.iter().find(|(other, _)| *other == stored).map(|(_, message)| message)
    }

    pub(super) fn has(&self, stored: StoredId) -> bool {
        self.find(stored).is_some()
            || self.staged.iter().any(|(_, staged, operation)| {
                self.copies(operation, *staged).iter().any(|(other, ..)| *other == stored)
            })
    }

    fn totals(&self, at: &Recipient) -> Totals {
        self.totals.iter().find(|(other, _)| other == at).map(|(_, totals)| *totals).unwrap_or_default()
    }

    fn totals_mut(&mut self, at: &Recipient) -> &mut Totals {
        let index = self.totals.iter().position(|(other, _)| other == at).unwrap_or_else(|| {
            self.totals.push((at.clone(), Totals::default()));
            self.totals.len() - 1
        });
        &mut self.totals[index].1
    }

    fn note_producer(&mut self, operation: &StoreOperation) {
        let (StoreOperation::Append { arrival: Arrival::Sent, message, .. }
        | StoreOperation::Publish { arrival: Arrival::Sent, message, .. }) = operation
        else {
            return;
        };
        let id = super::id_of(message);
        match self.producers.iter_mut().find(|(producer, _)| *producer == id.producer) {
            Some((_, last)) => *last = id.sequence.max(*last),
            None => self.producers.push((id.producer, id.sequence)),
        }
    }

    fn end_prepared(&mut self, transaction: &StoreTransaction) {
        self.prepared.retain(|xid| *transaction != StoreTransaction::Distributed(xid.clone()));
    }

    fn unstage(&mut self, transaction: &StoreTransaction) -> Vec<(u64, StoreOperation)> {
        let (ended, open) = self.staged.drain(..).partition(|(other, ..)| other == transaction);
        self.staged = open;
        let ended: Vec<_> = ended;
        ended.into_iter().map(|(_, staged, operation)| (staged, operation)).collect()
    }

    fn unsubscribe(&mut self, name: &SubscriptionName) {
        let at = Recipient::Subscription(name.clone());
        self.subscriptions.retain(|(there, ..)| there != name);
        self.rows.retain(|(_, row)| row.at != at);
        self.totals.retain(|(other, _)| *other != at);
    }

    fn perform(&mut self, operation: &StoreOperation, as_of: u64) {
        self.note_producer(operation);
        let is_sent = operation.arrival() == Some(Arrival::Sent);
        for (stored, at, message) in self.copies(operation, as_of) {
            let row = Row::new(&at, message);
            if matches!(&at, Recipient::Queue(queue) if queue.is_temporary()) {
                self.complain(format!("what is in a temporary destination is stored: {row:?}"));
            }
            self.totals_mut(&at).enqueued += u64::from(is_sent);
            if !message.headers().is_persistent() {
                self.complain(format!("a non-persistent message is stored: {row:?}"));
            }
            if self.find(stored).is_some() {
                self.complain(format!("two messages are stored under one name: {stored:?}, {row:?}"));
            }
            self.rows.push((stored, row));
        }
        match operation {
            StoreOperation::CreateSubscription { subscription, topic, no_local } => {
                self.unsubscribe(subscription);
                self.subscriptions.push((subscription.clone(), topic.clone(), *no_local, as_of));
            }
            StoreOperation::RemoveSubscription(subscription) => self.unsubscribe(subscription),
            StoreOperation::Remove { stored, reason, .. } => match self.find(*stored) {
                Some(index) => {
                    let (_, row) = self.rows.remove(index);
                    let totals = self.totals_mut(&row.at);
                    totals.acknowledged += u64::from(*reason == Removal::Acknowledged);
                    totals.dead_lettered += u64::from(*reason == Removal::DeadLettered);
                }
                None => self.complain(format!("what is not stored is removed: {stored:?}")),
            },
            StoreOperation::DeliveryState { stored, state } => match self.find(*stored) {
                Some(index) => {
                    let row = &mut self.rows[index].1;
                    row.failed = state.failed_deliveries;
                    row.not_before = state.not_before;
                    row.since = state.since;
                    row.held_until = state.not_before;
                    row.conversion_failed = state.conversion_failed;
                }
                None => self.complain(format!("the state of what is not stored changes: {stored:?}")),
            },
            _ => {}
        }
    }

    fn find(&self, stored: StoredId) -> Option<usize> {
        self.rows.iter().position(|(other, _)| *other == stored)
    }

    fn complain(&mut self, complaint: String) {
        self.complaint.get_or_insert(complaint);
    }
}

impl Row {
    fn new(at: &Recipient, message: &Message) -> Self {
        Self {
            at: at.clone(),
            message: super::id_of(message),
            failed: 0,
            not_before: None,
            since: Timestamp(0),
            held_until: None,
            conversion_failed: false,
        }
    }
}

impl Model {
    /// When the store is idle, it would bring back just the persistent messages that are there, each with its count.
    pub(super) fn check_durable(&self, totals: impl Fn(&Recipient) -> Option<Totals>) -> Judgement {
        if let Some(complaint) = &self.durable.complaint {
            violation!("{complaint}");
        }
        if !self.batches.is_empty() {
            return Ok(());
        }
        for (at, expected) in &self.durable.totals {
            let found = totals(at).unwrap_or_default();
            if found != *expected {
                violation!("the totals of {at:?} are {found:?}, and {expected:?} by the journal");
            }
        }
        // A moment that is past holds nothing back, stored or not.
        let pending = |not_before: Option<Timestamp>| not_before.filter(|not_before| *not_before > self.now);
        let mut expected: Vec<Row> = self
            .entries
            .iter()
            .filter(|entry| entry.is_stored())
            .map(|entry| Row {
                at: entry.place.recipient().expect("it is stored"),
                message: entry.id(),
                failed: entry.failed,
                held_until: pending(entry.not_before),
                not_before: None,
                since: Timestamp(0),
                conversion_failed: entry.conversion_failed,
            })
            .collect();
        let mut stored: Vec<Row> = self
            .durable
            .rows
            .iter()
            .map(|(_, row)| Row {
                held_until: pending(row.held_until),
                not_before: None,
                since: Timestamp(0),
                ..row.clone()
            })
            .collect();
        expected.sort_unstable();
        stored.sort_unstable();
        if let Some(row) = expected.iter().find(|row| !stored.contains(row)) {
            violation!("a crash would lose or change {row:?}; stored is {stored:?}");
        }
        if let Some(row) = stored.iter().find(|row| !expected.contains(row)) {
            violation!("a crash would bring back {row:?}");
        }
        if stored.len() != expected.len() {
            violation!("a crash would bring back {stored:?} where {expected:?} is");
        }
        Ok(())
    }
}
