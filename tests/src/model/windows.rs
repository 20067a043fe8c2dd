//! Windows that change under a subscription, and consumers that stand still.

use corriere_broker::machine::{ConnectionKey, Effects, Ticket};
use corriere_core::provider::{Credit, Event};
use corriere_core::{Destination, SubscriptionId};

use super::entry::SubscriptionKey;
use super::session::Subscription;
use super::{Answer, Judgement, Model, violation};

impl Model {
    /// How often a policy gave a new subscription another window than it asked for, an operator changed that of one, its client
    /// did, and a consumer was told that it stands still.
    #[must_use]
    pub fn windows(&self) -> [u64; 4] {
        self.windows
    }

    /// A client chooses another window; granted credit stays what it is.
    pub(super) fn change_window(
        &mut self,
        connection: ConnectionKey,
        ticket: Ticket,
        subscription: SubscriptionId,
        window: Credit,
    ) {
        let key = (connection, subscription);
        let Some(subscription) = self.open_subscription_mut(&key) else {
            return self.tickets.owe(connection, ticket, Answer::Unknown);
        };
        if subscription.credit != Credit::Explicit {
            subscription.credit = window;
            subscription.has_default_credit = false;
            self.windows[2] += 1;
        }
        self.owe_when_served(key, ticket);
    }

    /// An operator changes the prefetch of those who left theirs to the broker.
    pub(super) fn set_prefetch(&mut self, queue: &Destination, prefetch: u32) {
        self.prefetches.push((queue.clone(), prefetch));
        let of_queue =
            self.subscriptions.iter().filter(|subscription| subscription.place.destination() == queue);
        for key in of_queue.map(|subscription| subscription.key).collect::<Vec<_>>() {
            self.windows[1] += u64::from(self.adopt_prefetch(&key));
        }
    }

    /// Gives a subscription the prefetch that the broker has for it, if its client left that to the broker: it is told so. The bound of
    /// what widens its window is half of that then, rounded up, if there is one. Answers whether its window is another one.
    pub(super) fn adopt_prefetch(&mut self, key: &SubscriptionKey) -> bool {
        let Some(subscription) = self.subscription(key).filter(|it| it.is_open && it.has_default_credit)
        else {
            return false;
        };
        let adopted = self.prefetch_for(subscription.place.destination()).map(|prefetch| prefetch.max(1));
        let (Some(adopted), Credit::Window { prefetch, extension }) = (adopted, subscription.credit) else {
            return false;
        };
        if prefetch == adopted {
            return false;
        }
        let extension = extension.map(|extension| if extension == 0 { 0 } else { adopted.div_ceil(2) });
        if let Some(subscription) = self.subscription_mut(key) {
            subscription.credit = Credit::Window { prefetch: adopted, extension };
        }
        self.changes.push((key.0, Event::WindowChanged { subscription: key.1, prefetch: adopted }));
        true
    }

    /// Who has room now does not stand still, and is told when he does again.
    pub(super) fn note_room(&mut self) {
        for index in 0..self.subscriptions.len() {
            if self.has_room(&self.subscriptions[index]) {
                self.subscriptions[index].is_told_slow = false;
            }
        }
    }

    /// Who stands still while something waits for him is told so, once, and nobody else is.
    pub(super) fn check_slow(&mut self, effects: &Effects) -> Judgement {
        let mut told = Vec::new();
        for (connection, event) in &effects.slow_consumers {
            let Event::SlowConsumer { subscription, destination, unacknowledged } = event else {
                violation!("{event:?} is no word of a slow consumer");
            };
            let key = (*connection, *subscription);
            let stalled = self.subscription(&key).filter(|it| it.is_open && !it.is_told_slow);
            let Some(subscription) = stalled else { violation!("{key:?} is told {event:?} for no reason") };
            if !self.waits_for(subscription)
                || self.stalled(subscription) != Some(*unacknowledged)
                || subscription.place.destination() != destination
            {
                violation!("{subscription:?} is told {event:?}, which is not so");
            }
            told.push(key);
        }
        for subscription in self.subscriptions.iter().filter(|it| it.is_open && !it.is_told_slow) {
            let is_slow = self.stalled(subscription).is_some() && self.waits_for(subscription);
            // Of a body that is being read back somebody may hear later for whom it is.
            let is_certain = !(0..self.entries.len())
                .any(|index| self.entries[index].place == subscription.place && self.is_loading(index));
            if is_slow && is_certain && !told.contains(&subscription.key) {
                violation!("{subscription:?} stands still, and is not told");
            }
        }
        for key in told {
            self.windows[3] += 1;
            if let Some(subscription) = self.subscription_mut(&key) {
                subscription.is_told_slow = true;
            }
        }
        Ok(())
    }

    /// How many messages the application has, if these alone keep it from getting more.
    fn stalled(&self, subscription: &Subscription) -> Option<u64> {
        let Credit::Window { extension: Some(1..), .. } = subscription.credit else { return None };
        let held = self.entries.iter().filter_map(|entry| entry.holder.as_ref());
        let held: Vec<u64> = held
            .filter(|holder| holder.subscription == subscription.key)
            .map(|holder| holder.number)
            .collect();
        let are_in_hands = held.iter().all(|number| subscription.has_in_hands(*number));
        (!held.is_empty() && are_in_hands && !subscription.has_room(&held)).then_some(held.len() as u64)
    }

    /// Whether something is there that only this subscription may have, or for which nobody has room.
    fn waits_for(&self, subscription: &Subscription) -> bool {
        let Some(index) = self.next_for(subscription) else { return false };
        let is_reserved = |key: SubscriptionKey| {
            self.entries.iter().any(|entry| entry.is_lying() && entry.reserved_for == Some(key))
        };
        let takes_it = |other: &&Subscription| {
            other.is_open
                && other.place == subscription.place
                && self.has_room(other)
                && !is_reserved(other.key)
        };
        self.entries[index].reserved_for.is_some() || !self.subscriptions.iter().any(|other| takes_it(&other))
    }
}
