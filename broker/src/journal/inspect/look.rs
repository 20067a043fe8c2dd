//! What a directory holds, read without changing it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::InspectError;
use crate::files::{FileSystem, Lock, OpenMode, RecordedFiles};
use crate::journal::attempts::Attempts;
use crate::journal::checkpoint::{Checkpoint, CheckpointError, Place};
use crate::journal::directory::Directory;
use crate::journal::error::OpenError;
use crate::journal::index::{Changes, Index, Saved};
use crate::journal::lsn::Lsn;
use crate::journal::scan::{ScanError, Scanned, Tail, check_lengths, scan};
use crate::journal::segments::Segments;

/// Bytes of a segment where none is there to tell.
const DEFAULT_LENGTH: u64 = 32 << 20;

/// A directory that is being looked at. It is locked until this is dropped, unless nothing can be written there.
#[derive(Debug)]
pub(super) struct Looked {
    pub(super) files: Arc<dyn FileSystem>,
    pub(super) directory: Directory,
    pub(super) segments: Segments,
    _lock: Option<Box<dyn Lock>>,
}

/// A copy of the checkpoint in memory, into which changes are merged.
#[derive(Debug)]
pub(super) struct Scratch {
    files: Arc<dyn FileSystem>,
    path: PathBuf,
    checkpoint: Checkpoint,
}

impl Looked {
    /// Locks a directory and lists its files.
    pub(super) fn at(files: &Arc<dyn FileSystem>, root: &Path) -> Result<Self, InspectError> {
        let directory = Directory::new(root);
        let journal = directory.journal();
        // Before it is locked: that makes a file.
        let listed = files.list(&journal).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => InspectError::NoJournal { directory: root.to_owned() },
            _ => OpenError::io(&journal)(error).into(),
        })?;
        let is_segment = |name: &str| name.ends_with(".journal") && !name.starts_with("spare-");
        let lengths = listed.iter().filter(|file| is_segment(&file.name)).map(|file| file.length);
        let length = lengths.max().unwrap_or(DEFAULT_LENGTH);
        let lock = directory.lock_to_read(&**files)?;
        directory.check_finished(&**files)?;
        directory.check_kinds(&**files)?;
        let segments =
            Segments::look(Arc::clone(files), &journal, length).map_err(OpenError::io(&journal))?;
        Ok(Self { files: Arc::clone(files), directory, segments, _lock: lock })
    }

    /// Where the journal begins, as far as it is there.
    pub(super) fn first(&self) -> Lsn {
        self.segments.live().first().map(|segment| segment.base).unwrap_or_default()
    }

    /// The file of a place, and where in it that is, if the file is there.
    pub(super) fn place(&self, lsn: Lsn) -> (PathBuf, Option<u64>) {
        match self.segments.locate(lsn) {
            Ok(segment) => (segment.path, Some(lsn.0 - segment.base.0)),
            Err(missing) => (missing, None),
        }
    }

    /// Opens a copy of the checkpoint: opening may change it.
    pub(super) fn checkpoint(&self) -> Result<(Scratch, Saved, Place), CheckpointError> {
        let path = self.directory.checkpoint();
        let original = self.files.open(&path, OpenMode::ReadOnly).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => CheckpointError::Missing,
            _ => error.into(),
        })?;
        let scratch = Arc::new(RecordedFiles::new());
        scratch.create_directory(path.parent().unwrap_or(&path))?;
        let copy = scratch.open(&path, OpenMode::New)?;
        let length = original.len()?;
        let mut chunk = vec![0; length.min(1 << 20) as usize];
        let mut at = 0;
        while at < length {
            let bytes = &mut chunk[..(length - at).min(1 << 20) as usize];
            original.read_exact_at(bytes, at)?;
            copy.write_all_at(bytes, at)?;
            copy.sync_data()?;
            at += bytes.len() as u64;
        }
        let files: Arc<dyn FileSystem> = scratch;
        let (checkpoint, saved, place) = Checkpoint::open(&files, &path, &Arc::default())?;
        Ok((Scratch { files, path, checkpoint }, saved, place))
    }

    /// What consumers had in their hands is counted as failed.
    pub(super) fn apply_attempts(&self, index: &mut Index) -> Result<(), OpenError> {
        let path = self.directory.attempts();
        let attempts = Attempts::read(&*self.files, &path).map_err(OpenError::io(&path))?;
        attempts.into_iter().for_each(|attempt| index.apply_attempt(attempt));
        Ok(())
    }

    /// What a broker would find that starts now.
    pub(super) fn state(&self) -> Result<(Saved, Place, Scanned), InspectError> {
        let path = self.directory.checkpoint();
        let refused = |error| OpenError::checkpoint(error, &path, self.directory.root());
        let (mut scratch, saved, place) = self.checkpoint().map_err(refused)?;
        let mut index = self.restore(saved);
        let scanned =
            self.scan(place, &mut index).map_err(|error| InspectError::scan(error, self.directory.root()))?;
        index.drop_open();
        self.apply_attempts(&mut index)?;
        let saved = scratch.merge(index.take_changes(), place).map_err(refused)?;
        Ok((saved, place, scanned))
    }

    /// An index over the segments that are there.
    pub(super) fn restore(&self, saved: Saved) -> Index {
        Index::restore(saved, self.segments.live().into_iter().map(|segment| segment.base))
    }

    /// Applies what stands behind the checkpoint.
    pub(super) fn scan(&self, place: Place, index: &mut Index) -> Result<Scanned, ScanError> {
        let tail = Tail { from: place.tail, durable: place.durable, epoch: place.epoch };
        check_lengths(&self.segments, tail.from)?;
        scan(&self.segments, tail, |entry| index.apply(entry))
    }
}

impl Scratch {
    /// A checkpoint in memory that says nothing.
    pub(super) fn empty() -> Result<Self, CheckpointError> {
        let path = PathBuf::from("state");
        let files: Arc<dyn FileSystem> = Arc::new(RecordedFiles::new());
        files.create_directory(Path::new(""))?;
        let checkpoint = Checkpoint::create(&files, &path, &Arc::default())?;
        Ok(Self { files, path, checkpoint })
    }

    /// All that the checkpoint would hold after these changes.
    pub(super) fn merge(&mut self, changes: Changes, place: Place) -> Result<Saved, CheckpointError> {
        self.checkpoint.write(changes, place)?;
        self.checkpoint.close()?;
        let opened = Checkpoint::open(&self.files, &self.path, &Arc::default())?;
        let (checkpoint, saved, _) = opened;
        self.checkpoint = checkpoint;
        Ok(saved)
    }
}
