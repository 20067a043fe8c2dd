//! What a record changes, without the body of its message: all that the index needs.

use std::sync::Arc;

use corriere_core::id::Xid;
use corriere_core::message::Priority;
use corriere_core::{Destination, Timestamp};

use super::lsn::Lsn;
use crate::store::{Arrival, DeliveryState, Removal, StoreTransaction, StoredId, SubscriptionName};

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
    CreateSubscription { subscription: SubscriptionName, topic: Destination, no_local: bool },
    RemoveSubscription(SubscriptionName),
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
            Self::Commit(_)
            | Self::Rollback(_)
            | Self::DeliveryState { .. }
            | Self::CreateSubscription { .. }
            | Self::RemoveSubscription(_) => None,
        }
    }
}

/// Where a message goes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Recipients {
    Queue(Destination),
    /// Each of these durable subscriptions to a topic; the names of the message with them follow each other.
    Subscriptions(Destination, Vec<SubscriptionName>),
}

/// The file of its own that has the body of a large message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LargeFile {
    /// By which it is named: the first name of its message.
    pub(crate) name: StoredId,
    /// Bytes of the file.
    pub(crate) length: u64,
}

/// A message that enters a queue, or durable subscriptions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Appended {
    /// Its name with the first of those that it goes to.
    pub(crate) stored: StoredId,
    pub(crate) to: Recipients,
    pub(crate) arrival: Arrival,
    pub(crate) priority: Priority,
    pub(crate) expiration: Option<Timestamp>,
    /// [`Message::size`](corriere_core::Message::size).
    pub(crate) size: u64,
    /// The producer's identity and the number that it gave the message, from the message id.
    pub(crate) producer: Option<(Arc<str>, u64)>,
    pub(crate) transaction: Option<StoreTransaction>,
    /// The file of its own that has its body, when it is a large one.
    pub(crate) large: Option<LargeFile>,
}

impl Appended {
    /// Whether this is a name of it.
    pub(crate) fn is_named(&self, stored: StoredId) -> bool {
        stored.0.checked_sub(self.stored.0).is_some_and(|place| place < self.names() as u64)
    }

    /// Its last name.
    pub(crate) fn last_name(&self) -> StoredId {
        self.stored.with(self.names().saturating_sub(1))
    }

    fn names(&self) -> usize {
        match &self.to {
            Recipients::Queue(_) => 1,
            Recipients::Subscriptions(_, subscriptions) => subscriptions.len(),
        }
    }
}
