//! Word of how deliveries end.

use std::fmt::Debug;
use std::time::Duration;

use corriere_core::{Destination, MessageId};

/// Is told of the end of every delivery of a container, after the message was settled or given back, and of workers that
/// stand still.
pub trait DeliveryObserver: Debug + Send + Sync {
    /// A delivery ended. Called on the worker, which goes on when this returns.
    fn ended(&self, end: &DeliveryEnd);

    /// A worker gets nothing more, as it has acknowledged none of what its window lets through while more waits for it. Told
    /// once, until it has had room again. Called on a task of its connection's own.
    fn slow(&self, slow: &SlowListener) {
        let _ = slow;
    }
}

/// A listener that gets nothing more until it acknowledges messages that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowListener {
    /// The listener's id.
    pub listener: &'static str,
    /// Where its messages come from.
    pub destination: Destination,
    /// How many messages it has not acknowledged.
    pub unacknowledged: u64,
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
    /// The listener returned `Ok` and the message is settled; in `dups_ok` on a topic the broker may be told of that later.
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
