//! What a consumer says of messages that were delivered to it.

use std::sync::Arc;
use std::time::Duration;

use crate::id::{SubscriptionId, TransactionId};

/// Word on a range of a subscription's deliveries.
///
/// Numbers in the range that are settled already are passed over, so a range may be sent without knowing which of its
/// messages expired or were acknowledged one by one.
#[derive(Clone, Debug)]
pub struct Ack {
    /// Whose deliveries.
    pub subscription: SubscriptionId,
    /// The first delivery number of the range.
    pub first: u64,
    /// The last delivery number of the range, inclusive.
    pub last: u64,
    /// What became of them.
    pub kind: AckKind,
    /// The transaction that the acknowledgement takes effect with.
    pub transaction: Option<TransactionId>,
}

/// What became of delivered messages. The numbers are those of OpenWire's `MessageAck`.
#[derive(Clone, Debug, PartialEq)]
pub enum AckKind {
    /// 0: handed to the application, not settled. Moves the window, and counts as a delivery from now on.
    Delivered,
    /// 1: never to be delivered again; goes to the dead letters.
    Poison {
        /// Why.
        cause: Cause,
    },
    /// 2: settled.
    Standard,
    /// 3: given back, to be delivered again.
    ///
    /// Every delivery of the subscription that was not handed over is taken back with it, and the subscription's
    /// [`Dispatch::epoch`](super::Dispatch::epoch) rises by one. Unless the policy is non-blocking, what is given back
    /// is reserved for this subscription and comes to it before anything else.
    Redelivered {
        /// Overrides the policy's delay.
        delay: Option<Duration>,
        /// Why.
        cause: Cause,
    },
    /// 4: settled, this one only (`first` = `last`).
    Individual,
    /// 5: the subscription's selector did not match.
    Unmatched,
    /// 6: expired before it was handed to the application, by the consumer's clock. A message without expiration is
    /// given back instead, uncounted.
    Expired,
    /// Cannot be given to this consumer, as it cannot be written or read for it: goes to the dead letters uncounted, and on a
    /// queue of dead letters waits, uncounted, for the policy's first delay. Neither it nor what was delivered before it
    /// counts as handed over, and explicit credit that went into it is free again.
    Undeliverable {
        /// Why; becomes the property `dlqDeliveryFailureCause`.
        reason: Arc<str>,
    },
    /// Still with this consumer, which delivers it again by itself, as ActiveMQ's Java client does; its count rises.
    Retained,
}

/// Why a message was given back or condemned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The class of the failure.
    pub kind: CauseKind,
    /// The failure in words; becomes the property `dlqDeliveryFailureCause`.
    pub text: Arc<str>,
    /// The listener that failed; becomes the property `dlqListener`.
    pub listener: Option<Arc<str>>,
}

impl Cause {
    /// A failure of the application.
    #[must_use]
    pub fn failure(text: impl Into<Arc<str>>) -> Self {
        Self { kind: CauseKind::Failure, text: text.into(), listener: None }
    }
}

/// The class of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CauseKind {
    /// The application failed with the message; counts as a delivery.
    Failure,
    /// A body could not be converted in a receive that acknowledges by itself. The first time it is noted but neither
    /// counted nor flagged nor delayed; each further time it counts.
    Conversion,
    /// The broker could not take what the handler sent, so the message is no worse than before: never counted, and
    /// delayed as after one failure, so that there may be room by then.
    Resource,
}
