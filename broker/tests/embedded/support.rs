//! Sinks, stores and commands.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use corriere_broker::store::{Completion, MemoryStore, MessageStore, StoreError, StoreOperation, Sweep};
use corriere_broker::{Broker, Settings};
use corriere_core::provider::{
    Ack, AckKind, Command, Confirmation, ConnectOptions, Credit, DeliverySink, Dispatch, Event,
    ProviderConnection, ProviderError, SendMessage, SessionMode, Subscribe, provider_for,
};
use corriere_core::{
    Clock, ConnectionId, Destination, Message, MessageId, ProducerId, SessionId, SubscriptionId,
};
use tokio::sync::Notify;

pub(crate) const DONE: Result<Confirmation, ProviderError> = Ok(Confirmation::Done);

/// Keeps what comes, and may answer from within.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    pub(crate) deliveries: Mutex<Vec<Dispatch>>,
    events: Mutex<Vec<Event>>,
    arrived: Notify,
    /// The connection through which each delivery is acknowledged from within the sink.
    pub(crate) answers: OnceLock<Weak<dyn ProviderConnection>>,
    pub(crate) panics: AtomicBool,
}

impl DeliverySink for Sink {
    fn deliver(&self, batch: Vec<Dispatch>) {
        assert!(!self.panics.load(Ordering::Relaxed), "a sink that panics");
        for dispatch in &batch {
            if let Some(connection) = self.answers.get().and_then(Weak::upgrade) {
                drop(connection.submit(acknowledge(dispatch.number, AckKind::Standard)));
            }
        }
        self.deliveries.lock().unwrap().extend(batch);
        self.arrived.notify_one();
    }

    fn notify(&self, event: Event) {
        self.events.lock().unwrap().push(event);
    }
}

impl Sink {
    pub(crate) fn sequences(&self) -> Vec<u64> {
        let deliveries = self.deliveries.lock().unwrap();
        deliveries
            .iter()
            .map(|dispatch| dispatch.message.headers().message_id.as_ref().unwrap().sequence)
            .collect()
    }

    pub(crate) async fn wait_for(&self, count: usize) {
        within(async {
            while self.deliveries.lock().unwrap().len() < count {
                self.arrived.notified().await;
            }
        })
        .await;
    }

    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.events.lock().unwrap()[..], [Event::Lost { .. }])
    }
}

/// Keeps completions back until it is told, as a disk does.
#[derive(Debug, Default)]
pub(crate) struct SlowStore {
    waiting: Mutex<Vec<Waiting>>,
}

pub(crate) struct Waiting(Completion);

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Waiting")
    }
}

impl MessageStore for SlowStore {
    fn submit(&self, _: Vec<StoreOperation>, completion: Completion) {
        self.waiting.lock().unwrap().push(Waiting(completion));
    }
}

impl SlowStore {
    pub(crate) fn complete(&self, outcome: &Result<(), StoreError>) {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap());
        for Waiting(completion) in waiting {
            completion(outcome.clone(), Sweep::Ends);
        }
    }
}

#[derive(Debug)]
pub(crate) struct PanickingStore;

impl MessageStore for PanickingStore {
    fn submit(&self, _: Vec<StoreOperation>, _: Completion) {
        panic!("a store that panics");
    }
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(120), future).await.expect("this should not hang")
}

pub(crate) fn start(name: &str) -> Broker {
    Broker::start(name, Settings::default(), Arc::new(MemoryStore), Clock::system()).unwrap()
}

pub(crate) fn orders() -> Destination {
    Destination::queue("orders").unwrap()
}

/// Each message is of a producer of its own, so that none is one that was sent before.
pub(crate) fn message(sequence: u64) -> Message {
    static PRODUCERS: AtomicU64 = AtomicU64::new(0);
    let producer = format!("p{}", PRODUCERS.fetch_add(1, Ordering::Relaxed));
    let mut message = Message::text("body");
    message.headers_mut().destination = Some(orders());
    message.headers_mut().message_id = Some(MessageId { producer: producer.into(), sequence });
    message
}

pub(crate) fn send(message: Message) -> Command {
    let message = Arc::new(message);
    Command::Send(SendMessage { producer: ProducerId(1), message, transaction: None, deadline: None })
}

pub(crate) fn acknowledge(number: u64, kind: AckKind) -> Command {
    let subscription = SubscriptionId(1);
    Command::Acknowledge(Ack { subscription, first: number, last: number, kind, transaction: None })
}

pub(crate) fn options(client_id: Option<&str>) -> ConnectOptions {
    ConnectOptions {
        connection: ConnectionId::unique(),
        client_id: client_id.map(Into::into),
        user: None,
        password: None,
    }
}

/// A connection with session 1 and producer 1.
pub(crate) async fn connect_sender(name: &str) -> (Arc<dyn ProviderConnection>, Arc<Sink>) {
    let sink = Arc::new(Sink::default());
    let provider = provider_for("vm", &format!("//{name}")).unwrap();
    let dyn_sink = Arc::clone(&sink) as Arc<dyn DeliverySink>;
    let connection = provider.connect(options(None), dyn_sink).await.unwrap();
    open_sender(&*connection).await;
    (connection, sink)
}

/// The same with subscription 1 on `orders`.
pub(crate) async fn connect(name: &str) -> (Arc<dyn ProviderConnection>, Arc<Sink>) {
    let (connection, sink) = connect_sender(name).await;
    open_reader(&*connection).await;
    (connection, sink)
}

pub(crate) async fn open_sender(connection: &dyn ProviderConnection) {
    let session = SessionId(1);
    let open_session = Command::OpenSession { session, mode: SessionMode::Auto };
    assert_eq!(within(connection.submit(open_session)).await, DONE);
    let producer = ProducerId(1);
    let open_producer = Command::OpenProducer { producer, session, identity: "p".into(), destination: None };
    assert_eq!(within(connection.submit(open_producer)).await, DONE);
}

pub(crate) async fn open_reader(connection: &dyn ProviderConnection) {
    assert_eq!(within(connection.submit(Command::OpenSubscription(Box::new(reader(10))))).await, DONE);
}

/// Subscription 1, to the orders.
pub(crate) fn reader(prefetch: u32) -> Subscribe {
    Subscribe {
        subscription: SubscriptionId(1),
        session: SessionId(1),
        destination: orders(),
        credit: Credit::Window { prefetch, extension: None },
        selector: None,
        no_local: false,
        is_default_credit: false,
        durable_name: None,
        redelivery: None,
    }
}
