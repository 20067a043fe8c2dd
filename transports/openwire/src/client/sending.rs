//! Sends.

use corriere_core::provider::{Confirmation, ProviderError, Receipt, SendMessage};

use super::error::About;
use super::state::{State, Then, unknown};
use crate::codec::structures::Message;

/// After so many bytes that no answer was asked for, a send asks for one. So a peer never has more than that of each sender
/// that it has not agreed to: a broker without room parks that much, and stops whoever sends more.
const UNANSWERED: usize = 64 * 1024;

impl State {
    pub(super) fn send(&mut self, send: SendMessage) -> Result<Receipt, ProviderError> {
        let SendMessage { producer, message, transaction, deadline: _ } = send;
        let producer_id = match self.producers.get(&producer) {
            Some(producer) => producer.id.clone(),
            None => return Err(unknown(format_args!("producer {producer}"))),
        };
        let headers = message.headers();
        let transaction_id = transaction.as_ref().map(|id| self.transaction_id(id)).transpose()?;
        if let Some(transaction) = transaction.as_ref().filter(|id| !self.transactions.contains_key(id)) {
            return Err(unknown(format_args!("transaction {transaction}")));
        }
        self.unanswered = self.unanswered.saturating_add(message.size());
        let must_be_answered = headers.is_persistent() && transaction.is_none();
        let response_required = must_be_answered || self.unanswered >= UNANSWERED;
        let on_the_wire = Message::from_core(&message).map_err(|error| ProviderError::Refused {
            exception: "this side".to_owned(),
            reason: error.to_string(),
        })?;
        let on_the_wire =
            Message { producer_id: Some(producer_id), transaction_id, response_required, ..on_the_wire };
        if !response_required {
            return Ok(self.write(on_the_wire));
        }
        self.unanswered = 0;
        let about = About::Send {
            message_id: headers.message_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            destination: headers.destination.as_ref().map(ToString::to_string).unwrap_or_default(),
        };
        Ok(self.ask(on_the_wire, about, Then::Confirm(Confirmation::Done)))
    }
}
