//! The writer's turn: all that waits is written, synced if somebody needs that, and completed.

use super::change::Change;
use super::completer::Finished;
use super::encoded::Encoded;
use super::lsn::Lsn;
use super::pending::{Batch, Refused, Waiting};
use super::store::Core;
use super::writer::{Unsynced, WriteError, Writer, Written};
use crate::store::{Safety, StoreError, StoreOperation, StoreTransaction};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::Ordering;

/// Writes batches. Whoever has its lock writes; nobody keeps it over a sync.
#[derive(Debug)]
pub(crate) struct Committer {
    writer: Writer,
    /// Transactions of which something was not written, and why: they cannot be committed any more.
    broken: HashMap<StoreTransaction, StoreError>,
    /// Behind this the housekeeper is to look after the spares.
    spares_at: Lsn,
}

/// What a turn has come to: who is to be told what, and what they wait for.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// In the order of their submission, with how safe each has to be.
    pub(crate) finished: Vec<(Safety, Finished)>,
    /// To be synced before those are told that have to be durable.
    pub(crate) unsynced: Option<Unsynced>,
}

enum Attempted {
    Written,
    Full(String),
    Failed(StoreError),
}

impl Committer {
    pub(crate) fn new(writer: Writer) -> Self {
        Self { writer, broken: HashMap::new(), spares_at: Lsn(0) }
    }

    /// Writes all of the batch, which is empty afterwards.
    pub(crate) fn turn(&mut self, core: &Core, batch: &mut Batch) -> Done {
        self.writer.note_durable(Lsn(core.durable.load(Ordering::Acquire)));
        if let Some(error) = core.status.failed() {
            return Done::failed(batch, &error);
        }
        let is_plain = !batch.has_refused && self.broken.is_empty() && core.status.refusing().is_none();
        if is_plain {
            match self.write(core, &batch.parts, false) {
                Attempted::Written => {
                    let done = batch.waiting.drain(..);
                    return self.done(core, done.map(|waiting| (waiting.safety, waiting.finish(Ok(())))));
                }
                // Some of it may find room.
                Attempted::Full(_) => {}
                Attempted::Failed(error) => return Done::failed(batch, &error),
            }
        }
        let outcomes = self.write_what_can_be(core, batch);
        let done = batch.waiting.drain(..).zip(outcomes);
        self.done(core, done.map(|(waiting, outcome)| (waiting.safety, waiting.finish(outcome))))
    }

    /// Whether what has the express lane can be written while a sync runs. Otherwise it has to stand in line.
    pub(crate) fn takes_express(&self, core: &Core, batch: &Batch) -> bool {
        !core.status.has_failed() && core.status.full().is_none() && self.writer.has_room_for(&batch.parts)
    }

    /// What is written and not synced.
    pub(crate) fn unsynced(&mut self, core: &Core) -> Option<Unsynced> {
        self.writer.note_durable(Lsn(core.durable.load(Ordering::Acquire)));
        self.to_be_synced(core)
    }

    fn to_be_synced(&self, core: &Core) -> Option<Unsynced> {
        // What is written after this is not part of it.
        core.pending.syncs();
        self.writer.unsynced()
    }

    /// Where nothing can be written plainly: each part by itself is refused or taken. Gives the outcome for each of those
    /// who wait, in their order.
    fn write_what_can_be(&mut self, core: &Core, batch: &mut Batch) -> Vec<Result<(), StoreError>> {
        let mut outcomes = Vec::with_capacity(batch.waiting.len());
        let mut offered = Vec::with_capacity(batch.parts.len());
        let mut parts = batch.parts.drain(..);
        for (owner, waiting) in batch.waiting.iter_mut().enumerate() {
            outcomes.push(Ok(()));
            if let Some(refused) = waiting.refused.take() {
                let Refused { error, transactions } = *refused;
                self.break_all(transactions, &error);
                outcomes[owner] = Err(error);
            } else {
                offered.extend(parts.next().map(|part| (Some(owner), part)));
            }
        }
        loop {
            let (mut owners, mut taken) = self.admit(core, offered, &mut outcomes);
            let is_full = core.status.full().is_some();
            let error = match self.write(core, &taken, is_full) {
                Attempted::Written => return outcomes,
                Attempted::Full(mut reason) if !is_full => {
                    match self.write_first(core, &taken, &mut reason) {
                        Ok(written) => {
                            core.status.set_full(&reason);
                            core.housekeeper.look();
                            offered = owners.into_iter().zip(taken).skip(written).collect();
                            continue;
                        }
                        Err((written, error)) => {
                            owners.drain(..written);
                            taken.drain(..written);
                            error
                        }
                    }
                }
                Attempted::Full(reason) => StoreError::Full { reason: reason.into() },
                Attempted::Failed(error) => error,
            };
            for (owner, part) in owners.into_iter().zip(taken) {
                self.fail_part(&part, owner, &error, &mut outcomes);
            }
            return outcomes;
        }
    }

    /// Those of the parts that can be written. In the place of the end of a broken transaction comes its rollback.
    fn admit(
        &mut self,
        core: &Core,
        offered: Vec<(Option<usize>, Encoded)>,
        outcomes: &mut [Result<(), StoreError>],
    ) -> (Vec<Option<usize>>, Vec<Encoded>) {
        let (mut owners, mut taken) = (Vec::with_capacity(offered.len()), Vec::with_capacity(offered.len()));
        for (owner, part) in offered {
            let Some(error) = self.refusal(core, &part) else {
                for change in part.changes() {
                    if let Change::Rollback(transaction) = change {
                        self.broken.remove(transaction);
                    }
                }
                owners.push(owner);
                taken.push(part);
                continue;
            };
            self.fail_part(&part, owner, &error, outcomes);
            for change in part.changes() {
                let ended = match change {
                    // This was the end of it. After a failed prepare the rollback is still to come.
                    Change::Commit(transaction) => self.broken.remove_entry(transaction).map(|(id, _)| id),
                    Change::Prepare(xid) => Some(StoreTransaction::Distributed(xid.clone())),
                    _ => None,
                };
                let rollback = ended.map(|id| Encoded::new(&[StoreOperation::Rollback(id)], core.large_from));
                if let Some(Ok(rollback)) = rollback {
                    owners.push(None);
                    taken.push(rollback);
                }
            }
        }
        (owners, taken)
    }

    fn refusal(&self, core: &Core, part: &Encoded) -> Option<StoreError> {
        let broken = |change: &Change| match change {
            Change::Rollback(_) => None,
            _ => self.broken.get(&transaction_of(change)?).cloned(),
        };
        let full = if part.is_send() { core.status.refusing() } else { None };
        if let Some(full) = &full {
            core.status.refuse_sends(full);
        }
        full.or_else(|| part.changes().find_map(broken).filter(|_| !self.broken.is_empty()))
    }

    fn fail_part(
        &mut self,
        part: &Encoded,
        owner: Option<usize>,
        error: &StoreError,
        outcomes: &mut [Result<(), StoreError>],
    ) {
        self.break_all(part.changes().filter_map(left_incomplete), error);
        if let Some(outcome) = owner.and_then(|owner| outcomes.get_mut(owner)) {
            *outcome = Err(error.clone());
        }
    }

    fn break_all(&mut self, transactions: impl IntoIterator<Item = StoreTransaction>, error: &StoreError) {
        for transaction in transactions {
            self.broken.entry(transaction).or_insert_with(|| error.clone());
        }
    }

    /// Writes the first ones of these, which do not fit together, as far as there is room; says how many, and what else was
    /// wrong. `reason` is what is full in the end.
    fn write_first(
        &mut self,
        core: &Core,
        parts: &[Encoded],
        reason: &mut String,
    ) -> Result<usize, (usize, StoreError)> {
        let mut written = 0;
        let mut count = parts.len() / 2;
        while count > 0 {
            match self.write(core, &parts[written..][..count], false) {
                Attempted::Written => written += count,
                Attempted::Full(now) => {
                    *reason = now;
                    count /= 2;
                }
                Attempted::Failed(error) => return Err((written, error)),
            }
            count = count.min(parts.len() - written);
        }
        Ok(written)
    }

    fn write(&mut self, core: &Core, parts: &[Encoded], use_reserve: bool) -> Attempted {
        match self.writer.write(parts, use_reserve) {
            Ok(Written { entries, end }) => {
                core.pending.wrote();
                if end > self.spares_at {
                    self.look_after_spares(core, end);
                }
                if end.0.saturating_sub(core.checkpointed.load(Ordering::Relaxed))
                    > core.options.checkpoint_after
                {
                    core.housekeeper.want_checkpoint();
                }
                core.ledger.push(&core.segments, entries, end);
                Attempted::Written
            }
            Err(WriteError::Full { path, error }) => Attempted::Full(format!("{}: {error}", path.display())),
            Err(error @ WriteError::Io { .. }) => {
                let error = StoreError::Io(error.to_string());
                core.status.fail(&error);
                Attempted::Failed(error)
            }
        }
    }

    /// A new segment was begun, and so a spare used; or an eighth of it is written, and others should be ready in time.
    fn look_after_spares(&mut self, core: &Core, end: Lsn) {
        // A full segment's end is the beginning of one that is not there yet.
        let Some(segment) = core.segments.containing(Lsn(end.0 - 1)) else { return };
        let eighth = Lsn(segment.base.0 + segment.length / 8);
        self.spares_at = if end > eighth { segment.end() } else { eighth };
        core.housekeeper.wake(end > eighth);
    }

    fn done(&self, core: &Core, finished: impl Iterator<Item = (Safety, Finished)>) -> Done {
        let finished: Vec<_> = finished.collect();
        let waits =
            |(safety, finished): &(Safety, Finished)| *safety == Safety::Durable && finished.outcome.is_ok();
        let unsynced = if finished.iter().any(waits) { self.to_be_synced(core) } else { None };
        Done { finished, unsynced }
    }
}

impl Done {
    fn failed(batch: &mut Batch, error: &StoreError) -> Self {
        let told = |waiting: Waiting| (waiting.safety, waiting.finish(Err(error.clone())));
        Self { finished: batch.waiting.drain(..).map(told).collect(), unsynced: None }
    }
}

impl Waiting {
    pub(crate) fn finish(self, outcome: Result<(), StoreError>) -> Finished {
        Finished { completion: self.completion, outcome }
    }
}

fn transaction_of(change: &Change) -> Option<StoreTransaction> {
    match change {
        Change::Append(appended) => appended.transaction.clone(),
        Change::Remove { transaction, .. } => transaction.clone(),
        Change::Prepare(xid) => Some(StoreTransaction::Distributed(xid.clone())),
        Change::Commit(transaction) | Change::Rollback(transaction) => Some(transaction.clone()),
        Change::DeliveryState { .. } => None,
    }
}

/// The transaction that is not what its client takes it for when this is not written. What was to end or to prepare one
/// leaves it as it was: it can be tried again.
fn left_incomplete(change: &Change) -> Option<StoreTransaction> {
    match change {
        Change::Prepare(_) | Change::Commit(_) => None,
        other => transaction_of(other),
    }
}

/// Whether there was no room, which is no failure.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
