//! What each consumer has in its hands, noted for the case that the process dies now.
//!
//! A consumer has a slot, from the first stored message that it is handed until it is gone. The slot says which one it was
//! handed last, and what number that delivery has. What it says is left there when it is harmless: of a message that is
//! gone, or whose count has risen as far meanwhile, recovery makes nothing. It is cleared only when recovery would make
//! more of it than was: the message came back uncounted, or a transaction was prepared that settles it.
//!
//! A consumer that receives several messages before it settles them may end the process over the first, which the slot does not
//! name. So, once the last has failed before and the same seems to happen again, a second slot says which was the oldest.
//! It is one behind, so that a message that ends the process as it is handed over is a dead letter before those which it was
//! received with.
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
    let slot = subscription.slots.last.index(slots);
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

/// The slots of a subscription.
#[derive(Debug, Default)]
pub(super) struct OwnSlots {
    last: OwnSlot,
    oldest: OwnSlot,
}

/// A slot of a subscription, which it has from its first use on, and what that says.
#[derive(Debug, Default)]
struct OwnSlot {
    index: Option<AttemptSlot>,
    noted: Option<Noted>,
}

/// Which slot of a subscription.
#[derive(Clone, Copy, Debug)]
enum Which {
    /// That of the message which it was handed last.
    Last,
    /// That of the oldest which it was handed and has not settled.
    Oldest,
}

/// What a slot says.
#[derive(Clone, Copy, Debug)]
struct Noted {
    number: u64,
    position: Position,
    attempt: Attempt,
}

impl OwnSlots {
    fn get_mut(&mut self, which: Which) -> &mut OwnSlot {
        match which {
            Which::Last => &mut self.last,
            Which::Oldest => &mut self.oldest,
        }
    }

    fn noted(&self, which: Which) -> Option<Noted> {
        match which {
            Which::Last => self.last.noted,
            Which::Oldest => self.oldest.noted,
        }
    }
}

impl OwnSlot {
    fn index(&mut self, slots: &mut Slots) -> AttemptSlot {
        *self.index.get_or_insert_with(|| slots.take())
    }
}

impl Which {
    const ALL: [Self; 2] = [Self::Last, Self::Oldest];
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
            for which in Which::ALL {
                let Some(subscription) = self.subscriptions.get(&key) else { continue };
                let said = subscription.slots.noted(which).map(|noted| noted.attempt);
                match self.in_hands(subscription, which) {
                    Some(noted) if said != Some(noted.attempt) => self.write_slot(key, which, Some(noted)),
                    Some(_) => {}
                    None => self.clear_if_untrue(key, which),
                }
            }
        }
    }

    /// What was handed over last has been noted already, by its mark.
    fn slot_was_noted(&mut self, key: SubscriptionKey) {
        let Some(subscription) = self.subscriptions.get(&key) else { return };
        let Some(noted) = self.in_hands(subscription, Which::Last) else { return };
        if let Some(subscription) = self.subscriptions.get_mut(&key) {
            subscription.slots.last.noted = Some(noted);
        }
        if is_again(&noted) {
            self.look_at_slot(key);
        }
    }

    /// A stored message that the application was handed and has not settled. One that a prepared transaction settles is none:
    /// whatever the outcome, that says by itself what counts.
    fn in_hands(&self, subscription: &Subscription, which: Which) -> Option<Noted> {
        let last = self.noted_as(subscription, subscription.handed_over_last()?);
        match which {
            Which::Last => last,
            Which::Oldest => {
                let last = last.filter(is_again)?;
                let oldest = self.noted_as(subscription, subscription.handed_over_first()?);
                oldest.filter(|oldest| oldest.number != last.number)
            }
        }
    }

    fn noted_as(&self, subscription: &Subscription, (number, delivered): (u64, &Delivered)) -> Option<Noted> {
        let Delivered { position, ref locked_by, .. } = *delivered;
        if locked_by.as_ref().is_some_and(|transaction| self.is_past_undoing(transaction)) {
            return None;
        }
        let queue = self.queues.get(&subscription.queue)?;
        let entry = queue.get(position).filter(|entry| queue.stores(&entry.held))?;
        Some(Noted { number, position, attempt: next_attempt(entry) })
    }

    fn write_slot(&mut self, key: SubscriptionKey, which: Which, noted: Option<Noted>) {
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return };
        let handed_over = subscription.handed_over();
        let own = subscription.slots.get_mut(which);
        own.noted = noted;
        let (slot, attempt) = (own.index(&mut self.slots), noted.map(|noted| noted.attempt));
        self.effects.attempts.push(SlotNote { slot, attempt, subscription: key, handed_over });
    }

    /// Clears a slot of which recovery would make more than was.
    fn clear_if_untrue(&mut self, key: SubscriptionKey, which: Which) {
        let Some(subscription) = self.subscriptions.get(&key) else { return };
        let Some(Noted { number, position, attempt }) = subscription.slots.noted(which) else { return };
        if subscription.has(number) {
            return;
        }
        let entry =
            self.queues.get(&subscription.queue).and_then(|queue| queue.find(position, attempt.stored));
        if entry.is_some_and(|entry| entry.failed_deliveries < attempt.delivery) {
            self.write_slot(key, which, None);
        }
    }

    /// Clears a slot that speaks of a message which a transaction settles that is being prepared, or which ends uncounted: for want of
    /// room for its dead letter it may be there again.
    pub(super) fn clear_slot_of(&mut self, key: SubscriptionKey, position: Position) {
        for which in Which::ALL {
            let subscription = self.subscriptions.get(&key);
            let noted = subscription.and_then(|subscription| subscription.slots.noted(which));
            if noted.is_some_and(|noted| noted.position == position) {
                self.write_slot(key, which, None);
            }
        }
    }

    /// Frees the slots of a subscription that is gone.
    pub(super) fn free_slots(&mut self, key: SubscriptionKey) {
        for which in Which::ALL {
            self.clear_if_untrue(key, which);
            let subscription = self.subscriptions.get_mut(&key);
            if let Some(slot) =
                subscription.and_then(|subscription| subscription.slots.get_mut(which).index.take())
            {
                self.slots.free.insert(slot);
            }
        }
    }
}

/// Whether the message of this attempt failed before.
fn is_again(noted: &Noted) -> bool {
    noted.attempt.delivery > 1
}
