//! A broker on a journal that a test can stop, kill or cut off from power, and start again on what is left.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use corriere_broker::files::{Disk, FileSystem, OpenMode, RecordedFiles, Survival};
use corriere_broker::journal::{JournalOptions, JournalStore, OpenError};
use corriere_broker::{Broker, Counts, Settings};
use corriere_core::{
    AcknowledgeMode, Clock, Connection, ConnectionFactory, Consumer, Destination, Message, RedeliveryPolicy,
    Session, Timestamp,
};
use tempfile::TempDir;

pub(crate) use corriere_tests::receiving::*;

/// How a broker comes to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// In order.
    Stop,
    /// With its process: what was written is there.
    Kill,
    /// With the machine: of what was not synced any part may be there.
    PowerCut(u64),
}

/// Where a broker keeps its messages, from one start to the next.
pub(crate) struct Home {
    keep: Keep,
    pub(crate) options: JournalOptions,
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
}

enum Keep {
    Disk { _directory: TempDir },
    Mounted { _disk: Mounted },
    Recorded(RecordedFiles),
}

/// A file system of its own in memory, which is there as long as this.
struct Mounted(TempDir);

impl Mounted {
    /// Of so many bytes; an error says why it cannot be.
    fn new(bytes: u64) -> Result<Self, String> {
        let directory = tempfile::tempdir().unwrap();
        let size = format!("size={bytes}");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(directory.path());
        let mounted = mount.output().map_err(|error| error.to_string())?;
        if mounted.status.success() {
            return Ok(Self(directory));
        }
        Err(String::from_utf8_lossy(&mounted.stderr).trim().to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Lazily: a thread that ends may still have a file of it open.
        let _ = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
    }
}

impl Home {
    /// On a real file system, where a broker can only be stopped.
    pub(crate) fn on_disk() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = JournalOptions::new(directory.path().join("broker"));
        Self::with(Keep::Disk { _directory: directory }, options)
    }

    /// On a disk of so many bytes, a real one where the test may mount it, and recorded files otherwise.
    pub(crate) fn on_small_disk(bytes: u64) -> Self {
        match Mounted::new(bytes) {
            Ok(disk) => {
                let options = JournalOptions::new(disk.0.path().join("broker"));
                Self::with(Keep::Mounted { _disk: disk }, options)
            }
            Err(reason) => {
                eprintln!("no disk could be mounted, so recorded files are used: {reason}");
                let home = Self::recorded();
                home.memory().limit(Some(bytes));
                home
            }
        }
    }

    /// On files in memory that can be killed, cut and damaged.
    pub(crate) fn recorded() -> Self {
        Self::with(Keep::Recorded(RecordedFiles::new()), JournalOptions::new(PathBuf::from("/data/broker")))
    }

    fn with(keep: Keep, mut options: JournalOptions) -> Self {
        options.max_file_length = 256 * 1024;
        let redelivery = RedeliveryPolicy {
            maximum_redeliveries: Some(2),
            initial_delay: Duration::ZERO,
            delay: Duration::ZERO,
            ..RedeliveryPolicy::default()
        };
        let settings = Settings { redelivery, ..Settings::default() };
        Self { keep, options, settings, clock: Clock::manual(Timestamp(1_700_000_000_000)) }
    }

    pub(crate) fn files(&self) -> Arc<dyn FileSystem> {
        match &self.keep {
            Keep::Disk { .. } | Keep::Mounted { .. } => Arc::new(Disk),
            Keep::Recorded(files) => Arc::new(files.clone()),
        }
    }

    /// The files in memory.
    pub(crate) fn memory(&self) -> &RecordedFiles {
        match &self.keep {
            Keep::Recorded(files) => files,
            Keep::Disk { .. } | Keep::Mounted { .. } => panic!("this home is on a disk"),
        }
    }

    pub(crate) fn open(&self) -> Result<JournalStore, OpenError> {
        JournalStore::open(self.files(), self.options.clone())
    }

    pub(crate) fn start(&self) -> Running {
        let store = self.open().unwrap_or_else(|error| panic!("{error}"));
        self.start_on(store)
    }

    pub(crate) fn start_on(&self, store: JournalStore) -> Running {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let name = format!("durability-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let broker =
            Broker::start(&name, self.settings.clone(), Arc::new(store), self.clock.clone()).unwrap();
        Running { broker }
    }

    pub(crate) fn end(&mut self, running: Running, end: End) {
        let survival = match end {
            End::Stop => return running.stop(),
            End::Kill => Survival::Process,
            End::PowerCut(seed) => Survival::PowerCut { seed },
        };
        let survived = self.memory().survive(survival);
        self.keep = Keep::Recorded(survived);
    }

    pub(crate) fn restart(&mut self, running: Running, end: End) -> Running {
        self.end(running, end);
        self.start()
    }

    /// Lets the broker's time pass, ten times as fast as it does, until something is complete.
    pub(crate) async fn passing_time<F: Future>(&self, future: F) -> F::Output {
        tokio::pin!(future);
        loop {
            tokio::select! {
                outcome = &mut future => return outcome,
                () = tokio::time::sleep(Duration::from_millis(25)) => self.clock.advance(Duration::from_millis(250)),
            }
        }
    }

    fn journal(&self) -> PathBuf {
        self.options.directory.join("journal")
    }

    /// The segments of the journal that have a name of their own, in their order; spares and large bodies are left out.
    pub(crate) fn segments(&self) -> Vec<PathBuf> {
        self.listed(|name| name.ends_with(".journal") && !name.starts_with("spare"))
    }

    pub(crate) fn large_files(&self) -> Vec<PathBuf> {
        self.listed(|name| name.ends_with(".large"))
    }

    fn listed(&self, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let directory = self.journal();
        let listed = self.files().list(&directory).unwrap();
        listed.iter().filter(|file| wanted(&file.name)).map(|file| directory.join(&file.name)).collect()
    }

    pub(crate) fn contents(&self, path: &Path) -> Vec<u8> {
        let file = self.files().open(path, OpenMode::Existing).unwrap();
        let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    /// Every file of the journal that may have messages in it, with all that it has.
    pub(crate) fn everything(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let paths = self.listed(|name| !name.starts_with("spare"));
        paths.into_iter().map(|path| (path.clone(), self.contents(&path))).collect()
    }

    /// Where some text of a message stands in the journal. Newer files go first: a recycled one may have old bytes in it.
    pub(crate) fn find(&self, text: &str) -> Option<(PathBuf, u64)> {
        self.segments().into_iter().rev().find_map(|path| {
            let contents = self.contents(&path);
            let at = contents.windows(text.len()).position(|window| window == text.as_bytes())?;
            Some((path, at as u64))
        })
    }

    /// Turns one bit of the record that has this text, and says where.
    pub(crate) fn damage(&self, text: &str) -> (PathBuf, u64) {
        let (path, at) = self.find(text).unwrap_or_else(|| panic!("{text} is nowhere in the journal"));
        let file = self.files().open(&path, OpenMode::Existing).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 0b100], at).unwrap();
        (path, at)
    }
}

/// A broker that runs on a journal.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) broker: Broker,
}

impl Running {
    /// A started connection whose consumers have a prefetch of 10.
    pub(crate) async fn connect(&self) -> Connection {
        let url = format!("vm://{}?jms.prefetchPolicy.all=10", self.broker.name());
        let connection = ConnectionFactory::from_url(&url).unwrap().create_connection().await.unwrap();
        connection.start().unwrap();
        connection
    }

    /// A session on a connection of its own, which lives as long as it does.
    pub(crate) async fn session(&self, mode: AcknowledgeMode) -> Session {
        self.connect().await.create_session(mode).await.unwrap()
    }

    /// A consumer on a session of its own.
    pub(crate) async fn consumer(&self, mode: AcknowledgeMode, destination: &Destination) -> Consumer {
        self.session(mode).await.create_consumer(destination).await.unwrap()
    }

    /// Sends `m<from>` to `m<to>`.
    pub(crate) async fn send(&self, to: &Destination, numbers: std::ops::RangeInclusive<usize>) {
        let session = self.session(AcknowledgeMode::Auto).await;
        for number in numbers {
            send_text(&session, to, &format!("m{number}")).await;
        }
    }

    pub(crate) fn counts(&self, destination: &Destination) -> Counts {
        self.broker.counts(destination).unwrap_or_default()
    }

    /// Waits until the counts of a destination are as wanted.
    pub(crate) async fn until(&self, destination: &Destination, wanted: impl Fn(&Counts) -> bool) {
        eventually(&format!("the counts of {destination}"), || {
            let counts = self.counts(destination);
            if wanted(&counts) { Ok(()) } else { Err(format!("{counts:?}")) }
        })
        .await;
    }

    /// Takes all that is ready at a destination, acknowledging each.
    pub(crate) async fn drain(&self, destination: &Destination) -> Vec<Seen> {
        let session = self.session(AcknowledgeMode::Client).await;
        let consumer = session.create_consumer(destination).await.unwrap();
        let mut seen = Vec::new();
        while let Some(delivery) = within(consumer.receive_no_wait()).await.unwrap() {
            seen.push(Seen::of(&delivery));
            within(delivery.acknowledge()).await.unwrap();
        }
        within(consumer.close()).await.unwrap();
        seen
    }

    /// Stops it in order; the counts of all its destinations must be conserved.
    pub(crate) fn stop(self) {
        for destination in self.broker.destinations() {
            let counts = self.counts(&destination);
            assert!(counts.are_conserved(), "{destination} made something up or lost it: {counts:?}");
        }
        self.broker.stop();
    }
}

pub(crate) fn property(message: &Message, name: &str) -> Option<String> {
    message.property::<String>(name).unwrap()
}

/// What is in the application's hands has been noted when this is done: what the client says of it is not awaited, and
/// where another thread is at work for the broker, that comes to it a moment later.
pub(crate) async fn noted(session: &Session) {
    within(session.create_producer(None)).await.unwrap();
}

/// The size that a test has where `name` in the environment does not ask for another.
pub(crate) fn size(name: &str, otherwise: usize) -> usize {
    let asked = std::env::var(name).ok();
    asked.map_or(otherwise, |asked| {
        asked.parse().unwrap_or_else(|_| panic!("{name} is `{asked}`; expected a whole number"))
    })
}
