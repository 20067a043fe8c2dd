//! Sends: what is checked, where they go, and when they become visible.

use std::sync::Arc;

use corriere_core::Destination;
use corriere_core::provider::{Confirmation, ProviderError, SendMessage};

use super::Machine;
use super::dead_letter::holds_dead_letters;
use super::line::{Arrived, Wanted};
use super::memory::Held;
use super::queue::{Queue, QueueKey};
use super::step::{ConnectionKey, OnStored, Ticket};
use super::topic::TopicKey;
use super::transaction::key_of;
use crate::store::{Arrival, StoreError, StoreOperation};

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    Queue(QueueKey),
    Topic(TopicKey),
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
        let held = self.memory.hold(send.message, target);
        let queue = match target {
            Target::Queue(key) => self.queues.get(&key).filter(|queue| queue.stores(&held)),
            Target::Topic(_) => None,
        };
        let queue = queue.map(|queue| queue.destination.clone());
        let is_stored = queue.is_some();
        let key = send.transaction.map(|transaction| key_of(connection, &transaction));
        if let (Some(queue), Some(message)) = (queue, held.body()) {
            let transaction = key.as_ref().and_then(|key| self.store_transaction(key));
            self.record(StoreOperation::Append {
                stored: held.id,
                queue,
                arrival: Arrival::Sent,
                message: Arc::clone(message),
                transaction,
            });
            if let Some(key) = &key {
                self.on_stored.push(OnStored::Appended { transaction: key.clone(), stored: held.id });
            } else {
                if let Some(id) = &id {
                    self.producers.begin(id);
                }
                self.on_stored.push(OnStored::Sent { target, held, arrived });
                return;
            }
        }
        match key.and_then(|key| self.transactions.get_mut(&key)) {
            Some(transaction) => transaction.add_send(target, held, id.filter(|_| is_stored)),
            None => self.make_sent(target, held, Some(connection)),
        }
        self.confirm(ticket, Ok(Confirmation::Done));
    }

    /// The store is done with a send outside a transaction.
    pub(super) fn sent(
        &mut self,
        target: Target,
        held: Arc<Held>,
        arrived: Arrived,
        outcome: &Result<(), StoreError>,
    ) {
        let message = held.body().cloned();
        let id = message.as_ref().and_then(|message| message.headers().message_id.as_ref());
        let resent = id.map(|id| self.producers.end(id)).unwrap_or_default();
        let told = match outcome {
            Ok(()) => {
                if let Some(id) = id {
                    self.producers.note(id);
                }
                self.make_sent(target, held, None);
                Ok(Confirmation::Done)
            }
            Err(error) => {
                self.memory.release(held);
                if let (StoreError::Full { reason }, Some(message)) = (error, &message) {
                    if !self.store_room.is_full() {
                        self.store_is_full(reason);
                    }
                    self.count_no_duplicates(target, resent.len());
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

    /// So many sends were taken for duplicates of one that is not stored.
    fn count_no_duplicates(&mut self, target: Target, count: usize) {
        if let Target::Queue(queue) = target
            && let Some(queue) = self.queues.get_mut(&queue)
        {
            queue.counts.duplicates -= count as u64;
        }
    }

    /// Makes a sent message visible where it goes.
    pub(super) fn make_sent(&mut self, target: Target, held: Arc<Held>, origin: Option<ConnectionKey>) {
        match target {
            Target::Queue(queue) => self.enqueue(queue, held),
            Target::Topic(topic) => self.publish(topic, held, origin),
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

    fn topic_named(&mut self, name: &str) -> Option<TopicKey> {
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
