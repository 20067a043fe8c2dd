//! Brings what can still be read into a new directory.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::look::{Looked, Scratch};
use super::verify::{of_damage, of_missing, torn};
use super::walk::{From, Piece, walk};
use super::{Finding, InspectError, describe};
use crate::files::{FileSystem, Lock, OpenMode};
use crate::journal::change::{Appended, Change, Entry, LargeFile, Recipients};
use crate::journal::checkpoint::{Checkpoint, CheckpointError, Place};
use crate::journal::directory::Directory;
use crate::journal::encoded::Encoded;
use crate::journal::error::OpenError;
use crate::journal::index::{
    Changes, Index, Operation, Reference, Saved, SavedTransaction, TransactionChange,
};
use crate::journal::lsn::Lsn;
use crate::journal::reader::read_appended;
use crate::journal::segments::Segments;
use crate::journal::writer::{Claim, WriteError, Writer};
use crate::store::{Arrival, StoreOperation, StoreTransaction, StoredId, SubscriptionName};

/// What was brought over, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// How many live messages are in the new directory.
    pub messages: u64,
    /// What is lost.
    pub lost: Vec<Finding>,
    /// What may be there twice or again, and what a start would have cut.
    pub notes: Vec<Finding>,
}

/// Brings all live messages that can be read, with their order, delivery state, totals and prepared transactions, into
/// `into`, which must be empty or not there. What is damaged is passed over, record by record.
///
/// Without a readable checkpoint, what was consumed before its records were given up may come back.
///
/// # Errors
/// It could not be looked at, `into` is not empty, or reading or writing failed; `into` is of no use then.
pub fn repair(files: &Arc<dyn FileSystem>, directory: &Path, into: &Path) -> Result<Repaired, InspectError> {
    let looked = Looked::at(files, directory)?;
    let target = Target::make(files, directory, into, looked.segments.max_file_length())?;
    let mut repaired = Repaired::default();
    let mut read = Read::checkpoint(&looked, &mut repaired)?;
    read.journal(&looked, &mut repaired)?;
    let saved = read.finish(&looked, &mut repaired)?;
    target.write(&looked, saved, &mut repaired)?;
    Ok(repaired)
}

/// What has been read of the old directory.
struct Read {
    scratch: Scratch,
    place: Place,
    index: Index,
    epoch: u64,
    has_checkpoint: bool,
    /// Whether records are lost behind the checkpoint, the end of a transaction among them perhaps.
    has_gaps: bool,
}

impl Read {
    fn checkpoint(looked: &Looked, repaired: &mut Repaired) -> Result<Self, InspectError> {
        let path = looked.directory.checkpoint();
        let refused = |error| OpenError::checkpoint(error, &path, looked.directory.root());
        let (scratch, saved, place, has_checkpoint) = match looked.checkpoint() {
            Ok((scratch, saved, place)) => (scratch, saved, place, true),
            Err(error @ (CheckpointError::Missing | CheckpointError::Unreadable(_))) => {
                repaired.notes.push(Finding {
                    file: path.clone(),
                    offset: None,
                    what: format!(
                        "the checkpoint: {error}; all that the journal has is brought back, so messages that were \
                         consumed may be there again, with their deliveries and the totals of their queues counted \
                         anew"
                    ),
                });
                (Scratch::empty().map_err(refused)?, Saved::default(), Place::default(), false)
            }
            Err(error) => return Err(refused(error).into()),
        };
        let mut index = looked.restore(saved);
        index.guess_subscriptions();
        let has_gaps = !has_checkpoint;
        Ok(Self { scratch, place, index, epoch: place.epoch, has_checkpoint, has_gaps })
    }

    /// Applies all records behind the checkpoint that are whole, or all that there are.
    fn journal(&mut self, looked: &Looked, repaired: &mut Repaired) -> Result<(), InspectError> {
        let lsn = if self.has_checkpoint { self.place.tail } else { looked.first() };
        let from = From { lsn, epoch: self.place.epoch, durable: self.place.durable };
        let walked = walk(&looked.segments, from, |piece| match piece {
            Piece::Whole(entries) => entries.into_iter().for_each(|entry| self.index.apply(entry)),
            Piece::Damaged(damaged) => {
                repaired.lost.push(of_damage(&damaged));
                self.has_gaps = true;
                damaged.entries.into_iter().for_each(|entry| self.index.apply(entry));
            }
            Piece::Missing { file, from, to } => {
                let mut finding = of_missing(file, from, to);
                self.has_gaps = true;
                if self.has_checkpoint {
                    repaired.lost.push(finding);
                } else {
                    finding.what += ", unless it was given up because nobody needed it";
                    repaired.notes.push(finding);
                }
            }
        });
        for segment in looked.segments.live() {
            if let Some(what) = segment.wrong_length() {
                let what = format!("{what}; what it lacks is lost");
                repaired.lost.push(Finding { file: segment.path, offset: Some(segment.length), what });
            }
        }
        let in_journal = |error| InspectError::scan(error, looked.directory.root());
        self.epoch = walked.map_err(in_journal)?.max(self.epoch);
        if self.has_checkpoint
            && let Ok(scanned) = looked.scan(self.place, &mut Index::default())
        {
            repaired.notes.extend(scanned.cut.map(torn));
        }
        Ok(())
    }

    /// All that is to be in the new directory, with the places of the old one.
    fn finish(mut self, looked: &Looked, repaired: &mut Repaired) -> Result<Saved, InspectError> {
        if !self.has_gaps {
            self.index.drop_open();
        }
        looked.apply_attempts(&mut self.index)?;
        let file = looked.directory.journal();
        let note = |name: &SubscriptionName| {
            let what = format!(
                "{name} is brought back for what was sent to it, as the record of its making is not there; messages of its own \
                 client are not left out"
            );
            Finding { file: file.clone(), offset: None, what }
        };
        repaired.notes.extend(self.index.guessed_subscriptions().map(note));
        let merged = self.scratch.merge(self.index.take_changes(), self.place);
        let path = looked.directory.checkpoint();
        let mut saved =
            merged.map_err(|error| OpenError::checkpoint(error, &path, looked.directory.root()))?;
        saved.counters.last_id = saved.counters.last_id.max(last_large(&looked.segments));
        let transactions = std::mem::take(&mut saved.transactions);
        for transaction in transactions {
            if transaction.prepared.is_some() {
                saved.transactions.push(transaction);
            } else {
                bring_back(&mut saved, transaction, looked, repaired);
            }
        }
        Ok(saved)
    }
}

/// No message is to get the name of one whose large body may still be there.
fn last_large(segments: &Segments) -> StoredId {
    segments.large_files().last().map(|(stored, _)| *stored).unwrap_or_default()
}

/// What a transaction sent whose end may be lost: better there without it than lost with it.
fn bring_back(saved: &mut Saved, transaction: SavedTransaction, looked: &Looked, repaired: &mut Repaired) {
    let name = describe::transaction_name(&transaction.id);
    for operation in transaction.operations {
        let Operation::Send { stored, mut reference, arrival, .. } = operation else { continue };
        saved.counters.position += 1;
        reference.position = saved.counters.position;
        if let Some((_, _, totals)) = saved.queues.iter_mut().find(|(queue, ..)| *queue == reference.queue) {
            totals.enqueued += u64::from(arrival == Arrival::Sent);
        }
        saved.references.push((stored, reference));
        let (file, offset) = looked.place(reference.lsn);
        repaired.notes.push(Finding {
            file,
            offset,
            what: format!(
                "{} was sent by the transaction {name}, whose end is not there; it is brought back, and is there \
                 again if that was never committed",
                saved.name(stored, reference.queue)
            ),
        });
    }
}

/// The new directory.
struct Target {
    files: Arc<dyn FileSystem>,
    directory: Directory,
    segments: Arc<Segments>,
    _lock: Box<dyn Lock>,
}

impl Target {
    /// Bytes of messages that are written at once.
    const CHUNK: usize = 1 << 20;

    fn make(
        files: &Arc<dyn FileSystem>,
        source: &Path,
        into: &Path,
        length: u64,
    ) -> Result<Self, InspectError> {
        if into.starts_with(source) || source.starts_with(into) {
            return Err(InspectError::NotEmpty { directory: into.to_owned() });
        }
        let directory = Directory::new(into);
        let state = directory.checkpoint();
        for within in [into, &directory.journal(), state.parent().unwrap_or(&state)] {
            match files.list(within) {
                Ok(listed) if listed.is_empty() => {}
                Ok(_) => return Err(InspectError::NotEmpty { directory: into.to_owned() }),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(OpenError::io(within)(error).into()),
            }
        }
        let lock = directory.lock(&**files)?;
        mark_unfinished(&**files, &directory, source).map_err(OpenError::io(into))?;
        let journal = directory.journal();
        let segments =
            Segments::open(Arc::clone(files), &journal, length).map_err(OpenError::io(&journal))?;
        Ok(Self { files: Arc::clone(files), directory, segments: Arc::new(segments), _lock: lock })
    }

    /// Writes the messages, and what is known of them.
    fn write(self, looked: &Looked, mut saved: Saved, repaired: &mut Repaired) -> Result<(), InspectError> {
        let journal = self.directory.journal();
        let epoch = 1;
        let mut copy = Copy {
            looked,
            writer: Writer::resume(Arc::clone(&self.segments), Lsn(0), epoch, Lsn(0))
                .map_err(OpenError::io(&journal))?,
            large_from: self.segments.large_from(),
            waiting: Vec::new(),
            from: Vec::new(),
            bytes: 0,
            placed: HashMap::new(),
            read: HashMap::new(),
        };
        let mut references = std::mem::take(&mut saved.references);
        references.sort_by_key(|(_, reference)| reference.position);
        for (stored, reference) in &references {
            copy.message(*stored, reference, None, &saved, repaired)?;
        }
        for transaction in &saved.transactions {
            for operation in &transaction.operations {
                if let Operation::Send { stored, reference, .. } = operation {
                    copy.message(*stored, reference, Some(&transaction.id), &saved, repaired)?;
                }
            }
        }
        copy.write()?;
        let end = copy.writer.sync().map_err(of_write)?;
        let placed = copy.placed;
        let moved = |reference: Reference| {
            let Placed { lsn, length, large } = *placed.get(&reference.lsn)?;
            Some(Reference { lsn, length, large, ..reference })
        };
        let references =
            references.into_iter().filter_map(|(stored, reference)| Some((stored, moved(reference)?)));
        saved.references = references.collect();
        for transaction in &mut saved.transactions {
            transaction.operations.retain_mut(|operation| match operation {
                Operation::Send { reference, .. } => {
                    moved(*reference).map(|moved| *reference = moved).is_some()
                }
                Operation::Remove { .. } => true,
            });
        }
        let sends = saved.transactions.iter().flat_map(|transaction| &transaction.operations);
        let sends = sends.filter(|operation| matches!(operation, Operation::Send { .. })).count();
        repaired.messages = (saved.references.len() + sends) as u64;
        let path = self.directory.checkpoint();
        let failed = |error| OpenError::checkpoint(error, &path, self.directory.root());
        let mut checkpoint = Checkpoint::create(&self.files, &path, &Arc::default()).map_err(failed)?;
        let written = checkpoint.write(all(saved), Place { epoch, tail: end, durable: end });
        written.and_then(|()| checkpoint.close()).map_err(OpenError::io(&path))?;
        let root = self.directory.root();
        let removed = self.files.remove(&self.directory.unfinished());
        removed.and_then(|()| self.files.sync_directory(root)).map_err(OpenError::io(root))?;
        Ok(())
    }
}

/// Until all is there, nobody is to take it for a whole directory.
fn mark_unfinished(files: &dyn FileSystem, directory: &Directory, source: &Path) -> io::Result<()> {
    let mark = files.open(&directory.unfinished(), OpenMode::New)?;
    mark.write_all_at(source.display().to_string().as_bytes(), 0)?;
    mark.sync_data()?;
    files.sync_directory(directory.root())
}

/// Where a record is in the new journal.
#[derive(Clone, Copy)]
struct Placed {
    lsn: Lsn,
    length: u32,
    large: Option<LargeFile>,
}

/// Messages on their way from the old journal to the new one.
struct Copy<'a> {
    looked: &'a Looked,
    writer: Writer,
    large_from: u64,
    waiting: Vec<Encoded>,
    /// Where the records of these were.
    from: Vec<Lsn>,
    bytes: usize,
    /// Where each record is now, by where it was.
    placed: HashMap<Lsn, Placed>,
    /// Records that were read, as several messages may have one, and why they could not be.
    read: HashMap<Lsn, Result<(), String>>,
}

impl Copy<'_> {
    fn message(
        &mut self,
        stored: StoredId,
        reference: &Reference,
        transaction: Option<&StoreTransaction>,
        saved: &Saved,
        repaired: &mut Repaired,
    ) -> Result<(), InspectError> {
        let outcome = match self.read.get(&reference.lsn) {
            Some(known) => known.clone(),
            None => {
                let outcome = self.encode(stored, reference, transaction);
                self.read.insert(reference.lsn, outcome.clone());
                outcome
            }
        };
        if let Err(error) = outcome {
            let (file, offset) = self.looked.place(reference.lsn);
            let what = format!("{} is lost: {error}", saved.name(stored, reference.queue));
            repaired.lost.push(Finding { file, offset, what });
        }
        if self.bytes >= Target::CHUNK { self.write() } else { Ok(()) }
    }

    /// Reads a record and makes it anew, with all names that its message has.
    fn encode(
        &mut self,
        stored: StoredId,
        reference: &Reference,
        transaction: Option<&StoreTransaction>,
    ) -> Result<(), String> {
        let read = read_appended(&self.looked.segments, stored, reference);
        let (Appended { stored, to, arrival, .. }, message) = read.map_err(|error| error.to_string())?;
        let transaction = transaction.cloned();
        let operation = match to {
            Recipients::Queue(queue) => {
                StoreOperation::Append { stored, queue, arrival, message, transaction }
            }
            Recipients::Subscriptions(topic, subscriptions) => {
                StoreOperation::Publish { stored, topic, subscriptions, arrival, message, transaction }
            }
        };
        let encoded = Encoded::new(&[operation], self.large_from).map_err(|error| error.to_string())?;
        self.bytes += encoded.len();
        self.waiting.push(encoded);
        self.from.push(reference.lsn);
        Ok(())
    }

    fn write(&mut self) -> Result<(), InspectError> {
        let written = self.writer.write(&self.waiting, Claim::Ends).map_err(of_write)?;
        // Each is one record.
        for (from, entry) in self.from.drain(..).zip(written.entries) {
            if let Entry { lsn, length, change: Change::Append(Appended { large, .. }) } = entry {
                self.placed.insert(from, Placed { lsn, length, large });
            }
        }
        self.waiting.clear();
        self.bytes = 0;
        Ok(())
    }
}

fn of_write(error: WriteError) -> InspectError {
    let (WriteError::Full { path, error } | WriteError::Io { path, error, .. }) = error;
    OpenError::Io { path, error }.into()
}

/// A whole checkpoint as changes to an empty one.
fn all(saved: Saved) -> Changes {
    let opened = |SavedTransaction { number, id, prepared, operations }| TransactionChange::Open {
        number,
        id,
        prepared,
        from: 0,
        operations,
    };
    Changes {
        counters: saved.counters,
        references: saved
            .references
            .into_iter()
            .map(|(stored, reference)| (stored, Some(reference)))
            .collect(),
        queues: saved.queues,
        producers: saved.producers.into_iter().map(|(name, producer)| (name, Some(producer))).collect(),
        transactions: saved.transactions.into_iter().map(opened).collect(),
        ..Changes::default()
    }
}
