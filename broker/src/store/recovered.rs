//! What a store brings back when it is opened.

use std::sync::Arc;

use corriere_core::id::Xid;
use corriere_core::message::Priority;
use corriere_core::{Destination, MessageId, Timestamp};

use super::{DeliveryState, Recipient, StoredId, SubscriptionName};

/// What was there when a store was opened, without the bodies.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// Every queue that ever had a message, in the order of their names.
    pub queues: Vec<RecoveredQueue>,
    /// Every durable subscription, in the order of their making.
    pub subscriptions: Vec<RecoveredSubscription>,
    /// Transactions that wait for their outcome, in the order in which they were prepared.
    pub prepared: Vec<PreparedTransaction>,
    /// The last sequence number of each of the producers that sent last, those used longest ago first.
    pub producers: Vec<(Arc<str>, u64)>,
    /// The greatest name of a message that was ever used.
    pub last_id: StoredId,
}

/// A queue as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredQueue {
    /// Which one.
    pub destination: Destination,
    /// What became of its messages since the directory was made.
    pub totals: Totals,
    /// Its messages in the order in which they became visible; priorities are not considered.
    pub messages: Vec<RecoveredMessage>,
}

/// A durable subscription as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredSubscription {
    /// Which one.
    pub subscription: SubscriptionName,
    /// What it is to.
    pub topic: Destination,
    /// Whether messages of its own client are left out.
    pub no_local: bool,
    /// What became of its messages since it was made.
    pub totals: Totals,
    /// Its messages in the order in which they became visible; priorities are not considered.
    pub messages: Vec<RecoveredMessage>,
}

/// A message as it was, without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredMessage {
    /// Its name.
    pub stored: StoredId,
    /// How urgent it is.
    pub priority: Priority,
    /// When it expires.
    pub expiration: Option<Timestamp>,
    /// Bytes that it holds in memory once it is read back; see [`Message::size`](corriere_core::Message::size).
    pub size: u64,
    /// What is remembered of its deliveries. One that was in the hands of the application is counted.
    pub state: DeliveryState,
}

/// A transaction that was prepared and waits for its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedTransaction {
    /// Which one.
    pub xid: Xid,
    /// What it sends, in order, with where each goes: what goes to several durable subscriptions is there for each of them. These
    /// are on no queue yet.
    pub sends: Vec<(Recipient, RecoveredMessage)>,
    /// By which each of these is recognised when it is sent again.
    pub ids: Vec<Option<MessageId>>,
    /// What it acknowledges: messages that are on their queues and belong to it.
    pub acknowledged: Vec<StoredId>,
}

/// What became of the persistent messages of a queue since the data directory was made. They survive any crash with the
/// messages that they count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Sent to it.
    pub enqueued: u64,
    /// Settled by a consumer.
    pub acknowledged: u64,
    /// Gone to the dead letters, for a failure.
    pub dead_lettered: u64,
}
