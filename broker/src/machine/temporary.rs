//! Temporary destinations: each belongs to a connection and ends with it, or before when that connection deletes it.
//!
//! - Only its own connection consumes from it and looks into it; anybody sends to it. It is never made by use.
//! - Nothing in it is stored, whatever its delivery mode, and none of it becomes a dead letter.
//! - It ends with all that is in it, in flight or not, and with its counts. Sends that wait for it are refused.
//! - A send to one that is not there is refused, and does no harm to the transaction that names it. Nobody could ever get the
//!   message, whether the destination ended before the send, while that waited, or before the commit: in each case the
//!   rest of the transaction takes effect without it, as with ActiveMQ.

use std::collections::{BTreeMap, BTreeSet};

use corriere_core::provider::{Confirmation, Event, ProviderError, SendMessage};
use corriere_core::{Destination, SubscriptionId};

use super::Machine;
use super::effects::ConnectionKey;
use super::queue::Queue;
use super::sending::Target;
use super::transaction::key_of;

/// The temporary destinations of all connections, and who wants word of them.
#[derive(Debug, Default)]
pub(super) struct Temporaries {
    all: BTreeMap<Destination, Temporary>,
    watchers: BTreeSet<ConnectionKey>,
}

#[derive(Clone, Copy, Debug)]
struct Temporary {
    owner: ConnectionKey,
    target: Target,
}

impl Temporaries {
    /// The queue or topic behind one, if it is there.
    pub(super) fn target(&self, destination: &Destination) -> Option<Target> {
        self.all.get(destination).map(|temporary| temporary.target)
    }
}

impl Machine {
    /// Makes a temporary destination of a connection.
    pub(super) fn create_temporary(
        &mut self,
        owner: ConnectionKey,
        destination: Destination,
    ) -> Result<Confirmation, ProviderError> {
        if !destination.is_temporary() {
            return Err(invalid(
                &destination,
                "it is not temporary, and needs no making: using it is enough",
            ));
        }
        let connection = self.connections.get_mut(&owner).ok_or(ProviderError::Lost)?;
        let number = destination
            .name()
            .strip_prefix(connection.identity.as_str())
            .and_then(|rest| rest.strip_prefix(':'));
        if number.is_none_or(str::is_empty) {
            let expected = format!(
                "the name of a temporary destination begins with the identity of its connection, here `{}:`",
                connection.identity
            );
            return Err(invalid(&destination, &expected));
        }
        if self.temporaries.all.contains_key(&destination) {
            return Err(ProviderError::Exists { what: destination.to_string() });
        }
        connection.temporaries.insert(destination.clone());
        let target = if destination.is_topic() {
            Target::Topic(self.add_topic(destination.clone()))
        } else {
            Target::Queue(self.add_queue(Queue::new(destination.clone(), None, false)))
        };
        self.temporaries.all.insert(destination.clone(), Temporary { owner, target });
        self.tell_watchers(&destination, true);
        Ok(Confirmation::Created(destination))
    }

    /// Removes a temporary destination from which nobody consumes. A browser of it comes to its end.
    pub(super) fn delete_temporary(
        &mut self,
        connection: ConnectionKey,
        destination: &Destination,
    ) -> Result<(), ProviderError> {
        let temporary = self.own_temporary(connection, destination)?;
        let consumers = self.consumers_of(temporary);
        if consumers > 0 {
            let reason =
                format!("it still has consumers ({consumers}), which have to be closed before it is deleted");
            return Err(invalid(destination, &reason));
        }
        self.end_temporary(destination);
        Ok(())
    }

    /// Removes a temporary destination with all that is in it.
    pub(super) fn end_temporary(&mut self, destination: &Destination) {
        let Some(Temporary { owner, target }) = self.temporaries.all.remove(destination) else { return };
        if let Some(connection) = self.connections.get_mut(&owner) {
            connection.temporaries.remove(destination);
        }
        let queues = match target {
            Target::Queue(queue) => vec![queue],
            Target::Topic(topic) => self.remove_topic(topic),
        };
        for queue in queues {
            self.end_queue(queue);
        }
        self.end_browsers_of(owner, target);
        self.tell_watchers(destination, false);
        self.refuse_sends_to(destination);
    }

    /// Refuses what a connection may not consume from, or look into.
    pub(super) fn check_may_consume(
        &self,
        connection: ConnectionKey,
        destination: &Destination,
    ) -> Result<(), ProviderError> {
        if destination.is_temporary() {
            self.own_temporary(connection, destination)?;
        }
        Ok(())
    }

    /// Refuses what nobody could ever get.
    pub(super) fn check_is_there(&self, send: &SendMessage) -> Result<(), ProviderError> {
        send.message
            .headers()
            .destination
            .as_ref()
            .map_or(Ok(()), |destination| self.check_exists(destination))
    }

    /// Refuses a temporary destination that is not there.
    pub(super) fn check_exists(&self, destination: &Destination) -> Result<(), ProviderError> {
        if destination.is_temporary() && !self.temporaries.all.contains_key(destination) {
            return Err(not_there(destination));
        }
        Ok(())
    }

    /// Has a connection told of temporary destinations from now on, and of those that are there.
    pub(super) fn watch_temporaries(&mut self, connection: ConnectionKey) {
        self.temporaries.watchers.insert(connection);
        for destination in self.temporaries.all.keys() {
            self.effects.changes.push((connection, changed(destination, true)));
        }
    }

    /// Ends the temporary destinations of a connection, and its watch over those of others.
    pub(super) fn end_temporaries_of(&mut self, connection: ConnectionKey) {
        self.temporaries.watchers.remove(&connection);
        while let Some(destination) =
            self.connections.get_mut(&connection).and_then(|connection| connection.temporaries.pop_first())
        {
            self.end_temporary(&destination);
        }
    }

    fn own_temporary(
        &self,
        connection: ConnectionKey,
        destination: &Destination,
    ) -> Result<Temporary, ProviderError> {
        let temporary = *self.temporaries.all.get(destination).ok_or_else(|| not_there(destination))?;
        if temporary.owner != connection {
            let owner = self.connections.get(&temporary.owner).map(|owner| owner.identity.as_str());
            let reason = format!(
                "it belongs to connection {}, which alone may consume from it, look into it or delete it",
                owner.unwrap_or_default()
            );
            return Err(invalid(destination, &reason));
        }
        Ok(temporary)
    }

    /// How many consumers a temporary destination has, all of which are its owner's.
    fn consumers_of(&self, Temporary { owner, target }: Temporary) -> usize {
        let of_owner = (owner, SubscriptionId(0))..=(owner, SubscriptionId(u64::MAX));
        let open = self.subscriptions.range(of_owner).map(|(_, open)| open).filter(|open| !open.is_closed);
        let of_this = open.filter(|open| match target {
            Target::Queue(queue) => open.queue == queue,
            Target::Topic(topic) => {
                self.queues.get(&open.queue).is_some_and(|private| private.topic == Some(topic))
            }
        });
        of_this.count()
    }

    /// Refuses the sends that wait for a destination that is gone.
    fn refuse_sends_to(&mut self, destination: &Destination) {
        let (line, store_line) = (&self.memory.line, &self.memory.store_line);
        let waiting = line.to_temporary(destination).chain(store_line.to_temporary(destination));
        for number in waiting.collect::<BTreeSet<u64>>() {
            let Some(parked) = self.unpark(number) else { continue };
            self.confirm(parked.arrived.ticket, Err(not_there(destination)));
            if let Some(transaction) = parked.send.transaction {
                self.end_if_waiting(&key_of(parked.arrived.connection, &transaction));
            }
        }
    }

    fn tell_watchers(&mut self, destination: &Destination, exists: bool) {
        for connection in &self.temporaries.watchers {
            self.effects.changes.push((*connection, changed(destination, exists)));
        }
    }
}

fn changed(destination: &Destination, exists: bool) -> Event {
    Event::DestinationChanged { destination: destination.clone(), exists }
}

fn not_there(destination: &Destination) -> ProviderError {
    invalid(
        destination,
        "it does not exist, or does so no more: it ends with its connection or when that deletes it",
    )
}

pub(super) fn invalid(destination: &Destination, reason: &str) -> ProviderError {
    ProviderError::InvalidDestination { destination: destination.to_string(), reason: reason.to_owned() }
}
