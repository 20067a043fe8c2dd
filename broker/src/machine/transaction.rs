//! Local transactions over sends and acknowledgements.

use std::collections::BTreeSet;
use std::sync::Arc;

use corriere_core::provider::{Capability, Cause, Confirmation, ProviderError, SendMessage};
use corriere_core::{ConnectionId, TransactionId};

use super::Machine;
use super::delivery::{Delay, Failure};
use super::memory::Held;
use super::queue::{Position, QueueKey};
use super::sending::Target;
use super::step::{ConnectionKey, OnStored, Ticket};
use super::subscription::SubscriptionKey;
use crate::store::{Removal, StoreOperation, StoreTransaction};

/// A transaction of a connection.
pub(super) type TransactionKey = (ConnectionKey, TransactionId);

/// What a transaction holds until its end.
#[derive(Debug)]
pub(super) struct Transaction {
    /// The identity of the connection, which the store knows it by.
    owner: ConnectionId,
    /// Sends of it that wait for memory, by their numbers in the line.
    pub(super) parked: BTreeSet<u64>,
    sends: Vec<(Target, Arc<Held>)>,
    acknowledged: Vec<Acknowledged>,
    /// The first thing that failed in it; it can only be rolled back.
    failure: Option<String>,
    phase: Phase,
}

/// A delivery that a transaction settles when it commits.
#[derive(Debug)]
struct Acknowledged {
    subscription: SubscriptionKey,
    number: u64,
    queue: QueueKey,
    position: Position,
}

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// The commit waits for sends that wait for memory.
    Waiting(Ticket),
    /// The commit is with the store.
    Committing,
}

impl Transaction {
    fn new(owner: ConnectionId) -> Self {
        Self {
            owner,
            parked: BTreeSet::new(),
            sends: Vec::new(),
            acknowledged: Vec::new(),
            failure: None,
            phase: Phase::Open,
        }
    }

    /// Notes that something failed in it.
    pub(super) fn fail(&mut self, error: &ProviderError) {
        self.failure.get_or_insert_with(|| error.to_string());
    }

    pub(super) fn add_send(&mut self, target: Target, held: Arc<Held>) {
        self.sends.push((target, held));
    }
}

impl Machine {
    pub(super) fn begin(
        &mut self,
        connection: ConnectionKey,
        transaction: TransactionId,
    ) -> Result<(), ProviderError> {
        if matches!(transaction, TransactionId::Distributed(_)) {
            return Err(ProviderError::Unsupported(Capability::DistributedTransactions));
        }
        let key = (connection, transaction);
        if self.transactions.contains_key(&key) {
            return Err(ProviderError::Exists { what: format!("transaction {}", key.1) });
        }
        let owner = self.connections.get(&connection).ok_or(ProviderError::Lost)?.identity.clone();
        self.transactions.insert(key, Transaction::new(owner));
        Ok(())
    }

    /// Whether a transaction takes sends and acknowledgements.
    pub(super) fn check_open(
        &self,
        connection: ConnectionKey,
        transaction: &TransactionId,
    ) -> Result<(), ProviderError> {
        if matches!(transaction, TransactionId::Distributed(_)) {
            return Err(ProviderError::Unsupported(Capability::DistributedTransactions));
        }
        match self.transactions.get(&(connection, transaction.clone())) {
            Some(Transaction { phase: Phase::Open, .. }) => Ok(()),
            _ => Err(ProviderError::Unknown { what: format!("transaction {transaction}") }),
        }
    }

    /// Notes that a send or an acknowledgement failed that was to take effect with a transaction. One whose commit was
    /// submitted before is not touched by it.
    pub(super) fn spoil(
        &mut self,
        connection: ConnectionKey,
        transaction: Option<&TransactionId>,
        error: &ProviderError,
    ) {
        if let Some(transaction) = transaction
            && let Some(transaction) = self.transactions.get_mut(&(connection, transaction.clone()))
            && transaction.phase == Phase::Open
        {
            transaction.fail(error);
        }
    }

    /// The transaction that a send belongs to.
    pub(super) fn transaction_of(
        &mut self,
        connection: ConnectionKey,
        send: &SendMessage,
    ) -> Option<&mut Transaction> {
        self.transactions.get_mut(&(connection, send.transaction.clone()?))
    }

    /// Has a delivery settled when a transaction commits.
    pub(super) fn settle_in_transaction(
        &mut self,
        transaction: &TransactionKey,
        subscription: SubscriptionKey,
        number: u64,
        position: Position,
    ) {
        let Some(state) = self.subscriptions.get_mut(&subscription) else { return };
        let Some(transaction_state) = self.transactions.get_mut(transaction) else { return };
        state.lock(number, Some(transaction.1.clone()));
        let queue = state.queue;
        transaction_state.acknowledged.push(Acknowledged { subscription, number, queue, position });
    }

    pub(super) fn commit(
        &mut self,
        connection: ConnectionKey,
        ticket: Ticket,
        transaction: TransactionId,
        one_phase: bool,
    ) {
        let checked = self.check_open(connection, &transaction).and_then(|()| {
            // Nothing can be prepared yet, so a second phase never has a first.
            if one_phase {
                Ok(())
            } else {
                Err(ProviderError::NotPrepared { transaction: transaction.to_string() })
            }
        });
        if let Err(error) = checked {
            self.confirm(ticket, Err(error));
            return;
        }
        let key = (connection, transaction);
        if let Some(transaction) = self.transactions.get_mut(&key) {
            transaction.phase = Phase::Waiting(ticket);
        }
        self.commit_if_waiting(&key);
    }

    /// Goes on with a commit that waits for nothing more.
    pub(super) fn commit_if_waiting(&mut self, key: &TransactionKey) {
        let Some(transaction) = self.transactions.get(key) else { return };
        let Phase::Waiting(ticket) = transaction.phase else { return };
        if let Some(reason) = transaction.failure.clone() {
            self.undo(key, None, &reason);
            self.confirm(ticket, Err(rolled_back(key, &reason)));
            return;
        }
        if !transaction.parked.is_empty() {
            return;
        }
        let Some(name) = self.store_transaction(key) else { return };
        let removals: Vec<_> = transaction
            .acknowledged
            .iter()
            .filter_map(|acknowledged| self.stored(acknowledged.queue, acknowledged.position))
            .map(|stored| StoreOperation::Remove {
                stored,
                reason: Removal::Acknowledged,
                transaction: Some(name.clone()),
            })
            .collect();
        if removals.is_empty() && !self.has_stored_sends(key) {
            self.apply(key);
            self.confirm(ticket, Ok(Confirmation::Done));
            return;
        }
        self.operations.extend(removals);
        self.operations.push(StoreOperation::Commit(name));
        self.on_stored.push(OnStored::Committed { transaction: key.clone(), ticket });
        if let Some(transaction) = self.transactions.get_mut(key) {
            transaction.phase = Phase::Committing;
        }
    }

    /// The store failed with a send of a transaction.
    pub(super) fn append_failed(&mut self, key: &TransactionKey, error: &ProviderError) {
        if let Some(transaction) = self.transactions.get_mut(key) {
            transaction.fail(error);
            self.commit_if_waiting(key);
        }
    }

    fn has_stored_sends(&self, key: &TransactionKey) -> bool {
        self.transactions.get(key).is_some_and(|transaction| {
            transaction.sends.iter().any(|(target, held)| match target {
                Target::Queue(queue) => self.queues.get(queue).is_some_and(|queue| queue.stores(held)),
                Target::Topic(_) => false,
            })
        })
    }

    /// The store is done with a commit.
    pub(super) fn committed(
        &mut self,
        key: &TransactionKey,
        ticket: Ticket,
        outcome: Result<(), ProviderError>,
    ) {
        let failure = self.transactions.get(key).and_then(|transaction| transaction.failure.clone());
        let failure = failure.or_else(|| outcome.err().map(|error| error.to_string()));
        match failure {
            None => {
                self.apply(key);
                self.confirm(ticket, Ok(Confirmation::Done));
            }
            Some(reason) => {
                self.undo(key, None, &reason);
                self.confirm(ticket, Err(rolled_back(key, &reason)));
            }
        }
    }

    /// Makes all of a transaction take effect.
    fn apply(&mut self, key: &TransactionKey) {
        let Some(transaction) = self.transactions.remove(key) else { return };
        for acknowledged in transaction.acknowledged {
            self.remove_settled(acknowledged.queue, acknowledged.position);
            if let Some(subscription) = self.subscriptions.get_mut(&acknowledged.subscription) {
                subscription.settle(acknowledged.number);
            }
            self.attend(acknowledged.subscription);
            self.forget_if_done(acknowledged.subscription);
        }
        for (target, held) in transaction.sends {
            self.make_sent(target, held);
        }
    }

    pub(super) fn rollback(
        &mut self,
        connection: ConnectionKey,
        transaction: TransactionId,
        cause: Option<Cause>,
    ) -> Result<(), ProviderError> {
        if matches!(transaction, TransactionId::Distributed(_)) {
            return Err(ProviderError::Unsupported(Capability::DistributedTransactions));
        }
        let key = (connection, transaction);
        match self.transactions.get(&key) {
            None | Some(Transaction { phase: Phase::Committing, .. }) => {
                Err(ProviderError::Unknown { what: format!("transaction {}", key.1) })
            }
            Some(_) => {
                self.roll_back(&key, cause);
                Ok(())
            }
        }
    }

    /// Rolls back what is open of a connection that ends. A commit that the store has goes its way.
    pub(super) fn roll_back_all(&mut self, connection: ConnectionKey, cause: &Cause) {
        let open: Vec<_> = self
            .transactions
            .range((connection, TransactionId::Local(0))..)
            .take_while(|((owner, _), _)| *owner == connection)
            .filter(|(_, transaction)| transaction.phase != Phase::Committing)
            .map(|(key, _)| key.clone())
            .collect();
        for key in open {
            self.roll_back(&key, Some(cause.clone()));
        }
    }

    fn roll_back(&mut self, key: &TransactionKey, cause: Option<Cause>) {
        let reason = cause
            .as_ref()
            .map_or_else(|| Arc::from("its client asked for it"), |cause| Arc::clone(&cause.text));
        if let Some(Transaction { phase: Phase::Waiting(ticket), .. }) = self.transactions.get(key) {
            let ticket = *ticket;
            self.confirm(ticket, Err(rolled_back(key, &reason)));
        }
        self.undo(key, cause, &reason);
    }

    /// Makes nothing of a transaction take effect.
    fn undo(&mut self, key: &TransactionKey, cause: Option<Cause>, reason: &str) {
        let parked =
            self.transactions.get_mut(key).map(|transaction| std::mem::take(&mut transaction.parked));
        for number in parked.unwrap_or_default() {
            if let Some(parked) = self.unpark(number) {
                self.confirm(parked.ticket, Err(rolled_back(key, reason)));
            }
        }
        if self.has_stored_sends(key)
            && let Some(name) = self.store_transaction(key)
        {
            self.operations.push(StoreOperation::Rollback(name));
        }
        let Some(transaction) = self.transactions.remove(key) else { return };
        for (_, held) in transaction.sends {
            self.memory.release(held);
        }
        let cause = cause.unwrap_or_else(|| Cause::failure("its transaction was rolled back"));
        for Acknowledged { subscription: owner, number, queue, position } in transaction.acknowledged {
            let Some(subscription) = self.subscriptions.get_mut(&owner) else { continue };
            subscription.lock(number, None);
            if !subscription.is_closed {
                continue;
            }
            subscription.settle(number);
            if subscription.was_handed_over(number) {
                let policy = Arc::clone(&subscription.policy);
                let failure =
                    Failure { cause: &cause, policy: &policy, delay: Delay::None, reserved_for: None };
                self.give_back_failed(queue, position, &failure);
            } else {
                self.give_back_unseen(queue, position);
            }
            self.forget_if_done(owner);
        }
    }

    /// How the store names a transaction.
    pub(super) fn store_transaction(&self, key: &TransactionKey) -> Option<StoreTransaction> {
        let owner = self.transactions.get(key)?.owner.clone();
        Some(match &key.1 {
            TransactionId::Local(number) => StoreTransaction::Local(owner, *number),
            TransactionId::Distributed(xid) => StoreTransaction::Distributed(xid.clone()),
        })
    }
}

fn rolled_back(key: &TransactionKey, reason: &str) -> ProviderError {
    ProviderError::RolledBack { transaction: key.1.to_string(), reason: reason.to_owned() }
}
