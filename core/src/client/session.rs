//! Sessions.

use super::{Connection, Consumer, Producer, SendOptions};
use crate::destination::Destination;
use crate::error::Error;
use crate::message::Message;

pub use crate::provider::SessionMode as AcknowledgeMode;

/// A session: one line of work whose calls are serialised. Clones are the same session; dropping the last clone and
/// all that it made closes it.
#[derive(Clone, Debug)]
pub struct Session;

impl Session {
    /// How its deliveries are acknowledged.
    #[must_use]
    pub fn mode(&self) -> AcknowledgeMode {
        todo!()
    }

    /// The connection that it belongs to.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        todo!()
    }

    /// Makes a producer; without a destination each send names one.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed.
    pub async fn create_producer(&self, _destination: Option<&Destination>) -> Result<Producer, Error> {
        todo!()
    }

    /// Makes a consumer. The prefetch is the destination's option `consumer.prefetchSize`, else the factory's.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed, or what the provider refuses.
    pub async fn create_consumer(&self, _destination: &Destination) -> Result<Consumer, Error> {
        todo!()
    }

    /// Makes a consumer with this prefetch instead; 0 pulls each message when it is asked for.
    ///
    /// # Errors
    /// As [`Session::create_consumer`].
    pub async fn create_consumer_with_prefetch(
        &self,
        _destination: &Destination,
        _prefetch: u32,
    ) -> Result<Consumer, Error> {
        todo!()
    }

    /// Sends over the session's own producer.
    ///
    /// # Errors
    /// As [`Producer::send`].
    pub async fn send(
        &self,
        _destination: &Destination,
        _message: &Message,
        _options: SendOptions,
    ) -> Result<(), Error> {
        todo!()
    }

    /// Acknowledges everything that this session's consumers have received (CLIENT; elsewhere it does nothing).
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed.
    pub async fn acknowledge(&self) -> Result<(), Error> {
        todo!()
    }

    /// Gives back everything received and not acknowledged, to be delivered again.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed or transacted.
    pub async fn recover(&self) -> Result<(), Error> {
        todo!()
    }

    /// Commits what was sent and received since the last commit or rollback. Dropped while it waits, the outcome is
    /// unknown to the caller, yet whole.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed or not transacted, [`Error::TransactionRolledBack`].
    pub async fn commit(&self) -> Result<(), Error> {
        todo!()
    }

    /// Undoes what was sent since the last commit or rollback and gives back what was received.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed or not transacted.
    pub async fn rollback(&self) -> Result<(), Error> {
        todo!()
    }

    /// Closes the session and all it made; a transaction is rolled back. From inside one of its listeners it returns
    /// at once and takes effect after it. A second close is silent.
    ///
    /// # Errors
    /// When the broker does not confirm.
    pub async fn close(&self) -> Result<(), Error> {
        todo!()
    }
}
