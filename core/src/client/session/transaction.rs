//! The transaction of a session: its begin, its end, and a commit whose caller went away.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::super::buffer::lock;
use super::settlement::forget_if_settled;
use super::{SessionInner, SessionState, confirm_all};
use crate::error::Error;
use crate::id::{SubscriptionId, TransactionId};
use crate::provider::{AckKind, Cause, Command, Confirmation, ProviderError, Receipt};

/// Deliveries of one subscription, by their first and last number.
pub(super) type Range = (SubscriptionId, u64, u64);

impl SessionInner {
    /// The transaction that is open, or a new one.
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

    /// Commits. All of it is submitted in the first poll, so that what is sent or received after that belongs to the
    /// next transaction whatever becomes of the future.
    pub(super) async fn commit(self: &Arc<Self>) -> Result<(), Error> {
        match self.submit_commit()? {
            Submitted::Nothing => Ok(()),
            Submitted::Commit(commit) => {
                PendingCommit { session: self, commit: Some(commit) }.outcome().await
            }
            Submitted::Rollback { reason, receipts } => {
                confirm_all(receipts).await?;
                Err(Error::TransactionRolledBack { reason })
            }
        }
    }

    fn submit_commit(&self) -> Result<Submitted, Error> {
        let mut state = lock(&self.state);
        self.check_usable("commit")?;
        if let Some(reason) = state.rollback_only.take() {
            let cause = Cause::failure(format!("the transaction was rolled back: {reason}"));
            return Ok(Submitted::Rollback {
                receipts: self.submit_rollback(&mut state, None, cause),
                reason,
            });
        }
        if state.transaction.is_none() && state.unsettled.is_empty() {
            return Ok(Submitted::Nothing);
        }
        let transaction = self.transaction(&mut state);
        let (_, ranges) = self.settle_ranges(&mut state, &AckKind::Standard, Some(&transaction));
        state.transaction = None;
        let receipt = self.connection.submit(Command::Commit { transaction, one_phase: true });
        Ok(Submitted::Commit(Commit { receipt, ranges }))
    }

    /// Gives back the deliveries of a commit that failed.
    fn end_commit(
        &self,
        ranges: Vec<Range>,
        outcome: Result<Confirmation, ProviderError>,
    ) -> Result<(), Error> {
        let mut state = lock(&self.state);
        for (subscription, first, last) in ranges {
            if let Err(error) = &outcome {
                if let Some(handed_over) = state.subscriptions.get_mut(&subscription) {
                    self.recall(subscription, handed_over, last);
                }
                let cause = Cause::failure(format!("the commit failed: {error}"));
                let kind = AckKind::Redelivered { delay: None, cause };
                drop(self.acknowledge(subscription, first, last, kind, None));
            }
            forget_if_settled(&mut state, subscription);
        }
        outcome.map(drop).map_err(Error::from)
    }

    /// Undoes the transaction and gives back what was received in it. All of it is submitted in the first poll.
    pub(super) async fn rollback(&self, cause: Cause) -> Result<(), Error> {
        let receipts = self.submit_rollback(&mut lock(&self.state), None, cause);
        confirm_all(receipts).await
    }

    /// As [`SessionInner::rollback`], with an end of its own for one delivery. The others are given back whatever that end
    /// is: what is wrong with one message says nothing of those that happened to be received with it.
    pub(in crate::client) async fn rollback_releasing(
        &self,
        subscription: SubscriptionId,
        number: u64,
        kind: AckKind,
    ) -> Result<(), Error> {
        let cause = match &kind {
            AckKind::Redelivered { cause, .. } | AckKind::Poison { cause } => Cause {
                text: format!("the transaction was rolled back: {}", cause.text).into(),
                ..cause.clone()
            },
            _ => Cause::failure("the transaction was rolled back"),
        };
        let own = Some((subscription, number, kind));
        let receipts = self.submit_rollback(&mut lock(&self.state), own, cause);
        confirm_all(receipts).await
    }

    fn submit_rollback(
        &self,
        state: &mut SessionState,
        own: Option<(SubscriptionId, u64, AckKind)>,
        cause: Cause,
    ) -> Vec<Receipt> {
        state.rollback_only = None;
        let rollback = state.transaction.take().map(|transaction| {
            let cause = Some(cause.clone());
            self.connection.submit(Command::Rollback { transaction, cause })
        });
        let own = own
            .and_then(|(subscription, number, kind)| self.settle_number(state, subscription, number, kind));
        let given_back = AckKind::Redelivered { delay: None, cause };
        let (mut receipts, _) = self.settle_ranges(state, &given_back, None);
        receipts.extend(own);
        receipts.extend(rollback);
        receipts
    }
}

/// What a commit came to when it was submitted.
enum Submitted {
    Nothing,
    Commit(Commit),
    /// A send of the transaction had failed.
    Rollback {
        reason: String,
        receipts: Vec<Receipt>,
    },
}

/// A commit on its way, and the deliveries to give back if it fails.
struct Commit {
    receipt: Receipt,
    ranges: Vec<Range>,
}

/// A commit that somebody waits for. Dropped before its end, it is waited for by a task of its own.
struct PendingCommit<'a> {
    session: &'a Arc<SessionInner>,
    commit: Option<Commit>,
}

impl PendingCommit<'_> {
    async fn outcome(mut self) -> Result<(), Error> {
        let Some(commit) = &mut self.commit else { return Ok(()) };
        let outcome = (&mut commit.receipt).await;
        let ranges = std::mem::take(&mut commit.ranges);
        self.commit = None;
        self.session.end_commit(ranges, outcome)
    }
}

impl Drop for PendingCommit<'_> {
    fn drop(&mut self) {
        let Some(Commit { receipt, ranges }) = self.commit.take() else { return };
        // Outside a runtime nobody can wait; what was received comes again, if it must, when the session is closed.
        if let Ok(runtime) = Handle::try_current() {
            let session = Arc::clone(self.session);
            runtime.spawn(async move { session.end_commit(ranges, receipt.await) });
        }
    }
}
