//! Why a container cannot be had.

use corriere_core::Destination;
use thiserror::Error;

use crate::beans::BeanError;

/// Why a listener container does not start, or does not change as it was told.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContainerError {
    /// More than one worker on a topic, each of which would get every message.
    #[error(
        "listener `{listener}` has up to {upper} workers on {destination}; a topic listener has exactly one, as each worker would get every message"
    )]
    ConcurrentTopic {
        /// The listener's id.
        listener: String,
        /// The topic.
        destination: Destination,
        /// The upper bound of its workers.
        upper: usize,
    },
    /// A bean that the listener takes is not there.
    #[error("listener `{listener}` cannot start: {source}")]
    Bean {
        /// The listener's id.
        listener: String,
        /// Why.
        source: BeanError,
    },
    /// The application's own broker does not let it receive.
    #[error("listener `{listener}` cannot receive from the application's broker: {reason}")]
    Refused {
        /// The listener's id.
        listener: String,
        /// What the broker says.
        reason: String,
    },
    /// No tokio runtime.
    #[error("listener `{listener}` cannot start outside a tokio runtime; expected a call from async code")]
    NoRuntime {
        /// The listener's id.
        listener: String,
    },
    /// The container was stopped.
    #[error("{operation} is not possible: the container of listener `{listener}` is stopped")]
    Stopped {
        /// The listener's id.
        listener: String,
        /// The call.
        operation: &'static str,
    },
}
