//! Slow consumers: those that stand still by their own doing while something waits for them.
//!
//! A consumer is stalled when its window has no room, all that it lets through is in the hands of the application, and what
//! widens it is bounded. It is told of once something is ready that nobody else has room for, and again only after it had
//! room. In a window without such a bound, and with credit that is granted, nobody stalls.

use corriere_core::provider::Event;

use super::Machine;
use super::queue::QueueKey;
use super::subscription::SubscriptionKey;

impl Machine {
    /// Takes note of whether a subscription is stalled, after its window or what is in it has changed.
    pub(super) fn note_stall(&mut self, key: SubscriptionKey) {
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return };
        let Some(queue) = self.queues.get_mut(&subscription.queue) else { return };
        if subscription.has_room() {
            subscription.is_told_slow = false;
        }
        if subscription.is_closed || subscription.is_told_slow || subscription.stalled().is_none() {
            queue.stalled.remove(&key);
        } else if queue.stalled.insert(key) || !subscription.reserved.is_empty() {
            let queue_key = subscription.queue;
            self.look_at(queue_key);
        }
    }

    /// Tells those of their stall for whom something waits.
    pub(super) fn tell_slow(&mut self, queue_key: QueueKey) {
        let Some(queue) = self.queues.get_mut(&queue_key) else { return };
        if queue.stalled.is_empty() {
            return;
        }
        let waits_for_anyone = queue.has_ready() && queue.takers().next().is_none();
        for key in std::mem::take(&mut queue.stalled) {
            let Some(subscription) = self.subscriptions.get_mut(&key) else { continue };
            let own = subscription.reserved.first().and_then(|position| queue.get(*position));
            let waits_for_it = own.map_or(waits_for_anyone, |entry| entry.not_before <= self.now);
            match subscription.stalled() {
                Some(unacknowledged) if waits_for_it => {
                    subscription.is_told_slow = true;
                    let destination = queue.destination.clone();
                    let event = Event::SlowConsumer { subscription: key.1, destination, unacknowledged };
                    self.effects.slow_consumers.push((key.0, event));
                }
                Some(_) => {
                    queue.stalled.insert(key);
                }
                None => {}
            }
        }
    }
}
