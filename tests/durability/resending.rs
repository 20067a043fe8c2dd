//! A client that sends again what it has no confirmation of.

use std::sync::Arc;

use corriere_core::Message;
use corriere_core::id::{ConnectionId, MessageId, ProducerId, SessionId, TransactionId};
use corriere_core::provider::{
    Command, ConnectOptions, DeliverySink, Dispatch, Event, ProviderConnection, SendMessage, SessionMode,
    provider_for,
};

use crate::support::{End, Home, Running, queue, within};

#[derive(Debug)]
struct Nowhere;

impl DeliverySink for Nowhere {
    fn deliver(&self, _: Vec<Dispatch>) {}

    fn notify(&self, _: Event) {}
}

/// A producer that keeps its identity over connections.
struct Sender {
    connection: Arc<dyn ProviderConnection>,
}

const SESSION: SessionId = SessionId(1);
const PRODUCER: ProducerId = ProducerId(2);
const IDENTITY: &str = "ID:sender:1";

impl Sender {
    async fn connect(broker: &Running) -> Self {
        let provider = provider_for("vm", &format!("//{}", broker.broker.name())).unwrap();
        let options = ConnectOptions {
            connection: ConnectionId::unique(),
            client_id: None,
            user: None,
            password: None,
        };
        let connection = provider.connect(options, Arc::new(Nowhere)).await.unwrap();
        let sender = Self { connection };
        sender.done(Command::OpenSession { session: SESSION, mode: SessionMode::Auto }).await;
        let identity = IDENTITY.into();
        sender
            .done(Command::OpenProducer { producer: PRODUCER, session: SESSION, identity, destination: None })
            .await;
        sender
    }

    async fn done(&self, command: Command) {
        within(self.connection.submit(command)).await.unwrap();
    }

    async fn send(&self, sequence: u64, transaction: Option<&TransactionId>) {
        let mut message = Message::text(format!("m{sequence}"));
        let headers = message.headers_mut();
        headers.destination = Some(queue("q"));
        headers.message_id = Some(MessageId { producer: IDENTITY.into(), sequence });
        let message = Arc::new(message);
        let transaction = transaction.cloned();
        self.done(Command::Send(SendMessage { producer: PRODUCER, message, transaction, deadline: None }))
            .await;
    }
}

fn transaction(number: u64) -> TransactionId {
    TransactionId::Local(number)
}

async fn texts(broker: &Running) -> Vec<String> {
    broker.drain(&queue("q")).await.into_iter().map(|seen| seen.text).collect()
}

#[tokio::test]
async fn a_message_that_was_kept_is_taken_once() {
    for end in [End::Stop, End::Kill, End::PowerCut(5)] {
        let mut home = Home::recorded();
        let broker = home.start();
        let sender = Sender::connect(&broker).await;
        for sequence in 1..=3 {
            sender.send(sequence, None).await;
        }
        let broker = home.restart(broker, end);
        let sender = Sender::connect(&broker).await;
        for sequence in 2..=5 {
            sender.send(sequence, None).await;
        }
        assert_eq!(texts(&broker).await, ["m1", "m2", "m3", "m4", "m5"], "{end:?}");
        // Also when it was consumed meanwhile.
        let broker = home.restart(broker, End::Stop);
        let sender = Sender::connect(&broker).await;
        sender.send(5, None).await;
        sender.send(6, None).await;
        assert_eq!(texts(&broker).await, ["m6"], "{end:?}");
        broker.stop();
    }
}

#[tokio::test]
async fn on_another_connection_to_the_same_broker_too() {
    let home = Home::recorded();
    let broker = home.start();
    let first = Sender::connect(&broker).await;
    first.send(1, None).await;
    drop(first);
    let second = Sender::connect(&broker).await;
    second.send(1, None).await;
    second.send(2, None).await;
    assert_eq!(texts(&broker).await, ["m1", "m2"]);
    broker.stop();
}

#[tokio::test]
async fn what_was_never_committed_is_taken_when_it_comes_again() {
    for end in [End::Stop, End::Kill] {
        let mut home = Home::recorded();
        let broker = home.start();
        let sender = Sender::connect(&broker).await;
        sender.send(1, None).await;
        let transaction = transaction(1);
        sender.done(Command::Begin { transaction: transaction.clone() }).await;
        sender.send(2, Some(&transaction)).await;
        // Has the journal written as far as here.
        broker.send(&queue("other"), 1..=1).await;
        let broker = home.restart(broker, end);
        let sender = Sender::connect(&broker).await;
        sender.send(2, None).await;
        assert_eq!(texts(&broker).await, ["m1", "m2"], "{end:?}");
        broker.stop();
    }
}

#[tokio::test]
async fn what_was_committed_is_taken_once() {
    for end in [End::Stop, End::Kill] {
        let mut home = Home::recorded();
        let broker = home.start();
        let sender = Sender::connect(&broker).await;
        let transaction = transaction(1);
        sender.done(Command::Begin { transaction: transaction.clone() }).await;
        sender.send(1, Some(&transaction)).await;
        sender.send(2, Some(&transaction)).await;
        sender.done(Command::Commit { transaction: transaction.clone(), one_phase: true }).await;
        let broker = home.restart(broker, end);
        let sender = Sender::connect(&broker).await;
        sender.done(Command::Begin { transaction: transaction.clone() }).await;
        for sequence in 1..=3 {
            sender.send(sequence, Some(&transaction)).await;
        }
        sender.done(Command::Commit { transaction, one_phase: true }).await;
        assert_eq!(texts(&broker).await, ["m1", "m2", "m3"], "{end:?}");
        broker.stop();
    }
}
