//! The threads of a journal: each only calls what a stepwise store is told to do.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use super::pending::{Batch, Ending, Turn};
use super::status::lock;
use super::store::Core;

/// The writer, who completes what it wrote, the librarian and the housekeeper.
#[derive(Debug)]
pub(crate) struct Threads {
    writer: Handle,
    completer: Handle,
    librarian: Handle,
    housekeeper: Handle,
}

#[derive(Debug)]
struct Handle(Mutex<Option<JoinHandle<()>>>);

impl Threads {
    pub(crate) fn start(core: &Arc<Core>) -> io::Result<Self> {
        core.completer.has_thread();
        let started = Self::spawn(core);
        if started.is_err() {
            // Those that were started must not go on with nobody to end them.
            core.pending.end(Ending::Crash);
            core.completer.end();
            core.ledger.end();
            core.housekeeper.end();
        }
        started
    }

    fn spawn(core: &Arc<Core>) -> io::Result<Self> {
        Ok(Self {
            writer: Handle::spawn("journal", core, write)?,
            completer: Handle::spawn("journal-complete", core, |core| core.completer.work())?,
            librarian: Handle::spawn("journal-index", core, |core| core.ledger.work(&core.segments))?,
            housekeeper: Handle::spawn("journal-keep", core, |core| core.housekeeper.work(core))?,
        })
    }

    /// Waits until they have ended, as [`Pending::end`](super::pending::Pending::end) has told the writer.
    pub(crate) fn end(&self, core: &Core) {
        self.writer.join();
        core.completer.end();
        self.completer.join();
        core.ledger.end();
        self.librarian.join();
        core.housekeeper.end();
        self.housekeeper.join();
    }
}

impl Handle {
    fn spawn(name: &str, core: &Arc<Core>, work: impl FnOnce(&Core) + Send + 'static) -> io::Result<Self> {
        let core = Arc::clone(core);
        let spawned = thread::Builder::new().name(name.to_owned()).spawn(move || work(&core))?;
        Ok(Self(Mutex::new(Some(spawned))))
    }

    fn join(&self) {
        let Some(handle) = lock(&self.0).take() else { return };
        // Whoever is told of something may drop the store, on one of these threads.
        if handle.thread().id() != thread::current().id() {
            // It ends by itself; that it panicked it has said.
            drop(handle.join());
        }
    }
}

fn write(core: &Core) {
    let mut empty = Batch::default();
    loop {
        match core.pending.next(std::mem::take(&mut empty)) {
            Turn::Write(mut batch) => {
                core.turn(&mut batch, true);
                empty = batch;
            }
            Turn::Sync => {
                // Whoever has to know of a failure is told by the next batch.
                let _ = core.sync_all();
                core.pending.led(None);
                core.write_express();
            }
            Turn::EndInOrder => return core.finish(),
            Turn::End => return,
        }
    }
}
