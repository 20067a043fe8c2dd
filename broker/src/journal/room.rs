//! Room on the disk for the checkpoint, which has to be written when nothing else can be.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::checkpoint::Extent;
use super::committer::is_full;
use super::index::Weight;
use super::segments::Segments;
use super::status::lock;
use super::store::Core;

/// What a checkpoint may take at most, and so how long its file has to be before any is needed.
///
/// A checkpoint leaves the pages of the last one alone until it is durable, so that the file has to have both. Only what
/// would make the next one larger asks for room, before it is written.
#[derive(Debug)]
pub(crate) struct Room {
    extent: Arc<Extent>,
    state: Mutex<State>,
    /// What may still be added before anybody has to look again.
    left: AtomicU64,
}

#[derive(Debug)]
struct State {
    /// Bytes of the pages that the checkpoint has references in, at most.
    pages: u64,
    /// Whether it has just so many.
    is_measured: bool,
    /// What the checkpoint has of everything else.
    others: u64,
    /// What was taken from the index to be written and is not in the checkpoint yet.
    fresh: u64,
}

/// For whom room is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asking {
    /// What is sent leaves some for what has to be written when nothing can be sent any more.
    Sends,
    /// Acknowledgements within transactions, and dead letters.
    Others,
}

/// What a checkpoint without anything needs, and what each has beside its rows.
const LEAST: u64 = 160 << 10;

/// What room is made in at least, so that it is not made for each message.
const LEAST_AHEAD: u64 = 64 << 10;

/// What room is made in at most.
const MOST_AHEAD: u64 = 32 << 20;

impl Room {
    /// In this file, of which the pages with references have so many bytes.
    pub(crate) fn new(extent: Arc<Extent>, pages: u64, weight: Weight) -> Self {
        let state = State { pages, is_measured: true, others: weight.others, fresh: 0 };
        Self { extent, state: Mutex::new(state), left: AtomicU64::new(0) }
    }

    /// Has room for what may add so much to the index, or makes it.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`] when there is none; what else the operating system says.
    pub(crate) fn admit(&self, core: &Core, added: Weight, asking: Asking) -> io::Result<()> {
        let asked = most_needed(added);
        if asked == 0 {
            return Ok(());
        }
        // Only who writes the journal comes here, one at a time.
        let left = self.left.load(Ordering::Relaxed);
        if asking == Asking::Sends && asked <= left {
            self.left.store(left - asked, Ordering::Relaxed);
            return Ok(());
        }
        let needed = self.needed(core) + asked;
        let wanted = needed + if asking == Asking::Sends { spared(needed) } else { 0 };
        self.make(core, wanted, wanted + ahead(needed))?;
        self.left.store(self.extent.whole().saturating_sub(wanted), Ordering::Relaxed);
        Ok(())
    }

    /// Makes room ahead for what will be sent.
    pub(crate) fn prepare(&self, core: &Core) -> io::Result<()> {
        let needed = self.needed(core);
        let wanted = needed + spared(needed) + LEAST_AHEAD;
        self.make(core, wanted, wanted + ahead(needed))
    }

    /// Whether something can be sent.
    pub(crate) fn is_there(&self, core: &Core) -> bool {
        let needed = self.needed(core);
        self.extent.whole() >= needed + spared(needed) + LEAST_AHEAD / 2
    }

    /// Whether it is known how much the checkpoint takes, and not only how much at most.
    pub(crate) fn is_measured(&self) -> bool {
        lock(&self.state).is_measured
    }

    /// These changes are about to be written. Called with the index locked from which they were taken.
    pub(crate) fn is_taken(&self, weight: Weight) {
        lock(&self.state).fresh += weight.fresh;
    }

    /// What was taken is written. With `pages` it is known how many bytes of pages have references.
    pub(crate) fn is_written(&self, weight: Weight, pages: Option<u64>) {
        let mut state = lock(&self.state);
        state.is_measured = pages.is_some();
        state.pages = pages.unwrap_or_else(|| pages_with(state.pages, state.fresh, weight.references));
        state.others = weight.others;
        state.fresh = 0;
    }

    /// Gives back much more than is needed.
    pub(crate) fn trim(&self, core: &Core) -> io::Result<()> {
        let needed = self.needed(core);
        let kept = needed + spared(needed) + 2 * ahead(needed);
        if self.extent.whole() <= 2 * kept {
            return Ok(());
        }
        self.extent.trim(kept)?;
        self.left.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Bytes that the file has to have for the next checkpoint, and for the one after it.
    fn needed(&self, core: &Core) -> u64 {
        let kept = core.ledger.index(&core.segments);
        let weight = kept.index.weight();
        let state = lock(&self.state);
        let next = pages_with(state.pages, state.fresh + weight.fresh, weight.references);
        let references = next + next.max(state.pages);
        let others = most_needed(Weight { others: weight.others.max(state.others), ..Weight::default() });
        LEAST + references + references / 32 + others
    }

    /// Makes the file as long as is `wished`, or at least as `wanted`; what is kept for sends makes room for that.
    fn make(&self, core: &Core, wanted: u64, wished: u64) -> io::Result<()> {
        if self.extent.whole() >= wanted {
            return Ok(());
        }
        loop {
            let mut made = self.extent.reserve(wished);
            if made.as_ref().is_err_and(is_full) {
                made = self.extent.reserve(wanted);
            }
            match made {
                Err(error) if is_full(&error) && core.segments.give_up_spare(Segments::RESERVE)? => {}
                made => return made,
            }
        }
    }
}

/// Bytes of pages at most, when so much is added to those that are there and so much is in them then.
///
/// What is sent last comes behind all that is there, and fills its pages. What is removed leaves pages that are a third full at
/// least.
fn pages_with(pages: u64, added: u64, all: u64) -> u64 {
    (pages + added + added / 8).min(3 * all)
}

/// Bytes that the file has to have more for it at most.
fn most_needed(weight: Weight) -> u64 {
    3 * weight.references + 6 * weight.others
}

/// What sends leave to others.
fn spared(needed: u64) -> u64 {
    needed / 16
}

fn ahead(needed: u64) -> u64 {
    (needed / 4).clamp(LEAST_AHEAD, MOST_AHEAD)
}
