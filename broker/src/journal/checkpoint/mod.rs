//! The checkpoint: what the index was at one place of the journal, in one redb file.
//!
//! One transaction writes what changed since the last one, and the place up to which it is true. It is authoritative:
//! no record before that place is needed for anything but the message in it.

mod backend;
mod error;
mod extent;
mod tables;
#[cfg(test)]
mod tests;
mod values;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use redb::{Database, DatabaseError, ReadableDatabase, StorageError};

pub(crate) use self::error::CheckpointError;
pub(crate) use self::extent::Extent;
pub(crate) use self::tables::VERSION;

use self::backend::Backend;
use self::error::{io_error, is_damage, unreadable};
use super::index::{Changes, Saved};
use super::lsn::Lsn;
use crate::files::{FileSystem, OpenMode};

/// What redb may keep of the file in memory. It is read once, at the start, and then only written.
const CACHE: usize = 16 << 20;

/// The file of the checkpoint.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    files: Arc<dyn FileSystem>,
    path: PathBuf,
    extent: Arc<Extent>,
    /// None after a failure, until it is opened again.
    database: Option<Database>,
    /// What was taken from the index and is not in the file yet, with the place up to which it makes the file true: more
    /// than one only after a failure.
    unwritten: Vec<(Changes, Place)>,
}

/// Where the checkpoint stands in the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The number of this start of the broker.
    pub(crate) epoch: u64,
    /// Up to which it is true: from here on the journal is to be read.
    pub(crate) tail: Lsn,
    /// Up to which the journal was known to be durable; at least the tail.
    pub(crate) durable: Lsn,
}

impl Checkpoint {
    /// Opens the file at `path` and reads all of it. Nothing is written any more once `crashed` is set, not even when it is
    /// dropped.
    ///
    /// # Errors
    /// [`CheckpointError`].
    pub(crate) fn open(
        files: &Arc<dyn FileSystem>,
        path: &Path,
        crashed: &Arc<AtomicBool>,
    ) -> Result<(Self, Saved, Place), CheckpointError> {
        make_durable(&**files, path)?;
        let extent = open_extent(&**files, path, crashed, OpenMode::Existing)?;
        let database = open_database(&extent, OpenMode::Existing)?;
        let (saved, place) = tables::read(&database.begin_read().map_err(unreadable)?)?;
        Ok((Self::with(files, path, extent, database), saved, place))
    }

    /// Makes the file at `path` anew, in the place of one that may be there; it is durable when this returns.
    ///
    /// # Errors
    /// [`CheckpointError::Io`].
    pub(crate) fn create(
        files: &Arc<dyn FileSystem>,
        path: &Path,
        crashed: &Arc<AtomicBool>,
    ) -> Result<Self, CheckpointError> {
        let directory = path.parent().unwrap_or_else(|| Path::new("."));
        match files.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let extent = open_extent(&**files, path, crashed, OpenMode::New)?;
        let database = open_database(&extent, OpenMode::New)?;
        let mut checkpoint = Self::with(files, path, extent, database);
        checkpoint.write(Changes::default(), Place::default())?;
        files.sync_directory(directory)?;
        Ok(checkpoint)
    }

    fn with(files: &Arc<dyn FileSystem>, path: &Path, extent: Arc<Extent>, database: Database) -> Self {
        Self {
            files: Arc::clone(files),
            path: path.to_owned(),
            extent,
            database: Some(database),
            unwritten: Vec::new(),
        }
    }

    /// Writes what changed up to this place, and what could not be written before; it is durable when this returns. After
    /// a failure the changes are kept for [`Checkpoint::write_again`] and the next call.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) fn write(&mut self, changes: Changes, place: Place) -> io::Result<()> {
        self.unwritten.push((changes, place));
        self.write_again()
    }

    /// Writes what could not be written before, if there is any.
    ///
    /// # Errors
    /// As [`Checkpoint::write`].
    pub(crate) fn write_again(&mut self) -> io::Result<()> {
        let written = self.write_unwritten();
        self.mark_if_doubtful(written)
    }

    /// Has redb move what is at the end of the file to where there is room before it, so that the end can be given back.
    ///
    /// # Errors
    /// What the operating system says; what was written stays.
    pub(crate) fn compact(&mut self) -> io::Result<()> {
        let Some(mut database) = self.database.take() else { return Err(io::Error::other("it is not open")) };
        let compacted = database.compact().map_err(|error| match error {
            redb::CompactionError::Storage(error) => io_error(error.into()),
            other => io::Error::other(other.to_string()),
        });
        if compacted.is_ok() {
            self.database = Some(database);
        }
        self.mark_if_doubtful(compacted.map(drop))
    }

    fn mark_if_doubtful(&self, changed: io::Result<()>) -> io::Result<()> {
        if changed.is_err() && self.extent.is_in_doubt() {
            self.mark_doubtful();
        }
        changed
    }

    fn write_unwritten(&mut self) -> io::Result<()> {
        let Some((last, place)) = self.unwritten.last() else { return Ok(()) };
        // A database that failed once takes nothing more; it is dropped here, and opened again by the next call.
        let database = match self.database.take() {
            Some(database) => database,
            None => {
                self.extent.reopen();
                open_database(&self.extent, OpenMode::Existing).map_err(|error| match error {
                    CheckpointError::Io(error) => error,
                    other => io::Error::new(io::ErrorKind::InvalidData, other.to_string()),
                })?
            }
        };
        tables::write(&database, &self.unwritten, last.counters, *place).map_err(io_error)?;
        self.database = Some(database);
        self.unwritten.clear();
        Ok(())
    }

    /// What a failed sync was to make durable is read by the next process as if it were: it has to know.
    fn mark_doubtful(&self) {
        let directory = self.path.parent().unwrap_or_else(|| Path::new("."));
        let made = self.files.open(&doubtful(&self.path), OpenMode::Any);
        if let Err(error) = made.and_then(|_| self.files.sync_directory(directory)) {
            tracing::warn!(path = %self.path.display(), %error, "that the checkpoint failed could not be noted");
        }
    }

    /// The file, for whoever keeps it long enough.
    pub(crate) fn extent(&self) -> &Arc<Extent> {
        &self.extent
    }

    /// Bytes of the pages that references are in. Looks at all of them.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) fn measure(&self) -> io::Result<u64> {
        let Some(database) = &self.database else { return Err(io::Error::other("it is not open")) };
        tables::pages_of_references(database).map(|pages| pages * extent::PAGE).map_err(io_error)
    }

    /// Whether there are changes that could not be written.
    pub(crate) fn is_behind(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.database.take().map_or(Ok(()), Database::close).map_err(|error| io_error(error.into()))
    }
}

/// The file that says that a sync of the checkpoint failed.
fn doubtful(path: &Path) -> PathBuf {
    path.with_extension("doubtful")
}

/// Where a sync failed, writes all of the file anew: the operating system holds for clean what is not on the disk, so
/// that only what is written anew is made durable by a sync.
fn make_durable(files: &dyn FileSystem, path: &Path) -> io::Result<()> {
    let marker = doubtful(path);
    match files.open(&marker, OpenMode::Existing) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        // It is not the checkpoint's own file that is in the way.
        Err(error) => return Err(io::Error::new(error.kind(), format!("{}: {error}", marker.display()))),
        Ok(_) => {}
    }
    if let Ok(file) = files.open(path, OpenMode::Existing) {
        crate::files::write_anew(&*file, 0..file.len()?)?;
        file.sync_data()?;
    }
    files.remove(&marker)
}

fn open_extent(
    files: &dyn FileSystem,
    path: &Path,
    crashed: &Arc<AtomicBool>,
    mode: OpenMode,
) -> Result<Arc<Extent>, CheckpointError> {
    let file = files.open(path, mode).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => CheckpointError::Missing,
        _ => error.into(),
    })?;
    if mode == OpenMode::Existing && file.is_empty()? {
        return Err(CheckpointError::Unreadable("it is empty".into()));
    }
    Ok(Arc::new(Extent::new(file, Arc::clone(crashed))?))
}

fn open_database(extent: &Arc<Extent>, mode: OpenMode) -> Result<Database, CheckpointError> {
    let backend = Backend(Arc::clone(extent));
    // Every page is checked: what a failing disk made of the file is found here, and not taken for the truth.
    let database = Database::builder()
        .set_cache_size(CACHE)
        .set_check_integrity_on_open(mode == OpenMode::Existing)
        .create_with_backend(backend);
    database.map_err(|error| match error {
        DatabaseError::Storage(StorageError::Io(error)) if !is_damage(&error) => CheckpointError::Io(error),
        other => unreadable(other),
    })
}
