//! What a record changes, without the body of its message: all that the index needs.

use std::sync::Arc;

use corriere_core::id::Xid;
use corriere_core::message::Priority;
use corriere_core::{Destination, Timestamp};

use super::lsn::Lsn;
use crate::store::{Arrival, DeliveryState, Removal, StoreTransaction, StoredId};

/// A record of the journal: where it stands and what it changes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// Where the record begins.
    pub(crate) lsn: Lsn,
    /// Bytes of the record, its header included.
    pub(crate) length: u32,
    pub(crate) change: Change,
}

/// What a record changes; see [`StoreOperation`](crate::store::StoreOperation), of which it is the short form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    Append(Appended),
    Remove { stored: StoredId, reason: Removal, transaction: Option<StoreTransaction> },
    DeliveryState { stored: StoredId, state: DeliveryState },
    Prepare(Xid),
    Commit(StoreTransaction),
    Rollback(StoreTransaction),
}

impl Change {
    /// The transaction that is there from now on, if it was not.
    pub(crate) fn begins(&self) -> Option<StoreTransaction> {
        match self {
            Self::Append(appended) => appended.transaction.clone(),
            Self::Remove { transaction, .. } => transaction.clone(),
            Self::Prepare(xid) => Some(StoreTransaction::Distributed(xid.clone())),
            Self::Commit(_) | Self::Rollback(_) | Self::DeliveryState { .. } => None,
        }
    }
}

/// A message that enters a queue.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Appended {
    pub(crate) stored: StoredId,
    pub(crate) queue: Destination,
    pub(crate) arrival: Arrival,
    pub(crate) priority: Priority,
    pub(crate) expiration: Option<Timestamp>,
    /// [`Message::size`](corriere_core::Message::size).
    pub(crate) size: u64,
    /// The producer's identity and the number that it gave the message, from the message id.
    pub(crate) producer: Option<(Arc<str>, u64)>,
    pub(crate) transaction: Option<StoreTransaction>,
    /// Bytes of the file of its own that has its body, when it is a large one.
    pub(crate) large: Option<u64>,
}
