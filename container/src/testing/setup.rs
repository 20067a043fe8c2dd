//! What every life of a test's application is made from.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use corriere_broker::Broker;
use corriere_broker::files::RecordedFiles;
use corriere_broker::journal::JournalStore;
use corriere_core::Clock;

use super::observer::Ends;
use super::running::{Life, RunningTestApp};
use crate::application::{Application, ApplicationBuilder, broker_settings, journal_options};
use crate::config::Document;
use crate::listener::ListenerDef;

/// Where the broker keeps its messages among the recorded files.
const DIRECTORY: &str = "/test";
/// Files of the journal where the configuration says nothing: small, since most tests have little to keep.
const MAX_FILE_LENGTH: u64 = 1 << 20;

/// Adds something to an application that is being put together, each time that it is.
pub(super) type Addition = Box<dyn Fn(ApplicationBuilder) -> ApplicationBuilder + Send + Sync>;

/// What is started again after a crash.
pub(super) struct Setup {
    pub(super) document: Document,
    /// In the order in which they were said.
    pub(super) additions: Vec<Addition>,
    pub(super) listeners: Vec<ListenerDef>,
    pub(super) clock: Clock,
}

impl Setup {
    /// Starts a broker on these files, and the application. `after` says what came before, for the panic.
    pub(super) async fn start(self, files: RecordedFiles, after: &str) -> RunningTestApp {
        static NUMBER: AtomicU64 = AtomicU64::new(1);

        let ids: Vec<&str> = self.listeners.iter().map(|listener| listener.id).collect();
        let configuration = self.document.read(&ids).unwrap_or_else(|error| panic!("{error}"));
        let table = configuration.broker.unwrap_or_default();
        let settings = broker_settings(&table);
        let dead_letters = settings.dead_letters;
        let mut options = journal_options(&table.store, Path::new(DIRECTORY));
        options.max_file_length = table.store.max_file_length.unwrap_or(MAX_FILE_LENGTH);
        // No two lives have the same name, so that nothing of one before reaches the broker of the next.
        let name = format!("test-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let store = JournalStore::open(Arc::new(files.clone()), options)
            .unwrap_or_else(|error| panic!("the test's store did not open{after}: {error}"));
        let broker = Broker::start(&name, settings, Arc::new(store), self.clock.clone())
            .unwrap_or_else(|error| panic!("the test's broker did not start{after}: {error}"));

        let ends = Arc::new(Ends::default());
        let mut builder = Application::from_document(self.document.clone())
            .connected_to(format!("vm://{name}"))
            .observed_by(Arc::clone(&ends) as _)
            .clock(self.clock.clone())
            .listeners(self.listeners.iter().copied());
        for addition in &self.additions {
            builder = addition(builder);
        }
        let application = builder
            .start()
            .await
            .unwrap_or_else(|error| panic!("the application did not start{after}: {error:?}"));
        RunningTestApp::new(Life { setup: self, files, application, broker, dead_letters, ends })
    }
}
