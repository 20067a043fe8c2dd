//! What connections have opened, as the model remembers it.

use std::sync::Arc;

use corriere_broker::machine::{BatchId, ConnectionKey, Ticket};
use corriere_core::provider::Credit;
use corriere_core::{
    ConnectionId, Destination, Message, ProducerId, RedeliveryPolicy, SessionId, Timestamp, TransactionId,
};

use super::entry::{Place, SubscriptionKey};

/// A connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Its key.
    pub key: ConnectionKey,
    /// Its identity, under which the store knows its transactions.
    pub identity: ConnectionId,
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
    /// What is left of explicit credit.
    pub granted: u64,
    /// The redelivery policy that counts for it.
    pub policy: RedeliveryPolicy,
    /// How many deliveries of it were given back in blocking mode.
    pub epoch: u32,
    /// The number of the latest delivery.
    pub delivered: u64,
    /// The highest number known to be in the hands of the application.
    pub handed_over: u64,
}

/// A transaction.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// Its connection.
    pub connection: ConnectionKey,
    /// Its name.
    pub id: TransactionId,
    /// What it will send, in the order of the sends.
    pub sends: Vec<TransactedSend>,
    /// Whether a part of it has failed.
    pub is_rollback_only: bool,
    /// The commit that was asked for.
    pub commit: Option<Ticket>,
    /// The batch that brings the commit to the store.
    pub commit_batch: Option<BatchId>,
}

/// A message that becomes visible by a commit.
#[derive(Clone, Debug)]
pub struct TransactedSend {
    /// The message.
    pub message: Arc<Message>,
    /// See [`super::Entry::instance`].
    pub instance: u64,
}

/// A send that waits for memory.
#[derive(Clone, Debug)]
pub struct Parked {
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
}

/// A message on its way into a queue that waits for the store.
#[derive(Clone, Debug)]
pub struct Entering {
    /// The queue.
    pub queue: Destination,
    /// The message.
    pub message: Arc<Message>,
    /// See [`super::Entry::instance`].
    pub instance: u64,
    /// Whether it was sent or moved here.
    pub origin: Origin,
    /// The batch that it is in; `None` until that is known.
    pub batch: Option<BatchId>,
}

/// How a message comes into a queue.
#[derive(Clone, Debug)]
pub enum Origin {
    /// Sent outside a transaction; the ticket is answered when it is durable.
    Sent(Ticket),
    /// Dead-lettered.
    Moved(Box<super::DeadLetter>),
}
