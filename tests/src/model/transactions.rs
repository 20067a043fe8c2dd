//! Transactions: all of one takes effect, or nothing.

use std::sync::Arc;

use corriere_broker::machine::{ConnectionKey, Ticket};
use corriere_broker::store::{Arrival, StoreOperation, StoreTransaction};
use corriere_core::TransactionId;
use corriere_core::provider::{Cause, CauseKind};

use super::commands::death_by;
use super::entry::{Place, TransactionKey, key_of};
use super::fate::Return;
use super::session::{End, TransactedSend, Transaction};
use super::{Answer, Model};

impl Model {
    pub(super) fn transaction_mut(&mut self, key: &TransactionKey) -> Option<&mut Transaction> {
        self.transactions.iter_mut().find(|transaction| transaction.key == *key)
    }

    /// The transaction of this name, if it takes sends and acknowledgements of the connection.
    pub(super) fn open_transaction(
        &mut self,
        connection: ConnectionKey,
        key: &TransactionKey,
    ) -> Option<&mut Transaction> {
        self.transaction_mut(key).filter(|transaction| {
            transaction.owner == Some(connection) && !transaction.is_done && transaction.end.is_none()
        })
    }

    /// The transaction that the store knows, a local one by its connection's identity.
    pub(super) fn transaction_key(&self, transaction: &StoreTransaction) -> Option<TransactionKey> {
        let key = match transaction {
            StoreTransaction::Local(identity, number) => {
                let connection = self.connections.iter().find(|other| other.identity == *identity)?;
                (connection.key, TransactionId::Local(*number))
            }
            StoreTransaction::Distributed(xid) => {
                key_of(ConnectionKey(0), &TransactionId::Distributed(xid.clone()))
            }
        };
        self.transactions.iter().any(|transaction| transaction.key == key).then_some(key)
    }

    pub(super) fn begin(&mut self, connection: ConnectionKey, id: &TransactionId) -> Answer {
        let key = key_of(connection, id);
        if self.transaction_mut(&key).is_some() {
            return Answer::Refused;
        }
        self.transactions.push(Transaction {
            key,
            owner: Some(connection),
            origin: connection,
            is_done: false,
            sends: Vec::new(),
            is_rollback_only: false,
            end: None,
            end_batch: None,
            is_recovered: false,
            prepared: None,
        });
        Answer::Done
    }

    /// The connection has done its part.
    pub(super) fn end_part(&mut self, connection: ConnectionKey, id: &TransactionId) -> Answer {
        match self.open_transaction(connection, &key_of(connection, id)) {
            None => Answer::Unknown,
            Some(transaction) => {
                transaction.is_done = matches!(id, TransactionId::Distributed(_));
                Answer::Done
            }
        }
    }

    /// A part of the transaction has failed. An end that waits for memory is refused now.
    pub(super) fn condemn(&mut self, key: &TransactionKey) {
        let Some(transaction) = self.transaction_mut(key) else { return };
        transaction.is_rollback_only = true;
        if transaction.end.is_some() && transaction.end_batch.is_none() {
            self.refuse_end(key);
        }
    }

    /// Asks for the end of a transaction: anyone may end a prepared one, its own connection any other.
    pub(super) fn end(
        &mut self,
        connection: ConnectionKey,
        ticket: Ticket,
        id: &TransactionId,
        (end, one_phase): (End, bool),
    ) {
        let key = key_of(connection, id);
        let refuses = end == End::Prepare && matches!(id, TransactionId::Local(_));
        let Some(transaction) = self.transaction_mut(&key).filter(|transaction| {
            let is_prepared = transaction.prepared.is_some();
            transaction.end.is_none()
                && !refuses
                && (transaction.owner == Some(connection) || is_prepared)
                && !(is_prepared && end == End::Prepare)
        }) else {
            return self.tickets.owe(connection, ticket, Answer::Unknown);
        };
        if end == End::Commit && !one_phase && transaction.prepared.is_none() {
            return self.tickets.owe(connection, ticket, Answer::Refused);
        }
        transaction.end = Some((ticket, end));
        let is_rollback_only = transaction.is_rollback_only;
        // `settle_ends` answers it, when it is known what the machine gave to the store.
        self.tickets.hold(connection, ticket);
        if is_rollback_only {
            self.refuse_end(&key);
        }
    }

    /// Ends that need no store, and wait for no memory, take effect at once. What they free may admit sends that
    /// another end waits for.
    pub(super) fn settle_ends(&mut self) {
        while let Some(key) = self
            .transactions
            .iter()
            .filter(|transaction| transaction.end.is_some() && transaction.end_batch.is_none())
            .map(|transaction| transaction.key.clone())
            .find(|key| !self.waits_for_memory(key) && !self.needs_the_store(key))
        {
            self.take_effect(&key);
        }
    }

    pub(super) fn waits_for_memory(&self, key: &TransactionKey) -> bool {
        self.parked
            .iter()
            .any(|parked| parked.transaction.as_ref().is_some_and(|id| key_of(parked.connection, id) == *key))
    }

    /// Whether an end changes what is stored.
    pub(super) fn needs_the_store(&self, key: &TransactionKey) -> bool {
        let mut transaction = self.transactions.iter().filter(|transaction| transaction.key == *key);
        let is_stored = transaction.any(|transaction| {
            transaction.is_recovered || transaction.sends.iter().any(TransactedSend::is_stored)
        });
        is_stored || self.entries.iter().any(|entry| entry.is_locked_by(key) && entry.is_stored())
    }

    /// The end is durable: it is prepared, or sends become visible in their order and acknowledgements settle.
    pub(super) fn take_effect(&mut self, key: &TransactionKey) {
        let has_acks = self.entries.iter().any(|entry| entry.is_locked_by(key));
        let order = self.instances;
        let Some(transaction) = self.transaction_mut(key) else { return };
        if let Some((ticket, End::Prepare)) = transaction.end {
            let must_commit = has_acks || !transaction.sends.is_empty();
            transaction.end = None;
            transaction.end_batch = None;
            transaction.owner = None;
            transaction.prepared = Some(order);
            self.instances += 1;
            if !must_commit {
                self.remove_transaction(key);
            }
            self.tickets.owe_if_heard(ticket, &Answer::Prepared(must_commit));
            return;
        }
        self.note_sends(key);
        let Some(transaction) = self.remove_transaction(key) else { return };
        if let Some((ticket, _)) = transaction.end {
            self.tickets.owe_if_heard(ticket, &Answer::Done);
        }
        for send in transaction.sends {
            if self.goes_nowhere(&send.message) {
                self.lost_with_temporaries[1] += 1;
                continue;
            }
            let destination =
                send.message.headers().destination.clone().expect("a message at the seam has one");
            let sender = (!send.is_for_these_only).then_some(transaction.origin);
            let instance = (send.instance, send.stored);
            self.publish(&destination, &send.message, instance, (sender, Arrival::Sent), &send.copies);
        }
        while let Some(index) = self.entries.iter().position(|entry| entry.is_locked_by(key)) {
            self.settle(index);
        }
    }

    /// The store has a part of a transaction.
    pub(super) fn note_written(&mut self, key: &TransactionKey, operation: &StoreOperation) {
        let (StoreOperation::Append { stored, .. } | StoreOperation::Publish { stored, .. }) = operation
        else {
            return;
        };
        let Some(transaction) = self.transaction_mut(key) else { return };
        for send in transaction.sends.iter_mut().filter(|send| send.stored == Some(*stored)) {
            send.is_written = true;
        }
    }

    /// What is stored of a transaction is not to be sent again.
    fn note_sends(&mut self, key: &TransactionKey) {
        let Some(transaction) = self.transactions.iter().find(|transaction| transaction.key == *key) else {
            return;
        };
        let stored = transaction.sends.iter().filter(|send| send.is_stored());
        for message in stored.map(|send| Arc::clone(&send.message)).collect::<Vec<_>>() {
            self.note_sent(&message);
        }
    }

    /// The end cannot be: the transaction is rolled back, and the end answered so.
    pub(super) fn refuse_end(&mut self, key: &TransactionKey) {
        self.roll_back(key, None);
    }

    /// The store could not commit what was prepared, which therefore waits for the next try.
    pub(super) fn stay_prepared(&mut self, key: &TransactionKey) {
        let Some(transaction) = self.transaction_mut(key) else { return };
        transaction.end_batch = None;
        if let Some((ticket, _)) = transaction.end.take() {
            self.tickets.owe_if_heard(ticket, &Answer::Refused);
        }
    }

    /// Sends vanish. Acknowledgements are undone: the messages are plainly with their subscriptions again, or return,
    /// counted, where the subscription is closed.
    pub(super) fn roll_back(&mut self, key: &TransactionKey, cause: Option<&Cause>) {
        let Some(transaction) = self.remove_transaction(key) else { return };
        if let Some((ticket, _)) = transaction.end {
            self.tickets.owe_if_heard(ticket, &Answer::RolledBack);
        }
        let dropped: Vec<_> = self
            .parked
            .iter()
            .filter(|parked| {
                parked.transaction.as_ref().is_some_and(|id| key_of(parked.connection, id) == *key)
            })
            .map(|parked| (parked.connection, parked.ticket))
            .collect();
        self.parked.retain(|parked| !dropped.contains(&(parked.connection, parked.ticket)));
        for (connection, ticket) in dropped {
            self.tickets.owe(connection, ticket, Answer::Refused);
        }
        while let Some(index) = self.entries.iter().position(|entry| entry.is_locked_by(key)) {
            let policy = self.policy_of_holder(index);
            let Some(holder) = &mut self.entries[index].holder else { break };
            holder.locked_by = None;
            let (subscription, number) = (holder.subscription, holder.number);
            let owner = self.subscription(&subscription);
            if owner.is_some_and(|owner| owner.is_open) {
                continue;
            }
            let is_blamed = cause.is_none_or(|cause| cause.kind != CauseKind::Resource);
            let is_counted = is_blamed && owner.is_none_or(|owner| owner.has_in_hands(number));
            let death = death_by(cause);
            self.give_back(index, Return { is_counted, death, policy, not_before: None, reserved_for: None });
        }
    }

    fn remove_transaction(&mut self, key: &TransactionKey) -> Option<Transaction> {
        let index = self.transactions.iter().position(|transaction| transaction.key == *key)?;
        Some(self.transactions.remove(index))
    }

    /// A closed subscription is forgotten with its session, or with the last message that it still has.
    pub(super) fn forget_closed_subscriptions(&mut self) {
        let (entries, sessions) = (&self.entries, &self.sessions);
        self.subscriptions.retain(|subscription| {
            sessions.contains(&subscription.session)
                || entries.iter().any(|entry| {
                    entry.holder.as_ref().is_some_and(|holder| holder.subscription == subscription.key)
                        || matches!(&entry.place, Place::Private { subscription: owner, .. } if *owner == subscription.key)
                })
        });
    }
}
