//! What becomes of deliveries.

use corriere_core::id::SubscriptionId;
use corriere_core::provider::{Ack, AckKind, Cause, Confirmation, ProviderError, Receipt};
use tokio::time::Instant;

use super::commands::done;
use super::error::About;
use super::state::{Acknowledged, State, Then, unknown};
use super::subscription::{Run, Subscription};
use crate::codec::structures::{AckType, MessageAck, Throwable, TransactionId as WireTransactionId};
use crate::redelivery::{self, Return};

/// What the exception is called that a message is condemned with, where the peer is not one of Corriere's.
const CAUSE: &str = "java.lang.Throwable";

/// An acknowledgement but for the range.
pub(super) struct Word {
    kind: AckType,
    transaction: Option<WireTransactionId>,
    cause: Option<Throwable>,
}

impl Word {
    pub(super) fn of(kind: AckType) -> Self {
        Self { kind, transaction: None, cause: None }
    }
}

impl State {
    pub(super) fn acknowledge(&mut self, ack: Ack, answer: bool) -> Result<Receipt, ProviderError> {
        let Ack { subscription: id, first, last, kind, transaction } = ack;
        let receipt = match kind {
            AckKind::Standard | AckKind::Individual | AckKind::Unmatched if transaction.is_some() => {
                let kind = if kind == AckKind::Unmatched { AckType::Unmatched } else { AckType::Standard };
                self.settle_in_transaction(id, first, last, transaction, kind)?
            }
            AckKind::Standard | AckKind::Individual => {
                let runs = self.subscription(id)?.settle(first, last);
                self.say(id, &runs, &Word::of(AckType::Standard), answer)
            }
            AckKind::Unmatched => {
                let runs = self.subscription(id)?.pass_over(first, last);
                self.say(id, &runs, &Word::of(AckType::Unmatched), answer)
            }
            AckKind::Expired => {
                let runs = self.subscription(id)?.pass_over(first, last);
                self.say(id, &runs, &Word::of(AckType::Expired), answer)
            }
            AckKind::Poison { cause } => {
                let runs = self.subscription(id)?.settle(first, last);
                self.condemn(id, &runs, &cause, answer)
            }
            AckKind::Undeliverable { reason } => {
                let runs = self.subscription(id)?.pass_over(first, last);
                let word = Word { cause: Some(self.undeliverable(&reason)), ..Word::of(AckType::Poison) };
                self.say(id, &runs, &word, answer)
            }
            AckKind::Redelivered { delay, cause } => {
                let given_back = self.subscription(id)?.give_back(first, last, delay, &cause, Instant::now());
                self.look_again(id, given_back.due);
                // A peer that does not count itself may still take note that its client does.
                drop(self.say(id, &given_back.retained, &Word::of(AckType::Redelivered), false));
                if self.peer.redelivers {
                    let cause = Some(Return { delay, cause }.to_throwable());
                    let word = Word { cause, ..Word::of(AckType::Redelivered) };
                    self.say(id, given_back.returned.as_slice(), &word, answer)
                } else {
                    self.condemn(id, &given_back.exhausted, &cause, answer)
                }
            }
            AckKind::Delivered => self.handed_over(id, last)?,
            AckKind::Retained => {
                self.subscription(id)?.hand_over(last);
                done()
            }
        };
        self.attend(id);
        self.remove_if_done(id);
        Ok(receipt)
    }

    fn settle_in_transaction(
        &mut self,
        id: SubscriptionId,
        first: u64,
        last: u64,
        transaction: Option<corriere_core::TransactionId>,
        kind: AckType,
    ) -> Result<Receipt, ProviderError> {
        let Some(transaction) = transaction else { return Ok(done()) };
        let on_the_wire = self.transaction_id(&transaction)?;
        if !self.transactions.contains_key(&transaction) {
            return Err(unknown(format_args!("transaction {transaction}")));
        }
        let (runs, arrivals) = self.subscription(id)?.settle_in_transaction(first, last);
        let word = Word { transaction: Some(on_the_wire), ..Word::of(kind) };
        let receipt = self.say(id, &runs, &word, false);
        if let Some(acknowledged) = self.transactions.get_mut(&transaction) {
            acknowledged.push(Acknowledged { subscription: id, arrivals });
        }
        Ok(receipt)
    }

    fn condemn(&mut self, id: SubscriptionId, runs: &[Run], cause: &Cause, answer: bool) -> Receipt {
        let cause = if self.peer.redelivers {
            Return { delay: None, cause: cause.clone() }.to_throwable()
        } else {
            in_java(&cause.text)
        };
        self.say(id, runs, &Word { cause: Some(cause), ..Word::of(AckType::Poison) }, answer)
    }

    /// Says one thing of messages; of the last run the peer says when it has done so, if that is wanted.
    pub(super) fn say(&mut self, id: SubscriptionId, runs: &[Run], word: &Word, answer: bool) -> Receipt {
        let mut receipt = done();
        for (index, run) in runs.iter().enumerate() {
            let Some(ack) = self.message_ack(id, run, word) else { continue };
            if answer && index + 1 == runs.len() {
                let ack = MessageAck { response_required: true, ..ack };
                receipt = self.ask(ack, About::Other, Then::Confirm(Confirmation::Done));
            } else {
                self.tell(ack);
            }
        }
        receipt
    }

    fn message_ack(&self, id: SubscriptionId, run: &Run, word: &Word) -> Option<MessageAck> {
        let subscription = self.subscriptions.get(&id)?;
        Some(MessageAck {
            destination: Some(subscription.destination.clone()),
            transaction_id: word.transaction.clone(),
            consumer_id: subscription.consumer.clone(),
            ack_type: word.kind,
            first_message_id: Some(run.first.clone()),
            last_message_id: Some(run.last.clone()),
            message_count: i32::try_from(run.count).unwrap_or(i32::MAX),
            poison_cause: word.cause.clone(),
            ..MessageAck::default()
        })
    }

    /// Says of a browsed message or an advisory that it was taken in, so that the next one comes.
    pub(super) fn acknowledge_unheld(&mut self, ack: MessageAck) {
        self.tell(MessageAck { ack_type: AckType::Standard, message_count: 1, ..ack });
    }

    /// Refuses what the peer sent and nobody can be given, so that it comes to the dead letters and nothing waits behind it. Of
    /// what came before it that says nothing, to ActiveMQ neither.
    pub(super) fn refuse(&mut self, ack: MessageAck, reason: &str) {
        self.tell(MessageAck {
            ack_type: AckType::Poison,
            message_count: 1,
            poison_cause: Some(self.undeliverable(reason)),
            ..ack
        });
    }

    fn undeliverable(&self, reason: &str) -> Throwable {
        if self.peer.redelivers { redelivery::undeliverable(reason) } else { in_java(reason) }
    }

    /// Removes a subscription that was closed, once nothing of it is left to be settled.
    pub(super) fn remove_if_done(&mut self, id: SubscriptionId) {
        if self.subscriptions.get(&id).is_some_and(Subscription::is_done) {
            self.remove_subscription(id, false);
        }
    }
}

/// The exception that ActiveMQ is told.
fn in_java(text: &str) -> Throwable {
    let message = Some(redelivery::cut(text).into());
    Throwable { class: CAUSE.into(), message, ..Throwable::default() }
}
