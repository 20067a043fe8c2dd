//! Looking at what is pending in a queue, a page at a time, without touching it.

use std::sync::Arc;

use corriere_core::{Destination, Message};

use super::Machine;
use super::queue::{Entry, Position, Queue};
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
pub struct Shown {
    /// By which it is found again.
    pub location: Location,
    /// The message; `None` when it has to be read back.
    pub body: Option<Arc<Message>>,
    /// Bytes that it has.
    pub size: u64,
}

/// By which a message is found again that a look at its queue has shown, as long as it is there.
#[derive(Clone, Copy, Debug)]
pub struct Location {
    pub(super) position: Position,
    pub(super) stored: StoredId,
}

impl Location {
    /// Its name in the store.
    #[must_use]
    pub fn stored(self) -> StoredId {
        self.stored
    }
}

impl Machine {
    /// Begins to look at a queue; `None` when there is none of that name.
    #[must_use]
    pub fn look_into(&self, destination: &Destination) -> Option<Page> {
        self.queue(destination).map(Queue::page)
    }

    /// The next messages of a queue, up to `count`, and where to go on; `None` at the end.
    #[must_use]
    pub fn show(&self, destination: &Destination, page: Page, count: usize) -> Option<(Vec<Shown>, Page)> {
        let queue = self.queue(destination)?;
        let mut next = page;
        let mut shown = Vec::new();
        while shown.len() < count
            && let Some((position, entry)) = queue.look(&mut next)
        {
            shown.push(Shown {
                location: Location { position, stored: entry.held.id },
                body: entry.held.body().cloned(),
                size: entry.held.size,
            });
        }
        (!shown.is_empty()).then_some((shown, next))
    }
}

impl Queue {
    /// Where a look begins that shows what is here now.
    pub(super) fn page(&self) -> Page {
        Page { after: None, end: self.next_sequence() }
    }

    /// The next message of a look, which goes on behind it; `None` at the end.
    pub(super) fn look(&self, page: &mut Page) -> Option<(Position, &Entry)> {
        loop {
            let (position, entry) = self.first_behind(page.after)?;
            if position.sequence() < page.end {
                page.after = Some(position);
                return Some((position, entry));
            }
            // What is behind it in its band came later still.
            page.after = Some(position.end_of_band());
        }
    }
}
