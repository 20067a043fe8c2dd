//! Room on the disk for the checkpoint, which has to be written when nothing else can be.

use std::io;
use std::sync::{Arc, Mutex};

use super::checkpoint::Extent;
use super::index::Weight;
use super::segments::Segments;
use super::status::lock;
use super::store::Core;
use super::writer::Claim;
use crate::files::is_full;

/// What a checkpoint may take at most, and so how long its file has to be before any is needed.
///
/// A checkpoint leaves the pages of the last one alone until it is durable, so that the file has to have both. Only what
/// would make the next one larger asks for room, before it is written.
#[derive(Debug)]
pub(crate) struct Room {
    extent: Arc<Extent>,
    state: Mutex<State>,
    /// What may still be added before anybody has to look again. Held by whoever takes of it, who writes the journal, so that
    /// the file is not cut meanwhile.
    left: Mutex<u64>,
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

/// What a checkpoint without anything needs, and what each has beside its rows.
const LEAST: u64 = 168 << 10;

/// What room is made in at least, so that it is not made for each message.
const LEAST_AHEAD: u64 = 64 << 10;

/// What room is made in at most.
const MOST_AHEAD: u64 = 64 << 20;

impl Room {
    /// In this file, of which the pages with references have so many bytes.
    pub(crate) fn new(extent: Arc<Extent>, pages: u64, weight: Weight) -> Self {
        let state = State { pages, is_measured: true, others: weight.others, fresh: 0 };
        Self { extent, state: Mutex::new(state), left: Mutex::new(0) }
    }

    /// Has room for what may add so much to the index, or makes it. What is sent leaves some for what has to be written when
    /// nothing can be sent any more: acknowledgements within transactions, and dead letters.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`] when there is none; what else the operating system says.
    pub(crate) fn admit(&self, core: &Core, added: Weight, claim: Claim) -> io::Result<()> {
        let asked = most_needed(added);
        if asked == 0 {
            return Ok(());
        }
        let is_sent = claim == Claim::Sends;
        let mut left = lock(&self.left);
        if is_sent && asked <= *left {
            *left -= asked;
            return Ok(());
        }
        let wanted = |weight| {
            let needed = self.needed(weight) + asked;
            needed + if is_sent { spared(needed) } else { 0 }
        };
        // As long as there is much room, it is not worth while to enter what was written before.
        let mut needed = wanted(core.ledger.greatest_weight());
        if self.extent.whole() < needed {
            needed = wanted(self.weight(core));
            self.make(core, needed)?;
        }
        // What others take out of what is left to them is not there for sends by that.
        *left = if is_sent { self.extent.whole().saturating_sub(needed) } else { left.saturating_sub(asked) };
        Ok(())
    }

    /// Makes room ahead for what will be sent.
    pub(crate) fn prepare(&self, core: &Core) -> io::Result<()> {
        let needed = self.needed(self.weight(core));
        self.make(core, needed + spared(needed) + ahead(core, needed) / 2)
    }

    /// Whether something can be sent.
    pub(crate) fn is_there(&self, core: &Core) -> bool {
        let needed = self.needed(self.weight(core));
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

    /// Bytes that the file is to be cut to, when it has much more than is needed; sooner while sends wait for the disk.
    pub(crate) fn too_long(&self, core: &Core) -> Option<u64> {
        let needed = self.needed(self.weight(core));
        let is_full = core.status.full().is_some();
        let kept = needed + spared(needed) + if is_full { LEAST_AHEAD } else { ahead(core, needed) };
        let most = if is_full { kept + kept / 2 } else { 4 * kept };
        (self.extent.whole() > most).then_some(kept)
    }

    /// Gives back what is beyond so many bytes, as far as redb does not use it.
    pub(crate) fn trim(&self, bytes: u64) -> io::Result<()> {
        let mut left = lock(&self.left);
        *left = 0;
        self.extent.trim(bytes)
    }

    fn weight(&self, core: &Core) -> Weight {
        core.ledger.index(&core.segments).index.weight()
    }

    /// Bytes that the file has to have for the next checkpoint, and for the one after it.
    fn needed(&self, weight: Weight) -> u64 {
        let state = lock(&self.state);
        let next = pages_with(state.pages, state.fresh + weight.fresh, weight.references);
        let references = next + next.max(state.pages);
        let others = most_needed(Weight { others: weight.others.max(state.others), ..Weight::default() });
        LEAST + references + references / 32 + others
    }

    /// Makes the file so long, and some more if the disk has that; what is there for sends only is given up for it.
    fn make(&self, core: &Core, wanted: u64) -> io::Result<()> {
        if self.extent.whole() >= wanted {
            return Ok(());
        }
        loop {
            let mut made = self.extent.reserve(wanted + ahead(core, wanted));
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
    LEAST_AHEAD + needed / 8
}

/// Who writes much has segments that are long.
fn ahead(core: &Core, needed: u64) -> u64 {
    (needed.max(core.segments.max_file_length()) / 4).clamp(LEAST_AHEAD, MOST_AHEAD)
}
