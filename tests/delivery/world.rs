//! A machine and its model in lockstep, with the clients, the clock and the store around them.

mod asking;
mod operating;
mod store;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::describe;
use crate::ledger::Ledger;
use corriere_broker::machine::{ConnectionKey, Input, Machine, SlotNote, Ticket};
use corriere_broker::store::{Attempt, AttemptSlot, Recovered, StoreTransaction, StoredId};
use corriere_broker::{Counts, Settings};
use corriere_core::provider::{
    Ack, AckKind, Cause, CauseKind, Command, Confirmation, Credit, Dispatch, ProviderError, SendMessage,
    SessionMode, Subscribe,
};
use corriere_core::{
    ConnectionId, DeliveryMode, Destination, Message, MessageId, Priority, ProducerId, RedeliveryPolicy,
    SessionId, SubscriptionId, Timestamp, TransactionId, Xid,
};
use corriere_tests::model::{Judgement, Model, Violation};

/// A session of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionKey {
    pub(crate) connection: ConnectionKey,
    pub(crate) session: SessionId,
}

/// Those of clients that have durable subscriptions.
const CLIENT_IDS: [&str; 2] = ["c0", "c1"];

/// What a client keeps of its session.
#[derive(Debug)]
pub(crate) struct ClientSession {
    pub(crate) key: SessionKey,
    pub(crate) transaction: Option<TransactionId>,
    producer: ProducerId,
    identity: Arc<str>,
    sequence: u64,
    /// The last message, if the store keeps it, and the transaction that it was sent in.
    last: Option<(Arc<Message>, Option<TransactionId>)>,
}

/// The whole of it.
#[derive(Debug)]
pub(crate) struct World {
    machine: Machine,
    pub(crate) model: Model,
    settings: Settings,
    now: Timestamp,
    numbers: u64,
    wake_at: Option<Timestamp>,
    pub(crate) store_waits: bool,
    can_load: bool,
    /// What is to be read back.
    loads: Vec<StoredId>,
    /// How many of those cannot be.
    pub(crate) unreadable: u8,
    pub(crate) store_is_full: bool,
    /// Whether the store has refused a send, and so refuses all until it is told otherwise.
    refuses_sends: bool,
    /// What is noted of deliveries.
    slots: BTreeMap<AttemptSlot, Attempt>,
    /// Transactions of which the store failed something.
    spoilt: Vec<StoreTransaction>,
    pub(crate) connections: Vec<ConnectionKey>,
    pub(crate) sessions: Vec<ClientSession>,
    /// All temporary destinations that were ever made.
    pub(crate) temporaries: Vec<Destination>,
    /// All that was dispatched, in order.
    pub(crate) dispatches: Vec<(ConnectionKey, Dispatch)>,
    /// All that was confirmed, in order.
    pub(crate) confirmations: Vec<(Ticket, Result<Confirmation, ProviderError>)>,
    /// How many deliveries were acknowledged as each of the kinds.
    pub(crate) acknowledged_as: [u64; 9],
    ledger: Ledger,
    log: Vec<String>,
}

/// A message to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Letter {
    pub(crate) priority: u8,
    pub(crate) persistent: bool,
    pub(crate) size: usize,
    pub(crate) live: Option<u64>,
    pub(crate) transacted: bool,
}

/// What a subscription wants besides messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    /// Whether it leaves its prefetch to the broker.
    pub(crate) is_default: bool,
    pub(crate) policy: Option<RedeliveryPolicy>,
    pub(crate) no_local: bool,
    /// The durable subscription that it consumes from.
    pub(crate) durable_name: Option<Arc<str>>,
}

impl Wishes {
    /// Another redelivery policy than its destination has.
    pub(crate) fn redelivered(policy: RedeliveryPolicy) -> Self {
        Self { policy: Some(policy), ..Self::default() }
    }
}

impl Default for Letter {
    fn default() -> Self {
        Self { priority: 4, persistent: true, size: 10, live: None, transacted: false }
    }
}

impl World {
    /// Bodies stay in memory, and there is no restart.
    pub(crate) fn new(settings: Settings) -> Self {
        Self::with(settings, false)
    }

    pub(crate) fn with(settings: Settings, can_load: bool) -> Self {
        Self {
            machine: Machine::recovered(
                settings.clone(),
                Recovered::default(),
                can_load,
                Timestamp(1_000_000),
            ),
            model: Model::new(settings.clone(), can_load),
            can_load,
            loads: Vec::new(),
            unreadable: 0,
            store_is_full: false,
            refuses_sends: false,
            slots: BTreeMap::new(),
            settings,
            now: Timestamp(1_000_000),
            numbers: 0,
            wake_at: None,
            store_waits: false,
            spoilt: Vec::new(),
            connections: Vec::new(),
            sessions: Vec::new(),
            temporaries: Vec::new(),
            dispatches: Vec::new(),
            confirmations: Vec::new(),
            acknowledged_as: [0; 9],
            ledger: Ledger::default(),
            log: Vec::new(),
        }
    }

    /// What happened so far, one line each.
    pub(crate) fn log(&self) -> String {
        self.log.join("\n")
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn counts(&self, destination: &Destination) -> Counts {
        self.machine.counts(destination).unwrap_or_default()
    }

    /// One input, through both; then the store answers, unless it waits.
    pub(crate) fn input(&mut self, input: Input) -> Judgement {
        self.step(input)?;
        if !self.store_waits {
            self.answer_all()?;
        }
        Ok(())
    }

    fn step(&mut self, input: Input) -> Judgement {
        self.log.push(format!("{} {}", self.now.0 % 1_000_000, describe::input(&input)));
        self.model.take(self.now, &input);
        let step = catch_unwind(AssertUnwindSafe(|| self.machine.step(self.now, input)));
        let Ok(effects) = step else { return Err(Violation("the machine panicked".to_owned())) };
        describe::effects(&effects, &mut self.log);
        self.wake_at = effects.wake_at;
        self.model.check(&effects, &self.machine)?;
        self.refuses_sends &= !effects.takes_sends;
        self.loads.extend(&effects.load);
        for SlotNote { slot, attempt, .. } in &effects.attempts {
            match attempt {
                Some(attempt) => self.slots.insert(*slot, *attempt),
                None => self.slots.remove(slot),
            };
        }
        for (connection, batch) in effects.deliveries {
            for dispatch in batch {
                self.ledger.delivered(connection, &dispatch)?;
                self.dispatches.push((connection, dispatch));
            }
        }
        self.confirmations.extend(effects.confirmations);
        Ok(())
    }

    /// The end, when everything was consumed.
    pub(crate) fn check_end(&self) -> Judgement {
        self.model.check_end()?;
        self.ledger.check(&self.confirmations)
    }

    /// Time passes; the machine is woken whenever it asked to be.
    pub(crate) fn advance(&mut self, by: Duration) -> Judgement {
        let until = self.now.saturating_add(by);
        let mut wakes = 0;
        while let Some(wake_at) = self.wake_at.filter(|wake_at| *wake_at <= until) {
            wakes = if wake_at > self.now { 0 } else { wakes + 1 };
            if wakes > 3 {
                return Err(Violation(format!("the machine asks again and again to be woken at {wake_at}")));
            }
            self.now = self.now.max(wake_at);
            self.input(Input::Tick)?;
        }
        self.now = until;
        Ok(())
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn connect(&mut self) -> Result<ConnectionKey, Violation> {
        let connection = ConnectionKey(self.number());
        let identity = ConnectionId::foreign(&format!("ID:{}", connection.0));
        let client_id = self.free_client_id();
        self.ledger.connected(connection, client_id);
        let client_id = client_id.map(Into::into);
        self.input(Input::Connect { connection, identity, client_id })?;
        self.connections.push(connection);
        Ok(connection)
    }

    /// One of the two that have durable subscriptions, which no connection that is there has.
    fn free_client_id(&self) -> Option<&'static str> {
        let is_taken =
            |client_id: &&str| self.connections.iter().any(|it| self.client_id(*it) == Some(client_id));
        CLIENT_IDS.into_iter().find(|client_id| !is_taken(client_id))
    }

    pub(crate) fn client_id(&self, connection: ConnectionKey) -> Option<&'static str> {
        self.ledger.client_id(connection)
    }

    /// A session with a producer.
    pub(crate) fn open_session(&mut self, connection: ConnectionKey) -> Result<SessionKey, Violation> {
        let (session, producer) = (SessionId(self.number()), ProducerId(self.number()));
        let identity: Arc<str> = format!("P{}", producer.0).into();
        self.command(connection, Command::OpenSession { session, mode: SessionMode::Client })?;
        let open =
            Command::OpenProducer { producer, session, identity: Arc::clone(&identity), destination: None };
        self.command(connection, open)?;
        let key = SessionKey { connection, session };
        self.sessions.push(ClientSession {
            key,
            transaction: None,
            producer,
            identity,
            sequence: 0,
            last: None,
        });
        Ok(key)
    }

    pub(crate) fn subscribe(
        &mut self,
        session: SessionKey,
        destination: &Destination,
        credit: Credit,
        wishes: Wishes,
    ) -> Result<SubscriptionId, Violation> {
        let Wishes { is_default, policy, no_local, durable_name } = wishes;
        let subscription = SubscriptionId(self.number());
        let subscribe = Subscribe {
            subscription,
            session: session.session,
            destination: destination.clone(),
            credit,
            selector: None,
            no_local,
            is_default_credit: is_default,
            durable_name,
            redelivery: policy.map(Into::into),
        };
        self.command(session.connection, Command::OpenSubscription(Box::new(subscribe)))?;
        Ok(subscription)
    }

    pub(crate) fn send(
        &mut self,
        session: SessionKey,
        destination: &Destination,
        letter: Letter,
    ) -> Result<MessageId, Violation> {
        let transaction = if letter.transacted { Some(self.transaction(session)?) } else { None };
        let now = self.now;
        let client = self.session(session);
        client.last = None;
        client.sequence += 1;
        let id = MessageId { producer: Arc::clone(&client.identity), sequence: client.sequence };
        let producer = client.producer;
        let mut message = Message::bytes(vec![7; letter.size]);
        let headers = message.headers_mut();
        headers.destination = Some(destination.clone());
        headers.message_id = Some(id.clone());
        headers.timestamp = now;
        headers.expiration = letter.live.map(|live| now.saturating_add(Duration::from_millis(live)));
        headers.priority = Priority::new(letter.priority).expect("0 to 9");
        headers.delivery_mode =
            if letter.persistent { DeliveryMode::Persistent } else { DeliveryMode::NonPersistent };
        let message = Arc::new(message);
        if letter.persistent && !destination.is_temporary() {
            self.session(session).last = Some((Arc::clone(&message), transaction.clone()));
        }
        let send = SendMessage { producer, message, transaction, deadline: None };
        self.command(session.connection, Command::Send(send))?;
        Ok(id)
    }

    /// Sends the last message of a session again, unless it waits or its transaction is open, or nobody could know that it is the
    /// same: of what went to a topic only what was stored is recognised.
    pub(crate) fn resend(&mut self, session: SessionKey, transacted: bool) -> Judgement {
        let client = self.session(session);
        let producer = client.producer;
        let Some((message, within)) = client.last.clone() else { return Ok(()) };
        let is_open = within.is_some_and(|within| {
            self.model.transactions().iter().any(|transaction| {
                transaction.key.1 == within
                    && transaction.prepared.is_none()
                    && transaction.end_batch.is_none()
            })
        });
        let waits = self.model.parked().iter().any(|parked| parked.message == message);
        let is_to_topic = message.headers().destination.as_ref().is_some_and(Destination::is_topic);
        let is_another = is_to_topic && !self.model.is_recognised(session.connection, &message);
        if is_open || waits || is_another {
            return Ok(());
        }
        let transaction = if transacted { Some(self.transaction(session)?) } else { None };
        self.session(session).last = Some((Arc::clone(&message), transaction.clone()));
        let send = SendMessage { producer, message, transaction, deadline: None };
        self.command(session.connection, Command::Send(send))
    }

    /// Begins a distributed transaction in a session that has none.
    pub(crate) fn begin_distributed(&mut self, session: SessionKey) -> Judgement {
        if self.session(session).transaction.is_some() {
            return Ok(());
        }
        let global = self.number().to_be_bytes().to_vec().into();
        let transaction = TransactionId::Distributed(Xid { format: 1, global, branch: "b".into() });
        self.command(session.connection, Command::Begin { transaction: transaction.clone() })?;
        self.session(session).transaction = Some(transaction);
        Ok(())
    }

    /// The first phase of the session's transaction.
    pub(crate) fn prepare(&mut self, session: SessionKey, ends_first: bool) -> Judgement {
        let Some(transaction) = self.session(session).transaction.take() else { return Ok(()) };
        if ends_first {
            self.command(session.connection, Command::End { transaction: transaction.clone() })?;
        }
        self.command(session.connection, Command::Prepare { transaction: transaction.clone() })?;
        if matches!(transaction, TransactionId::Local(_)) && !ends_first {
            self.session(session).transaction = Some(transaction);
        }
        Ok(())
    }

    /// The outcome of a prepared transaction, by any connection.
    pub(crate) fn end_prepared(&mut self, connection: ConnectionKey, xid: Xid, commits: bool) -> Judgement {
        let transaction = TransactionId::Distributed(xid);
        self.command(
            connection,
            if commits {
                Command::Commit { transaction, one_phase: false }
            } else {
                Command::Rollback { transaction, cause: None }
            },
        )
    }

    /// Word on a range; `transacted` says it within the session's transaction.
    pub(crate) fn acknowledge(
        &mut self,
        session: SessionKey,
        subscription: SubscriptionId,
        range: std::ops::RangeInclusive<u64>,
        kind: AckKind,
        transacted: bool,
    ) -> Judgement {
        let transaction = if transacted { Some(self.transaction(session)?) } else { None };
        let (first, last) = range.into_inner();
        self.command(
            session.connection,
            Command::Acknowledge(Ack { subscription, first, last, kind, transaction }),
        )
    }

    /// The transaction of the session, begun if there is none.
    fn transaction(&mut self, session: SessionKey) -> Result<TransactionId, Violation> {
        if let Some(transaction) = &self.session(session).transaction {
            return Ok(transaction.clone());
        }
        let transaction = TransactionId::Local(self.number());
        self.command(session.connection, Command::Begin { transaction: transaction.clone() })?;
        self.session(session).transaction = Some(transaction.clone());
        Ok(transaction)
    }

    pub(crate) fn commit(&mut self, session: SessionKey) -> Judgement {
        let Some(transaction) = self.session(session).transaction.take() else { return Ok(()) };
        self.command(session.connection, Command::Commit { transaction, one_phase: true })
    }

    pub(crate) fn roll_back(&mut self, session: SessionKey) -> Judgement {
        let Some(transaction) = self.session(session).transaction.take() else { return Ok(()) };
        let cause = Some(Cause::failure("rolled back by hand"));
        self.command(session.connection, Command::Rollback { transaction, cause })
    }

    /// As the client does: its own rollback goes before it.
    pub(crate) fn close_session(&mut self, session: SessionKey) -> Judgement {
        self.roll_back(session)?;
        self.sessions.retain(|other| other.key != session);
        self.command(session.connection, Command::CloseSession { session: session.session })
    }

    pub(crate) fn close(&mut self, connection: ConnectionKey) -> Judgement {
        self.forget(connection);
        self.command(connection, Command::Close)
    }

    pub(crate) fn vanish(&mut self, connection: ConnectionKey) -> Judgement {
        self.forget(connection);
        self.input(Input::Vanished { connection })
    }

    pub(crate) fn command(&mut self, connection: ConnectionKey, command: Command) -> Judgement {
        let ticket = Ticket(self.number());
        let unsettled = match &command {
            Command::Acknowledge(ack) => self.model.unsettled(connection, ack.subscription),
            _ => Vec::new(),
        };
        if let Command::Acknowledge(ack) = &command {
            let count = unsettled.iter().filter(|number| (ack.first..=ack.last).contains(number)).count();
            self.acknowledged_as[place_of(&ack.kind)] += count as u64;
        }
        self.ledger.asked(connection, ticket, &command, &unsettled);
        self.input(Input::Command { connection, ticket, command })
    }

    fn forget(&mut self, connection: ConnectionKey) {
        self.connections.retain(|other| *other != connection);
        self.sessions.retain(|session| session.key.connection != connection);
    }

    fn session(&mut self, key: SessionKey) -> &mut ClientSession {
        self.sessions.iter_mut().find(|session| session.key == key).expect("an open session")
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }
}

/// Where a kind of acknowledgement is counted.
fn place_of(kind: &AckKind) -> usize {
    match kind {
        AckKind::Delivered => 0,
        AckKind::Poison { .. } => 1,
        AckKind::Standard => 2,
        AckKind::Redelivered { .. } => 3,
        AckKind::Individual => 4,
        AckKind::Unmatched => 5,
        AckKind::Expired => 6,
        AckKind::Retained => 7,
        AckKind::Undeliverable { .. } => 8,
    }
}

/// A failure of the application.
pub(crate) fn failure() -> Cause {
    Cause { kind: CauseKind::Failure, text: "the handler failed".into(), listener: Some("on_order".into()) }
}

/// A body that could not be converted.
pub(crate) fn conversion() -> Cause {
    Cause { kind: CauseKind::Conversion, text: "not a number".into(), listener: None }
}

/// The broker had no room for what the handler sent.
pub(crate) fn resource() -> Cause {
    Cause { kind: CauseKind::Resource, text: "no memory for the mail".into(), listener: None }
}

/// The queue of this name.
pub(crate) fn queue(name: &str) -> Destination {
    Destination::queue(name).expect("a name")
}
