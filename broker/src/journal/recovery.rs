//! Brings back what a directory holds: the checkpoint, and the journal behind it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::attempts::Attempts;
use super::checkpoint::{Checkpoint, CheckpointError, Place};
use super::directory::Directory;
use super::error::OpenError;
use super::hold::Hold;
use super::index::{Index, Saved};
use super::keeper::write_checkpoint;
use super::lsn::Lsn;
use super::options::JournalOptions;
use super::room::Room;
use super::scan::{Tail, check_lengths, scan};
use super::segments::Segments;
use super::writer::Writer;
use crate::files::{FileSystem, is_full};
use crate::store::Recovered;

/// How often it is told how far the reading has come.
const PROGRESS: Duration = Duration::from_secs(3);

/// A journal that is ready to be written to.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) hold: Arc<Hold>,
    pub(super) segments: Arc<Segments>,
    pub(super) writer: Writer,
    pub(super) index: Index,
    pub(super) checkpoint: Checkpoint,
    pub(super) place: Place,
    pub(super) room: Room,
    pub(super) attempts: Attempts,
    pub(super) recovered: Recovered,
    /// Segments that nobody needs any more.
    pub(super) dead_segments: Vec<Lsn>,
}

/// Where the checkpoint of a directory is.
pub(super) fn checkpoint_path(directory: &Path) -> PathBuf {
    Directory::new(directory).checkpoint()
}

/// Opens a directory. Whatever is wrong with what is in it is found before anything is changed.
pub(super) fn open(
    files: &Arc<dyn FileSystem>,
    options: &JournalOptions,
    crashed: &Arc<AtomicBool>,
) -> Result<Opened, OpenError> {
    let directory = Directory::new(&options.directory);
    let lock = directory.lock(&**files)?;
    directory.check_finished(&**files)?;
    directory.check_kinds(&**files)?;
    if let Some(archive) = &options.archive {
        files.create_directory(archive).map_err(OpenError::io(archive))?;
    }
    let (mut checkpoint, saved, place) = open_checkpoint(files, &directory, crashed)?;
    let journal = directory.journal();
    let in_journal = || OpenError::io(&journal);
    let segments =
        Segments::open(Arc::clone(files), &journal, options.max_file_length).map_err(in_journal())?;
    segments.set_limit(options.store_limit);
    let segments = Arc::new(segments);

    let live = segments.live();
    let mut index = Index::restore(saved, live.iter().map(|segment| segment.base));
    let tail = Tail { from: place.tail, durable: place.durable, epoch: place.epoch };
    let mut progress = Progress::new(live.iter().map(|segment| segment.end().0).max(), place.tail);
    check_lengths(&segments, tail.from).map_err(|error| OpenError::scan(error, directory.root()))?;
    let scanned = scan(&segments, tail, |entry| {
        progress.note(entry.lsn);
        index.apply(entry);
    });
    let scanned = scanned.map_err(|error| OpenError::scan(error, directory.root()))?;
    if let Some(cut) = &scanned.cut {
        tracing::warn!(
            file = %cut.file.display(), offset = cut.offset, bytes = cut.bytes, why = %cut.why,
            "the end of the journal is torn; it is cut there, and nothing behind it had been confirmed"
        );
    }
    index.drop_open();
    tracing::info!(
        directory = %directory.root().display(), messages = index.messages(), records_read = scanned.records,
        "the journal is read"
    );
    verify(&index, &segments, &directory)?;
    let attempts_path = directory.attempts();
    let (attempts, noted) =
        Attempts::open(&**files, &attempts_path).map_err(OpenError::io(&attempts_path))?;
    noted.into_iter().for_each(|attempt| index.apply_attempt(attempt));
    let recovered = index.recovered();

    // The names of what the last process wrote last may not be durable yet; the bytes are by `resume`.
    files.sync_directory(&journal).map_err(in_journal())?;
    let epoch = scanned.epoch.max(place.epoch) + 1;
    let writer = Writer::resume(Arc::clone(&segments), scanned.end, epoch, scanned.durable);
    let writer = writer.map_err(in_journal())?;
    // What was cut off is no segment any more, and others may begin elsewhere.
    index.retain_segments(&segments.live().iter().map(|segment| segment.base).collect::<Vec<_>>());
    let place = Place { epoch, tail: scanned.end, durable: scanned.end };
    let mut changes = index.take_changes();
    let dead_segments = std::mem::take(&mut changes.dead_segments);
    let checkpoint_path = directory.checkpoint();
    let written = write_checkpoint(&mut checkpoint, &segments, 0, changes, place);
    written.map_err(|error| {
        let path = checkpoint_path.clone();
        if is_full(&error) { OpenError::NoRoom { path, error } } else { OpenError::Io { path, error } }
    })?;
    let pages = checkpoint.measure().map_err(OpenError::io(&checkpoint_path))?;
    let room = Room::new(Arc::clone(checkpoint.extent()), pages, index.weight());
    attempts.clear().map_err(OpenError::io(&attempts_path))?;
    remove_orphans(&index, &segments).map_err(in_journal())?;
    let hold = Arc::new(Hold::new(files, &directory, lock, attempts.file(), crashed));
    segments.set_hold(&hold);
    Ok(Opened { hold, segments, writer, index, checkpoint, place, room, attempts, recovered, dead_segments })
}

/// The checkpoint of the directory, or a new one where there is nothing yet.
fn open_checkpoint(
    files: &Arc<dyn FileSystem>,
    directory: &Directory,
    crashed: &Arc<AtomicBool>,
) -> Result<(Checkpoint, Saved, Place), OpenError> {
    let path = directory.checkpoint();
    let refused = |error| OpenError::checkpoint(error, &path, directory.root());
    let error = loop {
        match Checkpoint::open(files, &path, crashed) {
            Ok(opened) => return Ok(opened),
            // After a crash even this takes room, on a full disk that of what is kept back.
            Err(CheckpointError::Io(error)) if is_full(&error) && directory.drop_spare(&**files)? => {}
            Err(CheckpointError::Io(error)) if is_full(&error) => {
                return Err(OpenError::NoRoom { path: path.clone(), error });
            }
            Err(error) => break error,
        }
    };
    let is_none = matches!(error, CheckpointError::Missing | CheckpointError::Unreadable(_));
    if !is_none || directory.any_record(&**files)?.is_some() {
        return Err(refused(error));
    }
    // There never was a record, so this directory is new; a process may have ended while it was made.
    directory.remove_spares(&**files)?;
    let made = Checkpoint::create(files, &path, crashed).map_err(refused)?;
    Ok((made, Saved::default(), Place::default()))
}

/// Whether there is a file for each live message.
fn verify(index: &Index, segments: &Segments, directory: &Directory) -> Result<(), OpenError> {
    let live = segments.live();
    let large = segments.large_files();
    for (stored, reference) in index.live() {
        let before = live.partition_point(|segment| segment.base <= reference.lsn);
        let end = reference.lsn.0 + u64::from(reference.length);
        let segment = before.checked_sub(1).map(|at| &live[at]);
        if segment.is_none_or(|segment| segment.end().0 < end) {
            let file = segments.expected(reference.lsn);
            let why = format!("it is missing, and has message {} at {}", stored.0, reference.lsn);
            return Err(OpenError::Missing { file, why, directory: directory.root().to_owned() });
        }
        let name = reference.large.map(|large| large.name);
        if let Some(name) = name.filter(|name| large.binary_search_by_key(name, |(name, _)| *name).is_err()) {
            let file = segments.large_path(name);
            let why = format!("it is missing, and has the body of message {}", stored.0);
            return Err(OpenError::Missing { file, why, directory: directory.root().to_owned() });
        }
    }
    Ok(())
}

/// Removes the files of large messages of which there is no record.
fn remove_orphans(index: &Index, segments: &Segments) -> std::io::Result<()> {
    let files = segments.large_files();
    if files.is_empty() {
        return Ok(());
    }
    let live = index.live().filter_map(|(_, reference)| reference.large);
    let live: std::collections::HashSet<_> = live.map(|large| large.name).collect();
    let orphans = files.into_iter().filter(|(name, _)| !live.contains(name));
    orphans.map(|(name, _)| name).try_for_each(|name| segments.remove_large(name))
}

/// Tells how far the reading has come, when it takes long.
struct Progress {
    from: u64,
    bytes: u64,
    records: u64,
    told: Instant,
}

impl Progress {
    fn new(end: Option<u64>, tail: Lsn) -> Self {
        let bytes = end.unwrap_or(0).saturating_sub(tail.0);
        Self { from: tail.0, bytes, records: 0, told: Instant::now() }
    }

    fn note(&mut self, lsn: Lsn) {
        self.records += 1;
        // Asking for the time costs as much as a record.
        if self.records.is_multiple_of(4_096) && self.told.elapsed() >= PROGRESS {
            self.told = Instant::now();
            tracing::info!(
                bytes = lsn.0.saturating_sub(self.from),
                of = self.bytes,
                records = self.records,
                "reading the journal"
            );
        }
    }
}
