//! Calls those who wait for the end of what they submitted.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, PoisonError};

use super::status::lock;
use crate::store::{Completion, StoreError, Sweep};

/// A completion and what it is to be told.
pub(crate) struct Finished {
    pub(crate) completion: Completion,
    pub(crate) outcome: Result<(), StoreError>,
}

/// Calls completions in order: at once, or on a thread of its own when the writer has better things to do.
#[derive(Debug, Default)]
pub(crate) struct Completer {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Whether there is a thread.
    has_thread: bool,
    waiting: Vec<Finished>,
    /// Whether the thread is at work on what it took.
    busy: bool,
    ended: bool,
}

impl Completer {
    /// From now on there is a thread that calls [`Completer::work`].
    pub(crate) fn has_thread(&self) {
        lock(&self.state).has_thread = true;
    }

    /// Calls them: here, unless there is a thread and it is still at work, or `elsewhere` says so.
    pub(crate) fn finish(&self, finished: Vec<Finished>, elsewhere: bool) {
        if finished.is_empty() {
            return;
        }
        let mut state = lock(&self.state);
        // What comes later is not called earlier.
        if state.has_thread && (elsewhere || state.busy || !state.waiting.is_empty()) {
            let wake = state.waiting.is_empty() && !state.busy;
            state.waiting.extend(finished);
            drop(state);
            if wake {
                self.wake.notify_one();
            }
            return;
        }
        drop(state);
        sweep(finished);
    }

    /// The thread: until the end, and all that waits then.
    pub(crate) fn work(&self) {
        let mut taken = Vec::new();
        let mut state = lock(&self.state);
        loop {
            if state.waiting.is_empty() {
                if state.ended {
                    state.has_thread = false;
                    return;
                }
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            std::mem::swap(&mut state.waiting, &mut taken);
            state.busy = true;
            drop(state);
            sweep(taken.drain(..));
            state = lock(&self.state);
            state.busy = false;
        }
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        lock(&self.state).ended = true;
        self.wake.notify_all();
    }
}

/// Calls them, one after the other.
pub(crate) fn sweep(finished: impl IntoIterator<Item = Finished>) {
    let mut finished = finished.into_iter().peekable();
    while let Some(next) = finished.next() {
        next.call_in(if finished.peek().is_some() { Sweep::GoesOn } else { Sweep::Ends });
    }
}

impl Finished {
    /// Calls it by itself.
    pub(crate) fn call(self) {
        self.call_in(Sweep::Ends);
    }

    fn call_in(self, sweep: Sweep) {
        let Self { completion, outcome } = self;
        // One that panics must not take the writer, and so all others, with it.
        if catch_unwind(AssertUnwindSafe(|| completion(outcome, sweep))).is_err() {
            tracing::error!("the completion of a batch panicked; this is a bug in whoever submitted it");
        }
    }
}

impl fmt::Debug for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Finished").field("outcome", &self.outcome).finish_non_exhaustive()
    }
}
