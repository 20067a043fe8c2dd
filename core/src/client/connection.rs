//! Connections.

use super::{AcknowledgeMode, ConnectionFactory, Session};
use crate::error::Error;

/// A connection to a broker. Nothing is received before [`Connection::start`]. Cheap to clone; dropping the last
/// clone of it, with all that it made, closes it and returns what is not settled.
#[derive(Clone, Debug)]
pub struct Connection;

impl Connection {
    /// The factory that made it.
    #[must_use]
    pub fn factory(&self) -> &ConnectionFactory {
        todo!()
    }

    /// Begins to hand over messages. Cheap.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed.
    pub fn start(&self) -> Result<(), Error> {
        todo!()
    }

    /// Hands over nothing more until started again; what is buffered stays. Cheap.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed.
    pub fn stop(&self) -> Result<(), Error> {
        todo!()
    }

    /// Makes a session.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed, [`Error::Unsupported`] for a mode that the provider does not offer.
    pub async fn create_session(&self, _mode: AcknowledgeMode) -> Result<Session, Error> {
        todo!()
    }

    /// Closes the connection and all it made, waiting for listeners that are at work. From inside a listener it
    /// returns at once and takes effect after it. A second close is silent.
    ///
    /// # Errors
    /// When the broker does not confirm.
    pub async fn close(&self) -> Result<(), Error> {
        todo!()
    }
}
