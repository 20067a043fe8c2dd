//! Sends of a session, over whichever producer.

use std::cell::Cell;
use std::sync::Arc;

use tokio::task::yield_now;

use super::super::SendOptions;
use super::super::buffer::lock;
use super::super::producer::{ProducerIdentity, complete};
use super::{AcknowledgeMode, SessionInner};
use crate::destination::Destination;
use crate::error::Error;
use crate::id::{MessageId, ProducerId, TransactionId};
use crate::message::Message;
use crate::provider::{Command, ProviderError, Receipt, SendMessage};

/// After so many sends of its tasks a thread runs others.
const UNINTERRUPTED: u32 = 8;

thread_local! {
    static SENT: Cell<u32> = const { Cell::new(0) };
}

impl SessionInner {
    pub(in crate::client) fn open_producer(
        &self,
        destination: Option<&Destination>,
    ) -> (Arc<ProducerIdentity>, Receipt) {
        let producer = ProducerId(self.connection.next_number());
        let name: Arc<str> = format!("{}:{}:{producer}", self.connection.id(), self.id).into();
        let receipt = self.connection.submit(Command::OpenProducer {
            producer,
            session: self.id,
            identity: Arc::clone(&name),
            destination: destination.cloned(),
        });
        (Arc::new(ProducerIdentity::new(producer, name)), receipt)
    }

    pub(super) fn anonymous_producer(&self) -> Arc<ProducerIdentity> {
        let mut state = lock(&self.state);
        // Its confirmation need not be awaited: a send that comes before it is refused would be refused as well.
        Arc::clone(state.anonymous_producer.get_or_insert_with(|| self.open_producer(None).0))
    }

    /// Sends a copy of `message`. The number is taken and the command submitted under one lock, so that the order of a
    /// producer's numbers is the order of its messages.
    pub(in crate::client) async fn send(
        &self,
        producer: &ProducerIdentity,
        destination: &Destination,
        message: &Message,
        options: &SendOptions,
    ) -> Result<MessageId, Error> {
        if self.mode != AcknowledgeMode::Transacted {
            let (id, receipt) = {
                let _order = lock(&self.state);
                self.submit_send(producer, destination, message, options, None)
            };
            receipt.await?;
            let_others_run().await;
            return Ok(id);
        }
        let (id, receipt, transaction) = {
            let mut state = lock(&self.state);
            // Looked at again, under the lock: what a closed session began nobody would end.
            self.check_usable("send")?;
            let transaction = self.transaction(&mut state);
            let (id, receipt) =
                self.submit_send(producer, destination, message, options, Some(transaction.clone()));
            (id, receipt, transaction)
        };
        let failure = Some(format!("a send to {destination} was dropped"));
        let mut unfinished = UnfinishedSend { session: self, transaction, failure };
        match receipt.await {
            Ok(_) => {
                // Dropped here it is a send that was dropped, like any other.
                let_others_run().await;
                unfinished.failure = None;
                Ok(id)
            }
            Err(error) => {
                // What goes to a temporary destination that is gone nobody could get: the transaction is whole without it.
                let is_gone =
                    destination.is_temporary() && matches!(error, ProviderError::InvalidDestination { .. });
                unfinished.failure = (!is_gone).then(|| error.to_string());
                Err(error.into())
            }
        }
    }

    pub(super) fn submit_send(
        &self,
        producer: &ProducerIdentity,
        destination: &Destination,
        message: &Message,
        options: &SendOptions,
        transaction: Option<TransactionId>,
    ) -> (MessageId, Receipt) {
        let id = producer.next_message();
        let message = complete(message, destination, &id, options, self.connection.clock().now());
        let receipt = self.connection.submit(Command::Send(SendMessage {
            producer: producer.id(),
            message: Arc::new(message),
            transaction,
            deadline: options.deadline.or(self.connection.factory().send_timeout()),
        }));
        (id, receipt)
    }
}

/// A send that need not wait, as nothing is in its way or as it wrote and synced by itself, must not keep the tasks that it
/// woke on its thread from running, first of all the one that receives the message.
async fn let_others_run() {
    let sent = SENT.get().wrapping_add(1);
    SENT.set(sent);
    if sent.is_multiple_of(UNINTERRUPTED) {
        yield_now().await;
    }
}

/// A send within a transaction whose outcome is not known. Dropped with a failure, the transaction cannot commit.
struct UnfinishedSend<'a> {
    session: &'a SessionInner,
    transaction: TransactionId,
    failure: Option<String>,
}

impl Drop for UnfinishedSend<'_> {
    fn drop(&mut self) {
        if let Some(failure) = self.failure.take() {
            let mut state = lock(&self.session.state);
            if state.transaction.as_ref() == Some(&self.transaction) {
                state.rollback_only.get_or_insert(failure);
            }
        }
    }
}
