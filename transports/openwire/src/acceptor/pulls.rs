//! Consumers without a window: what was granted to them, and when they are told that there is nothing.

use std::collections::{BTreeSet, HashMap, VecDeque};

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

/// How many grants and drains of one consumer may wait for a drain. The client has one or two.
const MOST_LATER: usize = 1_024;

/// What a peer of Corriere has granted one of its consumers. The provider is granted no more than a slice at once, and the
/// next one when what came by the last is written: so a peer that grants much and reads nothing holds little.
#[derive(Debug, Default)]
pub(super) struct Grants {
    /// Granted by the peer and not handed on.
    waiting: u64,
    /// Handed on and not used by a delivery.
    open: u32,
    /// Delivered and not written.
    unwritten: u32,
    drain: Drain,
    /// Whether credit came back while the provider drained: whether it was taken back with the rest is not known.
    has_returned: bool,
    /// What the peer asked for behind a drain that is not complete.
    later: VecDeque<Request>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Drain {
    #[default]
    None,
    /// All that was granted before has to be handed on first, or to find nothing.
    Asked,
    /// The provider drains the present slice.
    UnderWay,
    /// The provider has nothing more. The peer is told when all that came is written, as the provider gives another message
    /// for one that cannot be.
    Writing,
}

/// What is to be done for a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The provider is to be asked for something.
    Ask(Request),
    /// The peer is to be told that its drain is complete.
    Drained,
}

/// What is to be asked of the provider, or what the peer asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Grant(u32),
    Drain,
}

impl Grants {
    /// Takes what the peer asks; false when it has too much under way already.
    pub(super) fn ask(&mut self, request: Request) -> bool {
        if self.drain == Drain::None {
            self.take(request);
            return true;
        }
        if let (Some(Request::Grant(granted)), Request::Grant(more)) = (self.later.back_mut(), request) {
            *granted = granted.saturating_add(more);
            return true;
        }
        let has_room = self.later.len() < MOST_LATER;
        if has_room {
            self.later.push_back(request);
        }
        has_room
    }

    fn take(&mut self, request: Request) {
        match request {
            Request::Grant(credit) => self.waiting = self.waiting.saturating_add(u64::from(credit)),
            Request::Drain => self.drain = Drain::Asked,
        }
    }

    /// A message came.
    pub(super) fn deliver(&mut self) {
        self.open = self.open.saturating_sub(1);
        self.unwritten += 1;
    }

    /// A message that came cannot be written, and the provider gives another one for it, for which it has to be drained again.
    pub(super) fn undelivered(&mut self) {
        self.unwritten = self.unwritten.saturating_sub(1);
        self.open += 1;
        match self.drain {
            Drain::None | Drain::Asked => {}
            Drain::UnderWay => self.has_returned = true,
            Drain::Writing => self.drain = Drain::Asked,
        }
    }

    /// A message is written; whether something is to be done now.
    pub(super) fn written(&mut self, slice: u32) -> bool {
        self.unwritten = self.unwritten.saturating_sub(1);
        match self.drain {
            Drain::None | Drain::Asked => self.waiting > 0 && self.room(slice) > 0,
            Drain::UnderWay => false,
            Drain::Writing => self.unwritten == 0,
        }
    }

    /// What is to be done now, to be called until there is nothing, after each change.
    pub(super) fn next(&mut self, slice: u32) -> Option<Due> {
        match self.drain {
            Drain::None | Drain::Asked => self.next_request(slice).map(Due::Ask),
            Drain::UnderWay => None,
            Drain::Writing => (self.unwritten == 0).then(|| {
                self.end_drain();
                Due::Drained
            }),
        }
    }

    fn next_request(&mut self, slice: u32) -> Option<Request> {
        let credit = u32::try_from(self.waiting).unwrap_or(u32::MAX).min(self.room(slice));
        if credit > 0 {
            self.waiting -= u64::from(credit);
            self.open += credit;
            return Some(Request::Grant(credit));
        }
        let may_drain = self.drain == Drain::Asked && (self.waiting == 0 || self.open > 0);
        may_drain.then(|| {
            self.drain = Drain::UnderWay;
            Request::Drain
        })
    }

    /// The provider has drained a slice. What is left of it is taken back, and with it what was not handed on.
    pub(super) fn drained(&mut self) {
        if std::mem::take(&mut self.has_returned) {
            self.drain = Drain::Asked;
            return;
        }
        let found_nothing_more = std::mem::take(&mut self.open) > 0;
        if found_nothing_more {
            self.waiting = 0;
        }
        self.drain = if self.waiting > 0 { Drain::Asked } else { Drain::Writing };
    }

    fn end_drain(&mut self) {
        self.drain = Drain::None;
        while self.drain == Drain::None
            && let Some(request) = self.later.pop_front()
        {
            self.take(request);
        }
    }

    /// How much may be handed on: nothing before half of a slice is written, so that it is not one message each time.
    fn room(&self, slice: u32) -> u32 {
        let used = self.open.saturating_add(self.unwritten);
        if used <= slice / 2 { slice - used } else { 0 }
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

    const DRAIN: Due = Due::Ask(Request::Drain);

    fn grant(credit: u32) -> Due {
        Due::Ask(Request::Grant(credit))
    }

    /// All that is to be done now.
    fn due(grants: &mut Grants, slice: u32) -> Vec<Due> {
        std::iter::from_fn(|| grants.next(slice)).collect()
    }

    #[test]
    fn a_large_grant_is_handed_on_as_what_came_by_it_is_written() {
        let mut grants = Grants::default();
        assert!(grants.ask(Request::Grant(u32::MAX)) && grants.ask(Request::Grant(u32::MAX)));
        assert_eq!(due(&mut grants, 4), [grant(4)]);
        (0..4).for_each(|_| grants.deliver());
        assert_eq!(due(&mut grants, 4), []);
        assert!(!grants.written(4) && due(&mut grants, 4).is_empty());
        assert!(grants.written(4), "half of it is written");
        assert_eq!(due(&mut grants, 4), [grant(2)]);
        // With more consumers the slices are smaller.
        (0..4).for_each(|_| assert!(!grants.written(1)));
        assert_eq!(due(&mut grants, 1), []);
    }

    #[test]
    fn a_drain_goes_through_all_slices_before_it_finds_nothing() {
        let mut grants = Grants::default();
        assert!(grants.ask(Request::Grant(6)) && grants.ask(Request::Drain));
        assert_eq!(due(&mut grants, 4), [grant(4), DRAIN]);
        // What comes behind it waits for it.
        assert!(grants.ask(Request::Grant(1)) && grants.ask(Request::Grant(1)) && grants.ask(Request::Drain));
        assert_eq!(due(&mut grants, 4), []);
        (0..4).for_each(|_| grants.deliver());
        grants.drained();
        assert_eq!(due(&mut grants, 4), [], "nothing of it is written");
        (0..4).for_each(|_| _ = grants.written(4));
        assert_eq!(due(&mut grants, 4), [grant(2), DRAIN]);
        grants.deliver();
        grants.drained();
        assert_eq!(due(&mut grants, 4), [], "the fifth is not written");
        assert!(grants.written(4));
        assert_eq!(due(&mut grants, 4), [Due::Drained, grant(2), DRAIN], "there was no sixth message");
        grants.drained();
        assert_eq!(due(&mut grants, 4), [Due::Drained]);
    }

    #[test]
    fn a_drain_of_more_than_there_is_ends_with_its_first_slice() {
        let mut grants = Grants::default();
        assert!(grants.ask(Request::Grant(u32::MAX)) && grants.ask(Request::Drain));
        assert_eq!(due(&mut grants, 4), [grant(4), DRAIN]);
        grants.deliver();
        grants.drained();
        assert!(grants.written(4));
        assert_eq!(
            due(&mut grants, 4),
            [Due::Drained],
            "its credit is taken back, also what was not handed on"
        );
    }

    #[test]
    fn a_drain_whose_message_cannot_be_written_is_made_again_before_the_peer_is_told() {
        // The message turns out to be unwritable after the provider has drained, and before.
        for is_known_before in [false, true] {
            let mut grants = Grants::default();
            assert!(grants.ask(Request::Grant(1)) && grants.ask(Request::Drain));
            assert_eq!(due(&mut grants, 4), [grant(1), DRAIN]);
            grants.deliver();
            if is_known_before {
                grants.undelivered();
                assert_eq!(due(&mut grants, 4), []);
                grants.drained();
            } else {
                grants.drained();
                assert_eq!(due(&mut grants, 4), [], "nobody knows whether it can be written");
                grants.undelivered();
            }
            // Another one comes for it.
            assert_eq!(due(&mut grants, 4), [DRAIN]);
            grants.deliver();
            grants.drained();
            assert_eq!(due(&mut grants, 4), []);
            assert!(grants.written(4));
            assert_eq!(due(&mut grants, 4), [Due::Drained]);
        }
    }

    #[test]
    fn a_drain_whose_only_message_cannot_be_written_finds_nothing_and_leaves_no_credit() {
        let mut grants = Grants::default();
        assert!(grants.ask(Request::Grant(2)) && grants.ask(Request::Drain));
        assert_eq!(due(&mut grants, 4), [grant(2), DRAIN]);
        grants.deliver();
        grants.drained();
        grants.undelivered();
        assert_eq!(due(&mut grants, 4), [DRAIN]);
        grants.drained();
        assert_eq!(due(&mut grants, 4), [Due::Drained]);
        assert_eq!((grants.open, grants.waiting, grants.unwritten), (0, 0, 0));
    }

    #[test]
    fn more_drains_than_any_client_has_are_refused() {
        let mut grants = Grants::default();
        assert!((0..=MOST_LATER).all(|_| grants.ask(Request::Drain)));
        assert!(!grants.ask(Request::Drain));
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
