//! A machine with a store that can be held back, inboxes instead of sinks, and a clock that follows the machine's own
//! wishes. After every step the counts of every destination are checked for conservation.

mod acting;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use corriere_broker::machine::{
    Batch, BatchId, ConnectionKey, Effects, Input, Machine, SetAside, SlotNote, Ticket,
};
use corriere_broker::store::{
    Arrival, Attempt, AttemptSlot, Recovered, StoreError, StoreOperation, StoredId,
};
use corriere_broker::{Counts, OperationCounts as Managed, Settings};
use corriere_core::provider::{Command, Confirmation, Dispatch, Event, ProviderError};
use corriere_core::{Destination, Message, RedeliveryPolicy, SessionId, SubscriptionId, Timestamp};

pub(crate) use self::acting::*;
pub(crate) use super::messages::*;

/// When worlds begin.
pub(crate) const NOW: Timestamp = Timestamp(1_000_000);

pub(crate) type Outcome = Result<Confirmation, ProviderError>;

/// A subscription of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Consumer {
    pub(crate) connection: ConnectionKey,
    pub(crate) session: SessionId,
    pub(crate) subscription: SubscriptionId,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) machine: Machine,
    pub(crate) now: Timestamp,
    /// Batches of which the store has not said anything.
    pub(crate) unstored: VecDeque<BatchId>,
    /// Whether each of these is a move, which may be refused for want of room while sends are not.
    moves: VecDeque<bool>,
    /// All that the store was ever given.
    pub(crate) operations: Vec<StoreOperation>,
    /// Whether batches wait for [`World::store`]; otherwise each is stored at once.
    pub(crate) hold_store: bool,
    /// How often the store was told to take sends again.
    pub(crate) reopened: u32,
    pub(crate) wake_at: Option<Timestamp>,
    /// What is to be read back.
    pub(crate) loads: Vec<StoredId>,
    pub(crate) set_aside: Vec<SetAside>,
    /// Word of temporary destinations, to whom.
    pub(crate) changes: Vec<(ConnectionKey, Event)>,
    /// Browsers that came to their end, with how many messages each had been shown by then.
    pub(crate) browse_ends: Vec<(Consumer, usize)>,
    /// Word of slow consumers, to whom.
    pub(crate) slow_consumers: Vec<(ConnectionKey, Event)>,
    /// What became of what operators did.
    pub(crate) managed: Vec<(Ticket, Result<Managed, ProviderError>)>,
    /// What slots were to say, in order, and of which hand-over the machine knew.
    pub(crate) notes: Vec<SlotNote>,
    /// The same, plainly.
    pub(crate) attempts: Vec<(AttemptSlot, Option<Attempt>)>,
    outcomes: BTreeMap<Ticket, Outcome>,
    inboxes: BTreeMap<(ConnectionKey, SubscriptionId), Vec<Dispatch>>,
    browsers: Vec<Consumer>,
    last_ticket: u64,
    last_connection: u64,
    last_number: u64,
}

/// The policy of most tests: three deliveries, one second apart.
pub(crate) fn policy() -> RedeliveryPolicy {
    RedeliveryPolicy { maximum_redeliveries: Some(2), ..RedeliveryPolicy::default() }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Settings { redelivery: policy(), ..Settings::default() })
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self::on(Machine::new(settings))
    }

    /// On a store that brings bodies back.
    pub(crate) fn loading(settings: Settings) -> Self {
        Self::on(Machine::recovered(settings, Recovered::default(), true, NOW))
    }

    pub(crate) fn on(machine: Machine) -> Self {
        Self {
            machine,
            loads: Vec::new(),
            set_aside: Vec::new(),
            changes: Vec::new(),
            browse_ends: Vec::new(),
            browsers: Vec::new(),
            slow_consumers: Vec::new(),
            managed: Vec::new(),
            notes: Vec::new(),
            attempts: Vec::new(),
            now: NOW,
            unstored: VecDeque::new(),
            moves: VecDeque::new(),
            operations: Vec::new(),
            hold_store: false,
            reopened: 0,
            wake_at: None,
            outcomes: BTreeMap::new(),
            inboxes: BTreeMap::new(),
            last_ticket: 0,
            last_connection: 0,
            last_number: 0,
        }
    }

    pub(crate) fn step(&mut self, input: Input) {
        let effects = self.machine.step(self.now, input);
        self.perform(effects);
        while !self.hold_store && !self.unstored.is_empty() {
            self.store(Ok(()));
        }
    }

    fn perform(&mut self, effects: Effects) {
        self.wake_at = effects.wake_at;
        self.reopened += u32::from(effects.takes_sends);
        for Batch { id: batch, operations, .. } in effects.store {
            assert!(!operations.is_empty(), "a batch without operations");
            self.unstored.push_back(batch);
            self.moves.push_back(operations.iter().any(is_moved_in));
            self.operations.extend(operations);
        }
        self.loads.extend(effects.load);
        self.set_aside.extend(effects.set_aside);
        self.notes.extend(effects.attempts.iter().copied());
        self.attempts.extend(effects.attempts.iter().map(|note| (note.slot, note.attempt)));
        self.changes.extend(effects.changes);
        self.managed.extend(effects.managed);
        self.slow_consumers.extend(effects.slow_consumers);
        for (connection, batch) in effects.deliveries {
            assert!(!batch.is_empty(), "a delivery of nothing");
            for dispatch in batch {
                self.inboxes.entry((connection, dispatch.subscription)).or_default().push(dispatch);
            }
        }
        for key in effects.browse_ends {
            let browser =
                self.browsers.iter().find(|browser| (browser.connection, browser.subscription) == key);
            let browser = *browser.expect("a browser");
            let shown = self.inboxes.get(&key).map_or(0, Vec::len);
            assert!(self.browse_ends.iter().all(|(other, _)| *other != browser), "{browser:?} ended twice");
            self.browse_ends.push((browser, shown));
        }
        for (ticket, outcome) in effects.confirmations {
            assert!(self.outcomes.insert(ticket, outcome).is_none(), "{ticket:?} confirmed twice");
        }
        for subscription in self.machine.durable_subscriptions() {
            assert!(subscription.counts.are_conserved(), "{subscription:?}");
        }
        for destination in self.machine.destinations() {
            let counts = self.machine.counts(&destination).unwrap();
            assert!(counts.are_conserved(), "{destination}: {counts:?}");
            assert!(counts.in_flight <= counts.pending, "{destination}: {counts:?}");
        }
    }

    /// The sequences of all that the store was given to append, again and again.
    pub(crate) fn appended(&self) -> Vec<u64> {
        let sequence = |operation: &StoreOperation| match operation {
            StoreOperation::Append { message, .. } => {
                message.headers().message_id.as_ref().map(|id| id.sequence)
            }
            _ => None,
        };
        self.operations.iter().filter_map(sequence).collect()
    }

    /// The message that was stored under a name.
    pub(crate) fn stored_message(&self, wanted: StoredId) -> Option<Arc<Message>> {
        self.operations.iter().find_map(|operation| match operation {
            StoreOperation::Append { stored, message, .. } if *stored == wanted => Some(Arc::clone(message)),
            StoreOperation::Publish { stored, subscriptions, message, .. } => {
                let is_it = (0..subscriptions.len()).any(|place| stored.with(place) == wanted);
                is_it.then(|| Arc::clone(message))
            }
            _ => None,
        })
    }

    /// Brings back all that was asked for, and all that is asked for by that. Answers how many these were.
    pub(crate) fn bring_back(&mut self) -> usize {
        let mut count = 0;
        while !self.loads.is_empty() {
            let wanted = std::mem::take(&mut self.loads);
            count += wanted.len();
            let messages =
                wanted.into_iter().map(|stored| (stored, Ok(self.stored_message(stored).unwrap()))).collect();
            self.step(Input::Loaded { messages });
        }
        count
    }

    /// The store is done with the oldest batch.
    pub(crate) fn store(&mut self, outcome: Result<(), StoreError>) {
        let batch = self.unstored.pop_front().expect("a batch that is not stored");
        self.moves.pop_front();
        let effects = self.machine.step(self.now, Input::Stored { batch, outcome });
        self.perform(effects);
    }

    /// Whether the oldest batch that is not stored is a move.
    pub(crate) fn is_move_next(&self) -> bool {
        self.moves.front() == Some(&true)
    }

    /// Lets time pass. The machine is woken when it asked for it, not earlier and not besides.
    pub(crate) fn advance(&mut self, by: Duration) {
        let end = self.now.saturating_add(by);
        while let Some(wake_at) = self.wake_at.filter(|wake_at| *wake_at <= end) {
            self.now = self.now.max(wake_at);
            self.step(Input::Tick);
            assert!(self.wake_at.is_none_or(|next| next > wake_at), "woken at {wake_at} for nothing");
        }
        self.now = end;
    }

    /// A command whose outcome is looked at later.
    pub(crate) fn submit(&mut self, connection: ConnectionKey, command: Command) -> Ticket {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.step(Input::Command { connection, ticket, command });
        ticket
    }

    pub(crate) fn forget_outcomes(&mut self) {
        self.outcomes.clear();
    }

    /// What a command has come to by now.
    pub(crate) fn outcome(&self, ticket: Ticket) -> Option<&Outcome> {
        self.outcomes.get(&ticket)
    }

    pub(crate) fn counts(&self, destination: &Destination) -> Counts {
        self.machine.counts(destination).unwrap_or_default()
    }

    /// The sequences of a queue's messages, in their order.
    pub(crate) fn pending(&self, destination: &Destination) -> Vec<u64> {
        self.machine.pending(destination).iter().map(|id| id.sequence).collect()
    }
}

fn is_moved_in(operation: &StoreOperation) -> bool {
    operation.arrival() == Some(Arrival::MovedIn)
}
