//! Connections, and the sessions, producers and subscriptions that they open and close.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use corriere_core::provider::{Capability, Cause, Dispatch, ProviderError, Subscribe};
use corriere_core::{ConnectionId, Destination, ProducerId, SessionId, SubscriptionId};

use super::Machine;
use super::delivery::{Delay, Failure};
use super::durable::Making;
use super::effects::{ConnectionKey, Ticket};
use super::queue::{Queue, QueueKey};
use super::sending::Target;
use super::subscription::{Subscription, SubscriptionKey};

/// A connection and what it has open.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) identity: ConnectionId,
    pub(super) client_id: Option<Arc<str>>,
    pub(super) producers: BTreeMap<ProducerId, SessionId>,
    /// What this step delivers over it.
    pub(super) outgoing: Vec<Dispatch>,
    /// Its temporary destinations.
    pub(super) temporaries: BTreeSet<Destination>,
    sessions: BTreeMap<SessionId, Session>,
}

#[derive(Debug, Default)]
struct Session {
    producers: BTreeSet<ProducerId>,
    subscriptions: BTreeSet<SubscriptionId>,
}

impl Connection {
    pub(super) fn new(identity: ConnectionId, client_id: Option<Arc<str>>) -> Self {
        Self {
            identity,
            client_id,
            producers: BTreeMap::new(),
            outgoing: Vec::new(),
            temporaries: BTreeSet::new(),
            sessions: BTreeMap::new(),
        }
    }

    /// The subscriptions of the session that a producer belongs to.
    pub(super) fn subscriptions_beside(&self, producer: ProducerId) -> impl Iterator<Item = SubscriptionId> {
        let session = self.producers.get(&producer).and_then(|session| self.sessions.get(session));
        session.into_iter().flat_map(|session| session.subscriptions.iter().copied())
    }
}

impl Machine {
    pub(super) fn connection(&mut self, key: ConnectionKey) -> Result<&mut Connection, ProviderError> {
        self.connections.get_mut(&key).ok_or(ProviderError::Lost)
    }

    fn session(&mut self, key: ConnectionKey, session: SessionId) -> Result<&mut Session, ProviderError> {
        let unknown = || ProviderError::Unknown { what: format!("session {session}") };
        self.connection(key)?.sessions.get_mut(&session).ok_or_else(unknown)
    }

    pub(super) fn open_session(
        &mut self,
        key: ConnectionKey,
        session: SessionId,
    ) -> Result<(), ProviderError> {
        let sessions = &mut self.connection(key)?.sessions;
        if sessions.contains_key(&session) {
            return Err(ProviderError::Exists { what: format!("session {session}") });
        }
        sessions.insert(session, Session::default());
        Ok(())
    }

    pub(super) fn close_session(
        &mut self,
        key: ConnectionKey,
        session: SessionId,
        cause: &Cause,
    ) -> Result<(), ProviderError> {
        self.session(key, session)?;
        let connection = self.connection(key)?;
        let Some(closed) = connection.sessions.remove(&session) else { return Ok(()) };
        for producer in closed.producers {
            connection.producers.remove(&producer);
        }
        for subscription in closed.subscriptions {
            self.end_subscription((key, subscription), cause);
        }
        Ok(())
    }

    pub(super) fn open_producer(
        &mut self,
        key: ConnectionKey,
        producer: ProducerId,
        session: SessionId,
        destination: Option<&Destination>,
    ) -> Result<(), ProviderError> {
        if self.connection(key)?.producers.contains_key(&producer) {
            return Err(ProviderError::Exists { what: format!("producer {producer}") });
        }
        if let Some(destination) = destination {
            self.check_exists(destination)?;
        }
        self.session(key, session)?.producers.insert(producer);
        self.connection(key)?.producers.insert(producer, session);
        Ok(())
    }

    pub(super) fn close_producer(
        &mut self,
        key: ConnectionKey,
        producer: ProducerId,
    ) -> Result<(), ProviderError> {
        let unknown = || ProviderError::Unknown { what: format!("producer {producer}") };
        let session = self.connection(key)?.producers.remove(&producer).ok_or_else(unknown)?;
        self.session(key, session)?.producers.remove(&producer);
        Ok(())
    }

    pub(super) fn open_subscription(
        &mut self,
        connection: ConnectionKey,
        ticket: Ticket,
        subscribe: Subscribe,
    ) -> Result<Making, ProviderError> {
        let key = (connection, subscribe.subscription);
        self.check_new_subscription(key)?;
        if subscribe.selector.is_some() {
            return Err(ProviderError::Unsupported(Capability::Selectors));
        }
        self.check_may_consume(connection, &subscribe.destination)?;
        self.session(connection, subscribe.session)?;
        let (queue, making) = match &subscribe.durable_name {
            Some(name) => self.activate(key, ticket, &subscribe, name)?,
            None => (self.queue_for(key, &subscribe.destination).ok_or(ProviderError::Lost)?, Making::Done),
        };
        self.note_subscription(connection, subscribe.session, key.1)?;
        let policy = self.queues.get(&queue).map_or(&self.policy, |queue| &queue.policy.redelivery);
        let policy = subscribe
            .redelivery
            .map_or_else(|| Arc::clone(policy), |overrides| Arc::new(overrides.over(policy)));
        let mut subscription =
            Subscription::new(subscribe.session, queue, subscribe.credit, policy, subscribe.no_local);
        subscription.has_default_credit = subscribe.is_default_credit;
        self.subscriptions.insert(key, subscription);
        self.adopt_prefetch(key);
        self.attend(key);
        Ok(making)
    }

    /// The queue that a subscription which is not durable consumes from.
    fn queue_for(&mut self, key: SubscriptionKey, destination: &Destination) -> Option<QueueKey> {
        match self.target(destination)? {
            Target::Queue(queue) => Some(queue),
            Target::Topic(topic) => self.bind(topic, key),
        }
    }

    /// Refuses the number of a subscription or a browser that is taken.
    pub(super) fn check_new_subscription(&self, key: SubscriptionKey) -> Result<(), ProviderError> {
        if self.subscriptions.contains_key(&key) || self.browsers.contains_key(&key) {
            return Err(ProviderError::Exists { what: format!("subscription {}", key.1) });
        }
        Ok(())
    }

    /// Has a subscription or a browser end with its session.
    pub(super) fn note_subscription(
        &mut self,
        connection: ConnectionKey,
        session: SessionId,
        subscription: SubscriptionId,
    ) -> Result<(), ProviderError> {
        self.session(connection, session)?.subscriptions.insert(subscription);
        Ok(())
    }

    /// One that is gone need not end with its session any more.
    pub(super) fn forget_subscription(&mut self, key: SubscriptionKey, session: SessionId) {
        if let Ok(session) = self.session(key.0, session) {
            session.subscriptions.remove(&key.1);
        }
    }

    pub(super) fn close_subscription(
        &mut self,
        key: SubscriptionKey,
        last_handed_over: u64,
    ) -> Result<(), ProviderError> {
        if self.close_browser(key) {
            return Ok(());
        }
        let subscription = self.subscription(key)?;
        if subscription.is_closed {
            return Err(ProviderError::Unknown { what: format!("subscription {}", key.1) });
        }
        subscription.hand_over(last_handed_over);
        self.look_at_slot(key);
        self.stop_subscription(key);
        self.forget_if_done(key);
        Ok(())
    }

    /// Delivers nothing more to a subscription and takes back what did not reach the application.
    fn stop_subscription(&mut self, key: SubscriptionKey) {
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return };
        subscription.is_closed = true;
        let queue_key = subscription.queue;
        // Out of the ring, as a closed one takes nothing.
        self.attend(key);
        if let Some(topic) = self.queues.get(&queue_key).and_then(Queue::private_topic) {
            self.unbind(topic, key);
        }
        self.deactivate(key, queue_key);
        self.end_reservations(key);
        self.take_back_unseen(key);
    }

    /// Ends a subscription with its session: what reached the application and is not settled comes back, counted.
    /// What a transaction acknowledged stays with that until its end.
    pub(super) fn end_subscription(&mut self, key: SubscriptionKey, cause: &Cause) {
        if self.close_browser(key) {
            return;
        }
        self.stop_subscription(key);
        while let Some(subscription) = self.subscriptions.get_mut(&key)
            && let Some((number, position)) = subscription.next_unsettled(0, u64::MAX)
        {
            subscription.settle(number);
            let (queue, policy) = (subscription.queue, Arc::clone(&subscription.policy));
            let failure = Failure { cause, policy: &policy, delay: Delay::None, reserved_for: None };
            self.give_back_failed(queue, position, &failure);
        }
        self.forget_if_done(key);
    }

    /// Forgets a subscription that is closed and has nothing unsettled.
    pub(super) fn forget_if_done(&mut self, key: SubscriptionKey) {
        let Some(subscription) = self.subscriptions.get(&key) else { return };
        if !subscription.is_closed || !subscription.is_idle() {
            return;
        }
        let (session, queue_key) = (subscription.session, subscription.queue);
        self.free_slots(key);
        self.subscriptions.remove(&key);
        if let Some(topic) = self.queues.get(&queue_key).and_then(Queue::private_topic) {
            self.remove_private_queue(topic, key);
        }
        self.forget_subscription(key, session);
    }

    /// Ends a connection with all it opened. Its sends that wait were never accepted, and end with it.
    pub(super) fn end_connection(&mut self, key: ConnectionKey, cause: &Cause) {
        for number in self.parked_of(key) {
            if let Some(parked) = self.unpark(number) {
                self.confirm(parked.arrived.ticket, Err(ProviderError::Lost));
            }
        }
        self.roll_back_all(key, cause);
        let Some(connection) = self.connections.get(&key) else { return };
        let sessions: Vec<_> = connection.sessions.keys().copied().collect();
        for session in sessions {
            // The session was listed a moment ago, so it is known.
            let _ = self.close_session(key, session, cause);
        }
        self.end_temporaries_of(key);
        self.connections.remove(&key);
    }
}
