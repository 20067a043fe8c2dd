//! The journal's files: what is written is read, and what is damaged is cut or refused.

mod damage;
mod lives;
mod round_trips;
mod writing;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use corriere_core::{ConnectionId, Destination, Message};

use super::change::{Appended, Change, Entry};
use super::encoded::Encoded;
use super::index::Reference;
use super::lsn::Lsn;
use super::scan::{ScanError, Scanned, Tail, scan};
use super::segments::Segments;
use super::writer::{Claim, WriteError, Writer, Written};
use crate::files::RecordedFiles;
use crate::store::{Arrival, DeliveryState, StoreOperation, StoreTransaction, StoredId};

/// Numbers from a seed (`SplitMix64`).
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }

    pub(super) fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// A small journal on recorded files.
struct Journal {
    files: RecordedFiles,
    length: u64,
    segments: Arc<Segments>,
    writer: Writer,
}

impl Journal {
    /// A new one, with segments of so many bytes.
    fn new(length: u64) -> Self {
        Self::resume(RecordedFiles::new(), length, Tail::default()).0
    }

    /// Opens it on files that are there; with what was read of them.
    fn resume(files: RecordedFiles, length: u64, tail: Tail) -> (Self, Vec<Entry>, Scanned) {
        let (segments, entries, scanned) = open(&files, length, tail).unwrap();
        let writer =
            Writer::resume(Arc::clone(&segments), scanned.end, scanned.epoch + 1, scanned.durable).unwrap();
        (Self { files, length, segments, writer }, entries, scanned)
    }

    fn write(&mut self, parts: &[Vec<StoreOperation>]) -> Result<Written, WriteError> {
        let encoded = |part: &Vec<StoreOperation>| Encoded::new(part, self.segments.large_from()).unwrap();
        self.writer.write(&parts.iter().map(encoded).collect::<Vec<_>>(), Claim::Ends)
    }

    fn read(&self, tail: Tail) -> Result<(Vec<Entry>, Scanned), ScanError> {
        open(&self.files, self.length, tail).map(|(_, entries, scanned)| (entries, scanned))
    }
}

fn open(
    files: &RecordedFiles,
    length: u64,
    tail: Tail,
) -> Result<(Arc<Segments>, Vec<Entry>, Scanned), ScanError> {
    let segments = Segments::open(Arc::new(files.clone()), directory(), length).unwrap();
    let mut entries = Vec::new();
    let scanned = scan(&segments, tail, |entry| entries.push(entry))?;
    Ok((Arc::new(segments), entries, scanned))
}

fn directory() -> &'static Path {
    Path::new("/data/journal")
}

fn segment(base: u64) -> PathBuf {
    directory().join(format!("{base:016x}.journal"))
}

/// A message of so many bytes enters a queue.
fn append(stored: u64, bytes: usize) -> StoreOperation {
    StoreOperation::Append {
        stored: StoredId(stored),
        queue: Destination::queue("orders").unwrap(),
        arrival: Arrival::Sent,
        message: Arc::new(Message::text("x".repeat(bytes))),
        transaction: None,
    }
}

fn within(transaction: &StoreTransaction, stored: u64, bytes: usize) -> StoreOperation {
    let StoreOperation::Append { stored, queue, arrival, message, .. } = append(stored, bytes) else {
        unreachable!("it makes these only")
    };
    StoreOperation::Append { stored, queue, arrival, message, transaction: Some(transaction.clone()) }
}

fn local(number: u64) -> StoreTransaction {
    StoreTransaction::Local(ConnectionId::foreign("ID:1-2-3"), number)
}

/// The names of the messages that were appended, in order.
fn appended(entries: &[Entry]) -> Vec<u64> {
    let stored = |entry: &Entry| match &entry.change {
        Change::Append(appended) => Some(appended.stored.0),
        _ => None,
    };
    entries.iter().filter_map(stored).collect()
}

/// How the index refers to the message of a record.
fn reference(entry: &Entry) -> Reference {
    let Change::Append(Appended { priority, expiration, size, large, .. }) = entry.change else {
        panic!("{entry:?} is no message")
    };
    let (lsn, length, state) = (entry.lsn, entry.length, DeliveryState::default());
    Reference { lsn, length, queue: 0, position: 0, size, priority, expiration, state, large }
}

/// As a checkpoint knows it that is of this moment.
fn tail_at(end: Lsn, epoch: u64) -> Tail {
    Tail { from: end, durable: end, epoch }
}
