//! The memory that messages hold, and the sends that wait for some.

use std::collections::BTreeMap;
use std::sync::Arc;

use corriere_core::provider::{ProviderError, Send};
use corriere_core::{Message, Timestamp};

use super::Machine;
use super::step::{ConnectionKey, Ticket};
use super::time_index::Timer;
use crate::store::StoredId;

/// A live message, counted once in memory however many queues it is on.
#[derive(Debug)]
pub(super) struct Held {
    /// By which the store knows it, if it does.
    pub(super) id: StoredId,
    pub(super) message: Arc<Message>,
    /// The connection that sent it; `None` for what the broker made.
    pub(super) origin: Option<ConnectionKey>,
    size: u64,
}

/// A send that waits for memory.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) connection: ConnectionKey,
    pub(super) ticket: Ticket,
    pub(super) send: Send,
    since: Timestamp,
    deadline: Timestamp,
}

/// What is used of the limit, and who waits.
#[derive(Debug)]
pub(super) struct Memory {
    limit: u64,
    used: u64,
    last_id: u64,
    /// In the order of their arrival: nobody overtakes, so a large message is not starved by small ones.
    parked: BTreeMap<u64, Parked>,
    next_parked: u64,
}

impl Memory {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, used: 0, last_id: 0, parked: BTreeMap::new(), next_parked: 0 }
    }

    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Takes a message into memory.
    pub(super) fn hold(&mut self, message: Arc<Message>, origin: Option<ConnectionKey>) -> Arc<Held> {
        let size = message.size() as u64;
        self.used += size;
        self.last_id += 1;
        Arc::new(Held { id: StoredId(self.last_id), message, origin, size })
    }

    /// Gives up one hold on a message; the last one frees its memory. Every [`Held`] must end here.
    pub(super) fn release(&mut self, held: Arc<Held>) {
        if let Some(held) = Arc::into_inner(held) {
            self.used -= held.size;
        }
    }
}

/// Whether a message may come in. A single one above the limit may when nothing else is there.
fn fits(used: u64, limit: u64, message: &Message) -> bool {
    used == 0 || used.saturating_add(message.size() as u64) <= limit
}

impl Machine {
    /// Whether a new send has to wait.
    pub(super) fn must_park(&self, message: &Message) -> bool {
        !self.memory.parked.is_empty() || !fits(self.memory.used, self.memory.limit, message)
    }

    /// Lets a send wait for memory, up to its deadline.
    pub(super) fn park(&mut self, connection: ConnectionKey, ticket: Ticket, send: Send) {
        let wait = send.deadline.unwrap_or(self.settings.send_deadline);
        let deadline = self.now.saturating_add(wait);
        if let Some(transaction) = self.transaction_of(connection, &send) {
            transaction.parked += 1;
        }
        let parked = Parked { connection, ticket, send, since: self.now, deadline };
        if deadline <= self.now {
            self.refuse_parked(parked);
            return;
        }
        let number = self.memory.next_parked;
        self.memory.next_parked += 1;
        self.memory.parked.insert(number, parked);
        self.timers.insert(deadline, Timer::SendDeadline(number));
    }

    /// Admits parked sends as far as memory reaches.
    pub(super) fn admit_parked(&mut self) {
        while let Some(first) = self.memory.parked.first_entry() {
            if !fits(self.memory.used, self.memory.limit, &first.get().send.message) {
                break;
            }
            let (number, parked) = first.remove_entry();
            self.timers.remove(parked.deadline, Timer::SendDeadline(number));
            if let Some(transaction) = self.transaction_of(parked.connection, &parked.send) {
                transaction.parked -= 1;
            }
            let transaction = parked.send.transaction.clone();
            self.accept(parked.connection, parked.ticket, parked.send);
            if let Some(transaction) = transaction {
                self.commit_if_waiting(&(parked.connection, transaction));
            }
        }
    }

    /// The deadline of a parked send has come.
    pub(super) fn parked_too_long(&mut self, number: u64) {
        if let Some(parked) = self.memory.parked.remove(&number) {
            self.refuse_parked(parked);
        }
    }

    fn refuse_parked(&mut self, parked: Parked) {
        let headers = parked.send.message.headers();
        let error = ProviderError::MemoryFull {
            message_id: headers.message_id.as_ref().map_or_else(String::new, ToString::to_string),
            destination: headers.destination.as_ref().map_or_else(String::new, ToString::to_string),
            waited: self.now.since(parked.since),
            limit: self.memory.limit,
        };
        if let Some(transaction) = self.transaction_of(parked.connection, &parked.send) {
            transaction.parked -= 1;
            transaction.fail(&error);
        }
        self.confirm(parked.ticket, Err(error));
        if let Some(transaction) = parked.send.transaction {
            self.commit_if_waiting(&(parked.connection, transaction));
        }
    }

    /// Notes the end of a parked send whose sender is gone.
    pub(super) fn forget_parked(&mut self, parked: &Parked) {
        if let Some(transaction) = self.transaction_of(parked.connection, &parked.send) {
            transaction.parked -= 1;
        }
    }

    /// Takes the parked sends of a connection, or of one transaction of it, out of the line.
    pub(super) fn unpark(&mut self, mut which: impl FnMut(&Parked) -> bool) -> Vec<Parked> {
        let taken: Vec<_> = self.memory.parked.extract_if(.., |_, parked| which(parked)).collect();
        for (number, parked) in &taken {
            self.timers.remove(parked.deadline, Timer::SendDeadline(*number));
        }
        taken.into_iter().map(|(_, parked)| parked).collect()
    }
}
