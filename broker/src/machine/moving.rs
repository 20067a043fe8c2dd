//! The way of a message to the dead letters, which the store may have no room for.
//!
//! A message and its dead letter change places in one batch of the store, which has nothing else in it. When that is
//! refused, the message is where it was, pending but doomed, and it is tried again: when there is room, and after a while.
//!
//! What an operator moves (`management`) goes the same way, but is not doomed: it is where it was, as it was.

use std::sync::Arc;
use std::time::Duration;

use corriere_core::Message;
use corriere_core::provider::Cause;

use super::Machine;
use super::memory::Held;
use super::queue::{Entry, Place, Position, QueueKey};
use super::recording::OnStored;
use super::sending::Target;
use super::subscription::SubscriptionKey;
use super::time_index::Timer;
use crate::store::{Arrival, Removal, StoreOperation};

/// How long it is before what there was no room for is tried again, whatever the store says.
const AGAIN: Duration = Duration::from_secs(5);

/// Messages on their way to the dead letters.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// The batches of this step, with what goes on when each is complete.
    fresh: Vec<(Vec<StoreOperation>, Vec<OnStored>)>,
    put_off: Vec<PutOff>,
    is_timed: bool,
}

#[derive(Debug)]
enum PutOff {
    /// A message that is where it was.
    Message(QueueKey, Position),
    /// A dead letter of a message that the store never had, and which is nowhere any more.
    Copy(QueueKey, Arc<Held>),
}

/// What a message was that has left its queue, until the store has its dead letter.
#[derive(Debug)]
pub(super) struct Left {
    queue: QueueKey,
    position: Position,
    /// Its body may go only where it can be read back.
    entry: Entry,
    reason: Removal,
    cause: Option<Cause>,
    /// The consumer that it was kept for.
    reserved_for: Option<SubscriptionKey>,
}

impl Moves {
    pub(super) fn fresh(&self) -> usize {
        self.fresh.len()
    }

    /// Has a batch of its own.
    pub(super) fn add(&mut self, operations: Vec<StoreOperation>, on_stored: OnStored) {
        self.fresh.push((operations, vec![on_stored]));
    }

    pub(super) fn take_fresh(&mut self) -> Vec<(Vec<StoreOperation>, Vec<OnStored>)> {
        std::mem::take(&mut self.fresh)
    }
}

impl Machine {
    /// Takes a message out that has ended, and was counted, and keeps its dead letter if there is one.
    pub(super) fn leave(
        &mut self,
        queue: QueueKey,
        position: Position,
        reason: Removal,
        copy: Option<(QueueKey, Message)>,
        cause: Option<&Cause>,
    ) {
        let Some((target, message)) = copy else {
            self.record_removal(queue, position, reason);
            self.take_out(queue, position);
            return;
        };
        let mut operations = Vec::new();
        let mut left = None;
        if let Some(stored) = self.stored(queue, position) {
            operations.push(StoreOperation::Remove { stored, reason, transaction: None });
            left = self
                .set_off(queue, position, reason)
                .map(|left| Box::new(Left { cause: cause.cloned(), ..left }));
        } else {
            self.take_out(queue, position);
        }
        let held = self.memory.hold(Arc::new(message), Target::Queue(target));
        self.bring(target, held, left, operations);
    }

    /// Takes a message out that may have to come back.
    pub(super) fn set_off(&mut self, queue: QueueKey, position: Position, reason: Removal) -> Option<Left> {
        let is_stored = self.stored(queue, position).is_some();
        let reserved_for = self.queues.get(&queue).and_then(|queue| queue.reserved_by(position));
        let mut entry = self.remove_entry(queue, position)?;
        if is_stored && self.bodies.can_load {
            self.memory.forget_body(&mut entry.held);
        }
        Some(Left { queue, position, entry, reason, cause: None, reserved_for })
    }

    /// A message is where it goes, and not where it was.
    pub(super) fn has_arrived(&mut self, left: Left) {
        self.memory.release(left.entry.held);
    }

    /// Has a message where it was that an operator could not move, to be delivered as before: to the consumer that it was kept for,
    /// if that is still there.
    pub(super) fn turn_back(&mut self, left: Left) {
        let Left { queue: queue_key, position, mut entry, reserved_for, .. } = left;
        let Some(queue) = self.queues.get_mut(&queue_key) else {
            self.memory.release(entry.held);
            return;
        };
        queue.counts.moved_out -= 1;
        if let Some(expiration) = entry.held.expiration() {
            self.timers.insert(expiration, Timer::Expiry(queue_key, position));
        }
        entry.is_loading = false;
        queue.put_back(position, entry);
        queue.put(position, Place::Ready);
        self.give_back_unseen(queue_key, position, None);
        if let Some(key) = reserved_for {
            self.keep_again(queue_key, position, key);
        }
    }

    /// Keeps a message that came back for the consumer again that it was kept for.
    fn keep_again(&mut self, queue_key: QueueKey, position: Position, key: SubscriptionKey) {
        if let Some(queue) = self.queues.get_mut(&queue_key)
            && queue.get(position).is_some()
            && let Some(subscription) = self.subscriptions.get_mut(&key)
            && subscription.queue == queue_key
            && !subscription.is_closed
        {
            queue.reserve(position, key);
            subscription.reserved.insert(position);
            self.attend(key);
        }
    }

    /// Brings a dead letter to its queue, by way of the store if that is to have it.
    fn bring(
        &mut self,
        target: QueueKey,
        held: Arc<Held>,
        left: Option<Box<Left>>,
        mut operations: Vec<StoreOperation>,
    ) {
        let Some(queue) = self.queues.get(&target) else { return };
        if queue.stores(&held)
            && let Some(message) = held.body()
        {
            operations.push(StoreOperation::Append {
                stored: held.id,
                queue: queue.destination.clone(),
                arrival: Arrival::MovedIn,
                message: Arc::clone(message),
                transaction: None,
            });
            self.moves.add(operations, OnStored::MovedIn { queue: target, held, left });
        } else {
            operations.into_iter().for_each(|operation| self.record(operation));
            self.enqueue(target, held, Arrival::MovedIn);
        }
    }

    /// The store did not take a dead letter.
    pub(super) fn put_off(&mut self, target: QueueKey, held: Arc<Held>, left: Option<Box<Left>>) {
        if let Some(left) = left {
            self.memory.release(held);
            self.put_back(*left);
        } else {
            self.moves.put_off.push(PutOff::Copy(target, held));
        }
        if !self.moves.is_timed {
            self.moves.is_timed = true;
            self.timers.insert(self.now.saturating_add(AGAIN), Timer::MoveAgain);
        }
    }

    fn put_back(&mut self, left: Left) {
        let Left { queue: queue_key, position, mut entry, reason, cause, .. } = left;
        let Some(queue) = self.queues.get_mut(&queue_key) else {
            self.memory.release(entry.held);
            return;
        };
        match reason {
            Removal::Expired => queue.counts.expired -= 1,
            _ => {
                queue.counts.dead_lettered -= 1;
                queue.totals.dead_lettered -= 1;
            }
        }
        entry.not_before = corriere_core::Timestamp(0);
        queue.put_back(position, entry);
        if !self.gives_way(queue_key)
            && let Some(entry) = self.queues.get_mut(&queue_key).and_then(|queue| queue.get_mut(position))
            && !std::mem::replace(&mut entry.is_put_off, true)
        {
            // So that the next process does not deliver it once more if this one ends before.
            self.record_delivery_state(queue_key, position);
        }
        if let Some(cause) = cause {
            self.bodies.causes.insert((queue_key, position), cause);
        }
        self.moves.put_off.push(PutOff::Message(queue_key, position));
    }

    /// Tries again what there was no room for.
    pub(super) fn move_again(&mut self) {
        self.moves.is_timed = false;
        for put_off in std::mem::take(&mut self.moves.put_off) {
            match put_off {
                PutOff::Copy(target, held) => self.bring(target, held, None, Vec::new()),
                PutOff::Message(queue_key, position) => self.die(queue_key, position),
            }
        }
    }

    /// Has a doomed message become a dead letter, once its body is here. In a queue that gives way it ends with that.
    pub(super) fn die(&mut self, queue_key: QueueKey, position: Position) {
        if self.gives_way(queue_key) {
            return;
        }
        let Some(queue) = self.queues.get_mut(&queue_key) else { return };
        match queue.get(position) {
            Some(entry) if entry.place() != Place::Doomed || entry.is_loading => {}
            Some(entry) if entry.held.body().is_some() => self.go_on(queue_key, position),
            Some(_) => {
                queue.doomed.push_back(position);
                self.look_at(queue_key);
            }
            None => {}
        }
    }
}
