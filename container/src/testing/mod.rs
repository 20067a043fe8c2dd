//! Tests of listeners: an application with a broker and a clock of its own for each test. `#[corriere::test]` hands it in.
//!
//! Nothing here waits for time to pass: the clock moves only by [`RunningTestApp::advance`], and every wait is for
//! something to happen, with an upper bound that turns a hang into a failure.

mod observer;
mod running;
mod settled;

use std::any::type_name;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use corriere_broker::Broker;
use corriere_broker::store::MemoryStore;
use corriere_core::{Clock, Timestamp};
use tracing::level_filters::LevelFilter;

use crate::application::{Application, ApplicationBuilder, broker_settings};
use crate::config::Document;
use crate::listener::ListenerDef;
use observer::Ends;
pub use running::RunningTestApp;
pub use settled::{Counted, Settled};

/// 2026-01-01T00:00:00Z, where every test's clock stands at first.
const START: Timestamp = Timestamp(1_767_225_600_000);

/// The application of a test, before its start: no listeners but those that are named, a broker in memory that no other
/// test shares, and a clock that stands still.
#[must_use = "a test application does nothing before `start`"]
pub struct TestApp {
    document: Document,
    /// Keys that were set, which go over the document's whenever that is given.
    set: Vec<(String, config::ValueKind)>,
    /// What is to be added to the application, in the order in which it was said.
    additions: Vec<Addition>,
    listeners: Vec<ListenerDef>,
}

type Addition = Box<dyn FnOnce(ApplicationBuilder) -> ApplicationBuilder + Send>;

impl std::fmt::Debug for TestApp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Names only: a value may be a secret in a test as well.
        let set: Vec<_> = self.set.iter().map(|(key, _)| key).collect();
        let ids: Vec<_> = self.listeners.iter().map(|listener| listener.id).collect();
        f.debug_struct("TestApp")
            .field("document", &self.document)
            .field("set", &set)
            .field("listeners", &ids)
            .finish_non_exhaustive()
    }
}

impl TestApp {
    /// An application without configuration, listeners and beans.
    #[expect(clippy::new_without_default, reason = "a test application is made for a test, not by default")]
    pub fn new() -> Self {
        Self { document: Document::new(), set: Vec::new(), additions: Vec::new(), listeners: Vec::new() }
    }

    /// Takes the configuration of this TOML text. Its connection factories connect to the test's broker, whatever their
    /// URLs say; of the environment nothing is taken.
    ///
    /// # Panics
    /// When it is not TOML.
    #[track_caller]
    pub fn config(mut self, text: &str) -> Self {
        self.document =
            Document::from_text("the test's configuration", text).unwrap_or_else(|error| panic!("{error}"));
        self
    }

    /// Sets a key over the configuration, given before or after: `.set("broker.redelivery.maximum_redeliveries", 2)`.
    pub fn set(mut self, key: &str, value: impl Into<config::ValueKind>) -> Self {
        self.set.push((key.to_owned(), value.into()));
        self
    }

    /// Starts these listeners; all others stay out.
    pub fn listeners(mut self, listeners: impl IntoIterator<Item = ListenerDef>) -> Self {
        self.listeners.extend(listeners);
        self
    }

    /// Adds a bean under the name of its type.
    pub fn bean<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.named_bean(type_name::<T>(), value)
    }

    /// Adds a bean.
    pub fn named_bean<T: Send + Sync + 'static>(mut self, name: &str, value: T) -> Self {
        let name = name.to_owned();
        self.additions.push(Box::new(move |builder| builder.bean(&name, value)));
        self
    }

    /// Starts it.
    ///
    /// # Panics
    /// When it does not start, with everything that is wrong.
    pub async fn start(mut self) -> RunningTestApp {
        static NUMBER: AtomicU64 = AtomicU64::new(1);

        for (key, value) in self.set {
            self.document.set(key, value);
        }
        let clock = Clock::manual(START);
        let ids: Vec<&str> = self.listeners.iter().map(|listener| listener.id).collect();
        let configuration = self.document.read(&ids).unwrap_or_else(|error| panic!("{error}"));
        let table = configuration.broker.unwrap_or_default();
        let settings = broker_settings(&table);
        let dead_letters = settings.dead_letters;
        let name = format!("test-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let broker = Broker::start(&name, settings, Arc::new(MemoryStore), clock.clone())
            .unwrap_or_else(|error| panic!("the test's broker did not start: {error}"));

        let ends = Arc::new(Ends::default());
        let mut builder = Application::from_document(self.document)
            .connected_to(format!("vm://{name}"))
            .observed_by(Arc::clone(&ends) as _)
            .clock(clock.clone())
            .listeners(self.listeners);
        for addition in self.additions {
            builder = addition(builder);
        }
        let application =
            builder.start().await.unwrap_or_else(|error| panic!("the application did not start: {error:?}"));
        RunningTestApp::new(application, broker, dead_letters, clock, ends)
    }
}

/// What `#[corriere::test]` becomes: runs the test in a runtime of its own.
#[doc(hidden)]
pub fn run_test<F, T>(test: F) -> T::Output
where
    F: FnOnce(TestApp) -> T,
    T: Future,
{
    log_if_asked();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap_or_else(|error| panic!("the runtime of the test could not be started: {error}"));
    let output = runtime.block_on(test(TestApp::new()));
    // A blocking listener that hangs must not keep a test that is over.
    runtime.shutdown_background();
    output
}

/// With `RUST_LOG` set, the log is part of a test's output.
fn log_if_asked() {
    let level = std::env::var("RUST_LOG").ok().and_then(|level| level.trim().parse::<LevelFilter>().ok());
    if let Some(level) = level {
        let subscriber = tracing_subscriber::fmt().with_test_writer().with_max_level(level).finish();
        // This fails where there is a subscriber already, such as that of the test before.
        let _ = tracing::subscriber::set_global_default(subscriber);
    }
}
