//! Word of how deliveries end.

use std::fmt::Debug;
use std::time::Duration;

use corriere_core::MessageId;

/// Is told of the end of every delivery of a container, after the message was settled or given back.
pub trait DeliveryObserver: Debug + Send + Sync {
    /// A delivery ended. Called on the worker, which goes on when this returns.
    fn ended(&self, end: &DeliveryEnd);
}

/// The end of one delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryEnd {
    /// The listener's id.
    pub listener: &'static str,
    /// The message.
    pub message_id: Option<MessageId>,
    /// 1 at the first delivery.
    pub delivery_count: u32,
    /// How it ended.
    pub kind: EndKind,
    /// The failure, where there was one, with everything that caused it.
    pub failure: Option<String>,
    /// Whether the failure was a panic.
    pub panicked: bool,
    /// From the hand-over to now.
    pub took: Duration,
}

/// How a delivery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndKind {
    /// The listener returned `Ok` and the message is settled.
    Settled,
    /// The listener returned `Ok`; in `manual` mode the message is settled when somebody acknowledges it.
    LeftToListener,
    /// The listener failed; the message is delivered again, or goes to the dead letters when its limit is reached.
    Redelivered,
    /// The listener failed; the message went to the dead letters.
    DeadLettered,
    /// The listener failed; the message is settled all the same.
    Discarded,
    /// The listener failed after it had settled the message itself.
    FailedAfterSettling,
    /// The end could not be told to the broker, so the message comes again.
    Unsettled,
}
