//! A broker in this process, reached as `vm:`.

use std::sync::{Arc, Mutex};

use corriere_broker::store::MemoryStore;
use corriere_broker::{Broker, Settings};
use corriere_core::provider::{
    Ack, AckKind, Command, Confirmation, ConnectOptions, Credit, DeliverySink, Dispatch, Event, Provider,
    ProviderConnection, Send, SessionMode, Subscribe, provider_for,
};
use corriere_core::{
    Clock, ConnectionId, Destination, Message, MessageId, ProducerId, SessionId, SubscriptionId,
};

#[derive(Debug, Default)]
struct Sink {
    deliveries: Mutex<Vec<Dispatch>>,
    events: Mutex<Vec<Event>>,
}

impl DeliverySink for Sink {
    fn deliver(&self, batch: Vec<Dispatch>) {
        self.deliveries.lock().unwrap().extend(batch);
    }

    fn notify(&self, event: Event) {
        self.events.lock().unwrap().push(event);
    }
}

fn message(queue: &str, sequence: u64) -> Arc<Message> {
    let mut message = Message::text("body");
    message.headers_mut().destination = Some(Destination::queue(queue).unwrap());
    message.headers_mut().message_id = Some(MessageId { producer: "p".into(), sequence });
    Arc::new(message)
}

async fn connect(name: &str) -> (Arc<dyn ProviderConnection>, Arc<Sink>) {
    let sink = Arc::new(Sink::default());
    let options =
        ConnectOptions { connection: ConnectionId::unique(), client_id: None, user: None, password: None };
    let provider: Arc<dyn Provider> = provider_for("vm", &format!("//{name}")).unwrap();
    (provider.connect(options, Arc::clone(&sink) as Arc<dyn DeliverySink>).await.unwrap(), sink)
}

#[tokio::test]
async fn a_message_is_sent_delivered_and_settled() {
    let broker =
        Broker::start("whole_way", Settings::default(), Arc::new(MemoryStore), Clock::system()).unwrap();
    let (connection, sink) = connect("whole_way").await;
    let orders = Destination::queue("orders").unwrap();
    let session = SessionId(1);
    let done = Ok(Confirmation::Done);
    assert_eq!(connection.submit(Command::OpenSession { session, mode: SessionMode::Auto }).await, done);
    let producer = ProducerId(1);
    let open = Command::OpenProducer { producer, session, identity: "p".into(), destination: None };
    assert_eq!(connection.submit(open).await, done);
    let subscribe = Subscribe {
        subscription: SubscriptionId(1),
        session,
        destination: orders.clone(),
        credit: Credit::Window { prefetch: 10, extension: None },
        selector: None,
        no_local: false,
        durable_name: None,
        redelivery: None,
    };
    assert_eq!(connection.submit(Command::OpenSubscription(Box::new(subscribe))).await, done);
    let send = Send { producer, message: message("orders", 1), transaction: None, deadline: None };
    assert_eq!(connection.submit(Command::Send(send)).await, done);
    assert_eq!(sink.deliveries.lock().unwrap().len(), 1);
    let ack = Ack {
        subscription: SubscriptionId(1),
        first: 1,
        last: 1,
        kind: AckKind::Standard,
        transaction: None,
    };
    assert_eq!(connection.submit(Command::Acknowledge(ack)).await, done);
    let counts = broker.counts(&orders).unwrap();
    assert_eq!((counts.enqueued, counts.acknowledged, counts.pending), (1, 1, 0));
    assert!(counts.are_conserved());
}
