//! Sends that are sent again: what is stored is stored once.

use std::sync::Arc;

use corriere_broker::machine::ConnectionKey;
use corriere_core::{Destination, Message};

use super::entry::{Place, id_of, key_of};
use super::session::{Origin, Parked, TransactedSend};
use super::{Answer, Model};

impl Model {
    /// Whether a send was there before; then it is answered as the first one was, and counted, or refused while that is not
    /// known.
    pub(super) fn is_resent(&mut self, parked: &Parked) -> bool {
        let Parked { connection, ticket, message, .. } = parked;
        if !self.would_be_stored(*connection, message) {
            return false;
        }
        let id = id_of(message);
        let is_known = self
            .last_sequences
            .iter()
            .any(|(producer, last)| *producer == id.producer && id.sequence <= *last);
        let is_in_doubt = self.transactions.iter().any(|transaction| {
            let is_first = |send: &TransactedSend| send.is_stored() && id_of(&send.message) == id;
            (transaction.end_batch.is_some() || transaction.prepared.is_some())
                && transaction.sends.iter().any(is_first)
        });
        let first = self
            .entering
            .iter_mut()
            .find(|entering| matches!(entering.origin, Origin::Sent(_)) && id_of(&entering.message) == id);
        if !is_known && (is_in_doubt || (first.is_some() && parked.transaction.is_some())) {
            self.tickets.owe(*connection, *ticket, Answer::InDoubt);
            self.in_doubt += 1;
            if let Some(transaction) = &parked.transaction {
                self.condemn(&key_of(*connection, transaction));
            }
            return true;
        }
        if is_known {
            self.tickets.owe(*connection, *ticket, Answer::Done);
        } else if let Some(first) = first {
            first.resent.push(parked.clone());
            self.tickets.hold(*connection, *ticket);
        } else {
            return false;
        }
        let destination = message.headers().destination.clone().expect("a message at the seam has one");
        self.count(&destination).duplicates += 1;
        self.resent += 1;
        true
    }

    /// Whether a message that a connection has sent to a topic is a duplicate when it sends it again: it was stored for durable
    /// subscriptions, and would be now.
    #[must_use]
    pub fn is_recognised(&self, sender: ConnectionKey, message: &Message) -> bool {
        let id = id_of(message);
        let has_stored = self.durable.messages.iter().any(|(_, stored)| id_of(stored) == id);
        let is_storing = || self.entering.iter().any(|entering| id_of(&entering.message) == id);
        self.would_be_stored(sender, message) && (has_stored || is_storing())
    }

    /// Whether a send was there before, so that it needs no room.
    pub(super) fn came_before(&self, parked: &Parked) -> bool {
        let id = id_of(&parked.message);
        let is_first = |send: &TransactedSend| send.is_stored() && id_of(&send.message) == id;
        self.would_be_stored(parked.connection, &parked.message)
            && (self
                .last_sequences
                .iter()
                .any(|(producer, last)| *producer == id.producer && id.sequence <= *last)
                || self.transactions.iter().any(|transaction| {
                    (transaction.end_batch.is_some() || transaction.prepared.is_some())
                        && transaction.sends.iter().any(is_first)
                })
                || self.entering.iter().any(|entering| {
                    matches!(entering.origin, Origin::Sent(_)) && id_of(&entering.message) == id
                }))
    }

    /// A message is stored.
    pub(super) fn note_sent(&mut self, message: &Arc<Message>) {
        let id = id_of(message);
        match self.last_sequences.iter_mut().find(|(producer, _)| *producer == id.producer) {
            Some((_, last)) => *last = id.sequence.max(*last),
            None => self.last_sequences.push((id.producer, id.sequence)),
        }
    }
}

impl TransactedSend {
    /// Whether the store keeps it.
    pub(super) fn is_stored(&self) -> bool {
        is_stored(&self.message, &self.copies)
    }
}

/// Whether the store keeps what is sent, with these durable subscriptions to get it.
pub(super) fn is_stored(message: &Message, copies: &[Place]) -> bool {
    let headers = message.headers();
    let is_lasting = |to: &Destination| !to.is_topic() && !to.is_temporary();
    let is_kept = !copies.is_empty() || headers.destination.as_ref().is_some_and(is_lasting);
    headers.is_persistent() && is_kept
}
