//! A broker whose clock stands still until it is advanced, and containers on it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use corriere::containers::{ContainerSettings, DeliveryEnd, DeliveryObserver, EndKind, ListenerContainer};
use corriere::core::{
    AcknowledgeMode, Clock, ConnectionFactory, Delivery, Destination, Message, Properties, SendOptions,
    Session, Timestamp,
};
use corriere::listener::{Concurrency, ListenerDef, ListenerDestination};
use corriere::{Bean, Beans};
use corriere_broker::store::MemoryStore;
use corriere_broker::{Broker, Counts, Settings};
use corriere_templates::{JsonConverter, MessageConverter};
use tokio::sync::{Semaphore, watch};

/// After this a test is taken to hang.
pub(crate) const HANG: Duration = Duration::from_secs(120);

pub(crate) fn queue(name: &str) -> Destination {
    Destination::queue(name).unwrap()
}

/// Waits for `condition`, which no one announces.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let waited = tokio::time::timeout(HANG, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    assert!(waited.await.is_ok(), "waited in vain until {what}");
}

/// Completes the future or fails the test.
pub(crate) async fn in_time<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(HANG, future).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// A broker, a session to send and look with, and the ends of all deliveries.
pub(crate) struct World {
    pub(crate) broker: Broker,
    pub(crate) clock: Clock,
    pub(crate) factory: ConnectionFactory,
    pub(crate) session: Session,
    pub(crate) log: Bean<Log>,
    pub(crate) ends: Arc<Ends>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let name = format!("listeners-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let clock = Clock::manual(Timestamp(1_000_000));
        let broker = Broker::start(&name, settings, Arc::new(MemoryStore), clock.clone()).unwrap();
        let factory = ConnectionFactory::from_url(&format!("vm://{name}")).unwrap();
        let connection = factory.create_connection().await.unwrap();
        connection.start().unwrap();
        let session = connection.create_session(AcknowledgeMode::Auto).await.unwrap();
        Self { broker, clock, factory, session, log: Bean::new(Log::default()), ends: Arc::default() }
    }

    pub(crate) fn settings(&self, listener: &ListenerDef) -> ContainerSettings {
        let destination = match listener.destination {
            ListenerDestination::Queue(name) => queue(name),
            ListenerDestination::Topic(name) => Destination::topic(name).unwrap(),
        };
        let mut beans = Beans::new();
        beans.add("log", self.log.clone()).unwrap();
        beans.add("factory", Bean::new(self.factory.clone())).unwrap();
        let converter = Arc::new(JsonConverter::default());
        ContainerSettings {
            acknowledge: listener.acknowledge.unwrap_or_default(),
            concurrency: listener.concurrency.unwrap_or(Concurrency::ONE),
            send_to: listener.send_to.map(queue),
            beans: Arc::new(beans),
            clock: self.clock.clone(),
            observer: Some(self.ends.clone()),
            back_off: Duration::from_millis(10),
            maximum_back_off: Duration::from_millis(50),
            ..ContainerSettings::new(self.factory.clone(), destination, converter)
        }
    }

    pub(crate) async fn start(&self, listener: ListenerDef) -> ListenerContainer {
        self.start_with(listener, |_| {}).await
    }

    pub(crate) async fn start_with(
        &self,
        listener: ListenerDef,
        change: impl FnOnce(&mut ContainerSettings),
    ) -> ListenerContainer {
        let mut settings = self.settings(&listener);
        change(&mut settings);
        let container = ListenerContainer::start(listener, settings).unwrap();
        in_time("the container to be ready", container.ready()).await;
        container
    }

    /// Sends the JSON of a text.
    pub(crate) async fn send(&self, to: &str, text: &str) {
        self.send_message(to, &json(text)).await;
    }

    pub(crate) async fn send_message(&self, to: &str, message: &Message) {
        self.session.send(&queue(to), message, &SendOptions::default()).await.unwrap();
    }

    pub(crate) fn counts(&self, name: &str) -> Counts {
        self.broker.counts(&queue(name)).unwrap_or_default()
    }

    pub(crate) async fn until_empty(&self, name: &str) {
        until("the queue is empty", || self.counts(name).pending == 0).await;
        assert!(self.counts(name).are_conserved());
    }

    /// Everything that is in a queue, which is empty after this.
    pub(crate) async fn drain(&self, name: &str) -> Vec<Delivery> {
        let consumer = self.session.create_consumer(&queue(name)).await.unwrap();
        let mut all = Vec::new();
        while let Some(delivery) = consumer.receive_no_wait().await.unwrap() {
            all.push(delivery);
        }
        all
    }

    /// The texts of everything in a queue, with their delivery counts.
    pub(crate) async fn left_in(&self, name: &str) -> Vec<(String, u32)> {
        self.drain(name).await.iter().map(|delivery| (text_of(delivery), delivery.count())).collect()
    }

    /// Passes redelivery delays until the queue has settled `deliveries` runs.
    pub(crate) async fn pass_delays_until(&self, ended: usize) {
        while self.ends.all().len() < ended {
            let before = self.ends.all().len();
            self.clock.advance(Duration::from_secs(2));
            self.ends.wait_for(before + 1).await;
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A blocking listener that still waits would keep a failed test's runtime from ending.
        self.log.gate.close();
    }
}

pub(crate) fn start_broker(name: &str, clock: &Clock) -> Broker {
    Broker::start(name, Settings::default(), Arc::new(MemoryStore), clock.clone()).unwrap()
}

pub(crate) fn json(text: &str) -> Message {
    JsonConverter::default().to_message(&text).unwrap()
}

pub(crate) fn text_of(message: &Message) -> String {
    let converter: &dyn MessageConverter = &JsonConverter::default();
    converter.decode(message).unwrap()
}

pub(crate) fn text_property(properties: &Properties, name: &str) -> String {
    match properties.get(name) {
        Some(corriere::core::Value::String(text)) => text.to_string(),
        other => panic!("{name} is {other:?}"),
    }
}

/// What the listeners of a test have seen, and a gate that they wait at.
#[derive(Debug)]
pub(crate) struct Log {
    seen: watch::Sender<Vec<String>>,
    pub(crate) gate: Semaphore,
}

impl Default for Log {
    fn default() -> Self {
        Self { seen: watch::Sender::new(Vec::new()), gate: Semaphore::new(0) }
    }
}

impl Log {
    pub(crate) fn add(&self, text: impl Into<String>) {
        self.seen.send_modify(|seen| seen.push(text.into()));
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.seen.borrow().clone()
    }

    pub(crate) async fn wait_for(&self, count: usize) -> Vec<String> {
        let mut seen = self.seen.subscribe();
        in_time("the listeners", seen.wait_for(|seen| seen.len() >= count)).await.unwrap().clone()
    }

    /// Waits until the test opens the gate for one more.
    pub(crate) async fn pass_gate(&self) {
        self.gate.acquire().await.expect("the test is still there").forget();
    }
}

/// The ends of all deliveries.
#[derive(Debug)]
pub(crate) struct Ends(watch::Sender<Vec<DeliveryEnd>>);

impl Default for Ends {
    fn default() -> Self {
        Self(watch::Sender::new(Vec::new()))
    }
}

impl DeliveryObserver for Ends {
    fn ended(&self, end: &DeliveryEnd) {
        self.0.send_modify(|ends| ends.push(end.clone()));
    }
}

impl Ends {
    pub(crate) fn all(&self) -> Vec<DeliveryEnd> {
        self.0.borrow().clone()
    }

    pub(crate) fn kinds(&self) -> Vec<EndKind> {
        self.all().iter().map(|end| end.kind).collect()
    }

    pub(crate) async fn wait_for(&self, count: usize) -> Vec<DeliveryEnd> {
        let mut ends = self.0.subscribe();
        in_time("ends of deliveries", ends.wait_for(|ends| ends.len() >= count)).await.unwrap().clone()
    }
}

/// Deliveries that a listener has put aside.
#[derive(Debug, Default)]
pub(crate) struct Kept(pub(crate) Mutex<Vec<Delivery>>);
