//! The values of the checkpoint's tables as bytes, and back.

use corriere_core::id::Xid;
use corriere_core::message::Priority;
use corriere_core::{ConnectionId, Destination, DestinationKind, Timestamp};

use crate::journal::change::LargeFile;
use crate::journal::fields::{Fault, Fields, put_u32, put_u64};
use crate::journal::index::{Holder, Operation, Reference};
use crate::journal::lsn::Lsn;
use crate::journal::record::{put_state, read_state};
use crate::store::{Arrival, DeliveryState, Removal, StoreTransaction, StoredId, SubscriptionName, Totals};

fn put_reference(out: &mut Vec<u8>, stored: StoredId, reference: &Reference) {
    put_u64(out, reference.lsn.0);
    put_u32(out, reference.length);
    put_u32(out, reference.queue);
    put_u64(out, reference.position);
    put_u64(out, reference.size);
    out.push(reference.priority.level());
    put_number(out, reference.expiration.map(|moment| moment.0));
    put_state(out, &reference.state);
    match reference.large {
        None => out.push(0),
        Some(large) if large.name == stored => {
            out.push(1);
            put_u64(out, large.length);
        }
        Some(large) => {
            out.push(2);
            put_u64(out, large.length);
            put_u64(out, large.name.0);
        }
    }
}

/// A reference with room for what may be noted of it: a state that comes later does not make it longer, so that a checkpoint
/// of states needs no pages that the one before did not need.
pub(super) fn put_padded_reference(out: &mut Vec<u8>, stored: StoredId, reference: &Reference) {
    put_reference(out, stored, reference);
    (0..lacking(&reference.state)).for_each(|_| put_u64(out, 0));
}

pub(super) fn padded_reference(stored: StoredId, bytes: &[u8]) -> Result<Reference, Fault> {
    whole(bytes, |fields| {
        let reference = read_reference(stored, fields)?;
        for _ in 0..lacking(&reference.state) {
            // One that was written before there was a `since` has fewer.
            if !fields.rest().is_empty() {
                fields.u64()?;
            }
        }
        Ok(reference)
    })
}

/// Numbers that a state has fewer than the longest one.
fn lacking(state: &DeliveryState) -> usize {
    match state.not_before {
        None => 2,
        Some(_) if state.since == Timestamp(0) => 1,
        Some(_) => 0,
    }
}

fn read_reference(stored: StoredId, fields: &mut Fields<'_>) -> Result<Reference, Fault> {
    Ok(Reference {
        lsn: Lsn(fields.u64()?),
        length: fields.u32()?,
        queue: fields.u32()?,
        position: fields.u64()?,
        size: fields.u64()?,
        priority: Priority::new(fields.u8()?).map_err(|_| "a priority is above 9")?,
        expiration: fields.option(Fields::u64)?.map(Timestamp),
        state: read_state(fields)?,
        large: match fields.u8()? {
            0 => None,
            1 => Some(LargeFile { name: stored, length: fields.u64()? }),
            2 => Some(LargeFile { length: fields.u64()?, name: StoredId(fields.u64()?) }),
            _ => return Err("a large file is of no known kind"),
        },
    })
}

/// Appends a queue or a durable subscription, and says whether it is the latter, which has a table of its own.
pub(super) fn put_holder(out: &mut Vec<u8>, holder: &Holder, totals: &Totals) -> bool {
    put_u64(out, totals.enqueued);
    put_u64(out, totals.acknowledged);
    put_u64(out, totals.dead_lettered);
    match holder {
        Holder::Queue(destination) => {
            put_bytes(out, destination.to_string().as_bytes());
            false
        }
        Holder::Subscription { name, topic, no_local } => {
            put_bytes(out, topic.to_string().as_bytes());
            out.push((*no_local).into());
            put_bytes(out, name.client_id.as_bytes());
            put_bytes(out, name.name.as_bytes());
            true
        }
    }
}

pub(super) fn queue(bytes: &[u8]) -> Result<(Holder, Totals), Fault> {
    whole(bytes, |fields| {
        let totals = read_totals(fields)?;
        let destination = Destination::parse(fields.text()?, DestinationKind::Queue);
        Ok((Holder::Queue(destination.map_err(|_| "the name of a queue is none")?), totals))
    })
}

pub(super) fn subscription(bytes: &[u8]) -> Result<(Holder, Totals), Fault> {
    whole(bytes, |fields| {
        let totals = read_totals(fields)?;
        let topic = Destination::parse(fields.text()?, DestinationKind::Topic);
        let topic = topic.map_err(|_| "the name of a topic is none")?;
        let no_local = fields.bool()?;
        let name = SubscriptionName { client_id: fields.shared_text()?, name: fields.shared_text()? };
        Ok((Holder::Subscription { name, topic, no_local }, totals))
    })
}

fn read_totals(fields: &mut Fields<'_>) -> Result<Totals, Fault> {
    Ok(Totals { enqueued: fields.u64()?, acknowledged: fields.u64()?, dead_lettered: fields.u64()? })
}

pub(super) fn put_transaction(out: &mut Vec<u8>, id: &StoreTransaction, prepared: Option<u64>) {
    put_number(out, prepared);
    match id {
        StoreTransaction::Local(connection, number) => {
            out.push(1);
            put_bytes(out, connection.as_str().as_bytes());
            put_u64(out, *number);
        }
        StoreTransaction::Distributed(xid) => {
            out.push(2);
            out.extend_from_slice(&xid.format.to_le_bytes());
            put_bytes(out, &xid.global);
            put_bytes(out, &xid.branch);
        }
    }
}

pub(super) fn transaction(bytes: &[u8]) -> Result<(StoreTransaction, Option<u64>), Fault> {
    whole(bytes, |fields| {
        let prepared = fields.option(Fields::u64)?;
        let id = match fields.u8()? {
            1 => StoreTransaction::Local(ConnectionId::foreign(fields.text()?), fields.u64()?),
            2 => StoreTransaction::Distributed(Xid {
                format: i32::from_le_bytes(fields.array()?),
                global: fields.bytes()?.to_vec().into(),
                branch: fields.bytes()?.to_vec().into(),
            }),
            _ => return Err("a transaction is of no known kind"),
        };
        Ok((id, prepared))
    })
}

pub(super) fn put_operation(out: &mut Vec<u8>, operation: &Operation) {
    match operation {
        Operation::Send { stored, reference, arrival, producer } => {
            out.push(1);
            put_u64(out, stored.0);
            put_reference(out, *stored, reference);
            out.push(match arrival {
                Arrival::Sent => 0,
                Arrival::MovedIn | Arrival::Copied => 1,
            });
            out.push(producer.is_some().into());
            if let Some((name, sequence)) = producer {
                put_bytes(out, name.as_bytes());
                put_u64(out, *sequence);
            }
        }
        Operation::Remove { stored, reason } => {
            out.push(2);
            put_u64(out, stored.0);
            out.push(match reason {
                Removal::Acknowledged => 0,
                Removal::DeadLettered => 1,
                Removal::Expired => 2,
                Removal::Discarded => 3,
                Removal::Purged => 4,
                Removal::MovedOut => 5,
            });
        }
    }
}

pub(super) fn operation(bytes: &[u8]) -> Result<Operation, Fault> {
    whole(bytes, |fields| match fields.u8()? {
        1 => {
            let stored = StoredId(fields.u64()?);
            Ok(Operation::Send {
                stored,
                reference: read_reference(stored, fields)?,
                arrival: match fields.u8()? {
                    0 => Arrival::Sent,
                    1 => Arrival::MovedIn,
                    _ => return Err("an arrival is of no known kind"),
                },
                producer: fields.option(|fields| Ok((fields.shared_text()?, fields.u64()?)))?,
            })
        }
        2 => Ok(Operation::Remove {
            stored: StoredId(fields.u64()?),
            reason: match fields.u8()? {
                0 => Removal::Acknowledged,
                1 => Removal::DeadLettered,
                2 => Removal::Expired,
                3 => Removal::Discarded,
                4 => Removal::Purged,
                5 => Removal::MovedOut,
                _ => return Err("a removal is of no known kind"),
            },
        }),
        _ => Err("an operation is of no known kind"),
    })
}

fn whole<T>(bytes: &[u8], read: impl FnOnce(&mut Fields<'_>) -> Result<T, Fault>) -> Result<T, Fault> {
    let mut fields = Fields::new(bytes);
    let value = read(&mut fields)?;
    fields.finish()?;
    Ok(value)
}

fn put_number(out: &mut Vec<u8>, number: Option<u64>) {
    out.push(number.is_some().into());
    if let Some(number) = number {
        put_u64(out, number);
    }
}

/// Names come from records, whose lengths have four bytes, too.
fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u32(out, u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    out.extend_from_slice(bytes);
}
