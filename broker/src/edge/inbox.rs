//! What was posted to the broker and is not taken yet, and who takes it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use corriere_core::provider::{Command, Confirmer};

use crate::machine::{ConnectionKey, Input};

/// Something for the broker.
#[derive(Debug)]
pub(super) enum Posted {
    /// A command, and who is told of its outcome; `None` where nobody waits for it.
    Command { connection: ConnectionKey, command: Command, confirmer: Option<Confirmer> },
    /// The last handle of a connection is gone.
    Vanished(ConnectionKey),
    /// Anything else.
    Input(Input),
}

/// What is posted, in the order of the calls. Posting waits for nobody who is at work.
#[derive(Debug, Default)]
pub(super) struct Inbox(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    posted: Vec<Posted>,
    /// The thread that takes what is posted and performs what comes of it.
    driver: Option<ThreadId>,
}

impl Inbox {
    /// Says whether the caller is the driver from now on. Otherwise there is one, who will come to it.
    #[must_use]
    pub(super) fn post(&self, posted: Posted) -> bool {
        let mut state = self.lock();
        state.posted.push(posted);
        state.begin()
    }

    /// The same for what need not be taken at once, as more is about to be posted.
    pub(super) fn post_ahead(&self, posted: Posted) {
        self.lock().posted.push(posted);
    }

    /// Makes the caller the driver, if there is none.
    #[must_use]
    pub(super) fn begin(&self) -> bool {
        self.lock().begin()
    }

    /// Takes all that is posted; `empty` is put in its place, for its memory.
    pub(super) fn take(&self, empty: Vec<Posted>) -> Vec<Posted> {
        std::mem::replace(&mut self.lock().posted, empty)
    }

    /// The driver ends, unless something is posted.
    #[must_use]
    pub(super) fn end_if_empty(&self) -> bool {
        let mut state = self.lock();
        if state.posted.is_empty() {
            state.driver = None;
        }
        state.driver.is_none()
    }

    /// The driver leaves what there is to the next one.
    pub(super) fn end(&self) {
        self.lock().driver = None;
    }

    pub(super) fn has_posted(&self) -> bool {
        !self.lock().posted.is_empty()
    }

    pub(super) fn driver(&self) -> Option<ThreadId> {
        self.lock().driver
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn begin(&mut self) -> bool {
        let is_free = self.driver.is_none();
        if is_free {
            self.driver = Some(thread::current().id());
        }
        is_free
    }
}
