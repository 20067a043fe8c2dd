//! What a session handed to the application, and what it says of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::buffer::{Buffer, End, lock};
use super::putting_off::Timer;
use super::timing::{Lazily, Timing};
use super::{SessionInner, SessionState};
use crate::id::{SubscriptionId, TransactionId};
use crate::provider::{Ack, AckKind, Command, Dispatch, ProviderError, Receipt};
use crate::time::Timestamp;

/// What a subscription handed to the application.
#[derive(Debug)]
pub(super) struct HandedOver {
    buffer: Arc<Buffer>,
    timing: Timing,
    is_open: bool,
    /// The number of the last one; 0 before the first.
    last: u64,
    pub(super) unsettled: BTreeSet<u64>,
    /// How many were handed over since the provider was told.
    unreported: u64,
    /// Settled for the application; the provider is told later, of many at once.
    pub(super) acknowledged: BTreeSet<u64>,
    /// Whether there may be a redelivered one among these and the unsettled ones of a provider without marks. While there is,
    /// nothing is put off.
    pub(super) has_redelivered: bool,
    /// When it was last told of such.
    pub(super) told_at: Timestamp,
    /// Tells of them, where that was asked for.
    pub(super) timer: Option<Timer>,
}

impl HandedOver {
    pub(super) fn nothing(buffer: Arc<Buffer>, timing: Timing, now: Timestamp) -> Self {
        Self {
            buffer,
            timing,
            is_open: true,
            last: 0,
            unsettled: BTreeSet::new(),
            unreported: 0,
            acknowledged: BTreeSet::new(),
            has_redelivered: false,
            told_at: now,
            timer: None,
        }
    }

    /// How its acknowledgements are put off, if they are; those of a closed consumer are not.
    pub(super) fn lazily(&self) -> Option<Lazily> {
        self.timing.lazily(self.buffer.prefetch()).filter(|_| self.is_open)
    }

    /// Whether nothing waits for the consumer.
    pub(super) fn is_idle(&self) -> bool {
        self.buffer.len() == 0
    }

    /// Hands over nothing more.
    pub(super) fn end(&self) {
        self.buffer.end(End::Closed);
    }

    /// Notes a delivery that the application has from now on. Says whether the provider is to be told at once: of one that must
    /// count if the process dies, and of others now and then, for the window's sake.
    fn note(&mut self, dispatch: &Dispatch) -> bool {
        self.last = dispatch.number;
        self.unreported += 1;
        let is_due = self.is_to_count(dispatch) || self.is_report_due();
        if is_due {
            self.unreported = 0;
        }
        is_due
    }

    /// Whether the provider is told of a delivery as it is handed over: of each persistent message where nothing is put off, or
    /// where it has marked it, which costs it no more than a note.
    ///
    /// Elsewhere a word on each message would be as much as its acknowledgement. There it is told of the oldest that it does
    /// not know to be settled, one word a range, and of what is redelivered, whose acknowledgement is not put off. So what was
    /// handled, and not told of when a later message killed the process, counts once and no more. Each life of the process
    /// comes one message further at least, until the deadly one is the oldest: then it counts each time, and dies in the end.
    /// One that is not persistent is told of as well, as the deadly one behind it would never be the oldest.
    fn is_to_count(&mut self, dispatch: &Dispatch) -> bool {
        if dispatch.mark.is_some() || self.lazily().is_none() {
            return dispatch.message.headers().is_persistent();
        }
        let is_redelivered = dispatch.delivery_count > 1;
        self.has_redelivered |= is_redelivered;
        is_redelivered || (self.acknowledged.is_empty() && self.unsettled.is_empty())
    }

    fn is_report_due(&self) -> bool {
        let after = self.timing.report_after(self.buffer.prefetch());
        after.is_some_and(|after| self.unreported >= after)
    }
}

impl SessionInner {
    /// Takes the next delivery of a consumer for the application, and says how many before it had expired. `settles`
    /// acknowledges it in the same moment.
    pub(in crate::client) fn hand_over(
        &self,
        subscription: SubscriptionId,
        buffer: &Buffer,
        settles: bool,
    ) -> Result<(Option<Dispatch>, usize), End> {
        // Under the session's lock from the buffer to the record, so that a rollback finds a delivery in one of the two.
        let mut state = lock(&self.state);
        let SessionState { subscriptions, unsettled, .. } = &mut *state;
        let Some(handed_over) = subscriptions.get_mut(&subscription).filter(|_| self.is_open()) else {
            return Err(End::Closed);
        };
        self.make_room(subscription, handed_over);
        let mut expired = 0;
        let dispatch = loop {
            let Some(dispatch) = buffer.pop()? else {
                self.tell_idle(subscription, handed_over);
                return Ok((None, expired));
            };
            let expiration = dispatch.message.headers().expiration;
            if expiration.is_none_or(|expiration| self.connection.clock().now() < expiration) {
                break dispatch;
            }
            expired += 1;
            drop(self.tell_of(subscription, handed_over));
            drop(self.acknowledge(subscription, dispatch.number, dispatch.number, AckKind::Expired, None));
        };
        let number = dispatch.number;
        let lazily = handed_over.lazily();
        if settles && lazily.is_none() {
            handed_over.last = number;
            drop(self.acknowledge(subscription, number, number, AckKind::Standard, None));
            return Ok((Some(dispatch), expired));
        }
        let is_due = handed_over.note(&dispatch);
        if !settles {
            handed_over.unsettled.insert(number);
            unsettled.insert(subscription);
        }
        let is_told = settles && self.put_off(subscription, handed_over, number);
        if is_due && !is_told {
            self.connection.tell(Command::HandedOver { subscription, number, mark: dispatch.mark });
        }
        Ok((Some(dispatch), expired))
    }

    /// Tells the provider what it does not know and what would keep it from sending more.
    pub(super) fn make_room(&self, subscription: SubscriptionId, handed_over: &mut HandedOver) {
        if handed_over.is_report_due() {
            handed_over.unreported = 0;
            self.connection.tell(Command::HandedOver { subscription, number: handed_over.last, mark: None });
        }
        self.tell_if_full(subscription, handed_over);
    }

    /// Whether a delivery was handed over and nothing was said of it yet.
    pub(in crate::client) fn is_unsettled(&self, subscription: SubscriptionId, number: u64) -> bool {
        lock(&self.state)
            .subscriptions
            .get(&subscription)
            .is_some_and(|handed_over| handed_over.unsettled.contains(&number))
    }

    /// Forgets what was not handed over, as the provider takes it back when deliveries up to `last` are given back.
    pub(super) fn recall(&self, subscription: SubscriptionId, handed_over: &mut HandedOver, last: u64) {
        handed_over.buffer.recall();
        if std::mem::take(&mut handed_over.unreported) > 0 && handed_over.is_open && last < handed_over.last {
            // Later ones are in the application's hands. The provider must know, or it would take them back as well.
            let number = handed_over.last;
            self.connection.tell(Command::HandedOver { subscription, number, mark: None });
        }
    }

    pub(super) fn acknowledge(
        &self,
        subscription: SubscriptionId,
        first: u64,
        last: u64,
        kind: AckKind,
        transaction: Option<TransactionId>,
    ) -> Receipt {
        self.connection.submit(Command::Acknowledge(Ack { subscription, first, last, kind, transaction }))
    }

    /// Says `kind` of one delivery; `None` when something was said of it before.
    pub(in crate::client) fn settle_one(
        &self,
        subscription: SubscriptionId,
        number: u64,
        kind: AckKind,
    ) -> Option<Receipt> {
        self.settle_number(&mut lock(&self.state), subscription, number, kind)
    }

    /// Acknowledges one delivery as its session does that by itself: at once, or with others, as its consumer puts
    /// acknowledgements off. `None` when it was put off, and when something was said of it before.
    pub(in crate::client) fn settle_by_itself(
        &self,
        subscription: SubscriptionId,
        number: u64,
    ) -> Option<Receipt> {
        let state = &mut *lock(&self.state);
        if self.is_put_off(state, subscription, number) {
            return None;
        }
        self.settle_number(state, subscription, number, AckKind::Standard)
    }

    /// As [`SessionInner::settle_by_itself`], of which nobody waits until it is safe.
    pub(in crate::client) fn settle_unawaited(&self, subscription: SubscriptionId, number: u64) {
        let state = &mut *lock(&self.state);
        if self.is_put_off(state, subscription, number) {
            return;
        }
        let Some(handed_over) = state.subscriptions.get_mut(&subscription) else { return };
        if handed_over.unsettled.remove(&number) {
            let (kind, transaction) = (AckKind::Standard, None);
            let ack = Ack { subscription, first: number, last: number, kind, transaction };
            self.connection.tell(Command::Acknowledge(ack));
            forget_if_settled(state, subscription);
        }
    }

    pub(super) fn settle_number(
        &self,
        state: &mut SessionState,
        subscription: SubscriptionId,
        number: u64,
        kind: AckKind,
    ) -> Option<Receipt> {
        let handed_over = state.subscriptions.get_mut(&subscription)?;
        if !handed_over.unsettled.remove(&number) {
            return None;
        }
        drop(self.tell_of(subscription, handed_over));
        if matches!(kind, AckKind::Redelivered { .. }) {
            self.recall(subscription, handed_over, number);
        }
        let receipt = self.acknowledge(subscription, number, number, kind, None);
        forget_if_settled(state, subscription);
        Some(receipt)
    }

    /// Says `kind` of everything that was handed over and is not settled.
    pub(in crate::client) fn settle_all(
        &self,
        kind: &AckKind,
        transaction: Option<&TransactionId>,
    ) -> Vec<Receipt> {
        self.settle_ranges(&mut lock(&self.state), kind, transaction).0
    }

    pub(super) fn settle_ranges(
        &self,
        state: &mut SessionState,
        kind: &AckKind,
        transaction: Option<&TransactionId>,
    ) -> (Vec<Receipt>, Vec<(SubscriptionId, u64, u64)>) {
        let subscriptions = std::mem::take(&mut state.unsettled);
        self.settle_ranges_of(state, subscriptions, kind, transaction)
    }

    fn settle_ranges_of(
        &self,
        state: &mut SessionState,
        subscriptions: impl IntoIterator<Item = SubscriptionId>,
        kind: &AckKind,
        transaction: Option<&TransactionId>,
    ) -> (Vec<Receipt>, Vec<(SubscriptionId, u64, u64)>) {
        let mut receipts = Vec::new();
        let mut ranges = Vec::new();
        for subscription in subscriptions {
            let Some(handed_over) = state.subscriptions.get_mut(&subscription) else { continue };
            receipts.extend(self.tell_of(subscription, handed_over));
            let numbers = std::mem::take(&mut handed_over.unsettled);
            if let (Some(first), Some(last)) = (numbers.first().copied(), numbers.last().copied()) {
                if matches!(kind, AckKind::Redelivered { .. }) {
                    self.recall(subscription, handed_over, last);
                }
                // The acknowledgement says it of all of these.
                handed_over.unreported = 0;
                receipts.push(self.acknowledge(
                    subscription,
                    first,
                    last,
                    kind.clone(),
                    transaction.cloned(),
                ));
                ranges.push((subscription, first, last));
            }
            // A commit that fails gives these back, and finds the buffer to recall only while the record is there.
            if transaction.is_none() {
                forget_if_settled(state, subscription);
            }
        }
        (receipts, ranges)
    }

    /// Acknowledges everything that one consumer handed over and that is not settled.
    pub(in crate::client) fn settle_received(&self, subscription: SubscriptionId) -> Vec<Receipt> {
        let state = &mut *lock(&self.state);
        self.settle_ranges_of(state, [subscription], &AckKind::Standard, None).0
    }

    /// Gives a consumer another prefetch.
    pub(in crate::client) fn change_window(&self, subscription: SubscriptionId, prefetch: u32) -> Receipt {
        let state = &mut *lock(&self.state);
        let Some(handed_over) = state.subscriptions.get_mut(&subscription) else {
            return Receipt::ready(Err(ProviderError::Unknown { what: format!("{subscription:?}") }));
        };
        handed_over.buffer.choose_prefetch(prefetch);
        // What was put off until there were more of it may be enough to fill a smaller window.
        drop(self.tell_of(subscription, handed_over));
        self.make_room(subscription, handed_over);
        let extension = handed_over.timing.extension(prefetch);
        self.connection.submit(Command::ChangeWindow { subscription, prefetch, extension })
    }

    /// Closes one consumer. What it handed over stays the session's to settle.
    pub(in crate::client) fn close_subscription(&self, subscription: SubscriptionId) -> Option<Receipt> {
        let mut state = lock(&self.state);
        let handed_over = state.subscriptions.get_mut(&subscription)?;
        if !std::mem::take(&mut handed_over.is_open) {
            return None;
        }
        handed_over.timer = None;
        drop(self.tell_of(subscription, handed_over));
        handed_over.buffer.end(End::Closed);
        self.connection.sink().remove(subscription);
        let last_handed_over = handed_over.last;
        let receipt = self.connection.submit(Command::CloseSubscription { subscription, last_handed_over });
        forget_if_settled(&mut state, subscription);
        Some(receipt)
    }
}

/// Drops the record of a subscription that is closed and has nothing to settle.
pub(super) fn forget_if_settled(state: &mut SessionState, subscription: SubscriptionId) {
    let Some(handed_over) = state.subscriptions.get(&subscription) else { return };
    if handed_over.unsettled.is_empty() {
        state.unsettled.remove(&subscription);
        if !handed_over.is_open {
            state.subscriptions.remove(&subscription);
        }
    }
}
