//! A broker for each test, and what most tests do with one.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use corriere_broker::store::MemoryStore;
use corriere_broker::{Broker, Counts, Settings};
use corriere_core::{
    AcknowledgeMode, Clock, Connection, ConnectionFactory, Consumer, Destination, RedeliveryPolicy, Session,
    Timestamp,
};

pub(crate) use corriere_tests::receiving::*;

/// A broker whose time is the test's. When it goes, the counts of all its destinations must be conserved.
#[derive(Debug)]
pub(crate) struct TestBroker {
    pub(crate) broker: Broker,
    pub(crate) clock: Clock,
}

/// The settings that the cases are written for: two redeliveries, without delay.
pub(crate) fn settings() -> Settings {
    let redelivery = RedeliveryPolicy {
        maximum_redeliveries: Some(2),
        initial_delay: Duration::ZERO,
        delay: Duration::ZERO,
        ..RedeliveryPolicy::default()
    };
    Settings { redelivery, ..Settings::default() }
}

impl TestBroker {
    pub(crate) fn start() -> Self {
        Self::with(settings())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let name = format!("client-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let clock = Clock::manual(Timestamp(1_700_000_000_000));
        let broker = Broker::start(&name, settings, Arc::new(MemoryStore), clock.clone()).unwrap();
        Self { broker, clock }
    }

    /// A factory with these URL options.
    pub(crate) fn factory(&self, options: &str) -> ConnectionFactory {
        ConnectionFactory::from_url(&format!("vm://{}?{options}", self.broker.name())).unwrap()
    }

    /// A started connection whose consumers have a prefetch of 10.
    pub(crate) async fn connect(&self) -> Connection {
        let factory = self.factory("jms.prefetchPolicy.all=10");
        let connection = factory.create_connection().await.unwrap();
        connection.start().unwrap();
        connection
    }

    /// A session on a connection of its own, which lives as long as it does.
    pub(crate) async fn session(&self, mode: AcknowledgeMode) -> Session {
        self.connect().await.create_session(mode).await.unwrap()
    }

    /// Sends texts from a connection of their own.
    pub(crate) async fn send<const N: usize>(&self, destination: &Destination, texts: [&str; N]) {
        let session = self.session(AcknowledgeMode::Auto).await;
        for text in texts {
            send_text(&session, destination, text).await;
        }
    }

    /// Sends `m1`, `m2` and so on.
    pub(crate) async fn send_numbered(&self, destination: &Destination, count: usize) {
        let session = self.session(AcknowledgeMode::Auto).await;
        for number in 1..=count {
            send_text(&session, destination, &format!("m{number}")).await;
        }
    }

    pub(crate) fn counts(&self, destination: &Destination) -> Counts {
        self.broker.counts(destination).unwrap_or_default()
    }

    /// Waits until the counts of a destination are as wanted.
    pub(crate) async fn until(&self, destination: &Destination, wanted: impl Fn(&Counts) -> bool) {
        let what = format!("the counts of {destination}");
        eventually(&what, || {
            let counts = self.counts(destination);
            if wanted(&counts) { Ok(()) } else { Err(format!("{counts:?}")) }
        })
        .await;
    }

    /// Takes all that is ready at a destination, with the texts, counts and flags.
    pub(crate) async fn drain(&self, destination: &Destination) -> Vec<Seen> {
        let session = self.session(AcknowledgeMode::Auto).await;
        let consumer = session.create_consumer(destination).await.unwrap();
        let mut seen = Vec::new();
        while let Some(delivery) = within(consumer.receive_no_wait()).await.unwrap() {
            seen.push(Seen::of(&delivery));
        }
        consumer.close().await.unwrap();
        seen
    }
}

impl Drop for TestBroker {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        for destination in self.broker.destinations() {
            let counts = self.counts(&destination);
            assert!(counts.are_conserved(), "{destination} made something up or lost it: {counts:?}");
        }
    }
}

/// The text of what can be received without waiting.
pub(crate) async fn now(consumer: &Consumer) -> Option<String> {
    within(consumer.receive_no_wait()).await.unwrap().map(|delivery| text(&delivery).to_owned())
}

/// Lets all other tasks of this thread run until they wait.
pub(crate) async fn others_run() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// What is logged on this thread from now on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn capture() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    pub(crate) fn lines_with(&self, text: &str) -> usize {
        String::from_utf8_lossy(&self.0.lock().unwrap()).lines().filter(|line| line.contains(text)).count()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
