//! The embedded broker of an application.

use std::fmt;
use std::future::{pending, ready};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use corriere_broker::files::Disk;
use corriere_broker::journal::{JournalOptions, JournalStore};
use corriere_broker::store::{MemoryStore, MessageStore};
use corriere_broker::{Broker, DeadLetters, DestinationPolicy, Settings};
use corriere_core::Clock;
use corriere_core::provider::ProviderError;

use super::Error;
use super::listening::Listening;
use crate::config::{BrokerTable, DeadLetterKind, PolicyTable, Preset, Problems, StoreTable};

/// Files of the journal consist of whole pages.
const PAGE: u64 = 4096;

/// A broker that lives as long as the application; dropping it stops it.
#[derive(Debug)]
pub(super) struct Embedded {
    /// Ended before the broker; nothing once it is.
    listening: Option<Listening>,
    pub(super) broker: Broker,
}

impl Embedded {
    /// One that listens nowhere.
    pub(super) fn of(broker: Broker) -> Self {
        Self { listening: None, broker }
    }

    /// Says what is wrong with the table, as far as that can be said before it starts.
    pub(super) fn check(table: &BrokerTable, problems: &mut Problems) {
        Listening::check(table, problems);
    }

    pub(super) async fn start(table: &BrokerTable, clock: Clock) -> Result<Self, Error> {
        let name = &table.name;
        let (store, place) = open_store(table).await?;
        let broker = Broker::start(name, settings(table), store, clock)?;
        match place {
            None => tracing::info!("broker `{name}` started; it keeps messages in memory"),
            Some(directory) => {
                let waiting = broker.destinations().into_iter().filter_map(|queue| {
                    let counts = broker.counts(&queue)?;
                    (counts.pending > 0).then_some(counts.pending)
                });
                let (messages, queues) = waiting.fold((0, 0), |(sum, queues), more| (sum + more, queues + 1));
                tracing::info!(
                    "broker `{name}` started; it keeps messages in {}, where it found {messages} in {queues} queues",
                    directory.display()
                );
            }
        }
        // From here on it is stopped when it cannot listen.
        let mut embedded = Self::of(broker);
        embedded.listening = Some(Listening::start(table, &embedded.broker).await?);
        Ok(embedded)
    }

    pub(super) fn listen_urls(&self) -> Vec<String> {
        self.listening.as_ref().map(Listening::urls).unwrap_or_default()
    }

    /// Ends it, and before it the connections of clients; all that it keeps is on the disk then.
    pub(super) async fn stop(mut self) {
        if let Some(listening) = self.listening.take() {
            listening.stop().await;
        }
        // Blocks while the store is closed.
        if let Err(error) = tokio::task::spawn_blocking(move || drop(self)).await {
            tracing::error!(%error, "the embedded broker was not stopped in order");
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.listening = None;
        self.broker.stop();
        tracing::info!("broker `{}` stopped", self.broker.name());
    }
}

/// The store that the table asks for, and where it is, if it is on a disk.
async fn open_store(table: &BrokerTable) -> Result<(Arc<dyn MessageStore>, Option<PathBuf>), Error> {
    let Some(data_directory) = &table.store.data_directory else {
        if table.store.is_there {
            tracing::warn!("`broker.store` has no effect without `broker.data_directory`");
        }
        return Ok((Arc::new(MemoryStore), None));
    };
    // From the root, as a relative path is looked for where the program was started, which may be a surprise.
    let whole = std::path::absolute(&data_directory.value);
    let directory = whole.unwrap_or_else(|_| data_directory.value.clone()).join(&table.name);
    let options = journal_options(&table.store, &directory);
    // Blocks as long as there is a journal to read.
    let opened = tokio::task::spawn_blocking(move || JournalStore::open(Arc::new(Disk), options)).await;
    match opened {
        Ok(Ok(store)) => Ok((Arc::new(store), Some(directory))),
        Ok(Err(source)) => {
            let place = data_directory.place.clone();
            Err(Error::Store { place, source: Box::new(source) })
        }
        // It panicked; nobody cancels it.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// How the journal is kept in `directory`: what the table says, over the journal's own defaults.
pub(crate) fn journal_options(table: &StoreTable, directory: &Path) -> JournalOptions {
    let mut options = JournalOptions::new(directory);
    options.max_file_length = table.max_file_length.unwrap_or(options.max_file_length) / PAGE * PAGE;
    options.sync_on_write = table.sync_on_write.unwrap_or(options.sync_on_write);
    options.ack_sync = table.ack_sync.unwrap_or(options.ack_sync);
    options.cleanup_interval = table.cleanup_interval.unwrap_or(options.cleanup_interval);
    options.checkpoint_after = table.checkpoint_after.unwrap_or(options.checkpoint_after);
    options.store_limit = table.store_limit.or(options.store_limit);
    if table.archive_data_logs == Some(true) {
        let archive = table.directory_archive.as_deref().unwrap_or(Path::new("archive"));
        options.archive = Some(directory.join(archive));
    }
    options
}

/// The broker's settings: what the table says, over its preset, over the broker's own defaults.
pub(crate) fn settings(table: &BrokerTable) -> Settings {
    let default = Settings::default();
    let memory_limit = table.memory_limit.or_else(|| table.preset.map(Preset::memory_limit));
    Settings {
        memory_limit: memory_limit.unwrap_or(default.memory_limit),
        send_deadline: table.send_deadline.unwrap_or(default.send_deadline),
        priorities: table
            .priorities
            .or_else(|| table.preset.map(Preset::priorities))
            .unwrap_or(default.priorities),
        redelivery: table.redelivery.clone(),
        dead_letters: table
            .dead_letters
            .or_else(|| table.preset.map(Preset::dead_letters))
            .map_or(default.dead_letters, dead_letters),
        dead_letter_non_persistent: table
            .dead_letter_non_persistent
            .unwrap_or(default.dead_letter_non_persistent),
        policies: table.policies.iter().map(policy).collect(),
    }
}

fn policy(table: &PolicyTable) -> DestinationPolicy {
    DestinationPolicy {
        pattern: table.pattern.clone(),
        redelivery: table.redelivery.clone(),
        prefetch: table.prefetch,
        dead_letters: table.dead_letters.map(dead_letters),
        dead_letter_non_persistent: table.dead_letter_non_persistent,
    }
}

fn dead_letters(kind: DeadLetterKind) -> DeadLetters {
    match kind {
        DeadLetterKind::Individual => DeadLetters::Individual,
        DeadLetterKind::Shared => DeadLetters::Shared,
        DeadLetterKind::Discard => DeadLetters::Discard,
    }
}

/// The failure of a broker, which may come at any time, also while it is stopped.
pub(super) struct Failure {
    coming: Pin<Box<dyn Future<Output = ProviderError> + Send>>,
    error: Option<ProviderError>,
}

impl Failure {
    pub(super) fn of(embedded: Option<&Embedded>) -> Self {
        let coming: Pin<Box<dyn Future<Output = ProviderError> + Send>> = match embedded {
            Some(embedded) => {
                let broker = embedded.broker.clone();
                Box::pin(async move { broker.failed().await })
            }
            None => Box::pin(pending()),
        };
        Self { coming, error: None }
    }

    /// Completes when it comes. Dropping the future loses nothing.
    pub(super) async fn comes(&mut self) {
        self.error = Some((&mut self.coming).await);
    }

    /// The error, if it has come by now.
    pub(super) async fn into_result(mut self) -> Result<(), Error> {
        if self.error.is_none() {
            tokio::select! {
                biased;
                () = self.comes() => {}
                () = ready(()) => {}
            }
        }
        self.error.map_or(Ok(()), |error| Err(Error::BrokerFailed(error)))
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure").field("error", &self.error).finish_non_exhaustive()
    }
}
