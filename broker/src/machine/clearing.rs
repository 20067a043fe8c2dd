//! What is left of a queue that is gone: it is over at once, and its messages leave memory a bounded number at a time.
//!
//! Nobody finds them any more, whoever knows the queue's key or has a timer for one of them. So a subscription with a million
//! messages ends in one short step, and all else goes on while they are cleared away.

use std::collections::VecDeque;
use std::time::Duration;

use super::Machine;
use super::queue::{Queue, QueueKey};
use super::time_index::Timer;
use crate::counts::Counts;

/// How many messages are cleared away in one step, and how long it is before the next one.
const AT_ONCE: usize = 1_024;
const PAUSE: Duration = Duration::from_millis(1);

/// Queues that are gone, the oldest first, each with what it still holds.
#[derive(Debug, Default)]
pub(super) struct Remains {
    queues: VecDeque<(QueueKey, Queue)>,
    is_timed: bool,
}

impl Machine {
    /// Ends a queue with all that is on it, which counts as discarded, and says what its counts were.
    pub(super) fn end_queue(&mut self, key: QueueKey) -> Option<Counts> {
        let queue = self.queues.remove(&key)?;
        let mut counts = queue.counts;
        counts.discard_all();
        self.clear_away(key, queue);
        Some(counts)
    }

    /// Clears away what is on a queue that is gone. What is not much is cleared away at once.
    pub(super) fn clear_away(&mut self, key: QueueKey, queue: Queue) {
        self.remains.queues.push_back((key, queue));
        if !self.remains.is_timed {
            self.clear_some();
        }
    }

    /// Clears away a part of what is left.
    pub(super) fn clear_some(&mut self) {
        self.remains.is_timed = false;
        let mut cleared = 0;
        while let Some((key, queue)) = self.remains.queues.front_mut() {
            let key = *key;
            let Some((position, entry)) = queue.pop() else {
                self.remains.queues.pop_front();
                continue;
            };
            if let Some(expiration) = entry.held.expiration() {
                self.timers.remove(expiration, Timer::Expiry(key, position));
            }
            if entry.not_before > self.now {
                self.timers.remove(entry.not_before, Timer::Redelivery(key, position));
            }
            self.bodies.causes.remove(&(key, position));
            self.memory.release(entry.held);
            cleared += 1;
            if cleared == AT_ONCE {
                self.remains.is_timed = true;
                self.timers.insert(self.now.saturating_add(PAUSE), Timer::ClearMore);
                return;
            }
        }
    }
}
