//! The phases of a transaction: begun, perhaps prepared, and ended.
//!
//! A distributed transaction belongs to the connection that began it until it is prepared: until then only that connection
//! may end it, and it is rolled back with that connection. Once prepared it is nobody's: it survives connections and
//! restarts, and any connection may commit it or roll it back.

use corriere_core::provider::{Cause, Confirmation, ProviderError};
use corriere_core::{TransactionId, id::Xid};

use super::Machine;
use super::effects::{ConnectionKey, Ticket};
use super::transaction::{Transaction, TransactionKey, key_of, key_of_distributed, rolled_back, unknown};
use crate::store::StoreTransaction;

/// How far a transaction has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It takes sends and acknowledgements.
    Open,
    /// A distributed one whose connection has ended its part.
    Done,
    /// Its end waits for sends that wait for memory or for the store.
    Waiting(Ending, Ticket),
    /// Its end is with the store.
    WithStore,
    /// It waits for its outcome.
    Prepared {
        /// Counts what was prepared.
        order: u64,
    },
}

/// What is to become of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Prepare,
    Commit,
    CommitPrepared {
        /// Of the prepare.
        order: u64,
    },
}

impl Transaction {
    /// Whether it is rolled back with its connection.
    pub(super) fn may_be_undone(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Done | Phase::Waiting(..))
    }
}

impl Machine {
    pub(super) fn begin(
        &mut self,
        connection: ConnectionKey,
        transaction: TransactionId,
    ) -> Result<(), ProviderError> {
        let key = key_of(connection, &transaction);
        if self.transactions.contains_key(&key) {
            return Err(ProviderError::Exists { what: format!("transaction {transaction}") });
        }
        let identity = self.connections.get(&connection).ok_or(ProviderError::Lost)?.identity.clone();
        let name = match transaction {
            TransactionId::Local(number) => StoreTransaction::Local(identity, number),
            TransactionId::Distributed(xid) => StoreTransaction::Distributed(xid),
        };
        self.transactions.insert(key, Transaction::new(connection, name));
        Ok(())
    }

    /// The connection has done its part of a distributed transaction.
    pub(super) fn end_part(
        &mut self,
        connection: ConnectionKey,
        transaction: &TransactionId,
    ) -> Result<(), ProviderError> {
        self.check_open(connection, transaction)?;
        if let (TransactionId::Distributed(_), Some(state)) =
            (transaction, self.transactions.get_mut(&key_of(connection, transaction)))
        {
            state.phase = Phase::Done;
        }
        Ok(())
    }

    pub(super) fn prepare(&mut self, connection: ConnectionKey, ticket: Ticket, transaction: &TransactionId) {
        let key = key_of(connection, transaction);
        let is_distributed = matches!(transaction, TransactionId::Distributed(_));
        match self.transactions.get_mut(&key) {
            Some(state)
                if is_distributed
                    && state.owner == Some(connection)
                    && matches!(state.phase, Phase::Open | Phase::Done) =>
            {
                state.phase = Phase::Waiting(Ending::Prepare, ticket);
                self.end_if_waiting(&key);
            }
            _ => self.confirm(ticket, Err(unknown(transaction))),
        }
    }

    pub(super) fn commit(
        &mut self,
        connection: ConnectionKey,
        ticket: Ticket,
        transaction: &TransactionId,
        one_phase: bool,
    ) {
        let key = key_of(connection, transaction);
        let Some(state) = self.transactions.get_mut(&key) else {
            self.confirm(ticket, Err(unknown(transaction)));
            return;
        };
        match state.phase {
            Phase::Prepared { order } => {
                let ending = Ending::CommitPrepared { order };
                state.phase = Phase::Waiting(ending, ticket);
                self.end_if_waiting(&key);
            }
            Phase::Open | Phase::Done if state.owner == Some(connection) => {
                if one_phase {
                    state.phase = Phase::Waiting(Ending::Commit, ticket);
                    self.end_if_waiting(&key);
                } else {
                    let transaction = transaction.to_string();
                    self.confirm(ticket, Err(ProviderError::NotPrepared { transaction }));
                }
            }
            _ => self.confirm(ticket, Err(unknown(transaction))),
        }
    }

    /// Goes on with the end of a transaction that waits for nothing more.
    pub(super) fn end_if_waiting(&mut self, key: &TransactionKey) {
        let Some(transaction) = self.transactions.get(key) else { return };
        let Phase::Waiting(ending, ticket) = transaction.phase else { return };
        if let Some(reason) = transaction.failure.clone() {
            self.undo(key, None, &reason);
            self.confirm(ticket, Err(rolled_back(key, &reason)));
        } else if transaction.parked.is_empty() {
            let is_empty = transaction.is_empty();
            if transaction.is_stored {
                if ending == Ending::Prepare {
                    self.clear_slots_of(key);
                }
                self.hand_to_store(key, ending, ticket);
            } else if ending == Ending::Prepare && is_empty {
                self.transactions.remove(key);
                self.confirm(ticket, Ok(Confirmation::Prepared { must_commit: false }));
            } else if ending == Ending::Prepare {
                self.prepared(key, ticket);
            } else {
                self.apply(key);
                self.confirm(ticket, Ok(Confirmation::Done));
            }
        }
    }

    /// A transaction is prepared, and nobody's from now on.
    pub(super) fn prepared(&mut self, key: &TransactionKey, ticket: Ticket) {
        let Some(transaction) = self.transactions.get_mut(key) else { return };
        transaction.owner = None;
        transaction.phase = Phase::Prepared { order: self.next_prepared };
        self.next_prepared += 1;
        self.confirm(ticket, Ok(Confirmation::Prepared { must_commit: true }));
    }

    pub(super) fn rollback(
        &mut self,
        connection: ConnectionKey,
        transaction: &TransactionId,
        cause: Option<Cause>,
    ) -> Result<(), ProviderError> {
        let key = key_of(connection, transaction);
        let state = self.transactions.get(&key).ok_or_else(|| unknown(transaction))?;
        let is_prepared = matches!(state.phase, Phase::Prepared { .. });
        let is_own = state.owner == Some(connection) && state.may_be_undone();
        if !is_prepared && !is_own {
            return Err(unknown(transaction));
        }
        self.roll_back(&key, cause);
        Ok(())
    }

    /// Whether a distributed transaction is prepared, or its end is with the store.
    pub(super) fn is_past_undoing(&self, transaction: &TransactionId) -> bool {
        let state = self.transactions.get(&key_of_distributed(transaction.clone()));
        state.is_some_and(|state| !state.may_be_undone())
    }

    /// The distributed transactions that wait for their outcome, in the order in which they were prepared.
    pub(super) fn prepared_transactions(&self) -> Vec<Xid> {
        let mut prepared: Vec<_> = self
            .transactions
            .iter()
            .filter_map(|((_, transaction), state)| match (transaction, state.phase) {
                (TransactionId::Distributed(xid), Phase::Prepared { order }) => Some((order, xid.clone())),
                _ => None,
            })
            .collect();
        prepared.sort_unstable();
        prepared.into_iter().map(|(_, xid)| xid).collect()
    }
}
