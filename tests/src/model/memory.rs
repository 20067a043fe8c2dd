//! Memory: what is counted, who is parked, who is admitted.

use corriere_broker::machine::{ConnectionKey, Effects, Ticket};
use corriere_broker::store::{Arrival, StoreOperation};
use corriere_core::provider::{ProviderError, SendMessage};
use corriere_core::{Destination, Message};

use super::entry::{Entry, key_of};
use super::resends::is_stored;
use super::session::{Entering, Origin, Parked, TransactedSend};
use super::{Answer, Judgement, Model, violation};

impl Model {
    /// Bytes of live messages, each counted once however many queues it is on. Uncommitted sends are counted too.
    #[must_use]
    pub fn memory_used(&self) -> u64 {
        self.memory_of(|_| true, |_| true)
    }

    /// Of these bytes, those that cannot be with the store only.
    pub(super) fn memory_needed(&self) -> u64 {
        self.memory_of(
            |entry| !entry.is_stored() || entry.holder.is_some(),
            |send| {
                // Those of its subscriptions get it from memory of which the store does not know.
                let is_to_topic =
                    send.message.headers().destination.as_ref().is_some_and(Destination::is_topic);
                !send.is_written || (is_to_topic && !send.is_for_these_only)
            },
        )
    }

    /// Bytes of what lies on queues, or is to by a commit, and counts, and of all that is on its way there otherwise.
    fn memory_of(
        &self,
        counts: impl Fn(&Entry) -> bool,
        send_counts: impl Fn(&TransactedSend) -> bool,
    ) -> u64 {
        let lying = self.entries.iter().filter(|entry| counts(entry));
        let lying = lying.map(|entry| (entry.instance, entry.message.size()));
        let entering = self.entering.iter().map(|entering| (entering.instance, entering.message.size()));
        // What left may have to be where it was again, and its body goes only where it can be read back.
        let left = self.entering.iter().filter(|entering| match entering.origin {
            Origin::Sent(_) => false,
            Origin::Moved(_) => !self.can_load && entering.was.as_ref().is_some_and(|was| was.is_stored()),
            Origin::Carried(..) => {
                !self.can_load || entering.was.as_ref().is_some_and(|was| !was.is_stored())
            }
        });
        let left = left.filter_map(|entering| entering.was.as_deref());
        let left = left.map(|entry| (entry.instance, entry.message.size()));
        let uncommitted = self
            .transactions
            .iter()
            .flat_map(|transaction| &transaction.sends)
            .filter(|send| send_counts(send))
            .map(|send| (send.instance, send.message.size()));
        let mut live: Vec<(u64, usize)> = lying.chain(entering).chain(left).chain(uncommitted).collect();
        live.sort_unstable();
        live.dedup_by_key(|(instance, _)| *instance);
        live.iter().map(|(_, size)| *size as u64).sum()
    }

    /// A message larger than the limit is admitted when nothing else is there.
    pub(super) fn fits(&self, size: usize) -> bool {
        let used = self.memory_used();
        used == 0 || used + size as u64 <= self.settings.memory_limit
    }

    fn is_oversized(&self, message: &Message) -> bool {
        message.size() as u64 > self.settings.memory_limit
    }

    /// A send arrives. It stands behind all that are parked, and is admitted at once if its turn is now.
    pub(super) fn send(&mut self, connection: ConnectionKey, ticket: Ticket, send: &SendMessage) {
        let wait = send.deadline.unwrap_or(self.settings.send_deadline);
        self.arrivals += 1;
        let parked = Parked {
            number: self.arrivals,
            connection,
            producer: send.producer,
            ticket,
            message: std::sync::Arc::clone(&send.message),
            transaction: send.transaction.clone(),
            deadline: self.now.saturating_add(wait),
            wants_store: false,
            needs_store: self.would_be_stored(connection, &send.message),
        };
        if self.is_resent(&parked) {
            return;
        }
        let may_overdraw = self.may_overdraw(&parked, self.parked.len());
        self.parked.push(parked);
        let last = self.parked.len() - 1;
        self.parked[last].wants_store = self.must_wait_for_store(last);
        if self.parked[last].wants_store || self.can_load {
            // Where bodies come and go it is seen, not predicted, what memory has room for.
            self.tickets.hold(connection, ticket);
            return;
        }
        let is_next = self.next_admitted() == Some(self.parked.len() - 1);
        self.passed += u64::from(is_next && self.parked.len() > 1);
        self.overdrawn += u64::from(!is_next && may_overdraw);
        if (is_next || may_overdraw)
            && let Some(parked) = self.parked.pop()
        {
            self.admit(parked);
        } else {
            self.tickets.hold(connection, ticket);
        }
    }

    /// Whether a send need not wait for others: its transaction may settle what its session has of memory. Of those
    /// who wait, so many stand before it.
    fn may_overdraw(&self, send: &Parked, before: usize) -> bool {
        let connection = send.connection;
        let of_its_producer =
            |parked: &Parked| (parked.connection, parked.producer) == (connection, send.producer);
        let used = self.memory_used();
        let session = self
            .producers
            .iter()
            .find(|producer| producer.session.connection == connection && producer.id == send.producer)
            .map(|producer| &producer.session);
        let holds_deliveries = self.entries.iter().filter_map(|entry| entry.holder.as_ref()).any(|holder| {
            self.subscription(&holder.subscription)
                .is_some_and(|subscription| Some(&subscription.session) == session)
        });
        send.transaction.is_some()
            && holds_deliveries
            && !self.parked[..before].iter().any(of_its_producer)
            && (used == 0 || used + send.message.size() as u64 <= 2 * self.settings.memory_limit)
    }

    /// Admits all parked sends that there is memory for.
    pub(super) fn admit_parked(&mut self) {
        while self.admit_first() {}
    }

    /// Whether a parked send has to wait for the store: what that keeps, and what its producer sent behind it.
    fn must_wait_for_store(&self, index: usize) -> bool {
        let parked = &self.parked[index];
        self.store_is_full
            && self.parked[..=index].iter().any(|earlier| {
                earlier.needs_store
                    && (earlier.connection, earlier.producer) == (parked.connection, parked.producer)
            })
    }

    /// The store is full: who waits for memory and needs the store waits for that.
    pub(super) fn wait_for_store(&mut self) {
        self.store_is_full = true;
        for index in 0..self.parked.len() {
            if !self.parked[index].wants_store {
                let Parked { connection, message, .. } = &self.parked[index];
                self.parked[index].needs_store = self.would_be_stored(*connection, message);
            }
        }
        for index in 0..self.parked.len() {
            self.parked[index].wants_store |= self.must_wait_for_store(index);
        }
    }

    /// The store was full when it came to this send, which waits as if that had been known when it came.
    pub(super) fn wait_again(&mut self, mut parked: Parked) {
        if !self.connection_is_open(parked.connection) {
            return;
        }
        if parked.deadline <= self.now {
            self.tickets.owe_if_heard(parked.ticket, &Answer::StoreFull);
            return;
        }
        self.waited_again += 1;
        parked.needs_store = self.would_be_stored(parked.connection, &parked.message);
        let index = self.parked.partition_point(|other| other.number < parked.number);
        self.parked.insert(index, parked);
        self.wait_for_store();
    }

    /// Once there is room, and the store has answered all sends that it was given before, it takes sends again.
    pub(super) fn open_store(&mut self) {
        let is_send = |operation: &StoreOperation| operation.arrival() == Some(Arrival::Sent);
        let has_sends = self.batches.iter().flat_map(|batch| &batch.operations).any(is_send)
            || self.entering.iter().any(|entering| matches!(entering.origin, Origin::Carried(..)));
        if self.store_is_full && self.room_is_back && !has_sends {
            self.store_is_full = false;
            self.takes_sends = true;
        }
    }

    /// Admits the next parked send, if there is room for one. Those that waited for the store go first, and may have to
    /// wait for memory then.
    pub(super) fn admit_first(&mut self) -> bool {
        let from_store = (0..self.parked.len())
            .find(|index| self.parked[*index].wants_store && !self.must_wait_for_store(*index));
        if let Some(index) = from_store {
            self.parked[index].wants_store = false;
            let may_overdraw = self.may_overdraw(&self.parked[index], index);
            let came_before = self.came_before(&self.parked[index]);
            if self.next_admitted() == Some(index) || may_overdraw || came_before {
                let parked = self.parked.remove(index);
                self.admit(parked);
                self.settle_ends();
            }
            return true;
        }
        let Some(next) = self.next_admitted() else { return false };
        let next = self.parked.remove(next);
        self.admit(next);
        // An end that waited for just this one takes effect before the next is admitted.
        self.settle_ends();
        true
    }

    /// First in, first out: who is behind one that does not fit waits with it. An oversized one is passed by all but
    /// the sends of its own producer.
    fn next_admitted(&self) -> Option<usize> {
        for (index, parked) in self.parked.iter().enumerate().filter(|(_, parked)| !parked.wants_store) {
            if self.is_behind_its_own(index) {
                continue;
            }
            if self.fits(parked.message.size()) {
                return Some(index);
            }
            if !self.is_oversized(&parked.message) {
                return None;
            }
        }
        None
    }

    /// Whether an oversized send of the same producer waits before it.
    fn is_behind_its_own(&self, index: usize) -> bool {
        let parked = &self.parked[index];
        self.parked[..index].iter().any(|earlier| {
            self.is_oversized(&earlier.message)
                && (earlier.connection, earlier.producer) == (parked.connection, parked.producer)
        })
    }

    /// At its deadline a parked send fails, and the transaction that it belongs to with it.
    pub(super) fn fail_parked_sends(&mut self) {
        for index in 0..self.parked.len() {
            // Where bodies come and go it is not noted who has left the line.
            self.parked[index].wants_store &= !self.can_load || self.must_wait_for_store(index);
        }
        while let Some(index) = self.parked.iter().position(|parked| parked.deadline <= self.now) {
            let parked = self.parked.remove(index);
            let answer = if parked.wants_store { Answer::StoreFull } else { Answer::MemoryFull };
            self.tickets.owe(parked.connection, parked.ticket, answer);
            if let Some(id) = parked.transaction {
                self.condemn(&key_of(parked.connection, &id));
            }
        }
    }

    /// Where bodies come and go: admits what the machine has admitted, and judges the order in which it did.
    pub(super) fn admit_what_was(&mut self, effects: &Effects) -> Judgement {
        let is_accepted = |parked: &Parked| {
            let is_confirmed = effects.confirmations.iter().any(|(ticket, outcome)| {
                *ticket == parked.ticket && matches!(outcome, Ok(_) | Err(ProviderError::InDoubt { .. }))
            });
            let is_appended = || {
                effects.store.iter().flat_map(|batch| &batch.operations).any(|operation| {
                    matches!(operation, StoreOperation::Append { message, transaction: None, arrival: Arrival::Sent, .. }
                        | StoreOperation::Publish { message, transaction: None, arrival: Arrival::Sent, .. }
                        if std::sync::Arc::ptr_eq(message, &parked.message))
                })
            };
            is_confirmed || (parked.transaction.is_none() && is_appended())
        };
        let accepted: Vec<Ticket> =
            self.parked.iter().filter(|parked| is_accepted(parked)).map(|parked| parked.ticket).collect();
        let left_behind = self
            .parked
            .iter()
            .position(|parked| !accepted.contains(&parked.ticket) && self.stands_in_line(parked));
        for (index, parked) in self.parked.iter().enumerate() {
            if left_behind.is_some_and(|left_behind| left_behind < index)
                && accepted.contains(&parked.ticket)
                && parked.transaction.is_none()
                && !self.is_oversized(&parked.message)
            {
                violation!("{parked:?} overtakes {:?}", left_behind.map(|index| &self.parked[index]));
            }
        }
        let first = self.instances + 1;
        for ticket in accepted {
            let Some(index) = self.parked.iter().position(|parked| parked.ticket == ticket) else { continue };
            let parked = self.parked.remove(index);
            self.admit(parked);
            self.settle_ends();
        }
        self.just_admitted = (first..=self.instances).collect();
        Ok(())
    }

    /// Whether a parked send holds up those behind it that wait for memory.
    fn stands_in_line(&self, parked: &Parked) -> bool {
        let index = self.parked.iter().position(|other| other.ticket == parked.ticket).unwrap_or_default();
        !self.must_wait_for_store(index)
            && !self.is_oversized(&parked.message)
            && !self.is_behind_its_own(index)
    }

    /// Where bodies come and go: while much memory is used, only what has to be there is; and nobody waits for room that is
    /// there.
    pub(super) fn check_memory(&self, used: u64) -> Judgement {
        let of_policies =
            self.settings.policies.iter().filter_map(|policy| policy.dead_letter_non_persistent);
        if of_policies.chain([self.settings.dead_letter_non_persistent]).any(|is_kept| is_kept) {
            // The exact size of a copy that is not stored is the broker's.
            return Ok(());
        }
        if !self.can_load {
            if used != self.memory_used() {
                violation!("{used} bytes are said to be used, not {}", self.memory_used());
            }
            return Ok(());
        }
        let needed = self.memory_needed();
        if used > needed.max(self.settings.memory_limit / 2) {
            violation!("{used} bytes are used, and only {needed} of them are needed");
        }
        let first = self.parked.iter().find(|parked| self.stands_in_line(parked));
        if let Some(first) = first {
            let size = first.message.size() as u64;
            if used > needed || used + size <= self.settings.memory_limit {
                violation!("{first:?} waits although only {used} bytes are used, {needed} needed");
            }
        }
        Ok(())
    }

    fn admit(&mut self, parked: Parked) {
        if self.is_resent(&parked) {
            return;
        }
        let Parked { connection, ticket, message, transaction, .. } = parked.clone();
        let instance = self.next_instance();
        let copies = self.copies_for(connection, &message);
        let destination =
            message.headers().destination.clone().expect("a message at the seam has a destination");
        if let Some(id) = transaction {
            // Confirmed when it is accepted, durable or not: the commit is what must be durable.
            self.tickets.owe_eventually(connection, ticket);
            if let Some(transaction) = self.transaction_mut(&key_of(connection, &id)) {
                transaction.sends.push(TransactedSend {
                    message,
                    copies,
                    is_for_these_only: false,
                    instance,
                    stored: None,
                    is_written: false,
                });
            }
        } else if is_stored(&message, &copies) {
            // Visible and confirmed when it is durable.
            self.tickets.hold(connection, ticket);
            let origin = Origin::Sent(Box::new(parked));
            self.entering.push(Entering {
                queue: destination,
                copies,
                message,
                instance,
                origin,
                batch: None,
                resent: Vec::new(),
                was: None,
                is_put_off: false,
            });
        } else {
            self.tickets.owe(connection, ticket, Answer::Done);
            self.publish(
                &destination,
                &message,
                (instance, None),
                (Some(connection), Arrival::Sent),
                &copies,
            );
        }
    }
}
