//! Messages that a peer sends.

use std::sync::Arc;

use corriere_core::provider::{Command, SendMessage};

use super::confirmations::{Answer, Then};
use super::connection::Connection;
use super::exceptions::Refusal;
use super::lost::Sent;
use super::parking::Held;
use crate::codec::conversion::ConversionLimits;
use crate::codec::structures as wire;

/// What ActiveMQ's clients take each message to hold beside its body and properties.
const LEAST_SIZE: usize = 1_024;

impl Connection {
    /// Sends a message. One that fails within a transaction makes the transaction one that cannot be committed.
    pub(super) fn send(&mut self, message: &wire::Message, answer: Answer) -> Result<(), Refusal> {
        let sent = self.try_send(message, answer);
        if let Err(refusal) = &sent {
            self.transactions.spoil(message.transaction_id.as_ref(), refusal);
            if let Some(acknowledges) = self.producer_ack(message, answer) {
                self.deliveries.answer(acknowledges);
            }
            if self.is_unheard && !answer.is_required {
                self.note_lost(message, refusal);
            }
        }
        sent
    }

    fn try_send(&mut self, message: &wire::Message, answer: Answer) -> Result<(), Refusal> {
        let provider = self.provider()?;
        let Some(id) = &message.producer_id else {
            return Err(Refusal::illegal_state("the message names no producer"));
        };
        let producer = self.producers.get(&(id.session_id, id.value)).ok_or_else(|| {
            Refusal::illegal_state(format_args!("there is no producer {id}; expected ProducerInfo before"))
        })?;
        let producer = producer.number;
        let transaction = self.transactions.named(message.transaction_id.as_ref())?;
        self.transactions.take_part(transaction.as_ref());
        let acknowledges = self.producer_ack(message, answer).map(Box::new);
        let size = size(message);
        let limits = ConversionLimits { memory: self.maximum_frame_size };
        let message = Arc::new(message.to_core(limits)?);
        let held = if answer.is_required { Held::Unanswered(size) } else { Held::Parked(size) };
        let headers = message.headers();
        let sent = Sent {
            id: headers.message_id.clone(),
            destination: headers.destination.clone(),
            transaction: transaction.clone(),
        };
        let send = SendMessage { producer, message, transaction, deadline: None };
        let receipt = provider.submit(Command::Send(send));
        self.when_confirmed(receipt, Then::Sent { answer, acknowledges, sent }, held);
        Ok(())
    }

    /// Notes a message that is not taken any more, for whose answer nobody waits.
    pub(super) fn note_lost(&mut self, message: &wire::Message, reason: &Refusal) {
        let id = message.message_id.as_ref().and_then(|id| id.to_core().ok());
        let destination = message.destination.as_ref().and_then(|destination| destination.to_core().ok());
        let transaction = self.transactions.named(message.transaction_id.as_ref()).ok().flatten();
        self.lost.note(&Sent { id, destination, transaction }, reason);
    }

    /// What a producer with a window is told of a message for whose answer it does not wait, once that holds nothing any
    /// more of the window: whether it was taken in or refused, as the producer would wait for ever else.
    fn producer_ack(&self, message: &wire::Message, answer: Answer) -> Option<wire::ProducerAck> {
        let id = message.producer_id.as_ref()?;
        let producer = self.producers.get(&(id.session_id, id.value))?;
        let size = i32::try_from(size(message)).unwrap_or(i32::MAX);
        (producer.has_window && !answer.is_required).then(|| wire::ProducerAck {
            producer_id: id.clone(),
            size,
            ..wire::ProducerAck::default()
        })
    }
}

/// What a message is taken to hold, as its sender counts it against its window.
fn size(message: &wire::Message) -> usize {
    let length = |bytes: &Option<bytes::Bytes>| bytes.as_ref().map_or(0, bytes::Bytes::len);
    LEAST_SIZE + length(&message.content) + length(&message.marshalled_properties)
}
