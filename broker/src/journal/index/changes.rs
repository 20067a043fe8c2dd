//! What a checkpoint holds, and what changed since the last one.

use std::sync::Arc;

use super::{Counters, Holder, Index, Operation, Producer, Reference, Transaction, Weight, weight};
use crate::journal::lsn::Lsn;
use crate::store::{StoreTransaction, StoredId, Totals};

/// What changed since the last checkpoint, ready to be written without the index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    pub(crate) counters: Counters,
    /// Messages as they are now; `None` where one is gone.
    pub(crate) references: Vec<(StoredId, Option<Reference>)>,
    pub(crate) queues: Vec<(u32, Holder, Totals)>,
    /// Durable subscriptions that are gone, by their numbers.
    pub(crate) removed_queues: Vec<u32>,
    pub(crate) producers: Vec<(Arc<str>, Option<Producer>)>,
    /// In the order in which they are to be written.
    pub(crate) transactions: Vec<TransactionChange>,
    /// Segments without live records; those below the tail can go once the changes are durable.
    pub(crate) dead_segments: Vec<Lsn>,
    /// Messages whose large files can go once the changes are durable.
    pub(crate) dead_large: Vec<StoredId>,
    /// What the index takes in the checkpoint with these changes.
    pub(crate) weight: Weight,
}

/// What changed of a transaction.
#[derive(Clone, Debug)]
pub(crate) enum TransactionChange {
    /// It is there, and so are these operations from the one with the number `from` on.
    Open { number: u64, id: StoreTransaction, prepared: Option<u64>, from: usize, operations: Vec<Operation> },
    /// It is over; the checkpoint has so many of its operations.
    Ended { number: u64, operations: usize },
}

impl TransactionChange {
    fn number(&self) -> u64 {
        match self {
            Self::Open { number, .. } | Self::Ended { number, .. } => *number,
        }
    }
}

/// All that a checkpoint holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Saved {
    pub(crate) counters: Counters,
    pub(crate) references: Vec<(StoredId, Reference)>,
    pub(crate) queues: Vec<(u32, Holder, Totals)>,
    pub(crate) producers: Vec<(Arc<str>, Producer)>,
    pub(crate) transactions: Vec<SavedTransaction>,
}

/// A transaction of a checkpoint.
#[derive(Clone, Debug)]
pub(crate) struct SavedTransaction {
    pub(crate) number: u64,
    pub(crate) id: StoreTransaction,
    pub(crate) prepared: Option<u64>,
    pub(crate) operations: Vec<Operation>,
}

impl Index {
    /// The state of a checkpoint, over segments that begin at `segments`.
    pub(crate) fn restore(saved: Saved, segments: impl IntoIterator<Item = Lsn>) -> Self {
        let mut index = Self { counters: saved.counters, ..Self::default() };
        for base in segments {
            index.add_segment(base);
        }
        for (number, holder, totals) in saved.queues {
            index.restore_queue(number, holder, totals);
        }
        for (stored, reference) in &saved.references {
            index.raise(reference);
            if let Some(queue) = index.queues.get_mut(&reference.queue) {
                queue.note(*stored);
            }
            index.weight.references += weight::of_reference(reference);
        }
        index.references = saved.references.into_iter().collect();
        for (name, producer) in saved.producers {
            index.producers.restore(name, producer);
        }
        for SavedTransaction { number, id, prepared, operations } in saved.transactions {
            index.weight.others += weight::of_transaction(&id);
            for operation in &operations {
                index.weight.others += weight::of_operation(operation);
                if let Operation::Send { stored, reference, .. } = operation {
                    index.raise(reference);
                    index.sent.insert(*stored, *reference);
                }
            }
            let saved = Some(operations.len());
            let transaction = Transaction { number, prepared, operations, saved, changed: false };
            index.transactions.insert(id, transaction);
        }
        index
    }

    /// Takes what changed since the last call. It must reach the checkpoint, before what the next call gives.
    pub(crate) fn take_changes(&mut self) -> Changes {
        // No checkpoint has a message that is nobody's.
        while self.take_out_gone(usize::MAX) {}
        let mut changes = Changes {
            counters: self.counters,
            references: Vec::with_capacity(self.changed.len()),
            producers: self.producers.take_changes(),
            transactions: std::mem::take(&mut self.ended),
            dead_segments: self
                .segments
                .iter()
                .filter(|(_, live)| **live == 0)
                .map(|(b, _)| Lsn(*b))
                .collect(),
            dead_large: std::mem::take(&mut self.dead_large),
            removed_queues: std::mem::take(&mut self.removed_queues),
            weight: self.weight(),
            ..Changes::default()
        };
        self.weight.fresh = 0;
        for stored in std::mem::take(&mut self.changed).into_keys() {
            changes.references.push((stored, self.references.get(&stored).copied()));
        }
        for (number, queue) in &mut self.queues {
            if std::mem::take(&mut queue.changed) {
                changes.queues.push((*number, queue.holder.clone(), queue.totals));
            }
        }
        for (id, transaction) in &mut self.transactions {
            if std::mem::take(&mut transaction.changed) {
                let from = transaction.saved.unwrap_or(0);
                changes.transactions.push(TransactionChange::Open {
                    number: transaction.number,
                    id: id.clone(),
                    prepared: transaction.prepared,
                    from,
                    operations: transaction.operations[from..].to_vec(),
                });
                transaction.saved = Some(transaction.operations.len());
            }
        }
        // A set has no order of its own; one that can be told in advance makes a history reproducible.
        changes.producers.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        changes.transactions.sort_by_key(TransactionChange::number);
        changes
    }
}

impl Changes {
    /// Whether the checkpoint would say nothing new.
    pub(crate) fn is_empty(&self) -> bool {
        self.references.is_empty()
            && self.queues.is_empty()
            && self.removed_queues.is_empty()
            && self.producers.is_empty()
            && self.transactions.is_empty()
    }
}
