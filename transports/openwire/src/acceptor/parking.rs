//! How much one peer may have under way before nothing more is read from it.
//!
//! A send that waits in the broker, a command that is not answered, an answer that is not written: each holds memory of
//! ours for as long as the peer, or the broker, takes. So each is counted, and beyond its bound the socket is not read.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// What a connection may have under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of sends for whose answer the peer does not wait.
    pub parked: usize,
    /// Bytes of commands for whose answer it does wait.
    pub unanswered: usize,
    /// How many answers, and how much word of temporary destinations, may wait to be written.
    pub unwritten: usize,
    /// How many messages may be on their way to its consumers without a window, whatever credit they grant. Each of them
    /// may have one.
    pub pulled: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { parked: 1024 * 1024, unanswered: 16 * 1024 * 1024, unwritten: 4_096, pulled: 512 }
    }
}

/// What is under way of one connection, but for what waits to be written.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    parked: usize,
    unanswered: usize,
}

/// What one command holds until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// A send for whose answer nobody waits.
    Parked(usize),
    /// Any other command.
    Unanswered(usize),
}

impl UnderWay {
    pub(super) fn hold(&mut self, held: Held) {
        match held {
            Held::Parked(bytes) => self.parked += bytes,
            Held::Unanswered(bytes) => self.unanswered += bytes,
        }
    }

    pub(super) fn release(&mut self, held: Held) {
        match held {
            Held::Parked(bytes) => self.parked -= bytes,
            Held::Unanswered(bytes) => self.unanswered -= bytes,
        }
    }

    /// All that is held, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.parked + self.unanswered
    }

    /// Whether the peer has sent more, without waiting, than it may have waiting.
    pub(super) fn is_parked_full(&self, bounds: Bounds) -> bool {
        self.parked > bounds.parked
    }

    /// Whether more may be read.
    pub(super) fn has_room(&self, bounds: Bounds) -> bool {
        !self.is_parked_full(bounds) && self.unanswered <= bounds.unanswered
    }
}

/// What waits to be written, counted by both who asks for it and who writes.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    count: AtomicUsize,
    written: Notify,
}

impl Unwritten {
    pub(super) fn add(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn remove(&self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.written.notify_one();
    }

    pub(super) fn has_room(&self, bounds: Bounds) -> bool {
        self.count.load(Ordering::Relaxed) <= bounds.unwritten
    }

    /// Whether more waits than any peer that reads would have waiting.
    pub(super) fn is_beyond_all(&self) -> bool {
        const BEYOND: usize = 65_536;
        self.count.load(Ordering::Relaxed) > BEYOND
    }

    /// Ends when something was written since the last call.
    pub(super) async fn changed(&self) {
        self.written.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_passed_by_one_command_and_not_by_more() {
        let bounds = Bounds { parked: 100, unanswered: 1_000, unwritten: 1, pulled: 1 };
        let mut under_way = UnderWay::default();
        under_way.hold(Held::Parked(100));
        assert!(under_way.has_room(bounds));
        under_way.hold(Held::Parked(1));
        assert!(!under_way.has_room(bounds) && under_way.is_parked_full(bounds));
        under_way.release(Held::Parked(100));
        under_way.hold(Held::Unanswered(2_000));
        assert!(!under_way.has_room(bounds) && !under_way.is_parked_full(bounds));
        under_way.release(Held::Unanswered(2_000));
        assert!(under_way.has_room(bounds));
    }
}
