//! What the recorded messages hold, as `RecordOpenWire` sets them.

use bytes::Bytes;
use corriere_core::message::{BytesWriter, MapBody, ObjectBody, StreamBody};
use corriere_core::{Body, Value};
use corriere_openwire::conversion::nested_value;
use corriere_openwire::primitive::{Primitive, PrimitiveMap};
use corriere_openwire::structures::{Blob, Message, MessageKind};
use corriere_openwire::{Structure, WireFormat};

use crate::expected::{
    broker_id, broker_path, command, consumer_id, distributed, local, message_id, producer_id, queue,
    session_id, temporary_queue, text, topic, within,
};
use crate::files;

/// Each recorded message with its label. Of those with a body the content is taken from the recording; [`bodies`] and
/// [`check_values`] look at it.
pub(crate) fn all(format: WireFormat) -> Vec<(&'static str, Structure)> {
    let blob =
        Blob { remote_blob_url: text("remoteBlobUrl"), mime_type: text("mimeType"), deleted_by_broker: true };
    let mut messages = vec![
        ("Message", header(format)),
        (
            "BlobMessage",
            command!(Message { kind: MessageKind::Blob, blob: Some(Box::new(blob)), ..Message::default() }),
        ),
    ];
    let recorded = files::frames("structures-v12.txt");
    for (label, kind) in [
        ("TextMessage", MessageKind::Text),
        ("BytesMessage", MessageKind::Bytes),
        ("MapMessage", MessageKind::Map),
        ("StreamMessage", MessageKind::Stream),
        ("ObjectMessage", MessageKind::Object),
        ("TextMessage-compressed", MessageKind::Text),
        ("BytesMessage-compressed", MessageKind::Bytes),
        ("MapMessage-compressed", MessageKind::Map),
        ("StreamMessage-compressed", MessageKind::Stream),
        ("ObjectMessage-compressed", MessageKind::Object),
        ("MapMessage-values", MessageKind::Map),
    ] {
        let frame = &recorded.iter().find(|one| one.label == label).expect("it is recorded").frame;
        let Ok(Some(Structure::Message(newest))) = WireFormat::default().decode(frame) else {
            panic!("{label} cannot be read");
        };
        let Message { content, marshalled_properties, .. } = *newest;
        let compressed = label.ends_with("-compressed");
        let message =
            command!(Message { kind, content, marshalled_properties, compressed, ..Message::default() });
        messages.push((label, message));
    }
    messages
}

fn header(format: WireFormat) -> Structure {
    command!(Message {
        kind: MessageKind::Plain,
        blob: None,
        producer_id: Some(producer_id()),
        destination: Some(queue()),
        transaction_id: Some(local()),
        original_destination: Some(topic()),
        message_id: Some(message_id()),
        original_transaction_id: Some(distributed()),
        group_id: text("groupID"),
        group_sequence: 18,
        correlation_id: text("correlationId"),
        persistent: true,
        expiration: 19,
        priority: 8,
        reply_to: Some(temporary_queue()),
        timestamp: 20,
        message_type: text("type"),
        content: None,
        // A map of one entry.
        marshalled_properties: Some(Bytes::from_static(b"\0\0\0\x01\0\x08property\x05\0\0\0\x15")),
        data_structure: Some(session_id().into()),
        target_consumer_id: Some(consumer_id()),
        compressed: true,
        redelivery_counter: 22,
        broker_path: broker_path(),
        arrival: 23,
        user_id: text("userID"),
        received_by_df_bridge: true,
        droppable: false,
        cluster: Some(vec![broker_id()]),
        broker_in_time: 24,
        broker_out_time: 25,
        jmsx_group_first_for_consumer: within(format, 10.., true),
    })
}

/// The bodies that are recorded both plain and compressed.
pub(crate) fn bodies() -> [(&'static str, Body); 5] {
    let mut bytes = BytesWriter::new();
    bytes.write_i32(7).write_utf("grüße").unwrap();
    let mut map = MapBody::new();
    map.set("int", 7).unwrap();
    let mut stream = StreamBody::new();
    stream.push(8_i64).push("item").push(Value::Null);
    // The serialised form of the text `object` in Java.
    let object = ObjectBody::new(&b"\xac\xed\0\x05t\0\x06objecty"[..]);
    [
        ("TextMessage", Body::text("a\0é名😀")),
        ("BytesMessage", Body::bytes(bytes.finish())),
        ("MapMessage", Body::Map(map)),
        ("StreamMessage", Body::Stream(stream)),
        ("ObjectMessage", Body::Object(object)),
    ]
}

/// Every type of value, and lists and maps within properties.
pub(crate) fn check_values(message: &corriere_core::Message) {
    let map = message.as_map().unwrap();
    let expected = [
        ("boolean", Value::Boolean(true)),
        ("byte", Value::Byte(-1)),
        ("bytes", Value::from(vec![1, 2, 3])),
        ("char", Value::Char(0xe9)),
        ("double", Value::Double(-0.0)),
        ("float", Value::Float(1.5)),
        ("int", Value::Int(7)),
        ("long", Value::Long(1 << 40)),
        ("short", Value::Short(-2)),
        ("string", Value::from("a\0é名😀")),
    ];
    let expected: Vec<_> = expected.iter().map(|(name, value)| (*name, value)).collect();
    assert_eq!(map.iter().collect::<Vec<_>>(), expected);
    let properties = message.properties();
    assert_eq!(properties.names().collect::<Vec<_>>(), ["list", "long", "map", "null"]);
    assert_eq!(properties.get("null"), Some(&Value::Null));
    assert_eq!(properties.get("long"), Some(&Value::from("x".repeat(8_191))));
    let inner = Primitive::List(vec![Primitive::from(true)]);
    let list = Primitive::List(vec![Primitive::from("a"), Primitive::from(1), inner]);
    assert_eq!(properties.get("list").and_then(nested_value), Some(list));
    let map = Primitive::Map(PrimitiveMap(vec![("inner".into(), Primitive::from(1.5))]));
    assert_eq!(properties.get("map").and_then(nested_value), Some(map));
}
