//! The one index of everything that waits for time.

use std::collections::BTreeSet;

use corriere_core::Timestamp;

use super::queue::{Position, QueueKey};

/// What happens when its moment has come. What is due at the same moment happens in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A parked send has waited long enough.
    SendDeadline(u64),
    /// A message is past its expiration.
    Expiry(QueueKey, Position),
    /// The redelivery delay of a message is over.
    Redelivery(QueueKey, Position),
    /// Dead letters that there was no room for are tried again.
    MoveAgain,
    /// More is cleared away of what is left of queues that are gone.
    ClearMore,
}

/// All timers, earliest first.
#[derive(Debug, Default)]
pub(super) struct TimeIndex(BTreeSet<(Timestamp, Timer)>);

impl TimeIndex {
    pub(super) fn insert(&mut self, at: Timestamp, timer: Timer) {
        self.0.insert((at, timer));
    }

    pub(super) fn remove(&mut self, at: Timestamp, timer: Timer) {
        self.0.remove(&(at, timer));
    }

    /// The moment of the first timer.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.0.first().map(|(at, _)| *at)
    }

    /// Takes the first timer if its moment has come.
    pub(super) fn pop_due(&mut self, now: Timestamp) -> Option<Timer> {
        if self.next()? > now {
            return None;
        }
        self.0.pop_first().map(|(_, timer)| timer)
    }
}
