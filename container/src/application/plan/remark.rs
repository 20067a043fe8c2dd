//! What a plan remarks.

use std::fmt;

use crate::config::{Place, WithoutEffect};

/// What is no mistake in a configuration and worth knowing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remark {
    /// A listener that is not started.
    #[non_exhaustive]
    NotEnabled {
        /// Its id.
        listener: &'static str,
        /// What says so.
        place: Place,
    },
    /// An acknowledge mode that has no effect, as the listener is transacted.
    #[non_exhaustive]
    TransactedWins {
        /// The listener's id.
        listener: &'static str,
        /// What says that it is transacted.
        transacted: Place,
        /// What says the mode.
        acknowledge: Place,
    },
    /// A key that is accepted and does nothing.
    WithoutEffect(WithoutEffect),
}

impl Remark {
    pub(in super::super) fn log(&self) {
        match self {
            Self::NotEnabled { .. } | Self::WithoutEffect(_) => tracing::info!("{self}"),
            Self::TransactedWins { .. } => tracing::warn!("{self}"),
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEnabled { listener, place } => {
                write!(f, "listener `{listener}` is not started, as {place} says")
            }
            Self::TransactedWins { listener, transacted, acknowledge } => write!(
                f,
                "listener `{listener}` is transacted, as {transacted} says; {acknowledge} has no effect"
            ),
            Self::WithoutEffect(key) => key.fmt(f),
        }
    }
}
