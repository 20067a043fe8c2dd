//! Acknowledgements that are put off, so that one range tells the provider of many (`DUPS_OK` on topics, and
//! `jms.optimizeAcknowledge`).
//!
//! What is put off is settled for the application. It comes again only if the process dies before the provider is told, or if
//! the connection is lost: whatever else ends a consumer tells it first. What came again so is not put off another time, as it would
//! count with each death of the process until it were a dead letter.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::super::buffer::lock;
use super::settlement::HandedOver;
use super::{SessionInner, SessionState};
use crate::id::SubscriptionId;
use crate::provider::{AckKind, Receipt};

impl SessionInner {
    /// Tells the provider of all that was put off.
    pub(in crate::client) fn tell_acknowledged(&self) -> Vec<Receipt> {
        let state = &mut *lock(&self.state);
        let subscriptions = state.subscriptions.iter_mut();
        subscriptions.flat_map(|(id, handed_over)| self.tell_of(*id, handed_over)).collect()
    }

    /// Tells the provider of what one consumer has put off.
    pub(in crate::client) fn tell_acknowledged_of(&self, subscription: SubscriptionId) -> Vec<Receipt> {
        let state = &mut *lock(&self.state);
        let handed_over = state.subscriptions.get_mut(&subscription);
        handed_over.map_or_else(Vec::new, |handed_over| self.tell_of(subscription, handed_over))
    }

    /// Says that a consumer is about to wait for messages.
    pub(in crate::client) fn begin_waiting(&self, subscription: SubscriptionId) {
        let state = &mut *lock(&self.state);
        if let Some(handed_over) = state.subscriptions.get_mut(&subscription) {
            self.make_room(subscription, handed_over);
            self.tell_idle(subscription, handed_over);
        }
    }

    /// Puts off the acknowledgement of a delivery where its consumer does so; false where it does not, or where something
    /// was said of the delivery before.
    pub(super) fn is_put_off(
        &self,
        state: &mut SessionState,
        subscription: SubscriptionId,
        number: u64,
    ) -> bool {
        let Some(handed_over) = state.subscriptions.get_mut(&subscription) else { return false };
        if handed_over.lazily().is_none() || !handed_over.unsettled.remove(&number) {
            return false;
        }
        if handed_over.unsettled.is_empty() {
            state.unsettled.remove(&subscription);
        }
        let is_told = self.put_off(subscription, handed_over, number);
        // A receive that waits already told all that there was when it began to.
        if !is_told && handed_over.unsettled.is_empty() && handed_over.is_idle() {
            self.tell_idle(subscription, handed_over);
        }
        true
    }

    /// Puts off an acknowledgement, and tells of it with the others where that is due; whether it did.
    pub(super) fn put_off(
        &self,
        subscription: SubscriptionId,
        handed_over: &mut HandedOver,
        number: u64,
    ) -> bool {
        handed_over.acknowledged.insert(number);
        let Some(lazily) = handed_over.lazily() else { return false };
        let is_over = |timeout| self.connection.clock().now().since(handed_over.told_at) >= timeout;
        let is_enough = handed_over.acknowledged.len() as u64 >= lazily.after;
        let is_due = handed_over.has_redelivered || is_enough || lazily.timeout.is_some_and(is_over);
        if is_due {
            drop(self.tell_of(subscription, handed_over));
        }
        is_due
    }

    /// Tells of what was put off where it fills the window together with what the application has not settled: nothing more
    /// would come to bring it to its number.
    pub(super) fn tell_if_full(&self, subscription: SubscriptionId, handed_over: &mut HandedOver) {
        let held = handed_over.acknowledged.len() + handed_over.unsettled.len();
        if handed_over.lazily().is_some_and(|lazily| held as u64 >= lazily.after) {
            drop(self.tell_of(subscription, handed_over));
        }
    }

    /// Tells of what was put off where nothing more waits, so that a message does not come again long after it was handled.
    pub(super) fn tell_idle(&self, subscription: SubscriptionId, handed_over: &mut HandedOver) {
        if handed_over.lazily().is_some_and(|lazily| lazily.until_idle) {
            drop(self.tell_of(subscription, handed_over));
        }
    }

    /// Tells of what one consumer has put off: one range, or several where the application has not settled what is between.
    pub(super) fn tell_of(&self, subscription: SubscriptionId, handed_over: &mut HandedOver) -> Vec<Receipt> {
        // What the application has not settled may be redelivered.
        handed_over.has_redelivered &= !handed_over.unsettled.is_empty();
        if handed_over.acknowledged.is_empty() {
            return Vec::new();
        }
        handed_over.told_at = self.connection.clock().now();
        let acknowledged = std::mem::take(&mut handed_over.acknowledged);
        let unsettled = &handed_over.unsettled;
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for number in acknowledged {
            match ranges.last_mut() {
                // What lies between and is neither of the two has ended in another way.
                Some((_, last)) if unsettled.range(*last..number).next().is_none() => *last = number,
                _ => ranges.push((number, number)),
            }
        }
        let ranges = ranges.into_iter();
        ranges
            .map(|(first, last)| self.acknowledge(subscription, first, last, AckKind::Standard, None))
            .collect()
    }
}

/// Tells the provider now and then of what a consumer has put off, until it is dropped.
#[derive(Debug)]
pub(super) struct Timer(AbortHandle);

impl Timer {
    /// Tells it every `interval`; none outside a tokio runtime. It keeps no session open.
    pub(super) fn start(
        interval: Duration,
        session: &Arc<SessionInner>,
        subscription: SubscriptionId,
    ) -> Option<Self> {
        let (clock, session) = (session.connection.clock().clone(), Arc::downgrade(session));
        let Ok(runtime) = Handle::try_current() else {
            tracing::warn!(
                "a consumer was made outside a tokio runtime, so nothing keeps `jms.optimizedAckScheduledAckInterval`"
            );
            return None;
        };
        let task = runtime.spawn(async move {
            loop {
                clock.sleep(interval).await;
                let Some(session) = session.upgrade() else { return };
                drop(session.tell_acknowledged_of(subscription));
            }
        });
        Some(Self(task.abort_handle()))
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}
