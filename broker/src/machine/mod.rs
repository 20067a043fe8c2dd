//! The delivery logic as a pure state machine: `step(now, Input) -> Effects`.
//!
//! No thread, clock, socket, file or tokio type is owned here, and no store is called: effects name work, inputs bring
//! its results. So any history can be replayed from a seed and compared with a model.
//!
//! A message goes from `sending` (past `memory`, where it may have to wait in `line`) to `delivery`, which takes it through its
//! `queue` to a `subscription`, back, and out: by `acknowledge`, by a `transaction`, or as a `dead_letter`. `step` takes
//! the inputs, keeps what waits for the store, and collects the effects.
//!
//! - What is due by the time of a step happens before its input. Then memory that became free is given to waiting
//!   sends, in their order, and only then is anything delivered that was not delivered yet.
//! - Among consumers with room the one served longest ago is next.
//! - Nothing that shows depends on the order of a hash map: the two here, for names, are only looked into.

mod acknowledge;
mod connection;
mod dead_letter;
mod delivery;
mod line;
mod memory;
mod queue;
mod sending;
mod step;
mod subscription;
mod time_index;
mod topic;
mod transaction;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use corriere_core::{Destination, MessageId, RedeliveryPolicy, Timestamp};

pub use step::{BatchId, ConnectionKey, Effects, Input, Ticket};

use crate::counts::Counts;
use crate::settings::Settings;
use crate::store::StoreOperation;
use connection::Connection;
use memory::Memory;
use queue::{Queue, QueueKey};
use step::OnStored;
use subscription::{Subscription, SubscriptionKey};
use time_index::TimeIndex;
use topic::{Topic, TopicKey};
use transaction::{Transaction, TransactionKey};

/// The broker's whole delivery state.
#[derive(Debug)]
pub struct Machine {
    settings: Settings,
    /// The redelivery policy of subscriptions that bring none.
    policy: Arc<RedeliveryPolicy>,
    now: Timestamp,
    connections: BTreeMap<ConnectionKey, Connection>,
    subscriptions: BTreeMap<SubscriptionKey, Subscription>,
    queues: BTreeMap<QueueKey, Queue>,
    queue_names: HashMap<Arc<str>, QueueKey>,
    next_queue: u64,
    topics: Vec<Topic>,
    topic_names: HashMap<Arc<str>, TopicKey>,
    transactions: BTreeMap<TransactionKey, Transaction>,
    memory: Memory,
    timers: TimeIndex,
    /// What goes on when the store is done with a batch.
    batches: BTreeMap<BatchId, Vec<OnStored>>,
    next_batch: u64,

    // What the present step has come to so far.
    effects: Effects,
    operations: Vec<StoreOperation>,
    on_stored: Vec<OnStored>,
    /// Queues in which something is ready, or someone has room, that was not so before.
    due_queues: VecDeque<QueueKey>,
    /// Connections with deliveries, in the order of the first to each.
    talking: Vec<ConnectionKey>,
}

impl Machine {
    /// A broker without any destination.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            policy: Arc::new(settings.redelivery.clone()),
            memory: Memory::new(settings.memory_limit),
            settings,
            now: Timestamp(0),
            connections: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            queues: BTreeMap::new(),
            queue_names: HashMap::new(),
            next_queue: 0,
            topics: Vec::new(),
            topic_names: HashMap::new(),
            transactions: BTreeMap::new(),
            timers: TimeIndex::default(),
            batches: BTreeMap::new(),
            next_batch: 1,
            effects: Effects::default(),
            operations: Vec::new(),
            on_stored: Vec::new(),
            due_queues: VecDeque::new(),
            talking: Vec::new(),
        }
    }

    /// The counts of a queue, or of all subscriptions of a topic together.
    #[must_use]
    pub fn counts(&self, destination: &Destination) -> Option<Counts> {
        if destination.is_topic() {
            return self.topic_names.get(destination.name()).map(|topic| self.topic_counts(*topic));
        }
        self.queue(destination).map(|queue| queue.counts)
    }

    /// All destinations, in the order of their kinds and names.
    #[must_use]
    pub fn destinations(&self) -> Vec<Destination> {
        let queues = self.queue_names.values().filter_map(|key| self.queues.get(key));
        let mut all: Vec<_> = queues
            .map(|queue| queue.destination.clone())
            .chain(self.topics.iter().map(|topic| topic.destination.clone()))
            .collect();
        all.sort();
        all
    }

    /// The messages of a queue, in flight and waiting ones included, in the order of their positions.
    #[must_use]
    pub fn pending(&self, destination: &Destination) -> Vec<MessageId> {
        let Some(queue) = self.queue(destination) else { return Vec::new() };
        queue.positions().filter_map(|(_, entry)| entry.held.message.headers().message_id.clone()).collect()
    }

    /// Of the pending messages of a destination: those that are not to be delivered before a moment after `now`.
    #[must_use]
    pub fn delayed(&self, destination: &Destination, now: Timestamp) -> u64 {
        if destination.is_topic() {
            return self
                .topic_names
                .get(destination.name())
                .map_or(0, |topic| self.topic_delayed(*topic, now));
        }
        self.queue(destination).map_or(0, |queue| queue.delayed(now))
    }

    /// Bytes of messages in memory: of each live one once, those of open transactions included.
    #[must_use]
    pub fn memory_used(&self) -> u64 {
        self.memory.used()
    }

    fn queue(&self, destination: &Destination) -> Option<&Queue> {
        if destination.is_topic() {
            return None;
        }
        self.queues.get(self.queue_names.get(destination.name())?)
    }
}
