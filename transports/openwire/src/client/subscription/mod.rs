//! What a subscription has of its peer's messages, and which of them its consumer may have.
//!
//! The peer keeps a list of what it has sent and what is not settled, in the order of sending, and acknowledgements name ranges
//! of that list. Ours has the same order (`held`, by arrival), while the numbers of deliveries rise also for what is delivered
//! again. A message that waits, to be delivered for the first time or again, keeps its place in that order.

mod held;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use corriere_core::id::{SessionId, SubscriptionId};
use corriere_core::provider::{Cause, Confirmer, Dispatch};
use corriere_core::{Message, RedeliveryPolicy};
use tokio::time::Instant;

use self::held::{Failed, Held};
use super::pulling::Pull;
use crate::codec::structures::{ConsumerId, Destination, MessageId};

/// A subscription, or a browser.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) id: SubscriptionId,
    pub(super) consumer: ConsumerId,
    pub(super) destination: Destination,
    pub(super) session: SessionId,
    pub(super) flow: Flow,
    /// Whether the peer sends to it by a window that was asked for.
    pub(super) has_window: bool,
    redelivery: Redelivery,
    /// What the peer has sent and takes for not settled, in its order.
    held: BTreeMap<u64, Held>,
    arrivals: u64,
    /// Of these, what waits for its delivery.
    ready: BTreeSet<u64>,
    /// Of these, what was delivered and is not settled, by the number of the delivery.
    numbers: BTreeMap<u64, u64>,
    last_number: u64,
    /// The number of the last delivery that the application has got.
    handed_over: u64,
    /// How many the application has got that the peer takes for not settled.
    in_hands: usize,
    /// By how much the peer has widened the window.
    extended: usize,
    epoch: u32,
    /// How often a peer that redelivers itself was told that something goes back.
    peer_epoch: u32,
    is_closed: bool,
    /// Whether the peer knows that it is.
    pub(super) is_removed: bool,
}

/// How much may be under way.
#[derive(Debug)]
pub(super) enum Flow {
    /// See [`Credit::Window`](corriere_core::provider::Credit::Window).
    Window { prefetch: u32, extension: Option<u32> },
    /// One at a time.
    Pull(Pull),
    /// A browser, to which the peer sends with a window of its own.
    Browser { credit: u32, is_over: bool, is_told: bool },
    /// A peer of Corriere keeps to the seam itself, and confirms drains in their order.
    AsGranted { drains: VecDeque<Confirmer>, is_browser: bool },
}

/// Who counts and delays what is given back.
#[derive(Debug)]
pub(super) enum Redelivery {
    /// This side, by this policy.
    Here(RedeliveryPolicy),
    /// The peer.
    Peer,
}

/// Messages that are neighbours in the peer's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: MessageId,
    pub(super) last: MessageId,
    pub(super) count: usize,
}

/// What came of messages that were given back.
#[derive(Debug, Default)]
pub(super) struct GivenBack {
    /// Those that failed once more, and stay.
    pub(super) retained: Vec<Run>,
    /// Those that failed too often, and are gone.
    pub(super) exhausted: Vec<Run>,
    /// Those that the peer takes back, in one.
    pub(super) returned: Option<Run>,
    /// When to look at the subscription again.
    pub(super) due: Vec<Instant>,
}

impl Subscription {
    pub(super) fn new(
        id: SubscriptionId,
        session: SessionId,
        consumer: ConsumerId,
        destination: Destination,
        flow: Flow,
        redelivery: Redelivery,
    ) -> Self {
        Self {
            id,
            consumer,
            destination,
            session,
            flow,
            has_window: false,
            redelivery,
            held: BTreeMap::new(),
            arrivals: 0,
            ready: BTreeSet::new(),
            numbers: BTreeMap::new(),
            last_number: 0,
            handed_over: 0,
            in_hands: 0,
            extended: 0,
            epoch: 0,
            peer_epoch: 0,
            is_closed: false,
            is_removed: false,
        }
    }

    /// Whether the peer, if it counts, sent this before it knew what was given back last.
    pub(super) fn is_outdated(&self, epoch: i32) -> bool {
        self.peer_redelivers() && self.peer_epoch.cast_signed() != epoch
    }

    pub(super) fn is_browser(&self) -> bool {
        matches!(self.flow, Flow::Browser { .. } | Flow::AsGranted { is_browser: true, .. })
    }

    pub(super) fn peer_redelivers(&self) -> bool {
        matches!(self.redelivery, Redelivery::Peer)
    }

    /// Whether a message that failed so often is not to be delivered here.
    pub(super) fn is_exhausted(&self, failed: u32) -> bool {
        matches!(&self.redelivery, Redelivery::Here(policy) if policy.is_exhausted(failed))
    }

    /// Takes what the peer sent.
    pub(super) fn arrive(&mut self, id: MessageId, message: Message, failed: u32) {
        self.arrivals += 1;
        let held = Held::new(id, message, failed);
        self.held.insert(self.arrivals, held);
        self.ready.insert(self.arrivals);
    }

    /// The next delivery, if the consumer may have one now.
    pub(super) fn next(&mut self, now: Instant) -> Option<Dispatch> {
        if self.is_closed || !self.flow.has_credit() {
            return None;
        }
        let arrival = self.next_ready(now)?;
        self.ready.remove(&arrival);
        self.flow.use_credit();
        self.last_number += 1;
        let held = self.held.get_mut(&arrival)?;
        held.number = self.last_number;
        held.not_before = None;
        self.numbers.insert(held.number, arrival);
        Some(Dispatch {
            subscription: self.id,
            number: held.number,
            epoch: self.epoch,
            message: Arc::clone(&held.message),
            delivery_count: held.failed.saturating_add(1),
            mark: None,
        })
    }

    fn next_ready(&self, now: Instant) -> Option<u64> {
        let is_due = |arrival: &u64| {
            self.held.get(arrival).is_some_and(|held| held.not_before.is_none_or(|moment| moment <= now))
        };
        if self.is_non_blocking() {
            self.ready.iter().find(|arrival| is_due(arrival)).copied()
        } else {
            // What failed first comes before all that is behind it.
            self.ready.first().copied().filter(is_due)
        }
    }

    fn is_non_blocking(&self) -> bool {
        matches!(&self.redelivery, Redelivery::Here(policy) if policy.non_blocking)
    }

    /// Whether nothing waits for its delivery.
    pub(super) fn has_delivered_all(&self) -> bool {
        self.ready.is_empty()
    }

    /// Whether a message waits that all others wait for.
    pub(super) fn is_held_up(&self) -> bool {
        !self.is_non_blocking() && !self.ready.is_empty()
    }

    /// The application has got all deliveries up to this one. Says how many of them it had not before.
    pub(super) fn hand_over(&mut self, number: u64) -> usize {
        let number = number.min(self.last_number);
        if number <= self.handed_over {
            return 0;
        }
        let mut count = 0;
        for arrival in self.numbers.range(self.handed_over + 1..=number).map(|(_, arrival)| arrival) {
            if let Some(held) = self.held.get_mut(arrival) {
                held.was_handed_over = true;
            }
            count += 1;
        }
        self.handed_over = number;
        self.in_hands += count;
        count
    }

    /// The last message that the application has got and did not settle, and by how many the peer is to widen the window for
    /// what it has got; `None` while that is not worth a word.
    pub(super) fn widen(&mut self) -> Option<(MessageId, usize)> {
        let Flow::Window { prefetch, extension } = self.flow else { return None };
        let bound = extension.map_or(usize::MAX, |bound| usize::try_from(bound).unwrap_or(usize::MAX));
        let missing = self.in_hands.min(bound).saturating_sub(self.extended);
        // Half of the window at once, as ActiveMQ's own client does.
        let is_due =
            missing > 0 && missing.saturating_mul(2) >= usize::try_from(prefetch).unwrap_or(usize::MAX);
        let last = self.last_in_hands().filter(|_| is_due)?;
        self.extended += missing;
        Some((last, missing))
    }

    /// The last message that the application has got and did not settle.
    pub(super) fn last_in_hands(&self) -> Option<MessageId> {
        let (_, arrival) = self.numbers.range(..=self.handed_over).next_back()?;
        self.held.get(arrival).map(|held| held.id.clone())
    }

    /// Ends deliveries without more ado, as settled or condemned.
    pub(super) fn settle(&mut self, first: u64, last: u64) -> Vec<Run> {
        let arrivals = self.take_numbers(first, last);
        self.forget(&arrivals)
    }

    /// Ends deliveries that the application never got. Of those before them that says nothing.
    pub(super) fn pass_over(&mut self, first: u64, last: u64) -> Vec<Run> {
        let arrivals = self.remove_numbers(first, last);
        self.forget(&arrivals)
    }

    /// Ends deliveries with a transaction; they are named to [`Subscription::committed`] or [`Subscription::rolled_back`].
    pub(super) fn settle_in_transaction(&mut self, first: u64, last: u64) -> (Vec<Run>, Vec<u64>) {
        let arrivals = self.take_numbers(first, last);
        // In the peer's list, and in its window, they are until then.
        self.in_hands += arrivals.len();
        (self.runs(&arrivals), arrivals)
    }

    pub(super) fn committed(&mut self, arrivals: &[u64]) {
        self.in_hands = self.in_hands.saturating_sub(arrivals.len());
        self.forget(arrivals);
    }

    pub(super) fn rolled_back(&mut self, arrivals: &[u64]) {
        self.extended = self.extended.saturating_sub(arrivals.len());
        for arrival in arrivals {
            if let Some(held) = self.held.get(arrival) {
                self.numbers.insert(held.number, *arrival);
            }
        }
    }

    /// Takes deliveries back that failed, and all that the application has not got.
    pub(super) fn give_back(
        &mut self,
        first: u64,
        last: u64,
        delay: Option<Duration>,
        cause: &Cause,
        now: Instant,
    ) -> GivenBack {
        // Also when nothing of the range is left: the client has counted this one too.
        self.epoch = self.epoch.wrapping_add(1);
        let failed = self.take_numbers(first, last);
        let unseen: Vec<u64> = self.numbers.split_off(&(self.handed_over + 1)).into_values().collect();
        let mut given_back = GivenBack::default();
        if !self.is_closed {
            self.ready.extend(unseen);
        }
        let Redelivery::Here(policy) = &self.redelivery else {
            given_back.returned = self.return_all(&failed);
            return given_back;
        };
        let (mut retained, mut exhausted) = (Vec::new(), Vec::new());
        for arrival in failed {
            let Some(held) = self.held.get_mut(&arrival) else { continue };
            match held.fail(policy, delay, cause, now) {
                Failed::TooOften => exhausted.push(arrival),
                Failed::Counted => retained.push(arrival),
                Failed::NotCounted => {}
            }
            given_back.due.extend(held.not_before);
            if !self.is_closed {
                self.ready.insert(arrival);
            }
        }
        for arrival in &exhausted {
            self.ready.remove(arrival);
        }
        given_back.retained = self.runs(&retained);
        given_back.exhausted = self.forget(&exhausted);
        given_back
    }

    /// Leaves to the peer what failed and all that is behind it. Each such word is one that the peer counts, as we do.
    fn return_all(&mut self, failed: &[u64]) -> Option<Run> {
        let id_of = |arrival: &u64| self.held.get(arrival).map(|held| held.id.clone());
        let first = failed.first().and_then(id_of)?;
        let last = failed.last().and_then(id_of)?;
        self.peer_epoch = self.peer_epoch.wrapping_add(1);
        let ready: Vec<u64> = std::mem::take(&mut self.ready).into_iter().collect();
        self.forget(&ready);
        self.forget(failed);
        Some(Run { first, last, count: failed.len() })
    }

    /// Delivers nothing any more.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.ready.clear();
        let unseen = self.handed_over + 1;
        drop(self.numbers.split_off(&unseen));
    }

    /// Whether it may still be delivered to.
    pub(super) fn is_open(&self) -> bool {
        !self.is_closed
    }

    /// Whether it is closed and has nothing that the session may still settle.
    pub(super) fn is_done(&self) -> bool {
        self.is_closed && self.in_hands == 0
    }

    /// The peer's number of the last message that the application has got and that goes back; -1 where there is none.
    pub(super) fn last_delivered(&self) -> i64 {
        let last = self.held.values().rev().find(|held| held.was_handed_over);
        last.map_or(-1, |held| held.id.broker_sequence_id)
    }

    /// Drains that nothing will come of any more.
    pub(super) fn take_drains(&mut self) -> Vec<Confirmer> {
        match &mut self.flow {
            Flow::Pull(pull) => std::mem::take(pull).into_drains().collect(),
            Flow::AsGranted { drains, .. } => std::mem::take(drains).into(),
            Flow::Window { .. } | Flow::Browser { .. } => Vec::new(),
        }
    }

    fn take_numbers(&mut self, first: u64, last: u64) -> Vec<u64> {
        self.hand_over(last);
        self.remove_numbers(first, last)
    }

    fn remove_numbers(&mut self, first: u64, last: u64) -> Vec<u64> {
        if first > last {
            return Vec::new();
        }
        let numbers: Vec<u64> = self.numbers.range(first..=last).map(|(number, _)| *number).collect();
        let mut arrivals: Vec<u64> =
            numbers.iter().filter_map(|number| self.numbers.remove(number)).collect();
        let in_hands = numbers.iter().filter(|number| **number <= self.handed_over).count();
        self.in_hands = self.in_hands.saturating_sub(in_hands);
        arrivals.sort_unstable();
        arrivals
    }

    /// Drops messages that the peer knows to be over, and says where they were in its list.
    fn forget(&mut self, arrivals: &[u64]) -> Vec<Run> {
        let runs = self.runs(arrivals);
        for arrival in arrivals {
            self.held.remove(arrival);
        }
        self.extended = self.extended.saturating_sub(arrivals.len());
        runs
    }

    /// Groups messages by where they are in the peer's list.
    fn runs(&self, arrivals: &[u64]) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        let mut previous = None;
        for arrival in arrivals {
            let Some(held) = self.held.get(arrival) else { continue };
            let is_next = previous.is_some_and(|previous: u64| {
                previous < *arrival && self.held.range(previous + 1..*arrival).next().is_none()
            });
            match runs.last_mut().filter(|_| is_next) {
                Some(run) => {
                    run.last = held.id.clone();
                    run.count += 1;
                }
                None => runs.push(Run { first: held.id.clone(), last: held.id.clone(), count: 1 }),
            }
            previous = Some(*arrival);
        }
        runs
    }
}

impl Flow {
    fn has_credit(&self) -> bool {
        match self {
            Self::Window { .. } | Self::AsGranted { .. } => true,
            Self::Pull(pull) => pull.has_credit(),
            Self::Browser { credit, .. } => *credit > 0,
        }
    }

    fn use_credit(&mut self) {
        match self {
            Self::Window { .. } | Self::AsGranted { .. } => {}
            Self::Pull(pull) => pull.use_credit(),
            Self::Browser { credit, .. } => *credit = credit.saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests;
