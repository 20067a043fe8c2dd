//! A message in a queue, as the model remembers it.

use std::sync::Arc;

use corriere_broker::machine::ConnectionKey;
use corriere_broker::store::{Recipient, StoredId, SubscriptionName};
use corriere_core::provider::Cause;
use corriere_core::{Destination, Message, MessageId, SubscriptionId, Timestamp, TransactionId};

/// A subscription of the whole broker.
pub type SubscriptionKey = (ConnectionKey, SubscriptionId);

/// A transaction of the whole broker.
pub type TransactionKey = (ConnectionKey, TransactionId);

/// The key of what a connection calls so; a distributed transaction is nobody's.
#[must_use]
pub fn key_of(connection: ConnectionKey, id: &TransactionId) -> TransactionKey {
    match id {
        TransactionId::Local(_) => (connection, id.clone()),
        TransactionId::Distributed(_) => (ConnectionKey(0), id.clone()),
    }
}

/// Where messages lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A queue.
    Queue(Destination),
    /// The private queue of a subscription to a topic: each subscription behaves as a queue bound to the topic.
    Private {
        /// The topic.
        topic: Destination,
        /// Whose queue it is.
        subscription: SubscriptionKey,
    },
    /// A durable subscription, which outlives its consumers.
    Durable {
        /// The topic.
        topic: Destination,
        /// Which one.
        name: SubscriptionName,
        /// See [`super::Lasting::life`].
        life: u64,
    },
}

impl Place {
    /// The destination under which the broker counts what lies here.
    #[must_use]
    pub fn destination(&self) -> &Destination {
        match self {
            Self::Queue(destination)
            | Self::Private { topic: destination, .. }
            | Self::Durable { topic: destination, .. } => destination,
        }
    }

    /// As the store names it, if what is persistent is stored there.
    #[must_use]
    pub fn recipient(&self) -> Option<Recipient> {
        match self {
            Self::Queue(queue) if queue.is_temporary() => None,
            Self::Queue(queue) => Some(Recipient::Queue(queue.clone())),
            Self::Durable { name, .. } => Some(Recipient::Subscription(name.clone())),
            Self::Private { .. } => None,
        }
    }
}

/// A message in one queue. A message to a topic has one entry for each subscription, all of the same instance.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where it lies.
    pub place: Place,
    /// What lies there.
    pub message: Arc<Message>,
    /// Which admitted message it is a reference to; memory is counted once for each instance.
    pub instance: u64,
    /// One position per message per queue: priority band, then the order of becoming visible. It never changes.
    pub position: (u8, u64),
    /// Deliveries that failed; the next delivery has this count plus one.
    pub failed: u32,
    /// Whether a conversion has failed that was not counted.
    pub conversion_failed: bool,
    /// Not to be delivered earlier.
    pub not_before: Option<Timestamp>,
    /// The subscription that gave it back in blocking mode, and which alone may have it.
    pub reserved_for: Option<SubscriptionKey>,
    /// With whom it is; `None` while it is in the queue.
    pub holder: Option<Holder>,
    /// What its dead-letter properties must say, if it is a dead letter.
    pub dead_letter: Option<DeadLetter>,
    /// The name that it is stored under.
    pub stored: Option<StoredId>,
    /// Whether a restart brought it back and it was not delivered since.
    pub is_recovered: bool,
    /// What it dies of once its body is read back, with the deliveries that were made.
    pub doomed: Option<(Death, u32)>,
    /// Whether its body cannot be read back.
    pub is_aside: bool,
}

impl Entry {
    /// The id of the message.
    #[must_use]
    pub fn id(&self) -> MessageId {
        id_of(&self.message)
    }

    /// Whether the store must know of it: persistent, and not of a subscription that ends with its connection.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.place.recipient().is_some() && self.message.headers().is_persistent()
    }

    /// Whether `subscription` has it, unsettled and not acknowledged within a transaction either.
    #[must_use]
    pub fn is_plainly_with(&self, subscription: &SubscriptionKey) -> bool {
        self.holder
            .as_ref()
            .is_some_and(|holder| holder.subscription == *subscription && holder.locked_by.is_none())
    }

    /// Whether an acknowledgement of `transaction` waits on it.
    #[must_use]
    pub fn is_locked_by(&self, transaction: &TransactionKey) -> bool {
        self.holder.as_ref().is_some_and(|holder| holder.locked_by.as_ref() == Some(transaction))
    }

    /// Whether it lies in its queue and may be had.
    #[must_use]
    pub fn is_lying(&self) -> bool {
        self.holder.is_none() && self.doomed.is_none() && !self.is_aside
    }

    /// Whether it waits for its time.
    #[must_use]
    pub fn is_delayed(&self, now: Timestamp) -> bool {
        self.not_before.is_some_and(|not_before| now < not_before)
    }
}

/// Who has a message.
#[derive(Clone, Debug)]
pub struct Holder {
    /// The subscription, which may be closed while its session is still open.
    pub subscription: SubscriptionKey,
    /// The number of the delivery.
    pub number: u64,
    /// Whether it was reserved for the subscription until then.
    pub was_reserved: bool,
    /// The transaction that it was acknowledged within and that has not ended.
    pub locked_by: Option<TransactionKey>,
}

/// What the properties of a dead letter must say.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    /// The message before it died.
    pub original: Arc<Message>,
    /// Where it died.
    pub source: Destination,
    /// What it died of.
    pub cause: Death,
    /// Deliveries that were made.
    pub deliveries: u32,
    /// When it died.
    pub at: Timestamp,
}

/// What a message died of.
#[derive(Clone, Debug)]
pub enum Death {
    /// Its time to live was over.
    Expired,
    /// The application gave it back too often, or condemned it.
    Failure(Cause),
    /// It returned too often without a cause: its consumer closed or vanished with it.
    Returned,
}

/// The id that every message at the seam has.
///
/// # Panics
/// On a message without an id, which no test sends.
#[must_use]
pub fn id_of(message: &Message) -> MessageId {
    message.headers().message_id.clone().expect("a message at the seam has an id")
}
