//! What was posted to the broker and is not taken yet, and who takes it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use corriere_core::provider::{Command, Confirmer};

use super::state::Told;
use crate::machine::{ConnectionKey, Input, Order};

/// Something for the broker.
#[derive(Debug)]
pub(super) enum Posted {
    /// A command, and who is told of its outcome; `None` where nobody waits for it.
    Command { connection: ConnectionKey, command: Command, confirmer: Option<Confirmer> },
    /// An operator does something with messages of a queue.
    Manage { order: Order, told: Told },
    /// The last handle of a connection is gone.
    Vanished(ConnectionKey),
    /// Anything else.
    Input(Input),
}

/// What is posted, in the order of the calls. Posting waits for nobody who is at work.
#[derive(Debug, Default)]
pub(super) struct Inbox(Mutex<State>);

/// What becomes of something that was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Post {
    /// The caller is the driver from now on.
    Drive,
    /// There is a driver, who will come to it.
    Left,
    /// The same, but much is posted already: the caller is to take some, so that it posts no faster than is taken.
    TakeSome,
}

/// So much may wait for the driver before who posts has to take some.
const BACKLOG: usize = 1_024;

#[derive(Debug, Default)]
struct State {
    posted: VecDeque<Posted>,
    /// The thread that takes what is posted and performs what comes of it.
    driver: Option<ThreadId>,
}

impl Inbox {
    #[must_use]
    pub(super) fn post(&self, posted: Posted) -> Post {
        let mut state = self.lock();
        state.posted.push_back(posted);
        match state.begin() {
            true => Post::Drive,
            false if state.posted.len() > BACKLOG => Post::TakeSome,
            false => Post::Left,
        }
    }

    /// The same for what need not be taken at once, as more is about to be posted.
    pub(super) fn post_ahead(&self, posted: Posted) {
        self.lock().posted.push_back(posted);
    }

    /// Makes the caller the driver, if there is none.
    #[must_use]
    pub(super) fn begin(&self) -> bool {
        self.lock().begin()
    }

    /// Moves up to `most` of what is posted to `taken`.
    pub(super) fn take(&self, most: usize, taken: &mut Vec<Posted>) {
        let mut state = self.lock();
        let count = state.posted.len().min(most);
        taken.extend(state.posted.drain(..count));
        if state.posted.is_empty() {
            // A burst does not keep its memory for ever.
            state.posted.shrink_to(BACKLOG);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.lock().posted.len()
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
