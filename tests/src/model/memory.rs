//! Memory: what is counted, who is parked, who is admitted.

use corriere_broker::machine::{ConnectionKey, Ticket};
use corriere_core::Message;
use corriere_core::provider::SendMessage;

use super::session::{Entering, Origin, Parked, TransactedSend};
use super::{Answer, Model};

impl Model {
    /// Bytes of live messages, each counted once however many queues it is on. Uncommitted sends are counted too.
    #[must_use]
    pub fn memory_used(&self) -> u64 {
        let lying = self.entries.iter().map(|entry| (entry.instance, entry.message.size()));
        let entering = self.entering.iter().map(|entering| (entering.instance, entering.message.size()));
        let uncommitted = self
            .transactions
            .iter()
            .flat_map(|transaction| &transaction.sends)
            .map(|send| (send.instance, send.message.size()));
        let mut live: Vec<(u64, usize)> = lying.chain(entering).chain(uncommitted).collect();
        live.sort_unstable();
        live.dedup_by_key(|(instance, _)| *instance);
        live.iter().map(|(_, size)| *size as u64).sum()
    }

    /// A message larger than the limit is admitted when nothing else is there.
    fn fits(&self, size: usize) -> bool {
        let used = self.memory_used();
        used == 0 || used + size as u64 <= self.settings.memory_limit
    }

    fn is_oversized(&self, message: &Message) -> bool {
        message.size() as u64 > self.settings.memory_limit
    }

    /// A send arrives. It stands behind all that are parked, and is admitted at once if its turn is now.
    pub(super) fn send(&mut self, connection: ConnectionKey, ticket: Ticket, send: &SendMessage) {
        let wait = send.deadline.unwrap_or(self.settings.send_deadline);
        let may_overdraw = self.may_overdraw(connection, send);
        self.parked.push(Parked {
            connection,
            producer: send.producer,
            ticket,
            message: std::sync::Arc::clone(&send.message),
            transaction: send.transaction.clone(),
            deadline: self.now.saturating_add(wait),
        });
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

    /// Whether a send need not wait for others: its transaction may settle what its session has of memory.
    fn may_overdraw(&self, connection: ConnectionKey, send: &SendMessage) -> bool {
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
            && !self.parked.iter().any(of_its_producer)
            && (used == 0 || used + send.message.size() as u64 <= 2 * self.settings.memory_limit)
    }

    /// Admits all parked sends that there is memory for.
    pub(super) fn admit_parked(&mut self) {
        while self.admit_first() {}
    }

    /// Admits the next parked send, if there is memory for one.
    pub(super) fn admit_first(&mut self) -> bool {
        let Some(next) = self.next_admitted() else { return false };
        let next = self.parked.remove(next);
        self.admit(next);
        // A commit that waited for just this one takes effect before the next is admitted.
        self.settle_commits();
        true
    }

    /// First in, first out: who is behind one that does not fit waits with it. An oversized one is passed by all but
    /// the sends of its own producer.
    fn next_admitted(&self) -> Option<usize> {
        for (index, parked) in self.parked.iter().enumerate() {
            let is_behind_its_own = self.parked[..index].iter().any(|earlier| {
                self.is_oversized(&earlier.message)
                    && (earlier.connection, earlier.producer) == (parked.connection, parked.producer)
            });
            if is_behind_its_own {
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

    /// At its deadline a parked send fails, and the transaction that it belongs to with it.
    pub(super) fn fail_parked_sends(&mut self) {
        while let Some(index) = self.parked.iter().position(|parked| parked.deadline <= self.now) {
            let parked = self.parked.remove(index);
            self.tickets.owe(parked.connection, parked.ticket, Answer::MemoryFull);
            if let Some(id) = parked.transaction {
                self.condemn(&(parked.connection, id));
            }
        }
    }

    fn admit(&mut self, parked: Parked) {
        let Parked { connection, ticket, message, transaction, .. } = parked;
        let instance = self.next_instance();
        let destination =
            message.headers().destination.clone().expect("a message at the seam has a destination");
        if let Some(id) = transaction {
            // Confirmed when it is accepted, durable or not: the commit is what must be durable.
            self.tickets.owe_eventually(connection, ticket);
            if let Some(transaction) = self.transaction_mut(&(connection, id)) {
                transaction.sends.push(TransactedSend { message, instance });
            }
        } else if message.headers().is_persistent() && !destination.is_topic() {
            // Visible and confirmed when it is durable.
            self.tickets.hold(connection, ticket);
            let origin = Origin::Sent(ticket);
            self.entering.push(Entering { queue: destination, message, instance, origin, batch: None });
        } else {
            self.tickets.owe(connection, ticket, Answer::Done);
            self.publish(&destination, &message, instance, connection);
        }
    }
}
