//! Files in memory that remember what a power cut would take, and fail when they are told to.
//!
//! A file's content is durable by a sync of the file, its name by one of its directory. Directories are durable at
//! once, as [`FileSystem::create_directory`](super::FileSystem::create_directory) promises.

mod contents;
mod data_file;
mod faults;
mod file_system;
mod names;
mod seeded;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contents::Contents;
use faults::Faults;
pub use faults::{Fault, Operation};
use names::Names;
use seeded::Seeded;

/// Files in memory. Clones are the same files, of the same process.
#[derive(Clone, Default)]
pub struct RecordedFiles {
    state: Arc<Mutex<State>>,
}

/// How the process ended, and so what the next one finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// Like `kill -9`: all that was written is there, and what was not synced still is not.
    Process,
    /// Of each unsynced sector any version since its last sync is there; of the unsynced changes of names, the first
    /// so many.
    PowerCut {
        /// Decides what survives.
        seed: u64,
    },
    /// A power cut that takes all that was not synced.
    OnlySynced,
}

#[derive(Default)]
struct State {
    names: Names<Node>,
    directories: BTreeSet<PathBuf>,
    /// Who holds the lock that a file is, whatever its name is.
    locks: Vec<(Node, String)>,
    limit: Option<u64>,
    /// Directories on devices of their own.
    devices: BTreeSet<PathBuf>,
    /// Directories in which nothing can be changed.
    read_only: BTreeSet<PathBuf>,
    faults: Faults,
}

/// A file, whatever its name. Its lock is taken with that of the state held.
type Node = Arc<Mutex<Contents>>;

impl RecordedFiles {
    /// No files.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many operations have changed something or would have: writes, lengths, syncs, files made, renamed and
    /// removed.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state().faults.operations()
    }

    /// The latest of these operations, one a line, for the report of a failed test.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        self.state().faults.log()
    }

    /// Ends the process in its operation number `operation`, as [`RecordedFiles::operations`] counts: this one and all
    /// after it fail. If it is a write, some of its sectors are written, which ones the seed decides.
    pub fn crash_at(&self, operation: u64, seed: u64) {
        self.state().faults.crash_at(operation, seed);
    }

    /// Ends the process: every operation on these files and on all that was opened fails from now on. What is returned
    /// is what the next process finds. May be asked for again, to see what else could have survived.
    #[must_use]
    pub fn survive(&self, how: Survival) -> Self {
        let mut state = self.state();
        state.faults.end_process();
        let names = match how {
            Survival::Process => {
                // A file with two names, the durable one and the current one, is one file for the next process, too.
                let mut copies: BTreeMap<*const Mutex<Contents>, Node> = BTreeMap::new();
                state.names.map(|node| {
                    let copy = copies.entry(Arc::as_ptr(node));
                    Arc::clone(copy.or_insert_with(|| Arc::new(Mutex::new(lock(node).clone()))))
                })
            }
            Survival::OnlySynced => state.after_power_cut(None),
            Survival::PowerCut { seed } => state.after_power_cut(Some(Seeded::new(seed))),
        };
        let directories = state.directories.clone();
        let (limit, devices) = (state.limit, state.devices.clone());
        let next = State { names, directories, limit, devices, ..State::default() };
        Self { state: Arc::new(Mutex::new(next)) }
    }

    /// Has an operation fail that is to come.
    pub fn fail(&self, fault: Fault) {
        self.state().faults.add(fault);
    }

    /// Has files grow no more beyond so many bytes, all of them together.
    pub fn limit(&self, bytes: Option<u64>) {
        self.state().limit = bytes;
    }

    /// Has a directory be on a device of its own: no file is renamed over its edge.
    pub fn put_on_device(&self, directory: impl AsRef<Path>) {
        self.state().devices.insert(directory.as_ref().to_owned());
    }

    /// Has nothing in a directory be changed any more, as if it were on a medium that cannot be written to.
    pub fn make_read_only(&self, directory: impl AsRef<Path>) {
        self.state().read_only.insert(directory.as_ref().to_owned());
    }

    /// Changes a bit on the disk.
    ///
    /// # Panics
    /// When the file has no such byte.
    pub fn flip(&self, path: impl AsRef<Path>, offset: u64, bit: u8) {
        let node = self.node(path.as_ref());
        let mut contents = lock(&node);
        assert!(offset < contents.length(), "{} has no byte {offset}", path.as_ref().display());
        contents.flip(offset, bit);
    }

    /// Cuts a file on the disk, or makes it longer.
    ///
    /// # Panics
    /// When there is no such file.
    pub fn truncate(&self, path: impl AsRef<Path>, length: u64) {
        lock(&self.node(path.as_ref())).truncate(length);
    }

    /// Takes a file off the disk.
    ///
    /// # Panics
    /// When there is no such file.
    pub fn remove_now(&self, path: impl AsRef<Path>) {
        let path = path.as_ref();
        assert!(self.state().names.forget(path), "there is no file {}", path.display());
    }

    /// All bytes of a file as the process sees it.
    ///
    /// # Panics
    /// When there is no such file.
    #[must_use]
    pub fn contents(&self, path: impl AsRef<Path>) -> Vec<u8> {
        let node = self.node(path.as_ref());
        let contents = lock(&node);
        let mut bytes = vec![0; usize::try_from(contents.length()).unwrap_or(usize::MAX)];
        contents.read(&mut bytes, 0);
        bytes
    }

    /// All files, in order.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        self.state().names.iter().map(|(path, _)| path.clone()).collect()
    }

    fn node(&self, path: &Path) -> Node {
        let node = self.state().names.get(path).cloned();
        node.unwrap_or_else(|| panic!("there is no file {}", path.display()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn after_power_cut(&self, mut seeded: Option<Seeded>) -> Names<Node> {
        let changes = seeded.as_mut().map_or(0, |seeded| seeded.below(self.names.unsynced() + 1));
        let mut survivors = self.names.survivors(changes);
        for node in survivors.values_mut() {
            let survivor = lock(node).survivor(seeded.as_mut());
            *node = Arc::new(Mutex::new(survivor));
        }
        Names::durable(survivors)
    }
}

impl fmt::Debug for RecordedFiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        let files = state.names.iter().map(|(path, node)| (path, lock(node).length()));
        formatter.debug_map().entries(files).finish()
    }
}

fn lock(node: &Node) -> MutexGuard<'_, Contents> {
    node.lock().unwrap_or_else(PoisonError::into_inner)
}
