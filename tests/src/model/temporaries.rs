//! Temporary destinations: whose they are, and what ends with them.

use corriere_broker::machine::{ConnectionKey, Effects};
use corriere_core::provider::Event;
use corriere_core::{Destination, Message};

use super::{Answer, Judgement, Model, Parked, violation};

/// A temporary destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Temporary {
    /// Its name.
    pub destination: Destination,
    /// Whose it is.
    pub owner: ConnectionKey,
}

impl Model {
    /// The temporary destinations that are there.
    #[must_use]
    pub fn temporaries(&self) -> &[Temporary] {
        &self.temporaries
    }

    /// How many messages were refused, or dropped by a commit, as their temporary destination was gone, and how many were in
    /// one that ended.
    #[must_use]
    pub fn lost_with_temporaries(&self) -> [u64; 3] {
        self.lost_with_temporaries
    }

    pub(super) fn create_temporary(&mut self, owner: ConnectionKey, destination: &Destination) -> Answer {
        let connection = self.connections.iter().find(|connection| connection.key == owner);
        let prefix = connection.map(|connection| format!("{}:", connection.identity)).unwrap_or_default();
        let is_own = destination.name().starts_with(&prefix) && destination.name().len() > prefix.len();
        if !destination.is_temporary() || !is_own {
            return Answer::Invalid;
        }
        if self.temporary(destination).is_some() {
            return Answer::Refused;
        }
        self.temporaries.push(Temporary { destination: destination.clone(), owner });
        self.tell_watchers(destination, true);
        Answer::Created(destination.clone())
    }

    /// Its owner alone deletes it, once nobody consumes from it.
    pub(super) fn delete_temporary(
        &mut self,
        connection: ConnectionKey,
        destination: &Destination,
    ) -> Answer {
        let has_consumers = self
            .subscriptions
            .iter()
            .any(|subscription| subscription.is_open && subscription.place.destination() == destination);
        if !self.may_consume(connection, destination) || !destination.is_temporary() || has_consumers {
            return Answer::Invalid;
        }
        self.end_temporary(destination);
        Answer::Done
    }

    /// All that is in it goes with it, whoever has it, and sends that wait for it are refused. A transaction is none the worse.
    pub(super) fn end_temporary(&mut self, destination: &Destination) {
        self.temporaries.retain(|temporary| temporary.destination != *destination);
        let before = self.entries.len();
        self.entries.retain(|entry| entry.place.destination() != destination);
        self.lost_with_temporaries[2] += (before - self.entries.len()) as u64;
        self.counts.retain(|(counted, _)| counted != destination);
        let (refused, kept): (Vec<Parked>, _) = std::mem::take(&mut self.parked)
            .into_iter()
            .partition(|parked| parked.message.headers().destination.as_ref() == Some(destination));
        self.parked = kept;
        for parked in refused {
            self.lost_with_temporaries[0] += 1;
            self.tickets.owe(parked.connection, parked.ticket, Answer::Invalid);
        }
        self.tell_watchers(destination, false);
    }

    /// With a connection.
    pub(super) fn end_temporaries_of(&mut self, owner: ConnectionKey) {
        self.watchers.retain(|watcher| *watcher != owner);
        while let Some(own) = self.temporaries.iter().find(|temporary| temporary.owner == owner).cloned() {
            self.end_temporary(&own.destination);
        }
    }

    pub(super) fn watch(&mut self, connection: ConnectionKey) {
        if !self.watchers.contains(&connection) {
            self.watchers.push(connection);
        }
        let there =
            self.temporaries.iter().map(|temporary| (connection, changed(&temporary.destination, true)));
        self.changes.extend(there);
    }

    /// Whether a connection may consume from a destination, or look into it.
    pub(super) fn may_consume(&self, connection: ConnectionKey, destination: &Destination) -> bool {
        !destination.is_temporary()
            || self.temporary(destination).is_some_and(|temporary| temporary.owner == connection)
    }

    /// Whether a message goes to a temporary destination that is not there.
    pub(super) fn goes_nowhere(&self, message: &Message) -> bool {
        let destination = message.headers().destination.as_ref();
        destination.is_some_and(|to| to.is_temporary() && self.temporary(to).is_none())
    }

    /// Each watcher is told of each change, each subscription of its new window, and nobody of anything else.
    pub(super) fn check_changes(&self, effects: &Effects) -> Judgement {
        let in_order = |changes: &[(ConnectionKey, Event)]| {
            let mut changes: Vec<_> = changes.iter().map(|change| format!("{change:?}")).collect();
            changes.sort();
            changes
        };
        let (told, expected) = (in_order(&effects.changes), in_order(&self.changes));
        if told != expected {
            violation!("it is told {told:?}, expected {expected:?}");
        }
        Ok(())
    }

    fn temporary(&self, destination: &Destination) -> Option<&Temporary> {
        self.temporaries.iter().find(|temporary| temporary.destination == *destination)
    }

    fn tell_watchers(&mut self, destination: &Destination, exists: bool) {
        self.changes.extend(self.watchers.iter().map(|watcher| (*watcher, changed(destination, exists))));
    }
}

fn changed(destination: &Destination, exists: bool) -> Event {
    Event::DestinationChanged { destination: destination.clone(), exists }
}
