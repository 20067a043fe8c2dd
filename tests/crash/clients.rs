//! The clients of a history: what each has open and in its hands, and what it says to the broker.

mod durable;
mod ending;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use corriere_broker::machine::{ConnectionKey, Input, Ticket};
use corriere_broker::store::Recovered;
use corriere_core::id::Xid;
use corriere_core::provider::{
    Ack, AckKind, Cause, CauseKind, Command, Credit, Dispatch, SendMessage, SessionMode, Subscribe,
};
use corriere_core::{
    ConnectionId, DeliveryMode, Destination, Message, MessageId, Priority, ProducerId, RedeliveryPolicy,
    SessionId, SubscriptionId, TransactionId,
};

use crate::history::{Failing, Work};
use crate::ledger::{Judgement, Name, Origin, Violation};
use crate::world::World;
use corriere_tests::random::Random;

/// All that clients have open.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    pub(crate) connections: Vec<Connection>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) consumers: Vec<Consumer>,
    /// Branches that were prepared, asked for or found, and wait for their outcome.
    pub(crate) branches: Vec<Branch>,
}

#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) key: ConnectionKey,
    identity: ConnectionId,
    client_id: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) connection: ConnectionKey,
    id: SessionId,
    pub(crate) work: Work,
    producer: ProducerId,
    identity: Arc<str>,
    sequence: u64,
    transaction: Option<TransactionId>,
}

#[derive(Clone, Debug)]
pub(crate) struct Consumer {
    connection: ConnectionKey,
    session: SessionId,
    subscription: SubscriptionId,
    pub(crate) from: Origin,
    epoch: u32,
    last_handed_over: u64,
    buffer: VecDeque<Dispatch>,
    /// Handed to the application, and nothing said of it.
    in_hands: VecDeque<Dispatch>,
    /// Acknowledged in the transaction of its session.
    acknowledged: Vec<Dispatch>,
}

#[derive(Clone, Debug)]
pub(crate) struct Branch {
    xid: Xid,
    /// Its prepare, unless it was found prepared.
    prepare: Option<Ticket>,
}

/// A message to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) priority: u8,
    pub(crate) persistent: bool,
    pub(crate) size: u32,
    pub(crate) live: Option<u16>,
}

impl Clients {
    /// The process that they were connected to has ended.
    pub(crate) fn forget_all(&mut self, recovered: &Recovered) {
        let branches =
            recovered.prepared.iter().map(|branch| Branch { xid: branch.xid.clone(), prepare: None });
        *self = Self { branches: branches.collect(), ..Self::default() };
    }
}

impl World {
    pub(crate) fn connect(&mut self) -> Result<ConnectionKey, Violation> {
        let key = ConnectionKey(self.number());
        let identity = ConnectionId::foreign(&format!("ID:crash-{}", key.0));
        let client_id = self.clients.free_client_id();
        self.clients.connections.push(Connection { key, identity: identity.clone(), client_id });
        self.input(Input::Connect { connection: key, identity, client_id: client_id.map(Into::into) })?;
        Ok(key)
    }

    pub(crate) fn open_session(&mut self, connection: ConnectionKey, work: Work) -> Judgement {
        let (id, producer) = (SessionId(self.number()), ProducerId(self.number()));
        let mode = if work == Work::Alone { SessionMode::Client } else { SessionMode::Transacted };
        self.command(connection, Command::OpenSession { session: id, mode })?;
        let identity: Arc<str> = format!("crash-{}:{id}", connection.0).into();
        let open = Command::OpenProducer {
            producer,
            session: id,
            identity: Arc::clone(&identity),
            destination: None,
        };
        self.command(connection, open)?;
        let session = Session { connection, id, work, producer, identity, sequence: 0, transaction: None };
        self.clients.sessions.push(session);
        Ok(())
    }

    pub(crate) fn subscribe(
        &mut self,
        session: usize,
        from: &Destination,
        prefetch: u32,
        policy: &RedeliveryPolicy,
    ) -> Judgement {
        let from = Origin::place(from.clone());
        let ticket = self.ticket();
        self.consume(session, (from, false), ticket, prefetch, policy)
    }

    fn consume(
        &mut self,
        session: usize,
        (from, no_local): (Origin, bool),
        ticket: Ticket,
        prefetch: u32,
        policy: &RedeliveryPolicy,
    ) -> Judgement {
        let (connection, session) =
            (self.clients.sessions[session].connection, self.clients.sessions[session].id);
        let subscription = SubscriptionId(self.number());
        let (destination, durable_name) = (from.destination.clone(), from.name());
        self.ledger.subscribed(&destination, policy.maximum_redeliveries.unwrap_or(u32::MAX));
        self.clients.consumers.push(Consumer {
            connection,
            session,
            subscription,
            from,
            epoch: 0,
            last_handed_over: 0,
            buffer: VecDeque::new(),
            in_hands: VecDeque::new(),
            acknowledged: Vec::new(),
        });
        let subscribe = Subscribe {
            subscription,
            session,
            destination,
            credit: Credit::Window { prefetch, extension: None },
            selector: None,
            no_local,
            is_default_credit: false,
            durable_name,
            redelivery: Some(policy.clone().into()),
        };
        self.submit(connection, ticket, Command::OpenSubscription(Box::new(subscribe)))
    }

    pub(crate) fn deliver(&mut self, connection: ConnectionKey, dispatch: &Dispatch) -> Judgement {
        if self.is_over() {
            return Ok(());
        }
        let consumer = self.clients.consumers.iter_mut().find(|consumer| {
            consumer.connection == connection && consumer.subscription == dispatch.subscription
        });
        let Some(consumer) = consumer else {
            return Err(Violation(format!("a delivery for nobody: {dispatch:?}")));
        };
        if dispatch.epoch == consumer.epoch {
            let from = consumer.from.clone();
            consumer.buffer.push_back(dispatch.clone());
            self.ledger.delivered(&from, dispatch)?;
        }
        Ok(())
    }

    /// The transaction of a session, begun if there is none.
    fn transaction(&mut self, session: usize) -> Result<Option<TransactionId>, Violation> {
        let Session { connection, work, transaction, .. } = self.clients.sessions[session].clone();
        if transaction.is_some() || work == Work::Alone {
            return Ok(transaction);
        }
        let number = self.number();
        let transaction = match work {
            Work::Distributed => TransactionId::Distributed(Xid {
                format: 7,
                global: number.to_be_bytes().to_vec().into(),
                branch: vec![1].into(),
            }),
            Work::Alone | Work::Local => TransactionId::Local(number),
        };
        self.command(connection, Command::Begin { transaction: transaction.clone() })?;
        let session = &mut self.clients.sessions[session];
        session.transaction = Some(transaction.clone());
        if work == Work::Distributed {
            // Branches may end in any order; order is kept for each producer within one.
            session.identity = format!("crash-xid:{number}").into();
            session.sequence = 0;
        }
        Ok(Some(transaction))
    }

    fn name(&self, connection: ConnectionKey, transaction: &TransactionId) -> Name {
        match transaction {
            TransactionId::Distributed(xid) => Name::Branch(xid.clone()),
            TransactionId::Local(number) => {
                let known = self.clients.connections.iter().find(|known| known.key == connection);
                Name::Local(known.expect("an open connection").identity.clone(), *number)
            }
        }
    }

    pub(crate) fn send(&mut self, session: usize, to: &Destination, draft: &Draft) -> Judgement {
        let transaction = self.transaction(session)?;
        let now = self.now;
        let client = &mut self.clients.sessions[session];
        client.sequence += 1;
        let id = MessageId { producer: Arc::clone(&client.identity), sequence: client.sequence };
        let (producer, connection) = (client.producer, client.connection);
        let mut message = Message::bytes(body(&id, draft.size));
        message.properties_mut_unchecked().set_unchecked("kind", "crash".into());
        let headers = message.headers_mut();
        headers.destination = Some(to.clone());
        headers.message_id = Some(id);
        headers.timestamp = now;
        headers.expiration = draft.live.map(|live| now.saturating_add(Duration::from_millis(live.into())));
        headers.priority = Priority::new(draft.priority).expect("0 to 9");
        headers.delivery_mode =
            if draft.persistent { DeliveryMode::Persistent } else { DeliveryMode::NonPersistent };
        let message = Arc::new(message);
        let ticket = self.ticket();
        let name = transaction.as_ref().map(|transaction| self.name(connection, transaction));
        self.ledger.sent(ticket, &message, name.as_ref(), self.clients.client_id(connection));
        let send = SendMessage { producer, message, transaction, deadline: None };
        self.submit(connection, ticket, Command::Send(send))
    }

    pub(crate) fn hand_over(&mut self, consumer: usize, count: usize) -> Judgement {
        let state = &mut self.clients.consumers[consumer];
        let (connection, subscription) = (state.connection, state.subscription);
        for _ in 0..count {
            if self.is_over() {
                return Ok(());
            }
            let state = &mut self.clients.consumers[consumer];
            let Some(dispatch) = state.buffer.pop_front() else { return Ok(()) };
            let number = dispatch.number;
            self.ledger.handed_over(&state.from, &id_of(&dispatch));
            self.command(connection, Command::HandedOver { subscription, number, mark: None })?;
            let is_over = self.is_over();
            let state = &mut self.clients.consumers[consumer];
            state.last_handed_over = number;
            // What the process ended in may not be noted, and what was noted before may not be there any more.
            if !is_over {
                state.in_hands.push_back(dispatch);
            }
        }
        Ok(())
    }

    fn session_of(&self, consumer: usize) -> Option<usize> {
        let Consumer { connection, session, .. } = self.clients.consumers[consumer];
        self.clients.sessions.iter().position(|one| one.connection == connection && one.id == session)
    }

    /// Settles the first of what is in the application's hands.
    pub(crate) fn acknowledge(&mut self, consumer: usize, count: usize) -> Judgement {
        let Some(session) = self.session_of(consumer) else { return Ok(()) };
        if self.clients.consumers[consumer].in_hands.is_empty() {
            return Ok(());
        }
        let transaction = self.transaction(session)?;
        let state = &mut self.clients.consumers[consumer];
        let count = count.min(state.in_hands.len());
        let settled: Vec<_> = state.in_hands.drain(..count).collect();
        let (connection, from) = (state.connection, state.from.clone());
        if transaction.is_some() {
            state.acknowledged.extend(settled.iter().cloned());
        }
        let ack = Ack {
            subscription: state.subscription,
            first: settled[0].number,
            last: settled[settled.len() - 1].number,
            kind: AckKind::Standard,
            transaction: transaction.clone(),
        };
        let name = transaction.map(|transaction| self.name(connection, &transaction));
        let ticket = self.ticket();
        if from.is_lasting() {
            let ids: Vec<_> = settled.iter().map(id_of).collect();
            self.ledger.settled(&from, &ids, ticket, self.stamp + 1, name.as_ref());
        }
        self.submit(connection, ticket, Command::Acknowledge(ack))
    }

    /// Gives back all that is in the application's hands, beginning with the first; `count` of it has failed.
    pub(crate) fn give_back(
        &mut self,
        consumer: usize,
        delay: Option<u16>,
        failing: Failing,
        given: &[Dispatch],
    ) -> Judgement {
        let (Some(first), Some(last)) = (given.first(), given.last()) else { return Ok(()) };
        let kind = match failing {
            Failing::Handler => CauseKind::Failure,
            Failing::Conversion => CauseKind::Conversion,
            Failing::Resource => CauseKind::Resource,
        };
        let cause = Cause { kind, text: "the handler failed".into(), listener: Some("on_order".into()) };
        let state = &mut self.clients.consumers[consumer];
        // What was not handed over is taken back with it.
        state.buffer.clear();
        state.epoch += 1;
        let ack = Ack {
            subscription: state.subscription,
            first: first.number,
            last: last.number,
            kind: AckKind::Redelivered {
                delay: delay.map(|millis| Duration::from_millis(millis.into())),
                cause,
            },
            transaction: None,
        };
        let connection = state.connection;
        if failing == Failing::Handler {
            let from = state.from.clone();
            for dispatch in given {
                self.ledger.failed(&from, &id_of(dispatch), self.stamp + 1, dispatch.delivery_count);
            }
        }
        self.command(connection, Command::Acknowledge(ack)).map(drop)
    }

    /// Gives back so many of the last that are in the application's hands.
    pub(crate) fn give_back_last(
        &mut self,
        consumer: usize,
        count: usize,
        delay: Option<u16>,
        failing: Failing,
    ) -> Judgement {
        let state = &mut self.clients.consumers[consumer];
        let given = state.in_hands.split_off(state.in_hands.len().saturating_sub(count));
        self.give_back(consumer, delay, failing, &Vec::from(given))
    }

    /// Sends the first in the application's hands to the dead letters.
    pub(crate) fn condemn(&mut self, consumer: usize) -> Judgement {
        let state = &mut self.clients.consumers[consumer];
        let Some(dispatch) = state.in_hands.pop_front() else { return Ok(()) };
        let ack = Ack {
            subscription: state.subscription,
            first: dispatch.number,
            last: dispatch.number,
            kind: AckKind::Poison { cause: Cause::failure("never again") },
            transaction: None,
        };
        let (connection, from) = (state.connection, state.from.clone());
        let ticket = self.ticket();
        self.ledger.condemned(&from, &id_of(&dispatch), ticket);
        self.submit(connection, ticket, Command::Acknowledge(ack))
    }

    /// The process dies by a kill: what each consumer was handed last counts, unless it is settled.
    pub(crate) fn count_what_is_in_hands(&mut self) {
        for consumer in &self.clients.consumers {
            let last = consumer.in_hands.back();
            if let Some(dispatch) = last.filter(|last| last.number == consumer.last_handed_over) {
                self.ledger.attempted(&consumer.from, &id_of(dispatch), dispatch.delivery_count);
            }
        }
    }

    /// All that one consumer has waiting, taken without being handed over.
    pub(crate) fn take_buffer(&mut self, consumer: usize) -> Vec<Dispatch> {
        self.clients.consumers[consumer].buffer.drain(..).collect()
    }

    /// Puts back what was looked at, to be settled in the usual way.
    pub(crate) fn hold(&mut self, consumer: usize, dispatch: Dispatch) {
        let state = &mut self.clients.consumers[consumer];
        self.ledger.handed_over(&state.from, &id_of(&dispatch));
        state.in_hands.push_back(dispatch);
    }
}

pub(crate) fn id_of(dispatch: &Dispatch) -> MessageId {
    dispatch.message.headers().message_id.clone().expect("a message with an id")
}

/// Bytes that no other message has.
fn body(id: &MessageId, size: u32) -> Vec<u8> {
    let seed = id.producer.bytes().fold(id.sequence, |seed, byte| seed.rotate_left(5) ^ u64::from(byte));
    let mut random = Random::of(seed, 2);
    (0..size.div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).take(size as usize).collect()
}
