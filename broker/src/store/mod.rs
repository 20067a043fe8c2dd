//! The seam to what keeps messages: submit a batch of operations, get one completion.

mod memory;
mod recovered;

use std::fmt::{self, Debug};
use std::sync::Arc;

use corriere_core::id::{ConnectionId, Xid};
use corriere_core::{Destination, Message, Timestamp};
use thiserror::Error;

pub use memory::MemoryStore;
pub use recovered::{
    PreparedTransaction, Recovered, RecoveredMessage, RecoveredQueue, RecoveredSubscription, Totals,
};

/// Keeps persistent messages and their delivery state.
///
/// Batches take effect in the order of their submission, each as a whole. A [`StoreOperation::Commit`] fails when any
/// operation of its transaction failed before.
pub trait MessageStore: Debug + Send + Sync {
    /// What was there when it was opened. Asked once, by the broker that starts on it, before anything is submitted.
    fn recover(&self) -> Recovered {
        Recovered::default()
    }

    /// Takes a batch and returns at once; `completion` is called when the batch is as safe as its [`Safety`] says, or
    /// has failed: on any thread, possibly before this returns, for [`Safety::Durable`] ones in the order of their
    /// submission. A completion must not be dropped uncalled: sends would wait for ever. What has failed is not there at the next
    /// start, but for [`StoreError::Failed`], after which nobody knows.
    ///
    /// Nothing of it need happen before the call of [`MessageStore::lead`] that has to follow. What ends a
    /// message outside of a transaction is submitted only after the batch is complete by which that message became
    /// visible: it may be written before others that wait.
    fn submit(&self, batch: Vec<StoreOperation>, completion: Completion);

    /// As [`MessageStore::submit`], where nobody waits for the completion: what runs already may end first.
    fn submit_unawaited(&self, batch: Vec<StoreOperation>, completion: Completion) {
        self.submit(batch, completion);
    }

    /// To be called after what one caller submits, when that caller has no lock any more: what was submitted is written
    /// and made durable on this thread, where that is quick and cheaper than to wake another, and by another otherwise.
    fn lead(&self) {}

    /// Has it take sends again: from the first message of [`Arrival::Sent`] or [`Arrival::Copied`] that it refuses with
    /// [`StoreError::Full`] until this call it refuses all of them so, that of none a later one is stored that was submitted
    /// before its sender knew.
    fn take_sends(&self) {}

    /// Whether [`MessageStore::load`] brings messages back, so that their bodies need not stay in memory.
    fn can_load(&self) -> bool {
        false
    }

    /// Reads messages back whose batches are complete; `completion` is called once with all of them, in this order, on
    /// any thread.
    fn load(&self, wanted: Vec<StoredId>, completion: Loaded) {
        let unreadable = |stored| (stored, Err(StoreError::NotKept { stored }));
        completion(wanted.into_iter().map(unreadable).collect());
    }

    /// Notes in a slot, of which each consumer has its own, what was handed to the application last and is not settled;
    /// `None` clears it. Survives the end of the process, not a power cut. Does not block, and does not call the broker, which
    /// waits for it.
    fn note_attempt(&self, slot: AttemptSlot, attempt: Option<Attempt>) {
        let (_, _) = (slot, attempt);
    }

    /// Tells `watcher` of every [`StoreEvent`] from now on, on any thread.
    fn watch(&self, watcher: StoreWatcher) {
        drop(watcher);
    }

    /// Ends it in order: all that was submitted is durable when this returns, and nothing is taken any more. Blocks.
    fn close(&self) {}
}

/// Who is told of the end of a batch.
pub type Completion = Box<dyn FnOnce(Result<(), StoreError>, Sweep) + Send>;

/// Whether a completion is one of many that are called one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// The next one is called on the same thread at once, so that whoever is told may wait for it with what it does.
    GoesOn,
    /// It is the last one, or alone.
    Ends,
}

/// Who is given what was read back.
pub type Loaded = Box<dyn FnOnce(Vec<(StoredId, Result<Arc<Message>, StoreError>)>) + Send>;

/// Who is told of what happens to a store.
pub type StoreWatcher = Box<dyn Fn(StoreEvent) + Send + Sync>;

/// A transaction as the store names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StoreTransaction {
    /// A local one: those of one connection are its own. It is over with its connection.
    Local(ConnectionId, u64),
    /// A branch of a distributed one, which outlives its connection once prepared.
    Distributed(Xid),
}

/// The name of a durable subscription, which is its own among those of its client id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionName {
    /// Whose it is.
    pub client_id: Arc<str>,
    /// What its client calls it.
    pub name: Arc<str>,
}

/// Where a stored message is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Recipient {
    /// On a queue.
    Queue(Destination),
    /// With a durable subscription to a topic.
    Subscription(SubscriptionName),
}

/// A message in a queue or of a durable subscription, as broker and store name it: counted by the broker over the life of the
/// store and never used again, so that two dead letters that were one message of a topic are still two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoredId(pub u64);

/// One change to the stored state. What carries a transaction takes effect by its [`StoreOperation::Commit`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StoreOperation {
    /// A message enters a queue, behind all that are there.
    Append {
        /// Its name from now on.
        stored: StoredId,
        /// The queue.
        queue: Destination,
        /// How it came there, for the queue's totals.
        arrival: Arrival,
        /// The message.
        message: Arc<Message>,
        /// The transaction that it waits for.
        transaction: Option<StoreTransaction>,
    },
    /// A message of a topic enters durable subscriptions, behind all that is there. It is stored once, whatever their number.
    Publish {
        /// Its name with the first of them; with each of the others it has the next one.
        stored: StoredId,
        /// The topic.
        topic: Destination,
        /// Those that it goes to; one that is not there gets nothing, nor does one that is removed before the transaction is
        /// committed.
        subscriptions: Vec<SubscriptionName>,
        /// How it came there, for the totals of each.
        arrival: Arrival,
        /// The message.
        message: Arc<Message>,
        /// The transaction that it waits for.
        transaction: Option<StoreTransaction>,
    },
    /// A durable subscription is made; one of this name that is there ends as by [`StoreOperation::RemoveSubscription`].
    CreateSubscription {
        /// Its name.
        subscription: SubscriptionName,
        /// What it is to.
        topic: Destination,
        /// Whether messages of its own client are left out, which is for the broker to do.
        no_local: bool,
    },
    /// A durable subscription ends with all its messages.
    RemoveSubscription(SubscriptionName),
    /// A message leaves its queue for good.
    Remove {
        /// Which one.
        stored: StoredId,
        /// Why, for the queue's totals.
        reason: Removal,
        /// The transaction that it waits for.
        transaction: Option<StoreTransaction>,
    },
    /// What is remembered of a message's deliveries changed.
    DeliveryState {
        /// Which one.
        stored: StoredId,
        /// What holds from now on.
        state: DeliveryState,
    },
    /// The first phase of a distributed commit: the transaction survives from now on, and waits for its outcome.
    Prepare(Xid),
    /// The end of a transaction: all of it takes effect.
    Commit(StoreTransaction),
    /// The end of a transaction: none of it does. It is over when this is refused, too; the store catches up on it.
    Rollback(StoreTransaction),
}

/// How safe a batch is when it is complete (decision 14), the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Safety {
    /// It will be written before the end of its transaction, by which alone it takes effect.
    Staged,
    /// It survives the end of the process, not yet a power cut.
    Written,
    /// It survives a power cut.
    Durable,
}

/// How a message came to its queue, or to durable subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arrival {
    /// It was sent there.
    Sent,
    /// It was moved there, as dead letters are, and what an operator moves.
    MovedIn,
    /// An operator copied it there. It counts as moved, and as the send of no producer; but nothing leaves for it, so that it needs
    /// room as a send does.
    Copied,
}

/// Why a message left its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Removal {
    /// It was acknowledged.
    Acknowledged,
    /// It went to the dead letters, for a failure.
    DeadLettered,
    /// It was past its expiration.
    Expired,
    /// It was dropped by policy.
    Discarded,
    /// It was purged by an operator.
    Purged,
    /// It was moved to another destination by an operator.
    MovedOut,
}

/// What is remembered of a message's deliveries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryState {
    /// Deliveries that failed.
    pub failed_deliveries: u32,
    /// Not to be delivered before this moment.
    pub not_before: Option<Timestamp>,
    /// When that was said; 0 where it is not known.
    pub since: Timestamp,
    /// Whether a conversion has failed that was not counted.
    pub conversion_failed: bool,
}

impl StoredId {
    /// The name of a message that is stored once, with the subscription of this place among those that it goes to.
    #[must_use]
    pub fn with(self, place: usize) -> Self {
        Self(self.0.saturating_add(place as u64))
    }
}

impl fmt::Display for SubscriptionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "durable subscription `{}` of client `{}`", self.name, self.client_id)
    }
}

impl From<Destination> for Recipient {
    fn from(queue: Destination) -> Self {
        Self::Queue(queue)
    }
}

impl DeliveryState {
    /// When it may be delivered, for a process that begins `now`. Where the clock was set back meanwhile that is when its whole
    /// delay has passed again.
    #[must_use]
    pub fn not_before_from(&self, now: Timestamp) -> Option<Timestamp> {
        let is_back = self.since > now;
        self.not_before.map(|not_before| {
            if is_back { now.saturating_add(not_before.since(self.since)) } else { not_before }
        })
    }
}

/// The place of one consumer's [`Attempt`]: small numbers, used again when their consumer is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptSlot(pub u32);

/// A message in the hands of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Which one.
    pub stored: StoredId,
    /// The number of this delivery, from 1. If the process dies now, so many deliveries have failed.
    pub delivery: u32,
}

/// Something that happens to a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreEvent {
    /// There is no room for more messages; what ends or changes those that are there goes on.
    Full {
        /// What is full, for whoever has to wait.
        reason: Arc<str>,
    },
    /// There is room again.
    Room,
    /// It has failed and confirms nothing more (decision 16).
    Failed(StoreError),
}

/// Why the store could not do its work.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// Writing, syncing or reading failed.
    #[error("{0}")]
    Io(String),
    /// There is no room for more messages.
    #[error("the store is full: {reason}")]
    Full {
        /// What is full.
        reason: Arc<str>,
    },
    /// It has failed, and nothing is taken any more. What was submitted before may be there at the next start.
    #[error("the store has failed and takes nothing more: {reason}")]
    Failed {
        /// The first failure.
        reason: Arc<str>,
    },
    /// It is closed, or was dropped.
    #[error("the store is closed")]
    Closed,
    /// The message is not kept, or no more.
    #[error("the store keeps no message {}", stored.0)]
    NotKept {
        /// Which one.
        stored: StoredId,
    },
    /// What was written cannot be read back.
    #[error("{place}: {reason}")]
    Damaged {
        /// File and offset.
        place: String,
        /// What is wrong there.
        reason: String,
    },
}

impl StoreOperation {
    /// How a message came where it enters; `None` for what brings none.
    #[must_use]
    pub fn arrival(&self) -> Option<Arrival> {
        match self {
            Self::Append { arrival, .. } | Self::Publish { arrival, .. } => Some(*arrival),
            _ => None,
        }
    }

    /// How safe a batch is when it is complete.
    #[must_use]
    pub fn safety(batch: &[Self]) -> Safety {
        batch.iter().map(Self::needs).max().unwrap_or(Safety::Staged)
    }

    fn needs(&self) -> Safety {
        match self {
            Self::Append { transaction: None, .. }
            | Self::Publish { transaction: None, .. }
            | Self::CreateSubscription { .. }
            | Self::RemoveSubscription(_)
            | Self::Prepare(_)
            | Self::Commit(_) => Safety::Durable,
            Self::Remove { transaction: None, .. } | Self::DeliveryState { .. } | Self::Rollback(_) => {
                Safety::Written
            }
            Self::Append { .. } | Self::Publish { .. } | Self::Remove { .. } => Safety::Staged,
        }
    }
}
