//! The index, and what was written and is not in it yet. The writer only leaves its records here; whoever needs the
//! index enters them first.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use corriere_core::Message;

use super::change::Entry;
use super::index::{Index, Reference, Weight};
use super::lsn::Lsn;
use super::reader::read_message;
use super::segments::Segments;
use super::status::lock;
use crate::store::{Loaded, StoreError, StoredId};

/// Records that are left before the librarian is woken.
const MANY: usize = 4_096;

/// Records that are left before the writer enters them itself, so that there is a bound.
const TOO_MANY: usize = 262_144;

/// How many messages of durable subscriptions that are gone are taken out of the index before others may have it.
const AT_ONCE: usize = 1_024;

/// How long it is before what there were too many open files for is tried again.
const RETRY: Duration = Duration::from_millis(50);

/// The index with its inbox.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Taken before the inbox.
    index: Mutex<Kept>,
    inbox: Mutex<Inbox>,
    wake: Condvar,
}

/// The index as of a place in the journal.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) index: Index,
    /// The end of the last batch of which the records are entered.
    pub(crate) end: Lsn,
    /// The end of the last segment that it knows.
    segments_end: Lsn,
}

#[derive(Debug, Default)]
struct Inbox {
    /// What was written at once, each as it was left: a copy of all of it into one list would be made again and again.
    written: Vec<Vec<Entry>>,
    /// How many records these have.
    left: usize,
    end: Lsn,
    /// What the index weighed when somebody last entered records, and what those add that were not entered yet, at most.
    weight: Weight,
    added: Weight,
    loads: Vec<Load>,
    librarian_sleeps: bool,
    ended: bool,
}

struct Load {
    wanted: Vec<StoredId>,
    completion: Loaded,
}

impl Ledger {
    pub(crate) fn new(index: Index, end: Lsn) -> Self {
        let weight = index.weight();
        Self {
            index: Mutex::new(Kept { index, end, segments_end: Lsn(0) }),
            inbox: Mutex::new(Inbox { end, weight, ..Inbox::default() }),
            wake: Condvar::new(),
        }
    }

    /// Leaves what was written, up to `end`, and what it adds to the index at most.
    pub(crate) fn push(&self, segments: &Segments, entries: Vec<Entry>, end: Lsn, added: Weight) {
        let mut inbox = lock(&self.inbox);
        inbox.left += entries.len();
        inbox.written.push(entries);
        inbox.added += added;
        inbox.end = end;
        let left = inbox.left;
        let wake = left >= MANY && std::mem::take(&mut inbox.librarian_sleeps);
        drop(inbox);
        if wake {
            self.wake.notify_one();
        }
        if left >= TOO_MANY {
            drop(self.index(segments));
        }
    }

    /// The index with all that was written.
    pub(crate) fn index(&self, segments: &Segments) -> MutexGuard<'_, Kept> {
        let mut kept = lock(&self.index);
        let (written, end, added) = {
            let mut inbox = lock(&self.inbox);
            inbox.left = 0;
            (std::mem::take(&mut inbox.written), inbox.end, inbox.added)
        };
        for entry in written.into_iter().flatten() {
            if entry.lsn >= kept.segments_end {
                for segment in segments.live() {
                    kept.index.add_segment(segment.base);
                    kept.segments_end = segment.end();
                }
            }
            kept.index.apply(entry);
        }
        kept.end = end;
        let mut inbox = lock(&self.inbox);
        inbox.added -= added;
        inbox.weight = kept.index.weight();
        drop(inbox);
        kept
    }

    /// The same, and nothing is left of durable subscriptions that are gone. However much that was, others have had the index
    /// in between.
    pub(crate) fn cleared_index(&self, segments: &Segments) -> MutexGuard<'_, Kept> {
        loop {
            let mut kept = self.index(segments);
            if !kept.index.take_out_gone(AT_ONCE) {
                return kept;
            }
        }
    }

    /// What the index weighs at most, without waiting for anybody.
    pub(crate) fn greatest_weight(&self) -> Weight {
        let inbox = lock(&self.inbox);
        let mut weight = inbox.weight;
        weight += inbox.added;
        weight
    }

    /// A segment was given up.
    pub(crate) fn forget_segment(&self, base: Lsn) {
        lock(&self.index).index.forget_segment(base);
    }

    /// Has messages read back, by [`Ledger::serve`].
    pub(crate) fn load(&self, wanted: Vec<StoredId>, completion: Loaded) {
        let mut inbox = lock(&self.inbox);
        if inbox.ended {
            drop(inbox);
            refuse(Load { wanted, completion });
            return;
        }
        inbox.loads.push(Load { wanted, completion });
        inbox.librarian_sleeps = false;
        drop(inbox);
        self.wake.notify_one();
    }

    /// Reads back what was asked for.
    pub(crate) fn serve(&self, segments: &Segments) {
        self.serve_with(segments, false);
    }

    fn serve_with(&self, segments: &Segments, may_wait: bool) {
        let loads = std::mem::take(&mut lock(&self.inbox).loads);
        for Load { wanted, completion } in loads {
            let found: Vec<_> = {
                let kept = self.index(segments);
                wanted.into_iter().map(|stored| (stored, kept.index.find(stored))).collect()
            };
            let read = |(stored, found): (StoredId, Option<Reference>)| {
                (stored, self.read(segments, stored, found, may_wait))
            };
            tell(completion, found.into_iter().map(read).collect());
        }
    }

    fn read(
        &self,
        segments: &Segments,
        stored: StoredId,
        found: Option<Reference>,
        may_wait: bool,
    ) -> Result<Arc<Message>, StoreError> {
        let gone = StoreError::NotKept { stored };
        let Some(reference) = found else { return Err(gone) };
        let read = || read_message(segments, stored, &reference);
        let mut message = read();
        while may_wait && matches!(message, Err(StoreError::Full { .. })) && self.pause() {
            message = read();
        }
        // Its record may have been given up for others while we read.
        if message.is_err() && self.index(segments).index.find(stored).is_none() {
            return Err(gone);
        }
        message
    }

    /// Lets some time pass for what may become better by itself; false at the end.
    fn pause(&self) -> bool {
        let inbox = lock(&self.inbox);
        if inbox.ended {
            return false;
        }
        let inbox = self.wake.wait_timeout(inbox, RETRY).unwrap_or_else(PoisonError::into_inner).0;
        !inbox.ended
    }

    /// The librarian's thread: enters what is left, reads what is wanted, and takes out what is gone, until the end.
    pub(crate) fn work(&self, segments: &Segments) {
        let mut is_gone_left = false;
        loop {
            let mut inbox = lock(&self.inbox);
            while inbox.left < MANY && inbox.loads.is_empty() && !inbox.ended && !is_gone_left {
                inbox.librarian_sleeps = true;
                inbox = self.wake.wait(inbox).unwrap_or_else(PoisonError::into_inner);
            }
            inbox.librarian_sleeps = false;
            let ended = inbox.ended;
            let wanted = !inbox.loads.is_empty();
            drop(inbox);
            if wanted {
                self.serve_with(segments, true);
            }
            if ended {
                return;
            }
            is_gone_left = self.index(segments).index.take_out_gone(AT_ONCE);
        }
    }

    /// Ends the librarian; what is wanted then is still read.
    pub(crate) fn end(&self) {
        lock(&self.inbox).ended = true;
        self.wake.notify_all();
    }

    /// Refuses what is wanted and takes no more.
    pub(crate) fn abandon(&self) {
        let loads = {
            let mut inbox = lock(&self.inbox);
            inbox.ended = true;
            std::mem::take(&mut inbox.loads)
        };
        loads.into_iter().for_each(refuse);
        self.wake.notify_all();
    }
}

fn refuse(load: Load) {
    let refused = |stored| (stored, Err(StoreError::Closed));
    tell(load.completion, load.wanted.into_iter().map(refused).collect());
}

fn tell(completion: Loaded, messages: Vec<(StoredId, Result<Arc<Message>, StoreError>)>) {
    // One that panics must not take the librarian, and so all who wait for messages, with it.
    if catch_unwind(AssertUnwindSafe(|| completion(messages))).is_err() {
        tracing::error!("who had messages read back panicked; this is a bug in it");
    }
}

impl fmt::Debug for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Load").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}
