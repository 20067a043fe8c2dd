//! One subscription: what it has, how much more it may have, and what is kept for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use corriere_core::provider::Credit;
use corriere_core::{RedeliveryPolicy, SessionId, SubscriptionId, TransactionId};

use super::attempts::OwnSlots;
use super::credit::ExplicitCredit;
use super::effects::ConnectionKey;
use super::queue::{Position, QueueKey};

/// A subscription of a connection.
pub type SubscriptionKey = (ConnectionKey, SubscriptionId);

/// A consumer, from its opening until it is closed and all that it was handed is settled.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) session: SessionId,
    pub(super) queue: QueueKey,
    pub(super) policy: Arc<RedeliveryPolicy>,
    /// Whether messages of its own connection are left out.
    pub(super) no_local: bool,
    /// Deliveries that were given back in blocking mode; see [`Dispatch::epoch`](corriere_core::provider::Dispatch).
    pub(super) epoch: u32,
    /// What came back from it and is delivered to it before anything else.
    pub(super) reserved: BTreeSet<Position>,
    /// When it was last served, and whether it stands in its queue's ring under that turn.
    pub(super) turn: u64,
    pub(super) is_in_ring: bool,
    pub(super) is_closed: bool,
    /// Whether its client left its prefetch to the broker.
    pub(super) has_default_credit: bool,
    /// Whether it was told that it is slow, since it had room last.
    pub(super) is_told_slow: bool,
    /// Where it is noted what it was handed.
    pub(super) slots: OwnSlots,
    credit: CreditState,
    in_flight: BTreeMap<u64, Delivered>,
    last_number: u64,
    /// The highest number known to have reached the application.
    handed_over: u64,
    /// How many of `in_flight` are at or below `handed_over`.
    handed_over_unsettled: u64,
}

/// A delivery that is not settled.
#[derive(Clone, Debug)]
pub(super) struct Delivered {
    pub(super) position: Position,
    /// Whether it was reserved for the subscription when it was dispatched.
    pub(super) was_reserved: bool,
    /// Whether it is known by itself that it reached the application, while of those before it this is not known.
    is_handed_over: bool,
    /// The transaction that acknowledged it and has not ended.
    pub(super) locked_by: Option<TransactionId>,
}

#[derive(Debug)]
enum CreditState {
    Window { prefetch: u64, extension: u64 },
    Explicit(ExplicitCredit),
}

impl CreditState {
    fn window(prefetch: u32, extension: Option<u32>) -> Self {
        Self::Window {
            prefetch: u64::from(prefetch.max(1)),
            extension: extension.map_or(u64::MAX, u64::from),
        }
    }
}

impl Subscription {
    pub(super) fn new(
        session: SessionId,
        queue: QueueKey,
        credit: Credit,
        policy: Arc<RedeliveryPolicy>,
        no_local: bool,
    ) -> Self {
        let credit = match credit {
            Credit::Window { prefetch, extension } => CreditState::window(prefetch, extension),
            Credit::Explicit => CreditState::Explicit(ExplicitCredit::default()),
        };
        Self {
            session,
            queue,
            policy,
            no_local,
            epoch: 0,
            reserved: BTreeSet::new(),
            turn: 0,
            is_in_ring: false,
            is_closed: false,
            has_default_credit: false,
            is_told_slow: false,
            slots: OwnSlots::default(),
            credit,
            in_flight: BTreeMap::new(),
            last_number: 0,
            handed_over: 0,
            handed_over_unsettled: 0,
        }
    }

    /// Whether its credit allows one more message.
    pub(super) fn has_room(&self) -> bool {
        self.room() > 0
    }

    /// How many more messages its credit allows.
    pub(super) fn room(&self) -> u64 {
        match self.credit {
            CreditState::Window { prefetch, extension } => {
                let window = prefetch.saturating_add(self.handed_over_unsettled.min(extension));
                window.saturating_sub(self.in_flight.len() as u64)
            }
            CreditState::Explicit(credit) => credit.left(),
        }
    }

    /// Whether it may have what is ready for anyone: what came back from it goes first.
    pub(super) fn takes_new(&self) -> bool {
        !self.is_closed && self.reserved.is_empty() && self.has_room()
    }

    /// Notes a delivery and says its number.
    pub(super) fn deliver(&mut self, position: Position) -> u64 {
        self.last_number += 1;
        let was_reserved = self.reserved.remove(&position);
        let delivered = Delivered { position, was_reserved, is_handed_over: false, locked_by: None };
        self.in_flight.insert(self.last_number, delivered);
        // It had room for this one.
        self.is_told_slow = false;
        if let Some(credit) = self.explicit_credit() {
            credit.use_one();
        }
        self.last_number
    }

    pub(super) fn grant(&mut self, credit: u32) {
        if let Some(explicit) = self.explicit_credit() {
            explicit.grant(credit);
        }
    }

    /// Gives it another window. What it has beyond a smaller one it keeps; explicit credit stays what it is.
    pub(super) fn change_window(&mut self, prefetch: u32, extension: Option<u32>) {
        if matches!(self.credit, CreditState::Window { .. }) {
            self.credit = CreditState::window(prefetch, extension);
            // Its client has chosen now.
            self.has_default_credit = false;
        }
    }

    /// Gives it the prefetch of a policy, if its client left that to the broker, and half of it, rounded up, as extension, if
    /// it had a bounded one. Answers whether its window is another one now.
    pub(super) fn adopt_prefetch(&mut self, adopted: u32) -> bool {
        let adopted = u64::from(adopted.max(1));
        match &mut self.credit {
            CreditState::Window { prefetch, extension }
                if self.has_default_credit && *prefetch != adopted =>
            {
                *prefetch = adopted;
                if !matches!(*extension, 0 | u64::MAX) {
                    *extension = adopted.div_ceil(2);
                }
                true
            }
            CreditState::Window { .. } | CreditState::Explicit(_) => false,
        }
    }

    /// Whether it can come to a stall, or was told of one: what widens its window is bounded.
    pub(super) fn may_stall(&self) -> bool {
        let is_bounded = matches!(self.credit, CreditState::Window { extension, .. } if !matches!(extension, 0 | u64::MAX));
        is_bounded || self.is_told_slow
    }

    /// How many messages its application has, if these alone keep it from getting more: its window is full of them, and what
    /// widens it is bounded.
    pub(super) fn stalled(&self) -> Option<u64> {
        let CreditState::Window { extension, .. } = self.credit else { return None };
        let unsettled = self.in_flight.len() as u64;
        let is_full = !matches!(extension, 0 | u64::MAX) && self.handed_over_unsettled == unsettled;
        (is_full && unsettled > 0 && !self.has_room()).then_some(unsettled)
    }

    /// What was granted to it, if it has explicit credit.
    pub(super) fn explicit_credit(&mut self) -> Option<&mut ExplicitCredit> {
        match &mut self.credit {
            CreditState::Explicit(credit) => Some(credit),
            CreditState::Window { .. } => None,
        }
    }

    /// Whether all credit is used that a drain is to take back.
    pub(super) fn is_drained(&self) -> bool {
        matches!(self.credit, CreditState::Explicit(credit) if credit.is_drained())
    }

    /// Notes that all deliveries up to `number` reached the application.
    pub(super) fn hand_over(&mut self, number: u64) {
        let number = number.min(self.last_number);
        if number > self.handed_over {
            let newly = self.in_flight.range(self.handed_over + 1..=number);
            let newly = newly.filter(|(_, delivered)| !delivered.is_handed_over).count();
            self.handed_over_unsettled += newly as u64;
            self.handed_over = number;
        }
    }

    /// Notes that each of these deliveries reached the application, of which nothing follows for those before them.
    pub(super) fn hand_over_alone(&mut self, first: u64, last: u64) {
        let first = first.max(self.handed_over + 1);
        if first <= last {
            for (_, delivered) in self.in_flight.range_mut(first..=last) {
                let was_handed_over = std::mem::replace(&mut delivered.is_handed_over, true);
                self.handed_over_unsettled += u64::from(!was_handed_over);
            }
        }
    }

    /// Whether a delivery of this number reached the application.
    fn was_handed_over(&self, number: u64, delivered: &Delivered) -> bool {
        number <= self.handed_over || delivered.is_handed_over
    }

    /// The number of the delivery that reached the application last.
    pub(super) fn handed_over(&self) -> u64 {
        self.handed_over
    }

    /// The delivery that reached the application last, unless it is settled.
    pub(super) fn handed_over_last(&self) -> Option<(u64, &Delivered)> {
        self.in_flight.get(&self.handed_over).map(|delivered| (self.handed_over, delivered))
    }

    /// The oldest delivery that is not settled, if it reached the application.
    pub(super) fn handed_over_first(&self) -> Option<(u64, &Delivered)> {
        let (number, delivered) = self.in_flight.first_key_value()?;
        self.was_handed_over(*number, delivered).then_some((*number, delivered))
    }

    /// Whether a delivery is not settled.
    pub(super) fn has(&self, number: u64) -> bool {
        self.in_flight.contains_key(&number)
    }

    /// The first delivery from `first` to `last` that nothing was said of yet.
    pub(super) fn next_unsettled(&self, first: u64, last: u64) -> Option<(u64, Position)> {
        if first > last {
            return None;
        }
        let mut range = self.in_flight.range(first..=last);
        range
            .find(|(_, delivered)| delivered.locked_by.is_none())
            .map(|(number, delivered)| (*number, delivered.position))
    }

    /// The first delivery that did not reach the application and that nothing was said of.
    pub(super) fn next_unseen(&self) -> Option<(u64, Position)> {
        let mut unseen = self.in_flight.range(self.handed_over + 1..);
        unseen
            .find(|(_, delivered)| delivered.locked_by.is_none() && !delivered.is_handed_over)
            .map(|(number, delivered)| (*number, delivered.position))
    }

    /// Ends a delivery, and says what it was, and whether it reached the application.
    pub(super) fn settle(&mut self, number: u64) -> Option<(Delivered, bool)> {
        let delivered = self.in_flight.remove(&number)?;
        let was_handed_over = self.was_handed_over(number, &delivered);
        self.handed_over_unsettled -= u64::from(was_handed_over);
        Some((delivered, was_handed_over))
    }

    /// Ends a delivery that did not reach the application, whatever was said of later ones; explicit credit that went into it is
    /// free again. Says whether its message was the subscription's own before, which only an open one can have again.
    pub(super) fn take_back(&mut self, number: u64) -> bool {
        let delivered = self.settle(number);
        if let Some(credit) = self.explicit_credit() {
            credit.free_one();
        }
        !self.is_closed && delivered.is_some_and(|(delivered, _)| delivered.was_reserved)
    }

    /// Keeps a delivery for a transaction that acknowledged it, or frees it again.
    pub(super) fn lock(&mut self, number: u64, transaction: Option<TransactionId>) {
        if let Some(delivered) = self.in_flight.get_mut(&number) {
            delivered.locked_by = transaction;
        }
    }

    /// Where the messages stand that it has and that are not settled.
    pub(super) fn positions(&self) -> impl Iterator<Item = Position> {
        self.in_flight.values().map(|delivered| delivered.position)
    }

    /// Whether it has nothing that is not settled.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }
}
