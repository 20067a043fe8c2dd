//! Driving: taking what is posted, stepping the machine with it, and having the store led.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use corriere_core::panic::caught;

use super::Edge;
use super::inbox::{Post, Posted};
use super::state::{State, Work};
use crate::machine::Input;
use crate::store::{StoreError, Sweep};

/// How many inputs are stepped, and how many effects are taken from the queue, at once.
const AT_ONCE: usize = 16;

/// How many inputs and effects one driver takes before it leaves the rest to others.
const TURN: usize = 256;

/// How often one call has the store led before it leaves that to the timekeeper.
const LEADS: usize = 4;

thread_local! {
    /// Whether this thread is in a store's [`MessageStore::lead`](crate::store::MessageStore::lead), on whose stack no other one is to begin.
    static LEADS_NOW: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is in a store's [`MessageStore::lead`](crate::store::MessageStore::lead).
pub(super) fn is_leading() -> bool {
    LEADS_NOW.get()
}

impl Edge {
    pub(super) fn post(&self, posted: Posted) {
        match self.inbox.post(posted) {
            Post::Drive => self.drive(),
            Post::Left => {}
            Post::TakeSome => {
                self.take_posted(&mut self.lock(), AT_ONCE);
            }
        }
    }

    /// Takes the end of a batch, together with others whose end is told at once.
    pub(super) fn completed(&self, input: Input, sweep: Sweep) {
        if let Input::Stored { outcome: Err(StoreError::Failed { reason }), .. } = &input {
            // The store's own word of it may come later, and the machine would take this for a refusal, and say of a commit that it
            // is rolled back which the next start finds carried out.
            self.store_failed(reason);
        }
        match sweep {
            Sweep::GoesOn => self.inbox.post_ahead(Posted::Input(input)),
            Sweep::Ends => self.post(Posted::Input(input)),
        }
    }

    /// Performs what is queued, unless somebody else drives, who will come to it.
    pub(super) fn drive_if_free(&self) {
        if self.inbox.begin() {
            self.drive();
        }
    }

    /// Takes what is posted and performs what comes of it, until nothing is left or the turn is over, and has the store write
    /// what it was given. Called by the driver.
    fn drive(&self) {
        // Counted before it drives no more, so that the store is not closed in between.
        let _leading = Leading::begin(self);
        if let Err(panic) = caught(|| self.take_turn()) {
            self.inbox.end();
            self.failed_within(&mut self.lock(), &panic);
        }
        self.lead();
    }

    fn take_turn(&self) {
        let mut taken = Vec::new();
        let mut count = 0;
        loop {
            let mut state = self.lock();
            if count >= TURN {
                self.inbox.end();
                self.bell.notify_one();
                return;
            }
            count += self.take_posted(&mut state, AT_ONCE);
            let effects = state.queued.len().min(AT_ONCE);
            taken.extend(state.queued.drain(..effects));
            if taken.is_empty() && self.inbox.end_if_empty() {
                return;
            }
            drop(state);
            count += taken.len();
            let has_submitted = taken.iter().any(|work| matches!(work, Work::Store(_)));
            taken.drain(..).for_each(|work| self.perform_caught(work));
            if has_submitted {
                self.has_submitted.store(true, Ordering::Release);
            }
        }
    }

    /// Has the store write what others have left it.
    pub(super) fn lead_for_others(&self) {
        if self.has_submitted.load(Ordering::Acquire) {
            let _leading = Leading::begin(self);
            self.lead();
        }
    }

    /// Lets the store write what it was given, on this thread if it likes; unless this is within such a call, on whose stack
    /// no other one is to begin: it looks again.
    fn lead(&self) {
        if LEADS_NOW.get() {
            if self.has_submitted.load(Ordering::Acquire) {
                // The call below on this stack may be another broker's.
                self.bell.notify_one();
            }
            return;
        }
        for _ in 0..LEADS {
            if !self.has_submitted.swap(false, Ordering::AcqRel) {
                return;
            }
            LEADS_NOW.set(true);
            let led = caught(|| self.store.lead());
            LEADS_NOW.set(false);
            if let Err(panic) = led {
                self.store_panicked(&panic);
            }
        }
        self.bell.notify_one();
    }

    /// Steps the machine with what is posted, up to `most`, and says how much that was.
    fn take_posted(&self, state: &mut State, most: usize) -> usize {
        let mut posted = std::mem::take(&mut state.taken);
        self.inbox.take(most, &mut posted);
        let count = posted.len();
        let mut inputs = Vec::with_capacity(count);
        for posted in posted.drain(..) {
            if matches!(posted, Posted::Vanished(_)) && !inputs.is_empty() {
                // The outcomes of what came before it are told.
                self.step(state, std::mem::take(&mut inputs));
            }
            inputs.extend(state.input(posted));
        }
        state.taken = posted;
        if !inputs.is_empty() {
            self.step(state, inputs);
        }
        count
    }

    /// Steps the machine with all that is posted by now.
    pub(super) fn take_all_posted(&self, state: &mut State) {
        let mut left = self.inbox.len();
        while left > 0 {
            let taken = self.take_posted(state, left.min(AT_ONCE));
            left = if taken == 0 { 0 } else { left.saturating_sub(taken) };
        }
    }

    /// Steps the machine and queues what comes of it.
    pub(super) fn step(&self, state: &mut State, inputs: impl IntoIterator<Item = Input>) {
        if state.stopped.is_some() {
            return;
        }
        let now = self.clock.now();
        match caught(|| state.machine.step_all(now, inputs)) {
            Ok(mut effects) => {
                for note in std::mem::take(&mut effects.attempts) {
                    self.note_attempt(&note);
                }
                state.queue(effects);
            }
            Err(panic) => self.failed_within(state, &panic),
        }
        if state.wake_at.is_some_and(|wake_at| state.armed_for.is_none_or(|armed_for| wake_at < armed_for)) {
            // Not to ring twice for the same moment; the timekeeper notes what it sleeps for.
            state.armed_for = state.wake_at;
            self.bell.notify_one();
        }
    }

    /// The broker has a bug, and stops.
    fn failed_within(&self, state: &mut State, panic: &str) {
        tracing::error!(
            broker = self.name,
            panic,
            "the broker failed within itself and stops; this is a bug in it"
        );
        self.fail(state, format!("it failed within itself, which is a bug in it: {panic}"));
    }

    pub(super) fn store_panicked(&self, panic: &str) {
        tracing::error!(broker = self.name, panic, "the store of the broker panicked; this is a bug in it");
    }
}

/// A thread that has the store led, or is about to.
struct Leading<'a>(&'a Edge);

impl<'a> Leading<'a> {
    fn begin(edge: &'a Edge) -> Self {
        edge.leaders.fetch_add(1, Ordering::AcqRel);
        Self(edge)
    }
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        let is_last = self.0.leaders.fetch_sub(1, Ordering::AcqRel) == 1;
        if is_last && self.0.lock().stopped.is_some() {
            self.0.performed.notify_all();
            self.0.bell.notify_one();
        }
    }
}
