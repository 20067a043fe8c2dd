//! The delivery logic as a pure state machine: `step(now, Input) -> Effects`.
//!
//! No thread, clock, socket, file or tokio type is owned here, and no store is called: effects name work, inputs bring
//! its results. So any history can be replayed from a seed and compared with a model.
//!
//! A message goes from `sending` (past `memory`, where it may have to wait in `line`) to `delivery`, which takes it through its
//! `queue` to a `subscription`, back, and out: by `acknowledge`, by a `transaction`, or as a `dead_letter`. `step` takes
//! the inputs (`effects`), and `recording` keeps what waits for the store.
//!
//! - What is due by the time of a step happens before its input. Then memory that became free is given to waiting
//!   sends, in their order, and only then is anything delivered that was not delivered yet.
//! - Among consumers with room the one served longest ago is next.
//! - A `durable` subscription is the private queue of a consumer that outlives it, by its client id and its name.
//! - A `browser` is shown what a queue has and changes nothing; a `temporary` destination ends with its connection, and
//!   with all that names it.
//! - What ends with all its messages is over at once, and these leave memory by and by (`clearing`).
//! - What an operator does with the messages of a queue (`management`) leaves those alone that somebody has.
//! - What a consumer is handed, what a transaction is prepared with, and what lies in a queue without its body (`bodies`)
//!   goes on from where it was when a store is opened again (`recovery`).
//! - Nothing that shows depends on the order of a hash map: those here, for names, are only looked into.

mod acknowledge;
mod attempts;
mod bodies;
mod browser;
mod clearing;
mod connection;
mod credit;
mod dead_letter;
mod delivery;
mod durable;
mod effects;
mod line;
mod management;
mod memory;
mod moving;
mod policies;
mod producers;
mod queue;
mod recording;
mod recovery;
mod sending;
mod serving;
mod slow;
mod snapshot;
mod step;
mod store_room;
mod subscription;
mod temporary;
mod time_index;
mod topic;
mod transaction;
mod two_phase;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use corriere_core::provider::ProviderError;
use corriere_core::{Destination, MessageId, RedeliveryPolicy, Timestamp};

pub use attempts::SlotNote;
pub(crate) use attempts::attempt_of;
pub use bodies::SetAside;
pub use effects::{Batch, BatchId, ConnectionKey, Effects, Input, Ticket};
pub use management::{Action, Order};
pub use snapshot::{Location, Page, Shown};
pub use subscription::SubscriptionKey;

use crate::counts::Counts;
use crate::operation_counts::OperationCounts;
use crate::settings::Settings;
use crate::store::{StoreOperation, SubscriptionName, Totals};
use attempts::Slots;
use bodies::Bodies;
use browser::Browser;
use clearing::Remains;
use connection::Connection;
use durable::Durable;
use memory::Memory;
use moving::Moves;
use producers::Producers;
use queue::{Queue, QueueKey};
use recording::{OnStored, Recorded};
use sending::Target;
use serving::Unserved;
use store_room::StoreRoom;
use subscription::Subscription;
use temporary::Temporaries;
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
    topics: BTreeMap<TopicKey, Topic>,
    topic_names: HashMap<Arc<str>, TopicKey>,
    next_topic: u64,
    durable: BTreeMap<SubscriptionName, Durable>,
    /// Those that gave way to one of their name which the store has not made yet, the oldest first.
    replaced: BTreeMap<SubscriptionName, Vec<Durable>>,
    temporaries: Temporaries,
    browsers: BTreeMap<SubscriptionKey, Browser>,
    transactions: BTreeMap<TransactionKey, Transaction>,
    /// How many transactions were prepared.
    next_prepared: u64,
    memory: Memory,
    bodies: Bodies,
    /// What queues that are gone still hold.
    remains: Remains,
    producers: Producers,
    slots: Slots,
    moves: Moves,
    /// What operators wait for, with what has come of it so far.
    orders: BTreeMap<Ticket, OperationCounts>,
    /// Whom to attend to when the order of an operator is carried out; `None` where none is under way.
    attended_later: Option<Vec<SubscriptionKey>>,
    store_room: StoreRoom,
    /// Who waits until a subscription has been delivered what it may have.
    unserved: Unserved,
    timers: TimeIndex,
    /// What goes on when the store is done with a batch.
    batches: BTreeMap<BatchId, Vec<OnStored>>,
    /// Commands that are confirmed once so many batches are complete, and what failed of them.
    confirming: BTreeMap<Ticket, (usize, Option<ProviderError>)>,
    next_batch: u64,

    // What the present step has come to so far.
    effects: Effects,
    operations: Vec<StoreOperation>,
    on_stored: Vec<OnStored>,
    /// The batches that come before these.
    recorded: Vec<(Vec<StoreOperation>, Vec<OnStored>)>,
    /// The command of the step, if it is confirmed when that is stored which it recorded between these.
    stored_for: Option<(Ticket, Recorded, Recorded)>,
    /// Queues in which something is ready, or someone has room, that was not so before.
    due_queues: VecDeque<QueueKey>,
    /// Subscriptions whose slots may have to say something else.
    due_slots: Vec<SubscriptionKey>,
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
            topics: BTreeMap::new(),
            topic_names: HashMap::new(),
            next_topic: 0,
            durable: BTreeMap::new(),
            replaced: BTreeMap::new(),
            temporaries: Temporaries::default(),
            browsers: BTreeMap::new(),
            transactions: BTreeMap::new(),
            next_prepared: 0,
            bodies: Bodies::default(),
            remains: Remains::default(),
            producers: Producers::default(),
            slots: Slots::default(),
            moves: Moves::default(),
            orders: BTreeMap::new(),
            attended_later: None,
            store_room: StoreRoom::default(),
            unserved: Unserved::new(),
            timers: TimeIndex::default(),
            batches: BTreeMap::new(),
            confirming: BTreeMap::new(),
            next_batch: 1,
            effects: Effects::default(),
            operations: Vec::new(),
            on_stored: Vec::new(),
            recorded: Vec::new(),
            stored_for: None,
            due_queues: VecDeque::new(),
            due_slots: Vec::new(),
            talking: Vec::new(),
        }
    }

    /// The counts of a queue, or of all subscriptions of a topic together.
    #[must_use]
    pub fn counts(&self, destination: &Destination) -> Option<Counts> {
        match self.find_target(destination)? {
            Target::Queue(queue) => self.queues.get(&queue).map(|queue| queue.counts),
            Target::Topic(topic) => Some(self.topic_counts(topic)),
        }
    }

    /// What became of the persistent messages of a queue over all runs.
    #[must_use]
    pub fn totals(&self, destination: &Destination) -> Option<Totals> {
        self.queue(destination).map(|queue| queue.totals)
    }

    /// How many batches the store has that are not complete.
    #[must_use]
    pub fn batches_at_store(&self) -> usize {
        self.batches.len()
    }

    /// All destinations, in the order of their kinds and names.
    #[must_use]
    pub fn destinations(&self) -> Vec<Destination> {
        // The private queues of subscriptions to topics are none.
        let queues = self.queues.values().filter(|queue| queue.topic.is_none());
        let mut all: Vec<_> = queues
            .map(|queue| queue.destination.clone())
            .chain(self.topics.values().map(|topic| topic.destination.clone()))
            .collect();
        all.sort();
        all
    }

    /// The messages of a queue whose bodies are in memory, in flight and waiting ones included, in the order of their
    /// positions.
    #[must_use]
    pub fn pending(&self, destination: &Destination) -> Vec<MessageId> {
        let Some(queue) = self.queue(destination) else { return Vec::new() };
        let bodies = queue.positions().filter_map(|(_, entry)| entry.held.body());
        bodies.filter_map(|body| body.headers().message_id.clone()).collect()
    }

    /// Of the pending messages of a destination: those that are not to be delivered before a moment after `now`.
    #[must_use]
    pub fn delayed(&self, destination: &Destination, now: Timestamp) -> u64 {
        match self.find_target(destination) {
            Some(Target::Queue(queue)) => self.queues.get(&queue).map_or(0, |queue| queue.delayed(now)),
            Some(Target::Topic(topic)) => self.topic_delayed(topic, now),
            None => 0,
        }
    }

    /// Bytes of messages in memory: of each live one once, those of open transactions included.
    #[must_use]
    pub fn memory_used(&self) -> u64 {
        self.memory.used()
    }

    /// The queue of this name, if it is there.
    fn queue(&self, destination: &Destination) -> Option<&Queue> {
        match self.find_target(destination)? {
            Target::Queue(queue) => self.queues.get(&queue),
            Target::Topic(_) => None,
        }
    }
}
