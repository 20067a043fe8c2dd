//! Inputs: what happens to the broker.

use std::collections::BTreeSet;

use corriere_broker::machine::{ConnectionKey, Input, Ticket};
use corriere_core::id::Xid;
use corriere_core::provider::{Cause, Command, Credit, Subscribe};
use corriere_core::{SessionId, Timestamp, TransactionId};

use super::entry::{Death, Place, SubscriptionKey, key_of};
use super::fate::Return;
use super::session::{Connection, End, Producer, Session, Subscription};
use super::{Answer, Model};

impl Model {
    /// Takes an input, before the machine does.
    pub fn take(&mut self, now: Timestamp, input: &Input) {
        self.now = self.now.max(now);
        self.acknowledging = None;
        self.takes_sends = false;
        self.changes.clear();
        self.let_time_pass();
        if !matches!(input, Input::Tick) && !self.can_load {
            self.admit_parked();
        }
        match input {
            Input::Connect { connection, identity, client_id } => self.connections.push(Connection {
                key: *connection,
                identity: identity.clone(),
                client_id: client_id.clone(),
                is_open: true,
            }),
            Input::Command { connection, ticket, command } => self.command(*connection, *ticket, command),
            Input::Vanished { connection } => {
                self.end_connection(*connection);
            }
            Input::Stored { batch, outcome } => {
                let index =
                    self.batches.iter().position(|open| open.id == *batch).expect("a batch of this model");
                let batch = self.batches.remove(index);
                self.stored(&batch, outcome);
            }
            Input::Loaded { messages } => self.loaded(messages),
            Input::StoreFull { .. } => {
                self.room_is_back = false;
                self.wait_for_store();
            }
            Input::StoreRoom => self.room_is_back = true,
            Input::Tick => {}
            Input::SetPrefetch { queue, prefetch } => self.set_prefetch(queue, *prefetch),
            Input::Manage { ticket, order } => self.manage(*ticket, order),
        }
        self.note_room();
        self.open_store();
        self.disturb(input);
    }

    /// At one moment deadlines come before expiry, which makes room for parked sends.
    fn let_time_pass(&mut self) {
        self.fail_parked_sends();
        let mut index = 0;
        while index < self.entries.len() {
            if !self.expire_if_due(index) {
                index += 1;
            }
        }
    }

    fn command(&mut self, connection: ConnectionKey, ticket: Ticket, command: &Command) {
        if !self.connection_is_open(connection) {
            self.tickets.owe(connection, ticket, Answer::Refused);
            return;
        }
        let answer = match command {
            Command::OpenSession { session, .. } => {
                self.sessions.push(Session { connection, id: *session });
                Answer::Done
            }
            Command::OpenProducer { destination: Some(to), .. }
                if to.is_temporary() && !self.temporaries.iter().any(|there| there.destination == *to) =>
            {
                Answer::Invalid
            }
            Command::OpenProducer { producer, session, .. } => {
                let session = Session { connection, id: *session };
                self.if_known(self.sessions.contains(&session), |model| {
                    model.producers.push(Producer { session, id: *producer });
                })
            }
            Command::CloseProducer { producer } => {
                let is_known = self.has_producer(connection, *producer);
                self.if_known(is_known, |model| {
                    model
                        .producers
                        .retain(|other| !(other.session.connection == connection && other.id == *producer));
                })
            }
            Command::OpenSubscription(subscribe) if !self.may_consume(connection, &subscribe.destination) => {
                Answer::Invalid
            }
            Command::OpenSubscription(subscribe) => {
                if self.sessions.contains(&Session { connection, id: subscribe.session }) {
                    if let Some(name) = &subscribe.durable_name {
                        return self.open_lasting(connection, ticket, subscribe, name);
                    }
                    self.open_subscription(connection, subscribe);
                    return self.owe_when_served((connection, subscribe.subscription), ticket);
                }
                Answer::Unknown
            }
            Command::Unsubscribe { name } => return self.unsubscribe(connection, ticket, name),
            Command::Browse { subscription, session, destination, .. } => {
                self.open_browser(Session { connection, id: *session }, *subscription, destination)
            }
            Command::CreateTemporary { destination } => self.create_temporary(connection, destination),
            Command::DeleteTemporary { destination } => self.delete_temporary(connection, destination),
            Command::WatchEvents => {
                self.watch(connection);
                Answer::Done
            }
            Command::Grant { subscription, credit } => {
                if let Some(answer) = self.grant_to_browser(connection, *subscription, *credit) {
                    return self.tickets.owe(connection, ticket, answer);
                }
                let subscription = self.open_subscription_mut(&(connection, *subscription));
                subscription.map_or(Answer::Unknown, |subscription| {
                    subscription.granted += u64::from(*credit);
                    Answer::Done
                })
            }
            Command::ChangeWindow { subscription, prefetch, extension } => {
                let window = Credit::Window { prefetch: (*prefetch).max(1), extension: *extension };
                return self.change_window(connection, ticket, *subscription, window);
            }
            Command::Drain { subscription } => {
                if self.drain_browser(connection, *subscription, ticket) {
                    return;
                }
                let key = (connection, *subscription);
                if let Some(subscription) = self.open_subscription_mut(&key) {
                    subscription.draining = subscription.granted;
                    return self.owe_when_served(key, ticket);
                }
                Answer::Unknown
            }
            Command::HandedOver { subscription, .. }
                if self.browser_mut(connection, *subscription).is_some() =>
            {
                Answer::Done
            }
            Command::HandedOver { subscription, number, .. } => {
                let subscription = self.subscription_mut(&(connection, *subscription));
                subscription.map_or(Answer::Unknown, |subscription| {
                    subscription.hand_over(*number);
                    Answer::Done
                })
            }
            Command::Send(send) => {
                let transaction = send.transaction.as_ref().map(|id| key_of(connection, id));
                let is_known = self.has_producer(connection, send.producer);
                if transaction.as_ref().is_some_and(|key| self.open_transaction(connection, key).is_none()) {
                    Answer::Refused
                } else if is_known && self.goes_nowhere(&send.message) {
                    // It does its transaction no harm, as nobody could ever get it.
                    self.lost_with_temporaries[0] += 1;
                    Answer::Invalid
                } else if is_known {
                    self.send(connection, ticket, send);
                    return;
                } else {
                    transaction.iter().for_each(|key| self.condemn(key));
                    Answer::Unknown
                }
            }
            Command::CloseSubscription { subscription, last_handed_over } => {
                let key = (connection, *subscription);
                let browsers = self.browsers.len();
                self.browsers.retain(|browser| browser.key != key);
                if self.browsers.len() < browsers {
                    Answer::Done
                } else if self.open_subscription_mut(&key).is_none() {
                    Answer::Unknown
                } else {
                    self.close_subscription(&key, *last_handed_over);
                    return self.tickets.owe_eventually(connection, ticket);
                }
            }
            Command::CloseSession { session } => {
                let session = Session { connection, id: *session };
                if !self.sessions.contains(&session) {
                    Answer::Unknown
                } else {
                    self.close_session(&session);
                    return self.tickets.owe_eventually(connection, ticket);
                }
            }
            Command::Acknowledge(ack) => match self.acknowledge(connection, ack) {
                Answer::Done => {
                    self.acknowledging = Some(ticket);
                    return self.tickets.owe_eventually(connection, ticket);
                }
                answer => answer,
            },
            Command::Begin { transaction } => self.begin(connection, transaction),
            Command::End { transaction } => self.end_part(connection, transaction),
            Command::Prepare { transaction } => {
                return self.end(connection, ticket, transaction, (End::Prepare, false));
            }
            Command::Commit { transaction, one_phase } => {
                return self.end(connection, ticket, transaction, (End::Commit, *one_phase));
            }
            Command::Recover => Answer::Recovered(self.prepared()),
            Command::Forget { .. } => Answer::Unknown,
            Command::Rollback { transaction, cause } => {
                let key = key_of(connection, transaction);
                if self.transaction_mut(&key).is_none_or(|transaction| {
                    transaction.end_batch.is_some()
                        || (transaction.owner != Some(connection) && transaction.prepared.is_none())
                }) {
                    Answer::Unknown
                } else {
                    self.roll_back(&key, cause.as_ref());
                    return self.tickets.owe_eventually(connection, ticket);
                }
            }
            Command::Close => {
                self.end_connection(connection);
                return self.tickets.owe_eventually(connection, ticket);
            }
            // The rest is no matter of delivery.
            _ => Answer::Whatever,
        };
        self.tickets.owe(connection, ticket, answer);
    }

    /// The prepared transactions, in their order.
    #[must_use]
    pub fn prepared(&self) -> Vec<Xid> {
        let mut prepared: Vec<_> = self
            .transactions
            .iter()
            .filter(|transaction| transaction.end_batch.is_none())
            .filter_map(|transaction| match &transaction.key.1 {
                TransactionId::Distributed(xid) => Some((transaction.prepared?, xid.clone())),
                TransactionId::Local(_) => None,
            })
            .collect();
        prepared.sort_unstable();
        prepared.into_iter().map(|(_, xid)| xid).collect()
    }

    fn if_known(&mut self, is_known: bool, change: impl FnOnce(&mut Self)) -> Answer {
        if is_known {
            change(self);
            Answer::Done
        } else {
            Answer::Unknown
        }
    }

    fn has_producer(&self, connection: ConnectionKey, producer: corriere_core::ProducerId) -> bool {
        self.producers.iter().any(|other| other.session.connection == connection && other.id == producer)
    }

    pub(super) fn open_subscription_mut(&mut self, key: &SubscriptionKey) -> Option<&mut Subscription> {
        self.subscription_mut(key).filter(|subscription| subscription.is_open)
    }

    fn open_subscription(&mut self, connection: ConnectionKey, subscribe: &Subscribe) {
        let key = (connection, subscribe.subscription);
        let place = if subscribe.destination.is_topic() {
            Place::Private { topic: subscribe.destination.clone(), subscription: key }
        } else {
            Place::Queue(subscribe.destination.clone())
        };
        self.open_subscription_at(connection, subscribe, place);
    }

    pub(super) fn open_subscription_at(
        &mut self,
        connection: ConnectionKey,
        subscribe: &Subscribe,
        place: Place,
    ) {
        let key = (connection, subscribe.subscription);
        let policy = self.redelivery_for(place.destination());
        self.by_policy[0] += u64::from(subscribe.redelivery.is_none() && policy != self.settings.redelivery);
        self.subscriptions.push(Subscription {
            key,
            session: Session { connection, id: subscribe.session },
            place,
            no_local: subscribe.no_local,
            is_open: true,
            credit: subscribe.credit,
            has_default_credit: subscribe.is_default_credit,
            is_told_slow: false,
            granted: 0,
            draining: 0,
            policy: subscribe.redelivery.clone().unwrap_or_default().over(&policy),
            epoch: 0,
            delivered: 0,
            handed_over: 0,
            handed_over_alone: BTreeSet::new(),
        });
        self.windows[0] += u64::from(self.adopt_prefetch(&key));
    }

    /// What was not handed over returns, uncounted; reservations end, delays stay; what was handed over stays with
    /// the session.
    fn close_subscription(&mut self, key: &SubscriptionKey, last_handed_over: u64) {
        let Some(subscription) = self.subscription_mut(key) else { return };
        subscription.hand_over(last_handed_over);
        subscription.is_open = false;
        let place = subscription.place.clone();
        self.deactivate(key);
        self.recall(key);
        for entry in &mut self.entries {
            if entry.reserved_for.as_ref() == Some(key) {
                entry.reserved_for = None;
            }
        }
        if let Place::Private { topic, .. } = &place {
            // The private queue is gone with its subscription.
            let before = self.entries.len();
            self.entries.retain(|entry| !(entry.place == place && entry.holder.is_none()));
            let discarded = (before - self.entries.len()) as u64;
            self.count(topic).discarded += discarded;
        }
    }

    /// Deliveries that were not handed over go back to their positions, uncounted, ready for anyone; but what an open subscription
    /// gave back before is reserved for it again.
    pub(super) fn recall(&mut self, key: &SubscriptionKey) {
        let Some(subscription) = self.subscription(key) else { return };
        let (seen, policy) = (subscription.clone(), subscription.policy.clone());
        let is_unseen = |number| !seen.has_in_hands(number);
        let unseen = self.unsettled(key.0, key.1).into_iter().filter(|number| is_unseen(*number)).count();
        self.give_back_all(key, is_unseen, false, &Death::Returned, &policy);
        // Explicit credit that went into what comes back unseen is free again.
        if let Some(subscription) = self.subscription_mut(key)
            && subscription.credit == Credit::Explicit
        {
            subscription.granted += unseen as u64;
        }
    }

    fn close_session(&mut self, session: &Session) {
        let keys: Vec<SubscriptionKey> = self
            .subscriptions
            .iter()
            .filter(|subscription| subscription.session == *session)
            .map(|subscription| subscription.key)
            .collect();
        for key in &keys {
            if self.open_subscription_mut(key).is_some() {
                self.close_subscription(key, 0);
            }
            let Some(policy) = self.subscription(key).map(|subscription| subscription.policy.clone()) else {
                continue;
            };
            self.give_back_all(key, |_| true, true, &Death::Returned, &policy);
        }
        self.browsers.retain(|browser| browser.session != *session);
        // What is locked by a transaction keeps its subscription in mind until the transaction ends.
        let entries = &self.entries;
        self.subscriptions.retain(|subscription| {
            subscription.session != *session
                || entries.iter().any(|entry| {
                    entry.holder.as_ref().is_some_and(|holder| holder.subscription == subscription.key)
                })
        });
        self.producers.retain(|producer| producer.session != *session);
        self.sessions.retain(|other| other != session);
    }

    /// As if everything had been closed, with what is known of the handed-over marks. What is parked was never
    /// accepted and is gone; receipts that are still open may be fulfilled or dropped.
    fn end_connection(&mut self, key: ConnectionKey) {
        self.parked.retain(|parked| parked.connection != key);
        self.tickets.forget(key);
        let open: Vec<_> = self
            .transactions
            .iter()
            .filter(|transaction| transaction.owner == Some(key) && transaction.end_batch.is_none())
            .map(|transaction| transaction.key.clone())
            .collect();
        for key in open {
            self.roll_back(&key, None);
        }
        let sessions: Vec<SessionId> = self
            .sessions
            .iter()
            .filter(|session| session.connection == key)
            .map(|session| session.id)
            .collect();
        for id in sessions {
            self.close_session(&Session { connection: key, id });
        }
        self.end_temporaries_of(key);
        for connection in self.connections.iter_mut().filter(|connection| connection.key == key) {
            connection.is_open = false;
        }
    }

    /// Gives back all that `key` plainly has and whose number is wanted.
    pub(super) fn give_back_all(
        &mut self,
        key: &SubscriptionKey,
        is_wanted: impl Fn(u64) -> bool,
        is_counted: bool,
        death: &Death,
        policy: &corriere_core::RedeliveryPolicy,
    ) {
        let is_open = self.subscription(key).is_some_and(|subscription| subscription.is_open);
        while let Some(index) = self.first_of(key, &is_wanted) {
            let was_reserved = self.entries[index].holder.as_ref().is_some_and(|holder| holder.was_reserved);
            let how = Return {
                is_counted,
                death: death.clone(),
                policy: policy.clone(),
                not_before: None,
                reserved_for: (is_open && was_reserved).then_some(*key),
            };
            self.give_back(index, how);
        }
    }
}

impl Subscription {
    /// All up to `number` is in the hands of the application. What was never delivered cannot be.
    pub(super) fn hand_over(&mut self, number: u64) {
        self.handed_over = self.handed_over.max(number.min(self.delivered));
    }

    /// Whether a delivery is known to have reached the application.
    #[must_use]
    pub fn has_in_hands(&self, number: u64) -> bool {
        number <= self.handed_over || self.handed_over_alone.contains(&number)
    }

    /// Whether it has credit for one more, given the numbers that it has and that are not settled.
    #[must_use]
    pub fn has_room(&self, held: &[u64]) -> bool {
        match self.credit {
            Credit::Explicit => self.granted > 0,
            Credit::Window { prefetch, extension } => {
                let in_hands = held.iter().filter(|number| self.has_in_hands(**number)).count();
                let widened = extension.map_or(in_hands, |extension| in_hands.min(extension as usize));
                held.len() < prefetch as usize + widened
            }
        }
    }
}

/// The cause of a death that nobody gave a reason for.
pub(super) fn death_by(cause: Option<&Cause>) -> Death {
    cause.map_or(Death::Returned, |cause| Death::Failure(cause.clone()))
}
