//! The way of a message through a queue: in, to a consumer, back, and out.

use std::sync::Arc;
use std::time::Duration;

use corriere_core::provider::{Cause, CauseKind, Dispatch};
use corriere_core::{RedeliveryPolicy, Timestamp};

use super::Machine;
use super::attempts::mark_of;
use super::effects::ConnectionKey;
use super::memory::Held;
use super::queue::{Entry, Place, Position, QueueKey};
use super::subscription::SubscriptionKey;
use super::time_index::Timer;
use crate::store::{Arrival, DeliveryState, Removal, StoreOperation, StoreTransaction, StoredId};

/// How a delivery failed that comes back counted.
#[derive(Debug)]
pub(super) struct Failure<'a> {
    pub(super) cause: &'a Cause,
    pub(super) policy: &'a RedeliveryPolicy,
    pub(super) delay: Delay,
    /// The subscription that it stays with; `None` for anyone.
    pub(super) reserved_for: Option<SubscriptionKey>,
}

/// When a message that came back may be delivered again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delay {
    /// At once.
    None,
    /// As the policy says.
    Policy,
    /// As the acknowledgement says.
    Exactly(Duration),
}

/// For how long at least a message that cannot be given to its consumer is kept from all. Nothing counts such attempts, so that
/// without a delay of its own a policy that has none would have it go round and round, and each round is written to the store.
const UNSEEN_DELAY: Duration = Duration::from_secs(60);

impl Machine {
    /// Makes a message visible in a queue that it was sent or moved to.
    pub(super) fn enqueue(&mut self, queue_key: QueueKey, held: Arc<Held>, arrival: Arrival) {
        if let Some(queue) = self.queues.get_mut(&queue_key) {
            match arrival {
                Arrival::Sent => {
                    queue.counts.enqueued += 1;
                    queue.totals.enqueued += u64::from(queue.stores(&held));
                }
                Arrival::MovedIn | Arrival::Copied => queue.counts.moved_in += 1,
            }
        }
        self.make_visible(queue_key, held);
    }

    /// Makes a message visible: from now on it has a position, and it may expire.
    pub(super) fn make_visible(&mut self, queue_key: QueueKey, held: Arc<Held>) {
        let Some(queue) = self.queues.get_mut(&queue_key) else {
            self.memory.release(held);
            return;
        };
        let expiration = held.expiration();
        let position = queue.push(held);
        if let Some(expiration) = expiration {
            if expiration <= self.now && !self.gives_way(queue_key) {
                self.expire(queue_key, position);
                return;
            }
            self.timers.insert(expiration, Timer::Expiry(queue_key, position));
        }
        self.note_idle(queue_key, position);
        self.look_at(queue_key);
    }

    /// Has a queue looked at before the step ends.
    pub(super) fn look_at(&mut self, queue_key: QueueKey) {
        if let Some(queue) = self.queues.get_mut(&queue_key)
            && !queue.is_due
        {
            queue.is_due = true;
            self.due_queues.push_back(queue_key);
        }
    }

    /// Delivers what is ready for anyone, one message to each subscription in turn, up to one whose body is not here.
    ///
    /// Nothing expired is among it, as every step begins with the timers that are due.
    pub(super) fn dispatch_queue(&mut self, queue_key: QueueKey) {
        while let Some(queue) = self.queues.get_mut(&queue_key)
            && let Some((position, key)) = queue.next_dispatch()
        {
            let Some(entry) = queue.get(position) else { break };
            let Some(subscription) = self.subscriptions.get_mut(&key) else { break };
            if entry.held.body().is_none() {
                break;
            }
            if entry.is_recovered
                && !queue.holds_dead_letters
                && subscription.policy.is_exhausted(entry.failed_deliveries)
            {
                let cause = Cause::failure("the process of its consumer ended with it");
                self.dead_letter(queue_key, position, &cause);
                continue;
            }
            let turn = queue.last_turn();
            queue.leave_ring(subscription.turn, key);
            subscription.turn = turn;
            subscription.is_in_ring = false;
            self.dispatch(key, position);
            self.update_ring(key);
        }
        self.read_ahead(queue_key);
        self.tell_slow(queue_key);
    }

    /// Delivers to a subscription what is reserved for it and due, and lets it have other messages if it may.
    pub(super) fn attend(&mut self, key: SubscriptionKey) {
        if let Some(attended_later) = &mut self.attended_later {
            attended_later.push(key);
            return;
        }
        while let Some(subscription) = self.subscriptions.get(&key)
            && !subscription.is_closed
            && subscription.has_room()
            && let Some(&position) = subscription.reserved.first()
            && let Some(entry) = self.queues.get(&subscription.queue).and_then(|queue| queue.get(position))
            && entry.not_before <= self.now
        {
            if entry.held.body().is_none() {
                // One at a time for each consumer, so this needs no other bound.
                let queue_key = subscription.queue;
                self.load(queue_key, position);
                break;
            }
            self.dispatch(key, position);
        }
        self.update_ring(key);
    }

    fn update_ring(&mut self, key: SubscriptionKey) {
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return };
        let (takes_new, may_stall) = (subscription.takes_new(), subscription.may_stall());
        if takes_new != subscription.is_in_ring {
            let Some(queue) = self.queues.get_mut(&subscription.queue) else { return };
            subscription.is_in_ring = takes_new;
            if !takes_new {
                queue.leave_ring(subscription.turn, key);
            } else {
                queue.join_ring(subscription.turn, key);
                if queue.has_ready() {
                    let queue_key = subscription.queue;
                    self.look_at(queue_key);
                }
            }
        }
        if may_stall {
            self.note_stall(key);
        }
    }

    fn dispatch(&mut self, key: SubscriptionKey, position: Position) {
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return };
        let Some(queue) = self.queues.get_mut(&subscription.queue) else { return };
        queue.put(position, Place::InFlight);
        let is_stored = queue.get(position).is_some_and(|entry| queue.stores(&entry.held));
        let Some(entry) = queue.get_mut(position) else { return };
        entry.is_recovered = false;
        let Some(message) = entry.held.body().cloned() else { return };
        let mark = is_stored.then(|| mark_of(&mut self.slots, subscription, entry));
        let dispatch = Dispatch {
            subscription: key.1,
            number: subscription.deliver(position),
            epoch: subscription.epoch,
            message,
            delivery_count: entry.failed_deliveries.saturating_add(1),
            mark,
        };
        if dispatch.delivery_count > 1 {
            queue.counts.redelivered += 1;
        }
        self.put_out(key.0, dispatch);
    }

    /// Puts a delivery among those of this step.
    pub(super) fn put_out(&mut self, key: ConnectionKey, dispatch: Dispatch) {
        if let Some(connection) = self.connections.get_mut(&key) {
            if connection.outgoing.is_empty() {
                self.talking.push(key);
            }
            connection.outgoing.push(dispatch);
        }
    }

    /// Takes a message back as it was: it never reached the application, or never left. It is for anyone, or reserved.
    pub(super) fn give_back_unseen(
        &mut self,
        queue_key: QueueKey,
        position: Position,
        reserved_for: Option<SubscriptionKey>,
    ) {
        if self.is_still_wanted(queue_key, position) {
            self.keep_for_later(queue_key, position, reserved_for);
        }
    }

    /// Takes a message back that never reached the application, and keeps it from all for as long as after one failure, and for
    /// [`UNSEEN_DELAY`] at least.
    pub(super) fn delay_unseen(
        &mut self,
        queue_key: QueueKey,
        position: Position,
        policy: &RedeliveryPolicy,
    ) {
        let Some(entry) = self.queues.get_mut(&queue_key).and_then(|queue| queue.get_mut(position)) else {
            return;
        };
        entry.not_before =
            policy.next_delivery(self.now, 1, entry.held.id.0).max(self.now.saturating_add(UNSEEN_DELAY));
        if self.is_still_wanted(queue_key, position) {
            self.record_delivery_state(queue_key, position);
            self.keep_for_later(queue_key, position, None);
        }
    }

    /// Takes a message back that reached the application and was not settled: counts it, if it is to blame, and either
    /// keeps it for a later delivery or moves it to the dead letters.
    pub(super) fn give_back_failed(
        &mut self,
        queue_key: QueueKey,
        position: Position,
        failure: &Failure<'_>,
    ) {
        let Some(queue) = self.queues.get_mut(&queue_key) else { return };
        let may_die = !queue.holds_dead_letters;
        let Some(entry) = queue.get_mut(position) else { return };
        let is_counted = match failure.cause.kind {
            CauseKind::Failure => true,
            CauseKind::Conversion => std::mem::replace(&mut entry.conversion_failed, true),
            CauseKind::Resource => false,
        };
        entry.failed_deliveries = entry.failed_deliveries.saturating_add(u32::from(is_counted));
        let (delay, failures) = match failure.cause.kind {
            CauseKind::Conversion if !is_counted => (Delay::None, 0),
            CauseKind::Failure | CauseKind::Conversion => (failure.delay, entry.failed_deliveries),
            CauseKind::Resource => (failure.delay, 1),
        };
        entry.not_before = match delay {
            Delay::None => self.now,
            Delay::Policy => failure.policy.next_delivery(self.now, failures, entry.held.id.0),
            Delay::Exactly(delay) => self.now.saturating_add(delay),
        };
        let is_exhausted = may_die && failure.policy.is_exhausted(entry.failed_deliveries);
        let lacks_body = entry.held.body().is_none();
        if lacks_body {
            // If it dies of that it has to be read back first, and the process may end meanwhile.
            self.record_delivery_state(queue_key, position);
        }
        if is_counted && is_exhausted {
            self.dead_letter(queue_key, position, failure.cause);
            return;
        }
        if self.is_still_wanted(queue_key, position) {
            if !lacks_body {
                self.record_delivery_state(queue_key, position);
            }
            self.keep_for_later(queue_key, position, failure.reserved_for);
        }
    }

    /// Counts a delivery that stays with its consumer, which delivers it again by itself.
    pub(super) fn count_retained(&mut self, queue_key: QueueKey, position: Position) {
        if let Some(entry) = self.queues.get_mut(&queue_key).and_then(|queue| queue.get_mut(position)) {
            entry.failed_deliveries = entry.failed_deliveries.saturating_add(1);
            self.record_delivery_state(queue_key, position);
        }
    }

    /// Whether a message that comes back is to be kept; if not, it is expired or discarded.
    fn is_still_wanted(&mut self, queue_key: QueueKey, position: Position) -> bool {
        let Some(queue) = self.queues.get(&queue_key) else { return false };
        let Some(entry) = queue.get(position) else { return false };
        if entry.held.is_expired(self.now) {
            self.expire(queue_key, position);
            return false;
        }
        if queue.is_closing {
            self.discard(queue_key, position);
            return false;
        }
        true
    }

    /// Puts a message where it waits for its next delivery.
    fn keep_for_later(
        &mut self,
        queue_key: QueueKey,
        position: Position,
        reserved_for: Option<SubscriptionKey>,
    ) {
        let entry = self.queues.get(&queue_key).and_then(|queue| queue.get(position));
        let Some(not_before) = entry.map(|entry| entry.not_before) else { return };
        if not_before > self.now {
            self.timers.insert(not_before, Timer::Redelivery(queue_key, position));
        }
        self.note_idle(queue_key, position);
        let Some(queue) = self.queues.get_mut(&queue_key) else { return };
        match reserved_for.and_then(|key| Some((key, self.subscriptions.get_mut(&key)?))) {
            Some((key, subscription)) => {
                queue.reserve(position, key);
                subscription.reserved.insert(position);
            }
            None if not_before > self.now => queue.put(position, Place::Delayed),
            None => {
                queue.put(position, Place::Ready);
                self.look_at(queue_key);
            }
        }
    }

    /// Frees what was reserved for a subscription; the delay of each message stays.
    pub(super) fn end_reservations(&mut self, key: SubscriptionKey) {
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return };
        let queue_key = subscription.queue;
        let reserved = std::mem::take(&mut subscription.reserved);
        let Some(queue) = self.queues.get_mut(&queue_key) else { return };
        for position in reserved {
            let is_delayed = queue.get(position).is_some_and(|entry| entry.not_before > self.now);
            queue.put(position, if is_delayed { Place::Delayed } else { Place::Ready });
        }
        self.look_at(queue_key);
    }

    /// The redelivery delay of a message is over.
    pub(super) fn redelivery_is_due(&mut self, queue_key: QueueKey, position: Position) {
        let Some(queue) = self.queues.get_mut(&queue_key) else { return };
        match queue.get(position).map(Entry::place) {
            Some(Place::Delayed) => {
                queue.put(position, Place::Ready);
                self.look_at(queue_key);
            }
            Some(Place::Reserved) => {
                if let Some(key) = queue.reserved_by(position) {
                    self.attend(key);
                }
            }
            Some(Place::Ready | Place::InFlight | Place::Doomed | Place::Aside) | None => {}
        }
    }

    /// The expiration of a message has come. With a consumer it may still be settled; it is looked at again if it
    /// comes back.
    pub(super) fn expiry_is_due(&mut self, queue_key: QueueKey, position: Position) {
        let place = self.queues.get(&queue_key).and_then(|queue| queue.get(position)).map(Entry::place);
        if matches!(place, Some(Place::Ready | Place::Delayed | Place::Reserved))
            && !self.gives_way(queue_key)
        {
            self.expire(queue_key, position);
        }
    }

    /// Ends what would have ended in a queue while it was to give way.
    pub(super) fn end_what_is_due(&mut self, queue_key: QueueKey) {
        let Some(queue) = self.queues.get_mut(&queue_key) else { return };
        let positions: Vec<_> = queue.positions().map(|(position, _)| position).collect();
        for position in positions {
            let Some(entry) = self.queues.get(&queue_key).and_then(|queue| queue.get(position)) else {
                continue;
            };
            if entry.place() == Place::Doomed {
                self.die(queue_key, position);
            } else if entry.held.is_expired(self.now) {
                self.expiry_is_due(queue_key, position);
            }
        }
    }

    /// Ends a message that a consumer settled.
    pub(super) fn settle(&mut self, queue_key: QueueKey, position: Position) {
        self.record_removal(queue_key, position, Removal::Acknowledged);
        self.remove_settled(queue_key, position);
    }

    /// Ends a message that a consumer settled and whose removal the store knows of.
    pub(super) fn remove_settled(&mut self, queue_key: QueueKey, position: Position) {
        if let Some(queue) = self.queues.get_mut(&queue_key)
            && queue.get(position).is_some()
        {
            queue.counts.acknowledged += 1;
            let is_stored = queue.get(position).is_some_and(|entry| queue.stores(&entry.held));
            queue.totals.acknowledged += u64::from(is_stored);
            self.take_out(queue_key, position);
        }
    }

    /// Drops a message by policy.
    pub(super) fn discard(&mut self, queue_key: QueueKey, position: Position) {
        self.record_removal(queue_key, position, Removal::Discarded);
        if let Some(queue) = self.queues.get_mut(&queue_key)
            && queue.get(position).is_some()
        {
            queue.counts.discarded += 1;
            self.take_out(queue_key, position);
        }
    }

    /// Removes a message from memory, from the time index and from the reservations. The caller counts it.
    pub(super) fn take_out(&mut self, queue_key: QueueKey, position: Position) {
        if let Some(entry) = self.remove_entry(queue_key, position) {
            self.memory.release(entry.held);
        }
    }

    /// The same for a message that is still needed; its memory stays taken.
    pub(super) fn remove_entry(&mut self, queue_key: QueueKey, position: Position) -> Option<Entry> {
        let queue = self.queues.get_mut(&queue_key)?;
        let reserved_by = queue.reserved_by(position);
        let entry = queue.remove(position)?;
        if let Some(expiration) = entry.held.expiration() {
            self.timers.remove(expiration, Timer::Expiry(queue_key, position));
        }
        if entry.not_before > self.now {
            self.timers.remove(entry.not_before, Timer::Redelivery(queue_key, position));
        }
        if let Some(key) = reserved_by
            && let Some(subscription) = self.subscriptions.get_mut(&key)
        {
            subscription.reserved.remove(&position);
            self.attend(key);
        }
        if entry.held.body().is_none() {
            // Others may have stood behind it while it was to be read back.
            self.forget_load(queue_key, entry.held.id);
            self.look_at(queue_key);
        }
        Some(entry)
    }

    /// The name by which the store knows a message; `None` when it does not.
    pub(super) fn stored(&self, queue_key: QueueKey, position: Position) -> Option<StoredId> {
        let queue = self.queues.get(&queue_key)?;
        let held = &queue.get(position)?.held;
        queue.stores(held).then_some(held.id)
    }

    /// Has the store remove a message when a transaction commits; false for one that it does not know.
    pub(super) fn stage_removal(
        &mut self,
        queue_key: QueueKey,
        position: Position,
        transaction: StoreTransaction,
    ) -> bool {
        let Some(stored) = self.stored(queue_key, position) else { return false };
        let (reason, transaction) = (Removal::Acknowledged, Some(transaction));
        self.record(StoreOperation::Remove { stored, reason, transaction });
        true
    }

    pub(super) fn record_removal(&mut self, queue_key: QueueKey, position: Position, reason: Removal) {
        if let Some(stored) = self.stored(queue_key, position) {
            self.record(StoreOperation::Remove { stored, reason, transaction: None });
        }
    }

    pub(super) fn record_delivery_state(&mut self, queue_key: QueueKey, position: Position) {
        let Some(stored) = self.stored(queue_key, position) else { return };
        let Some(entry) = self.queues.get(&queue_key).and_then(|queue| queue.get(position)) else { return };
        let not_before = Some(entry.not_before).filter(|not_before: &Timestamp| *not_before > self.now);
        let state = DeliveryState {
            failed_deliveries: entry.failed_deliveries,
            not_before,
            since: not_before.map_or(Timestamp(0), |_| self.now),
            conversion_failed: entry.conversion_failed,
        };
        self.record(StoreOperation::DeliveryState { stored, state });
    }
}
