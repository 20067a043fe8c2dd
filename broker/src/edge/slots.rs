//! What consumers have in their hands, noted in the store by those who hand it over.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use corriere_core::panic::caught;
use corriere_core::provider::Command;

use super::Edge;
use crate::machine::{ConnectionKey, SlotNote, SubscriptionKey, attempt_of};
use crate::store::{Attempt, AttemptSlot};

/// The last hand-over that a client's own call has noted in each slot. Locked while a slot is written.
#[derive(Debug, Default)]
pub(super) struct Slots(Mutex<BTreeMap<AttemptSlot, (SubscriptionKey, u64)>>);

impl Edge {
    /// At once, and not in its turn: who tells of a hand-over goes on to run what may kill the process.
    pub(super) fn note_hand_over(&self, connection: ConnectionKey, command: &Command) {
        if let Command::HandedOver { subscription, number, mark: Some(mark) } = command {
            let (slot, attempt) = attempt_of(*mark);
            let mut noted = self.slots.0.lock().unwrap_or_else(PoisonError::into_inner);
            noted.insert(slot, ((connection, *subscription), *number));
            self.write_slot(slot, Some(attempt));
        }
    }

    /// Writes what the machine wants a slot to say, unless its consumer has been handed more meanwhile, by a call that noted it.
    pub(super) fn note_attempt(&self, note: &SlotNote) {
        let noted = self.slots.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_late = noted
            .get(&note.slot)
            .is_some_and(|(key, number)| *key == note.subscription && *number > note.handed_over);
        if !is_late {
            self.write_slot(note.slot, note.attempt);
        }
    }

    fn write_slot(&self, slot: AttemptSlot, attempt: Option<Attempt>) {
        if let Err(panic) = caught(|| self.store.note_attempt(slot, attempt)) {
            self.store_panicked(&panic);
        }
    }
}
