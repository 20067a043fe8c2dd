//! The memory that messages hold, and the sends that wait for some.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use corriere_core::message::Priority;
use corriere_core::provider::{MemoryHolder, ProviderError, SendMessage};
use corriere_core::{Destination, Message, Timestamp};

use super::Machine;
use super::effects::{ConnectionKey, Ticket};
use super::line::{Arrived, Line, Parked, Wanted};
use super::sending::Target;
use super::time_index::Timer;
use super::transaction::key_of;
use crate::store::{RecoveredMessage, StoredId};

/// How many users of memory are named to whoever finds it full.
const NAMED_HOLDERS: usize = 3;

/// A live message, which private queues of a topic may share. Its body may be with the store only.
#[derive(Debug)]
pub(super) struct Held {
    /// By which the store knows it, if it does.
    pub(super) id: StoredId,
    body: Option<Arc<Body>>,
    /// Where it was sent or moved to, which is said to use the memory.
    target: Target,
    /// Bytes that it uses while its body is here.
    pub(super) size: u64,
    expiration: Timestamp,
    pub(super) priority: Priority,
    pub(super) is_persistent: bool,
}

/// A message in memory, counted once however many durable subscriptions share it.
#[derive(Debug)]
struct Body {
    message: Arc<Message>,
    target: Target,
    size: u64,
}

/// The expiration of what never expires.
const NEVER: Timestamp = Timestamp(u64::MAX);

/// What is used of the limit, and who waits.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) limit: u64,
    used: u64,
    /// The parts of `used`; a message of a topic is one of it, on however many private queues it is.
    by_target: BTreeMap<Target, u64>,
    last_id: u64,
    pub(super) line: Line,
    /// Sends that wait for room in the store.
    pub(super) store_line: Line,
    next_number: u64,
}

impl Held {
    /// What the store brought back, without its body.
    pub(super) fn recovered(recovered: &RecoveredMessage, target: Target) -> Arc<Self> {
        Arc::new(Self {
            id: recovered.stored,
            body: None,
            target,
            size: recovered.size,
            expiration: recovered.expiration.unwrap_or(NEVER),
            priority: recovered.priority,
            is_persistent: true,
        })
    }

    /// The message, while it is in memory.
    pub(super) fn body(&self) -> Option<&Arc<Message>> {
        self.body.as_deref().map(|body| &body.message)
    }

    pub(super) fn expiration(&self) -> Option<Timestamp> {
        Some(self.expiration).filter(|expiration| *expiration != NEVER)
    }

    /// Whether its time is over.
    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        self.expiration().is_some_and(|expiration| expiration <= now)
    }

    /// Whether its body may go, if no other queue holds it: the store has it.
    pub(super) fn may_go(&self) -> bool {
        self.is_persistent && self.body.is_some()
    }
}

impl Memory {
    pub(super) fn new(limit: u64) -> Self {
        Self {
            limit,
            used: 0,
            by_target: BTreeMap::new(),
            last_id: 0,
            line: Line::default(),
            store_line: Line::default(),
            next_number: 0,
        }
    }

    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Has new messages named behind all that were ever there.
    pub(super) fn resume_names(&mut self, last: StoredId) {
        self.last_id = self.last_id.max(last.0);
    }

    /// Takes a message into memory.
    pub(super) fn hold(&mut self, message: Arc<Message>, target: Target) -> Arc<Held> {
        let size = message.size() as u64;
        let headers = message.headers();
        Arc::new(Held {
            id: self.next_id(),
            target,
            size,
            expiration: headers.expiration.unwrap_or(NEVER),
            priority: headers.priority,
            is_persistent: headers.is_persistent(),
            body: Some(self.take(message, target, size)),
        })
    }

    /// The same message under the next name, with the same body.
    pub(super) fn copy(&mut self, held: &Held) -> Arc<Held> {
        let id = self.next_id();
        let Held { target, size, expiration, priority, is_persistent, ref body, .. } = *held;
        Arc::new(Held { id, body: body.clone(), target, size, expiration, priority, is_persistent })
    }

    fn next_id(&mut self) -> StoredId {
        self.last_id += 1;
        StoredId(self.last_id)
    }

    /// Gives up one hold on a message; the last one frees its memory. Every [`Held`] must end here.
    pub(super) fn release(&mut self, held: Arc<Held>) {
        if let Some(body) = Arc::into_inner(held).and_then(|held| held.body) {
            self.free(body);
        }
    }

    /// Lets the body of a message go, which only its one queue holds. Answers whether it did; that frees memory once nobody has
    /// that body any more.
    pub(super) fn forget_body(&mut self, held: &mut Arc<Held>) -> bool {
        let Some(held) = Arc::get_mut(held).filter(|held| held.may_go()) else { return false };
        held.body.take().into_iter().for_each(|body| self.free(body));
        true
    }

    /// Takes back a body that was read.
    pub(super) fn regain_body(&mut self, held: &mut Arc<Held>, message: Arc<Message>) {
        if let Some(held) = Arc::get_mut(held).filter(|held| held.body.is_none()) {
            held.body = Some(self.take(message, held.target, held.size));
        }
    }

    fn take(&mut self, message: Arc<Message>, target: Target, size: u64) -> Arc<Body> {
        self.used += size;
        *self.by_target.entry(target).or_default() += size;
        Arc::new(Body { message, target, size })
    }

    /// Gives up a body; the last one who does frees its memory.
    fn free(&mut self, body: Arc<Body>) {
        let Some(Body { target, size, .. }) = Arc::into_inner(body) else { return };
        self.used -= size;
        if let Some(bytes) = self.by_target.get_mut(&target) {
            *bytes -= size;
            if *bytes == 0 {
                self.by_target.remove(&target);
            }
        }
    }
}

impl Machine {
    /// Numbers a send that has come.
    pub(super) fn arrive(
        &mut self,
        connection: ConnectionKey,
        ticket: Ticket,
        send: &SendMessage,
    ) -> Arrived {
        let number = self.memory.next_number;
        self.memory.next_number += 1;
        let (producer, since) = (send.producer, self.now);
        let deadline = since.saturating_add(send.deadline.unwrap_or(self.settings.send_deadline));
        Arrived { number, connection, producer, ticket, since, deadline }
    }

    /// Whether a send has to wait for memory. What lies idle gives up its body before anybody waits.
    pub(super) fn must_park(&mut self, arrived: &Arrived, send: &SendMessage) -> bool {
        if self.memory.line.has(arrived.producer_key()) {
            return true;
        }
        let size = send.message.size() as u64;
        self.make_room(size);
        let Memory { limit, used, line, .. } = &self.memory;
        let fits = |limit| *used == 0 || used.saturating_add(size) <= limit;
        // When nothing is there it is the turn of an oversized one, too.
        let first = if *used == 0 { line.next(0, *limit) } else { line.first() };
        if fits(*limit) && first.is_none_or(|first| arrived.number < first) {
            return false;
        }
        !(self.may_overdraw(arrived.connection, send) && fits(limit.saturating_mul(2)))
    }

    /// Whether memory has room for so much more, where bodies that lie idle are let go.
    pub(super) fn has_room_for(&mut self, size: u64) -> bool {
        self.make_room(size);
        let Memory { limit, used, .. } = &self.memory;
        *used == 0 || used.saturating_add(size) <= *limit
    }

    /// Whether a new send has to wait for room in the store, or for one of its own producer that does.
    pub(super) fn must_wait_for_store(&self, arrived: &Arrived, send: &SendMessage) -> bool {
        self.memory.store_line.has(arrived.producer_key())
            || (self.store_room.is_full() && self.is_stored(arrived.connection, &send.message))
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

    /// Lets a send wait for memory or for the store, up to its deadline.
    pub(super) fn park(&mut self, arrived: Arrived, send: SendMessage, wants: Wanted) {
        let size = send.message.size() as u64;
        let parked = Parked { arrived, send, size, wants };
        if arrived.deadline <= self.now {
            self.refuse_parked(parked);
            return;
        }
        self.timers.insert(arrived.deadline, Timer::SendDeadline(arrived.number));
        if let Some(transaction) = self.transaction_of(arrived.connection, &parked.send) {
            transaction.parked.insert(arrived.number);
        }
        self.stand_in_line(parked);
    }

    pub(super) fn stand_in_line(&mut self, parked: Parked) {
        let is_oversized = parked.size > self.memory.limit;
        match parked.wants {
            Wanted::Memory => self.memory.line.add(parked, is_oversized),
            // What needs the store stands aside there, and what waits only behind it stands in line once it is gone.
            Wanted::Store => {
                let needs_store = self.is_stored(parked.arrived.connection, &parked.send.message);
                self.memory.store_line.add(parked, needs_store);
            }
        }
    }

    /// Admits parked sends as far as memory and the store reach.
    pub(super) fn admit_parked(&mut self) {
        // In their order; some of them may have to wait for memory now.
        while let Some(number) = self.next_from_store()
            && let Some(mut parked) = self.memory.store_line.remove(number)
        {
            if !self.came_before(parked.arrived.connection, &parked.send)
                && self.must_park(&parked.arrived, &parked.send)
            {
                parked.wants = Wanted::Memory;
                self.stand_in_line(parked);
            } else {
                self.admit(parked);
            }
        }
        while let Some(number) = self.next_in_line()
            && let Some(parked) = self.memory.line.remove(number)
        {
            self.admit(parked);
        }
    }

    fn next_from_store(&self) -> Option<u64> {
        let line = &self.memory.store_line;
        if self.store_room.is_full() { line.first() } else { line.next(0, 0) }
    }

    fn next_in_line(&mut self) -> Option<u64> {
        let wanted = self.memory.line.wanted()?;
        self.make_room(wanted);
        self.memory.line.next(self.memory.used, self.memory.limit)
    }

    /// Lets a send in that stood in line.
    fn admit(&mut self, parked: Parked) {
        self.leave_line(&parked);
        let transaction = parked.send.transaction.clone();
        let Parked { arrived, send, .. } = parked;
        if !self.is_resent(arrived, &send) {
            self.accept(arrived, send);
        }
        if let Some(transaction) = transaction {
            self.end_if_waiting(&key_of(arrived.connection, &transaction));
        }
    }

    /// The deadline of a parked send has come.
    pub(super) fn parked_too_long(&mut self, number: u64) {
        if let Some(parked) = self.unpark(number) {
            self.refuse_parked(parked);
        }
    }

    fn refuse_parked(&mut self, parked: Parked) {
        let Arrived { connection, ticket, since, .. } = parked.arrived;
        let waited = self.now.since(since);
        let error = match parked.wants {
            Wanted::Store => self.store_full_error(&parked.send.message, waited),
            Wanted::Memory => {
                let headers = parked.send.message.headers();
                ProviderError::MemoryFull {
                    message_id: headers.message_id.as_ref().map_or_else(String::new, ToString::to_string),
                    destination: headers.destination.as_ref().map_or_else(String::new, ToString::to_string),
                    waited,
                    limit: self.memory.limit,
                    holders: self.largest_holders(),
                }
            }
        };
        if let Some(transaction) = self.transaction_of(connection, &parked.send) {
            transaction.fail(&error);
        }
        self.confirm(ticket, Err(error));
        if let Some(transaction) = parked.send.transaction {
            self.end_if_waiting(&key_of(connection, &transaction));
        }
    }

    /// What a send is told that found no room in the store.
    fn store_full_error(&self, message: &Message, waited: Duration) -> ProviderError {
        let headers = message.headers();
        ProviderError::StoreFull {
            message_id: headers.message_id.as_ref().map_or_else(String::new, ToString::to_string),
            destination: headers.destination.as_ref().map_or_else(String::new, ToString::to_string),
            waited,
            // Who waits in that line does so while the store is full.
            reason: self.store_room.reason().unwrap_or_default().to_owned(),
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

    /// Takes a parked send out of its line, and out of what its transaction waits for.
    pub(super) fn unpark(&mut self, number: u64) -> Option<Parked> {
        let Memory { line, store_line, .. } = &mut self.memory;
        let parked = line.remove(number).or_else(|| store_line.remove(number))?;
        self.leave_line(&parked);
        Some(parked)
    }

    fn leave_line(&mut self, parked: &Parked) {
        let Arrived { number, connection, deadline, .. } = parked.arrived;
        self.timers.remove(deadline, Timer::SendDeadline(number));
        if let Some(transaction) = self.transaction_of(connection, &parked.send) {
            transaction.parked.remove(&number);
        }
    }

    /// The numbers of all waiting sends of a connection, in the order of their arrival.
    pub(super) fn parked_of(&self, connection: ConnectionKey) -> BTreeSet<u64> {
        let mut numbers = self.memory.line.of_connection(connection);
        numbers.extend(self.memory.store_line.of_connection(connection));
        numbers
    }

    /// Whether what a connection sends ends in the store.
    pub(super) fn is_stored(&self, connection: ConnectionKey, message: &Message) -> bool {
        let headers = message.headers();
        let is_lasting = |to: &Destination| {
            let is_to_durable = || match self.find_target(to) {
                Some(Target::Topic(topic)) => self.durable_queues(topic, connection).next().is_some(),
                Some(Target::Queue(_)) | None => false,
            };
            !to.is_temporary() && (!to.is_topic() || is_to_durable())
        };
        headers.is_persistent() && headers.destination.as_ref().is_some_and(is_lasting)
    }
}
