//! Producers.

use std::time::Duration;

use crate::destination::Destination;
use crate::error::Error;
use crate::message::{DeliveryMode, Message, Priority};

/// Sends messages. Dropping it closes it; what it sent stays sent.
#[derive(Debug)]
pub struct Producer;

/// How a message is sent. What is `None` is the producer's default, in the end persistent, priority 4, no expiry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SendOptions {
    /// Whether the message survives the end of the broker.
    pub delivery_mode: Option<DeliveryMode>,
    /// How urgent it is.
    pub priority: Option<Priority>,
    /// How long until it expires; zero for never.
    pub time_to_live: Option<Duration>,
    /// How long the send may wait for memory at the broker.
    pub deadline: Option<Duration>,
}

impl Producer {
    /// The same producer with these defaults for its sends.
    #[must_use]
    pub fn with_options(self, _options: SendOptions) -> Self {
        todo!()
    }

    /// Sends a copy of `message` to the producer's destination. A persistent send outside a transaction is on disk when
    /// this returns. Dropped while it waits: outside a transaction the message may or may not be sent; inside one the
    /// transaction becomes rollback-only.
    ///
    /// # Errors
    /// When the producer is closed or has no destination, memory stays full, or the broker refuses.
    pub async fn send(&self, _message: &Message) -> Result<(), Error> {
        todo!()
    }

    /// Sends with these options instead of the producer's, to `destination` where one is given.
    ///
    /// # Errors
    /// As [`Producer::send`].
    pub async fn send_with(
        &self,
        _destination: Option<&Destination>,
        _message: &Message,
        _options: &SendOptions,
    ) -> Result<(), Error> {
        todo!()
    }

    /// Closes the producer. A second close is silent.
    ///
    /// # Errors
    /// When the broker does not confirm.
    pub async fn close(&self) -> Result<(), Error> {
        todo!()
    }
}
