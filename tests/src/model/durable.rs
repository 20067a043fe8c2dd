//! What the store would bring back: the batches that it confirmed, applied in their order.

use corriere_broker::store::{StoreOperation, StoreTransaction, StoredId};
use corriere_core::{Destination, MessageId, Timestamp};

use super::{Judgement, Model, violation};

/// What is stored of one message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    queue: Destination,
    message: MessageId,
    failed: u32,
    not_before: Option<Timestamp>,
    conversion_failed: bool,
}

/// The durable state.
#[derive(Debug, Default)]
pub struct Durable {
    rows: Vec<(StoredId, Row)>,
    staged: Vec<(StoreTransaction, StoreOperation)>,
    complaint: Option<String>,
}

impl Durable {
    /// A batch takes effect as a whole; what carries a transaction waits for its commit.
    pub(super) fn apply(&mut self, batch: &[StoreOperation]) {
        for operation in batch {
            match operation {
                StoreOperation::Append { transaction: Some(transaction), .. }
                | StoreOperation::Remove { transaction: Some(transaction), .. } => {
                    self.staged.push((transaction.clone(), operation.clone()));
                }
                StoreOperation::Commit(transaction) => {
                    for operation in self.unstage(transaction) {
                        self.perform(&operation);
                    }
                }
                StoreOperation::Rollback(transaction) => drop(self.unstage(transaction)),
                _ => self.perform(operation),
            }
        }
    }

    fn unstage(&mut self, transaction: &StoreTransaction) -> Vec<StoreOperation> {
        let (ended, open) = self.staged.drain(..).partition(|(other, _)| other == transaction);
        self.staged = open;
        let ended: Vec<_> = ended;
        ended.into_iter().map(|(_, operation)| operation).collect()
    }

    fn perform(&mut self, operation: &StoreOperation) {
        match operation {
            StoreOperation::Append { stored, queue, message, .. } => {
                let row = Row {
                    queue: queue.clone(),
                    message: super::id_of(message),
                    failed: 0,
                    not_before: None,
                    conversion_failed: false,
                };
                if !message.headers().is_persistent() {
                    self.complain(format!("a non-persistent message is stored: {row:?}"));
                }
                if self.find(*stored).is_some() {
                    self.complain(format!("two messages are stored under one name: {stored:?}, {row:?}"));
                }
                self.rows.push((*stored, row));
            }
            StoreOperation::Remove { stored, .. } => match self.find(*stored) {
                Some(index) => drop(self.rows.remove(index)),
                None => self.complain(format!("what is not stored is removed: {stored:?}")),
            },
            StoreOperation::DeliveryState { stored, state } => match self.find(*stored) {
                Some(index) => {
                    let row = &mut self.rows[index].1;
                    row.failed = state.failed_deliveries;
                    row.not_before = state.not_before;
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

    /// Whether this is the name of that message of that queue.
    pub(super) fn is(&self, stored: StoredId, queue: &Destination, message: &MessageId) -> bool {
        self.find(stored).is_some_and(|index| {
            let row = &self.rows[index].1;
            row.queue == *queue && row.message == *message
        })
    }

    fn complain(&mut self, complaint: String) {
        self.complaint.get_or_insert(complaint);
    }
}

impl Model {
    /// When the store is idle, it would bring back just the persistent messages that are there, each with its count.
    pub(super) fn check_durable(&self) -> Judgement {
        if let Some(complaint) = &self.durable.complaint {
            violation!("{complaint}");
        }
        if !self.batches.is_empty() {
            return Ok(());
        }
        // A moment that is past holds nothing back, stored or not.
        let pending = |not_before: Option<Timestamp>| not_before.filter(|not_before| *not_before > self.now);
        let mut expected: Vec<Row> = self
            .entries
            .iter()
            .filter(|entry| entry.is_stored())
            .map(|entry| Row {
                queue: entry.place.destination().clone(),
                message: entry.id(),
                failed: entry.failed,
                not_before: pending(entry.not_before),
                conversion_failed: entry.conversion_failed,
            })
            .collect();
        let mut stored: Vec<Row> = self
            .durable
            .rows
            .iter()
            .map(|(_, row)| Row { not_before: pending(row.not_before), ..row.clone() })
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
