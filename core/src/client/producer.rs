//! Producers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::Session;
use crate::destination::Destination;
use crate::error::Error;
use crate::id::{MessageId, ProducerId};
use crate::message::{DELIVERY_COUNT, DeliveryMode, Message, Priority};
use crate::provider::{Command, ProviderError};
use crate::time::Timestamp;

/// Sends messages. Dropping it closes it; what it sent stays sent.
#[derive(Debug)]
pub struct Producer {
    session: Session,
    identity: Arc<ProducerIdentity>,
    destination: Option<Destination>,
    options: SendOptions,
    closed: AtomicBool,
}

/// How a message is sent. What is `None` is the producer's default, in the end persistent, priority 4, no expiry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SendOptions {
    /// Whether the message survives the end of the broker.
    pub delivery_mode: Option<DeliveryMode>,
    /// How urgent it is.
    pub priority: Option<Priority>,
    /// How long until it expires; zero for never. A sum past the end of time stands for the end of time.
    pub time_to_live: Option<Duration>,
    /// How long the send may wait for memory at the broker.
    pub deadline: Option<Duration>,
}

impl SendOptions {
    /// These options, and where they say nothing, `defaults`.
    #[must_use]
    pub fn or(&self, defaults: &Self) -> Self {
        Self {
            delivery_mode: self.delivery_mode.or(defaults.delivery_mode),
            priority: self.priority.or(defaults.priority),
            time_to_live: self.time_to_live.or(defaults.time_to_live),
            deadline: self.deadline.or(defaults.deadline),
        }
    }
}

impl Producer {
    pub(super) fn new(
        session: Session,
        identity: Arc<ProducerIdentity>,
        destination: Option<Destination>,
    ) -> Self {
        Self {
            session,
            identity,
            destination,
            options: SendOptions::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// The same producer with these defaults for its sends.
    #[must_use]
    pub fn with_options(mut self, options: SendOptions) -> Self {
        self.options = options;
        self
    }

    /// Where it sends when a send does not say so.
    #[must_use]
    pub fn destination(&self) -> Option<&Destination> {
        self.destination.as_ref()
    }

    /// Sends a copy of `message` to the producer's destination and returns the id that the copy was given.
    ///
    /// A persistent send outside a transaction is in the broker's store when this returns. A future that was never polled sends
    /// nothing. Dropped while it waits: outside a transaction the message may or may not be sent; inside one the
    /// transaction becomes rollback-only.
    ///
    /// A send to a temporary destination that is gone is refused, and the transaction can still be committed: it is whole
    /// without a message that nobody could get.
    ///
    /// # Errors
    /// When the producer is closed or has no destination, memory stays full, or the broker refuses.
    pub async fn send(&self, message: &Message) -> Result<MessageId, Error> {
        self.send_with(None, message, &SendOptions::default()).await
    }

    /// Sends with these options before the producer's, to `destination` where the producer has none of its own.
    ///
    /// # Errors
    /// As [`Producer::send`].
    pub async fn send_with(
        &self,
        destination: Option<&Destination>,
        message: &Message,
        options: &SendOptions,
    ) -> Result<MessageId, Error> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::closed("send", "producer"));
        }
        self.session.inner().check_usable("send")?;
        let destination = match (&self.destination, destination) {
            (Some(own), Some(given)) if own != given => {
                return Err(Error::IllegalState {
                    operation: "send",
                    reason: format!(
                        "the producer sends to {own}; make one without a destination to send to {given}"
                    ),
                });
            }
            (Some(destination), _) | (None, Some(destination)) => destination,
            (None, None) => {
                return Err(Error::Provider(ProviderError::InvalidDestination {
                    destination: "no destination".to_owned(),
                    reason: "neither the producer nor the send names one".to_owned(),
                }));
            }
        };
        self.session.inner().send(&self.identity, destination, message, &options.or(&self.options)).await
    }

    /// Closes the producer. A second close is silent.
    ///
    /// # Errors
    /// When the broker does not confirm.
    pub async fn close(&self) -> Result<(), Error> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let close = Command::CloseProducer { producer: self.identity.id };
        super::confirm_close(self.session.inner().connection().submit(close)).await
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        if !*self.closed.get_mut() {
            let close = Command::CloseProducer { producer: self.identity.id };
            drop(self.session.inner().connection().submit(close));
        }
    }
}

/// Who sends, as message ids tell it.
#[derive(Debug)]
pub(super) struct ProducerIdentity {
    id: ProducerId,
    name: Arc<str>,
    sent: AtomicU64,
}

impl ProducerIdentity {
    pub(super) fn new(id: ProducerId, name: Arc<str>) -> Self {
        Self { id, name, sent: AtomicU64::new(0) }
    }

    pub(super) fn id(&self) -> ProducerId {
        self.id
    }

    pub(super) fn next_message(&self) -> MessageId {
        let sequence = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
        MessageId { producer: Arc::clone(&self.name), sequence }
    }
}

/// The copy of `message` that goes out, with the headers that a send sets (Jakarta Messaging 3.1, section 3.4.11).
pub(super) fn complete(
    message: &Message,
    destination: &Destination,
    id: &MessageId,
    options: &SendOptions,
    now: Timestamp,
) -> Message {
    let mut message = message.clone();
    let headers = message.headers_mut();
    headers.destination = Some(destination.clone());
    headers.message_id = Some(id.clone());
    headers.timestamp = now;
    headers.delivery_mode = options.delivery_mode.unwrap_or_default();
    headers.priority = options.priority.unwrap_or_default();
    let time_to_live = options.time_to_live.filter(|time_to_live| !time_to_live.is_zero());
    headers.expiration = time_to_live.map(|time_to_live| now.saturating_add(time_to_live));
    headers.delivery_count = 0;
    // A dead letter that is sent again begins anew; what was counted of it is not to be read as the new one's count.
    message.properties_mut_unchecked().remove(DELIVERY_COUNT);
    message
}
