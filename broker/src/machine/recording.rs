//! What is recorded for the store, and what goes on when the store is done with it.

use std::sync::Arc;

use corriere_core::provider::{Confirmation, ProviderError};

use super::Machine;
use super::effects::{Batch, BatchId, Ticket};
use super::line::Arrived;
use super::memory::Held;
use super::moving::Left;
use super::queue::QueueKey;
use super::sending::Sending;
use super::subscription::SubscriptionKey;
use super::transaction::TransactionKey;
use super::two_phase::Ending;
use crate::store::{Arrival, StoreError, StoreOperation, StoredId};

/// What goes on when the store is done with a batch.
#[derive(Debug)]
pub(super) enum OnStored {
    /// The command is confirmed, if this was the last batch that it waited for.
    Confirm(Ticket),
    /// A send outside a transaction becomes visible and is confirmed.
    Sent { sending: Sending, arrived: Arrived },
    /// A dead letter becomes visible, or what it was stays where it came from, if the store has that.
    MovedIn { queue: QueueKey, held: Arc<Held>, left: Option<Box<Left>> },
    /// The same for what an operator moves or copies, of which the order of this ticket takes note.
    Carried { ticket: Ticket, sending: Sending, left: Option<Box<Left>> },
    /// A message that a transaction sends is known to the store.
    Appended { transaction: TransactionKey, stored: StoredId },
    /// What a transaction acknowledges is known to the store.
    Staged { transaction: TransactionKey },
    /// A consumer of a durable subscription that was made for it is told so, or ends with that.
    Subscribed { consumer: SubscriptionKey, queue: QueueKey, ticket: Ticket },
    /// A transaction takes effect, or is prepared.
    Ended { transaction: TransactionKey, ending: Ending, ticket: Ticket },
}

/// How many batches are recorded at a moment of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    batches: usize,
    moves: usize,
}

impl Machine {
    /// Has the store do something. What it may refuse for want of room, and what ends a transaction of which it may have
    /// refused something, is in a batch of its own: nothing else must be refused with it.
    pub(super) fn record(&mut self, operation: StoreOperation) {
        let is_alone = |operation: &StoreOperation| {
            matches!(
                operation,
                StoreOperation::Append { .. }
                    | StoreOperation::Publish { .. }
                    | StoreOperation::CreateSubscription { .. }
                    | StoreOperation::Commit(_)
                    | StoreOperation::Prepare(_)
            )
        };
        if self.operations.last().is_some_and(|last| is_alone(last) || is_alone(&operation)) {
            self.close_recorded();
        }
        self.operations.push(operation);
    }

    /// Nothing more belongs to what was recorded last.
    fn close_recorded(&mut self) {
        if !self.operations.is_empty() {
            self.recorded.push((std::mem::take(&mut self.operations), std::mem::take(&mut self.on_stored)));
        }
    }

    /// What is recorded for the store so far of this input; what comes next is in other batches.
    pub(super) fn recorded(&mut self) -> Recorded {
        self.close_recorded();
        Recorded { batches: self.recorded.len(), moves: self.moves.fresh() }
    }

    /// Confirms a command that has taken effect, once the store knows of what it recorded since then.
    pub(super) fn confirm_when_stored(&mut self, ticket: Ticket, since: Recorded) {
        let until = self.recorded();
        if until == since {
            self.confirm(ticket, Ok(Confirmation::Done));
        } else if ticket != Ticket::NOBODY {
            self.stored_for = Some((ticket, since, until));
        }
    }

    pub(super) fn stored_batch(&mut self, batch: BatchId, outcome: &Result<(), StoreError>) {
        let told =
            outcome.as_ref().map_err(|error| ProviderError::Store { reason: error.to_string() }).copied();
        let mut is_put_off = false;
        let waiting = self.batches.remove(&batch).unwrap_or_default();
        self.store_room.under_way -= usize::from(waiting.first().is_some_and(OnStored::may_end_sends));
        for waiting in waiting {
            match waiting {
                OnStored::Confirm(ticket) => {
                    self.confirm_if_last(ticket, told.clone().err().filter(|_| !is_put_off));
                }
                OnStored::Sent { sending, arrived } => self.sent(sending, arrived, outcome),
                OnStored::MovedIn { queue, held, left } if outcome.is_ok() => {
                    self.enqueue(queue, held, Arrival::MovedIn);
                    left.into_iter().for_each(|left| self.has_arrived(*left));
                }
                OnStored::MovedIn { queue, held, left } => {
                    is_put_off = matches!(outcome, Err(StoreError::Full { .. }));
                    self.put_off(queue, held, left);
                }
                OnStored::Carried { ticket, sending, left } => {
                    is_put_off = matches!(outcome, Err(StoreError::Full { .. }));
                    self.carried(ticket, sending, left, outcome);
                }
                OnStored::Appended { transaction, stored } if outcome.is_ok() => {
                    self.appended(&transaction, stored);
                }
                OnStored::Appended { transaction, .. } | OnStored::Staged { transaction } => {
                    if let Err(error) = &told {
                        self.staging_failed(&transaction, error);
                    }
                }
                OnStored::Subscribed { consumer, queue, ticket } => {
                    self.subscribed(consumer, queue, ticket, told.clone());
                }
                OnStored::Ended { transaction, ending, ticket } => {
                    self.ended(&transaction, ending, ticket, told.clone());
                }
            }
        }
        self.take_sends_again();
    }

    fn confirm_if_last(&mut self, ticket: Ticket, error: Option<ProviderError>) {
        let Some((left, failed)) = self.confirming.get_mut(&ticket) else { return };
        *left -= 1;
        *failed = failed.take().or(error);
        if *left == 0
            && let Some((_, failed)) = self.confirming.remove(&ticket)
        {
            self.confirm(ticket, failed.map_or(Ok(Confirmation::Done), Err));
        }
    }

    /// Gives the store what was recorded.
    pub(super) fn end_batch(&mut self) {
        self.close_recorded();
        let mut batches = std::mem::take(&mut self.recorded);
        // Each by itself: one that there is no room for must not keep anything else from being stored.
        let mut moves = self.moves.take_fresh();
        if let Some((ticket, since, until)) = self.stored_for.take() {
            let own = batches[since.batches..until.batches].iter_mut();
            let own = own.chain(&mut moves[since.moves..until.moves]);
            // What is sent, and what ends a transaction, has somebody of its own who waits for it.
            let own = own.filter(|(_, on_stored)| !on_stored.first().is_some_and(OnStored::has_its_own));
            let count = own.map(|(_, on_stored)| on_stored.push(OnStored::Confirm(ticket))).count();
            if count == 0 {
                self.confirm(ticket, Ok(Confirmation::Done));
            } else {
                self.confirming.insert(ticket, (count, None));
            }
        }
        batches.append(&mut moves);
        for (operations, on_stored) in batches {
            self.store_room.under_way += usize::from(on_stored.first().is_some_and(OnStored::may_end_sends));
            let is_awaited = !on_stored.is_empty();
            if !is_awaited
                && let Some(last) = self.effects.store.last_mut()
                && !last.is_awaited
                && last.operations.iter().chain(&operations).all(ends_a_message)
            {
                last.operations.extend(operations);
                continue;
            }
            let id = BatchId(self.next_batch);
            self.next_batch += 1;
            self.batches.insert(id, on_stored);
            self.effects.store.push(Batch { id, operations, is_awaited });
        }
    }
}

impl OnStored {
    /// Whether somebody else waits for it than the command in whose course it was recorded: of a transaction that ends as a send of
    /// it waits no more.
    fn has_its_own(&self) -> bool {
        self.is_of_send() || matches!(self, Self::Ended { .. })
    }
}

fn ends_a_message(operation: &StoreOperation) -> bool {
    matches!(operation, StoreOperation::Remove { transaction: None, .. })
}
