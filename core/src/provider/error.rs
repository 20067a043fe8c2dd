//! Why a provider refuses.

use std::time::Duration;

use thiserror::Error;

use super::Capability;

/// Why a provider could not do what a command asked.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderError {
    /// The provider cannot do this at all, or not yet.
    #[error("this provider does not offer {0}")]
    Unsupported(Capability),
    /// The connection is closed or its peer is gone.
    #[error("the connection to the broker is gone")]
    Lost,
    /// The broker has stopped.
    #[error("broker `{broker}` has stopped: {reason}")]
    Stopped {
        /// Its name.
        broker: String,
        /// Why it did.
        reason: String,
    },
    /// Nobody listens at the address.
    #[error("no broker answers at `{url}`: {reason}")]
    Unreachable {
        /// The address.
        url: String,
        /// What stood in the way, and what is there instead.
        reason: String,
    },
    /// The command names a session, producer, subscription or transaction that is not there.
    #[error("there is no {what} on this connection")]
    Unknown {
        /// Kind and number.
        what: String,
    },
    /// The command names something new by a number that is taken.
    #[error("{what} exists already on this connection")]
    Exists {
        /// Kind and number.
        what: String,
    },
    /// The destination cannot be used for this.
    #[error("{destination} cannot be used: {reason}")]
    InvalidDestination {
        /// Which one.
        destination: String,
        /// Why.
        reason: String,
    },
    /// The client id is in use.
    #[error("client id `{client_id}` is in use by {holder}")]
    ClientIdInUse {
        /// The id.
        client_id: String,
        /// The connection that has it.
        holder: String,
    },
    /// Memory stayed full until the send's deadline.
    #[error(
        "the send of {message_id} to {destination} waited {waited:?} for memory: the broker's limit of {limit} bytes is used up"
    )]
    MemoryFull {
        /// The message.
        message_id: String,
        /// Where it was to go.
        destination: String,
        /// How long it waited.
        waited: Duration,
        /// The limit in bytes.
        limit: u64,
    },
    /// The transaction could not be committed and was rolled back.
    #[error("transaction {transaction} was rolled back: {reason}")]
    RolledBack {
        /// Which one.
        transaction: String,
        /// What failed in it.
        reason: String,
    },
    /// The second phase of a commit without the first.
    #[error("transaction {transaction} cannot be committed in two phases: no prepare went before the commit")]
    NotPrepared {
        /// Which one.
        transaction: String,
    },
    /// The store failed.
    #[error("the message store failed: {reason}")]
    Store {
        /// What failed.
        reason: String,
    },
}

impl ProviderError {
    /// Whether there is no connection any more, so that nothing on it is left to be closed.
    #[must_use]
    pub fn ends_connection(&self) -> bool {
        matches!(self, Self::Lost | Self::Stopped { .. })
    }
}
