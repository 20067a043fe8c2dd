//! What each consumer has in its hands, noted for the case that the process dies now.
//!
//! A consumer has a slot, from the first stored message that it is handed until it is gone. The slot says which one it was
//! handed last, and what number that delivery has. What it says is left there when it is harmless: of a message that is
//! gone, or whose count has risen as far meanwhile, recovery makes nothing. It is cleared only when recovery would make
//! more of it than was: the message came back uncounted, or a transaction was prepared that settles it.
//!
//! A client that is in this process hands over by the [`Mark`] of the delivery, which is noted by its own call, while the
//! machine is told later. What the machine has written in between says up to which hand-over it knows ([`SlotNote`]), and is
//! not written over a later one.

use std::collections::BTreeSet;

use corriere_core::provider::{Mark, ProviderError};

use super::Machine;
use super::queue::{Entry, Position};
use super::subscription::{Delivered, Subscription, SubscriptionKey};
use crate::store::{Attempt, AttemptSlot, StoredId};

/// What a slot is to say from now on, unless its consumer has noted a later hand-over there itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotNote {
    /// The slot.
    pub slot: AttemptSlot,
    /// What it is to say; `None` clears it.
    pub attempt: Option<Attempt>,
    /// Whose slot it is.
    pub subscription: SubscriptionKey,
    /// The last delivery of which the machine knows that it was handed over.
    pub handed_over: u64,
}

/// The attempt that a delivery with this mark is, and where it is noted.
pub(crate) fn attempt_of(mark: Mark) -> (AttemptSlot, Attempt) {
    (AttemptSlot(mark.slot), Attempt { stored: StoredId(mark.message), delivery: mark.delivery })
}

/// The mark of a delivery of a stored message.
pub(super) fn mark_of(slots: &mut Slots, subscription: &mut Subscription, entry: &Entry) -> Mark {
    let slot = *subscription.slot.get_or_insert_with(|| slots.take());
    let Attempt { stored, delivery } = next_attempt(entry);
    Mark { slot: slot.0, message: stored.0, delivery }
}

fn next_attempt(entry: &Entry) -> Attempt {
    Attempt { stored: entry.held.id, delivery: entry.failed_deliveries.saturating_add(1) }
}

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
    /// The application has what was delivered up to `number`. Of what a browser shows that says nothing.
    pub(super) fn handed_over(
        &mut self,
        key: SubscriptionKey,
        number: u64,
        mark: Option<Mark>,
    ) -> Result<(), ProviderError> {
        if self.browsers.contains_key(&key) {
            return Ok(());
        }
        self.change_subscription(key, |subscription| subscription.hand_over(number))?;
        match mark {
            Some(_) => self.slot_was_noted(key),
            None => self.look_at_slot(key),
        }
        Ok(())
    }

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
            match self.in_hands(subscription) {
                Some(noted) if subscription.noted.map(|noted| noted.attempt) != Some(noted.attempt) => {
                    self.write_slot(key, Some(noted));
                }
                Some(_) => {}
                None => self.clear_if_untrue(key),
            }
        }
    }

    /// What was handed over last has been noted already, by its mark.
    fn slot_was_noted(&mut self, key: SubscriptionKey) {
        let Some(subscription) = self.subscriptions.get(&key) else { return };
        let Some(noted) = self.in_hands(subscription) else { return };
        if let Some(subscription) = self.subscriptions.get_mut(&key) {
            subscription.noted = Some(noted);
        }
    }

    /// The stored message that the application was handed last and has not settled. One that a prepared transaction settles is none:
    /// whatever the outcome, that says by itself what counts.
    fn in_hands(&self, subscription: &Subscription) -> Option<Noted> {
        let (number, &Delivered { position, ref locked_by, .. }) = subscription.handed_over_last()?;
        if locked_by.as_ref().is_some_and(|transaction| self.is_past_undoing(transaction)) {
            return None;
        }
        let queue = self.queues.get(&subscription.queue)?;
        let entry = queue.get(position).filter(|entry| queue.stores(&entry.held))?;
        Some(Noted { number, position, attempt: next_attempt(entry) })
    }

    fn write_slot(&mut self, key: SubscriptionKey, noted: Option<Noted>) {
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return };
        subscription.noted = noted;
        let slot = *subscription.slot.get_or_insert_with(|| self.slots.take());
        let (attempt, handed_over) = (noted.map(|noted| noted.attempt), subscription.handed_over());
        self.effects.attempts.push(SlotNote { slot, attempt, subscription: key, handed_over });
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

    /// Clears a slot that speaks of a message which a transaction settles that is being prepared, or which ends uncounted: for want of
    /// room for its dead letter it may be there again.
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
