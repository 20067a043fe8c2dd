//! Operations as records, and back.

use std::sync::Arc;

use bytes::Bytes;
use corriere_core::id::Xid;
use corriere_core::{ConnectionId, Destination, Message, Timestamp};

use super::change::{Appended, Change};
use super::fields::{Fault, Fields, TooLong, put_bytes, put_u32, put_u64};
use super::lsn::Lsn;
use super::message::{Summary, put_destination, put_rest, put_text, read_destination, read_message};
use crate::store::{Arrival, DeliveryState, Removal, StoreOperation, StoreTransaction, StoredId};

/// Bytes in front of the fields of a record.
pub(super) const HEADER: usize = 12;

/// As much as a record without a message mostly takes.
const SHORT: usize = 64;

const MARK: [u8; 2] = *b"r:";
const CHECKSUM_AT: usize = 8;

const APPEND: u8 = 1;
const REMOVE: u8 = 2;
const DELIVERY_STATE: u8 = 3;
const PREPARE: u8 = 4;
const COMMIT: u8 = 5;
const ROLLBACK: u8 = 6;

/// The rest of a message that is too large for its record.
#[derive(Debug)]
pub(super) struct LargeRest {
    pub(super) stored: StoredId,
    pub(super) bytes: Vec<u8>,
}

/// Appends the record of an operation, valid at no place yet; see [`place`]. When it would be longer than `large_from`,
/// the rest of its message is taken out of it and returned.
pub(super) fn put_record(
    out: &mut Vec<u8>,
    operation: &StoreOperation,
    large_from: u64,
) -> Result<(Change, Option<LargeRest>), TooLong> {
    let start = out.len();
    // What grows bit by bit is copied over and over, and takes up to three times as much.
    out.reserve(match operation {
        StoreOperation::Append { message, .. } => message.size(),
        _ => SHORT,
    });
    out.extend([0; HEADER]);
    let mut large = None;
    let (kind, change) = match operation {
        StoreOperation::Append { stored, queue, arrival, message, transaction } => {
            put_append(out, *stored, queue, *arrival, message, transaction.as_ref())?;
            let large_at = out.len();
            out.push(0);
            Summary::put(out, message.headers())?;
            let rest_at = out.len();
            put_rest(out, message)?;
            if (out.len() - start) as u64 > large_from {
                // It may be many bytes: they stay in the memory that they are in, and what is in front of them leaves it.
                let front = out[..rest_at].to_vec();
                let mut rest = std::mem::replace(out, front);
                rest.drain(..rest_at);
                let summary = out.split_off(large_at + 1);
                out[large_at] = 1;
                put_u64(out, rest.len() as u64);
                put_u32(out, crc32c::crc32c(&rest));
                out.extend(summary);
                large = Some(LargeRest { stored: *stored, bytes: rest });
            }
            let headers = message.headers();
            let appended = Appended {
                stored: *stored,
                queue: queue.clone(),
                arrival: *arrival,
                priority: headers.priority,
                expiration: headers.expiration,
                size: message.size() as u64,
                producer: headers.message_id.as_ref().map(|id| (Arc::clone(&id.producer), id.sequence)),
                transaction: transaction.clone(),
                large: large.as_ref().map(|rest| rest.bytes.len() as u64),
            };
            (APPEND, Change::Append(appended))
        }
        StoreOperation::Remove { stored, reason, transaction } => {
            put_u64(out, stored.0);
            out.push(match reason {
                Removal::Acknowledged => 0,
                Removal::DeadLettered => 1,
                Removal::Expired => 2,
                Removal::Discarded => 3,
                Removal::Purged => 4,
                Removal::MovedOut => 5,
            });
            put_transaction(out, transaction.as_ref())?;
            (REMOVE, Change::Remove { stored: *stored, reason: *reason, transaction: transaction.clone() })
        }
        StoreOperation::DeliveryState { stored, state } => {
            put_u64(out, stored.0);
            put_state(out, state);
            (DELIVERY_STATE, Change::DeliveryState { stored: *stored, state: *state })
        }
        StoreOperation::Prepare(xid) => {
            put_xid(out, xid)?;
            (PREPARE, Change::Prepare(xid.clone()))
        }
        StoreOperation::Commit(transaction) => {
            put_transaction(out, Some(transaction))?;
            (COMMIT, Change::Commit(transaction.clone()))
        }
        StoreOperation::Rollback(transaction) => {
            put_transaction(out, Some(transaction))?;
            (ROLLBACK, Change::Rollback(transaction.clone()))
        }
    };
    let record = &mut out[start..];
    let length = u32::try_from(record.len()).map_err(|_| TooLong)?;
    record[..2].copy_from_slice(&MARK);
    record[2] = kind;
    record[4..8].copy_from_slice(&length.to_le_bytes());
    let checksum = checksum(record);
    record[CHECKSUM_AT..HEADER].copy_from_slice(&checksum.to_le_bytes());
    Ok((change, large))
}

/// Makes a record that [`put_record`] made valid at this place.
pub(super) fn place(record: &mut [u8], lsn: Lsn) {
    let of_place = of_place(lsn).to_le_bytes();
    record.iter_mut().skip(CHECKSUM_AT).zip(of_place).for_each(|(byte, with)| *byte ^= with);
}

/// The record with which `bytes` begin, if it is valid at this place.
pub(super) fn record_at(bytes: &[u8], lsn: Lsn) -> Result<&[u8], Fault> {
    let header = bytes.first_chunk::<HEADER>().ok_or("a record ends within its header")?;
    if header[..2] != MARK || !(APPEND..=ROLLBACK).contains(&header[2]) || header[3] != 0 {
        return Err("no record begins there");
    }
    let length = usize::try_from(number(header, 4)).unwrap_or(usize::MAX);
    let record = bytes.get(..length).ok_or("a record is said to be longer than all that is there")?;
    if length < HEADER {
        return Err("a record is said to be shorter than its header");
    }
    if checksum(record) ^ of_place(lsn) != number(header, CHECKSUM_AT) {
        return Err("the checksum of a record does not fit");
    }
    Ok(record)
}

/// The length of the record with which `bytes` seem to begin, whatever its checksum says, and the message that it seems
/// to be about.
pub(super) fn seems_to_be(bytes: &[u8]) -> Option<(u32, Option<StoredId>)> {
    let header = bytes.first_chunk::<HEADER>()?;
    let is_header = header[..2] == MARK && (APPEND..=ROLLBACK).contains(&header[2]) && header[3] == 0;
    let length = number(header, 4);
    let fields = bytes.get(HEADER..length as usize).filter(|_| is_header)?;
    let names_message = matches!(header[2], APPEND | REMOVE | DELIVERY_STATE);
    let stored = fields.first_chunk().filter(|_| names_message);
    Some((length, stored.map(|stored| StoredId(u64::from_le_bytes(*stored)))))
}

/// What a record that [`record_at`] returned changes.
pub(super) fn read_change(record: &[u8]) -> Result<Change, Fault> {
    let kind = record.get(2).copied().unwrap_or_default();
    let fields = &mut Fields::new(record.get(HEADER..).unwrap_or_default());
    let change = match kind {
        // What is left is the message's rest.
        APPEND => return Ok(Change::Append(read_append(fields)?.0)),
        REMOVE => Change::Remove {
            stored: StoredId(fields.u64()?),
            reason: match fields.u8()? {
                0 => Removal::Acknowledged,
                1 => Removal::DeadLettered,
                2 => Removal::Expired,
                3 => Removal::Discarded,
                4 => Removal::Purged,
                5 => Removal::MovedOut,
                _ => return Err("the reason of a removal is unknown"),
            },
            transaction: read_transaction(fields)?,
        },
        DELIVERY_STATE => {
            Change::DeliveryState { stored: StoredId(fields.u64()?), state: read_state(fields)? }
        }
        PREPARE => Change::Prepare(read_xid(fields)?),
        COMMIT => Change::Commit(read_transaction(fields)?.ok_or(NO_TRANSACTION)?),
        ROLLBACK => Change::Rollback(read_transaction(fields)?.ok_or(NO_TRANSACTION)?),
        _ => return Err("the kind of a record is unknown"),
    };
    fields.finish()?;
    Ok(change)
}

/// A delivery state, in a record as in the checkpoint.
pub(super) fn put_state(out: &mut Vec<u8>, state: &DeliveryState) {
    put_u32(out, state.failed_deliveries);
    match state.not_before {
        None => out.push(0),
        Some(not_before) if state.since == Timestamp(0) => {
            out.push(1);
            put_u64(out, not_before.0);
        }
        Some(not_before) => {
            out.push(2);
            put_u64(out, not_before.0);
            put_u64(out, state.since.0);
        }
    }
    out.push(state.conversion_failed.into());
}

/// What [`put_state`] put.
pub(super) fn read_state(fields: &mut Fields<'_>) -> Result<DeliveryState, Fault> {
    let failed_deliveries = fields.u32()?;
    let (not_before, since) = match fields.u8()? {
        0 => (None, Timestamp(0)),
        1 => (Some(Timestamp(fields.u64()?)), Timestamp(0)),
        2 => (Some(Timestamp(fields.u64()?)), Timestamp(fields.u64()?)),
        _ => return Err("a delivery state says of its delay what is unknown"),
    };
    Ok(DeliveryState { failed_deliveries, not_before, since, conversion_failed: fields.bool()? })
}

/// A message as its record has it.
#[derive(Debug)]
pub(super) struct StoredMessage {
    pub(super) appended: Appended,
    summary: Summary,
    rest: Rest,
}

#[derive(Debug)]
enum Rest {
    Here(Bytes),
    Large { length: u64, checksum: u32 },
}

impl StoredMessage {
    /// Reads a record that [`record_at`] returned.
    pub(super) fn read(record: &Bytes) -> Result<Self, Fault> {
        if record.get(2) != Some(&APPEND) {
            return Err("it is no record of a message");
        }
        let fields = &mut Fields::new(record.get(HEADER..).unwrap_or_default());
        let (appended, summary, large) = read_append(fields)?;
        let rest = large.map_or_else(
            || Rest::Here(record.slice_ref(fields.rest())),
            |(length, checksum)| Rest::Large { length, checksum },
        );
        Ok(Self { appended, summary, rest })
    }

    /// The message; `large` reads the file of so many bytes that has its rest, where there is one.
    pub(super) fn message<E: From<Fault>>(
        self,
        large: impl FnOnce(u64) -> Result<Vec<u8>, E>,
    ) -> Result<Message, E> {
        let rest = match self.rest {
            Rest::Here(rest) => rest,
            Rest::Large { length, checksum } => {
                let rest = Bytes::from(large(length)?);
                if crc32c::crc32c(&rest) != checksum {
                    return Err("the checksum of the file of its own does not fit".into());
                }
                rest
            }
        };
        Ok(read_message(self.summary, &rest)?)
    }
}

const NO_TRANSACTION: Fault = "the end of a transaction names none";

/// The CRC of all but the CRC.
fn checksum(record: &[u8]) -> u32 {
    let (head, fields) = record.split_at(HEADER.min(record.len()));
    crc32c::crc32c_append(crc32c::crc32c(&head[..CHECKSUM_AT.min(head.len())]), fields)
}

fn of_place(lsn: Lsn) -> u32 {
    crc32c::crc32c(&lsn.0.to_le_bytes())
}

fn number(header: &[u8; HEADER], at: usize) -> u32 {
    header[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn put_append(
    out: &mut Vec<u8>,
    stored: StoredId,
    queue: &Destination,
    arrival: Arrival,
    message: &Message,
    transaction: Option<&StoreTransaction>,
) -> Result<(), TooLong> {
    put_u64(out, stored.0);
    out.push(match arrival {
        Arrival::Sent => 0,
        Arrival::MovedIn => 1,
    });
    put_destination(out, queue)?;
    put_transaction(out, transaction)?;
    put_u64(out, message.size() as u64);
    Ok(())
}

type Large = (u64, u32);

/// Up to the rest of the message.
fn read_append(fields: &mut Fields<'_>) -> Result<(Appended, Summary, Option<Large>), Fault> {
    let stored = StoredId(fields.u64()?);
    let arrival = match fields.u8()? {
        0 => Arrival::Sent,
        1 => Arrival::MovedIn,
        _ => return Err("the arrival of a message is unknown"),
    };
    let queue = read_destination(fields)?;
    let transaction = read_transaction(fields)?;
    let size = fields.u64()?;
    let large = fields.option(|fields| Ok((fields.u64()?, fields.u32()?)))?;
    let summary = Summary::read(fields)?;
    let appended = Appended {
        stored,
        queue,
        arrival,
        priority: summary.priority,
        expiration: summary.expiration,
        size,
        producer: summary.message_id.as_ref().map(|id| (Arc::clone(&id.producer), id.sequence)),
        transaction,
        large: large.map(|(length, _)| length),
    };
    Ok((appended, summary, large))
}

fn put_transaction(out: &mut Vec<u8>, transaction: Option<&StoreTransaction>) -> Result<(), TooLong> {
    match transaction {
        None => out.push(0),
        Some(StoreTransaction::Local(connection, number)) => {
            out.push(1);
            put_text(out, connection.as_str())?;
            put_u64(out, *number);
        }
        Some(StoreTransaction::Distributed(xid)) => {
            out.push(2);
            put_xid(out, xid)?;
        }
    }
    Ok(())
}

fn read_transaction(fields: &mut Fields<'_>) -> Result<Option<StoreTransaction>, Fault> {
    Ok(match fields.u8()? {
        0 => None,
        1 => Some(StoreTransaction::Local(ConnectionId::foreign(fields.text()?), fields.u64()?)),
        2 => Some(StoreTransaction::Distributed(read_xid(fields)?)),
        _ => return Err("the kind of a transaction is unknown"),
    })
}

fn put_xid(out: &mut Vec<u8>, xid: &Xid) -> Result<(), TooLong> {
    out.extend(xid.format.to_le_bytes());
    put_bytes(out, &xid.global)?;
    put_bytes(out, &xid.branch)
}

fn read_xid(fields: &mut Fields<'_>) -> Result<Xid, Fault> {
    Ok(Xid {
        format: i32::from_le_bytes(fields.array()?),
        global: Bytes::copy_from_slice(fields.bytes()?),
        branch: Bytes::copy_from_slice(fields.bytes()?),
    })
}
