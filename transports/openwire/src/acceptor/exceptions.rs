//! What a peer is told when something is refused: exceptions of classes that every client knows.

use std::fmt;
use std::fmt::Display;

use corriere_core::DestinationError;
use corriere_core::provider::{Capability, ProviderError};

use crate::codec::conversion::ConversionError;
use crate::codec::structures::{JavaException, Throwable};
use crate::durable;
use crate::redelivery::{TermsError, cut};

/// Why a command of a peer is refused.
#[derive(Clone, Debug)]
pub(super) struct Refusal(Throwable);

impl Refusal {
    pub(super) fn new(class: JavaException, reason: impl Display) -> Self {
        Self(Throwable::new(class, cut(&reason.to_string())))
    }

    /// What is there in OpenWire and not here.
    pub(super) fn not_offered(what: &str) -> Self {
        Self::new(JavaException::Jms, format_args!("{what} are not offered yet"))
    }

    /// What names something that is not there, or that is another's.
    pub(super) fn illegal_state(reason: impl Display) -> Self {
        Self::new(JavaException::IllegalState, reason)
    }

    /// A branch of a distributed transaction.
    pub(super) fn distributed() -> Self {
        /// The resource manager cannot do it here (`XAER_RMERR`).
        const RESOURCE_MANAGER_ERROR: i32 = -3;
        let reason = "distributed (XA) transactions are not offered yet over OpenWire";
        Self(Throwable::xa_error(RESOURCE_MANAGER_ERROR, reason))
    }

    pub(super) fn into_throwable(self) -> Throwable {
        self.0
    }
}

impl Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.message.as_deref().unwrap_or(&self.0.class))
    }
}

impl From<ProviderError> for Refusal {
    fn from(error: ProviderError) -> Self {
        if let Some((class, words)) = durable::to_exception(&error) {
            return Self::new(class, words);
        }
        let class = match &error {
            ProviderError::Unsupported(Capability::Authentication) => JavaException::Security,
            ProviderError::Unsupported(Capability::Selectors) => JavaException::InvalidSelector,
            ProviderError::Lost | ProviderError::Stopped { .. } | ProviderError::Unreachable { .. } => {
                JavaException::ConnectionFailed
            }
            ProviderError::Unknown { .. }
            | ProviderError::Exists { .. }
            | ProviderError::NotPrepared { .. } => JavaException::IllegalState,
            ProviderError::InvalidDestination { .. } => JavaException::InvalidDestination,
            ProviderError::ClientIdInUse { .. } => JavaException::InvalidClientId,
            ProviderError::MemoryFull { .. } | ProviderError::StoreFull { .. } => {
                JavaException::ResourceAllocation
            }
            ProviderError::RolledBack { .. } => JavaException::TransactionRolledBack,
            _ => JavaException::Jms,
        };
        Self::new(class, error)
    }
}

impl From<DestinationError> for Refusal {
    fn from(error: DestinationError) -> Self {
        Self::new(JavaException::InvalidDestination, error)
    }
}

impl From<ConversionError> for Refusal {
    fn from(error: ConversionError) -> Self {
        let class = match &error {
            ConversionError::Destination { .. } => JavaException::InvalidDestination,
            _ => JavaException::MessageFormat,
        };
        Self::new(class, error)
    }
}

impl From<TermsError> for Refusal {
    fn from(error: TermsError) -> Self {
        Self::new(JavaException::Jms, error)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_a_provider_refuses_has_a_class_that_clients_tell_apart() {
        let class = |error: ProviderError| Refusal::from(error).into_throwable().exception();
        let full = ProviderError::StoreFull {
            message_id: "ID:p:1".to_owned(),
            destination: "queue://orders".to_owned(),
            waited: Duration::ZERO,
            reason: "40 of 40 segments are in use".to_owned(),
        };
        let in_use = ProviderError::ClientIdInUse { client_id: "a".to_owned(), holder: "b".to_owned() };
        assert_eq!(class(full), Some(JavaException::ResourceAllocation));
        assert_eq!(class(in_use), Some(JavaException::InvalidClientId));
        assert_eq!(
            class(ProviderError::Unsupported(Capability::Selectors)),
            Some(JavaException::InvalidSelector)
        );
        assert_eq!(
            class(ProviderError::Unsupported(Capability::Authentication)),
            Some(JavaException::Security)
        );
        assert_eq!(class(ProviderError::Unsupported(Capability::Browse)), Some(JavaException::Jms));
        assert_eq!(class(ProviderError::Lost), Some(JavaException::ConnectionFailed));
    }

    #[test]
    fn a_reason_is_no_longer_than_a_text_may_be() {
        let refusal = Refusal::illegal_state("é".repeat(60_000));
        assert!(refusal.into_throwable().message.unwrap().len() <= 16_000);
    }
}
