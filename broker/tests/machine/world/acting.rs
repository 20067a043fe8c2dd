//! What connections and operators do in a world.

use std::sync::Arc;

use corriere_broker::OperationCounts as Managed;
use corriere_broker::machine::{Action, ConnectionKey, Input, Order, Ticket};
use corriere_core::provider::{
    Ack, AckKind, Cause, Command, Confirmation, Credit, Dispatch, SendMessage, SessionMode, Subscribe,
};
use corriere_core::{
    ConnectionId, Destination, DestinationKind, Message, ProducerId, RedeliveryPolicy, SessionId,
    SubscriptionId, TransactionId,
};

use super::{Consumer, Outcome, World};
use crate::messages::temporary;

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
