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
    /// A durable subscription to what is no topic.
    #[error(
        "listener `{listener}` has the durable subscription `{subscription}` to {destination}; expected a topic, which alone has subscriptions"
    )]
    SubscriptionWithoutTopic {
        /// The listener's id.
        listener: String,
        /// The subscription's name.
        subscription: String,
        /// Where its messages come from.
        destination: Destination,
    },
    /// A durable subscription without a client id.
    #[error(
        "listener `{listener}` has the durable subscription `{subscription}` and its connection no client id; expected `client_id`, of the listener or of its connection factory"
    )]
    NoClientId {
        /// The listener's id.
        listener: String,
        /// The subscription's name.
        subscription: String,
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
