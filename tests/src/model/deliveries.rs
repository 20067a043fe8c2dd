//! Judging dispatches: each was the next one of its subscription, within its credit.

use corriere_broker::machine::{ConnectionKey, Effects};
use corriere_core::Message;
use corriere_core::provider::{Credit, Dispatch};

use super::checks::Run;
use super::effects::check_dead_letter;
use super::entry::{DeadLetter, Entry, Holder, Place, SubscriptionKey, id_of};
use super::session::Subscription;
use super::{Judgement, Model, Violation, violation};

impl Model {
    /// The dispatches of one subscription come in order, those of several in any order that the rules allow. A
    /// message goes to one subscription only, so taking any dispatch that is right never spoils another.
    pub(super) fn check_deliveries(&mut self, effects: &Effects) -> Judgement {
        let mut left: Vec<(SubscriptionKey, &Dispatch)> = effects
            .deliveries
            .iter()
            .flat_map(|(connection, batch)| {
                batch.iter().map(|dispatch| ((*connection, dispatch.subscription), dispatch))
            })
            .filter(|(key, _)| self.browsers.iter().all(|browser| browser.key != *key))
            .collect();
        while !left.is_empty() {
            let mut objection = None;
            let mut accepted = None;
            for (index, (key, dispatch)) in left.iter().enumerate() {
                let is_first = left[..index].iter().all(|(other, _)| other != key);
                if !is_first {
                    continue;
                }
                match self.judge_dispatch(key, dispatch) {
                    Ok(entry) => {
                        accepted = Some((index, entry));
                        break;
                    }
                    Err(violation) => objection = objection.or(Some(violation)),
                }
            }
            let Some((index, entry)) = accepted else {
                return Err(objection.unwrap_or_else(|| Violation("a dispatch for nobody".to_owned())));
            };
            let (key, dispatch) = left.remove(index);
            let entry = self.take_place_of_twin(entry, &dispatch.message);
            self.hand_out(&key, dispatch, entry);
        }
        Ok(())
    }

    /// The entry that a dispatch delivers, if it may.
    fn judge_dispatch(&self, key: &SubscriptionKey, dispatch: &Dispatch) -> Result<usize, Violation> {
        let name = format!("{} for {key:?}", id_of(&dispatch.message));
        let Some(subscription) = self.subscription(key).filter(|subscription| subscription.is_open) else {
            violation!("{name} is dispatched to a subscription that is not open");
        };
        if !self.has_room(subscription) {
            violation!("{name} is dispatched beyond the credit of {subscription:?}");
        }
        let Some(mut index) = self.next_for(subscription) else {
            violation!("{name} is dispatched although nothing is ready");
        };
        if self.entries[index].id() != id_of(&dispatch.message)
            && let Some(next) =
                self.next_among(subscription, |entry| !self.just_admitted.contains(&entry.instance))
        {
            index = next;
        }
        let entry = &self.entries[index];
        if self.loading.contains(&entry.stored.unwrap_or_default()) {
            violation!("{name} is dispatched although its body is being read back");
        }
        if entry.is_recovered
            && !self.holds_dead_letters(&entry.place)
            && subscription.policy.is_exhausted(entry.failed)
        {
            violation!("{name} is dispatched although it has ended its consumer's process too often");
        }
        if entry.id() != id_of(&dispatch.message) {
            violation!("{name} is dispatched although {} at {:?} is next", entry.id(), entry.position);
        }
        if dispatch.number != subscription.delivered + 1 {
            violation!("{name} is number {}, expected {}", dispatch.number, subscription.delivered + 1);
        }
        if dispatch.epoch != subscription.epoch {
            violation!("{name} is of epoch {}, expected {}", dispatch.epoch, subscription.epoch);
        }
        if dispatch.delivery_count != entry.failed + 1 {
            violation!("{name} is delivery {}, expected {}", dispatch.delivery_count, entry.failed + 1);
        }
        match &entry.dead_letter {
            Some(letter) => {
                let judgement = check_dead_letter(&dispatch.message, letter);
                if self.twin_of(index, &dispatch.message).is_none() {
                    judgement?;
                }
            }
            None if dispatch.message != entry.message => {
                violation!("{name} was changed: {:?}", dispatch.message)
            }
            None => {}
        }
        Ok(index)
    }

    /// A message of a topic that several subscriptions lose at one moment becomes as many dead letters, of which nobody says which
    /// is first: where it is not this one that was delivered, the one that was.
    fn twin_of(&self, index: usize, copy: &Message) -> Option<usize> {
        let entry = &self.entries[index];
        let died = entry.dead_letter.as_ref()?;
        if check_dead_letter(copy, died).is_ok() {
            return None;
        }
        self.entries.iter().position(|twin| {
            let is_twin = |letter: &DeadLetter| {
                letter.at == died.at
                    && letter.source == died.source
                    && check_dead_letter(copy, letter).is_ok()
            };
            twin.is_lying()
                && twin.place == entry.place
                && twin.id() == entry.id()
                && twin.failed == entry.failed
                && twin.dead_letter.as_ref().is_some_and(is_twin)
        })
    }

    /// Has the dead letter that was delivered stand where another of the same message was expected.
    fn take_place_of_twin(&mut self, index: usize, copy: &Message) -> usize {
        let Some(twin) = self.twin_of(index, copy) else { return index };
        let expected = self.entries[index].position;
        self.entries[index].position = std::mem::replace(&mut self.entries[twin].position, expected);
        twin
    }

    /// The message that the subscription gets next, its credit apart.
    pub(super) fn next_for(&self, subscription: &Subscription) -> Option<usize> {
        self.next_among(subscription, |_| true)
    }

    fn next_among(&self, subscription: &Subscription, counts: impl Fn(&Entry) -> bool) -> Option<usize> {
        let lying = || {
            self.entries
                .iter()
                .enumerate()
                .filter(|(_, entry)| entry.is_lying() && entry.place == subscription.place && counts(entry))
        };
        // What it gave back comes first, in the old order, each when it is due; nothing new before it.
        let reserved = lying()
            .filter(|(_, entry)| entry.reserved_for == Some(subscription.key))
            .min_by_key(|(_, entry)| entry.position);
        if let Some((index, entry)) = reserved {
            return (!entry.is_delayed(self.now)).then_some(index);
        }
        lying()
            .filter(|(_, entry)| entry.reserved_for.is_none() && !entry.is_delayed(self.now))
            .min_by_key(|(_, entry)| entry.position)
            .map(|(index, _)| index)
    }

    /// Whether the subscription may be sent one more.
    pub(super) fn has_room(&self, subscription: &Subscription) -> bool {
        let held: Vec<u64> = self
            .entries
            .iter()
            .filter_map(|entry| entry.holder.as_ref())
            .filter(|holder| holder.subscription == subscription.key)
            .map(|holder| holder.number)
            .collect();
        subscription.has_room(&held)
    }

    fn hand_out(&mut self, key: &SubscriptionKey, dispatch: &Dispatch, index: usize) {
        let entry = &mut self.entries[index];
        let was_reserved = entry.reserved_for.take().is_some();
        entry.is_recovered = false;
        entry.holder =
            Some(Holder { subscription: *key, number: dispatch.number, was_reserved, locked_by: None });
        let place = entry.place.clone();
        if dispatch.delivery_count > 1 {
            self.count(place.destination()).redelivered += 1;
        }
        if let Some(subscription) = self.subscription_mut(key) {
            subscription.delivered = dispatch.number;
            if subscription.credit == Credit::Explicit {
                subscription.granted -= 1;
                subscription.draining = subscription.draining.saturating_sub(1);
            }
        }
        if let Place::Queue(queue) = place
            && !was_reserved
        {
            Run::note(&mut self.runs, &queue, *key);
        }
    }

    /// The numbers that a subscription has and that are not settled, in their order.
    #[must_use]
    pub fn unsettled(
        &self,
        connection: ConnectionKey,
        subscription: corriere_core::SubscriptionId,
    ) -> Vec<u64> {
        let key = (connection, subscription);
        let mut numbers: Vec<u64> = self
            .entries
            .iter()
            .filter(|entry| entry.is_plainly_with(&key))
            .filter_map(|entry| entry.holder.as_ref().map(|holder| holder.number))
            .collect();
        numbers.sort_unstable();
        numbers
    }
}
