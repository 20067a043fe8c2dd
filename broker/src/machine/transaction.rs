//! Transactions over sends and acknowledgements: what they hold, and how it takes effect or does not. Their phases are in
//! `two_phase`.

use std::collections::BTreeSet;
use std::sync::Arc;

use corriere_core::id::Xid;
use corriere_core::provider::{Cause, Confirmation, ProviderError, SendMessage};
use corriere_core::{MessageId, TransactionId};

use super::Machine;
use super::delivery::{Delay, Failure};
use super::effects::{ConnectionKey, Ticket};
use super::memory::Memory;
use super::queue::{Position, QueueKey};
use super::recording::OnStored;
use super::sending::{Sending, Target};
use super::subscription::SubscriptionKey;
use super::two_phase::{Ending, Phase};
use crate::store::{Arrival, StoreOperation, StoreTransaction, StoredId};

/// A local transaction of a connection, or a distributed one under no connection.
pub(super) type TransactionKey = (ConnectionKey, TransactionId);

/// Stands for no connection; the edge counts from 1.
pub(super) const NOBODY: ConnectionKey = ConnectionKey(0);

/// The key of what a connection calls so.
pub(super) fn key_of(connection: ConnectionKey, transaction: &TransactionId) -> TransactionKey {
    match transaction {
        TransactionId::Local(_) => (connection, transaction.clone()),
        TransactionId::Distributed(_) => key_of_distributed(transaction.clone()),
    }
}

/// The key of a distributed transaction, which is the same for every connection.
pub(super) fn key_of_distributed(transaction: TransactionId) -> TransactionKey {
    (NOBODY, transaction)
}

/// What a transaction holds until its end.
#[derive(Debug)]
pub(super) struct Transaction {
    /// The connection that works in it, and with which it ends; nobody's once it is prepared.
    pub(super) owner: Option<ConnectionKey>,
    /// The connection that its messages come from.
    origin: Option<ConnectionKey>,
    /// How the store knows it.
    pub(super) name: StoreTransaction,
    /// Whether the store has anything of it.
    pub(super) is_stored: bool,
    /// Sends of it that wait, by their numbers in the line.
    pub(super) parked: BTreeSet<u64>,
    /// In the order of the sends, which is that of their names in the store.
    sends: Vec<TransactedSend>,
    /// Which of them the store has, and their bodies are here.
    with_body: Vec<usize>,
    acknowledged: Vec<Acknowledged>,
    /// The first thing that failed in it; it can only be rolled back.
    pub(super) failure: Option<String>,
    pub(super) phase: Phase,
}

/// A message that becomes visible when a transaction commits.
#[derive(Debug)]
struct TransactedSend {
    sending: Sending,
    /// By which it is recognised when it is sent again, if the store keeps it.
    id: Option<MessageId>,
}

/// A message that a transaction settles when it commits.
#[derive(Debug)]
struct Acknowledged {
    /// Whose delivery, under which number; of what was prepared in an earlier run this is not known.
    delivery: Option<(SubscriptionKey, u64)>,
    queue: QueueKey,
    position: Position,
}

impl Transaction {
    pub(super) fn new(owner: ConnectionKey, name: StoreTransaction) -> Self {
        Self {
            owner: Some(owner),
            origin: Some(owner),
            name,
            is_stored: false,
            parked: BTreeSet::new(),
            sends: Vec::new(),
            with_body: Vec::new(),
            acknowledged: Vec::new(),
            failure: None,
            phase: Phase::Open,
        }
    }

    /// One that was prepared in an earlier run.
    pub(super) fn recovered(xid: Xid, order: u64) -> Self {
        let phase = Phase::Prepared { order };
        let name = StoreTransaction::Distributed(xid);
        Self { owner: None, origin: None, is_stored: true, phase, ..Self::new(NOBODY, name) }
    }

    /// Notes that something failed in it.
    pub(super) fn fail(&mut self, error: &ProviderError) {
        self.failure.get_or_insert_with(|| error.to_string());
    }

    pub(super) fn add_send(&mut self, sending: Sending, id: Option<MessageId>) {
        self.sends.push(TransactedSend { sending, id });
    }

    /// The store has a message of it, whose body may go from now on. Answers whether it is one of these. What goes to a topic is
    /// none: those of its subscriptions get it of which the store does not know.
    fn is_appended(&mut self, stored: StoredId) -> bool {
        let index = self.sends.binary_search_by_key(&stored, |send| send.sending.held.id).ok();
        let is_to_queue = |index: &usize| {
            self.sends.get(*index).is_some_and(|send| matches!(send.sending.target, Target::Queue(_)))
        };
        let index = index.filter(is_to_queue);
        self.with_body.extend(index);
        index.is_some()
    }

    /// Lets the body go that was sent last of those that may; false when there is none.
    pub(super) fn let_one_go(&mut self, memory: &mut Memory) -> bool {
        while let Some(index) = self.with_body.pop() {
            if self.sends.get_mut(index).is_some_and(|send| memory.forget_body(&mut send.sending.held)) {
                return true;
            }
        }
        false
    }

    pub(super) fn add_recovered_acknowledgement(&mut self, queue: QueueKey, position: Position) {
        self.acknowledged.push(Acknowledged { delivery: None, queue, position });
    }

    /// Whether there is nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        self.sends.is_empty() && self.acknowledged.is_empty()
    }
}

impl Machine {
    /// Whether a transaction takes sends and acknowledgements of this connection.
    pub(super) fn check_open(
        &self,
        connection: ConnectionKey,
        transaction: &TransactionId,
    ) -> Result<(), ProviderError> {
        match self.transactions.get(&key_of(connection, transaction)) {
            Some(state) if state.phase == Phase::Open && state.owner == Some(connection) => Ok(()),
            _ => Err(unknown(transaction)),
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
            && self.check_open(connection, transaction).is_ok()
            && let Some(transaction) = self.transactions.get_mut(&key_of(connection, transaction))
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
        self.transactions.get_mut(&key_of(connection, send.transaction.as_ref()?))
    }

    /// How the store names a transaction, which has something of it from now on.
    pub(super) fn store_transaction(&mut self, key: &TransactionKey) -> Option<StoreTransaction> {
        let transaction = self.transactions.get_mut(key)?;
        transaction.is_stored = true;
        Some(transaction.name.clone())
    }

    /// Has a delivery settled when a transaction commits. The store is told at once, so that a commit is small however
    /// much it settles. Answers whether the store was told anything.
    pub(super) fn settle_in_transaction(
        &mut self,
        key: &TransactionKey,
        subscription: SubscriptionKey,
        number: u64,
        position: Position,
    ) -> bool {
        let Some(state) = self.subscriptions.get_mut(&subscription) else { return false };
        let Some(transaction) = self.transactions.get_mut(key) else { return false };
        state.lock(number, Some(key.1.clone()));
        let queue = state.queue;
        let delivery = Some((subscription, number));
        transaction.acknowledged.push(Acknowledged { delivery, queue, position });
        let name = transaction.name.clone();
        let is_stored = self.stage_removal(queue, position, name);
        if let Some(transaction) = self.transactions.get_mut(key) {
            transaction.is_stored |= is_stored;
        }
        is_stored
    }

    /// The store has a message that a transaction sends.
    pub(super) fn appended(&mut self, key: &TransactionKey, stored: StoredId) {
        if self.bodies.can_load
            && let Some(transaction) = self.transactions.get_mut(key)
            && transaction.is_appended(stored)
        {
            self.bodies.uncommitted.insert(key.clone());
        }
    }

    /// The store failed with a part of a transaction.
    pub(super) fn staging_failed(&mut self, key: &TransactionKey, error: &ProviderError) {
        if let Some(transaction) = self.transactions.get_mut(key) {
            transaction.fail(error);
            self.end_if_waiting(key);
        }
    }

    /// Clears what is noted of deliveries that a transaction settles.
    pub(super) fn clear_slots_of(&mut self, key: &TransactionKey) {
        let Some(transaction) = self.transactions.get(key) else { return };
        let settled: Vec<_> = transaction
            .acknowledged
            .iter()
            .filter_map(|acknowledged| Some((acknowledged.delivery?.0, acknowledged.position)))
            .collect();
        for (subscription, position) in settled {
            self.clear_slot_of(subscription, position);
        }
    }

    /// Makes all of a transaction take effect.
    pub(super) fn apply(&mut self, key: &TransactionKey) {
        self.bodies.uncommitted.remove(key);
        let Some(transaction) = self.transactions.remove(key) else { return };
        for Acknowledged { delivery, queue, position } in transaction.acknowledged {
            self.remove_settled(queue, position);
            let Some((subscription, number)) = delivery else { continue };
            if let Some(subscription) = self.subscriptions.get_mut(&subscription) {
                subscription.settle(number);
            }
            self.attend(subscription);
            self.forget_if_done(subscription);
        }
        for TransactedSend { sending, id } in transaction.sends {
            self.producers.doubt_no_more(id.as_ref());
            if let Some(id) = id {
                // So that it is not sent again.
                self.producers.note(&id);
            }
            self.make_arrive(sending, Arrival::Sent, transaction.origin);
        }
    }

    /// Rolls back what is open of a connection that ends. What the store has been asked to commit or to prepare goes its
    /// way, and what is prepared stays.
    pub(super) fn roll_back_all(&mut self, connection: ConnectionKey, cause: &Cause) {
        let local = self.transactions.range((connection, TransactionId::Local(0))..);
        let local = local.take_while(|((owner, _), _)| *owner == connection);
        let distributed = self.transactions.range((NOBODY, TransactionId::Local(0))..);
        let distributed = distributed.take_while(|((owner, _), _)| *owner == NOBODY);
        let open: Vec<_> = local
            .chain(distributed)
            .filter(|(_, transaction)| transaction.owner == Some(connection) && transaction.may_be_undone())
            .map(|(key, _)| key.clone())
            .collect();
        for key in open {
            self.roll_back(&key, Some(cause.clone()));
        }
    }

    pub(super) fn roll_back(&mut self, key: &TransactionKey, cause: Option<Cause>) {
        let reason = cause
            .as_ref()
            .map_or_else(|| Arc::from("its client asked for it"), |cause| Arc::clone(&cause.text));
        if let Some(Transaction { phase: Phase::Waiting(_, ticket), .. }) = self.transactions.get(key) {
            let ticket = *ticket;
            self.confirm(ticket, Err(rolled_back(key, &reason)));
        }
        self.undo(key, cause, &reason);
    }

    /// Makes nothing of a transaction take effect.
    pub(super) fn undo(&mut self, key: &TransactionKey, cause: Option<Cause>, reason: &str) {
        let parked =
            self.transactions.get_mut(key).map(|transaction| std::mem::take(&mut transaction.parked));
        for number in parked.unwrap_or_default() {
            if let Some(parked) = self.unpark(number) {
                self.confirm(parked.arrived.ticket, Err(rolled_back(key, reason)));
            }
        }
        self.bodies.uncommitted.remove(key);
        let Some(transaction) = self.transactions.remove(key) else { return };
        if transaction.is_stored {
            self.record(StoreOperation::Rollback(transaction.name.clone()));
        }
        // What is open can still be sent by another one.
        let was_in_doubt = !transaction.may_be_undone();
        for send in transaction.sends {
            if was_in_doubt {
                self.producers.doubt_no_more(send.id.as_ref());
            }
            self.drop_sending(send.sending);
        }
        let cause = cause.unwrap_or_else(|| Cause::failure("its transaction was rolled back"));
        // In the order of the queue, not of the acknowledgements: some may come back as dead letters.
        let mut acknowledged = transaction.acknowledged;
        acknowledged.sort_by_key(|acknowledged| (acknowledged.queue, acknowledged.position));
        for Acknowledged { delivery, queue, position } in acknowledged {
            self.unsettle(delivery, queue, position, &cause);
        }
    }

    /// Undoes an acknowledgement: the message stays with its subscription, or comes back where that is gone.
    fn unsettle(
        &mut self,
        delivery: Option<(SubscriptionKey, u64)>,
        queue: QueueKey,
        position: Position,
        cause: &Cause,
    ) {
        let (policy, was_handed_over) = match delivery {
            None => {
                let policy = self.queues.get(&queue).map_or(&self.policy, |queue| &queue.policy.redelivery);
                (Arc::clone(policy), true)
            }
            Some((owner, number)) => {
                let Some(subscription) = self.subscriptions.get_mut(&owner) else { return };
                subscription.lock(number, None);
                if !subscription.is_closed {
                    // It was cleared when the transaction was prepared.
                    self.look_at_slot(owner);
                    return;
                }
                let was_handed_over = subscription.settle(number).is_some_and(|(_, handed_over)| handed_over);
                (Arc::clone(&subscription.policy), was_handed_over)
            }
        };
        if was_handed_over {
            let failure = Failure { cause, policy: &policy, delay: Delay::None, reserved_for: None };
            self.give_back_failed(queue, position, &failure);
        } else {
            self.give_back_unseen(queue, position, None);
        }
        if let Some((owner, _)) = delivery {
            self.forget_if_done(owner);
        }
    }

    /// The store is done with the end of a transaction.
    pub(super) fn ended(
        &mut self,
        key: &TransactionKey,
        ending: Ending,
        ticket: Ticket,
        outcome: Result<(), ProviderError>,
    ) {
        let Some(transaction) = self.transactions.get_mut(key) else { return };
        if let (Ending::CommitPrepared { order }, Err(error)) = (&ending, &outcome) {
            // It was promised that it can be committed, so it waits for the next try.
            transaction.phase = Phase::Prepared { order: *order };
            self.confirm(ticket, Err(error.clone()));
            return;
        }
        let failure = transaction.failure.clone().or_else(|| outcome.err().map(|error| error.to_string()));
        if let Some(reason) = failure {
            self.undo(key, None, &reason);
            self.confirm(ticket, Err(rolled_back(key, &reason)));
        } else if ending == Ending::Prepare {
            self.prepared(key, ticket);
        } else {
            self.apply(key);
            self.confirm(ticket, Ok(Confirmation::Done));
        }
    }

    /// Has the store end a transaction.
    pub(super) fn hand_to_store(&mut self, key: &TransactionKey, ending: Ending, ticket: Ticket) {
        let Some(transaction) = self.transactions.get_mut(key) else { return };
        let operation = match (&ending, &transaction.name) {
            (Ending::Prepare, StoreTransaction::Distributed(xid)) => StoreOperation::Prepare(xid.clone()),
            (_, name) => StoreOperation::Commit(name.clone()),
        };
        transaction.phase = Phase::WithStore;
        for send in &transaction.sends {
            self.producers.doubt(send.id.as_ref());
        }
        self.record(operation);
        self.on_stored.push(OnStored::Ended { transaction: key.clone(), ending, ticket });
    }
}

pub(super) fn unknown(transaction: &TransactionId) -> ProviderError {
    ProviderError::Unknown { what: format!("transaction {transaction}") }
}

pub(super) fn rolled_back(key: &TransactionKey, reason: &str) -> ProviderError {
    ProviderError::RolledBack { transaction: key.1.to_string(), reason: reason.to_owned() }
}
