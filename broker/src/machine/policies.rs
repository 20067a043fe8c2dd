//! What holds for a destination: its policy over the broker's settings.
//!
//! - A queue, and the private one of a subscription to a topic, takes what holds for it when it is made.
//! - The prefetch of a policy is for subscriptions whose client left that to the broker. It is told of every window that is
//!   another one than it asked for.

use std::sync::Arc;

use corriere_core::provider::Event;
use corriere_core::{Destination, RedeliveryPolicy};

use super::Machine;
use super::sending::Target;
use super::subscription::SubscriptionKey;
use crate::policy::DestinationPolicy;
use crate::settings::{DeadLetters, Settings};

/// What holds for one destination.
#[derive(Clone, Debug, Default)]
pub(super) struct Policy {
    pub(super) redelivery: Arc<RedeliveryPolicy>,
    pub(super) prefetch: Option<u32>,
    pub(super) dead_letters: DeadLetters,
    pub(super) dead_letter_non_persistent: bool,
}

impl Settings {
    /// The most specific policy for a destination.
    fn policy_for(&self, destination: &Destination) -> Option<&DestinationPolicy> {
        let fitting = self.policies.iter().filter(|policy| policy.pattern.fits(destination));
        fitting.reduce(
            |best, other| {
                if other.pattern.is_more_specific_than(&best.pattern) { other } else { best }
            },
        )
    }

    /// Everything that is done with dead letters anywhere.
    pub(super) fn all_dead_letters(&self) -> impl Iterator<Item = DeadLetters> {
        let of_policies = self.policies.iter().filter_map(|policy| policy.dead_letters);
        of_policies.chain([self.dead_letters])
    }
}

impl Machine {
    /// What holds for a destination.
    pub(super) fn policy_of(&self, destination: &Destination) -> Policy {
        let policy = self.settings.policy_for(destination);
        Policy {
            redelivery: policy.map_or_else(
                || Arc::clone(&self.policy),
                |policy| Arc::new(policy.redelivery.over(&self.policy)),
            ),
            prefetch: policy.and_then(|policy| policy.prefetch),
            dead_letters: policy.and_then(|policy| policy.dead_letters).unwrap_or(self.settings.dead_letters),
            dead_letter_non_persistent: policy
                .and_then(|policy| policy.dead_letter_non_persistent)
                .unwrap_or(self.settings.dead_letter_non_persistent),
        }
    }

    /// Changes the prefetch of a queue's policy, and the windows of those who left that to the broker.
    pub(super) fn set_prefetch(&mut self, destination: &Destination, prefetch: u32) {
        let Some(Target::Queue(queue_key)) = self.find_target(destination) else { return };
        let Some(queue) = self.queues.get_mut(&queue_key) else { return };
        queue.policy.prefetch = Some(prefetch);
        let of_queue = self.subscriptions.iter().filter(|(_, subscription)| subscription.queue == queue_key);
        let keys: Vec<_> = of_queue.map(|(key, _)| *key).collect();
        for key in keys {
            self.adopt_prefetch(key);
            self.attend(key);
        }
    }

    /// Gives a subscription the prefetch of its destination's policy, if its client left that to the broker.
    pub(super) fn adopt_prefetch(&mut self, key: SubscriptionKey) {
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return };
        let Some(queue) = self.queues.get(&subscription.queue) else { return };
        if let Some(prefetch) = queue.policy.prefetch
            && !subscription.is_closed
            && subscription.adopt_prefetch(prefetch)
        {
            let event = Event::WindowChanged { subscription: key.1, prefetch: prefetch.max(1) };
            self.effects.changes.push((key.0, event));
        }
    }
}
