//! What each producer sent last, by which a send is recognised that was sent before.
//!
//! While it is not known what becomes of the first, as the end of its transaction is with the store or still to come, the second
//! one is refused: neither twice nor not at all would be right.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use corriere_core::MessageId;
use corriere_core::provider::{Confirmation, ProviderError, SendMessage};

use super::Machine;
use super::line::Arrived;
use super::memory::is_stored;

/// So many producers are remembered, those that sent last.
const REMEMBERED: usize = 1_024;

/// So many sends of a producer that were passed by later ones are remembered as not stored.
const PASSED: usize = 1_024;

/// The last stored sequence of each of the producers that sent last, and the sends that are with the store.
#[derive(Debug, Default)]
pub(super) struct Producers {
    last: HashMap<Arc<str>, Last>,
    by_use: BTreeMap<u64, Arc<str>>,
    uses: u64,
    /// What transactions send that are with the store to be committed or prepared, or are prepared.
    in_doubt: HashSet<MessageId>,
    /// Sends outside transactions that the store has not confirmed, with those that sent them again.
    under_way: HashMap<MessageId, Vec<Arrived>>,
}

#[derive(Debug)]
struct Last {
    sequence: u64,
    /// Those before it that are not stored, as they were refused or wait: sent again they are no duplicates.
    passed: BTreeSet<u64>,
    used: u64,
}

impl Producers {
    /// What the store brought back, those used longest ago first.
    pub(super) fn recovered(producers: Vec<(Arc<str>, u64)>) -> Self {
        let mut recovered = Self::default();
        for (producer, sequence) in producers {
            // Who sends again after a crash does not know what became of it, and sends in order: nothing was passed.
            recovered.remember(&producer, Last { sequence, passed: BTreeSet::new(), used: 0 });
        }
        recovered
    }

    /// Notes that a message is stored.
    pub(super) fn note(&mut self, id: &MessageId) {
        if let Some(last) = self.last.get_mut(&id.producer) {
            last.stored(id.sequence);
            if last.used < self.uses {
                self.uses += 1;
                self.by_use.remove(&last.used);
                self.by_use.insert(self.uses, Arc::clone(&id.producer));
                last.used = self.uses;
            }
            return;
        }
        let mut last = Last { sequence: 0, passed: BTreeSet::new(), used: 0 };
        last.stored(id.sequence);
        self.remember(&id.producer, last);
    }

    fn remember(&mut self, producer: &Arc<str>, last: Last) {
        self.uses += 1;
        self.last.insert(Arc::clone(producer), Last { used: self.uses, ..last });
        self.by_use.insert(self.uses, Arc::clone(producer));
        if self.last.len() > REMEMBERED
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.last.remove(&oldest);
        }
    }

    /// Notes that a send outside a transaction is given to the store.
    pub(super) fn begin(&mut self, id: &MessageId) {
        self.under_way.insert(id.clone(), Vec::new());
    }

    /// The store is done with it: who else is to be told.
    pub(super) fn end(&mut self, id: &MessageId) -> Vec<Arrived> {
        self.under_way.remove(id).unwrap_or_default()
    }

    /// Notes that what becomes of a message is not known before the end of its transaction.
    pub(super) fn doubt(&mut self, id: Option<&MessageId>) {
        self.in_doubt.extend(id.cloned());
    }

    /// It is known now.
    pub(super) fn doubt_no_more(&mut self, id: Option<&MessageId>) {
        if let Some(id) = id {
            self.in_doubt.remove(id);
        }
    }

    /// Whether a message was sent before and is stored, or may be.
    fn have(&self, id: &MessageId) -> bool {
        self.under_way.contains_key(id) || self.in_doubt.contains(id) || self.knows(id)
    }

    fn knows(&self, id: &MessageId) -> bool {
        self.last
            .get(&id.producer)
            .is_some_and(|last| id.sequence <= last.sequence && !last.passed.contains(&id.sequence))
    }
}

impl Last {
    fn stored(&mut self, sequence: u64) {
        if sequence <= self.sequence {
            self.passed.remove(&sequence);
            return;
        }
        let first = sequence.saturating_sub(PASSED as u64).max(self.sequence + 1);
        self.passed.extend(first..sequence);
        while self.passed.len() > PASSED {
            self.passed.pop_first();
        }
        self.sequence = sequence;
    }
}

impl Machine {
    /// Whether a send was sent before, so that it needs no room.
    pub(super) fn came_before(&self, send: &SendMessage) -> bool {
        is_stored(send)
            && send.message.headers().message_id.as_ref().is_some_and(|id| self.producers.have(id))
    }

    /// Whether a send was sent before: then it is dropped and answered as the first one was, or refused while that is in
    /// doubt.
    pub(super) fn is_resent(&mut self, arrived: Arrived, send: &SendMessage) -> bool {
        let Some(id) = &send.message.headers().message_id else { return false };
        if !is_stored(send) {
            return false;
        }
        let is_known = self.producers.knows(id);
        if !is_known {
            let is_transacted = send.transaction.is_some();
            if self.producers.in_doubt.contains(id)
                || (is_transacted && self.producers.under_way.contains_key(id))
            {
                let error = ProviderError::InDoubt { message_id: id.to_string() };
                if let Some(transaction) = self.transaction_of(arrived.connection, send) {
                    transaction.fail(&error);
                }
                self.confirm(arrived.ticket, Err(error));
                return true;
            }
            let Some(waiting) = self.producers.under_way.get_mut(id) else { return false };
            waiting.push(arrived);
        }
        if let Some(queue) = send
            .message
            .headers()
            .destination
            .as_ref()
            .and_then(|destination| self.queue_named(destination.name()))
            .and_then(|key| self.queues.get_mut(&key))
        {
            queue.counts.duplicates += 1;
        }
        if is_known {
            self.confirm(arrived.ticket, Ok(Confirmation::Done));
        }
        true
    }
}
