//! The transaction of a session: its begin, its end, and a commit whose caller went away.

use super::super::buffer::lock;
use super::settlement::forget_if_settled;
use super::{SessionInner, SessionState, confirm_all};
use crate::error::Error;
use crate::id::{SubscriptionId, TransactionId};
use crate::provider::{AckKind, Cause, Command, Confirmation, ProviderError, Receipt};

/// A commit on its way, and the deliveries to give back if it fails.
#[derive(Debug)]
pub(super) struct Ending {
    receipt: Receipt,
    ranges: Vec<(SubscriptionId, u64, u64)>,
}

impl SessionInner {
    pub(super) fn transaction(&self, state: &mut SessionState) -> TransactionId {
        state
            .transaction
            .get_or_insert_with(|| {
                let transaction = self.connection.next_transaction();
                drop(self.connection.submit(Command::Begin { transaction: transaction.clone() }));
                transaction
            })
            .clone()
    }

    pub(super) async fn commit(&self) -> Result<(), Error> {
        let mut ending = self.ending.lock().await;
        self.finish_ending(&mut ending).await.ok();
        let failure = lock(&self.state).rollback_only.take();
        if let Some(reason) = failure {
            let cause = Cause::failure(format!("the transaction was rolled back: {reason}"));
            confirm_all(self.submit_rollback(&AckKind::Redelivered { delay: None, cause })).await?;
            return Err(Error::TransactionRolledBack { reason });
        }
        *ending = {
            let mut state = lock(&self.state);
            if state.transaction.is_none() && state.unsettled.is_empty() {
                return Ok(());
            }
            let transaction = self.transaction(&mut state);
            let (_, ranges) = self.settle_ranges(&mut state, &AckKind::Standard, Some(&transaction));
            state.transaction = None;
            Some(Ending {
                receipt: self.connection.submit(Command::Commit { transaction, one_phase: true }),
                ranges,
            })
        };
        self.finish_ending(&mut ending).await
    }

    /// Awaits the commit that is on its way, if one is, and gives back its deliveries when it failed. Dropping this
    /// leaves it for the next call.
    pub(super) async fn finish_ending(&self, ending: &mut Option<Ending>) -> Result<(), Error> {
        let Some(Ending { receipt, ranges }) = ending.as_mut() else {
            return Ok(());
        };
        let outcome: Result<Confirmation, ProviderError> = receipt.await;
        if let Err(error) = &outcome {
            let cause = Cause::failure(format!("the commit failed: {error}"));
            let mut state = lock(&self.state);
            for (subscription, first, last) in ranges.iter().copied() {
                if let Some(handed_over) = state.subscriptions.get_mut(&subscription) {
                    self.recall(subscription, handed_over, last);
                }
                let kind = AckKind::Redelivered { delay: None, cause: cause.clone() };
                drop(self.acknowledge(subscription, first, last, kind, None));
            }
        }
        let mut state = lock(&self.state);
        for (subscription, ..) in ranges.drain(..) {
            forget_if_settled(&mut state, subscription);
        }
        drop(state);
        *ending = None;
        outcome.map(drop).map_err(Error::from)
    }

    /// Undoes the transaction and says `kind` of what was received in it.
    pub(in crate::client) async fn rollback(&self, kind: &AckKind) -> Result<(), Error> {
        let mut ending = self.ending.lock().await;
        self.finish_ending(&mut ending).await.ok();
        confirm_all(self.submit_rollback(kind)).await
    }

    pub(super) fn submit_rollback(&self, kind: &AckKind) -> Vec<Receipt> {
        let mut state = lock(&self.state);
        state.rollback_only = None;
        let rollback = state.transaction.take().map(|transaction| {
            let cause = match kind {
                AckKind::Redelivered { cause, .. } | AckKind::Poison { cause } => Some(cause.clone()),
                _ => None,
            };
            self.connection.submit(Command::Rollback { transaction, cause })
        });
        let (mut receipts, _) = self.settle_ranges(&mut state, kind, None);
        receipts.extend(rollback);
        receipts
    }
}
