//! What a store was asked to keep, replayed batch by batch: the plainest store there could be.
//!
//! Whatever dies and whatever is torn, what a journal brings back is what the first so many batches had made of it, each
//! as a whole: no fewer than it had confirmed, and no more than it was given.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use corriere_broker::store::{
    Arrival, DeliveryState, PreparedTransaction, Recipient, Recovered, RecoveredMessage, RecoveredQueue,
    Removal, StoreOperation, StoreTransaction, StoredId, Totals,
};
use corriere_core::id::Xid;
use corriere_core::message::Priority;
use corriere_core::{Destination, Message, MessageId, Timestamp};

/// The state after some batches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    queues: BTreeMap<Destination, KeptQueue>,
    transactions: BTreeMap<StoreTransaction, Vec<StoreOperation>>,
    /// In the order in which they were prepared.
    prepared: Vec<Xid>,
    producers: BTreeMap<String, u64>,
    last_id: StoredId,
}

#[derive(Clone, Debug, Default)]
struct KeptQueue {
    totals: Totals,
    messages: Vec<KeptMessage>,
}

/// A message on its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptMessage {
    pub(crate) stored: StoredId,
    pub(crate) id: MessageId,
    pub(crate) priority: u8,
    pub(crate) expiration: Option<Timestamp>,
    pub(crate) size: u64,
    pub(crate) state: DeliveryState,
}

impl Kept {
    pub(crate) fn apply(&mut self, batch: &[StoreOperation]) {
        for operation in batch {
            self.apply_one(operation);
        }
    }

    /// Of a batch that was refused nothing is done, and what it was to end is over.
    pub(crate) fn refuse(&mut self, batch: &[StoreOperation]) {
        for operation in batch {
            match operation {
                StoreOperation::Commit(transaction) => drop(self.end(transaction)),
                StoreOperation::Prepare(xid) => drop(self.end(&StoreTransaction::Distributed(xid.clone()))),
                _ => {}
            }
        }
    }

    fn apply_one(&mut self, operation: &StoreOperation) {
        if let StoreOperation::Append { stored, .. } = operation {
            self.last_id = self.last_id.max(*stored);
        }
        match operation {
            StoreOperation::Append { transaction: Some(transaction), .. }
            | StoreOperation::Remove { transaction: Some(transaction), .. } => {
                self.transactions.entry(transaction.clone()).or_default().push(operation.clone());
            }
            StoreOperation::Append { stored, queue, arrival, message, transaction: None } => {
                let headers = message.headers();
                let id = headers.message_id.clone().expect("a message with an id");
                if *arrival == Arrival::Sent {
                    let last = self.producers.entry(id.producer.to_string()).or_default();
                    *last = (*last).max(id.sequence);
                }
                let queue = self.queues.entry(queue.clone()).or_default();
                queue.totals.enqueued += u64::from(*arrival == Arrival::Sent);
                queue.messages.push(KeptMessage::of(*stored, message));
            }
            StoreOperation::Remove { stored, reason, transaction: None } => {
                for queue in self.queues.values_mut() {
                    let before = queue.messages.len();
                    queue.messages.retain(|message| message.stored != *stored);
                    if queue.messages.len() < before {
                        queue.totals.acknowledged += u64::from(*reason == Removal::Acknowledged);
                        queue.totals.dead_lettered += u64::from(*reason == Removal::DeadLettered);
                    }
                }
            }
            StoreOperation::DeliveryState { stored, state } => {
                for message in self.messages_mut().filter(|message| message.stored == *stored) {
                    message.state = *state;
                }
            }
            StoreOperation::Prepare(xid) => {
                self.transactions.entry(StoreTransaction::Distributed(xid.clone())).or_default();
                self.prepared.push(xid.clone());
            }
            StoreOperation::Commit(transaction) => {
                for operation in self.end(transaction) {
                    self.apply_one(&alone(operation));
                }
            }
            StoreOperation::Rollback(transaction) => drop(self.end(transaction)),
            other => panic!("the harness knows no {other:?}"),
        }
    }

    fn end(&mut self, transaction: &StoreTransaction) -> Vec<StoreOperation> {
        if let StoreTransaction::Distributed(xid) = transaction {
            self.prepared.retain(|prepared| prepared != xid);
        }
        self.transactions.remove(transaction).unwrap_or_default()
    }

    /// What is left once the process has ended: transactions that were not prepared are over.
    pub(crate) fn restart(&mut self) {
        let Self { transactions, prepared, .. } = self;
        transactions.retain(|transaction, _| match transaction {
            StoreTransaction::Local(..) => false,
            StoreTransaction::Distributed(xid) => prepared.contains(xid),
        });
    }

    /// Takes over what was counted for those that were in the hands of the application, and says how many these are.
    pub(crate) fn count_attempts(&mut self, recovered: &Recovered) -> u64 {
        let states: BTreeMap<_, _> = recovered
            .queues
            .iter()
            .flat_map(|queue| &queue.messages)
            .map(|message| (message.stored, message.state))
            .collect();
        let mut counted = 0;
        for message in self.messages_mut() {
            if let Some(state) = states.get(&message.stored) {
                counted += u64::from(*state != message.state);
                message.state = *state;
            }
        }
        counted
    }

    /// The message of this name, on a queue or sent in a transaction that waits.
    pub(crate) fn id_of(&self, wanted: StoredId) -> Option<MessageId> {
        let on_queues = self.queues.values().flat_map(|queue| &queue.messages);
        let on_queue =
            on_queues.filter(|message| message.stored == wanted).map(|message| message.id.clone()).next();
        on_queue.or_else(|| {
            self.transactions.values().flatten().find_map(|operation| match operation {
                StoreOperation::Append { stored, message, .. } if *stored == wanted => {
                    message.headers().message_id.clone()
                }
                _ => None,
            })
        })
    }

    /// What `recovered` differs in; `allowed` says which failed deliveries a message may have, given those that the
    /// batches say.
    pub(crate) fn difference(
        &self,
        recovered: &Recovered,
        allowed: impl Fn(StoredId, u32, u32) -> bool,
    ) -> Option<String> {
        let none = KeptQueue::default();
        let mut told = String::new();
        let names = self.queues.keys().chain(recovered.queues.iter().map(|queue| &queue.destination));
        for name in names.collect::<std::collections::BTreeSet<_>>() {
            let mine = self.queues.get(name).unwrap_or(&none);
            let found = recovered.queues.iter().find(|queue| queue.destination == *name);
            let totals = found.map_or_else(Totals::default, |queue| queue.totals);
            if totals != mine.totals {
                let _ = writeln!(told, "{name}: totals are {totals:?}, not {:?}", mine.totals);
            }
            let messages = found.map_or(&[][..], |queue| &queue.messages[..]);
            let (ids, wanted): (Vec<_>, Vec<_>) = (
                messages.iter().map(|message| message.stored.0).collect(),
                mine.messages.iter().map(|message| message.stored.0).collect(),
            );
            if ids != wanted {
                let _ = writeln!(told, "{name}: holds {ids:?}, not {wanted:?}");
                continue;
            }
            for (message, kept) in messages.iter().zip(&mine.messages) {
                let is_counted =
                    allowed(kept.stored, kept.state.failed_deliveries, message.state.failed_deliveries);
                let state =
                    DeliveryState { failed_deliveries: kept.state.failed_deliveries, ..message.state };
                let same = message.priority.level() == kept.priority
                    && message.expiration == kept.expiration
                    && message.size == kept.size;
                if !is_counted || state != kept.state || !same {
                    let _ = writeln!(told, "{name}: {message:?}, not {kept:?}");
                }
            }
        }
        self.compare_prepared(recovered, &mut told);
        if recovered.last_id < self.last_id {
            let _ = writeln!(told, "the last id is {:?}, not {:?}", recovered.last_id, self.last_id);
        }
        for (producer, last) in &self.producers {
            let found = recovered.producers.iter().find(|(name, _)| **name == **producer);
            if found.is_none_or(|(_, found)| found < last) {
                let _ = writeln!(told, "{producer} sent {last} last, not {found:?}");
            }
        }
        (!told.is_empty()).then_some(told)
    }

    fn compare_prepared(&self, recovered: &Recovered, told: &mut String) {
        let found: Vec<_> = recovered.prepared.iter().map(|prepared| prepared.xid.clone()).collect();
        if found != self.prepared {
            let _ = writeln!(told, "prepared are {found:?}, not {:?}", self.prepared);
            return;
        }
        for prepared in &recovered.prepared {
            let name = StoreTransaction::Distributed(prepared.xid.clone());
            let (mut sends, mut acknowledged) = (Vec::new(), Vec::new());
            for operation in self.transactions.get(&name).into_iter().flatten() {
                match operation {
                    StoreOperation::Append { stored, queue, .. } => {
                        sends.push((Recipient::from(queue.clone()), *stored));
                    }
                    StoreOperation::Remove { stored, .. } => acknowledged.push(*stored),
                    _ => {}
                }
            }
            let found: Vec<_> =
                prepared.sends.iter().map(|(queue, message)| (queue.clone(), message.stored)).collect();
            if found != sends || prepared.acknowledged != acknowledged {
                let _ = writeln!(
                    told,
                    "{:?} sends {found:?} and acknowledges {:?}, not {sends:?} and {acknowledged:?}",
                    prepared.xid, prepared.acknowledged
                );
            }
        }
    }
}

/// The same outside of a transaction.
fn alone(operation: StoreOperation) -> StoreOperation {
    match operation {
        StoreOperation::Append { stored, queue, arrival, message, transaction: _ } => {
            StoreOperation::Append { stored, queue, arrival, message, transaction: None }
        }
        StoreOperation::Remove { stored, reason, transaction: _ } => {
            StoreOperation::Remove { stored, reason, transaction: None }
        }
        other => other,
    }
}

impl KeptMessage {
    fn of(stored: StoredId, message: &Message) -> Self {
        let headers = message.headers();
        Self {
            stored,
            id: headers.message_id.clone().expect("a message with an id"),
            priority: headers.priority.level(),
            expiration: headers.expiration,
            size: message.size() as u64,
            state: DeliveryState::default(),
        }
    }

    fn recovered(&self) -> RecoveredMessage {
        RecoveredMessage {
            stored: self.stored,
            priority: Priority::new(self.priority).expect("0 to 9"),
            expiration: self.expiration,
            size: self.size,
            state: self.state,
        }
    }
}

/// What the stand-in needs, to be a store and to be a bad one.
impl Kept {
    /// As a store would bring it back.
    pub(crate) fn recovered(&self) -> Recovered {
        let queues = self.queues.iter().map(|(destination, queue)| RecoveredQueue {
            destination: destination.clone(),
            totals: queue.totals,
            messages: queue.messages.iter().map(KeptMessage::recovered).collect(),
        });
        let prepared = self.prepared.iter().map(|xid| {
            let mut branch = PreparedTransaction {
                xid: xid.clone(),
                sends: Vec::new(),
                ids: Vec::new(),
                acknowledged: Vec::new(),
            };
            let name = StoreTransaction::Distributed(xid.clone());
            for operation in self.transactions.get(&name).into_iter().flatten() {
                match operation {
                    StoreOperation::Append { stored, queue, message, .. } => {
                        branch.ids.push(message.headers().message_id.clone());
                        let message = KeptMessage::of(*stored, message).recovered();
                        branch.sends.push((queue.clone().into(), message));
                    }
                    StoreOperation::Remove { stored, .. } => branch.acknowledged.push(*stored),
                    _ => {}
                }
            }
            branch
        });
        let producers = self.producers.iter().map(|(name, last)| (name.as_str().into(), *last));
        Recovered {
            queues: queues.collect(),
            prepared: prepared.collect(),
            producers: producers.collect(),
            last_id: self.last_id,
            ..Recovered::default()
        }
    }

    /// A process ended with this attempt noted.
    pub(crate) fn attempt(&mut self, stored: StoredId, delivery: u32) {
        for message in self.messages_mut().filter(|message| message.stored == stored) {
            message.state.failed_deliveries = message.state.failed_deliveries.max(delivery);
        }
    }

    pub(crate) fn double_the_last(&mut self) {
        for queue in self.queues.values_mut() {
            queue.messages.extend(queue.messages.last().cloned());
        }
    }

    pub(crate) fn turn_around(&mut self) {
        self.queues.values_mut().for_each(|queue| queue.messages.reverse());
    }

    pub(crate) fn commit_all(&mut self) {
        for transaction in self.transactions.keys().cloned().collect::<Vec<_>>() {
            self.apply_one(&StoreOperation::Commit(transaction));
        }
    }

    pub(crate) fn forget_prepared(&mut self) {
        self.prepared.clear();
    }

    fn messages_mut(&mut self) -> impl Iterator<Item = &mut KeptMessage> {
        self.queues.values_mut().flat_map(|queue| &mut queue.messages)
    }
}
