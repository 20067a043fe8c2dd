//! Who has messages: queues, and durable subscriptions to topics.

use std::collections::BTreeSet;
use std::fmt;

use corriere_core::Destination;

use super::{Index, Reference, weight};
use crate::store::{
    Recipient, Recovered, RecoveredMessage, RecoveredQueue, RecoveredSubscription, StoredId,
    SubscriptionName, Totals,
};

/// A queue or a durable subscription.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holder {
    Queue(Destination),
    Subscription { name: SubscriptionName, topic: Destination, no_local: bool },
}

/// One of them, with what became of its messages.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) holder: Holder,
    pub(super) totals: Totals,
    pub(super) changed: bool,
    /// The messages of a durable subscription, with which these go. A queue never goes, and has none noted.
    messages: BTreeSet<StoredId>,
}

impl Holder {
    /// Where a message of it is.
    pub(crate) fn recipient(&self) -> Recipient {
        match self {
            Self::Queue(queue) => Recipient::Queue(queue.clone()),
            Self::Subscription { name, .. } => Recipient::Subscription(name.clone()),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue(queue) => write!(f, "{queue}"),
            Self::Subscription { name, topic, .. } => write!(f, "{name} to {topic}"),
        }
    }
}

impl Queue {
    /// A message came to it.
    pub(super) fn note(&mut self, stored: StoredId) {
        if let Holder::Subscription { .. } = self.holder {
            self.messages.insert(stored);
        }
    }

    /// A message left it.
    pub(super) fn forget(&mut self, stored: StoredId) {
        self.messages.remove(&stored);
    }

    /// Adds it to what the broker gets when it starts.
    pub(super) fn add_to(&self, recovered: &mut Recovered, messages: Vec<RecoveredMessage>) {
        let totals = self.totals;
        match self.holder.clone() {
            Holder::Queue(destination) => {
                recovered.queues.push(RecoveredQueue { destination, totals, messages });
            }
            Holder::Subscription { name: subscription, topic, no_local } => {
                let recovered = &mut recovered.subscriptions;
                recovered.push(RecoveredSubscription { subscription, topic, no_local, totals, messages });
            }
        }
    }
}

impl Index {
    /// One that the checkpoint has.
    pub(super) fn restore_queue(&mut self, number: u32, holder: Holder, totals: Totals) {
        self.weight.others += weight::of_holder(&holder);
        match &holder {
            Holder::Queue(destination) => drop(self.queue_numbers.insert(destination.clone(), number)),
            Holder::Subscription { name, .. } => {
                self.subscription_numbers.insert(name.clone(), number);
            }
        }
        self.counters.queues = self.counters.queues.max(u64::from(number) + 1);
        self.queues.insert(number, Queue { holder, totals, changed: false, messages: BTreeSet::new() });
    }

    fn add_queue(&mut self, holder: Holder) -> u32 {
        // The number of a subscription that is gone is not used again: what open transactions send to that one has it.
        let number = u32::try_from(self.counters.queues).unwrap_or(u32::MAX);
        self.restore_queue(number, holder, Totals::default());
        self.queues.entry(number).and_modify(|queue| queue.changed = true);
        number
    }

    /// The number of a queue, which is there from now on.
    pub(super) fn queue_number(&mut self, destination: &Destination) -> u32 {
        let known = self.queue_numbers.get(destination).copied();
        known.unwrap_or_else(|| self.add_queue(Holder::Queue(destination.clone())))
    }

    /// The number of a durable subscription, if it is there and to this topic: what is sent to one that could not be made must
    /// not come to the one that was there before.
    pub(super) fn subscription_number(
        &mut self,
        topic: &Destination,
        name: &SubscriptionName,
    ) -> Option<u32> {
        let known = self.subscription_numbers.get(name).copied();
        if known.is_none()
            && let Some(guessed) = &mut self.guessed
        {
            guessed.push(name.clone());
            let (name, topic) = (name.clone(), topic.clone());
            return Some(self.add_queue(Holder::Subscription { name, topic, no_local: false }));
        }
        known.filter(|number| {
            let holder = self.queues.get(number).map(|queue| &queue.holder);
            let is_to_it = matches!(holder, Some(Holder::Subscription { topic: of, .. }) if of == topic);
            // Where records are lost, that may be the one by which it was made anew.
            is_to_it || self.guessed.is_some()
        })
    }

    /// From now on what goes to a durable subscription that is not known makes one: where records are lost, that of its making may
    /// be among them.
    pub(crate) fn guess_subscriptions(&mut self) {
        self.guessed = Some(Vec::new());
    }

    /// Those that were made so and are there.
    pub(crate) fn guessed_subscriptions(&self) -> impl Iterator<Item = &SubscriptionName> {
        let guessed = self.guessed.iter().flatten();
        guessed.filter(|name| self.subscription_numbers.contains_key(name))
    }

    pub(super) fn create_subscription(&mut self, name: SubscriptionName, topic: Destination, no_local: bool) {
        self.remove_subscription(&name);
        self.add_queue(Holder::Subscription { name, topic, no_local });
    }

    /// Ends a durable subscription with its messages, of which each is taken out by [`Index::take_out_gone`]. What open
    /// transactions send to it is needed until their end.
    pub(super) fn remove_subscription(&mut self, name: &SubscriptionName) {
        let Some(number) = self.subscription_numbers.remove(name) else { return };
        if let Some(queue) = self.queues.remove(&number) {
            self.weight.others -= weight::of_holder(&queue.holder);
            self.gone.push(queue.messages);
        }
        self.removed_queues.push(number);
    }

    /// Takes out up to so many messages of durable subscriptions that are gone. Answers whether there were any.
    pub(crate) fn take_out_gone(&mut self, most: usize) -> bool {
        for taken in 0..most {
            while self.gone.last().is_some_and(BTreeSet::is_empty) {
                self.gone.pop();
            }
            let Some(stored) = self.gone.last_mut().and_then(BTreeSet::pop_first) else { return taken > 0 };
            self.take_out(stored);
        }
        true
    }

    /// A message of a queue, or of a durable subscription that is there.
    pub(super) fn held(&self, stored: StoredId) -> Option<&Reference> {
        self.references.get(&stored).filter(|reference| self.is_held(reference))
    }

    /// Whether a message of the index is still somebody's: those of durable subscriptions that are gone are taken out by and by.
    pub(super) fn is_held(&self, reference: &Reference) -> bool {
        self.gone.is_empty() || self.queues.contains_key(&reference.queue)
    }
}
