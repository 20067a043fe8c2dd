//! Temporary destinations.

use std::ops::Deref;

use super::Connection;
use crate::destination::Destination;
use crate::error::Error;
use crate::provider::Command;

/// A temporary queue or topic: only consumers of the connection that made it receive from it, and anybody sends to it, as a
/// reply (Jakarta Messaging 3.1, sections 4.1.5 and 6.2.2). What is in it survives no end of the broker, and none of it becomes a
/// dead letter.
///
/// It goes wherever a [`Destination`] does, as the header `reply_to` too. It ends with its connection, or when it is deleted.
/// Dropping it, of which clones are the same, does neither; it keeps its connection open.
#[derive(Clone, Debug)]
pub struct TemporaryDestination {
    connection: Connection,
    destination: Destination,
}

impl TemporaryDestination {
    pub(super) fn new(connection: Connection, destination: Destination) -> Self {
        Self { connection, destination }
    }

    /// The destination, for a header or for somebody else.
    #[must_use]
    pub fn destination(&self) -> &Destination {
        &self.destination
    }

    /// Removes it with all that is in it; who sends to it after that is refused. Dropping the future does not withdraw it.
    ///
    /// # Errors
    /// [`ProviderError::InvalidDestination`](crate::provider::ProviderError::InvalidDestination) while it has consumers or
    /// when it is gone already, [`Error::IllegalState`] when its connection is closed.
    pub async fn delete(&self) -> Result<(), Error> {
        let connection = self.connection.inner();
        connection.check_open("delete")?;
        let destination = self.destination.clone();
        connection.submit(Command::DeleteTemporary { destination }).await?;
        Ok(())
    }
}

impl Deref for TemporaryDestination {
    type Target = Destination;

    fn deref(&self) -> &Destination {
        &self.destination
    }
}
