//! The seam to what keeps messages: submit a batch of operations, get one completion.

use std::fmt::Debug;
use std::sync::Arc;

use corriere_core::id::ConnectionId;
use corriere_core::{Destination, Message, Timestamp, TransactionId};
use thiserror::Error;

/// Keeps persistent messages and their delivery state.
///
/// Batches take effect in the order of their submission, each as a whole. A [`StoreOperation::Commit`] fails when any
/// operation of its transaction failed before.
pub trait MessageStore: Debug + Send + Sync {
    /// Takes a batch and returns at once; `completion` is called when it is durable or has failed, on any thread, in
    /// the order of submission, possibly before this returns. A completion must not be dropped uncalled: sends would
    /// wait for ever.
    fn submit(&self, batch: Vec<StoreOperation>, completion: Completion);
}

/// Who is told of the end of a batch.
pub type Completion = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// A transaction as the store names it: those of one connection are its own.
pub type StoreTransaction = (ConnectionId, TransactionId);

/// A message in a queue, as broker and store name it: counted by the broker over the life of the store and never used
/// again, so that two dead letters that were one message of a topic are still two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
        /// The message.
        message: Arc<Message>,
        /// The transaction that it waits for.
        transaction: Option<StoreTransaction>,
    },
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
        /// Deliveries that failed.
        failed_deliveries: u32,
        /// Not to be delivered before this moment.
        not_before: Option<Timestamp>,
        /// Whether a conversion has failed that was not counted.
        conversion_failed: bool,
    },
    /// The end of a transaction: all of it takes effect.
    Commit(StoreTransaction),
    /// The end of a transaction: none of it does.
    Rollback(StoreTransaction),
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
}

/// Why the store could not do its work.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// Writing or syncing failed.
    #[error("{0}")]
    Io(String),
}

/// Keeps nothing: every batch is complete at once, and what was persistent lives as long as the process.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryStore;

impl MessageStore for MemoryStore {
    fn submit(&self, _batch: Vec<StoreOperation>, completion: Completion) {
        completion(Ok(()));
    }
}
