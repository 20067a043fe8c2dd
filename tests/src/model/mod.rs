//! A model of the broker's delivery semantics: plain, slow, and made from the rules rather than from the broker.
//!
//! It takes the same inputs as `corriere_broker::machine::Machine` and then judges the machine's effects. Where the
//! rules leave a choice (which of two consumers gets a message) the machine's choice is checked, not predicted; where
//! they leave none (the next message of a subscription, its number, its count, what must not be left lying) the
//! model insists. Everything is a vector that is scanned from end to end.
//!
//! One step goes `model.take(..)`, `machine.step(..)`, `model.check(..)`.

mod acknowledge;
mod answers;
mod browsers;
mod checks;
mod commands;
mod deliveries;
mod durable;
mod effects;
mod entry;
mod fate;
mod lasting;
mod loading;
mod management;
mod memory;
mod policies;
mod resends;
mod restart;
mod session;
mod stored;
mod temporaries;
mod transactions;
mod windows;

use std::sync::Arc;

use corriere_broker::machine::{BatchId, ConnectionKey, Ticket};
use corriere_broker::store::{StoreOperation, StoredId};
use corriere_broker::{Counts, OperationCounts, Settings};
use corriere_core::provider::Event;
use corriere_core::{Destination, Timestamp};

pub use answers::Answer;
pub use browsers::Browser;
pub use durable::Durable;
pub use entry::{DeadLetter, Death, Entry, Holder, Place, SubscriptionKey, TransactionKey, id_of, key_of};
pub use lasting::Lasting;
pub use session::{
    Connection, End, Entering, Origin, Parked, Producer, Session, Subscription, TransactedSend, Transaction,
};

pub use temporaries::Temporary;

use answers::Tickets;
use checks::Run;
use management::Copying;

/// What the machine did against the rules, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

/// Whether the rules are kept so far.
pub type Judgement = Result<(), Violation>;

/// Ends a judgement with a violation.
macro_rules! violation {
    ($($argument:tt)*) => {
        return Err($crate::model::Violation(format!($($argument)*)))
    };
}
use violation;

/// A batch that the store has not answered.
#[derive(Debug)]
struct Batch {
    id: BatchId,
    operations: Vec<StoreOperation>,
}

/// Everything that the model knows of the broker.
#[derive(Debug)]
pub struct Model {
    settings: Settings,
    now: Timestamp,
    connections: Vec<Connection>,
    sessions: Vec<Session>,
    producers: Vec<Producer>,
    subscriptions: Vec<Subscription>,
    browsers: Vec<Browser>,
    /// Drains of browsers that are not answered.
    browser_drains: Vec<(Ticket, SubscriptionKey)>,
    temporaries: Vec<Temporary>,
    lasting: Vec<Lasting>,
    /// Those that gave way to one of their name which the store has not made yet.
    replaced: Vec<Lasting>,
    lasted: [u64; 4],
    /// Who is told of temporary destinations.
    watchers: Vec<ConnectionKey>,
    /// What is to be told in this step.
    changes: Vec<(ConnectionKey, Event)>,
    /// What an operator has said of prefetches, the latest last.
    prefetches: Vec<(Destination, u32)>,
    windows: [u64; 4],
    by_policy: [u64; 2],
    transactions: Vec<Transaction>,
    entries: Vec<Entry>,
    entering: Vec<Entering>,
    parked: Vec<Parked>,
    batches: Vec<Batch>,
    durable: Durable,
    /// Whether bodies may be with the store only.
    can_load: bool,
    loading: Vec<StoredId>,
    /// What was moved in vain: nobody waited for its body meanwhile, so that it may be asked for again before it has come.
    turned_back: Vec<StoredId>,
    /// Whether sends wait for room in the store.
    store_is_full: bool,
    /// Whether the store has said that there is room again.
    room_is_back: bool,
    /// Whether this step has the store take sends again.
    takes_sends: bool,
    /// The last stored sequence of each producer.
    last_sequences: Vec<(Arc<str>, u64)>,
    tickets: Tickets,
    /// What operators wait for, with what has come of it so far.
    orders: Vec<(Ticket, OperationCounts)>,
    copying: Vec<Copying>,
    managed: [u64; 7],
    /// Who waits until a subscription has been sent what it may have now.
    unserved: Vec<(SubscriptionKey, Ticket)>,
    /// The acknowledgement that this step took.
    acknowledging: Option<Ticket>,
    counts: Vec<(Destination, Counts)>,
    runs: Vec<Run>,
    arrivals: u64,
    /// What this step admitted where bodies come and go: it may have been given its memory by bodies of what was delivered
    /// to nobody, so later than others were delivered.
    just_admitted: Vec<u64>,
    instances: u64,
    positions: u64,
    overdrawn: u64,
    passed: u64,
    loaded: u64,
    set_aside: u64,
    doomed: u64,
    killers: u64,
    put_offs: u64,
    waited_again: u64,
    in_doubt: u64,
    resent: u64,
    restarts: u64,
    prepared_over_restarts: u64,
    shown: [u64; 3],
    lost_with_temporaries: [u64; 3],
}

impl Model {
    /// A broker without any destination, whose store may or may not bring bodies back.
    #[must_use]
    pub fn new(settings: Settings, can_load: bool) -> Self {
        Self {
            settings,
            now: Timestamp::default(),
            connections: Vec::new(),
            sessions: Vec::new(),
            producers: Vec::new(),
            subscriptions: Vec::new(),
            browsers: Vec::new(),
            browser_drains: Vec::new(),
            temporaries: Vec::new(),
            lasting: Vec::new(),
            replaced: Vec::new(),
            lasted: [0; 4],
            watchers: Vec::new(),
            changes: Vec::new(),
            prefetches: Vec::new(),
            windows: [0; 4],
            by_policy: [0; 2],
            transactions: Vec::new(),
            entries: Vec::new(),
            entering: Vec::new(),
            parked: Vec::new(),
            batches: Vec::new(),
            durable: Durable::default(),
            can_load,
            loading: Vec::new(),
            turned_back: Vec::new(),
            store_is_full: false,
            room_is_back: false,
            takes_sends: false,
            last_sequences: Vec::new(),
            tickets: Tickets::default(),
            orders: Vec::new(),
            copying: Vec::new(),
            managed: [0; 7],
            unserved: Vec::new(),
            acknowledging: None,
            counts: Vec::new(),
            runs: Vec::new(),
            arrivals: 0,
            just_admitted: Vec::new(),
            instances: 0,
            positions: 0,
            overdrawn: 0,
            passed: 0,
            loaded: 0,
            set_aside: 0,
            doomed: 0,
            killers: 0,
            put_offs: 0,
            waited_again: 0,
            in_doubt: 0,
            resent: 0,
            restarts: 0,
            prepared_over_restarts: 0,
            shown: [0; 3],
            lost_with_temporaries: [0; 3],
        }
    }

    /// The latest moment that the model has heard of.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// All messages in queues.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// All subscriptions that may still settle something.
    #[must_use]
    pub fn subscriptions(&self) -> &[Subscription] {
        &self.subscriptions
    }

    /// The transactions that have not ended.
    #[must_use]
    pub fn transactions(&self) -> &[Transaction] {
        &self.transactions
    }

    /// The destinations that were ever counted at.
    pub fn destinations(&self) -> impl Iterator<Item = &Destination> {
        self.counts.iter().map(|(destination, _)| destination)
    }

    /// The operations of the batches that the store has not answered, oldest first.
    pub fn unanswered_batches(&self) -> impl Iterator<Item = (BatchId, &[StoreOperation])> {
        self.batches.iter().map(|batch| (batch.id, &*batch.operations))
    }

    /// How many sends went before others that waited for memory, because their transaction may free some.
    #[must_use]
    pub fn overdrawn(&self) -> u64 {
        self.overdrawn
    }

    /// How many sends passed one that was larger than all memory.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// How many sends met a full store and waited after that.
    #[must_use]
    pub fn waited_again(&self) -> u64 {
        self.waited_again
    }

    /// How many sends were refused as it was not known what becomes of the first.
    #[must_use]
    pub fn in_doubt(&self) -> u64 {
        self.in_doubt
    }

    /// Sends that wait for memory or for the store.
    #[must_use]
    pub fn parked(&self) -> &[Parked] {
        &self.parked
    }

    fn connection_is_open(&self, key: ConnectionKey) -> bool {
        self.connections.iter().any(|connection| connection.key == key && connection.is_open)
    }

    fn subscription(&self, key: &SubscriptionKey) -> Option<&Subscription> {
        self.subscriptions.iter().find(|subscription| subscription.key == *key)
    }

    fn subscription_mut(&mut self, key: &SubscriptionKey) -> Option<&mut Subscription> {
        self.subscriptions.iter_mut().find(|subscription| subscription.key == *key)
    }

    fn count(&mut self, destination: &Destination) -> &mut Counts {
        let index = self.counts.iter().position(|(counted, _)| counted == destination).unwrap_or_else(|| {
            self.counts.push((destination.clone(), Counts::default()));
            self.counts.len() - 1
        });
        &mut self.counts[index].1
    }
}
