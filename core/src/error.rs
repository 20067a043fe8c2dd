//! The error tree of the client.

use thiserror::Error;

use crate::client::UrlError;
use crate::destination::DestinationError;
use crate::message::MessageError;
use crate::provider::{Capability, ProviderError};

/// What can go wrong with a connection, a session, a producer or a consumer (Jakarta Messaging 3.1, section 10.3).
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A call at the wrong time or on something closed (`IllegalStateException`).
    #[error("{operation} is not possible: {reason}")]
    IllegalState {
        /// The call.
        operation: &'static str,
        /// What it would have needed.
        reason: String,
    },
    /// The session's transaction became a rollback (`TransactionRolledBackException`).
    #[error("transaction rolled back: {reason}")]
    TransactionRolledBack {
        /// What failed in it.
        reason: String,
    },
    /// The provider cannot do this.
    #[error("the provider does not offer {0}")]
    Unsupported(Capability),
    /// A connection factory's URL.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// A destination's name.
    #[error(transparent)]
    Destination(#[from] DestinationError),
    /// A message.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The provider.
    #[error(transparent)]
    Provider(ProviderError),
}

impl From<ProviderError> for Error {
    fn from(error: ProviderError) -> Self {
        match error {
            ProviderError::Unsupported(capability) => Self::Unsupported(capability),
            ProviderError::RolledBack { reason, .. } => Self::TransactionRolledBack { reason },
            other => Self::Provider(other),
        }
    }
}

impl Error {
    /// What a provider answered to `operation`.
    pub(crate) fn during(operation: &'static str, error: ProviderError) -> Self {
        match error {
            error @ ProviderError::NoClientId { .. } => {
                Self::IllegalState { operation, reason: error.to_string() }
            }
            other => other.into(),
        }
    }

    pub(crate) fn closed(operation: &'static str, what: &str) -> Self {
        Self::IllegalState { operation, reason: format!("the {what} is closed") }
    }
}
