//! Transactions: all of one takes effect, or nothing.

use corriere_broker::machine::{ConnectionKey, Ticket};
use corriere_broker::store::StoreTransaction;
use corriere_core::TransactionId;
use corriere_core::provider::{Cause, CauseKind};

use super::commands::death_by;
use super::entry::{Place, TransactionKey};
use super::fate::Return;
use super::session::Transaction;
use super::{Answer, Model};

impl Model {
    pub(super) fn transaction_mut(&mut self, key: &TransactionKey) -> Option<&mut Transaction> {
        self.transactions
            .iter_mut()
            .find(|transaction| transaction.connection == key.0 && transaction.id == key.1)
    }

    /// The transaction that the store knows by its connection's identity.
    pub(super) fn transaction_key(&self, transaction: &StoreTransaction) -> Option<TransactionKey> {
        let StoreTransaction::Local(identity, number) = transaction else { return None };
        let id = TransactionId::Local(*number);
        let connection = self.connections.iter().find(|connection| connection.identity == *identity)?;
        self.transactions
            .iter()
            .any(|transaction| transaction.connection == connection.key && transaction.id == id)
            .then_some((connection.key, id))
    }

    pub(super) fn begin(&mut self, connection: ConnectionKey, id: &TransactionId) {
        self.transactions.push(Transaction {
            connection,
            id: id.clone(),
            sends: Vec::new(),
            is_rollback_only: false,
            commit: None,
            commit_batch: None,
        });
    }

    /// A part of the transaction has failed. A commit that waits for memory is refused now.
    pub(super) fn condemn(&mut self, key: &TransactionKey) {
        let Some(transaction) = self.transaction_mut(key) else { return };
        transaction.is_rollback_only = true;
        if transaction.commit.is_some() && transaction.commit_batch.is_none() {
            self.refuse_commit(key);
        }
    }

    pub(super) fn commit(&mut self, connection: ConnectionKey, ticket: Ticket, id: &TransactionId) {
        let key = (connection, id.clone());
        let Some(transaction) = self.transaction_mut(&key).filter(|transaction| transaction.commit.is_none())
        else {
            return self.tickets.owe(connection, ticket, Answer::Unknown);
        };
        transaction.commit = Some(ticket);
        if transaction.is_rollback_only {
            self.refuse_commit(&key);
        } else {
            // `settle_commits` answers it, when it is known what the machine gave to the store.
            self.tickets.hold(connection, ticket);
        }
    }

    /// Commits that need no store, and wait for no memory, take effect at once. What they free may admit sends that
    /// another commit waits for.
    pub(super) fn settle_commits(&mut self) {
        while let Some(key) = self
            .transactions
            .iter()
            .filter(|transaction| transaction.commit.is_some() && transaction.commit_batch.is_none())
            .map(|transaction| (transaction.connection, transaction.id.clone()))
            .find(|key| !self.waits_for_memory(key) && !self.needs_the_store(key))
        {
            self.take_effect(&key);
        }
    }

    pub(super) fn waits_for_memory(&self, key: &TransactionKey) -> bool {
        self.parked
            .iter()
            .any(|parked| parked.connection == key.0 && parked.transaction.as_ref() == Some(&key.1))
    }

    /// Whether a commit changes what is stored.
    pub(super) fn needs_the_store(&self, key: &TransactionKey) -> bool {
        let sends = self
            .transactions
            .iter()
            .filter(|transaction| transaction.connection == key.0 && transaction.id == key.1)
            .flat_map(|transaction| &transaction.sends)
            .map(|send| send.message.headers());
        let has_stored_send = sends.into_iter().any(|headers| {
            headers.is_persistent()
                && headers.destination.as_ref().is_some_and(|destination| !destination.is_topic())
        });
        has_stored_send || self.entries.iter().any(|entry| entry.is_locked_by(key) && entry.is_stored())
    }

    /// The commit is durable: sends become visible in their order, acknowledgements settle.
    pub(super) fn take_effect(&mut self, key: &TransactionKey) {
        let Some(transaction) = self.remove_transaction(key) else { return };
        if let Some(ticket) = transaction.commit {
            self.tickets.owe_if_heard(ticket, Answer::Done);
        }
        for send in transaction.sends {
            let destination =
                send.message.headers().destination.clone().expect("a message at the seam has one");
            self.publish(&destination, &send.message, send.instance, key.0);
        }
        while let Some(index) = self.entries.iter().position(|entry| entry.is_locked_by(key)) {
            self.settle(index);
        }
    }

    /// The commit cannot be: the transaction is rolled back, and the commit answered so.
    pub(super) fn refuse_commit(&mut self, key: &TransactionKey) {
        self.roll_back(key, None);
    }

    /// Sends vanish. Acknowledgements are undone: the messages are plainly with their subscriptions again, or return,
    /// counted, where the subscription is closed.
    pub(super) fn roll_back(&mut self, key: &TransactionKey, cause: Option<&Cause>) {
        let Some(transaction) = self.remove_transaction(key) else { return };
        if let Some(ticket) = transaction.commit {
            // It may be the ticket of this very step, or one that was held.
            self.tickets.hold_if_new(key.0, ticket);
            self.tickets.owe_if_heard(ticket, Answer::RolledBack);
        }
        let dropped: Vec<Ticket> = self
            .parked
            .iter()
            .filter(|parked| parked.connection == key.0 && parked.transaction.as_ref() == Some(&key.1))
            .map(|parked| parked.ticket)
            .collect();
        self.parked.retain(|parked| !dropped.contains(&parked.ticket));
        for ticket in dropped {
            self.tickets.owe(key.0, ticket, Answer::Refused);
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
            let is_counted = is_blamed && owner.is_none_or(|owner| number <= owner.handed_over);
            let death = death_by(cause);
            self.give_back(index, Return { is_counted, death, policy, not_before: None, reserved_for: None });
        }
    }

    fn remove_transaction(&mut self, key: &TransactionKey) -> Option<Transaction> {
        let index = self
            .transactions
            .iter()
            .position(|transaction| transaction.connection == key.0 && transaction.id == key.1)?;
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
