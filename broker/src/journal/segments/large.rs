//! The bodies of large messages, each in a file of its own.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::Segments;
use crate::files::{DataFile, OpenMode};
use crate::store::StoredId;

impl Segments {
    /// The files of large messages, with the bytes of each.
    pub(crate) fn large_files(&self) -> Vec<(StoredId, u64)> {
        self.lock().large.iter().map(|(stored, length)| (*stored, *length)).collect()
    }

    /// Where the rest of a large message is.
    pub(crate) fn large_path(&self, stored: StoredId) -> PathBuf {
        self.directory.join(format!("{:016x}.large", stored.0))
    }

    /// The file of a large message.
    pub(in crate::journal) fn large_file(&self, stored: StoredId) -> io::Result<Arc<dyn DataFile>> {
        self.open_file(&self.large_path(stored), self.mode)
    }

    /// Writes the file of a large message and syncs it, but not its name.
    ///
    /// # Errors
    /// What the operating system says; what was written of it is removed.
    pub(in crate::journal) fn write_large(&self, stored: StoredId, bytes: &[u8]) -> io::Result<()> {
        self.check_hold()?;
        let path = self.large_path(stored);
        let write = || {
            // One may be there that nobody knows any more.
            let file = self.open_file(&path, OpenMode::Any)?;
            file.set_len(0)?;
            file.write_all_at(bytes, 0)?;
            file.sync_data()
        };
        if let Err(error) = write() {
            let _ = self.files.remove(&path);
            return Err(error);
        }
        self.lock().large.insert(stored, bytes.len() as u64);
        Ok(())
    }

    /// Makes the names of large files durable.
    pub(in crate::journal) fn sync_names(&self) -> io::Result<()> {
        self.with_handles(|| self.files.sync_directory(&self.directory))
    }

    /// Removes the file of a large message; one that is not there is passed over.
    pub(crate) fn remove_large(&self, stored: StoredId) -> io::Result<()> {
        let removed = self.files.remove(&self.large_path(stored));
        let gone = removed.as_ref().err().is_some_and(|error| error.kind() == io::ErrorKind::NotFound);
        if removed.is_ok() || gone {
            self.lock().large.remove(&stored);
            return Ok(());
        }
        removed
    }
}
