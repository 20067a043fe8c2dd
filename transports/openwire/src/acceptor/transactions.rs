//! Local transactions of a peer.

use std::collections::HashMap;

use corriere_core::provider::{Command, ProviderError};
use corriere_core::{SubscriptionId, TransactionId};

use super::confirmations::{Answer, Then};
use super::connection::Connection;
use super::deliveries::Consumer;
use super::exceptions::Refusal;
use crate::codec::structures::{self as wire, JavaException, TransactionOperation};

/// The transactions that a peer has begun.
#[derive(Debug, Default)]
pub(super) struct Transactions(HashMap<TransactionId, Open>);

#[derive(Debug, Default)]
struct Open {
    /// Why it cannot be committed, where the provider does not know of that.
    spoilt: Option<String>,
    /// Whether anything was sent or acknowledged with it.
    has_work: bool,
    /// What it acknowledged.
    ranges: Vec<(SubscriptionId, u64, u64)>,
    /// Whether its commit or its rollback is under way.
    is_ending: bool,
}

impl Transactions {
    /// The transaction that a command names.
    pub(super) fn named(&self, id: Option<&wire::TransactionId>) -> Result<Option<TransactionId>, Refusal> {
        match id {
            None => Ok(None),
            Some(wire::TransactionId::Xa(_)) => Err(Refusal::distributed()),
            Some(id) => id.to_core().map(Some).map_err(Refusal::illegal_state),
        }
    }

    /// That a transaction was begun and has not ended.
    pub(super) fn check_open(&self, transaction: &TransactionId) -> Result<(), Refusal> {
        if self.0.contains_key(transaction) {
            return Ok(());
        }
        Err(Refusal::illegal_state(format_args!("transaction {transaction} was not begun, or has ended")))
    }

    /// Notes that a part of a transaction was refused before the provider saw it.
    pub(super) fn spoil(&mut self, id: Option<&wire::TransactionId>, refusal: &Refusal) {
        let transaction = self.named(id).ok().flatten();
        if let Some(open) = transaction.and_then(|transaction| self.0.get_mut(&transaction)) {
            open.spoilt.get_or_insert_with(|| refusal.to_string());
        }
    }

    /// Notes that something is sent or acknowledged with a transaction.
    pub(super) fn take_part(&mut self, transaction: Option<&TransactionId>) {
        if let Some(open) = transaction.and_then(|transaction| self.0.get_mut(transaction)) {
            open.has_work = true;
        }
    }

    /// Why a transaction cannot be committed.
    fn why_not(&self, transaction: &TransactionId, has_failed_over: bool) -> Option<String> {
        let open = self.0.get(transaction)?;
        // ActiveMQ's client begins a transaction again on its new connection, and sends again what it sent with it, but not what
        // it acknowledged: a commit that comes here would be one of nothing, and what it acknowledged would come again.
        let is_remainder = has_failed_over && !open.has_work;
        let remainder = || {
            "it was begun on a connection that is lost, and nothing of it came on this one, so what it acknowledged may be lost"
                .to_owned()
        };
        open.spoilt.clone().or_else(|| is_remainder.then(remainder))
    }

    /// Those for whose end nobody has asked.
    pub(super) fn open(&self) -> Vec<TransactionId> {
        let open = self.0.iter().filter(|(_, open)| !open.is_ending);
        open.map(|(transaction, _)| transaction.clone()).collect()
    }

    /// How many messages go back of a consumer that ends with its session: those that nobody acknowledged, or only a transaction
    /// for whose end nobody has asked.
    pub(super) fn returned(&self, subscription: SubscriptionId, consumer: Consumer) -> u64 {
        if consumer.is_browser {
            return 0;
        }
        let mut ledger = consumer.ledger;
        for (transaction, open) in self.0.iter().filter(|(_, open)| !open.is_ending) {
            for (_, first, last) in open.ranges.iter().filter(|(of, ..)| *of == subscription) {
                ledger.end(*first, *last, transaction, false);
            }
        }
        ledger.settle(0, u64::MAX).into()
    }

    fn begin_end(&mut self, transaction: &TransactionId) {
        if let Some(open) = self.0.get_mut(transaction) {
            open.is_ending = true;
        }
    }

    /// Notes what a transaction acknowledged.
    pub(super) fn note(
        &mut self,
        transaction: &TransactionId,
        subscription: SubscriptionId,
        first: u64,
        last: u64,
    ) {
        let Some(open) = self.0.get_mut(transaction) else { return };
        match open.ranges.last_mut() {
            // One after the other they are one range.
            Some((of, _, end)) if *of == subscription && *end + 1 == first => *end = last,
            _ => open.ranges.push((subscription, first, last)),
        }
    }
}

impl Connection {
    /// Begins or ends a transaction.
    pub(super) fn transaction(
        &mut self,
        info: &wire::TransactionInfo,
        answer: Answer,
    ) -> Result<(), Refusal> {
        self.provider()?;
        if info.operation == TransactionOperation::Recover {
            // There are none, as none can be begun.
            if answer.is_required {
                let (correlation_id, data) = (answer.command_id, Some(Vec::new()));
                self.deliveries.answer(wire::DataArrayResponse {
                    correlation_id,
                    data,
                    ..Default::default()
                });
            }
            return Ok(());
        }
        let transaction = self
            .transactions
            .named(info.transaction_id.as_ref())?
            .ok_or_else(|| Refusal::illegal_state("TransactionInfo names no transaction"))?;
        match info.operation {
            TransactionOperation::Begin => {
                if self.transactions.0.contains_key(&transaction) {
                    self.done(answer);
                    return Ok(());
                }
                self.transactions.0.insert(transaction.clone(), Open::default());
                self.submit(Command::Begin { transaction }, Then::Answer(answer))
            }
            TransactionOperation::CommitOnePhase => {
                self.transactions.begin_end(&transaction);
                let spoilt = self.transactions.why_not(&transaction, self.has_failed_over);
                let command = match &spoilt {
                    None => Command::Commit { transaction: transaction.clone(), one_phase: true },
                    Some(_) => Command::Rollback { transaction: transaction.clone(), cause: None },
                };
                self.submit(command, Then::Ended { transaction, is_commit: true, spoilt, answer })
            }
            TransactionOperation::Rollback => {
                self.transactions.begin_end(&transaction);
                let command = Command::Rollback { transaction: transaction.clone(), cause: None };
                self.submit(command, Then::Ended { transaction, is_commit: false, spoilt: None, answer })
            }
            // The connection is done with it until its commit or rollback, which a local one is not without.
            TransactionOperation::End => {
                self.done(answer);
                Ok(())
            }
            TransactionOperation::Prepare
            | TransactionOperation::CommitTwoPhase
            | TransactionOperation::Forget
            | TransactionOperation::Recover => Err(Refusal::illegal_state(format_args!(
                "a local transaction ends in one phase; {:?} is for distributed ones",
                info.operation
            ))),
        }
    }

    /// A transaction has ended: what it acknowledged is settled or is with its consumers again.
    pub(super) fn transaction_ended(
        &mut self,
        transaction: &TransactionId,
        is_commit: bool,
        spoilt: Option<String>,
        answer: Answer,
        outcome: Result<(), ProviderError>,
    ) {
        let open = self.transactions.0.remove(transaction).unwrap_or_default();
        let is_committed = is_commit && spoilt.is_none() && outcome.is_ok();
        let mut state = self.deliveries.lock();
        for (subscription, first, last) in &open.ranges {
            if let Some(consumer) = state.consumers.get_mut(subscription) {
                consumer.ledger.end(*first, *last, transaction, is_committed);
            }
        }
        drop(state);
        for (subscription, ..) in open.ranges {
            self.forget_if_done(subscription);
        }
        let outcome = match (outcome, spoilt) {
            (Ok(()), Some(reason)) => Err(Refusal::new(
                JavaException::TransactionRolledBack,
                format_args!("transaction {transaction} was rolled back: {reason}"),
            )),
            (outcome, _) => outcome.map_err(Refusal::from),
        };
        self.settle(answer, outcome);
    }
}
