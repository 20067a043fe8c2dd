//! Operations as records, and back.

use std::sync::Arc;

use bytes::Bytes;
use corriere_core::id::Xid;
use corriere_core::{ConnectionId, Message, Timestamp};

use super::change::{Appended, Change, LargeFile, Recipients};
use super::fields::{Fault, Fields, TooLong, put_bytes, put_count, put_u32, put_u64};
use super::lsn::Lsn;
use super::message::{Summary, put_destination, put_rest, put_text, read_destination, read_message};
use crate::store::{
    Arrival, DeliveryState, Removal, StoreOperation, StoreTransaction, StoredId, SubscriptionName,
};

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
const PUBLISH: u8 = 7;
const CREATE_SUBSCRIPTION: u8 = 8;
const REMOVE_SUBSCRIPTION: u8 = 9;

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
        StoreOperation::Append { message, .. } | StoreOperation::Publish { message, .. } => message.size(),
        _ => SHORT,
    });
    out.extend([0; HEADER]);
    let mut large = None;
    let (kind, change) = match operation {
        StoreOperation::Append { stored, queue, arrival, message, transaction } => {
            let to = Recipients::Queue(queue.clone());
            put_arrival(out, *stored, *arrival);
            put_destination(out, queue)?;
            let (appended, rest) =
                put_message(out, start, (*stored, to, *arrival), message, transaction.as_ref(), large_from)?;
            large = rest;
            (APPEND, Change::Append(appended))
        }
        StoreOperation::Publish { stored, topic, subscriptions, arrival, message, transaction } => {
            let to = Recipients::Subscriptions(topic.clone(), subscriptions.clone());
            put_arrival(out, *stored, *arrival);
            put_destination(out, topic)?;
            put_count(out, subscriptions.len())?;
            subscriptions.iter().try_for_each(|subscription| put_subscription(out, subscription))?;
            let who = (*stored, to, *arrival);
            let (appended, rest) = put_message(out, start, who, message, transaction.as_ref(), large_from)?;
            large = rest;
            (PUBLISH, Change::Append(appended))
        }
        StoreOperation::CreateSubscription { subscription, topic, no_local } => {
            put_subscription(out, subscription)?;
            put_destination(out, topic)?;
            out.push((*no_local).into());
            let (subscription, topic) = (subscription.clone(), topic.clone());
            (CREATE_SUBSCRIPTION, Change::CreateSubscription { subscription, topic, no_local: *no_local })
        }
        StoreOperation::RemoveSubscription(subscription) => {
            put_subscription(out, subscription)?;
            (REMOVE_SUBSCRIPTION, Change::RemoveSubscription(subscription.clone()))
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
    if header[..2] != MARK || !(APPEND..=REMOVE_SUBSCRIPTION).contains(&header[2]) || header[3] != 0 {
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
    let is_header =
        header[..2] == MARK && (APPEND..=REMOVE_SUBSCRIPTION).contains(&header[2]) && header[3] == 0;
    let length = number(header, 4);
    let fields = bytes.get(HEADER..length as usize).filter(|_| is_header)?;
    let names_message = matches!(header[2], APPEND | REMOVE | DELIVERY_STATE | PUBLISH);
    let stored = fields.first_chunk().filter(|_| names_message);
    Some((length, stored.map(|stored| StoredId(u64::from_le_bytes(*stored)))))
}

/// What a record that [`record_at`] returned changes.
pub(super) fn read_change(record: &[u8]) -> Result<Change, Fault> {
    let kind = record.get(2).copied().unwrap_or_default();
    let fields = &mut Fields::new(record.get(HEADER..).unwrap_or_default());
    let change = match kind {
        // What is left is the message's rest.
        APPEND | PUBLISH => return Ok(Change::Append(read_append(kind, fields)?.0)),
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
        CREATE_SUBSCRIPTION => Change::CreateSubscription {
            subscription: read_subscription(fields)?,
            topic: read_destination(fields)?,
            no_local: fields.bool()?,
        },
        REMOVE_SUBSCRIPTION => Change::RemoveSubscription(read_subscription(fields)?),
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
        let kind = record.get(2).copied().filter(|kind| matches!(*kind, APPEND | PUBLISH));
        let kind = kind.ok_or("it is no record of a message")?;
        let fields = &mut Fields::new(record.get(HEADER..).unwrap_or_default());
        let (appended, summary, large) = read_append(kind, fields)?;
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

/// With what each record of a message begins.
fn put_arrival(out: &mut Vec<u8>, stored: StoredId, arrival: Arrival) {
    put_u64(out, stored.0);
    out.push(match arrival {
        Arrival::Sent => 0,
        Arrival::MovedIn | Arrival::Copied => 1,
    });
}

/// Appends what follows the recipients of a message. When the record, which begins at `start`, would be longer than
/// `large_from`, the rest of the message is taken out of it and returned.
fn put_message(
    out: &mut Vec<u8>,
    start: usize,
    (stored, to, arrival): (StoredId, Recipients, Arrival),
    message: &Message,
    transaction: Option<&StoreTransaction>,
    large_from: u64,
) -> Result<(Appended, Option<LargeRest>), TooLong> {
    put_transaction(out, transaction)?;
    put_u64(out, message.size() as u64);
    let large_at = out.len();
    out.push(0);
    Summary::put(out, message.headers())?;
    let rest_at = out.len();
    put_rest(out, message)?;
    let mut large = None;
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
        large = Some(LargeRest { stored, bytes: rest });
    }
    let headers = message.headers();
    let appended = Appended {
        stored,
        to,
        arrival,
        priority: headers.priority,
        expiration: headers.expiration,
        size: message.size() as u64,
        producer: headers.message_id.as_ref().map(|id| (Arc::clone(&id.producer), id.sequence)),
        transaction: transaction.cloned(),
        large: large.as_ref().map(|rest| LargeFile { name: stored, length: rest.bytes.len() as u64 }),
    };
    Ok((appended, large))
}

type Large = (u64, u32);

/// Up to the rest of the message, of a record of this kind.
fn read_append(kind: u8, fields: &mut Fields<'_>) -> Result<(Appended, Summary, Option<Large>), Fault> {
    let stored = StoredId(fields.u64()?);
    let arrival = match fields.u8()? {
        0 => Arrival::Sent,
        1 => Arrival::MovedIn,
        _ => return Err("the arrival of a message is unknown"),
    };
    let to = if kind == PUBLISH {
        let topic = read_destination(fields)?;
        // Not more than there is: the number alone is nothing to make room by.
        let subscriptions = (0..fields.u32()?).map(|_| read_subscription(fields));
        Recipients::Subscriptions(topic, subscriptions.collect::<Result<_, _>>()?)
    } else {
        Recipients::Queue(read_destination(fields)?)
    };
    let transaction = read_transaction(fields)?;
    let size = fields.u64()?;
    let large = fields.option(|fields| Ok((fields.u64()?, fields.u32()?)))?;
    let summary = Summary::read(fields)?;
    let appended = Appended {
        stored,
        to,
        arrival,
        priority: summary.priority,
        expiration: summary.expiration,
        size,
        producer: summary.message_id.as_ref().map(|id| (Arc::clone(&id.producer), id.sequence)),
        transaction,
        large: large.map(|(length, _)| LargeFile { name: stored, length }),
    };
    Ok((appended, summary, large))
}

fn put_subscription(out: &mut Vec<u8>, subscription: &SubscriptionName) -> Result<(), TooLong> {
    put_text(out, &subscription.client_id)?;
    put_text(out, &subscription.name)
}

fn read_subscription(fields: &mut Fields<'_>) -> Result<SubscriptionName, Fault> {
    Ok(SubscriptionName { client_id: fields.shared_text()?, name: fields.shared_text()? })
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
