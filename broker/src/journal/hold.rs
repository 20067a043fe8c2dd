//! Whether the directory of a running broker is still its own.
//!
//! Whoever removes the lock, or the whole directory, removes a name: the process that has the file open goes on with it, and
//! the next one may take the directory. So this is looked at before anything gets a name there, and with each checkpoint.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::directory::Directory;
use super::error::OpenError;
use super::status::lock;
use crate::files::{DataFile, FileSystem, Lock, OpenMode};

/// The directory, as long as this process has it.
#[derive(Debug)]
pub(crate) struct Hold {
    files: Arc<dyn FileSystem>,
    directory: Directory,
    /// None when it was given up.
    lock: Mutex<Option<Box<dyn Lock>>>,
    /// A file of the directory that is open all the time.
    witness: Arc<dyn DataFile>,
    /// Set when it is lost: nothing is to be written to files that another process may have.
    crashed: Arc<AtomicBool>,
}

impl Hold {
    /// `witness` is open as the `attempts` of the directory.
    pub(crate) fn new(
        files: &Arc<dyn FileSystem>,
        directory: &Directory,
        lock: Box<dyn Lock>,
        witness: Arc<dyn DataFile>,
        crashed: &Arc<AtomicBool>,
    ) -> Self {
        Self {
            files: Arc::clone(files),
            directory: directory.clone(),
            lock: Mutex::new(Some(lock)),
            witness,
            crashed: Arc::clone(crashed),
        }
    }

    /// Whether all is where it was. A lock that is gone from a directory that is there is taken anew: nobody can have had it,
    /// for who ends leaves its file.
    ///
    /// # Errors
    /// The directory, or the lock, is not ours any more; for ever.
    pub(crate) fn check(&self) -> io::Result<()> {
        let mut held = lock(&self.lock);
        let Some(lock) = held.as_ref() else { return Ok(()) };
        let path = self.directory.lock_file();
        // What cannot be asked is not known to be lost.
        if lock.is_at(&path).unwrap_or(true) {
            return Ok(());
        }
        self.check_is(&*self.witness, &self.directory.attempts(), self.directory.root())?;
        let there = self.files.open(&path, OpenMode::ReadOnly);
        if !there.is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Err(self.lost(&path, "another process may be at work in this directory"));
        }
        match self.directory.lock(&*self.files) {
            Ok(anew) => {
                tracing::warn!(file = %path.display(), "the lock of the directory was removed; it is taken anew");
                *held = Some(anew);
                Ok(())
            }
            Err(OpenError::Locked { holder, .. }) => {
                Err(self.lost(&path, &format!("the directory was taken by {holder}")))
            }
            Err(error) => Err(self.lost(&path, &format!("it cannot be taken anew: {error}"))),
        }
    }

    /// Whether `file` is still that of this name; what is said to be gone otherwise is `what`.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn check_is(&self, file: &dyn DataFile, path: &Path, what: &Path) -> io::Result<()> {
        if file.is_at(path).unwrap_or(true) {
            return Ok(());
        }
        Err(self.lost(what, "the next start would not find what is confirmed from now on"))
    }

    /// Gives it up.
    pub(crate) fn release(&self) {
        drop(lock(&self.lock).take());
    }

    fn lost(&self, path: &Path, why: &str) -> io::Error {
        self.crashed.store(true, Ordering::Release);
        io::Error::other(format!("{} was removed or replaced while it was in use: {why}", path.display()))
    }
}
