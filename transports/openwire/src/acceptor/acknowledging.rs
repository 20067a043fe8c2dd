//! Acknowledgements: which deliveries of the provider a message id of the peer means, and what became of them.

use corriere_core::provider::{Ack, AckKind, Command};
use corriere_core::{MessageId, SubscriptionId, TransactionId};

use super::confirmations::{Answer, Then};
use super::connection::Connection;
use super::deliveries::Consumer;
use super::exceptions::Refusal;
use super::windows::is_topic;
use crate::codec::structures::{self as wire, AckType};
use crate::redelivery::{self, Return};

/// A range in which there is no delivery.
const NOTHING: (u64, u64) = (0, 0);

impl Connection {
    /// Takes an acknowledgement. What it names that is not known, or is settled, is passed over, as after a reconnect; with a
    /// transaction, that makes the commit fail: it would say of messages that they are settled which will come again.
    pub(super) fn acknowledge(&mut self, ack: &wire::MessageAck, answer: Answer) -> Result<(), Refusal> {
        self.provider()?;
        let taken = self.try_acknowledge(ack, answer);
        if let Err(refusal) = &taken {
            self.transactions.spoil(ack.transaction_id.as_ref(), refusal);
        }
        taken
    }

    fn try_acknowledge(&mut self, ack: &wire::MessageAck, answer: Answer) -> Result<(), Refusal> {
        // Only what settles takes effect with a transaction; the rest tells what has happened.
        let settles = matches!(ack.ack_type, AckType::Standard | AckType::Individual | AckType::Unmatched);
        let transaction = self.transactions.named(ack.transaction_id.as_ref())?.filter(|_| settles);
        let id = &ack.consumer_id;
        let Some(&subscription) = self.consumers.get(&(id.session_id, id.value)) else {
            // That of advisories is none of the provider's.
            if !self.deliveries.lock().watchers.has(id) {
                tracing::debug!(peer = %self.peer, consumer = %id, "an acknowledgement names a consumer that is not there");
                self.spoil_by_unknown(ack, transaction.as_ref());
            }
            self.done(answer);
            return Ok(());
        };
        if let Some(transaction) = &transaction {
            self.transactions.check_open(transaction)?;
            self.transactions.take_part(Some(transaction));
        }
        let mut state = self.deliveries.lock();
        let consumer = state.consumers.get_mut(&subscription);
        let is_known = consumer.as_ref().is_some_and(|consumer| {
            let names = [ack.first_message_id.as_ref(), ack.last_message_id.as_ref()];
            consumer.is_browser
                || names.into_iter().flatten().all(|id| consumer.ledger.number_of(id).is_some())
        });
        let spoilt = transaction.clone().filter(|_| !is_known);
        let is_whole = consumer.as_ref().is_some_and(|consumer| self.is_whole(ack, consumer));
        let commands =
            consumer.map(|consumer| self.read(ack, is_whole, subscription, transaction.as_ref(), consumer));
        drop(state);
        self.spoil_by_unknown(ack, spoilt.as_ref());
        self.forget_if_done(subscription);
        match commands {
            Some([Some(command), None]) => self.take(command, answer),
            Some([Some(first), Some(last)]) => {
                self.take(first, Answer::none())?;
                self.take(last, answer)
            }
            _ => {
                self.done(answer);
                Ok(())
            }
        }
    }

    fn take(&mut self, command: Command, answer: Answer) -> Result<(), Refusal> {
        if let Command::Acknowledge(Ack {
            subscription, first, last, transaction: Some(transaction), ..
        }) = &command
        {
            self.transactions.note(transaction, *subscription, *first, *last);
        } else if !answer.is_required {
            // It may be made safe later: at worst the message comes again.
            self.provider()?.tell(command);
            return Ok(());
        }
        self.submit(command, Then::Answer(answer))
    }

    /// Whether a range is meant with all that is in it. In a transaction ActiveMQ does not look at how many its client says, nor
    /// of a topic, whose client forgets what its listener failed with and says nothing more of it.
    fn is_whole(&self, ack: &wire::MessageAck, consumer: &Consumer) -> bool {
        let is_topic = consumer.destination.as_ref().is_some_and(is_topic);
        self.is_corriere
            || ack.transaction_id.is_some()
            || (is_topic && !consumer.is_durable)
            || ack.ack_type == AckType::Delivered
    }

    /// A client that fails over says again on its new connection what it said of messages that it had on the old one. A peer
    /// of Corriere does not, and names what is settled as well.
    fn spoil_by_unknown(&mut self, ack: &wire::MessageAck, transaction: Option<&TransactionId>) {
        if transaction.is_some() && !self.is_corriere {
            let refusal = Refusal::illegal_state(format_args!(
                "the transaction acknowledges messages that the consumer {} does not have on this connection",
                ack.consumer_id
            ));
            self.transactions.spoil(ack.transaction_id.as_ref(), &refusal);
        }
    }

    /// What the acknowledgement is for the provider; nothing for one that says nothing new.
    fn read(
        &self,
        ack: &wire::MessageAck,
        is_whole: bool,
        subscription: SubscriptionId,
        transaction: Option<&TransactionId>,
        consumer: &mut Consumer,
    ) -> [Option<Command>; 2] {
        let (first, last) = (ack.first_message_id.as_ref(), ack.last_message_id.as_ref());
        let [mut one, other] = match (ack.ack_type, first) {
            // Older clients name one that expired by the last alone: what the application has before it did not.
            (AckType::Individual, _) | (AckType::Expired, None) => {
                let number = last.and_then(|last| consumer.ledger.number_of(last));
                [number.map(|number| (number, number)), None]
            }
            _ => {
                let count = usize::try_from(ack.message_count).ok().filter(|count| *count > 0 && !is_whole);
                consumer.ledger.ranges(first, last, count)
            }
        };
        // A peer of Corriere has begun an epoch with it, whatever it names, and waits for what comes in that.
        let begins_epoch = self.is_corriere && ack.ack_type == AckType::Redelivered && !consumer.is_browser;
        one = one.or(begins_epoch.then_some(NOTHING));
        let command = |range: Option<(u64, u64)>| {
            self.command_of(ack, range?, subscription, transaction.cloned(), consumer)
        };
        [one, other].map(command)
    }

    /// What the acknowledgement is for the provider, of these deliveries.
    fn command_of(
        &self,
        ack: &wire::MessageAck,
        (first, last): (u64, u64),
        subscription: SubscriptionId,
        transaction: Option<TransactionId>,
        consumer: &mut Consumer,
    ) -> Option<Command> {
        if consumer.is_browser {
            let credit = consumer.ledger.settle(first, last);
            return (credit > 0).then_some(Command::Grant { subscription, credit });
        }
        let kind = match ack.ack_type {
            AckType::Delivered => AckKind::Delivered,
            AckType::Poison => redelivery::condemnation(ack.poison_cause.as_ref()),
            AckType::Standard => AckKind::Standard,
            AckType::Redelivered if self.is_corriere => {
                let Return { delay, cause } = Return::from_throwable(ack.poison_cause.as_ref());
                AckKind::Redelivered { delay, cause }
            }
            AckType::Redelivered => AckKind::Retained,
            AckType::Individual => AckKind::Individual,
            AckType::Unmatched => AckKind::Unmatched,
            AckType::Expired => AckKind::Expired,
        };
        let ledger = &mut consumer.ledger;
        if !matches!(kind, AckKind::Unmatched | AckKind::Expired | AckKind::Undeliverable { .. }) {
            ledger.hand_over(last);
        }
        match (&kind, &transaction) {
            (AckKind::Delivered | AckKind::Retained, _) => {}
            (_, Some(transaction)) => ledger.lock(first, last, transaction),
            (_, None) => {
                ledger.settle(first, last);
            }
        }
        Some(Command::Acknowledge(Ack { subscription, first, last, kind, transaction }))
    }

    /// A message cannot be written for this peer: it goes to the dead letters with the reason, as its consumer can never
    /// have it, and on a queue of dead letters it waits for another consumer. A browser, or a pull, goes on to the next.
    pub(super) fn undeliverable(
        &mut self,
        subscription: SubscriptionId,
        number: u64,
        message_id: Option<&MessageId>,
        reason: &str,
    ) {
        let mut state = self.deliveries.lock();
        let Some(consumer) = state.consumers.get_mut(&subscription) else { return };
        consumer.ledger.settle(number, number);
        if !consumer.has_window {
            consumer.grants.undelivered();
        }
        let mut is_too_late = false;
        let command = if consumer.is_browser {
            Command::Grant { subscription, credit: 1 }
        } else {
            is_too_late = consumer.pulls.undelivered();
            let reason = format!("it cannot be written for its consumer {}: {reason}", consumer.id);
            let kind = AckKind::Undeliverable { reason: reason.into() };
            Command::Acknowledge(Ack { subscription, first: number, last: number, kind, transaction: None })
        };
        let (peer, shown) = (self.peer, message_id.map(tracing::field::display));
        if consumer.unwritable.is_new(message_id) {
            tracing::warn!(%peer, consumer = %consumer.id, message_id = shown, reason, "a message cannot be written for a peer");
        } else {
            tracing::debug!(
                %peer, consumer = %consumer.id, message_id = shown, reason,
                "a message can still not be written for a peer"
            );
        }
        drop(state);
        if let Ok(provider) = self.provider() {
            provider.tell(command);
        }
        if is_too_late {
            self.pull_is_over(subscription);
        }
        // A drain that waited for this message goes on.
        self.hand_on(subscription);
        self.forget_if_done(subscription);
    }
}
