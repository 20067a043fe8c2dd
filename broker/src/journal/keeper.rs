//! Housekeeping: spares ahead, checkpoints, and giving up what nobody needs any more.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::checkpoint::{Checkpoint, Place};
use super::index::{Changes, Weight};
use super::lsn::Lsn;
use super::segments::Segments;
use super::status::lock;
use super::store::Core;
use crate::files::is_full;
use crate::store::{StoreError, StoredId};

/// Spares that are kept ready beyond those that are kept back, once much is written.
const AHEAD: usize = 2;

/// How long it is before what failed for want of room is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// The checkpoint, and what it allows to be given up.
#[derive(Debug)]
pub(crate) struct Keeper {
    checkpoint: Checkpoint,
    place: Place,
    /// Messages whose large files nobody needs once the checkpoint is written.
    dead_large: Vec<StoredId>,
}

impl Keeper {
    pub(crate) fn new(checkpoint: Checkpoint, place: Place) -> Self {
        Self { checkpoint, place, dead_large: Vec::new() }
    }

    /// Writes what changed, and gives up what nobody needs any more after that.
    pub(crate) fn checkpoint(&mut self, core: &Core) -> Result<(), StoreError> {
        core.check_place(&self.checkpoint)?;
        let (mut changes, tail) = {
            let mut kept = core.ledger.cleared_index(&core.segments);
            let changes = kept.index.take_changes();
            core.room.is_taken(changes.weight);
            (changes, kept.end)
        };
        let weight = changes.weight;
        self.dead_large.append(&mut changes.dead_large);
        let dead_segments = std::mem::take(&mut changes.dead_segments);
        // A reference to what a power cut takes would be worse than none.
        core.wait_until_durable(tail)?;
        if tail != self.place.tail || !changes.is_empty() || self.checkpoint.is_behind() {
            self.place = Place { tail, durable: tail, ..self.place };
            let spared = Segments::RESERVE;
            let written = write_checkpoint(&mut self.checkpoint, &core.segments, spared, changes, self.place);
            written.map_err(|error| core.checkpoint_failed(&error))?;
            core.checkpointed.store(tail.0, Ordering::Relaxed);
            core.room.is_written(weight, None);
        }
        self.give_up(core, &dead_segments);
        if let Err(error) = self.look_at_room(core, weight) {
            tracing::debug!(%error, "the checkpoint's file was left as long as it is");
        }
        Ok(())
    }

    /// Gives back what the checkpoint does not need, and looks closer where nothing but its room keeps sends waiting.
    fn look_at_room(&mut self, core: &Core, weight: Weight) -> io::Result<()> {
        let lacks_room = core.status.full().is_some() && !core.room.is_there(core);
        if lacks_room && core.segments.has_room() && !core.room.is_measured() {
            core.room.is_written(weight, Some(self.checkpoint.measure()?));
        }
        if let Some(kept) = core.room.too_long(core) {
            self.checkpoint.compact()?;
            core.room.trim(kept)?;
        }
        Ok(())
    }

    /// Ends it in order.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.checkpoint.close()
    }

    /// Gives up segments that were without live records before the checkpoint, and the files of messages that are gone.
    pub(crate) fn give_up(&mut self, core: &Core, dead_segments: &[Lsn]) {
        let live = core.segments.live();
        // The last one is written to.
        let dead = live.iter().rev().skip(1).filter(|segment| {
            segment.end() <= self.place.tail && dead_segments.binary_search(&segment.base).is_ok()
        });
        for segment in dead {
            match core.segments.recycle(segment.base, core.options.archive.as_deref()) {
                Ok(()) => core.ledger.forget_segment(segment.base),
                Err(error) => {
                    tracing::warn!(file = %segment.path.display(), %error, "a segment could not be given up; the next checkpoint tries again");
                }
            }
        }
        self.dead_large.retain(|stored| {
            let removed = core.segments.remove_large(*stored);
            if let Err(error) = &removed {
                let file = core.segments.large_path(*stored);
                tracing::warn!(file = %file.display(), %error, "a file could not be removed; the next checkpoint tries again");
            }
            removed.is_err()
        });
    }
}

/// Writes a checkpoint. Where redb finds no room it is opened anew, by which it takes over all that is kept back for it; if
/// that is not enough, which it should be, spares make room, of which so many stay.
pub(crate) fn write_checkpoint(
    checkpoint: &mut Checkpoint,
    segments: &Segments,
    spared: usize,
    changes: Changes,
    place: Place,
) -> io::Result<()> {
    let mut written = checkpoint.write(changes, place);
    if written.as_ref().is_err_and(is_full) {
        written = checkpoint.write_again();
    }
    while written.as_ref().is_err_and(is_full) && segments.give_up_spare(spared)? {
        written = checkpoint.write_again();
    }
    written
}

/// Makes spares ahead, and tells when there is room again.
pub(crate) fn housekeep(core: &Core) {
    // A program that writes little should not fill a disk with zeros: it has its first segment, and what is kept back. While
    // the store is full, one ahead says that it no longer is.
    let is_ahead = core.housekeeper.writes_much.load(Ordering::Relaxed) || core.status.full().is_some();
    let ahead = if is_ahead { AHEAD } else { usize::from(core.segments.live().is_empty()) };
    make_spares(core, Segments::RESERVE);
    if !core.status.has_failed()
        && let Err(error) = core.room.prepare(core)
    {
        tracing::debug!(%error, "no room could be made ahead for the checkpoint");
    }
    make_spares(core, Segments::RESERVE + ahead);
    if core.segments.has_room() && core.room.is_there(core) {
        core.status.set_room();
        core.status.tell();
    }
}

fn make_spares(core: &Core, wanted: usize) {
    while !core.status.has_failed() && core.segments.spares() < wanted {
        if let Err(error) = core.segments.prepare_spare() {
            // The writer comes to it by itself when it needs one.
            tracing::debug!(%error, "no spare could be made");
            break;
        }
    }
}

/// When the housekeeper has something to do.
#[derive(Debug, Default)]
pub(crate) struct Housekeeper {
    state: Mutex<Wanted>,
    wake: Condvar,
    /// Whether a good part of a segment has been written, so that the next ones should be ready.
    writes_much: AtomicBool,
}

#[derive(Debug, Default)]
struct Wanted {
    spares: bool,
    checkpoint: bool,
    ended: bool,
}

impl Housekeeper {
    /// A spare was used, or will be before long if `writes_much`; or there is no room any more, and so it looks more often.
    pub(crate) fn wake(&self, writes_much: bool) {
        self.writes_much.fetch_or(writes_much, Ordering::Relaxed);
        lock(&self.state).spares = true;
        self.wake.notify_one();
    }

    /// Much was written since the last checkpoint.
    pub(crate) fn want_checkpoint(&self) {
        let mut state = lock(&self.state);
        if !state.checkpoint {
            state.checkpoint = true;
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        lock(&self.state).ended = true;
        self.wake.notify_all();
    }

    /// Lets some time pass, unless the end comes.
    fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut state = lock(&self.state);
        while !state.ended {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The thread, until the end.
    pub(crate) fn work(&self, core: &Core) {
        let mut last = Instant::now();
        loop {
            housekeep(core);
            let begun = Instant::now();
            let mut state = lock(&self.state);
            let mut is_full;
            loop {
                // It may have become full meanwhile.
                is_full = core.status.full().is_some();
                if state.ended || state.checkpoint || (state.spares && !is_full) {
                    break;
                }
                let until = if is_full { begun + RETRY } else { last + core.options.cleanup_interval };
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                state = self.wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            if state.ended {
                return;
            }
            state.spares = false;
            let is_due = state.checkpoint || is_full || last.elapsed() >= core.options.cleanup_interval;
            drop(state);
            if !is_due {
                continue;
            }
            last = Instant::now();
            if let Err(error) = core.checkpoint() {
                if !core.status.has_failed() {
                    tracing::warn!(%error, "no checkpoint was written; it is tried again");
                }
                self.pause(RETRY);
            }
            core.pending.try_again();
            // Whoever wanted one while it was written has it; the writer asks again when there is much again.
            lock(&self.state).checkpoint = false;
        }
    }
}
