//! What waits to be written.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Takes what is to be written, from any thread and without waiting, in the order of the calls; one task writes it.
///
/// It has no bound of its own: whoever fills it for a peer that does not read has to have one.
#[derive(Debug)]
pub(crate) struct Outbox<T> {
    state: Mutex<State<T>>,
    filled: Notify,
}

#[derive(Debug)]
struct State<T> {
    waiting: VecDeque<T>,
    is_closed: bool,
}

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State { waiting: VecDeque::new(), is_closed: false }),
            filled: Notify::new(),
        }
    }
}

impl<T> Outbox<T> {
    /// Adds something; false, and nothing is added, once it is closed.
    pub(crate) fn push(&self, item: T) -> bool {
        self.extend([item])
    }

    /// Adds several, between which nothing else comes.
    pub(crate) fn extend(&self, items: impl IntoIterator<Item = T>) -> bool {
        let mut state = self.lock();
        if state.is_closed {
            return false;
        }
        let was_empty = state.waiting.is_empty();
        state.waiting.extend(items);
        drop(state);
        if was_empty {
            self.filled.notify_one();
        }
        true
    }

    /// Takes nothing more; what is in it is still written.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_one();
    }

    /// Takes nothing more, and drops what is in it: nobody writes it any more.
    pub(crate) fn abandon(&self) {
        self.close();
        let abandoned = std::mem::take(&mut self.lock().waiting);
        // Not under the lock, as whoever hears of it may call back.
        drop(abandoned);
    }

    /// Moves all that waits to `taken`, which is empty, once there is something; false once nothing will come any more.
    /// Dropping the future loses nothing.
    pub(crate) async fn take(&self, taken: &mut VecDeque<T>) -> bool {
        loop {
            {
                let mut state = self.lock();
                if !state.waiting.is_empty() {
                    std::mem::swap(&mut state.waiting, taken);
                    return true;
                }
                if state.is_closed {
                    return false;
                }
            }
            self.filled.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Nothing unwinds while this is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
