//! A consumer without a window: what it may be sent is asked of the peer one message at a time.
//!
//! A `MessagePull` sets the credit at the peer to one, whatever it was. So there is one that waits at a time, and the next
//! follows the message that it brought. A drain first hears what the last pull has come to, as a message may be on its way, and
//! then pulls without waiting until the peer says that there is nothing, which takes back the credit there. Every pull asks
//! for an answer: the peer sends what it has before it answers.

use std::collections::VecDeque;

use corriere_core::provider::Confirmer;

/// The explicit credit of a consumer.
#[derive(Debug, Default)]
pub(super) struct Pull {
    /// Granted, and not used by a delivery.
    credit: u32,
    /// Whether the peer may send one more.
    is_asked: bool,
    /// Whether the last pull is not answered yet.
    is_unanswered: bool,
    /// Whether that one found nothing.
    found_nothing: bool,
    drain: Option<Confirmer>,
    /// What was asked of us while a drain was under way.
    later: VecDeque<Step>,
}

#[derive(Debug)]
enum Step {
    Grant(u32),
    Drain(Confirmer),
}

/// A pull to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// For a message, whenever there is one.
    Wait,
    /// For a message that is there now.
    NoWait,
}

impl Request {
    /// `MessagePull.timeout`.
    pub(super) fn timeout(self) -> i64 {
        match self {
            Self::Wait => 0,
            Self::NoWait => -1,
        }
    }
}

impl Pull {
    pub(super) fn grant(&mut self, credit: u32) {
        if self.drain.is_some() {
            self.later.push_back(Step::Grant(credit));
        } else {
            self.credit = self.credit.saturating_add(credit);
        }
    }

    pub(super) fn drain(&mut self, confirmer: Confirmer) {
        if self.drain.is_some() {
            self.later.push_back(Step::Drain(confirmer));
        } else {
            self.drain = Some(confirmer);
        }
    }

    pub(super) fn has_credit(&self) -> bool {
        self.credit > 0
    }

    /// A message goes to the consumer.
    pub(super) fn use_credit(&mut self) {
        self.credit = self.credit.saturating_sub(1);
    }

    /// A message came.
    pub(super) fn arrived(&mut self) {
        self.is_asked = false;
    }

    /// The peer said that it has nothing.
    pub(super) fn found_nothing(&mut self) {
        self.is_asked = false;
        self.found_nothing = true;
    }

    /// The last pull was answered.
    pub(super) fn answered(&mut self) {
        self.is_unanswered = false;
    }

    /// What is to be sent to the peer now, to be called after each change; drains that are over go to `drained`. While a message
    /// waits here that all others wait for, none is asked for.
    pub(super) fn next_request(&mut self, is_held_up: bool, drained: &mut Vec<Confirmer>) -> Option<Request> {
        while !self.is_unanswered && self.drain.is_some() {
            if self.credit > 0 && !self.found_nothing && !is_held_up {
                return Some(self.request(Request::NoWait));
            }
            self.credit = 0;
            self.is_asked = false;
            drained.extend(self.drain.take());
            while self.drain.is_none()
                && let Some(step) = self.later.pop_front()
            {
                match step {
                    Step::Grant(credit) => self.grant(credit),
                    Step::Drain(confirmer) => self.drain(confirmer),
                }
            }
            self.found_nothing = false;
        }
        let may_ask = self.drain.is_none() && !self.is_asked && !self.is_unanswered && !is_held_up;
        (may_ask && self.credit > 0).then(|| self.request(Request::Wait))
    }

    /// All drains that nothing will come of any more.
    pub(super) fn into_drains(self) -> impl Iterator<Item = Confirmer> {
        let later = self.later.into_iter().filter_map(|step| match step {
            Step::Grant(_) => None,
            Step::Drain(confirmer) => Some(confirmer),
        });
        self.drain.into_iter().chain(later)
    }

    fn request(&mut self, request: Request) -> Request {
        self.is_asked = true;
        self.is_unanswered = true;
        self.found_nothing = false;
        request
    }
}

#[cfg(test)]
mod tests {
    use corriere_core::provider::Receipt;

    use super::*;

    fn next(pull: &mut Pull) -> (Option<Request>, usize) {
        let mut drained = Vec::new();
        let request = pull.next_request(false, &mut drained);
        (request, drained.len())
    }

    fn drain(pull: &mut Pull) {
        let (confirmer, receipt) = Receipt::pending();
        drop(receipt);
        pull.drain(confirmer);
    }

    fn arrive(pull: &mut Pull) {
        pull.arrived();
        pull.use_credit();
    }

    #[test]
    fn one_message_at_a_time_is_asked_for() {
        let mut pull = Pull::default();
        assert_eq!(next(&mut pull), (None, 0));
        pull.grant(2);
        assert_eq!(next(&mut pull), (Some(Request::Wait), 0));
        assert_eq!(next(&mut pull), (None, 0));
        pull.answered();
        assert_eq!(next(&mut pull), (None, 0), "the peer still has the credit");
        arrive(&mut pull);
        assert_eq!(next(&mut pull), (Some(Request::Wait), 0));
    }

    #[test]
    fn a_drain_hears_the_last_pull_out_and_asks_no_more_than_it_must() {
        let mut pull = Pull::default();
        pull.grant(1);
        assert_eq!(next(&mut pull).0, Some(Request::Wait));
        drain(&mut pull);
        assert_eq!(next(&mut pull), (None, 0));
        arrive(&mut pull);
        pull.answered();
        assert_eq!(next(&mut pull), (None, 1), "it brought what was granted, and nothing else is fetched");

        pull.grant(1);
        assert_eq!(next(&mut pull).0, Some(Request::Wait));
        pull.answered();
        drain(&mut pull);
        assert_eq!(next(&mut pull), (Some(Request::NoWait), 0));
        pull.found_nothing();
        assert_eq!(next(&mut pull), (None, 0));
        pull.answered();
        assert_eq!(next(&mut pull), (None, 1));
        assert!(!pull.has_credit());
    }

    #[test]
    fn a_drain_of_several_goes_on_until_there_is_nothing() {
        let mut pull = Pull::default();
        pull.grant(3);
        assert_eq!(next(&mut pull).0, Some(Request::Wait));
        arrive(&mut pull);
        pull.answered();
        drain(&mut pull);
        assert_eq!(next(&mut pull).0, Some(Request::NoWait));
        arrive(&mut pull);
        pull.answered();
        assert_eq!(next(&mut pull).0, Some(Request::NoWait));
        pull.found_nothing();
        pull.answered();
        assert_eq!(next(&mut pull), (None, 1));
    }

    #[test]
    fn nothing_is_asked_for_while_a_message_holds_up_all_others() {
        let mut pull = Pull::default();
        let mut drained = Vec::new();
        pull.grant(1);
        assert_eq!(pull.next_request(true, &mut drained), None);
        drain(&mut pull);
        assert_eq!(pull.next_request(true, &mut drained), None);
        assert_eq!((drained.len(), pull.has_credit()), (1, false));
    }

    #[test]
    fn what_is_granted_during_a_drain_is_asked_for_after_it() {
        let mut pull = Pull::default();
        pull.grant(1);
        assert_eq!(next(&mut pull).0, Some(Request::Wait));
        drain(&mut pull);
        pull.grant(1);
        drain(&mut pull);
        pull.answered();
        assert_eq!(next(&mut pull).0, Some(Request::NoWait));
        pull.found_nothing();
        pull.answered();
        assert_eq!(next(&mut pull), (Some(Request::NoWait), 1));
        pull.found_nothing();
        pull.answered();
        assert_eq!(next(&mut pull), (None, 1));
    }
}
