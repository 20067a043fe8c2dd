//! The memory that messages hold, and the sends that wait for some.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use corriere_core::Message;
use corriere_core::provider::{MemoryHolder, ProviderError, SendMessage};

use super::Machine;
use super::line::{Line, Parked};
use super::sending::Target;
use super::step::{ConnectionKey, Ticket};
use super::time_index::Timer;
use crate::store::StoredId;

/// How many users of memory are named to whoever finds it full.
const NAMED_HOLDERS: usize = 3;

/// A live message, counted once in memory however many queues it is on.
#[derive(Debug)]
pub(super) struct Held {
    /// By which the store knows it, if it does.
    pub(super) id: StoredId,
    pub(super) message: Arc<Message>,
    /// The connection that sent it; `None` for what the broker made.
    pub(super) origin: Option<ConnectionKey>,
    /// Where it was sent or moved to, which is said to use the memory.
    target: Target,
    size: u64,
}

/// What is used of the limit, and who waits.
#[derive(Debug)]
pub(super) struct Memory {
    limit: u64,
    used: u64,
    /// The parts of `used`; a message of a topic is one of it, on however many private queues it is.
    by_target: BTreeMap<Target, u64>,
    last_id: u64,
    pub(super) line: Line,
}

impl Memory {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, used: 0, by_target: BTreeMap::new(), last_id: 0, line: Line::default() }
    }

    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Takes a message into memory.
    pub(super) fn hold(
        &mut self,
        message: Arc<Message>,
        origin: Option<ConnectionKey>,
        target: Target,
    ) -> Arc<Held> {
        let size = message.size() as u64;
        self.used += size;
        *self.by_target.entry(target).or_default() += size;
        self.last_id += 1;
        Arc::new(Held { id: StoredId(self.last_id), message, origin, target, size })
    }

    /// Gives up one hold on a message; the last one frees its memory. Every [`Held`] must end here.
    pub(super) fn release(&mut self, held: Arc<Held>) {
        if let Some(held) = Arc::into_inner(held) {
            self.used -= held.size;
            if let Some(bytes) = self.by_target.get_mut(&held.target) {
                *bytes -= held.size;
                if *bytes == 0 {
                    self.by_target.remove(&held.target);
                }
            }
        }
    }
}

impl Machine {
    /// Whether a new send has to wait.
    pub(super) fn must_park(&self, connection: ConnectionKey, send: &SendMessage) -> bool {
        let Memory { limit, used, line, .. } = &self.memory;
        let size = send.message.size() as u64;
        if line.has((connection, send.producer)) {
            return true;
        }
        let fits = |limit| *used == 0 || used.saturating_add(size) <= limit;
        if fits(*limit) && line.is_clear() {
            return false;
        }
        !(self.may_overdraw(connection, send) && fits(limit.saturating_mul(2)))
    }

    /// Whether a send takes part in ending deliveries: they free memory only by the commit that it is part of, so it
    /// must not wait for memory behind those who only bring messages.
    fn may_overdraw(&self, connection: ConnectionKey, send: &SendMessage) -> bool {
        send.transaction.is_some()
            && self.connections.get(&connection).is_some_and(|state| {
                state.subscriptions_beside(send.producer).any(|subscription| {
                    let subscription = self.subscriptions.get(&(connection, subscription));
                    subscription.is_some_and(|subscription| !subscription.is_idle())
                })
            })
    }

    /// Lets a send wait for memory, up to its deadline.
    pub(super) fn park(&mut self, connection: ConnectionKey, ticket: Ticket, send: SendMessage) {
        let wait = send.deadline.unwrap_or(self.settings.send_deadline);
        let deadline = self.now.saturating_add(wait);
        let size = send.message.size() as u64;
        let is_oversized = size > self.memory.limit;
        let transaction = send.transaction.clone().map(|transaction| (connection, transaction));
        let parked = Parked { connection, ticket, send, size, is_oversized, since: self.now, deadline };
        if deadline <= self.now {
            self.refuse_parked(parked);
            return;
        }
        let number = self.memory.line.add(parked);
        self.timers.insert(deadline, Timer::SendDeadline(number));
        if let Some(transaction) = transaction.and_then(|key| self.transactions.get_mut(&key)) {
            transaction.parked.insert(number);
        }
    }

    /// Admits parked sends as far as memory reaches.
    pub(super) fn admit_parked(&mut self) {
        while let Some(number) = self.memory.line.next(self.memory.used, self.memory.limit)
            && let Some(parked) = self.unpark(number)
        {
            let transaction = parked.send.transaction.clone();
            self.accept(parked.connection, parked.ticket, parked.send);
            if let Some(transaction) = transaction {
                self.commit_if_waiting(&(parked.connection, transaction));
            }
        }
    }

    /// The deadline of a parked send has come.
    pub(super) fn parked_too_long(&mut self, number: u64) {
        if let Some(parked) = self.unpark(number) {
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
            holders: self.largest_holders(),
        };
        if let Some(transaction) = self.transaction_of(parked.connection, &parked.send) {
            transaction.fail(&error);
        }
        self.confirm(parked.ticket, Err(error));
        if let Some(transaction) = parked.send.transaction {
            self.commit_if_waiting(&(parked.connection, transaction));
        }
    }

    /// Who uses most of the memory.
    fn largest_holders(&self) -> Vec<MemoryHolder> {
        let mut largest = Vec::with_capacity(NAMED_HOLDERS + 1);
        for (target, bytes) in &self.memory.by_target {
            largest.push((Reverse(*bytes), *target));
            largest.sort_unstable();
            largest.truncate(NAMED_HOLDERS);
        }
        largest
            .into_iter()
            .filter_map(|(Reverse(bytes), target)| {
                let destination = self.destination_of(target)?.to_string();
                Some(MemoryHolder { destination, bytes })
            })
            .collect()
    }

    /// Takes a parked send out of the line, and out of what its transaction waits for.
    pub(super) fn unpark(&mut self, number: u64) -> Option<Parked> {
        let parked = self.memory.line.remove(number)?;
        self.timers.remove(parked.deadline, Timer::SendDeadline(number));
        if let Some(transaction) = self.transaction_of(parked.connection, &parked.send) {
            transaction.parked.remove(&number);
        }
        Some(parked)
    }
}
