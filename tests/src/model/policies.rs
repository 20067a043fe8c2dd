//! What holds for a destination: the most specific policy that fits it, and the broker's settings where that says nothing.

use corriere_broker::{DeadLetters, DestinationPolicy};
use corriere_core::{Destination, RedeliveryPolicy};

use super::Model;
use super::entry::Place;

impl Model {
    fn policy_for(&self, destination: &Destination) -> Option<&DestinationPolicy> {
        let fitting = || self.settings.policies.iter().filter(|policy| policy.pattern.fits(destination));
        fitting().find(|policy| {
            fitting().all(|other| {
                other.pattern == policy.pattern || policy.pattern.is_more_specific_than(&other.pattern)
            })
        })
    }

    /// How many subscriptions were redelivered to as a policy has it, and how many messages died of which one says what becomes of them.
    #[must_use]
    pub fn by_policy(&self) -> [u64; 2] {
        self.by_policy
    }

    /// The redelivery policy of subscriptions that bring none.
    pub(super) fn redelivery_for(&self, destination: &Destination) -> RedeliveryPolicy {
        let broker = &self.settings.redelivery;
        self.policy_for(destination).map_or_else(|| broker.clone(), |policy| policy.redelivery.over(broker))
    }

    /// The prefetch of those who left theirs to the broker; what an operator has said goes before the policy.
    pub(super) fn prefetch_for(&self, destination: &Destination) -> Option<u32> {
        let said = self.prefetches.iter().rev().find(|(queue, _)| queue == destination);
        said.map(|(_, prefetch)| *prefetch).or_else(|| self.policy_for(destination)?.prefetch)
    }

    pub(super) fn dead_letters_of(&self, source: &Destination) -> DeadLetters {
        let policy = self.policy_for(source).and_then(|policy| policy.dead_letters);
        policy.unwrap_or(self.settings.dead_letters)
    }

    /// Whether what is not persistent becomes a dead letter too.
    pub(super) fn keeps_what_is_not_persistent(&self, source: &Destination) -> bool {
        let policy = self.policy_for(source).and_then(|policy| policy.dead_letter_non_persistent);
        policy.unwrap_or(self.settings.dead_letter_non_persistent)
    }

    /// Whether dead letters lie here, which are never dead-lettered again: a queue of that name, if any go to such queues.
    pub(super) fn holds_dead_letters(&self, place: &Place) -> bool {
        let Place::Queue(queue) = place else { return false };
        let of_policies = self.settings.policies.iter().filter_map(|policy| policy.dead_letters);
        let mut all = of_policies.chain([self.settings.dead_letters]);
        !queue.is_temporary()
            && match queue.name() {
                "ActiveMQ.DLQ" => all.any(|dead_letters| dead_letters != DeadLetters::Discard),
                name => {
                    name.starts_with("DLQ.")
                        && all.any(|dead_letters| dead_letters == DeadLetters::Individual)
                }
            }
    }
}
