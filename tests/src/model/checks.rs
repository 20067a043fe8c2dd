//! What must hold after every step, whatever happened in it.

use corriere_broker::Counts;
use corriere_broker::machine::Input;
use corriere_core::provider::Command;
use corriere_core::{Destination, Timestamp};

use super::entry::{Place, SubscriptionKey};
use super::{Judgement, Model, violation};

/// Who got how many messages of a queue since anything but a send happened to it.
#[derive(Debug)]
pub(super) struct Run {
    queue: Destination,
    taken: Vec<(SubscriptionKey, u32)>,
}

impl Run {
    pub(super) fn note(runs: &mut Vec<Self>, queue: &Destination, key: SubscriptionKey) {
        let index = runs.iter().position(|run| run.queue == *queue).unwrap_or_else(|| {
            runs.push(Self { queue: queue.clone(), taken: Vec::new() });
            runs.len() - 1
        });
        let taken = &mut runs[index].taken;
        match taken.iter_mut().find(|(other, _)| *other == key) {
            Some((_, count)) => *count += 1,
            None => taken.push((key, 1)),
        }
    }

    fn taken_by(&self, key: SubscriptionKey) -> u32 {
        self.taken.iter().find(|(other, _)| *other == key).map_or(0, |(_, count)| *count)
    }
}

impl Model {
    /// Anything but a send ends the runs in which consumers are compared.
    pub(super) fn disturb(&mut self, input: &Input) {
        let only_sends = match input {
            Input::Command { command, .. } => matches!(command, Command::Send(_) | Command::Begin { .. }),
            Input::Stored { outcome, .. } => outcome.is_ok(),
            Input::Connect { .. } => true,
            Input::Vanished { .. }
            | Input::Tick
            | Input::Loaded { .. }
            | Input::StoreFull { .. }
            | Input::StoreRoom
            | Input::Manage { .. }
            | Input::SetPrefetch { .. } => false,
        };
        if !only_sends {
            self.runs.clear();
        }
    }

    /// No message may be left lying that somebody with room could take.
    pub(super) fn check_quiescence(&self) -> Judgement {
        for subscription in self.subscriptions.iter().filter(|subscription| subscription.is_open) {
            if self.has_room(subscription)
                && let Some(index) = self.next_for(subscription)
                && !self.waits_for_bodies(index)
            {
                violation!("{} is left lying although {subscription:?} has room", self.entries[index].id());
            }
        }
        Ok(())
    }

    /// No consumer with room gets two more than another one with room.
    pub(super) fn check_fairness(&mut self) -> Judgement {
        for run in &mut self.runs {
            let place = Place::Queue(run.queue.clone());
            let consumers: Vec<_> = self
                .subscriptions
                .iter()
                .filter(|subscription| subscription.is_open && subscription.place == place)
                .collect();
            let is_held_up = |key: SubscriptionKey| {
                self.entries.iter().any(|entry| entry.holder.is_none() && entry.reserved_for == Some(key))
            };
            let counts: Vec<(SubscriptionKey, u32, bool)> = consumers
                .iter()
                .map(|subscription| {
                    let held: Vec<u64> = self
                        .entries
                        .iter()
                        .filter_map(|entry| entry.holder.as_ref())
                        .filter(|holder| holder.subscription == subscription.key)
                        .map(|holder| holder.number)
                        .collect();
                    let is_able = subscription.has_room(&held) && !is_held_up(subscription.key);
                    (subscription.key, run.taken_by(subscription.key), is_able)
                })
                .collect();
            for (greedy, more, _) in &counts {
                for (starved, less, is_able) in &counts {
                    if *is_able && *more >= less + 2 {
                        violation!(
                            "{greedy:?} got {more} of {} and {starved:?}, with room, {less}",
                            run.queue
                        );
                    }
                }
            }
            // From here on they are no longer equals.
            if counts.iter().any(|(_, _, is_able)| !is_able) {
                run.taken.clear();
            }
        }
        Ok(())
    }

    /// The machine must ask to be woken for whatever is due next.
    pub(super) fn check_wake(&self, wake_at: Option<Timestamp>) -> Judgement {
        let Some(due) = self.next_due() else { return Ok(()) };
        if wake_at.is_none_or(|wake_at| wake_at > due) {
            violation!("something is due at {due}, but the machine sleeps until {wake_at:?}");
        }
        Ok(())
    }

    /// When something happens by itself.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        let lying = || self.entries.iter().filter(|entry| entry.is_lying());
        let has_taker = |place: &Place| {
            self.subscriptions.iter().any(|subscription| subscription.is_open && subscription.place == *place)
        };
        let deadlines = self.parked.iter().map(|parked| parked.deadline);
        let delays = lying()
            .filter(|entry| has_taker(&entry.place))
            .filter_map(|entry| entry.not_before)
            .filter(|not_before| *not_before > self.now);
        let expirations = lying().filter(|entry| !self.gives_way(&entry.place));
        let expirations = expirations.filter_map(|entry| entry.message.headers().expiration);
        deadlines.chain(delays).chain(expirations).min()
    }

    /// Counts are conserved at every moment, and those of the rules whenever the store is idle.
    pub(super) fn check_counts(&self, ask: impl Fn(&Destination) -> Option<Counts>) -> Judgement {
        for (destination, expected) in &self.counts {
            let found = ask(destination).unwrap_or_default();
            if !found.are_conserved() {
                violation!("the counts of {destination} are not conserved: {found:?}");
            }
            let lying = || self.entries.iter().filter(|entry| entry.place.destination() == destination);
            let expected = Counts {
                pending: lying().count() as u64,
                in_flight: lying().filter(|entry| entry.holder.is_some()).count() as u64,
                ..*expected
            };
            if self.batches.is_empty() && found != expected {
                violation!("the counts of {destination} are {found:?}, expected {expected:?}");
            }
        }
        Ok(())
    }

    /// The end of a history in which everything was settled: nothing is left, and every receipt was answered.
    ///
    /// # Errors
    /// What is left.
    pub fn check_end(&self) -> Judgement {
        if !self.transactions.is_empty() {
            violation!("transactions never ended: {:?}", self.transactions);
        }
        if let Some(entry) = self.entries.first() {
            violation!("{} is still there: {entry:?}", entry.id());
        }
        if self.memory_used() > 0 || !self.parked.is_empty() || !self.entering.is_empty() {
            violation!("memory is still used: {} bytes", self.memory_used());
        }
        if !self.tickets.are_all_answered() {
            violation!("receipts were never answered: {:?}", self.tickets);
        }
        Ok(())
    }
}
