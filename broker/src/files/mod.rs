//! The file operations that a store needs, and nothing more: on a disk, or recorded in memory so that tests can take them
//! back.

mod disk;
mod recorded;
#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub use disk::Disk;
pub use recorded::{Fault, Operation, RecordedFiles, Survival};

/// Files and directories.
///
/// A file's content is durable after [`DataFile::sync_data`], its name after [`FileSystem::sync_directory`] of its
/// directory; before that a power cut may take either back, in any order.
pub trait FileSystem: Debug + Send + Sync {
    /// Makes a directory and those above it, durable when this returns; one that is there is left alone.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotADirectory`] with what is in the place of one; what the operating system says.
    fn create_directory(&self, path: &Path) -> io::Result<()>;

    /// The files of a directory, in the order of their names; all else in it is left out.
    ///
    /// # Errors
    /// What the operating system says.
    fn list(&self, directory: &Path) -> io::Result<Vec<Listed>>;

    /// What [`FileSystem::list`] leaves out, in the order of the names: directories, links, pipes and the like.
    ///
    /// # Errors
    /// What the operating system says.
    fn list_others(&self, directory: &Path) -> io::Result<Vec<Other>>;

    /// Opens a file.
    ///
    /// # Errors
    /// What the operating system says; also where something else than a file has the name, for which it does not wait.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DataFile>>;

    /// Gives a file another name, over one that may be there.
    ///
    /// # Errors
    /// What the operating system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the operating system says.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// What the operating system says.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;

    /// Takes the lock that this file is, making the file if need be, and writes into it who has it. It ends with the
    /// returned guard and with the process.
    ///
    /// # Errors
    /// [`LockError::Held`] with what the holder wrote.
    fn lock(&self, path: &Path, holder: &str) -> Result<Box<dyn Lock>, LockError>;

    /// The same for one who cannot or will not write: the file must be there, and says nothing of this holder.
    ///
    /// # Errors
    /// As [`FileSystem::lock`].
    fn lock_to_read(&self, path: &Path) -> Result<Box<dyn Lock>, LockError>;
}

/// A lock that is held, until this is dropped.
pub trait Lock: Debug + Send + Sync {
    /// Whether the file of this name is the one that is locked; another one can be locked by others.
    ///
    /// # Errors
    /// What the operating system says, unless it is that there is none.
    fn is_at(&self, path: &Path) -> io::Result<bool>;
}

/// An open file. Everything is at an offset, so that threads do not disturb each other.
pub trait DataFile: Debug + Send + Sync {
    /// How many bytes it has.
    ///
    /// # Errors
    /// What the operating system says.
    fn len(&self) -> io::Result<u64>;

    /// Whether it has none.
    ///
    /// # Errors
    /// What the operating system says.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Makes it so long; what is new is zero.
    ///
    /// # Errors
    /// What the operating system says.
    fn set_len(&self, length: u64) -> io::Result<()>;

    /// Fills `buffer` from the bytes at `offset`.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] when there are not so many; what the operating system says.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`; the file grows if need be.
    ///
    /// # Errors
    /// What the operating system says; any part of it may be written.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes all that was written durable, and the length (`fdatasync`).
    ///
    /// # Errors
    /// What the operating system says. What is durable after that is unknown.
    fn sync_data(&self) -> io::Result<()>;

    /// Whether the file of this name is this one. One that was removed has no name any more.
    ///
    /// # Errors
    /// What the operating system says, unless it is that there is none.
    fn is_at(&self, path: &Path) -> io::Result<bool>;
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// It must be there.
    Existing,
    /// It must be there, and is not written to.
    ReadOnly,
    /// It must not be there yet.
    New,
    /// It is made if it is not there.
    Any,
}

/// A file of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name within the directory.
    pub name: String,
    /// How many bytes it has.
    pub length: u64,
}

/// Something in a directory that is no file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Its name within the directory.
    pub name: String,
    /// What it is, for people: "a directory".
    pub what: &'static str,
}

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Somebody has it.
    #[error("it is held by {holder}")]
    Held {
        /// What the holder wrote.
        holder: String,
    },
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Whether there was no room, which is no failure where nothing was written yet.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Whether there were too many open files, of this process or of the system: nothing was done, and it can be tried again.
pub(crate) fn is_out_of_handles(error: &io::Error) -> bool {
    // EMFILE and ENFILE have no kind of their own.
    cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24))
}

/// Writes bytes of a file again as they are: those whose sync failed are made durable by the next one only then.
pub(crate) fn write_anew(file: &dyn DataFile, range: std::ops::Range<u64>) -> io::Result<()> {
    const CHUNK: u64 = 1024 * 1024;
    let mut at = range.start;
    while at < range.end {
        let length = CHUNK.min(range.end - at);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut bytes, at)?;
        file.write_all_at(&bytes, at)?;
        at += length;
    }
    Ok(())
}

/// Writes zeros between two places, so that what is written there later needs no room.
pub(crate) fn fill_with_zeros(file: &dyn DataFile, from: u64, to: u64) -> io::Result<()> {
    // The page cache keeps what is written at once in pieces of up to its size, and Linux's ext4 walks all blocks of a piece
    // for each write to it and for each sync: with 1 MiB at once one sender was slower by a quarter.
    const CHUNK: u64 = 16 * 1024;
    let zeros = vec![0; CHUNK.min(to.saturating_sub(from)) as usize];
    let mut at = from;
    while at < to {
        let length = CHUNK.min(to - at);
        file.write_all_at(&zeros[..length as usize], at)?;
        at += length;
    }
    Ok(())
}
