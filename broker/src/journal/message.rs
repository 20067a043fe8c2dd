//! Messages as bytes, and back.
//!
//! A message is its summary, which is all that the broker needs of it while its body is not in memory, and the rest.

use bytes::Bytes;
use corriere_core::message::{
    Body, BytesBody, DeliveryMode, Headers, MapBody, ObjectBody, Priority, StreamBody, Value,
};
use corriere_core::{Destination, DestinationKind, Message, MessageId, Timestamp};

use super::fields::{Fault, Fields, TooLong, put_bytes, put_count, put_option, put_u32, put_u64};

/// What is known of a message without its rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) priority: Priority,
    pub(super) expiration: Option<Timestamp>,
    pub(super) message_id: Option<MessageId>,
}

impl Summary {
    pub(super) fn put(out: &mut Vec<u8>, headers: &Headers) -> Result<(), TooLong> {
        out.push(headers.priority.level());
        put_option(out, headers.expiration, put_timestamp)?;
        put_option(out, headers.message_id.as_ref(), |out, id| {
            put_bytes(out, id.producer.as_bytes())?;
            put_u64(out, id.sequence);
            Ok(())
        })
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Fault> {
        Ok(Self {
            priority: Priority::new(fields.u8()?).map_err(|_| "a priority is above 9")?,
            expiration: fields.option(read_timestamp)?,
            message_id: fields.option(|fields| {
                Ok(MessageId { producer: fields.shared_text()?, sequence: fields.u64()? })
            })?,
        })
    }
}

/// Appends all of a message but its summary and its delivery count, which is delivery state.
pub(super) fn put_rest(out: &mut Vec<u8>, message: &Message) -> Result<(), TooLong> {
    let headers = message.headers();
    put_u64(out, headers.timestamp.0);
    out.push(match headers.delivery_mode {
        DeliveryMode::Persistent => 0,
        DeliveryMode::NonPersistent => 1,
    });
    put_option(out, headers.destination.as_ref(), put_destination)?;
    put_option(out, headers.correlation_id.as_deref(), put_text)?;
    put_option(out, headers.reply_to.as_ref(), put_destination)?;
    put_option(out, headers.message_type.as_deref(), put_text)?;
    put_named(out, message.properties().len(), message.properties().iter())?;
    put_body(out, message.body())
}

/// The message of a summary and the rest, which is all of `rest`. Bodies and arrays of bytes share its memory.
pub(super) fn read_message(summary: Summary, rest: &Bytes) -> Result<Message, Fault> {
    let fields = &mut Fields::new(rest);
    let headers = Headers {
        timestamp: read_timestamp(fields)?,
        delivery_mode: match fields.u8()? {
            0 => DeliveryMode::Persistent,
            1 => DeliveryMode::NonPersistent,
            _ => return Err("a delivery mode is unknown"),
        },
        destination: fields.option(read_destination)?,
        correlation_id: fields.option(Fields::shared_text)?,
        reply_to: fields.option(read_destination)?,
        message_type: fields.option(Fields::shared_text)?,
        priority: summary.priority,
        expiration: summary.expiration,
        message_id: summary.message_id,
        delivery_count: 0,
    };
    let mut properties = Vec::new();
    read_named(fields, rest, |name, value| properties.push((name, value)))?;
    let mut message = Message::new(read_body(fields, rest)?);
    fields.finish()?;
    *message.headers_mut() = headers;
    for (name, value) in properties {
        message.properties_mut_unchecked().set_unchecked(name, value);
    }
    Ok(message)
}

pub(super) fn put_destination(out: &mut Vec<u8>, destination: &Destination) -> Result<(), TooLong> {
    out.push(match destination.kind() {
        DestinationKind::Queue => 0,
        DestinationKind::Topic => 1,
        DestinationKind::TemporaryQueue => 2,
        DestinationKind::TemporaryTopic => 3,
    });
    put_text(out, destination.name())
}

pub(super) fn read_destination(fields: &mut Fields<'_>) -> Result<Destination, Fault> {
    let kind = match fields.u8()? {
        0 => DestinationKind::Queue,
        1 => DestinationKind::Topic,
        2 => DestinationKind::TemporaryQueue,
        3 => DestinationKind::TemporaryTopic,
        _ => return Err("the kind of a destination is unknown"),
    };
    let name = fields.text()?;
    // A name with a scheme or options would be read as another one.
    Destination::parse(name, kind)
        .ok()
        .filter(|destination| destination.kind() == kind && destination.name() == name)
        .ok_or("the name of a destination is none")
}

#[expect(clippy::unnecessary_wraps, reason = "it is given to `put_option`")]
pub(super) fn put_timestamp(out: &mut Vec<u8>, timestamp: Timestamp) -> Result<(), TooLong> {
    put_u64(out, timestamp.0);
    Ok(())
}

pub(super) fn read_timestamp(fields: &mut Fields<'_>) -> Result<Timestamp, Fault> {
    fields.u64().map(Timestamp)
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) -> Result<(), TooLong> {
    put_bytes(out, text.as_bytes())
}

fn put_named<'a>(
    out: &mut Vec<u8>,
    count: usize,
    mut named: impl Iterator<Item = (&'a str, &'a Value)>,
) -> Result<(), TooLong> {
    put_count(out, count)?;
    named.try_for_each(|(name, value)| {
        put_text(out, name)?;
        put_value(out, value)
    })
}

fn read_named<'a>(
    fields: &mut Fields<'a>,
    whole: &Bytes,
    mut take: impl FnMut(&'a str, Value),
) -> Result<(), Fault> {
    for _ in 0..fields.u32()? {
        take(fields.text()?, read_value(fields, whole)?);
    }
    Ok(())
}

fn put_value(out: &mut Vec<u8>, value: &Value) -> Result<(), TooLong> {
    match value {
        Value::Null => out.push(0),
        Value::Boolean(value) => out.extend([1, (*value).into()]),
        Value::Byte(value) => {
            out.push(2);
            out.extend(value.to_le_bytes());
        }
        Value::Short(value) => {
            out.push(3);
            out.extend(value.to_le_bytes());
        }
        Value::Char(value) => {
            out.push(4);
            out.extend(value.to_le_bytes());
        }
        Value::Int(value) => {
            out.push(5);
            out.extend(value.to_le_bytes());
        }
        Value::Long(value) => {
            out.push(6);
            out.extend(value.to_le_bytes());
        }
        Value::Float(value) => {
            out.push(7);
            put_u32(out, value.to_bits());
        }
        Value::Double(value) => {
            out.push(8);
            put_u64(out, value.to_bits());
        }
        Value::String(text) => {
            out.push(9);
            put_text(out, text)?;
        }
        Value::Bytes(bytes) => {
            out.push(10);
            put_bytes(out, bytes)?;
        }
    }
    Ok(())
}

fn read_value(fields: &mut Fields<'_>, whole: &Bytes) -> Result<Value, Fault> {
    Ok(match fields.u8()? {
        0 => Value::Null,
        1 => Value::Boolean(fields.bool()?),
        2 => Value::Byte(i8::from_le_bytes(fields.array()?)),
        3 => Value::Short(i16::from_le_bytes(fields.array()?)),
        4 => Value::Char(u16::from_le_bytes(fields.array()?)),
        5 => Value::Int(i32::from_le_bytes(fields.array()?)),
        6 => Value::Long(i64::from_le_bytes(fields.array()?)),
        7 => Value::Float(f32::from_bits(fields.u32()?)),
        8 => Value::Double(f64::from_bits(fields.u64()?)),
        9 => Value::String(fields.shared_text()?),
        10 => Value::Bytes(fields.shared_bytes(whole)?),
        _ => return Err("the type of a value is unknown"),
    })
}

fn put_body(out: &mut Vec<u8>, body: &Body) -> Result<(), TooLong> {
    match body {
        Body::Empty => out.push(0),
        Body::Text(Some(text)) => {
            out.push(1);
            put_text(out, text)?;
        }
        Body::Text(None) => out.push(2),
        Body::Bytes(body) => {
            out.push(3);
            put_bytes(out, body.as_bytes())?;
        }
        Body::Map(body) => {
            out.push(4);
            put_named(out, body.len(), body.iter())?;
        }
        Body::Stream(body) => {
            out.push(5);
            put_count(out, body.len())?;
            body.iter().try_for_each(|value| put_value(out, value))?;
        }
        Body::Object(body) => {
            out.push(6);
            put_bytes(out, body.as_bytes())?;
        }
    }
    Ok(())
}

fn read_body(fields: &mut Fields<'_>, whole: &Bytes) -> Result<Body, Fault> {
    Ok(match fields.u8()? {
        0 => Body::Empty,
        1 => Body::Text(Some(fields.shared_text()?)),
        2 => Body::Text(None),
        3 => Body::Bytes(BytesBody::new(fields.shared_bytes(whole)?)),
        4 => {
            let mut body = MapBody::new();
            read_named(fields, whole, |name, value| body.set_unchecked(name, value))?;
            Body::Map(body)
        }
        5 => {
            let mut body = StreamBody::new();
            for _ in 0..fields.u32()? {
                body.push(read_value(fields, whole)?);
            }
            Body::Stream(body)
        }
        6 => Body::Object(ObjectBody::new(fields.shared_bytes(whole)?)),
        _ => return Err("the kind of a body is unknown"),
    })
}
