//! What was submitted and waits to be written.

use std::fmt;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::encoded::Encoded;
use super::status::lock;
use crate::store::{Completion, Safety, StoreError, StoreTransaction};

/// How long what nobody waits for may be unwritten, or written and not synced.
pub(crate) const LINGER: Duration = Duration::from_millis(100);

/// Bytes of what nobody waits for that are written without waiting for more.
const STAGED: usize = 256 << 10;

/// A sync that lately takes no longer costs less than to wake another thread for it and to be woken again.
const QUICK: Duration = Duration::from_micros(250);

/// Bytes that are written by whoever submits them, if it syncs itself.
const LED: usize = 64 << 10;

/// What waits to be written, and the writer that waits for it.
///
/// There are two lanes. What stands in line is written in the order of its submission by one who leads at a time: the
/// writer's thread or, where that is cheaper, the thread that submitted it. What has the express lane, acknowledgements
/// outside of transactions, is written as soon as whoever submits it has no lock any more, also while a sync runs.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    line: Batch,
    express: Batch,
    express_is_awaited: bool,
    /// Whether somebody waits for what is in line.
    urgent: bool,
    staged: usize,
    staged_since: Option<Instant>,
    /// Since when there is something that is written and not being synced.
    unsynced_since: Option<Instant>,
    /// Whether somebody writes what was in line, or syncs.
    is_led: bool,
    /// Whether syncs have lately been quick, and each for one who waited alone.
    may_lead: bool,
    writer: Writer,
    ending: Option<Ending>,
}

/// What the writer's thread does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Writer {
    #[default]
    Works,
    /// It looks again by itself, soon enough for a sync that becomes due.
    Dozes,
    /// It has to be woken.
    Sleeps,
}

/// What is written at once.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) parts: Vec<Encoded>,
    /// Those who wait: the next of `parts` belongs to the next one that is not refused already.
    pub(crate) waiting: Vec<Waiting>,
    /// Whether one of them is.
    pub(crate) has_refused: bool,
}

/// Who waits for the end of a part.
pub(crate) struct Waiting {
    pub(crate) safety: Safety,
    pub(crate) completion: Completion,
    pub(crate) refused: Option<Box<Refused>>,
}

/// What could not be encoded; it has its turn all the same, for the order and for its transactions.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) error: StoreError,
    pub(crate) transactions: Vec<StoreTransaction>,
}

/// How the writer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With all that waits.
    InOrder,
    /// At once.
    Crash,
}

/// What the writer does next.
#[derive(Debug)]
pub(crate) enum Turn {
    Write(Batch),
    Sync,
    /// Nothing comes behind what waits now.
    EndInOrder,
    End,
}

impl Pending {
    /// Puts it behind what is in line. Gives it back when nothing is taken any more.
    pub(crate) fn push(&self, waiting: Waiting, part: Option<Encoded>) -> Result<(), Waiting> {
        let mut state = lock(&self.state);
        if state.ending.is_some() {
            return Err(waiting);
        }
        if waiting.safety == Safety::Staged && waiting.refused.is_none() {
            state.staged += part.as_ref().map_or(0, Encoded::len);
            if state.staged_since.is_none() {
                state.staged_since = Some(Instant::now());
            }
        } else {
            state.urgent = true;
        }
        state.line.push(waiting, part);
        Ok(())
    }

    /// Puts it in the express lane. Gives it back when nothing is taken any more.
    pub(crate) fn push_express(
        &self,
        waiting: Waiting,
        part: Encoded,
        is_awaited: bool,
    ) -> Result<(), Waiting> {
        let mut state = lock(&self.state);
        if state.ending.is_some() {
            return Err(waiting);
        }
        state.express.push(waiting, Some(part));
        state.express_is_awaited |= is_awaited;
        Ok(())
    }

    /// Whether there is something in the express lane.
    pub(crate) fn has_express(&self) -> bool {
        !lock(&self.state).express.waiting.is_empty()
    }

    /// Whether what is in the express lane is to be written now. What nobody waits for is left to whoever leads, who comes
    /// to it when the sync that runs is complete.
    pub(crate) fn is_express_due(&self) -> bool {
        let state = lock(&self.state);
        !state.express.waiting.is_empty() && (state.express_is_awaited || !state.is_led)
    }

    /// All that is in the express lane; `None` when there is nothing.
    pub(crate) fn take_express(&self) -> Option<Batch> {
        let mut state = lock(&self.state);
        state.express_is_awaited = false;
        (!state.express.waiting.is_empty()).then(|| std::mem::take(&mut state.express))
    }

    /// Puts what was taken from the express lane, and what came there since, in front of what is in line, as it needs more
    /// than a plain write. Called before another can write.
    pub(crate) fn put_in_line(&self, mut batch: Batch) {
        let mut state = lock(&self.state);
        state.urgent = true;
        batch.append(std::mem::take(&mut state.express));
        state.put_in_front(batch);
    }

    /// Puts what found no room in front of what is in line, to be tried with whatever is written next, at once or by
    /// [`Pending::try_again`]. Gives it back at the end, when neither comes.
    pub(crate) fn put_off(&self, batch: Batch, at_once: bool) -> Option<Batch> {
        let mut state = lock(&self.state);
        if state.ending.is_some() && !at_once {
            return Some(batch);
        }
        state.urgent |= at_once;
        state.put_in_front(batch);
        None
    }

    /// Has what is in line written, if there may be room now.
    pub(crate) fn try_again(&self) {
        let mut state = lock(&self.state);
        state.urgent |= !state.line.waiting.is_empty();
        if state.urgent && !state.is_led && state.writer != Writer::Works {
            state.writer = Writer::Works;
            drop(state);
            self.wake.notify_one();
        }
    }

    /// What the calling thread is to write, and to sync, itself. Otherwise the writer is woken if it has something to do.
    pub(crate) fn lead(&self) -> Option<Batch> {
        let mut state = lock(&self.state);
        let has_staged = state.staged_since.is_some();
        if state.is_led || state.ending.is_some() || !(state.is_due() || has_staged) {
            return None;
        }
        if state.is_due() && state.may_lead && state.line.is_small() {
            state.is_led = true;
            return Some(state.take(Batch::default()));
        }
        // A writer that sleeps has to know of what is staged too, so that it wakes in time.
        if state.is_due() && state.writer != Writer::Works || state.writer == Writer::Sleeps {
            state.writer = Writer::Works;
            drop(state);
            self.wake.notify_one();
        }
        None
    }

    /// The end of what [`Pending::lead`] or [`Pending::next`] gave; `lone` says that one waited for it alone, and how long
    /// the sync took. The writer is woken when more waits already.
    pub(crate) fn led(&self, lone: Option<Duration>) {
        let mut state = lock(&self.state);
        state.is_led = false;
        let is_due = state.is_due();
        if let Some(took) = lone {
            state.may_lead = took < QUICK && !is_due;
        } else if is_due {
            state.may_lead = false;
        }
        if (is_due || state.ending.is_some()) && state.writer != Writer::Works {
            state.writer = Writer::Works;
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Something was written that is not synced yet.
    pub(crate) fn wrote(&self) {
        let mut state = lock(&self.state);
        if state.unsynced_since.is_none() {
            state.unsynced_since = Some(Instant::now());
            if state.writer == Writer::Sleeps {
                state.writer = Writer::Works;
                drop(state);
                self.wake.notify_one();
            }
        }
    }

    /// All that was written so far is about to be synced.
    pub(crate) fn syncs(&self) {
        lock(&self.state).unsynced_since = None;
    }

    /// Whether there is something that is written and not synced.
    pub(crate) fn is_unsynced(&self) -> bool {
        lock(&self.state).unsynced_since.is_some()
    }

    /// Whether the writer would not have to wait now.
    pub(crate) fn is_due(&self) -> bool {
        lock(&self.state).is_due()
    }

    /// Takes all that is in line; `empty` is put in its place, for its memory.
    pub(crate) fn take(&self, empty: Batch) -> Batch {
        lock(&self.state).take(empty)
    }

    /// Waits for something to write, for the moment at which a sync is due, or for the end.
    pub(crate) fn next(&self, empty: Batch) -> Turn {
        let mut state = lock(&self.state);
        loop {
            match state.ending {
                Some(Ending::InOrder) if !state.is_led => return Turn::EndInOrder,
                Some(Ending::Crash) if !state.is_led => return Turn::End,
                _ => {}
            }
            let now = Instant::now();
            let staged_due = state.staged_since.map(|since| since + LINGER);
            let sync_due = state.unsynced_since.map(|since| since + LINGER);
            if !state.is_led {
                if state.is_due() || staged_due.is_some_and(|due| due <= now) {
                    state.is_led = true;
                    return Turn::Write(state.take(empty));
                }
                if sync_due.is_some_and(|due| due <= now) {
                    state.is_led = true;
                    return Turn::Sync;
                }
            }
            let due = [staged_due, sync_due].into_iter().flatten().min();
            state = match due {
                Some(due) => {
                    state.writer = Writer::Dozes;
                    // While another leads it is woken by that one's end; a due time that is past must not keep it awake.
                    let rest = due.saturating_duration_since(now).max(Duration::from_millis(1));
                    let woken = self.wake.wait_timeout(state, rest);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    state.writer = Writer::Sleeps;
                    self.wake.wait(state).unwrap_or_else(PoisonError::into_inner)
                }
            };
            state.writer = Writer::Works;
        }
    }

    /// Takes nothing more from now on.
    pub(crate) fn end(&self, how: Ending) {
        lock(&self.state).ending.get_or_insert(how);
        self.wake.notify_all();
    }
}

impl State {
    fn is_due(&self) -> bool {
        self.urgent || self.staged >= STAGED
    }

    fn put_in_front(&mut self, mut batch: Batch) {
        batch.append(std::mem::take(&mut self.line));
        self.line = batch;
    }

    fn take(&mut self, empty: Batch) -> Batch {
        self.urgent = false;
        self.staged = 0;
        self.staged_since = None;
        std::mem::replace(&mut self.line, empty)
    }
}

impl Batch {
    fn push(&mut self, waiting: Waiting, part: Option<Encoded>) {
        self.has_refused |= waiting.refused.is_some();
        self.parts.extend(part);
        self.waiting.push(waiting);
    }

    fn append(&mut self, behind: Self) {
        self.has_refused |= behind.has_refused;
        self.parts.extend(behind.parts);
        self.waiting.extend(behind.waiting);
    }

    /// Whether it holds nobody up for long who writes it.
    fn is_small(&self) -> bool {
        self.parts.iter().map(Encoded::len).sum::<usize>() <= LED
    }

    /// Empties it; its memory stays.
    pub(crate) fn clear(&mut self) {
        self.parts.clear();
        self.waiting.clear();
        self.has_refused = false;
        // A burst does not keep its memory for ever.
        self.parts.shrink_to(1_024);
        self.waiting.shrink_to(1_024);
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting")
            .field("safety", &self.safety)
            .field("refused", &self.refused)
            .finish_non_exhaustive()
    }
}
