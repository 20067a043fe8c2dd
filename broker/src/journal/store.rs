//! The journal as a [`MessageStore`].

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::attempts::Attempts;
use super::checkpoint::Checkpoint;
use super::committer::{Committer, Done};
use super::completer::{Completer, Finished, sweep};
use super::encoded::Encoded;
use super::error::{OpenError, advice};
use super::hold::Hold;
use super::keeper::{Housekeeper, Keeper, housekeep};
use super::ledger::Ledger;
use super::lsn::Lsn;
use super::options::JournalOptions;
use super::pending::{Batch, Ending, Pending, Refused, Waiting};
use super::recovery;
use super::room::Room;
use super::segments::Segments;
use super::status::{Status, lock, try_lock};
use super::threads::Threads;
use super::writer::Unsynced;
use crate::files::{FileSystem, is_full, is_out_of_handles};
use crate::store::{
    Attempt, AttemptSlot, Completion, Loaded, MessageStore, Recovered, Safety, StoreError, StoreOperation,
    StoreTransaction, StoreWatcher, StoredId,
};

/// How many batches of the express lane one call writes, one after the other.
const EXPRESSES: usize = 16;

/// Keeps messages in a journal.
///
/// One thread at a time writes what was submitted, one of the store's or one that submits; all that waits is the next
/// batch. Dropping it without [`MessageStore::close`] is as if the process had ended: what was not complete may be there
/// or not.
#[derive(Debug)]
pub struct JournalStore {
    core: Arc<Core>,
    /// None where everything is done by calls.
    threads: Option<Threads>,
    is_closed: Mutex<bool>,
}

/// All of the store but its threads, whose work it does when it is called.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) options: JournalOptions,
    /// The greatest record that is not a large one.
    pub(crate) large_from: u64,
    pub(crate) segments: Arc<Segments>,
    pub(crate) room: Room,
    pub(crate) pending: Pending,
    pub(crate) committer: Mutex<Committer>,
    pub(crate) completer: Completer,
    pub(crate) ledger: Ledger,
    pub(crate) keeper: Mutex<Keeper>,
    pub(crate) housekeeper: Housekeeper,
    pub(crate) status: Status,
    /// The LSN up to which all is durable.
    pub(crate) durable: AtomicU64,
    /// The LSN up to which the checkpoint is true.
    pub(crate) checkpointed: AtomicU64,
    attempts: Attempts,
    recovered: Mutex<Option<Recovered>>,
    hold: Arc<Hold>,
    /// Set when it was dropped without being closed: nothing is written any more.
    crashed: Arc<AtomicBool>,
    stepwise: bool,
}

impl JournalStore {
    /// Opens the journal of a directory, which is made if it is not there, and brings back what it holds.
    ///
    /// # Errors
    /// [`OpenError`]; nothing was changed then, unless the operating system failed in the middle of it.
    #[expect(clippy::needless_pass_by_value, reason = "it is the store's from now on")]
    pub fn open(files: Arc<dyn FileSystem>, options: JournalOptions) -> Result<Self, OpenError> {
        let core = Arc::new(Core::open(&files, options, false)?);
        let directory = core.options.directory.clone();
        let threads = Threads::start(&core).map_err(OpenError::io(&directory))?;
        Ok(Self { core, threads: Some(threads), is_closed: Mutex::new(false) })
    }

    /// The same without threads: nothing happens but by [`JournalStore::step`], [`JournalStore::housekeep`],
    /// [`JournalStore::checkpoint`] and [`MessageStore::close`], so that a history can be repeated.
    ///
    /// # Errors
    /// As [`JournalStore::open`].
    #[expect(clippy::needless_pass_by_value, reason = "it is the store's from now on")]
    pub fn open_stepwise(files: Arc<dyn FileSystem>, options: JournalOptions) -> Result<Self, OpenError> {
        let core = Arc::new(Core::open(&files, options, true)?);
        Ok(Self { core, threads: None, is_closed: Mutex::new(false) })
    }

    /// The writer's turn in a stepwise store: writes all that waits, syncs it if something of it must be durable, and
    /// completes it; when nothing waits, it syncs what is not synced. Then reads what is to be loaded.
    pub fn step(&self) {
        self.core.step();
    }

    /// Makes spares ahead, and tells when there is room again.
    pub fn housekeep(&self) {
        housekeep(&self.core);
    }

    /// Writes a checkpoint and gives up the files that it frees. All that was written before is durable then.
    ///
    /// # Errors
    /// The store has failed, or there is no room for it; it goes on and can be tried again in the latter case.
    pub fn checkpoint(&self) -> Result<(), StoreError> {
        self.core.checkpoint()
    }
}

impl MessageStore for JournalStore {
    fn recover(&self) -> Recovered {
        lock(&self.core.recovered).take().unwrap_or_default()
    }

    fn submit(&self, batch: Vec<StoreOperation>, completion: Completion) {
        self.core.submit(&batch, completion, true);
    }

    fn submit_unawaited(&self, batch: Vec<StoreOperation>, completion: Completion) {
        self.core.submit(&batch, completion, false);
    }

    fn lead(&self) {
        if self.threads.is_some() {
            self.core.lead();
        }
    }

    fn take_sends(&self) {
        self.core.status.take_sends();
    }

    fn can_load(&self) -> bool {
        true
    }

    fn load(&self, wanted: Vec<StoredId>, completion: Loaded) {
        self.core.ledger.load(wanted, completion);
    }

    fn note_attempt(&self, slot: AttemptSlot, attempt: Option<Attempt>) {
        // What has failed may be somebody else's now.
        if !self.core.status.has_failed() {
            self.core.attempts.note(slot, attempt);
        }
    }

    fn watch(&self, watcher: StoreWatcher) {
        self.core.status.watch(watcher);
    }

    fn close(&self) {
        let mut is_closed = lock(&self.is_closed);
        if !std::mem::replace(&mut *is_closed, true) {
            self.core.pending.end(Ending::InOrder);
            match &self.threads {
                Some(threads) => threads.end(&self.core),
                None => self.core.finish(),
            }
            self.core.close();
        }
    }
}

impl Drop for JournalStore {
    fn drop(&mut self) {
        if !*lock(&self.is_closed) {
            self.core.crashed.store(true, Ordering::Release);
            self.core.pending.end(Ending::Crash);
            if let Some(threads) = &self.threads {
                threads.end(&self.core);
            }
            self.core.abandon();
        }
    }
}

impl Core {
    fn open(files: &Arc<dyn FileSystem>, options: JournalOptions, stepwise: bool) -> Result<Self, OpenError> {
        let crashed = Arc::new(AtomicBool::new(false));
        let opened = recovery::open(files, &options, &crashed)?;
        let end = opened.writer.end();
        let core = Self {
            large_from: opened.segments.max_file_length() / 4,
            segments: opened.segments,
            room: opened.room,
            pending: Pending::default(),
            committer: Mutex::new(Committer::new(opened.writer)),
            completer: Completer::default(),
            ledger: Ledger::new(opened.index, end),
            keeper: Mutex::new(Keeper::new(opened.checkpoint, opened.place)),
            housekeeper: Housekeeper::default(),
            status: Status::default(),
            durable: AtomicU64::new(end.0),
            checkpointed: AtomicU64::new(end.0),
            attempts: opened.attempts,
            recovered: Mutex::new(Some(opened.recovered)),
            hold: opened.hold,
            crashed,
            stepwise,
            options,
        };
        lock(&core.keeper).give_up(&core, &opened.dead_segments);
        Ok(core)
    }

    fn submit(&self, operations: &[StoreOperation], completion: Completion, is_awaited: bool) {
        let (asked, part, refused) = match Encoded::new(operations, self.large_from) {
            Ok(part) => (part.safety(), Some(part), None),
            Err(error) => {
                let transactions = operations.iter().filter_map(left_incomplete);
                // What has no record for its own name has none at all, nor ever an end.
                let has_records = |transaction: &StoreTransaction| {
                    Encoded::rollback(transaction.clone(), self.large_from).is_some()
                };
                let transactions = transactions.filter(has_records).collect();
                let refused = Box::new(Refused { error, transactions });
                (StoreOperation::safety(operations), None, Some(refused))
            }
        };
        let safety = self.safety(asked);
        let waiting = Waiting { safety, completion, refused };
        let pushed = match part {
            Some(part) if !self.stepwise && safety == Safety::Written && may_overtake(operations) => {
                self.pending.push_express(waiting, part, is_awaited)
            }
            part => self.pending.push(waiting, part),
        };
        if let Err(waiting) = pushed {
            waiting.finish(Err(self.status.failed().unwrap_or(StoreError::Closed))).call();
        }
    }

    /// Writes what has the express lane, unless somebody is writing: then it is that one's to do afterwards.
    pub(crate) fn write_express(&self) {
        // Whoever finds it locked leaves what is there to the one who has it, who looks again after unlocking it: a look
        // that finds nothing counts only while it is free.
        for turn in 1.. {
            if !self.pending.has_express() {
                return;
            }
            let Some(mut committer) = try_lock(&self.committer) else { return };
            let Some(mut batch) = self.pending.take_express() else { continue };
            // Others may bring more and more: then it is the writer's.
            if turn <= EXPRESSES && committer.takes_express(self, &batch) {
                let done = committer.turn(self, &mut batch, false);
                drop(committer);
                self.status.tell();
                sweep(done.finished.into_iter().map(|(_, finished)| self.unless_failed(finished)));
            } else {
                self.pending.put_in_line(batch);
                drop(committer);
                self.pending.try_again();
                return;
            }
        }
    }

    /// Writes what has the express lane, and writes and syncs what is in line on the calling thread, if that is cheaper
    /// than to have the writer do it.
    fn lead(&self) {
        if self.pending.is_express_due() {
            self.write_express();
        }
        if let Some(mut batch) = self.pending.lead() {
            self.turn(&mut batch, false);
        }
    }

    /// Writes all of it, syncs it if need be, and has it completed. The batch is empty afterwards: what found no room, even
    /// after a checkpoint if there may be one, is in line again.
    pub(crate) fn turn(&self, batch: &mut Batch, may_checkpoint: bool) {
        let done = self.write_making_room(batch, may_checkpoint);
        self.status.tell();
        batch.clear();
        // Nobody can have written what came into the express lane meanwhile.
        self.write_express();
        let Done { mut finished, unsynced } = done;
        let mut lone = None;
        if let Some(unsynced) = unsynced {
            let begun = Instant::now();
            match self.sync(&unsynced) {
                Ok(()) => lone = (finished.len() == 1).then(|| begun.elapsed()),
                // What would be safe as it was written is not confirmed either: nothing is, by a store that has failed.
                Err(error) => {
                    for (_, finished) in finished.iter_mut().filter(|(_, finished)| finished.outcome.is_ok())
                    {
                        finished.outcome = Err(error.clone());
                    }
                }
            }
        }
        // When more is waiting, the next write and sync begin at once, and another thread completes this. Otherwise no thread
        // has to be woken for it.
        let finished = finished.into_iter().map(|(_, finished)| self.unless_failed(finished)).collect();
        self.completer.finish(finished, self.pending.is_due());
        self.pending.led(lone);
        self.write_express();
    }

    /// Of what a failed store has not done nobody knows what the next start finds: that is another end than a refusal.
    fn unless_failed(&self, finished: Finished) -> Finished {
        match (&finished.outcome, self.status.failed()) {
            (Err(StoreError::Io(_)), Some(failed)) => Finished { outcome: Err(failed), ..finished },
            _ => finished,
        }
    }

    /// Syncs what is written and not synced.
    pub(crate) fn sync_all(&self) -> Result<(), StoreError> {
        let unsynced = lock(&self.committer).unsynced(self);
        // Nobody can have written what came into the express lane meanwhile.
        self.write_express();
        unsynced.map_or(Ok(()), |unsynced| self.sync(&unsynced))
    }

    fn sync(&self, unsynced: &Unsynced) -> Result<(), StoreError> {
        if let Some(error) = self.status.failed() {
            return Err(error);
        }
        let synced = unsynced.sync().map_err(|error| {
            let error = StoreError::Io(error.to_string());
            self.status.fail(&error);
            self.status.tell();
            error
        })?;
        self.durable.fetch_max(synced.0, Ordering::AcqRel);
        Ok(())
    }

    /// How safe something is to be that asks for this.
    fn safety(&self, asked: Safety) -> Safety {
        match asked {
            Safety::Durable if !self.options.sync_on_write => Safety::Written,
            Safety::Written if self.options.sync_on_write && self.options.ack_sync => Safety::Durable,
            as_asked => as_asked,
        }
    }

    fn step(&self) {
        let mut batch = self.pending.take(Batch::default());
        if !batch.waiting.is_empty() {
            self.turn(&mut batch, true);
        } else if self.pending.is_unsynced() {
            // Whoever has to know of a failure is told by the next batch.
            let _ = self.sync_all();
        }
        self.ledger.serve(&self.segments);
    }

    /// Writes all that waits, and makes all of it durable.
    pub(crate) fn finish(&self) {
        loop {
            self.write_express();
            let (mut batch, is_over) = {
                // Whoever has taken something from the express lane has written it, or put it in line, when this can be locked.
                let _committer = lock(&self.committer);
                let batch = self.pending.take(Batch::default());
                let is_over = batch.waiting.is_empty() && !self.pending.has_express();
                (batch, is_over)
            };
            if is_over {
                if self.pending.is_unsynced() {
                    let _ = self.sync_all();
                }
                break;
            }
            if !batch.waiting.is_empty() {
                self.turn(&mut batch, true);
            }
        }
        self.ledger.serve(&self.segments);
    }

    pub(crate) fn checkpoint(&self) -> Result<(), StoreError> {
        if let Some(error) = self.status.failed() {
            return Err(error);
        }
        let written = lock(&self.keeper).checkpoint(self);
        self.status.tell();
        written
    }

    /// Whether all files that are written to are still those that the next start will find.
    ///
    /// # Errors
    /// The store has failed.
    pub(crate) fn check_place(&self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let path = recovery::checkpoint_path(&self.options.directory);
        let checked = self.hold.check().and_then(|()| {
            let active = lock(&self.committer).active();
            // Nobody can have written what came into the express lane meanwhile.
            self.write_express();
            active.map_or(Ok(()), |(path, file)| self.hold.check_is(&*file, &path, &path))
        });
        let checked = checked.and_then(|()| self.hold.check_is(checkpoint.extent().file(), &path, &path));
        checked.map_err(|error| {
            let error = StoreError::Io(error.to_string());
            self.status.fail(&error);
            error
        })
    }

    /// What a checkpoint that failed means for the store.
    pub(crate) fn checkpoint_failed(&self, error: &io::Error) -> StoreError {
        let path = recovery::checkpoint_path(&self.options.directory);
        let text = format!("{}: {error}{}", path.display(), advice(error));
        if self.crashed.load(Ordering::Acquire) {
            return StoreError::Closed;
        }
        if is_full(error) || is_out_of_handles(error) {
            return StoreError::Full { reason: text.into() };
        }
        let error = StoreError::Io(text);
        self.status.fail(&error);
        error
    }

    /// Waits until all up to `place` is durable.
    pub(crate) fn wait_until_durable(&self, place: Lsn) -> Result<(), StoreError> {
        while self.durable.load(Ordering::Acquire) < place.0 {
            if let Some(error) = self.status.failed() {
                return Err(error);
            }
            if self.crashed.load(Ordering::Acquire) {
                return Err(StoreError::Closed);
            }
            // Not left to the writer, which may be the one that waits.
            self.sync_all()?;
            if self.durable.load(Ordering::Acquire) < place.0 {
                // What another thread writes at this moment it syncs within 100 ms.
                thread::sleep(Duration::from_millis(2));
            }
        }
        Ok(())
    }

    /// The last things of an end in order, when nobody is at work any more.
    fn close(&self) {
        if let Err(error) = self.checkpoint() {
            tracing::warn!(%error, "the store ends without a checkpoint; the next start takes longer");
        }
        if let Err(error) = lock(&self.keeper).close() {
            tracing::warn!(%error, "the checkpoint was not closed in order; the next start takes longer");
        }
        self.abandon();
    }

    /// Tells all who still wait, and frees the directory.
    fn abandon(&self) {
        let mut left = self.pending.take(Batch::default()).waiting;
        left.extend(self.pending.take_express().unwrap_or_default().waiting);
        let told = |waiting: Waiting| waiting.finish(Err(StoreError::Closed));
        sweep(left.into_iter().map(told));
        self.ledger.abandon();
        self.hold.release();
    }
}

/// The transaction that lacks something when this is not written.
fn left_incomplete(operation: &StoreOperation) -> Option<StoreTransaction> {
    match operation {
        StoreOperation::Append { transaction, .. }
        | StoreOperation::Publish { transaction, .. }
        | StoreOperation::Remove { transaction, .. } => transaction.clone(),
        StoreOperation::Rollback(transaction) => Some(transaction.clone()),
        StoreOperation::Prepare(_)
        | StoreOperation::Commit(_)
        | StoreOperation::DeliveryState { .. }
        | StoreOperation::CreateSubscription { .. }
        | StoreOperation::RemoveSubscription(_) => None,
    }
}

/// Whether nothing that was submitted before can be changed by being written after it: acknowledgements outside of
/// transactions. (Delivery states are not among them, as of two the last one counts.)
fn may_overtake(operations: &[StoreOperation]) -> bool {
    operations.iter().all(|operation| matches!(operation, StoreOperation::Remove { transaction: None, .. }))
}

#[cfg(test)]
mod tests;
