//! A broker, a factory and a clock for one test.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use corriere_broker::store::{Completion, MemoryStore, MessageStore, StoreOperation, Sweep};
use corriere_broker::{Broker, Counts, Settings};
use corriere_core::{Clock, ConnectionFactory, Destination, RedeliveryPolicy, Timestamp};
use corriere_templates::{JmsTemplate, JmsTemplateBuilder, ReceiveTimeout};

/// A broker with a clock that only the test moves.
pub(crate) struct Bench {
    pub(crate) broker: Broker,
    pub(crate) clock: Clock,
    pub(crate) factory: ConnectionFactory,
}

impl Bench {
    /// Two redeliveries, without delay.
    pub(crate) fn start() -> Self {
        Self::with_store(Arc::new(MemoryStore))
    }

    pub(crate) fn with_store(store: Arc<dyn MessageStore>) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!("templates-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let clock = Clock::manual(Timestamp(1_000_000));
        let broker = Broker::start(&name, settings(), store, clock.clone()).unwrap();
        let factory = ConnectionFactory::from_url(&format!("vm://{name}")).unwrap().with_clock(clock.clone());
        Self { broker, clock, factory }
    }

    /// A template on the bench's factory for the queue `orders`, which does not wait.
    pub(crate) fn builder(&self) -> JmsTemplateBuilder {
        JmsTemplate::builder(self.factory.clone())
            .default_destination("orders")
            .receive_timeout(ReceiveTimeout::NoWait)
    }

    pub(crate) fn template(&self) -> JmsTemplate {
        self.builder().build().unwrap()
    }

    /// Another factory for the same broker.
    pub(crate) fn other_factory(&self) -> ConnectionFactory {
        ConnectionFactory::from_url(&format!("vm://{}", self.broker.name())).unwrap()
    }

    pub(crate) fn counts(&self, queue: &str) -> Counts {
        self.broker.counts(&Destination::queue(queue).unwrap()).unwrap_or_default()
    }
}

pub(crate) fn settings() -> Settings {
    let redelivery = RedeliveryPolicy {
        maximum_redeliveries: Some(2),
        initial_delay: Duration::ZERO,
        delay: Duration::ZERO,
        ..RedeliveryPolicy::default()
    };
    Settings { redelivery, ..Settings::default() }
}

/// `future`, which has to end long before it is a hang.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(120), future).await.expect("this should not hang")
}

/// Waits until `condition` holds.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let holds = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), holds).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// Lets all other tasks of this thread run until they wait.
pub(crate) async fn others_run() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// A store that completes nothing before it is told to.
#[derive(Default)]
pub(crate) struct GatedStore {
    waiting: Mutex<Vec<Completion>>,
    is_open: Mutex<bool>,
}

impl GatedStore {
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.lock().unwrap().len()
    }

    /// Completes what waits, and from now on everything at once.
    pub(crate) fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.complete_waiting();
    }

    pub(crate) fn complete_waiting(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap());
        for completion in waiting {
            completion(Ok(()), Sweep::Ends);
        }
    }
}

impl std::fmt::Debug for GatedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GatedStore")
    }
}

impl MessageStore for GatedStore {
    fn submit(&self, _batch: Vec<StoreOperation>, completion: Completion) {
        if *self.is_open.lock().unwrap() {
            completion(Ok(()), Sweep::Ends);
        } else {
            self.waiting.lock().unwrap().push(completion);
        }
    }
}
