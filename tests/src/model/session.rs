//! What connections have opened, as the model remembers it.

use std::collections::BTreeSet;
use std::sync::Arc;

use corriere_broker::machine::{BatchId, ConnectionKey, Ticket};
use corriere_broker::store::{Arrival, StoredId};
use corriere_core::provider::Credit;
use corriere_core::{
    ConnectionId, Destination, Message, ProducerId, RedeliveryPolicy, SessionId, Timestamp, TransactionId,
};

use super::entry::{Place, SubscriptionKey, TransactionKey};

/// A connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Its key.
    pub key: ConnectionKey,
    /// Its identity, under which the store knows its transactions.
    pub identity: ConnectionId,
    /// Whose durable subscriptions it may have.
    pub client_id: Option<Arc<str>>,
    /// False once it closed or vanished.
    pub is_open: bool,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its connection.
    pub connection: ConnectionKey,
    /// Its number.
    pub id: SessionId,
}

/// A producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Producer {
    /// Its session.
    pub session: Session,
    /// Its number.
    pub id: ProducerId,
}

/// A subscription. It is remembered until its session ends, as what it was handed may be settled after its close.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// Which one.
    pub key: SubscriptionKey,
    /// Its session.
    pub session: Session,
    /// Where it takes messages from.
    pub place: Place,
    /// Whether it leaves out what its own connection sends.
    pub no_local: bool,
    /// Whether it may still be sent messages.
    pub is_open: bool,
    /// How much it may be sent.
    pub credit: Credit,
    /// Whether its client left its prefetch to the broker.
    pub has_default_credit: bool,
    /// Whether it was told that it stands still, since it had room last.
    pub is_told_slow: bool,
    /// What is left of explicit credit.
    pub granted: u64,
    /// Of `granted`, what a drain takes back.
    pub draining: u64,
    /// The redelivery policy that counts for it.
    pub policy: RedeliveryPolicy,
    /// How many deliveries of it were given back in blocking mode.
    pub epoch: u32,
    /// The number of the latest delivery.
    pub delivered: u64,
    /// The highest number known to be in the hands of the application.
    pub handed_over: u64,
    /// Those that are known to be there by themselves.
    pub handed_over_alone: BTreeSet<u64>,
}

/// A transaction.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// Which one.
    pub key: TransactionKey,
    /// The connection that works in it; nobody's once prepared.
    pub owner: Option<ConnectionKey>,
    /// The connection that its messages come from.
    pub origin: ConnectionKey,
    /// Whether its connection has ended its part.
    pub is_done: bool,
    /// What it will send, in the order of the sends.
    pub sends: Vec<TransactedSend>,
    /// Whether a part of it has failed.
    pub is_rollback_only: bool,
    /// The commit or prepare that was asked for.
    pub end: Option<(Ticket, End)>,
    /// The batch that brings it to the store.
    pub end_batch: Option<BatchId>,
    /// Whether a start brought it back, so that the store has it even if nothing of it is left.
    pub is_recovered: bool,
    /// When it was prepared, as a place in the order of prepares.
    pub prepared: Option<u64>,
}

/// How a transaction is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The first phase.
    Prepare,
    /// For good.
    Commit,
}

/// A message that becomes visible by a commit.
#[derive(Clone, Debug)]
pub struct TransactedSend {
    /// The message.
    pub message: Arc<Message>,
    /// The durable subscriptions that it goes to.
    pub copies: Vec<Place>,
    /// Whether it goes to no others, as a start brought it back.
    pub is_for_these_only: bool,
    /// See [`super::Entry::instance`].
    pub instance: u64,
    /// The name that it is stored under.
    pub stored: Option<StoredId>,
    /// Whether the store has it.
    pub is_written: bool,
}

/// A send that waits, or is with the store.
#[derive(Clone, Debug)]
pub struct Parked {
    /// Its place among all sends.
    pub number: u64,
    /// Whose send.
    pub connection: ConnectionKey,
    /// By which producer.
    pub producer: ProducerId,
    /// Its receipt.
    pub ticket: Ticket,
    /// The message.
    pub message: Arc<Message>,
    /// The transaction that it takes effect with.
    pub transaction: Option<TransactionId>,
    /// When it fails.
    pub deadline: Timestamp,
    /// Whether it stands in the line for room in the store, not for memory.
    pub wants_store: bool,
    /// Whether that is for itself, and not only as it came behind another one.
    pub needs_store: bool,
}

/// A message on its way into a queue that waits for the store.
#[derive(Clone, Debug)]
pub struct Entering {
    /// The queue, or the topic.
    pub queue: Destination,
    /// The durable subscriptions of the topic that it goes to.
    pub copies: Vec<Place>,
    /// The message.
    pub message: Arc<Message>,
    /// See [`super::Entry::instance`].
    pub instance: u64,
    /// Whether it was sent or moved here.
    pub origin: Origin,
    /// The batch that it is in; `None` until that is known.
    pub batch: Option<BatchId>,
    /// Those who sent it again meanwhile.
    pub resent: Vec<Parked>,
    /// What it was that died or was moved, in case it did not yet: its body may have to be read back first, or the store may have no
    /// room for it here.
    pub was: Option<Box<super::Entry>>,
    /// Whether the store had no room for it before, so that it may be in no batch now.
    pub is_put_off: bool,
}

/// How a message comes into a queue.
#[derive(Clone, Debug)]
pub enum Origin {
    /// Sent outside a transaction, and answered when it is durable.
    Sent(Box<Parked>),
    /// Dead-lettered.
    Moved(Box<super::DeadLetter>),
    /// By an operator, who moved or copied it.
    Carried(Ticket, Arrival),
}
