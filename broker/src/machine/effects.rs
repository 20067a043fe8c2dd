//! Inputs, and the effects that they come to.

use std::sync::Arc;

use corriere_core::id::ConnectionId;
use corriere_core::provider::{Command, Confirmation, Dispatch, Event, ProviderError};
use corriere_core::{Destination, Message, Timestamp};

use super::attempts::SlotNote;
use super::bodies::SetAside;
use super::management::Order;
use super::subscription::SubscriptionKey;
use crate::operation_counts::OperationCounts;
use crate::store::{StoreError, StoreOperation, StoredId};

/// A connection, numbered by the edge and never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionKey(pub u64);

/// Names the receipt of a command, numbered by the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

impl Ticket {
    /// Of a command for whose outcome nobody waits: it is not confirmed.
    pub const NOBODY: Self = Self(0);
}

/// Names a batch that was given to the store, counted by the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub u64);

/// Something that happens to the broker.
#[derive(Debug)]
pub enum Input {
    /// A connection was made.
    Connect {
        /// Its key.
        connection: ConnectionKey,
        /// Its identity.
        identity: ConnectionId,
        /// Under which its durable subscriptions are kept; of no other connection that is there.
        client_id: Option<Arc<str>>,
    },
    /// A connection asks for something.
    Command {
        /// Which connection.
        connection: ConnectionKey,
        /// Its receipt.
        ticket: Ticket,
        /// What it asks.
        command: Command,
    },
    /// A connection ended without a word: the receipts of its commands are dropped, the rest is as if it had closed.
    Vanished {
        /// Which connection.
        connection: ConnectionKey,
    },
    /// The store is done with a batch.
    Stored {
        /// Which batch.
        batch: BatchId,
        /// Whether it is as safe as it has to be. Sends that there is no room for wait until there is.
        outcome: Result<(), StoreError>,
    },
    /// Messages of [`Effects::load`] have come, or cannot be read back.
    Loaded {
        /// Each with what became of it.
        messages: Vec<(StoredId, Result<Arc<Message>, StoreError>)>,
    },
    /// The store has no room for more messages: those that are sent wait.
    StoreFull {
        /// What is full.
        reason: Arc<str>,
    },
    /// The store has room again.
    StoreRoom,
    /// An operator does something with messages of a queue; answered in [`Effects::managed`].
    Manage {
        /// Its answer.
        ticket: Ticket,
        /// What is done.
        order: Order,
    },
    /// An operator changes the prefetch of a queue's policy, for those who left theirs to the broker.
    SetPrefetch {
        /// Whose.
        queue: Destination,
        /// From now on; 0 counts as 1.
        prefetch: u32,
    },
    /// The moment of [`Effects::wake_at`] has come.
    Tick,
}

/// Work for the edge, to be done in the order of the fields: what is delivered before it is confirmed has arrived
/// when the confirmation does.
#[derive(Debug, Default)]
pub struct Effects {
    /// Whether [`MessageStore::take_sends`](crate::store::MessageStore::take_sends) is to be called.
    pub takes_sends: bool,
    /// Batches for the store, each of which is answered by [`Input::Stored`].
    pub store: Vec<Batch>,
    /// What slots of [`MessageStore::note_attempt`](crate::store::MessageStore::note_attempt) say from now on.
    pub attempts: Vec<SlotNote>,
    /// Messages whose bodies are to be read back, each of which is answered by [`Input::Loaded`].
    pub load: Vec<StoredId>,
    /// Messages that could not be read back, to be told to who runs the broker.
    pub set_aside: Vec<SetAside>,
    /// Word of temporary destinations, and of windows that are others than a client asked for. It goes before the deliveries, so that nobody is delivered
    /// a message before he has heard of the destination that it is to be answered to.
    pub changes: Vec<(ConnectionKey, Event)>,
    /// Deliveries for the sinks of connections.
    pub deliveries: Vec<(ConnectionKey, Vec<Dispatch>)>,
    /// Browsers that have been shown all that there was.
    pub browse_ends: Vec<SubscriptionKey>,
    /// Word of slow consumers for the sinks of their connections.
    pub slow_consumers: Vec<(ConnectionKey, Event)>,
    /// Outcomes of commands.
    pub confirmations: Vec<(Ticket, Result<Confirmation, ProviderError>)>,
    /// What became of what operators did.
    pub managed: Vec<(Ticket, Result<OperationCounts, ProviderError>)>,
    /// When [`Input::Tick`] is due; `None` when nothing waits for time. It replaces what an earlier step said.
    pub wake_at: Option<Timestamp>,
}

/// Changes that the store makes as a whole.
#[derive(Debug)]
pub struct Batch {
    /// Its name.
    pub id: BatchId,
    /// The changes.
    pub operations: Vec<StoreOperation>,
    /// Whether anything goes on only when the store is done with it.
    pub is_awaited: bool,
}
