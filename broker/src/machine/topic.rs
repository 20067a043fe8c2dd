//! Topics: each subscription is a private queue that is bound to the topic. Those of durable ones are in `durable`.

use std::collections::BTreeMap;
use std::sync::Arc;

use corriere_core::{Destination, Timestamp};

use super::Machine;
use super::durable::Gets;
use super::effects::ConnectionKey;
use super::memory::Held;
use super::queue::{Queue, QueueKey};
use super::subscription::{Subscription, SubscriptionKey};
use crate::counts::Counts;
use crate::store::Arrival;

/// A topic, numbered in the order of their making and never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TopicKey(pub(super) u64);

/// A topic and the private queues of its subscriptions.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) destination: Destination,
    bound: BTreeMap<SubscriptionKey, QueueKey>,
    /// Those of durable ones.
    pub(super) durable: BTreeMap<QueueKey, Gets>,
    /// The counts of subscriptions that are gone, and of what comes to none.
    pub(super) ended: Counts,
}

impl Topic {
    pub(super) fn new(destination: Destination) -> Self {
        Self { destination, bound: BTreeMap::new(), durable: BTreeMap::new(), ended: Counts::default() }
    }
}

impl Machine {
    /// Makes the private queue of a subscription.
    pub(super) fn bind(&mut self, topic: TopicKey, subscription: SubscriptionKey) -> Option<QueueKey> {
        let destination = self.topics.get(&topic)?.destination.clone();
        let queue = self.add_queue(Queue::new(destination, Some(topic), false));
        self.topics.get_mut(&topic)?.bound.insert(subscription, queue);
        Some(queue)
    }

    /// Makes a topic.
    pub(super) fn add_topic(&mut self, destination: Destination) -> TopicKey {
        let key = TopicKey(self.next_topic);
        self.next_topic += 1;
        self.topics.insert(key, Topic::new(destination));
        key
    }

    /// Forgets a topic, and says which private queues its subscriptions have.
    pub(super) fn remove_topic(&mut self, topic: TopicKey) -> Vec<QueueKey> {
        self.topics.remove(&topic).map_or_else(Vec::new, |topic| topic.bound.into_values().collect())
    }

    /// Stops new messages from coming to the private queue of a subscription and discards what waits there.
    pub(super) fn unbind(&mut self, topic: TopicKey, subscription: SubscriptionKey) {
        let bound = self.topics.get(&topic).and_then(|topic| topic.bound.get(&subscription));
        let Some(queue_key) = bound.copied() else { return };
        let Some(queue) = self.queues.get_mut(&queue_key) else { return };
        queue.is_closing = true;
        let delivered = self.subscriptions.get(&subscription).into_iter().flat_map(Subscription::positions);
        let waiting = queue.split_off_waiting(delivered);
        self.clear_away(queue_key, waiting);
    }

    /// Removes a private queue of which nothing is left.
    pub(super) fn remove_private_queue(&mut self, topic: TopicKey, subscription: SubscriptionKey) {
        let Some(topic) = self.topics.get_mut(&topic) else { return };
        let Some(queue_key) = topic.bound.remove(&subscription) else { return };
        if let Some(queue) = self.queues.remove(&queue_key) {
            topic.ended.add(&queue.counts);
        }
    }

    /// Whether anybody is subscribed to a topic, so that what is published there now comes to somebody.
    pub(super) fn has_subscribers(&self, topic: TopicKey) -> bool {
        let Some(topic) = self.topics.get(&topic) else { return false };
        let mut bound = topic.bound.keys().filter_map(|key| self.subscriptions.get(key));
        let mut durable = topic.durable.values();
        durable.any(|gets| !matches!(gets, Gets::Nothing))
            || bound.any(|subscription| !subscription.is_closed)
    }

    /// Puts a message into the private queue of every subscription that is not durable. Of a topic that is gone there is none.
    pub(super) fn publish(
        &mut self,
        topic: TopicKey,
        held: Arc<Held>,
        arrival: Arrival,
        origin: Option<ConnectionKey>,
    ) {
        let bound = self.topics.get(&topic).into_iter().flat_map(|topic| &topic.bound);
        let bound: Vec<_> = bound.map(|(key, queue)| (*key, *queue)).collect();
        for (subscription, queue) in bound {
            let Some(subscription_state) = self.subscriptions.get(&subscription) else { continue };
            let is_own = subscription_state.no_local && origin == Some(subscription.0);
            if !subscription_state.is_closed && !is_own {
                self.enqueue(queue, Arc::clone(&held), arrival);
            }
        }
        self.memory.release(held);
    }

    /// How many messages of all its subscriptions are not to be delivered before a moment after `now`.
    pub(super) fn topic_delayed(&self, topic: TopicKey, now: Timestamp) -> u64 {
        self.private_queues(topic).map(|queue| queue.delayed(now)).sum()
    }

    /// The counts of all subscriptions of a topic together.
    pub(super) fn topic_counts(&self, topic: TopicKey) -> Counts {
        let mut counts = self.topics.get(&topic).map_or_else(Counts::default, |topic| topic.ended);
        for queue in self.private_queues(topic) {
            counts.add(&queue.counts);
        }
        counts
    }

    fn private_queues(&self, topic: TopicKey) -> impl Iterator<Item = &Queue> {
        let topic = self.topics.get(&topic).into_iter();
        let bound = topic.flat_map(|topic| topic.bound.values().chain(topic.durable.keys()));
        bound.filter_map(|queue| self.queues.get(queue))
    }
}
