//! What a broker stands on: a store that works step by step, and the disk that outlives it.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use corriere_broker::files::{Fault, RecordedFiles, Survival};
use corriere_broker::journal::{JournalOptions, JournalStore};
use corriere_broker::store::{MessageStore, StoreError};

/// A store whose work is done when it is told to.
pub(crate) trait Steps: Debug {
    fn store(&self) -> Arc<dyn MessageStore>;

    /// Writes all that waits.
    fn write(&self);

    fn housekeep(&self);

    fn checkpoint(&self) -> Result<(), StoreError>;
}

/// A disk.
pub(crate) trait Ground: Debug {
    fn open(&self) -> Result<Box<dyn Steps>, String>;

    /// How many operations have changed it.
    fn operations(&self) -> u64;

    fn crash_at(&self, operation: u64, seed: u64);

    /// What the next process finds. This one is over.
    fn survive(&self, how: Survival) -> Box<dyn Ground>;

    fn fail(&self, fault: Fault);

    fn limit(&self, bytes: Option<u64>);

    /// Bytes in files.
    fn bytes(&self) -> u64;

    fn log(&self) -> Vec<String>;
}

/// Something that goes wrong on a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    Fault(Fault),
    /// There is room for so many bytes more.
    Room(u64),
}

impl Trouble {
    pub(crate) fn make(self, ground: &dyn Ground) {
        match self {
            Self::Fault(fault) => ground.fail(fault),
            Self::Room(bytes) => ground.limit(Some(ground.bytes() + bytes)),
        }
    }
}

/// A journal on recorded files.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) files: RecordedFiles,
    pub(crate) options: JournalOptions,
}

impl Recorded {
    /// Small segments, so that a short history fills and recycles some.
    pub(crate) fn new(max_file_length: u64) -> Self {
        let mut options = JournalOptions::new(Path::new("/data/broker").to_owned());
        options.max_file_length = max_file_length;
        Self { files: RecordedFiles::new(), options }
    }
}

#[derive(Debug)]
struct Stepwise(Arc<JournalStore>);

impl Steps for Stepwise {
    fn store(&self) -> Arc<dyn MessageStore> {
        Arc::<JournalStore>::clone(&self.0)
    }

    fn write(&self) {
        self.0.step();
    }

    fn housekeep(&self) {
        self.0.housekeep();
    }

    fn checkpoint(&self) -> Result<(), StoreError> {
        self.0.checkpoint()
    }
}

impl Ground for Recorded {
    fn open(&self) -> Result<Box<dyn Steps>, String> {
        let files = Arc::new(self.files.clone());
        let store =
            JournalStore::open_stepwise(files, self.options.clone()).map_err(|error| error.to_string())?;
        Ok(Box::new(Stepwise(Arc::new(store))))
    }

    fn operations(&self) -> u64 {
        self.files.operations()
    }

    fn crash_at(&self, operation: u64, seed: u64) {
        self.files.crash_at(operation, seed);
    }

    fn survive(&self, how: Survival) -> Box<dyn Ground> {
        Box::new(Self { files: self.files.survive(how), options: self.options.clone() })
    }

    fn fail(&self, fault: Fault) {
        self.files.fail(fault);
    }

    fn limit(&self, bytes: Option<u64>) {
        self.files.limit(bytes);
    }

    fn bytes(&self) -> u64 {
        self.files.paths().iter().map(|path| self.files.contents(path).len() as u64).sum()
    }

    fn log(&self) -> Vec<String> {
        self.files.log()
    }
}
