//! What was submitted together, as bytes.

use std::ops::Range;

use super::change::{Change, Entry};
use super::index::{Weight, greatest_weight, greatest_weight_of_transaction};
use super::lsn::Lsn;
use super::record::{self, LargeRest};
use crate::store::{Arrival, Safety, StoreError, StoreOperation, StoreTransaction};

/// Operations that were submitted together, as records that have no place yet. Made by who submits, outside of every
/// lock.
#[derive(Debug)]
pub(crate) struct Encoded {
    bytes: Vec<u8>,
    records: Vec<Unplaced>,
    large: Vec<LargeRest>,
    safety: Safety,
    is_send: bool,
    weight: Weight,
}

/// A record within the bytes.
#[derive(Debug)]
struct Unplaced {
    start: usize,
    length: u32,
    change: Change,
}

impl Encoded {
    /// Of `operations`; a message whose record would be longer than `large_from` bytes is a large one.
    ///
    /// # Errors
    /// A name is so long that not even a record without its message's body fits `large_from`, or some text or body is
    /// longer than 4 GiB.
    pub(crate) fn new(operations: &[StoreOperation], large_from: u64) -> Result<Self, StoreError> {
        let mut encoded = Self {
            bytes: Vec::new(),
            records: Vec::with_capacity(operations.len()),
            large: Vec::new(),
            safety: StoreOperation::safety(operations),
            is_send: operations.iter().any(is_send),
            weight: Weight::default(),
        };
        let mut last_transaction = None;
        for operation in operations {
            let start = encoded.bytes.len();
            let (change, large) = record::put_record(&mut encoded.bytes, operation, large_from)
                .map_err(|_| too_large("a text or a body is longer than 4 GiB"))?;
            let length = encoded.bytes.len() - start;
            if length as u64 > large_from {
                return Err(too_large(&format!(
                    "names and transaction take {length} bytes, and {large_from} are allowed"
                )));
            }
            let length = u32::try_from(length).map_err(|_| too_large("it is longer than 4 GiB"))?;
            encoded.weight += greatest_weight(&change);
            let transaction = change.begins();
            if transaction.is_some() && transaction != last_transaction {
                encoded.weight +=
                    transaction.as_ref().map(greatest_weight_of_transaction).unwrap_or_default();
                last_transaction = transaction;
            }
            encoded.records.push(Unplaced { start, length, change });
            encoded.large.extend(large);
        }
        Ok(encoded)
    }

    /// The end of a transaction; none where its own name is so long that it has no records at all.
    pub(super) fn rollback(transaction: StoreTransaction, large_from: u64) -> Option<Self> {
        Self::new(&[StoreOperation::Rollback(transaction)], large_from).ok()
    }

    /// How safe it has to be to be complete.
    pub(crate) fn safety(&self) -> Safety {
        self.safety
    }

    /// Bytes that it takes in the journal and in files of its own.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + self.large.iter().map(|rest| rest.bytes.len()).sum::<usize>()
    }

    /// Whether a message of it was sent or copied: for those the room is not that is kept back.
    pub(crate) fn is_send(&self) -> bool {
        self.is_send
    }

    /// Whether it has a message that stays: the segment that it is in is not free before that is gone.
    pub(super) fn has_message(&self) -> bool {
        self.changes().any(|change| matches!(change, Change::Append(_)))
    }

    /// Whether nobody can try it again who is told that it was not written: it only ends messages, or says what became of them.
    pub(super) fn is_final(&self) -> bool {
        self.changes().all(|change| {
            matches!(
                change,
                Change::Remove { transaction: None, .. }
                    | Change::RemoveSubscription(_)
                    | Change::DeliveryState { .. }
                    | Change::Rollback(_)
            )
        })
    }

    /// What it may add to the index at most.
    pub(super) fn weight(&self) -> Weight {
        self.weight
    }

    /// What its records change.
    pub(super) fn changes(&self) -> impl Iterator<Item = &Change> {
        self.records.iter().map(|record| &record.change)
    }

    /// How many records it has.
    pub(super) fn records(&self) -> usize {
        self.records.len()
    }

    /// Bytes of these records, without large bodies.
    pub(super) fn bytes(&self, records: Range<usize>) -> usize {
        self.records[records].iter().map(|record| record.length as usize).sum()
    }

    /// The rests of large messages.
    pub(super) fn large(&self) -> &[LargeRest] {
        &self.large
    }

    /// Appends these records to `out`, of which the first byte stands at `lsn`, and what they are to `entries`.
    pub(super) fn place(&self, records: Range<usize>, lsn: Lsn, out: &mut Vec<u8>, entries: &mut Vec<Entry>) {
        for record in &self.records[records] {
            let place = Lsn(lsn.0 + out.len() as u64);
            let start = out.len();
            out.extend_from_slice(&self.bytes[record.start..][..record.length as usize]);
            record::place(&mut out[start..], place);
            entries.push(Entry { lsn: place, length: record.length, change: record.change.clone() });
        }
    }
}

fn is_send(operation: &StoreOperation) -> bool {
    matches!(operation.arrival(), Some(Arrival::Sent | Arrival::Copied))
}

fn too_large(why: &str) -> StoreError {
    StoreError::Io(format!("a message is too large for the store: {why}"))
}
