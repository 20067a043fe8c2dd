//! Names for people, and messages as JSON.

use corriere_core::Message;
use corriere_core::message::{Body, DeliveryMode, Value};
use serde_json::{Map, Value as Json, json};

use crate::journal::index::{Holder, Reference, Saved};
use crate::store::{StoreTransaction, StoredId};

impl Saved {
    /// How a message is named to people.
    pub(super) fn name(&self, stored: StoredId, queue: u32) -> String {
        format!("message {} of {}", stored.0, self.queue_name(queue))
    }

    /// The queue or durable subscription of this number.
    pub(super) fn queue_name(&self, queue: u32) -> String {
        self.holder(queue)
            .map_or_else(|| format!("the queue {queue}, which is gone"), |holder| holder.to_string())
    }

    /// The queue or durable subscription of this number; a subscription may be gone that a transaction sends to.
    pub(super) fn holder(&self, queue: u32) -> Option<&Holder> {
        self.queues.iter().find(|(number, _, _)| *number == queue).map(|(_, holder, _)| holder)
    }
}

/// How a transaction is named to people.
pub(super) fn transaction_name(transaction: &StoreTransaction) -> String {
    match transaction {
        StoreTransaction::Local(connection, number) => format!("TX:{connection}:{number}"),
        StoreTransaction::Distributed(xid) => {
            format!("XID:{}:{}:{}", xid.format, hexadecimal(&xid.global), hexadecimal(&xid.branch))
        }
    }
}

/// What is known of a message without its record.
pub(super) fn of_reference(
    stored: StoredId,
    holder: Option<&Holder>,
    reference: &Reference,
) -> Map<String, Json> {
    let state = reference.state;
    let mut line = Map::new();
    line.insert("stored".to_owned(), json!(stored.0));
    match holder {
        Some(Holder::Queue(queue)) => drop(line.insert("queue".to_owned(), json!(queue.to_string()))),
        Some(Holder::Subscription { name, topic, .. }) => {
            line.insert("topic".to_owned(), json!(topic.to_string()));
            line.insert("client_id".to_owned(), json!(&*name.client_id));
            line.insert("subscription".to_owned(), json!(&*name.name));
        }
        None => {}
    }
    line.insert("lsn".to_owned(), json!(reference.lsn.0));
    line.insert("failed_deliveries".to_owned(), json!(state.failed_deliveries));
    line.insert("conversion_failed".to_owned(), json!(state.conversion_failed));
    if let Some(not_before) = state.not_before {
        line.insert("not_before".to_owned(), json!(not_before.0));
    }
    line
}

/// Headers, properties and body.
pub(super) fn of_message(line: &mut Map<String, Json>, message: &Message) {
    let headers = message.headers();
    let mut shown = Map::new();
    let mut put = |name: &str, value: Option<Json>| {
        value.map(|value| shown.insert(name.to_owned(), value));
    };
    put("destination", headers.destination.as_ref().map(|destination| json!(destination.to_string())));
    put(
        "delivery_mode",
        Some(json!(match headers.delivery_mode {
            DeliveryMode::Persistent => "persistent",
            DeliveryMode::NonPersistent => "non_persistent",
        })),
    );
    put("priority", Some(json!(headers.priority.level())));
    put("message_id", headers.message_id.as_ref().map(|id| json!(id.to_string())));
    put("timestamp", Some(json!(headers.timestamp.0)));
    put("expiration", headers.expiration.map(|expiration| json!(expiration.0)));
    put("correlation_id", headers.correlation_id.as_deref().map(|text| json!(text)));
    put("reply_to", headers.reply_to.as_ref().map(|destination| json!(destination.to_string())));
    put("message_type", headers.message_type.as_deref().map(|text| json!(text)));
    line.insert("headers".to_owned(), shown.into());
    let properties = message.properties().iter();
    line.insert("properties".to_owned(), named(properties));
    line.insert("body".to_owned(), body(message.body()));
}

fn named<'a>(values: impl Iterator<Item = (&'a str, &'a Value)>) -> Json {
    values.map(|(name, of)| (name.to_owned(), value(of))).collect::<Map<_, _>>().into()
}

/// A value with its type, as `{"int": 7}`; the type is not to be guessed from JSON's own.
fn value(value: &Value) -> Json {
    let shown = match value {
        Value::Null => return Json::Null,
        Value::Boolean(value) => json!(value),
        Value::Byte(value) => json!(value),
        Value::Short(value) => json!(value),
        Value::Char(unit) => json!(unit),
        Value::Int(value) => json!(value),
        Value::Long(value) => json!(value),
        Value::Float(value) if value.is_finite() => json!(value),
        Value::Float(value) => json!(value.to_string()),
        Value::Double(value) if value.is_finite() => json!(value),
        Value::Double(value) => json!(value.to_string()),
        Value::String(text) => json!(&**text),
        Value::Bytes(bytes) => json!(hexadecimal(bytes)),
    };
    json!({ value.type_name(): shown })
}

fn body(body: &Body) -> Json {
    match body {
        Body::Empty => Json::Null,
        Body::Text(text) => json!({ "text": text.as_deref() }),
        Body::Bytes(body) => json!({ "bytes": hexadecimal(body.as_bytes()) }),
        Body::Map(body) => json!({ "map": named(body.iter()) }),
        Body::Stream(body) => json!({ "stream": body.iter().map(value).collect::<Vec<_>>() }),
        Body::Object(body) => json!({ "object": hexadecimal(body.as_bytes()) }),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

/// Bytes as people read them.
pub(super) fn size(bytes: u64) -> String {
    let of = |unit: u64, name: &str| format!("{:.1} {name}", bytes as f64 / unit as f64);
    match bytes {
        0..1_024 => format!("{bytes} bytes"),
        1_024..1_048_576 => of(1 << 10, "KiB"),
        1_048_576..1_073_741_824 => of(1 << 20, "MiB"),
        _ => of(1 << 30, "GiB"),
    }
}
