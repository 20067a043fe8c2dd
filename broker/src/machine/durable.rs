//! Durable subscriptions: private queues of a topic that outlive their consumers, known by a client id and a name.
//!
//! - One consumer at a time has it. What it leaves, orderly or not, is as on a queue: in its position, counted where it was handed
//!   over. What it has not settled when it is closed stays with its session, and nobody removes the subscription meanwhile.
//! - Which of them a message goes to is decided when it is sent. The store takes it once for all of them; each has it under a
//!   name of its own, and all share its body as long as that is in memory.
//! - One that is made anew, for another topic or with another `no_local`, ends when the store has made the new one, and is what it
//!   was when that fails. Meanwhile it gets nothing more.
//! - With `no_local` it leaves out what its own client sends, over whichever connection (Jakarta Messaging 3.1, section 8.3.3),
//!   so also what that sends while nobody consumes. ActiveMQ compares connections, and delivers that later.

use std::sync::Arc;

use corriere_core::Destination;
use corriere_core::nearest::nearest;
use corriere_core::provider::{Cause, ProviderError, Subscribe};

use super::Machine;
use super::effects::{ConnectionKey, Ticket};
use super::queue::{Queue, QueueKey};
use super::recording::OnStored;
use super::subscription::SubscriptionKey;
use super::temporary::invalid;
use super::topic::TopicKey;
use crate::store::{StoreOperation, SubscriptionName};
use crate::subscriptions::DurableSubscription;

/// A durable subscription.
#[derive(Debug)]
pub(super) struct Durable {
    topic: TopicKey,
    no_local: bool,
    pub(super) queue: QueueKey,
    /// Who consumes from it.
    consumer: Option<SubscriptionKey>,
    /// Whether the store has made it.
    is_stored: bool,
}

/// What of a topic comes to a durable subscription.
#[derive(Debug)]
pub(super) enum Gets {
    All,
    /// All but what this client sends.
    AllBut(Arc<str>),
    /// Nothing, as one of its name is being made.
    Nothing,
}

impl Gets {
    fn of(name: &SubscriptionName, no_local: bool) -> Self {
        if no_local { Self::AllBut(Arc::clone(&name.client_id)) } else { Self::All }
    }

    /// Whether it gets what a connection of this client id sends.
    fn includes(&self, sender: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::AllBut(client) => Some(&**client) != sender,
            Self::Nothing => false,
        }
    }
}

/// Whether what a consumer consumes from is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Making {
    Done,
    /// The store is asked to make it, and its answer is awaited.
    WithStore,
}

impl Machine {
    /// All durable subscriptions, in the order of their client ids and names.
    #[must_use]
    pub fn durable_subscriptions(&self) -> Vec<DurableSubscription> {
        let described = self.durable.iter().filter_map(|(name, durable)| {
            let queue = self.queues.get(&durable.queue)?;
            Some(DurableSubscription {
                client_id: Arc::clone(&name.client_id),
                name: Arc::clone(&name.name),
                topic: queue.destination.clone(),
                no_local: durable.no_local,
                is_active: durable.consumer.is_some(),
                counts: queue.counts,
                totals: queue.totals,
            })
        });
        described.collect()
    }

    /// Gives a consumer its durable subscription, which is made if it is not there, or is there as another one.
    pub(super) fn activate(
        &mut self,
        key: SubscriptionKey,
        ticket: Ticket,
        subscribe: &Subscribe,
        name: &Arc<str>,
    ) -> Result<(QueueKey, Making), ProviderError> {
        let name = self.own_name(key.0, name)?;
        let topic = &subscribe.destination;
        if !topic.is_topic() || topic.is_temporary() {
            return Err(invalid(topic, "a durable subscription is to a topic that is not temporary"));
        }
        if let Some(durable) = self.durable.get(&name) {
            self.check_inactive(&name, durable)?;
            let is_same = self.queues.get(&durable.queue).is_some_and(|queue| queue.destination == *topic);
            if !is_same || durable.no_local != subscribe.no_local {
                self.check_settled(&name, durable)?;
                self.replace_durable(&name);
            }
        }
        let told = |queue| OnStored::Subscribed { consumer: key, queue, ticket };
        if !self.durable.contains_key(&name) {
            let no_local = subscribe.no_local;
            let queue = self.make_durable(name.clone(), topic, no_local).ok_or(ProviderError::Lost)?;
            let (subscription, topic) = (name.clone(), topic.clone());
            self.record(StoreOperation::CreateSubscription { subscription, topic, no_local });
            self.on_stored.push(told(queue));
        } else if let Some(Durable { queue, is_stored: false, .. }) = self.durable.get(&name) {
            // Another consumer had it made, and is gone before the store has done so.
            let queue = *queue;
            let is_of_it =
                |told: &OnStored| matches!(told, OnStored::Subscribed { queue: of, .. } if *of == queue);
            let waiting = self.batches.values_mut().find(|waiting| waiting.iter().any(is_of_it));
            waiting.into_iter().for_each(|waiting| waiting.push(told(queue)));
        }
        let durable = self.durable.get_mut(&name).ok_or(ProviderError::Lost)?;
        durable.consumer = Some(key);
        let making = if durable.is_stored { Making::Done } else { Making::WithStore };
        Ok((durable.queue, making))
    }

    /// The store has made a durable subscription, or has refused to: then it ends, and its consumer with it.
    pub(super) fn subscribed(
        &mut self,
        consumer: SubscriptionKey,
        queue: QueueKey,
        ticket: Ticket,
        outcome: Result<(), ProviderError>,
    ) {
        let name = self.queues.get(&queue).and_then(|queue| queue.durable.clone());
        let Err(error) = outcome else {
            name.iter().for_each(|name| self.durable_is_made(name, queue));
            return self.confirm_when_served(consumer, ticket);
        };
        if self.subscriptions.get(&consumer).is_some_and(|consumer| consumer.queue == queue) {
            let cause = Cause::failure("its durable subscription could not be stored");
            self.end_subscription(consumer, &cause);
        }
        name.iter().for_each(|name| self.durable_is_not_made(name, queue));
        self.confirm(ticket, Err(error));
    }

    /// A consumer goes. The subscription stays, with all that is on it.
    pub(super) fn deactivate(&mut self, key: SubscriptionKey, queue: QueueKey) {
        let name = self.queues.get(&queue).and_then(|queue| queue.durable.as_ref());
        if let Some(durable) = name.and_then(|name| self.durable.get_mut(name)) {
            durable.consumer = durable.consumer.filter(|consumer| *consumer != key);
        }
    }

    /// Removes a durable subscription that nobody uses, with all that is on it.
    pub(super) fn unsubscribe(
        &mut self,
        connection: ConnectionKey,
        name: &Arc<str>,
    ) -> Result<(), ProviderError> {
        let name = self.own_name(connection, name)?;
        let durable = self.durable.get(&name).ok_or_else(|| self.unknown_subscription(&name))?;
        self.check_inactive(&name, durable)?;
        self.check_settled(&name, durable)?;
        self.remove_durable(&name);
        self.record(StoreOperation::RemoveSubscription(name));
        Ok(())
    }

    /// The durable subscriptions to a topic that get what a connection sends, in the order of their making.
    pub(super) fn durable_queues(
        &self,
        topic: TopicKey,
        sender: ConnectionKey,
    ) -> impl Iterator<Item = QueueKey> {
        let sender = self.connections.get(&sender).and_then(|connection| connection.client_id.as_deref());
        let all = self.topics.get(&topic).into_iter().flat_map(|topic| &topic.durable);
        all.filter(move |(_, gets)| gets.includes(sender)).map(|(queue, _)| *queue)
    }

    /// Makes a durable subscription that nobody consumes from.
    fn make_durable(
        &mut self,
        name: SubscriptionName,
        topic: &Destination,
        no_local: bool,
    ) -> Option<QueueKey> {
        let key = self.topic_named(topic.name())?;
        let destination = self.topics.get(&key)?.destination.clone();
        let mut queue = Queue::new(destination, Some(key), false);
        queue.durable = Some(name.clone());
        let queue = self.add_queue(queue);
        self.topics.get_mut(&key)?.durable.insert(queue, Gets::of(&name, no_local));
        self.durable.insert(name, Durable { topic: key, no_local, queue, consumer: None, is_stored: false });
        Some(queue)
    }

    /// Makes one that the store has.
    pub(super) fn recover_durable(
        &mut self,
        name: SubscriptionName,
        topic: &Destination,
        no_local: bool,
    ) -> Option<QueueKey> {
        let queue = self.make_durable(name.clone(), topic, no_local);
        self.durable.entry(name).and_modify(|durable| durable.is_stored = true);
        queue
    }

    /// Has a durable subscription give way to one that the store is to make. Until it has, this one keeps what it has, and gets
    /// nothing more.
    fn replace_durable(&mut self, name: &SubscriptionName) {
        let Some(durable) = self.durable.remove(name) else { return };
        if let Some(topic) = self.topics.get_mut(&durable.topic) {
            topic.durable.insert(durable.queue, Gets::Nothing);
        }
        self.replaced.entry(name.clone()).or_default().push(durable);
    }

    /// The store has made a durable subscription, and ended with that what was there under its name.
    fn durable_is_made(&mut self, name: &SubscriptionName, queue: QueueKey) {
        let mut older = self.replaced.remove(name).unwrap_or_default();
        if let Some(place) = older.iter().position(|durable| durable.queue == queue) {
            // It has given way itself meanwhile.
            let mut left = older.split_off(place);
            left.first_mut().into_iter().for_each(|durable| durable.is_stored = true);
            self.replaced.insert(name.clone(), left);
        } else if let Some(durable) = self.durable.get_mut(name) {
            durable.is_stored = true;
        }
        older.into_iter().for_each(|durable| self.end_durable(&durable));
    }

    /// The store has not made a durable subscription: what was there under its name still is.
    fn durable_is_not_made(&mut self, name: &SubscriptionName, queue: QueueKey) {
        let mut older = self.replaced.remove(name).unwrap_or_default();
        let refused = match older.iter().position(|durable| durable.queue == queue) {
            Some(place) => Some(older.remove(place)),
            None => {
                let refused = self.durable.remove(name);
                if let Some(durable) = older.pop() {
                    let queue = durable.queue;
                    if let Some(topic) = self.topics.get_mut(&durable.topic) {
                        topic.durable.insert(queue, Gets::of(name, durable.no_local));
                    }
                    self.durable.insert(name.clone(), durable);
                    self.end_what_is_due(queue);
                }
                refused
            }
        };
        refused.iter().for_each(|durable| self.end_durable(durable));
        if !older.is_empty() {
            self.replaced.insert(name.clone(), older);
        }
    }

    /// Whether a queue is that of a durable subscription which gives way to one that the store is to make. By what the store was told
    /// last, nothing is in it any more, so nothing of it is said to the store meanwhile.
    pub(super) fn gives_way(&self, queue: QueueKey) -> bool {
        let topic = self.queues.get(&queue).and_then(|queue| self.topics.get(&queue.topic?));
        topic.is_some_and(|topic| matches!(topic.durable.get(&queue), Some(Gets::Nothing)))
    }

    fn remove_durable(&mut self, name: &SubscriptionName) {
        let older = self.replaced.remove(name).unwrap_or_default();
        let all = older.into_iter().chain(self.durable.remove(name)).collect::<Vec<_>>();
        all.iter().for_each(|durable| self.end_durable(durable));
    }

    fn end_durable(&mut self, durable: &Durable) {
        let Durable { topic, queue: key, .. } = *durable;
        let Some(counts) = self.end_queue(key) else { return };
        if let Some(topic) = self.topics.get_mut(&topic) {
            topic.durable.remove(&key);
            topic.ended.add(&counts);
        }
    }

    /// What a connection means by the name of a durable subscription.
    fn own_name(
        &mut self,
        connection: ConnectionKey,
        name: &Arc<str>,
    ) -> Result<SubscriptionName, ProviderError> {
        let client_id = self.connection(connection)?.client_id.clone();
        let client_id = client_id.ok_or_else(|| ProviderError::NoClientId { name: name.to_string() })?;
        Ok(SubscriptionName { client_id, name: Arc::clone(name) })
    }

    fn check_inactive(&self, name: &SubscriptionName, durable: &Durable) -> Result<(), ProviderError> {
        let Some((connection, _)) = durable.consumer else { return Ok(()) };
        Err(in_use(name, format!("a consumer of {}", self.named(connection))))
    }

    /// Refuses what would take messages from whoever has them and may still give them back.
    fn check_settled(&self, name: &SubscriptionName, durable: &Durable) -> Result<(), ProviderError> {
        let unsettled = self.queues.get(&durable.queue).map_or(0, |queue| queue.counts.in_flight);
        if unsettled == 0 {
            return Ok(());
        }
        let consumers = self.subscriptions.iter();
        let mut consumers = consumers.filter(|(_, consumer)| consumer.queue == durable.queue);
        let holder = consumers.next().map_or_else(
            || format!("a prepared transaction, which has acknowledged {unsettled} of its messages"),
            |((connection, _), _)| {
                let connection = self.named(*connection);
                format!(
                    "{connection}, of which a session has {unsettled} of its messages that are not settled"
                )
            },
        );
        Err(in_use(name, holder))
    }

    fn named(&self, connection: ConnectionKey) -> String {
        let identity = self.connections.get(&connection).map(|connection| connection.identity.as_str());
        format!("connection {}", identity.unwrap_or_default())
    }

    fn unknown_subscription(&self, name: &SubscriptionName) -> ProviderError {
        let of_client = self.durable.keys().filter(|other| other.client_id == name.client_id);
        let nearest = nearest(&name.name, of_client.map(|other| &*other.name));
        ProviderError::UnknownSubscription {
            name: name.name.to_string(),
            client_id: name.client_id.to_string(),
            nearest: nearest.map(str::to_owned),
        }
    }
}

fn in_use(name: &SubscriptionName, holder: String) -> ProviderError {
    ProviderError::SubscriptionInUse {
        name: name.name.to_string(),
        client_id: name.client_id.to_string(),
        holder,
    }
}
