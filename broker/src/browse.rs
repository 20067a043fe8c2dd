//! Looking at what is pending in a queue.

use std::collections::VecDeque;
use std::sync::Arc;

use corriere_core::{Destination, Message};
use tokio::sync::oneshot;

use crate::edge::Edge;
use crate::machine::{Location, Page, Shown};
use crate::store::{StoreError, StoredId};

/// How many messages are looked at under one lock.
const PAGE: usize = 256;
/// How many messages are read back at once, and how many bytes of them, one of any size apart.
const READ_AT_ONCE: usize = 16;
const BYTES_AT_ONCE: u64 = 1024 * 1024;

/// What was pending in a queue when this was made, as far as it is still there: in the order of delivery, in flight and
/// waiting messages included. It keeps the broker alive.
#[derive(Debug)]
pub struct Browse {
    edge: Arc<Edge>,
    queue: Destination,
    page: Option<Page>,
    shown: VecDeque<Shown>,
    read: VecDeque<Found>,
}

/// A message and by which it is found again, or why it cannot be read back.
pub(crate) type Found = (Location, Result<Arc<Message>, StoreError>);

impl Browse {
    pub(crate) fn new(edge: Arc<Edge>, queue: Destination) -> Self {
        let page = edge.query(|machine| machine.look_into(&queue));
        Self { edge, queue, page, shown: VecDeque::new(), read: VecDeque::new() }
    }

    /// The next message; `None` after the last. One that is gone meanwhile is left out, one that cannot be read back is an
    /// error, after which the look goes on. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Arc<Message>, StoreError>> {
        self.next_found().await.map(|(_, outcome)| outcome)
    }

    /// The same, with by which it is found again.
    pub(crate) async fn next_found(&mut self) -> Option<Found> {
        loop {
            if let Some(read) = self.read.pop_front() {
                return Some(read);
            }
            match self.shown.front() {
                Some(Shown { location, body: Some(message), .. }) => {
                    let found = (*location, Ok(Arc::clone(message)));
                    self.shown.pop_front();
                    return Some(found);
                }
                Some(_) => self.read_back().await,
                None => self.turn_page()?,
            }
        }
    }

    /// Looks at more; `None` at the end.
    fn turn_page(&mut self) -> Option<()> {
        let page = self.page?;
        let turned = self.edge.query(|machine| machine.show(&self.queue, page, PAGE));
        let (shown, next) = turned?;
        self.shown = shown.into();
        self.page = Some(next);
        Some(())
    }

    /// Reads the first of what is shown.
    async fn read_back(&mut self) {
        let mut bytes = 0;
        let mut wanted: Vec<StoredId> = Vec::new();
        for shown in self.shown.iter().take(READ_AT_ONCE) {
            bytes += shown.size;
            if shown.body.is_some() || (!wanted.is_empty() && bytes > BYTES_AT_ONCE) {
                break;
            }
            wanted.push(shown.location.stored());
        }
        let count = wanted.len();
        let (told, read) = oneshot::channel();
        // Whoever dropped the future does not want to know.
        self.edge.load(wanted, Box::new(move |messages| drop(told.send(messages))));
        let messages = read.await.unwrap_or_default();
        // They come in the order in which they are asked for.
        let there = self.shown.drain(..count).map(|shown| shown.location).zip(messages);
        let there = there.map(|(location, (_, outcome))| (location, outcome));
        self.read.extend(there.filter(|(_, outcome)| !matches!(outcome, Err(StoreError::NotKept { .. }))));
    }
}
