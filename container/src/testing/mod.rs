//! Tests of listeners: an application with a broker and a clock of its own for each test. `#[corriere::test]` hands it in.
//!
//! Nothing here waits for time to pass: the clock moves only by [`RunningTestApp::advance`], and every wait is for
//! something to happen, with an upper bound that turns a hang into a failure.
//!
//! The broker keeps its messages as it does on a disk, in files that are recorded in memory. So a test can have the process
//! die, or the power cut, and go on with what survived: [`RunningTestApp::crash`], [`RunningTestApp::power_cut`].

mod crashing;
mod observer;
mod running;
mod settled;
mod setup;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use corriere_broker::files::RecordedFiles;
use corriere_core::{Clock, Timestamp};
use tracing::level_filters::LevelFilter;

#[cfg(doc)]
use crate::application::ApplicationBuilder;
use crate::beans::Bean;
use crate::config::Document;
use crate::listener::ListenerDef;
pub use running::RunningTestApp;
pub use settled::{Counted, Settled};
use setup::{Addition, Setup};

/// 2026-01-01T00:00:00Z, where every test's clock stands at first.
const START: Timestamp = Timestamp(1_767_225_600_000);

/// The application of a test, before its start: no listeners but those that are named, a broker that no other test
/// shares, and a clock that stands still.
#[must_use = "a test application does nothing before `start`"]
pub struct TestApp {
    document: Document,
    /// Keys that were set, which go over the document's whenever that is given.
    set: Vec<(String, config::ValueKind)>,
    /// What is to be added to the application, in the order in which it was said.
    additions: Vec<Addition>,
    listeners: Vec<ListenerDef>,
}

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
    /// URLs say, and messages are kept in recorded files, whatever its `data_directory` says; of the environment nothing
    /// is taken.
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

    /// Adds a bean under the name of its type, as [`ApplicationBuilder::bean`] does. It is the test's: the same one is there
    /// after a crash, while those of the configuration are made anew.
    pub fn bean<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        let bean = Bean::new(value);
        self.additions.push(Box::new(move |builder| builder.shared_bean(bean.clone())));
        self
    }

    /// Adds a bean under a name of its own; as [`TestApp::bean`], it is there after a crash.
    pub fn named_bean<T: Send + Sync + 'static>(mut self, name: &str, value: T) -> Self {
        let (name, bean) = (name.to_owned(), Bean::new(value));
        self.additions.push(Box::new(move |builder| builder.named_shared_bean(&name, bean.clone())));
        self
    }

    /// Starts it.
    ///
    /// # Panics
    /// When it does not start, with everything that is wrong.
    pub async fn start(mut self) -> RunningTestApp {
        for (key, value) in self.set {
            self.document.set(key, value);
        }
        let Self { document, additions, listeners, .. } = self;
        let setup = Setup { document, additions, listeners, clock: Clock::manual(START) };
        setup.start(RecordedFiles::new(), "").await
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
    let output = catch_unwind(AssertUnwindSafe(|| runtime.block_on(test(TestApp::new()))));
    // A blocking listener that hangs must not keep a test that is over, also one that failed.
    runtime.shutdown_background();
    output.unwrap_or_else(|panic| resume_unwind(panic))
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
