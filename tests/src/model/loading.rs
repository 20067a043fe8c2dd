//! Bodies that are with the store only. Which these are is the machine's choice; what follows from it is judged.

use std::sync::Arc;

use corriere_broker::machine::{Effects, Ticket};
use corriere_broker::store::{StoreError, StoreOperation, StoredId};
use corriere_core::Message;
use corriere_core::provider::Credit;

use super::entry::{Death, Place, SubscriptionKey};
use super::session::{Entering, Origin};
use super::{Answer, Judgement, Model, violation};

impl Model {
    /// Takes note of what is being read back.
    pub(super) fn note_loads(&mut self, effects: &Effects) -> Judgement {
        for stored in &effects.load {
            if !self.can_load {
                violation!("{stored:?} is read back although every body is here");
            }
            if self.loading.contains(stored) && !self.turned_back.contains(stored) {
                violation!("{stored:?} is read back twice at once");
            }
            if !self.durable.has(*stored) {
                violation!("{stored:?} is read back and not stored");
            }
            self.loading.push(*stored);
        }
        // Up to 64 for each queue that the histories have, one for each consumer, and 16 for each browser.
        if self.loading.len() > 300 + 16 * self.browsers.len() {
            violation!("{} messages are read back at once", self.loading.len());
        }
        for aside in &effects.set_aside {
            if !self.entries.iter().any(|entry| entry.stored == Some(aside.stored) && entry.is_aside) {
                violation!("{aside:?} is set aside for no reason");
            }
        }
        Ok(())
    }

    /// Bodies have come, or cannot come.
    pub(super) fn loaded(&mut self, messages: &[(StoredId, Result<Arc<Message>, StoreError>)]) {
        for (stored, outcome) in messages {
            if !self.loading.contains(stored) {
                // It has come already.
                continue;
            }
            self.loading.retain(|loading| loading != stored);
            let Some(index) = self.entries.iter().position(|entry| entry.stored == Some(*stored)) else {
                continue;
            };
            let entry = &mut self.entries[index];
            if outcome.is_err() {
                entry.is_aside = true;
                entry.reserved_for = None;
                self.set_aside += 1;
            } else if let Some((death, deliveries)) = entry.doomed.take() {
                self.bury(index, death, deliveries);
            }
            self.loaded += 1;
        }
    }

    /// A new subscription and a drain are confirmed when all that there was has been delivered, bodies that are being read
    /// back included.
    pub(super) fn owe_when_served(&mut self, key: SubscriptionKey, ticket: Ticket) {
        self.tickets.hold(key.0, ticket);
        self.unserved.push((key, ticket));
    }

    /// Deliveries were made: those who waited for no more than these are to be told.
    pub(super) fn owe_served(&mut self) {
        for (key, ticket) in std::mem::take(&mut self.unserved) {
            let waits = self.subscription(&key).is_some_and(|subscription| {
                let is_drained = subscription.credit == Credit::Explicit && subscription.draining == 0;
                subscription.is_open
                    && !is_drained
                    && self.has_room(subscription)
                    && self.next_for(subscription).is_some_and(|index| self.waits_for_bodies(index))
            });
            if waits {
                self.unserved.push((key, ticket));
                continue;
            }
            self.tickets.owe_if_heard(ticket, &Answer::Done);
            if let Some(subscription) = self.subscription_mut(&key) {
                subscription.granted -= std::mem::take(&mut subscription.draining);
            }
        }
    }

    /// Whether the body of an entry, or of one that has to go before it, is being read back.
    pub(super) fn is_loading(&self, index: usize) -> bool {
        self.entries[index].stored.is_some_and(|stored| self.loading.contains(&stored))
    }

    /// Whether an entry may have to wait for a body: its own, or those of its queue of which so many are being read back
    /// that its own has to wait for its turn.
    pub(super) fn waits_for_bodies(&self, index: usize) -> bool {
        let place = &self.entries[index].place;
        (0..self.entries.len()).any(|other| self.entries[other].place == *place && self.is_loading(other))
    }

    /// What was to die and is in no batch has to be read back first: it is as if it were not there.
    pub(super) fn is_doomed(&mut self, entering: usize) -> bool {
        let is_stored = self.entering[entering]
            .was
            .as_ref()
            .is_some_and(|entry| self.can_load && entry.stored.is_some() && !entry.is_aside);
        if !is_stored || !matches!(self.entering[entering].origin, Origin::Moved(_)) {
            return false;
        }
        let entering = self.entering.remove(entering);
        self.doomed += 1;
        self.unbury(entering)
    }

    /// The store did not take a dead letter: the message is where it was, if the store has it there.
    pub(super) fn put_off(&mut self, mut moved: Entering) {
        self.put_offs += 1;
        if let Some(entry) = moved.was.as_mut().filter(|entry| entry.is_stored()) {
            entry.not_before = None;
            entry.reserved_for = None;
            entry.failed = entry.doomed.as_ref().map_or(entry.failed, |(_, deliveries)| *deliveries);
            self.unbury(moved);
        } else {
            self.entering.push(moved);
        }
    }

    /// What was put off dies when the machine tries again, which is for it to choose.
    pub(super) fn bury_what_was_put_off(&mut self, effects: &Effects) {
        for operation in effects.store.iter().flat_map(|batch| &batch.operations) {
            let StoreOperation::Remove { stored, transaction: None, .. } = operation else { continue };
            let Some(index) = self.entries.iter().position(|entry| entry.stored == Some(*stored)) else {
                continue;
            };
            if let Some((death, deliveries)) = self.entries[index].doomed.take() {
                self.bury(index, death, deliveries);
            }
        }
    }

    fn unbury(&mut self, entering: Entering) -> bool {
        let Some(entry) = entering.was else { return false };
        if !self.is_there(&entry.place) {
            // Its subscription was removed meanwhile.
            return true;
        }
        let counts = self.count(entry.place.destination());
        if matches!(entry.doomed, Some((Death::Expired, _))) {
            counts.expired -= 1;
        } else {
            counts.dead_lettered -= 1;
        }
        self.entries.push(*entry);
        true
    }

    /// What a restart brought back, and what is past the limit of who would get it, dies instead: the process of its consumer
    /// ended with it.
    pub(super) fn bury_what_killed_its_process(&mut self, effects: &Effects) {
        for operation in effects.store.iter().flat_map(|batch| &batch.operations) {
            let StoreOperation::Remove { stored, transaction: None, .. } = operation else { continue };
            let Some(index) = self.entries.iter().position(|entry| entry.stored == Some(*stored)) else {
                continue;
            };
            let entry = &self.entries[index];
            let is_suspect = entry.is_recovered && entry.is_lying() && !self.holds_dead_letters(&entry.place);
            let place: &Place = &entry.place;
            let is_past_limit = self.subscriptions.iter().any(|subscription| {
                subscription.is_open
                    && subscription.place == *place
                    && subscription.policy.is_exhausted(entry.failed)
                    && self.has_room(subscription)
            });
            if is_suspect && is_past_limit {
                let failed = entry.failed;
                self.bury(index, Death::Returned, failed);
                self.killers += 1;
            }
        }
    }

    /// How often the store had no room for a dead letter.
    #[must_use]
    pub fn put_offs(&self) -> u64 {
        self.put_offs
    }

    /// How often bodies were read back, messages set aside, ends put off until a body was there, messages dead-lettered that
    /// had ended a process, and sends recognised that were sent before.
    #[must_use]
    pub fn loads(&self) -> [u64; 5] {
        [self.loaded, self.set_aside, self.doomed, self.killers, self.resent]
    }
}
