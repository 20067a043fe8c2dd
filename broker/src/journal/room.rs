//! Room that is kept back on the disk for the checkpoint, which may have to grow when nothing else can.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::committer::is_full;
use super::segments::fill_with_zeros;
use super::status::lock;
use crate::files::{FileSystem, OpenMode};

/// What the file is called: as spares are, for it may be removed as they may.
pub(super) const NAME: &str = "spare-room";

/// A file whose bytes mean nothing, as long as the checkpoint is: that file grows by doubling itself.
#[derive(Debug)]
pub(super) struct Room {
    files: Arc<dyn FileSystem>,
    path: PathBuf,
    state: Mutex<State>,
    /// Held by who makes it.
    making: Mutex<()>,
}

#[derive(Debug)]
struct State {
    length: u64,
    wanted: u64,
    /// Whether it was given up, or could not be made, and is not there again.
    is_short: bool,
}

impl Room {
    pub(super) fn new(files: Arc<dyn FileSystem>, directory: &Path, length: u64) -> Self {
        let state = Mutex::new(State { length, wanted: 0, is_short: false });
        Self { files, path: directory.join(NAME), state, making: Mutex::new(()) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Has so many bytes kept back from now on; [`Room::make`] does it.
    pub(super) fn want(&self, bytes: u64) {
        let mut state = lock(&self.state);
        state.wanted = bytes;
        state.is_short &= state.length < bytes;
    }

    /// Makes it as long as it should be.
    ///
    /// # Errors
    /// What the operating system says; it is short then, if there was no room.
    pub(super) fn make(&self) -> io::Result<()> {
        let _making = lock(&self.making);
        let (from, to) = {
            let state = lock(&self.state);
            (state.length, state.wanted)
        };
        if from >= to {
            return Ok(());
        }
        let made = self.lengthen(from, to);
        let mut state = lock(&self.state);
        match &made {
            Ok(()) => {
                state.length = to;
                state.is_short = to < state.wanted;
            }
            Err(error) if is_full(error) => state.is_short = true,
            // Whoever writes next meets it.
            Err(_) => {}
        }
        made
    }

    fn lengthen(&self, from: u64, to: u64) -> io::Result<()> {
        let file = self.files.open(&self.path, OpenMode::Any)?;
        let written = fill_with_zeros(&*file, from, to).and_then(|()| file.sync_data());
        if written.is_err() {
            // What there was stays; if this fails too there is only more of it.
            let _ = file.set_len(from);
        }
        written
    }

    /// Gives it up for the checkpoint; false when there is none.
    pub(super) fn give_up(&self) -> io::Result<bool> {
        let _making = lock(&self.making);
        if lock(&self.state).length == 0 {
            return Ok(false);
        }
        match self.files.remove(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut state = lock(&self.state);
        state.length = 0;
        state.is_short = true;
        Ok(true)
    }

    /// Whether what is left on the disk is for the checkpoint only.
    pub(super) fn is_short(&self) -> bool {
        lock(&self.state).is_short
    }
}
