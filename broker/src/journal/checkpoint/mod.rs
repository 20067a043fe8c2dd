//! The checkpoint: what the index was at one place of the journal, in one redb file.
//!
//! One transaction writes what changed since the last one, and the place up to which it is true. It is authoritative:
//! no record before that place is needed for anything but the message in it.

mod backend;
mod extent;
#[cfg(test)]
mod tests;
mod values;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use redb::{
    Database, DatabaseError, ReadTransaction, ReadableDatabase, ReadableTable, ReadableTableMetadata,
    StorageError, Table, TableDefinition, TableError, WriteTransaction,
};

pub(crate) use self::extent::Extent;

use self::backend::Backend;
use super::index::{Changes, Counters, Operation, Producer, Saved, SavedTransaction, TransactionChange};
use super::lsn::Lsn;
use crate::files::{FileSystem, OpenMode};
use crate::store::StoredId;

/// The version of the format of what is in the file; redb has one of its own.
pub(crate) const VERSION: u64 = 2;

/// What redb may keep of the file in memory. It is read once, at the start, and then only written.
const CACHE: usize = 16 << 20;

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const REFERENCES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("references");
const QUEUES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("queues");
const SUBSCRIPTIONS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("subscriptions");
const PRODUCERS: TableDefinition<'_, &str, (u64, u64)> = TableDefinition::new("producers");
const TRANSACTIONS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("transactions");
const OPERATIONS: TableDefinition<'_, (u64, u64), &[u8]> = TableDefinition::new("operations");

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

/// Why there is no checkpoint to go on with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckpointError {
    /// There is none.
    #[error("it is missing")]
    Missing,
    /// It cannot be understood.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// It was written by a newer version.
    #[error("it was written by a newer version (checkpoint format {found}, this one knows {VERSION})")]
    Newer {
        /// The version that it says.
        found: u64,
    },
    /// Reading or writing it failed.
    #[error(transparent)]
    Io(#[from] io::Error),
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
        let (saved, place) = read(&database.begin_read().map_err(unreadable)?)?;
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
        write(&database, &self.unwritten, last.counters, *place).map_err(io_error)?;
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
        let measured = || -> Result<u64, redb::Error> {
            let stats = database.begin_read()?.open_table(REFERENCES)?.stats()?;
            Ok(stats.leaf_pages() + stats.branch_pages())
        };
        measured().map(|pages| pages * extent::PAGE).map_err(io_error)
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

/// Writes all of these, after which the counters and the place are those.
fn write(
    database: &Database,
    unwritten: &[(Changes, Place)],
    counters: Counters,
    place: Place,
) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    for (changes, _) in unwritten {
        write_changes(&transaction, changes)?;
    }
    {
        let mut meta = transaction.open_table(META)?;
        for (name, value) in [
            ("version", VERSION),
            ("epoch", place.epoch),
            ("tail", place.tail.0),
            ("durable", place.durable.0),
            ("position", counters.position),
            ("last_id", counters.last_id.0),
            ("transaction", counters.transaction),
            ("prepared", counters.prepared),
            ("queues", counters.queues),
        ] {
            meta.insert(name, value)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

fn write_changes(transaction: &WriteTransaction, changes: &Changes) -> Result<(), redb::Error> {
    let mut bytes = Vec::new();
    let mut references = transaction.open_table(REFERENCES)?;
    for (stored, reference) in &changes.references {
        match reference {
            Some(reference) => {
                values::put_padded_reference(&mut bytes, *stored, reference);
                references.insert(stored.0, &*bytes)?;
            }
            None => drop(references.remove(stored.0)?),
        }
        bytes.clear();
    }
    let mut queues = transaction.open_table(QUEUES)?;
    let mut subscriptions = transaction.open_table(SUBSCRIPTIONS)?;
    for (number, holder, totals) in &changes.queues {
        let table =
            if values::put_holder(&mut bytes, holder, totals) { &mut subscriptions } else { &mut queues };
        table.insert(number, &*bytes)?;
        bytes.clear();
    }
    for number in &changes.removed_queues {
        subscriptions.remove(number)?;
    }
    let mut producers = transaction.open_table(PRODUCERS)?;
    for (name, producer) in &changes.producers {
        match producer {
            Some(Producer { sequence, used }) => drop(producers.insert(&**name, (*sequence, *used))?),
            None => drop(producers.remove(&**name)?),
        }
    }
    let mut transactions = transaction.open_table(TRANSACTIONS)?;
    let mut operations = transaction.open_table(OPERATIONS)?;
    for change in &changes.transactions {
        write_transaction(&mut transactions, &mut operations, change)?;
    }
    Ok(())
}

fn write_transaction(
    transactions: &mut Table<'_, u64, &[u8]>,
    operations: &mut Table<'_, (u64, u64), &[u8]>,
    change: &TransactionChange,
) -> Result<(), redb::Error> {
    let mut bytes = Vec::new();
    match change {
        TransactionChange::Open { number, id, prepared, from, operations: added } => {
            values::put_transaction(&mut bytes, id, *prepared);
            transactions.insert(number, &*bytes)?;
            for (place, operation) in (*from as u64..).zip(added) {
                bytes.clear();
                values::put_operation(&mut bytes, operation);
                operations.insert((*number, place), &*bytes)?;
            }
        }
        TransactionChange::Ended { number, operations: count } => {
            transactions.remove(number)?;
            for place in 0..*count as u64 {
                operations.remove((*number, place))?;
            }
        }
    }
    Ok(())
}

fn read(transaction: &ReadTransaction) -> Result<(Saved, Place), CheckpointError> {
    let meta = transaction.open_table(META).map_err(unreadable)?;
    let get = |name: &str| -> Result<u64, CheckpointError> {
        let value = meta.get(name).map_err(unreadable)?;
        value
            .map(|value| value.value())
            .ok_or_else(|| CheckpointError::Unreadable(format!("it has no `{name}`")))
    };
    // Before anything else: what comes after the version is that version's.
    let version = get("version")?;
    if version > VERSION {
        return Err(CheckpointError::Newer { found: version });
    }
    let place = Place { epoch: get("epoch")?, tail: Lsn(get("tail")?), durable: Lsn(get("durable")?) };
    let counters = Counters {
        position: get("position")?,
        last_id: StoredId(get("last_id")?),
        transaction: get("transaction")?,
        prepared: get("prepared")?,
        queues: if version == 1 { 0 } else { get("queues")? },
    };
    let mut saved = Saved { counters, ..Saved::default() };
    each(transaction, QUEUES, |number, bytes| {
        let (holder, totals) = values::queue(bytes)?;
        saved.queues.push((number, holder, totals));
        Ok(())
    })?;
    each(transaction, SUBSCRIPTIONS, |number, bytes| {
        let (holder, totals) = values::subscription(bytes)?;
        saved.queues.push((number, holder, totals));
        Ok(())
    })?;
    saved.queues.sort_unstable_by_key(|(number, ..)| *number);
    each(transaction, REFERENCES, |stored, bytes| {
        let stored = StoredId(stored);
        let reference = values::padded_reference(stored, bytes)?;
        if saved.queues.binary_search_by_key(&reference.queue, |(number, ..)| *number).is_err() {
            return Err("a message is on a queue that is missing");
        }
        saved.references.push((stored, reference));
        Ok(())
    })?;
    each(transaction, PRODUCERS, |name: &str, (sequence, used)| {
        saved.producers.push((name.into(), Producer { sequence, used }));
        Ok(())
    })?;
    each(transaction, TRANSACTIONS, |number, bytes| {
        let (id, prepared) = values::transaction(bytes)?;
        saved.transactions.push(SavedTransaction { number, id, prepared, operations: Vec::new() });
        Ok(())
    })?;
    each(transaction, OPERATIONS, |(number, place), bytes| {
        let operations =
            operations_of(&mut saved.transactions, number).ok_or("an operation has no transaction")?;
        if place != operations.len() as u64 {
            return Err("an operation is missing");
        }
        operations.push(values::operation(bytes)?);
        Ok(())
    })?;
    Ok((saved, place))
}

fn operations_of(transactions: &mut [SavedTransaction], number: u64) -> Option<&mut Vec<Operation>> {
    let at = transactions.binary_search_by_key(&number, |transaction| transaction.number).ok()?;
    Some(&mut transactions[at].operations)
}

/// Visits the rows of a table in the order of their keys; a table that was never written is empty.
fn each<K: redb::Key + 'static, V: redb::Value + 'static>(
    transaction: &ReadTransaction,
    definition: TableDefinition<'_, K, V>,
    mut visit: impl for<'a> FnMut(K::SelfType<'a>, V::SelfType<'a>) -> Result<(), &'static str>,
) -> Result<(), CheckpointError> {
    let table = match transaction.open_table(definition) {
        Ok(table) => table,
        Err(TableError::TableDoesNotExist(_)) => return Ok(()),
        Err(error) => return Err(unreadable(error)),
    };
    for row in table.iter().map_err(unreadable)? {
        let (key, value) = row.map_err(unreadable)?;
        visit(key.value(), value.value()).map_err(|fault| {
            CheckpointError::Unreadable(format!("table `{}`: {fault}", redb::TableHandle::name(&definition)))
        })?;
    }
    Ok(())
}

fn unreadable(error: impl Into<redb::Error>) -> CheckpointError {
    match error.into() {
        redb::Error::Io(error) if !is_damage(&error) => CheckpointError::Io(error),
        other => CheckpointError::Unreadable(other.to_string()),
    }
}

/// Whether an error of reading speaks of the bytes in the file and not of the disk.
fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput
    )
}

fn io_error(error: redb::Error) -> io::Error {
    match error {
        redb::Error::Io(error) => error,
        other => io::Error::other(other),
    }
}
