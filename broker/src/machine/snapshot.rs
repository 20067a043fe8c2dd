//! Looking at what is pending in a queue, a page at a time, without touching it.

use std::sync::Arc;

use corriere_core::{Destination, Message};

use super::Machine;
use super::queue::Position;
use crate::store::StoredId;

/// Where a look at a queue has come to. It shows what was there when it began, as far as that is still there.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    after: Option<Position>,
    /// What became visible at or behind this is not shown.
    end: u64,
}

/// A message that is pending.
#[derive(Clone, Debug)]
pub enum Shown {
    /// It is in memory.
    Here(Arc<Message>),
    /// It has to be read back, with so many bytes.
    Stored(StoredId, u64),
}

impl Machine {
    /// Begins to look at a queue; `None` when there is none of that name.
    #[must_use]
    pub fn look_into(&self, destination: &Destination) -> Option<Page> {
        self.queue(destination).map(|queue| Page { after: None, end: queue.next_sequence() })
    }

    /// The next messages of a queue, found among the next `count` ones, and where to go on; `None` at the end.
    #[must_use]
    pub fn show(&self, destination: &Destination, page: Page, count: usize) -> Option<(Vec<Shown>, Page)> {
        let queue = self.queue(destination)?;
        let mut next = page;
        let mut shown = Vec::new();
        for (position, entry) in queue.behind(page.after, count) {
            next.after = Some(position);
            if position.sequence() < page.end {
                shown.push(match entry.held.body() {
                    Some(body) => Shown::Here(Arc::clone(body)),
                    None => Shown::Stored(entry.held.id, entry.held.size),
                });
            }
        }
        (next.after != page.after).then_some((shown, next))
    }
}
