//! The writer's turn: all that waits is written, synced if somebody needs that, and completed.

use super::change::Change;
use super::completer::Finished;
use super::encoded::Encoded;
use super::index::Weight;
use super::lsn::Lsn;
use super::pending::{Batch, Refused, Waiting};
use super::recovery;
use super::segments::Segments;
use super::status::lock;
use super::store::Core;
use super::writer::{Claim, Unsynced, WriteError, Writer, Written};
use crate::files::{DataFile, is_full};
use crate::store::{Safety, StoreError, StoreTransaction};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Writes batches. Whoever has its lock writes; nobody keeps it over a sync.
#[derive(Debug)]
pub(crate) struct Committer {
    writer: Writer,
    /// Transactions of which something was not written, and why: they cannot be committed any more.
    broken: HashMap<StoreTransaction, StoreError>,
    /// Those of them that are over, of which the rollback is still to be written: nobody asks for it again.
    owed: Vec<StoreTransaction>,
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
        Self { writer, broken: HashMap::new(), owed: Vec::new(), spares_at: Lsn(0) }
    }

    /// Writes all of the batch. What is left in it found no room, not even what is kept back, and has to be written before
    /// anything else: a checkpoint may make some. After that it is the last try.
    pub(crate) fn turn(&mut self, core: &Core, batch: &mut Batch, is_last_try: bool) -> Done {
        self.writer.note_durable(Lsn(core.durable.load(Ordering::Acquire)));
        if let Some(error) = core.status.failed() {
            return Done::failed(batch, &error);
        }
        if !batch.has_refused && self.is_plain() && core.status.refusing().is_none() {
            match self.write(core, &batch.parts, Claim::Sends) {
                Attempted::Written => {
                    let done = batch.waiting.drain(..);
                    return self.done(core, done.map(|waiting| (waiting.safety, waiting.finish(Ok(())))));
                }
                // Some of it may find room.
                Attempted::Full(_) => {}
                Attempted::Failed(error) => return Done::failed(batch, &error),
            }
        }
        let outcomes = self.write_what_can_be(core, batch, is_last_try);
        self.write_owed(core);
        let mut done = Vec::with_capacity(outcomes.len());
        for (waiting, outcome) in std::mem::take(&mut batch.waiting).into_iter().zip(outcomes) {
            match outcome {
                Some(outcome) => done.push((waiting.safety, waiting.finish(outcome))),
                None => batch.waiting.push(waiting),
            }
        }
        self.done(core, done.into_iter())
    }

    /// Whether what has the express lane can be written while a sync runs. Otherwise it has to stand in line.
    pub(crate) fn takes_express(&self, core: &Core, batch: &Batch) -> bool {
        let is_well = !core.status.has_failed() && core.status.full().is_none();
        is_well && self.owed.is_empty() && self.writer.has_room_for(&batch.parts)
    }

    /// What is written and not synced.
    pub(crate) fn unsynced(&mut self, core: &Core) -> Option<Unsynced> {
        self.writer.note_durable(Lsn(core.durable.load(Ordering::Acquire)));
        self.to_be_synced(core)
    }

    /// Whether all transactions are what their clients take them for.
    pub(crate) fn is_plain(&self) -> bool {
        self.broken.is_empty()
    }

    /// What is written to.
    pub(crate) fn active(&self) -> Option<(PathBuf, Arc<dyn DataFile>)> {
        self.writer.active()
    }

    fn to_be_synced(&self, core: &Core) -> Option<Unsynced> {
        // What is written after this is not part of it.
        core.pending.syncs();
        self.writer.unsynced()
    }

    /// Where nothing can be written plainly: each part by itself is refused or taken. Gives the outcome for each of those
    /// who wait, in their order; those without one, whose parts stay in the batch, have to be tried again.
    fn write_what_can_be(
        &mut self,
        core: &Core,
        batch: &mut Batch,
        is_last_try: bool,
    ) -> Vec<Option<Result<(), StoreError>>> {
        let mut outcomes = Vec::with_capacity(batch.waiting.len());
        let mut offered = Vec::with_capacity(batch.parts.len());
        let mut parts = std::mem::take(&mut batch.parts).into_iter();
        batch.has_refused = false;
        for (owner, waiting) in batch.waiting.iter_mut().enumerate() {
            outcomes.push(Some(Ok(())));
            if let Some(refused) = waiting.refused.take() {
                let Refused { error, transactions } = *refused;
                self.break_all(transactions, &error);
                outcomes[owner] = Some(Err(error));
            } else {
                offered.extend(parts.next().map(|part| (Some(owner), part)));
            }
        }
        loop {
            let (mut owners, mut taken) = self.admit(core, offered, &mut outcomes);
            if core.status.full().is_some() {
                let parts = owners.into_iter().zip(taken);
                self.write_kept_back(core, parts, &mut outcomes, &mut batch.parts, is_last_try);
                return outcomes;
            }
            let attempted = match self.write(core, &taken, Claim::Sends) {
                Attempted::Full(mut reason) => {
                    let (written, attempted) = self.write_first(core, &taken, &mut reason);
                    owners.drain(..written);
                    taken.drain(..written);
                    match attempted {
                        Ok(()) => Attempted::Full(reason),
                        Err(error) => Attempted::Failed(error),
                    }
                }
                attempted => attempted,
            };
            match attempted {
                Attempted::Written => return outcomes,
                Attempted::Full(reason) => {
                    core.status.set_full(&reason);
                    core.housekeeper.wake(false);
                    offered = owners.into_iter().zip(taken).collect();
                }
                Attempted::Failed(error) => {
                    for (owner, part) in owners.into_iter().zip(taken) {
                        self.fail_part(&part, owner, &error, &mut outcomes);
                    }
                    return outcomes;
                }
            }
        }
    }

    /// Writes parts that may use what is kept back, in runs that need no more than one segment of it each. From where there is
    /// no room left, they are put into `left`; if it is the last try, only those of which nobody could try it again.
    fn write_kept_back(
        &mut self,
        core: &Core,
        parts: impl Iterator<Item = (Option<usize>, Encoded)>,
        outcomes: &mut [Option<Result<(), StoreError>>],
        left: &mut Vec<Encoded>,
        is_last_try: bool,
    ) {
        let longest = core.large_from;
        let mut parts = parts.peekable();
        let mut found = None;
        while let Some((owner, part)) = parts.next() {
            let claim = if part.has_message() { Claim::Moves } else { Claim::Ends };
            let mut bytes = part.len() as u64;
            let (mut owners, mut run) = (vec![owner], vec![part]);
            while claim == Claim::Ends
                && let Some((owner, part)) =
                    parts.next_if(|(_, part)| !part.has_message() && bytes + part.len() as u64 <= longest)
            {
                bytes += part.len() as u64;
                owners.push(owner);
                run.push(part);
            }
            let attempted = found.clone().map_or_else(|| self.write(core, &run, claim), Attempted::Full);
            let (error, reason) = match attempted {
                Attempted::Written => continue,
                Attempted::Full(reason) => {
                    (StoreError::Full { reason: reason.as_str().into() }, Some(reason))
                }
                Attempted::Failed(error) => (error, None),
            };
            let can_be_left = reason.is_some();
            // Nothing depends on a message that is to be moved: it is where it was.
            if claim == Claim::Ends {
                found = reason;
            }
            for (owner, part) in owners.into_iter().zip(run) {
                match owner {
                    Some(owner) if can_be_left && (!is_last_try || part.is_final()) => {
                        outcomes[owner] = None;
                        left.push(part);
                    }
                    owner => self.fail_part(&part, owner, &error, outcomes),
                }
            }
        }
    }

    /// Those of the parts that can be written. In the place of the end of a broken transaction comes its rollback.
    fn admit(
        &mut self,
        core: &Core,
        offered: Vec<(Option<usize>, Encoded)>,
        outcomes: &mut [Option<Result<(), StoreError>>],
    ) -> (Vec<Option<usize>>, Vec<Encoded>) {
        let (mut owners, mut taken) = (Vec::with_capacity(offered.len()), Vec::with_capacity(offered.len()));
        for (owner, part) in offered {
            let Some(error) = self.refusal(core, &part) else {
                for change in part.changes() {
                    if let Change::Rollback(transaction) = change {
                        self.forget(transaction);
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
                    Change::Commit(transaction) => self.forget(transaction),
                    Change::Prepare(xid) => Some(StoreTransaction::Distributed(xid.clone())),
                    _ => None,
                };
                if let Some(rollback) = ended.and_then(|id| Encoded::rollback(id, core.large_from)) {
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
        full.or_else(|| part.changes().find_map(broken))
    }

    fn fail_part(
        &mut self,
        part: &Encoded,
        owner: Option<usize>,
        error: &StoreError,
        outcomes: &mut [Option<Result<(), StoreError>>],
    ) {
        self.break_all(part.changes().filter_map(left_incomplete), error);
        for change in part.changes() {
            if let Change::Rollback(transaction) = change
                && !self.owed.contains(transaction)
            {
                self.owed.push(transaction.clone());
            }
        }
        if let Some(outcome) = owner.and_then(|owner| outcomes.get_mut(owner)) {
            *outcome = Some(Err(error.clone()));
        }
    }

    /// Writes the rollbacks that could not be written. Until then nothing of these transactions is taken, so that none of them
    /// ends what has begun again under its name.
    fn write_owed(&mut self, core: &Core) {
        if self.owed.is_empty() || core.status.has_failed() {
            return;
        }
        let rollback = |id: &StoreTransaction| Encoded::rollback(id.clone(), core.large_from);
        let rollbacks: Vec<_> = self.owed.iter().filter_map(rollback).collect();
        if let Attempted::Written = self.write(core, &rollbacks, Claim::Ends) {
            for transaction in std::mem::take(&mut self.owed) {
                self.broken.remove(&transaction);
            }
        }
    }

    /// It has an end that will be written.
    fn forget(&mut self, transaction: &StoreTransaction) -> Option<StoreTransaction> {
        self.owed.retain(|owed| owed != transaction);
        self.broken.remove_entry(transaction).map(|(id, _)| id)
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
    ) -> (usize, Result<(), StoreError>) {
        let mut written = 0;
        let mut count = parts.len() / 2;
        while count > 0 {
            match self.write(core, &parts[written..][..count], Claim::Sends) {
                Attempted::Written => written += count,
                Attempted::Full(now) => {
                    *reason = now;
                    count /= 2;
                }
                Attempted::Failed(error) => return (written, Err(error)),
            }
            count = count.min(parts.len() - written);
        }
        (written, Ok(()))
    }

    fn write(&mut self, core: &Core, parts: &[Encoded], claim: Claim) -> Attempted {
        let mut added = Weight::default();
        parts.iter().for_each(|part| added += part.weight());
        if let Err(error) = core.room.admit(core, added, claim) {
            let path = recovery::checkpoint_path(&core.options.directory);
            if is_full(&error) {
                return Attempted::Full(format!("{}: it needs room to grow, and {error}", path.display()));
            }
            let error = StoreError::Io(format!("{}: {error}", path.display()));
            core.status.fail(&error);
            return Attempted::Failed(error);
        }
        let spares = if claim == Claim::Ends { core.segments.spares() } else { 0 };
        match self.writer.write(parts, claim) {
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
                core.ledger.push(&core.segments, entries, end, added);
                if spares > 0 && core.segments.spares() < spares.min(Segments::RESERVE) {
                    // So that what is kept back is there again before it is needed.
                    core.housekeeper.want_checkpoint();
                }
                Attempted::Written
            }
            Err(WriteError::Full { path, error }) => {
                if claim == Claim::Sends
                    && let [_] = parts
                    && let Err(error) = self.leave_segment(core, parts)
                {
                    return failed(core, &error);
                }
                Attempted::Full(format!("{}: {error}", path.display()))
            }
            Err(error @ WriteError::Io { .. }) => failed(core, &error),
        }
    }

    /// Has the segment left that may be in the way of what was refused.
    fn leave_segment(&mut self, core: &Core, parts: &[Encoded]) -> Result<(), WriteError> {
        if let Some(Written { entries, end }) = self.writer.leave_segment(parts)? {
            core.pending.wrote();
            core.ledger.push(&core.segments, entries, end, Weight::default());
        }
        Ok(())
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

impl Core {
    /// The committer's turn. Where not even what is kept back has room, a checkpoint frees the segments that have only what it
    /// knows, if there may be one now; what finds no room all the same is put off.
    pub(crate) fn write_making_room(&self, batch: &mut Batch, may_checkpoint: bool) -> Done {
        let mut done = lock(&self.committer).turn(self, batch, false);
        while !batch.waiting.is_empty() && may_checkpoint {
            if let Err(error) = self.checkpoint() {
                tracing::debug!(%error, "no checkpoint could be written, and so no room be made");
            }
            let waiting = batch.waiting.len();
            done.append(lock(&self.committer).turn(self, batch, false));
            if batch.waiting.len() == waiting {
                done.append(lock(&self.committer).turn(self, batch, true));
                break;
            }
        }
        if !batch.waiting.is_empty()
            && let Some(mut refused) = self.pending.put_off(std::mem::take(batch), !may_checkpoint)
        {
            let error = self.status.full().unwrap_or_else(|| StoreError::Full { reason: "it ends".into() });
            done.append(Done::failed(&mut refused, &error));
        }
        done
    }
}

impl Done {
    /// What came of a later turn.
    fn append(&mut self, later: Self) {
        self.finished.extend(later.finished);
        // It has all that is written and not synced.
        self.unsynced = later.unsynced.or(self.unsynced.take());
    }

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

fn failed(core: &Core, error: &WriteError) -> Attempted {
    let error = StoreError::Io(error.to_string());
    core.status.fail(&error);
    Attempted::Failed(error)
}

fn transaction_of(change: &Change) -> Option<StoreTransaction> {
    match change {
        Change::Commit(transaction) | Change::Rollback(transaction) => Some(transaction.clone()),
        other => other.begins(),
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
