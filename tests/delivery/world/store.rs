//! The store's side: what it answers, what it refuses, and what the next process finds.

use std::time::Duration;

use corriere_broker::machine::{Input, Machine};
use corriere_broker::store::{Arrival, StoreError, StoreOperation, StoreTransaction};
use corriere_core::Timestamp;
use corriere_tests::model::{Judgement, Violation};

use super::World;

impl World {
    /// The store answers all that it was asked.
    pub(crate) fn answer_all(&mut self) -> Judgement {
        while self.answer_batch(true)? || self.answer_loads()? {}
        Ok(())
    }

    /// The store brings back all bodies that it was asked for, or some of them.
    pub(crate) fn answer_loads(&mut self) -> Result<bool, Violation> {
        if self.loads.is_empty() {
            return Ok(false);
        }
        let mut messages = Vec::new();
        for stored in std::mem::take(&mut self.loads) {
            let read = if self.unreadable > 0 {
                self.unreadable -= 1;
                Err(StoreError::Damaged {
                    place: "journal 1, offset 2".to_owned(),
                    reason: "a bit".to_owned(),
                })
            } else {
                let message = self.model.durable().message(stored).cloned();
                message.ok_or(StoreError::NotKept { stored })
            };
            messages.push((stored, read));
        }
        self.step(Input::Loaded { messages })?;
        Ok(true)
    }

    /// The process ends, with so many of the unanswered batches written, and another one starts, after the clock was set
    /// back by so much.
    pub(crate) fn restart(&mut self, survive: usize, set_back: Duration) -> Judgement {
        if !self.can_load {
            return Ok(());
        }
        self.log
            .push(format!("{} the process ends; {survive} more batches are written", self.now.0 % 1_000_000));
        self.now = Timestamp(self.now.0 - set_back.as_millis() as u64);
        let attempts: Vec<_> = self.slots.values().copied().collect();
        let recovered = self.model.restart(survive, &attempts, self.now)?;
        self.log.push(format!("    {recovered:?}"));
        self.machine = Machine::recovered(self.settings.clone(), recovered, true, self.now);
        self.ledger.restart(&self.confirmations);
        self.slots.clear();
        self.loads.clear();
        self.spoilt.clear();
        self.connections.clear();
        self.sessions.clear();
        self.store_is_full = false;
        self.refuses_sends = false;
        self.input(Input::Tick)?;
        let connection = self.connect()?;
        self.open_session(connection)?;
        Ok(())
    }

    pub(crate) fn fill_store(&mut self, is_full: bool) -> Judgement {
        self.store_is_full = is_full;
        self.input(if is_full {
            Input::StoreFull { reason: "no segment is free".into() }
        } else {
            Input::StoreRoom
        })
    }

    /// The store becomes full, and has no room for any message of what it has.
    pub(crate) fn refuse_messages(&mut self) -> Judgement {
        let waits = std::mem::replace(&mut self.store_waits, true);
        self.fill_store(true)?;
        for _ in 0..self.model.unanswered_batches().count() {
            let has_message = self.model.unanswered_batches().next().is_some_and(|(_, operations)| {
                operations.iter().any(|operation| {
                    matches!(operation, StoreOperation::Append { .. } | StoreOperation::Publish { .. })
                })
            });
            self.answer_batch(!has_message)?;
        }
        self.store_waits = waits;
        if waits { Ok(()) } else { self.answer_all() }
    }

    /// The store answers its oldest batch, if it has one.
    pub(crate) fn answer_batch(&mut self, succeeds: bool) -> Result<bool, Violation> {
        let Some((batch, operations)) = self.model.unanswered_batches().next() else { return Ok(false) };
        // As the store promises: a commit fails when anything of its transaction failed before.
        let is_spoilt = operations.iter().any(|operation| {
            let transaction = match operation {
                StoreOperation::Commit(transaction) => transaction.clone(),
                StoreOperation::Prepare(xid) => StoreTransaction::Distributed(xid.clone()),
                _ => return false,
            };
            self.spoilt.contains(&transaction)
        });
        let is_send = operations
            .iter()
            .any(|operation| matches!(operation.arrival(), Some(Arrival::Sent | Arrival::Copied)));
        let is_refused = is_send && self.refuses_sends;
        let succeeds = succeeds && !is_spoilt && !is_refused;
        let is_full = self.store_is_full || is_refused;
        if !succeeds {
            let transactions = operations.iter().filter_map(|operation| match operation {
                StoreOperation::Append { transaction, .. }
                | StoreOperation::Publish { transaction, .. }
                | StoreOperation::Remove { transaction, .. } => transaction.clone(),
                _ => None,
            });
            self.spoilt.extend(transactions);
        }
        self.refuses_sends |= is_send && !succeeds && is_full;
        let outcome = match (succeeds, is_full) {
            (true, _) => Ok(()),
            (false, true) => Err(StoreError::Full { reason: "no segment is free".into() }),
            (false, false) => Err(StoreError::Io("the disk is on fire".to_owned())),
        };
        self.step(Input::Stored { batch, outcome })?;
        Ok(true)
    }

    /// Fails all that the store has, if the rules say what a failure of it means: sends and commits.
    pub(crate) fn fail_batches(&mut self) -> Judgement {
        let is_move = |operations: &[StoreOperation]| {
            operations
                .iter()
                .any(|operation| matches!(operation.arrival(), Some(Arrival::MovedIn | Arrival::Copied)))
        };
        let is_full = self.store_is_full;
        let may_fail = self.model.unanswered_batches().all(|(_, operations)| {
            if is_move(operations) {
                return is_full;
            }
            operations.iter().all(|operation| match operation {
                StoreOperation::Append { .. }
                | StoreOperation::Publish { .. }
                | StoreOperation::Commit(_)
                | StoreOperation::Prepare(_) => true,
                StoreOperation::Remove { transaction, .. } => transaction.is_some(),
                _ => false,
            })
        });
        let count = self.model.unanswered_batches().count();
        for _ in 0..if may_fail { count } else { 0 } {
            self.answer_batch(false)?;
        }
        Ok(())
    }
}
