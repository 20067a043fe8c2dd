//! What each consumer has in its hands, noted for the case that the process dies now.
//!
//! A consumer has a slot, from the first stored message that it is handed until it is gone. The slot says which one it was
//! handed last, and what number that delivery has. What it says is left there when it is harmless: of a message that is
//! gone, or whose count has risen as far meanwhile, recovery makes nothing. It is cleared only when recovery would make
//! more of it than was: the message came back uncounted, or a transaction was prepared that settles it.

use std::collections::BTreeSet;

use super::Machine;
use super::queue::Position;
use super::subscription::SubscriptionKey;
use crate::store::{Attempt, AttemptSlot};

/// Which slots are in use.
#[derive(Debug, Default)]
pub(super) struct Slots {
    free: BTreeSet<AttemptSlot>,
    made: u32,
}

/// What a slot says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noted {
    number: u64,
    position: Position,
    attempt: Attempt,
}

impl Slots {
    fn take(&mut self) -> AttemptSlot {
        self.free.pop_first().unwrap_or_else(|| {
            self.made += 1;
            AttemptSlot(self.made - 1)
        })
    }
}

impl Machine {
    /// Has the slot of a subscription looked at before the step ends.
    pub(super) fn look_at_slot(&mut self, key: SubscriptionKey) {
        if self.due_slots.last() != Some(&key) {
            self.due_slots.push(key);
        }
    }

    /// Notes what consumers were handed in this step.
    pub(super) fn note_attempts(&mut self) {
        while let Some(key) = self.due_slots.pop() {
            let Some(subscription) = self.subscriptions.get(&key) else { continue };
            let queue_key = subscription.queue;
            let in_hands = subscription.handed_over_last().and_then(|(number, position)| {
                let queue = self.queues.get(&queue_key)?;
                let entry = queue.get(position).filter(|entry| queue.stores(&entry.held))?;
                let delivery = entry.failed_deliveries.saturating_add(1);
                Some(Noted { number, position, attempt: Attempt { stored: entry.held.id, delivery } })
            });
            match in_hands {
                Some(noted) if subscription.noted.map(|noted| noted.attempt) != Some(noted.attempt) => {
                    self.write_slot(key, Some(noted));
                }
                Some(_) => {}
                None => self.clear_if_untrue(key),
            }
        }
    }

    fn write_slot(&mut self, key: SubscriptionKey, noted: Option<Noted>) {
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return };
        subscription.noted = noted;
        let slot = *subscription.slot.get_or_insert_with(|| self.slots.take());
        self.effects.attempts.push((slot, noted.map(|noted| noted.attempt)));
    }

    /// Clears a slot of which recovery would make more than was.
    pub(super) fn clear_if_untrue(&mut self, key: SubscriptionKey) {
        let Some(subscription) = self.subscriptions.get(&key) else { return };
        let Some(Noted { number, position, attempt }) = subscription.noted else { return };
        if subscription.has(number) {
            return;
        }
        let entry =
            self.queues.get(&subscription.queue).and_then(|queue| queue.find(position, attempt.stored));
        if entry.is_some_and(|entry| entry.failed_deliveries < attempt.delivery) {
            self.write_slot(key, None);
        }
    }

    /// Clears a slot that speaks of a message which a transaction settles that is being prepared: whatever
    /// its outcome, that says by itself what counts.
    pub(super) fn clear_slot_of(&mut self, key: SubscriptionKey, position: Position) {
        let noted = self.subscriptions.get(&key).and_then(|subscription| subscription.noted);
        if noted.is_some_and(|noted| noted.position == position) {
            self.write_slot(key, None);
        }
    }

    /// Frees the slot of a subscription that is gone.
    pub(super) fn free_slot(&mut self, key: SubscriptionKey) {
        self.clear_if_untrue(key);
        if let Some(slot) = self.subscriptions.get_mut(&key).and_then(|subscription| subscription.slot.take())
        {
            self.slots.free.insert(slot);
        }
    }
}
