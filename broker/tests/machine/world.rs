//! A machine with a store that can be held back, inboxes instead of sinks, and a clock that follows the machine's own
//! wishes. After every step the counts of every destination are checked for conservation.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use corriere_broker::machine::{
    Action, Batch, BatchId, ConnectionKey, Effects, Input, Machine, Order, SetAside, SlotNote, Ticket,
};
use corriere_broker::store::{
    Arrival, Attempt, AttemptSlot, Recovered, StoreError, StoreOperation, StoredId,
};
use corriere_broker::{Counts, OperationCounts as Managed, Settings};
use corriere_core::provider::{
    Ack, AckKind, Cause, Command, Confirmation, Credit, Dispatch, Event, ProviderError, SendMessage,
    SessionMode, Subscribe,
};
use corriere_core::{
    ConnectionId, Destination, DestinationKind, Message, ProducerId, RedeliveryPolicy, SessionId,
    SubscriptionId, Timestamp, TransactionId,
};

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

pub(crate) fn window(prefetch: u32) -> Credit {
    Credit::Window { prefetch, extension: None }
}

pub(crate) fn failed() -> AckKind {
    AckKind::Redelivered { delay: None, cause: Cause::failure("E1") }
}

pub(crate) fn poison() -> AckKind {
    AckKind::Poison { cause: Cause { listener: Some("on_order".into()), ..Cause::failure("E1") } }
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

    /// Has an operator do something with the messages of a queue whose sequences are chosen. What comes of it is in `managed`.
    pub(crate) fn order(
        &mut self,
        queue: &Destination,
        action: Action,
        chosen: impl Fn(u64) -> bool,
    ) -> Ticket {
        let page = self.machine.look_into(queue).expect("a queue");
        let shown = self.machine.show(queue, page, usize::MAX).map(|(shown, _)| shown).unwrap_or_default();
        let messages = shown.into_iter().filter_map(|shown| {
            let message = shown.body.or_else(|| self.stored_message(shown.location.stored()))?;
            let sequence = message.headers().message_id.as_ref()?.sequence;
            chosen(sequence).then_some((shown.location, message))
        });
        let order = Order { queue: queue.clone(), action, messages: messages.collect() };
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.step(Input::Manage { ticket, order });
        ticket
    }

    /// The same, for what is done in its own step.
    #[track_caller]
    pub(crate) fn manage(
        &mut self,
        queue: &Destination,
        action: Action,
        chosen: impl Fn(u64) -> bool,
    ) -> Managed {
        let ticket = self.order(queue, action, chosen);
        let (told, outcome) = self.managed.pop().expect("told in its own step");
        assert_eq!(told, ticket);
        let outcome = outcome.unwrap();
        let Managed { matched, done, skipped, without_destination, no_room, .. } = outcome;
        assert_eq!(matched, done + skipped + without_destination + no_room, "{outcome:?}");
        outcome
    }

    /// A command that is confirmed in its own step.
    pub(crate) fn ask(&mut self, connection: ConnectionKey, command: Command) -> Outcome {
        let ticket = self.submit(connection, command);
        self.outcomes.remove(&ticket).expect("confirmed in its own step")
    }

    #[track_caller]
    pub(crate) fn done(&mut self, connection: ConnectionKey, command: Command) {
        assert_eq!(self.ask(connection, command), Ok(Confirmation::Done));
    }

    /// A connection with session 1 and producer 1.
    pub(crate) fn connect(&mut self) -> ConnectionKey {
        self.connect_as(None)
    }

    /// The same under a client id.
    pub(crate) fn connect_as(&mut self, client_id: Option<&str>) -> ConnectionKey {
        self.last_connection += 1;
        let connection = ConnectionKey(self.last_connection);
        let identity = ConnectionId::foreign(&format!("ID:connection-{}", self.last_connection));
        self.step(Input::Connect { connection, identity, client_id: client_id.map(Into::into) });
        self.done(connection, Command::OpenSession { session: SessionId(1), mode: SessionMode::Client });
        let producer = Command::OpenProducer {
            producer: ProducerId(1),
            session: SessionId(1),
            identity: "ID:test".into(),
            destination: None,
        };
        self.done(connection, producer);
        connection
    }

    /// A new session on a connection.
    pub(crate) fn session(&mut self, connection: ConnectionKey) -> SessionId {
        self.last_number += 1;
        let session = SessionId(100 + self.last_number);
        self.done(connection, Command::OpenSession { session, mode: SessionMode::Client });
        session
    }

    /// A subscription in a session of its own, with the broker's policy.
    pub(crate) fn consumer(
        &mut self,
        connection: ConnectionKey,
        destination: &Destination,
        credit: Credit,
    ) -> Consumer {
        self.consumer_with(connection, destination, credit, None)
    }

    pub(crate) fn consumer_with(
        &mut self,
        connection: ConnectionKey,
        destination: &Destination,
        credit: Credit,
        redelivery: Option<RedeliveryPolicy>,
    ) -> Consumer {
        let session = self.session(connection);
        self.last_number += 1;
        let subscription = SubscriptionId(self.last_number);
        let redelivery = redelivery.map(Into::into);
        let subscribe = Subscribe { redelivery, ..subscribe(session, subscription, destination, credit) };
        // Confirmed by now, unless bodies have to be read back for it.
        let ticket = self.submit(connection, Command::OpenSubscription(Box::new(subscribe)));
        assert!(self.outcome(ticket).is_none_or(|outcome| *outcome == Ok(Confirmation::Done)));
        Consumer { connection, session, subscription }
    }

    /// A browser in session 1 of a connection, without credit.
    #[track_caller]
    pub(crate) fn browser(&mut self, connection: ConnectionKey, destination: &Destination) -> Consumer {
        self.last_number += 1;
        let (session, subscription) = (SessionId(1), SubscriptionId(self.last_number));
        let browser = Consumer { connection, session, subscription };
        self.browsers.push(browser);
        let destination = destination.clone();
        self.done(connection, Command::Browse { subscription, session, destination, selector: None });
        browser
    }

    #[track_caller]
    pub(crate) fn grant(&mut self, consumer: Consumer, credit: u32) {
        let subscription = consumer.subscription;
        self.done(consumer.connection, Command::Grant { subscription, credit });
    }

    /// Whether a browser has come to its end.
    pub(crate) fn has_ended(&self, browser: Consumer) -> bool {
        self.browse_ends.iter().any(|(ended, _)| *ended == browser)
    }

    /// A temporary queue of a connection.
    #[track_caller]
    pub(crate) fn temporary_queue(&mut self, connection: ConnectionKey) -> Destination {
        self.last_number += 1;
        let destination = temporary(DestinationKind::Queue, connection, self.last_number);
        let created = self.ask(connection, Command::CreateTemporary { destination: destination.clone() });
        assert_eq!(created, Ok(Confirmation::Created(destination.clone())));
        destination
    }

    pub(crate) fn send(&mut self, connection: ConnectionKey, message: Message) -> Ticket {
        self.submit(connection, send(message, None))
    }

    pub(crate) fn send_in(
        &mut self,
        connection: ConnectionKey,
        transaction: u64,
        message: Message,
    ) -> Ticket {
        self.submit(connection, send(message, Some(TransactionId::Local(transaction))))
    }

    /// What came to a consumer since this was asked last.
    pub(crate) fn received(&mut self, consumer: Consumer) -> Vec<Dispatch> {
        self.inboxes.remove(&(consumer.connection, consumer.subscription)).unwrap_or_default()
    }

    #[track_caller]
    pub(crate) fn ack(&mut self, consumer: Consumer, first: u64, last: u64, kind: AckKind) {
        self.done(consumer.connection, acknowledge(consumer, first, last, kind, None));
    }

    #[track_caller]
    pub(crate) fn ack_in(&mut self, consumer: Consumer, transaction: u64, first: u64, last: u64) {
        let transaction = Some(TransactionId::Local(transaction));
        self.done(consumer.connection, acknowledge(consumer, first, last, AckKind::Standard, transaction));
    }

    #[track_caller]
    pub(crate) fn begin(&mut self, connection: ConnectionKey, transaction: u64) {
        self.done(connection, Command::Begin { transaction: TransactionId::Local(transaction) });
    }

    pub(crate) fn commit(&mut self, connection: ConnectionKey, transaction: u64) -> Ticket {
        let transaction = TransactionId::Local(transaction);
        self.submit(connection, Command::Commit { transaction, one_phase: true })
    }

    #[track_caller]
    pub(crate) fn roll_back(&mut self, connection: ConnectionKey, transaction: u64) {
        let transaction = TransactionId::Local(transaction);
        self.done(connection, Command::Rollback { transaction, cause: None });
    }

    #[track_caller]
    pub(crate) fn close(&mut self, consumer: Consumer, last_handed_over: u64) {
        let subscription = consumer.subscription;
        self.done(consumer.connection, Command::CloseSubscription { subscription, last_handed_over });
    }

    #[track_caller]
    pub(crate) fn close_session(&mut self, consumer: Consumer) {
        self.done(consumer.connection, Command::CloseSession { session: consumer.session });
    }

    #[track_caller]
    pub(crate) fn hand_over(&mut self, consumer: Consumer, number: u64) {
        let subscription = consumer.subscription;
        self.done(consumer.connection, Command::HandedOver { subscription, number, mark: None });
    }

    pub(crate) fn counts(&self, destination: &Destination) -> Counts {
        self.machine.counts(destination).unwrap_or_default()
    }

    /// The sequences of a queue's messages, in their order.
    pub(crate) fn pending(&self, destination: &Destination) -> Vec<u64> {
        self.machine.pending(destination).iter().map(|id| id.sequence).collect()
    }
}

pub(crate) fn subscribe(
    session: SessionId,
    subscription: SubscriptionId,
    destination: &Destination,
    credit: Credit,
) -> Subscribe {
    Subscribe {
        subscription,
        session,
        destination: destination.clone(),
        credit,
        selector: None,
        no_local: false,
        is_default_credit: false,
        durable_name: None,
        redelivery: None,
    }
}

pub(crate) fn send(message: Message, transaction: Option<TransactionId>) -> Command {
    Command::Send(SendMessage {
        producer: ProducerId(1),
        message: Arc::new(message),
        transaction,
        deadline: None,
    })
}

pub(crate) fn acknowledge(
    consumer: Consumer,
    first: u64,
    last: u64,
    kind: AckKind,
    transaction: Option<TransactionId>,
) -> Command {
    Command::Acknowledge(Ack { subscription: consumer.subscription, first, last, kind, transaction })
}

fn is_moved_in(operation: &StoreOperation) -> bool {
    operation.arrival() == Some(Arrival::MovedIn)
}
