//! Consumers without a window: what was granted to them, and when they are told that there is nothing.

use std::collections::{BTreeSet, HashMap};

use corriere_core::SubscriptionId;
use tokio::time::{Instant, sleep_until};

/// The pulls of one consumer that no message has come for.
#[derive(Debug, Default)]
pub(super) struct Pulls {
    /// Credit at the broker that nothing takes back.
    granted: u32,
    /// Credit that a drain is taking back.
    draining: u32,
    /// Whether the time of the latest pull is over.
    is_over: bool,
}

impl Pulls {
    /// Takes a pull; whether the broker has to be granted credit for it. A client that gave up on one without a timeout
    /// and pulls again has it still.
    pub(super) fn begin(&mut self) -> bool {
        let is_new = self.granted == 0;
        self.granted = self.granted.max(1);
        self.is_over = false;
        is_new
    }

    /// The time of the latest pull is over; whether it is still waiting, and its credit is to be drained.
    pub(super) fn expire(&mut self) -> bool {
        let is_waiting = self.granted > 0;
        self.draining += self.granted;
        self.granted = 0;
        self.is_over = true;
        is_waiting
    }

    /// A message came.
    pub(super) fn deliver(&mut self) {
        if self.draining > 0 {
            self.draining -= 1;
        } else {
            self.granted = self.granted.saturating_sub(1);
        }
    }

    /// The message that came cannot be written, and its credit is free again at the broker. Whether it is too late for the next
    /// one, so that the credit is to be drained.
    pub(super) fn undelivered(&mut self) -> bool {
        self.granted += 1;
        self.is_over
    }

    /// The drain is complete; whether nothing came for it.
    pub(super) fn drained(&mut self) -> bool {
        let found_nothing = self.draining > 0;
        self.draining = self.draining.saturating_sub(1);
        found_nothing
    }
}

/// When the time of each consumer's latest pull is over.
#[derive(Debug, Default)]
pub(super) struct PullTimers {
    due: BTreeSet<(Instant, SubscriptionId)>,
    of: HashMap<SubscriptionId, Instant>,
}

impl PullTimers {
    /// Sets the timer of a consumer, or stops it.
    pub(super) fn set(&mut self, subscription: SubscriptionId, at: Option<Instant>) {
        if let Some(earlier) = self.of.remove(&subscription) {
            self.due.remove(&(earlier, subscription));
        }
        if let Some(at) = at {
            self.of.insert(subscription, at);
            self.due.insert((at, subscription));
        }
    }

    /// Whether no timer is set.
    pub(super) fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// Waits for the next timer, and stops it. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<SubscriptionId> {
        let (at, subscription) = *self.due.first()?;
        sleep_until(at).await;
        self.set(subscription, None);
        Some(subscription)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_pull_gets_a_message_or_word_that_there_is_none() {
        let mut pulls = Pulls::default();
        assert!(pulls.begin());
        pulls.deliver();
        assert!(!pulls.expire(), "it has its message");
        assert!(pulls.begin() && pulls.expire() && pulls.drained());
        assert!(pulls.begin() && pulls.expire());
        pulls.deliver();
        assert!(!pulls.drained(), "the message came while it was drained");
    }

    #[test]
    fn a_pull_that_was_given_up_leaves_its_credit_to_the_next_one() {
        let mut pulls = Pulls::default();
        assert!(pulls.begin());
        assert!(!pulls.begin() && pulls.expire());
        // While it is drained, a new one has to be granted its own.
        assert!(pulls.begin());
        pulls.deliver();
        assert!(!pulls.drained());
    }

    #[test]
    fn a_pull_whose_message_cannot_be_written_waits_for_the_next_one_or_its_time() {
        let mut pulls = Pulls::default();
        pulls.begin();
        pulls.deliver();
        assert!(!pulls.undelivered());
        pulls.deliver();
        assert!(pulls.begin(), "it had its message");
        // The message came with the end of its time.
        assert!(pulls.expire());
        pulls.deliver();
        assert!(!pulls.drained());
        assert!(pulls.undelivered() && pulls.expire() && pulls.drained(), "it is told after all");
    }

    #[tokio::test(start_paused = true)]
    async fn each_consumer_has_one_timer_its_latest() {
        let mut timers = PullTimers::default();
        let at = |seconds| Some(Instant::now() + Duration::from_secs(seconds));
        timers.set(SubscriptionId(1), at(1));
        timers.set(SubscriptionId(2), at(2));
        timers.set(SubscriptionId(1), at(3));
        assert_eq!(timers.next().await, Some(SubscriptionId(2)));
        assert_eq!(timers.next().await, Some(SubscriptionId(1)));
        assert!(timers.is_empty());
    }
}
