//! Sends: what is checked, where they go, and when they become visible.

use std::sync::Arc;

use corriere_core::provider::{Confirmation, ProviderError, SendMessage};
use corriere_core::{Destination, Message};

use super::Machine;
use super::dead_letter::holds_dead_letters;
use super::effects::{ConnectionKey, Ticket};
use super::line::{Arrived, Wanted};
use super::memory::Held;
use super::queue::{Queue, QueueKey};
use super::recording::OnStored;
use super::topic::TopicKey;
use super::transaction::{TransactionKey, key_of};
use crate::counts::Counts;
use crate::store::{Arrival, StoreError, StoreOperation};

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    Queue(QueueKey),
    Topic(TopicKey),
}

/// A message on its way.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) target: Target,
    pub(super) held: Arc<Held>,
    /// What it is for each of the durable subscriptions that it goes to. Which these are is decided when it is sent.
    pub(super) copies: Vec<(QueueKey, Arc<Held>)>,
}

impl Sending {
    /// One to no durable subscription.
    pub(super) fn plain(target: Target, held: Arc<Held>) -> Self {
        Self { target, held, copies: Vec::new() }
    }
}

impl Machine {
    pub(super) fn send(&mut self, connection: ConnectionKey, ticket: Ticket, send: SendMessage) {
        let arrived = self.arrive(connection, ticket, &send);
        if let Err(error) = self.check_send(connection, &send) {
            self.spoil(connection, send.transaction.as_ref(), &error);
            self.confirm(ticket, Err(error));
        } else if let Err(error) = self.check_is_there(&send) {
            // Nobody can ever get it, so the transaction is whole without it: see `temporary`.
            self.confirm(ticket, Err(error));
        } else if self.is_resent(arrived, &send) {
            // It was answered, or will be when the first one is.
        } else if self.must_wait_for_store(&arrived, &send) {
            self.park(arrived, send, Wanted::Store);
        } else if self.must_park(&arrived, &send) {
            self.park(arrived, send, Wanted::Memory);
        } else {
            self.accept(arrived, send);
        }
    }

    fn check_send(&self, connection: ConnectionKey, send: &SendMessage) -> Result<(), ProviderError> {
        if let Some(transaction) = &send.transaction {
            self.check_open(connection, transaction)?;
        }
        let is_known = self
            .connections
            .get(&connection)
            .is_some_and(|connection| connection.producers.contains_key(&send.producer));
        if !is_known {
            return Err(ProviderError::Unknown { what: format!("producer {}", send.producer) });
        }
        let headers = send.message.headers();
        let Some(destination) = &headers.destination else {
            return Err(without_destination());
        };
        if headers.message_id.is_none() {
            return Err(ProviderError::InvalidDestination {
                destination: destination.to_string(),
                reason: "a message without id cannot be sent".to_owned(),
            });
        }
        Ok(())
    }

    /// Takes a checked send into memory and towards its destination.
    pub(super) fn accept(&mut self, arrived: Arrived, send: SendMessage) {
        let Arrived { connection, ticket, .. } = arrived;
        let Some(target) = send.message.headers().destination.as_ref().and_then(|name| self.target(name))
        else {
            // It was checked, so it is there; nothing is held yet in any case.
            self.confirm(ticket, Err(without_destination()));
            return;
        };
        let id = send.message.headers().message_id.clone();
        let sending = self.hold_for(target, send.message, connection);
        let key = send.transaction.map(|transaction| key_of(connection, &transaction));
        let is_stored = self.record_send(&sending, key.as_ref());
        match key {
            Some(key) => {
                if is_stored {
                    let stored = sending.held.id;
                    self.on_stored.push(OnStored::Appended { transaction: key.clone(), stored });
                }
                if let Some(transaction) = self.transactions.get_mut(&key) {
                    transaction.add_send(sending, id.filter(|_| is_stored));
                }
            }
            None if is_stored => {
                id.iter().for_each(|id| self.producers.begin(id));
                self.on_stored.push(OnStored::Sent { sending, arrived });
                return;
            }
            None => self.make_arrive(sending, Arrival::Sent, Some(connection)),
        }
        self.confirm(ticket, Ok(Confirmation::Done));
    }

    /// Takes a message into memory on its way from a connection.
    pub(super) fn hold_for(
        &mut self,
        target: Target,
        message: Arc<Message>,
        sender: ConnectionKey,
    ) -> Sending {
        let held = self.memory.hold(message, target);
        let durable: Vec<_> = match target {
            Target::Topic(topic) => self.durable_queues(topic, sender).collect(),
            Target::Queue(_) => Vec::new(),
        };
        let copies = durable.into_iter().map(|queue| (queue, self.memory.copy(&held))).collect();
        Sending { target, held, copies }
    }

    /// Has the store take what is sent, and answers whether it does.
    fn record_send(&mut self, sending: &Sending, key: Option<&TransactionKey>) -> bool {
        let Some(mut operation) = self.to_store(sending, Arrival::Sent) else { return false };
        if let StoreOperation::Append { transaction, .. } | StoreOperation::Publish { transaction, .. } =
            &mut operation
        {
            *transaction = key.and_then(|key| self.store_transaction(key));
        }
        self.record(operation);
        true
    }

    /// How the store takes a message outside a transaction; `None` when it does not.
    pub(super) fn to_store(
        &self,
        Sending { target, held, copies }: &Sending,
        arrival: Arrival,
    ) -> Option<StoreOperation> {
        let message = held.body().cloned().filter(|_| held.is_persistent)?;
        Some(match target {
            Target::Queue(key) => StoreOperation::Append {
                stored: held.id,
                queue: self.queues.get(key).filter(|queue| queue.is_lasting())?.destination.clone(),
                arrival,
                message,
                transaction: None,
            },
            Target::Topic(topic) => {
                let (_, first) = copies.first()?;
                let name = |(queue, _): &(QueueKey, _)| self.queues.get(queue)?.durable.clone();
                StoreOperation::Publish {
                    stored: first.id,
                    topic: self.topics.get(topic)?.destination.clone(),
                    subscriptions: copies.iter().map(name).collect::<Option<_>>()?,
                    arrival,
                    message,
                    transaction: None,
                }
            }
        })
    }

    /// The store is done with a send outside a transaction.
    pub(super) fn sent(&mut self, sending: Sending, arrived: Arrived, outcome: &Result<(), StoreError>) {
        let message = sending.held.body().cloned();
        let id = message.as_ref().and_then(|message| message.headers().message_id.as_ref());
        let resent = id.map(|id| self.producers.end(id)).unwrap_or_default();
        let told = match outcome {
            Ok(()) => {
                if let Some(id) = id {
                    self.producers.note(id);
                }
                self.make_arrive(sending, Arrival::Sent, Some(arrived.connection));
                Ok(Confirmation::Done)
            }
            Err(error) => {
                let target = sending.target;
                self.drop_sending(sending);
                if let (StoreError::Full { reason }, Some(message)) = (error, &message) {
                    if !self.store_room.is_full() {
                        self.store_is_full(reason);
                    }
                    if let Some(counts) = self.counts_of(target) {
                        // So many sends were taken for duplicates of one that is not stored.
                        counts.duplicates -= resent.len() as u64;
                    }
                    for arrived in std::iter::once(arrived).chain(resent) {
                        self.wait_again(arrived, message);
                    }
                    return;
                }
                Err(ProviderError::Store { reason: error.to_string() })
            }
        };
        for Arrived { ticket, .. } in resent {
            self.confirm(ticket, told.clone());
        }
        self.confirm(arrived.ticket, told);
    }

    /// Makes a message visible where it goes. What goes to a durable subscription that is gone goes nowhere.
    pub(super) fn make_arrive(&mut self, sending: Sending, arrival: Arrival, origin: Option<ConnectionKey>) {
        let Sending { target, held, copies } = sending;
        for (queue, copy) in copies {
            self.enqueue(queue, copy, arrival);
        }
        match target {
            Target::Queue(queue) => self.enqueue(queue, held, arrival),
            Target::Topic(topic) => self.publish(topic, held, arrival, origin),
        }
    }

    /// Gives up a message that is not sent.
    pub(super) fn drop_sending(&mut self, sending: Sending) {
        let copies = sending.copies.into_iter().map(|(_, copy)| copy);
        copies.chain([sending.held]).for_each(|held| self.memory.release(held));
    }

    /// The counts of a queue, or of what comes to no subscription of a topic.
    pub(super) fn counts_of(&mut self, target: Target) -> Option<&mut Counts> {
        match target {
            Target::Queue(queue) => self.queues.get_mut(&queue).map(|queue| &mut queue.counts),
            Target::Topic(topic) => self.topics.get_mut(&topic).map(|topic| &mut topic.ended),
        }
    }

    /// The queue or topic behind a destination, if it is there.
    pub(super) fn find_target(&self, destination: &Destination) -> Option<Target> {
        if destination.is_temporary() {
            self.temporaries.target(destination)
        } else if destination.is_topic() {
            self.topic_names.get(destination.name()).copied().map(Target::Topic)
        } else {
            self.queue_names.get(destination.name()).copied().map(Target::Queue)
        }
    }

    /// The queue or topic behind a destination. What is not temporary is made on first use.
    pub(super) fn target(&mut self, destination: &Destination) -> Option<Target> {
        if destination.is_temporary() {
            self.temporaries.target(destination)
        } else if destination.is_topic() {
            self.topic_named(destination.name()).map(Target::Topic)
        } else {
            self.queue_named(destination.name()).map(Target::Queue)
        }
    }

    /// The destination that a target is.
    pub(super) fn destination_of(&self, target: Target) -> Option<&Destination> {
        match target {
            Target::Queue(queue) => self.queues.get(&queue).map(|queue| &queue.destination),
            Target::Topic(topic) => self.topics.get(&topic).map(|topic| &topic.destination),
        }
    }

    /// The queue of this name, made on first use; `None` for a name that no queue can have.
    pub(super) fn queue_named(&mut self, name: &str) -> Option<QueueKey> {
        if let Some(key) = self.queue_names.get(name) {
            return Some(*key);
        }
        let destination = Destination::queue(name).ok()?;
        let holds_dead_letters = holds_dead_letters(&self.settings, name);
        let key = self.add_queue(Queue::new(destination, None, holds_dead_letters));
        self.queue_names.insert(name.into(), key);
        Some(key)
    }

    pub(super) fn topic_named(&mut self, name: &str) -> Option<TopicKey> {
        if let Some(key) = self.topic_names.get(name) {
            return Some(*key);
        }
        let key = self.add_topic(Destination::topic(name).ok()?);
        self.topic_names.insert(name.into(), key);
        Some(key)
    }

    pub(super) fn add_queue(&mut self, mut queue: Queue) -> QueueKey {
        queue.by_priority = self.settings.priorities;
        queue.policy = self.policy_of(&queue.destination);
        let key = QueueKey(self.next_queue);
        self.next_queue += 1;
        self.queues.insert(key, queue);
        key
    }
}

fn without_destination() -> ProviderError {
    ProviderError::InvalidDestination {
        destination: "the destination of a message".to_owned(),
        reason: "the message names none; its header `destination` has to be set".to_owned(),
    }
}
