//! Connection factories.

use super::Connection;
use crate::error::Error;
use crate::time::Clock;

/// Makes connections to the broker behind a URL. Cheap to clone; clones are the same factory.
#[derive(Clone, Debug)]
pub struct ConnectionFactory;

impl ConnectionFactory {
    /// A factory for `vm://local?jms.redeliveryPolicy.maximumRedeliveries=6` and the like.
    ///
    /// # Errors
    /// [`Error::Url`] for an unknown scheme or option, a value that cannot be read.
    pub fn from_url(_url: &str) -> Result<Self, Error> {
        todo!()
    }

    /// The same factory, reading the time from `clock`.
    #[must_use]
    pub fn with_clock(self, _clock: Clock) -> Self {
        todo!()
    }

    /// Whether `other` is the same factory, so that a session made with one can serve sends meant for the other.
    #[must_use]
    pub fn is_same(&self, _other: &Self) -> bool {
        todo!()
    }

    /// Makes a connection, not started yet. Dropping the future leaves none behind.
    ///
    /// # Errors
    /// When the broker cannot be reached.
    pub async fn create_connection(&self) -> Result<Connection, Error> {
        todo!()
    }
}
