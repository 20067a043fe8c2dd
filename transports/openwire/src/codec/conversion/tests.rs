use std::io::Write;

use bytes::Bytes;
use corriere_core::message::{MapBody, ObjectBody, Priority, StreamBody};
use corriere_core::{Body, DeliveryMode, Destination, DestinationKind, Timestamp, Value};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use proptest::prelude::*;

use super::*;
use crate::codec::error::DecodeFault;
use crate::codec::primitive::{Primitive, PrimitiveMap};
use crate::codec::structures::{
    ConnectionId, LocalTransactionId, Message, MessageDispatch, MessageId, MessageKind, ProducerId,
    TransactionId,
};

const LIMITS: ConversionLimits = ConversionLimits { memory: 1 << 20 };

fn texts() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<char>(), 0..10).prop_map(String::from_iter)
}

fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Boolean),
        any::<i8>().prop_map(Value::Byte),
        any::<i16>().prop_map(Value::Short),
        any::<u16>().prop_map(Value::Char),
        any::<i32>().prop_map(Value::Int),
        any::<i64>().prop_map(Value::Long),
        any::<u32>().prop_map(|bits| Value::Float(f32::from_bits(bits))),
        any::<u64>().prop_map(|bits| Value::Double(f64::from_bits(bits))),
        texts().prop_map(Value::from),
        any::<Vec<u8>>().prop_map(Value::from),
        (8_000_usize..9_000).prop_map(|length| Value::from("x".repeat(length))),
    ]
}

fn bodies() -> impl Strategy<Value = Body> {
    prop_oneof![
        Just(Body::Empty),
        prop::option::of(texts()).prop_map(|text| Body::Text(text.map(Into::into))),
        any::<Vec<u8>>().prop_map(Body::bytes),
        any::<Vec<u8>>().prop_map(|bytes| Body::Object(ObjectBody::new(bytes))),
        prop::collection::vec((texts(), values()), 0..5).prop_map(|entries| {
            let mut body = MapBody::new();
            entries.into_iter().for_each(|(name, value)| body.set_unchecked(name, value));
            Body::Map(body)
        }),
        prop::collection::vec(values(), 0..5).prop_map(|items| {
            let mut body = StreamBody::new();
            for item in items {
                body.push(item);
            }
            Body::Stream(body)
        }),
    ]
}

prop_compose! {
    fn messages()(
        body in bodies(),
        properties in prop::collection::vec((texts(), values()), 0..4),
        group in prop::option::of((texts(), any::<i32>())),
        user in prop::option::of(texts()),
        level in 0_u8..10,
        times in (0..1_u64 << 50, prop::option::of(1..1_u64 << 50)),
        (correlation_id, message_type) in (prop::option::of(texts()), prop::option::of(texts())),
        persistent: bool,
        delivery_count in 0_u32..3,
        producer in prop_oneof![Just("ID:h-1:1:1:1"), Just("ID:h-1:1:-1:7"), Just("ID:odd"), Just("ID:a:01:1")],
        sequence in 0..1_u64 << 63,
    ) -> corriere_core::Message {
        let mut message = corriere_core::Message::new(body);
        let target = message.properties_mut_unchecked();
        properties.into_iter().for_each(|(name, value)| target.set_unchecked(name, value));
        if let Some((group, number)) = group {
            target.set_unchecked("JMSXGroupID", group.into());
            target.set_unchecked("JMSXGroupSeq", number.into());
        }
        if let Some(user) = user {
            target.set_unchecked("JMSXUserID", user.into());
        }
        let headers = message.headers_mut();
        headers.destination = Some(Destination::queue("orders").unwrap());
        headers.reply_to =
            Some(Destination::temporary(DestinationKind::TemporaryTopic, "ID:h-1:1:1").unwrap());
        headers.message_id = Some(corriere_core::MessageId { producer: producer.into(), sequence });
        headers.priority = Priority::new(level).unwrap();
        headers.timestamp = Timestamp(times.0);
        headers.expiration = times.1.map(Timestamp);
        headers.correlation_id = correlation_id.map(Into::into);
        headers.message_type = message_type.map(Into::into);
        if !persistent {
            headers.delivery_mode = DeliveryMode::NonPersistent;
        }
        message.received(delivery_count)
    }
}

proptest! {
    #[test]
    fn a_message_of_core_comes_back_to_the_last_property(message in messages()) {
        let converted = Message::from_core(&message).unwrap();
        let mut back = converted.to_core(LIMITS).unwrap();
        prop_assert_eq!(back.headers().delivery_count, 0, "it was not delivered here");
        back.headers_mut().delivery_count = message.headers().delivery_count;
        prop_assert_eq!(&back, &message);
        let dispatch = MessageDispatch {
            redelivery_counter: converted.redelivery_counter,
            message: Some(Box::new(converted)),
            ..MessageDispatch::default()
        };
        let delivered = dispatch.to_core(LIMITS).unwrap().unwrap();
        prop_assert_eq!(delivered.headers().delivery_count, message.headers().delivery_count.max(1));
    }

    #[test]
    fn any_content_is_a_body_or_an_error(content: Vec<u8>, compressed: bool, properties: Vec<u8>) {
        for kind in [
            MessageKind::Plain, MessageKind::Bytes, MessageKind::Map, MessageKind::Object,
            MessageKind::Stream, MessageKind::Text, MessageKind::Blob,
        ] {
            let content = Some(Bytes::from(content.clone()));
            let marshalled_properties = Some(Bytes::from(properties.clone()));
            let message = Message { kind, content, compressed, marshalled_properties, ..Message::default() };
            if let Ok(message) = message.to_core(LIMITS) {
                prop_assert!(Message::from_core(&message).is_ok());
            }
        }
    }
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Sends the body as a client that compresses does.
fn compressed(body: Body) -> Message {
    let mut message = Message::from_core(&corriere_core::Message::new(body)).unwrap();
    let content = message.content.take().unwrap_or_default();
    let mut bytes = deflated(&content);
    if message.kind == MessageKind::Bytes {
        bytes.splice(..0, u32::try_from(content.len()).unwrap().to_be_bytes());
    }
    message.content = Some(bytes.into());
    message.compressed = true;
    message
}

#[test]
fn every_compressed_body_is_read() {
    let mut map = MapBody::new();
    map.set("a", 1).unwrap().set("b", "x".repeat(10_000)).unwrap();
    let mut stream = StreamBody::new();
    stream.push(1_i64).push("text");
    let object = Body::Object(ObjectBody::new("\u{ac}\u{ed}"));
    let bodies =
        [Body::text("grüße"), Body::bytes(vec![7; 50_000]), Body::Map(map), Body::Stream(stream), object];
    for body in bodies {
        assert_eq!(compressed(body.clone()).to_core(LIMITS).unwrap().body(), &body);
    }
    let empty = Message {
        kind: MessageKind::Bytes,
        content: Some(Bytes::new()),
        compressed: true,
        ..Message::default()
    };
    assert_eq!(empty.to_core(LIMITS).unwrap().body(), &Body::bytes(""));
}

#[test]
fn a_compressed_body_grows_up_to_the_limit_and_no_further() {
    let limits = ConversionLimits { memory: 10_000 };
    assert!(compressed(Body::bytes(vec![0; 10_000])).to_core(limits).is_ok());
    let bomb = compressed(Body::bytes(vec![0; 10_001]));
    assert_eq!(bomb.to_core(limits), Err(ConversionError::TooLarge { maximum: 10_000 }));
}

#[test]
fn a_damaged_compressed_body_is_named() {
    let whole = compressed(Body::text("damaged"));
    let bytes = whole.content.clone().unwrap();
    for length in 1..bytes.len() {
        let cut = Message { content: Some(bytes.slice(..length)), ..whole.clone() };
        assert_eq!(cut.to_core(LIMITS), Err(ConversionError::Compressed), "{length} bytes");
    }
    let mut lying = compressed(Body::bytes("four"));
    let mut bytes = lying.content.take().unwrap().to_vec();
    bytes[3] = 5;
    lying.content = Some(bytes.clone().into());
    assert_eq!(lying.to_core(LIMITS), Err(ConversionError::CompressedLength { announced: 5, found: 4 }));
    bytes[0] = 0xff;
    lying.content = Some(bytes.into());
    assert!(matches!(lying.to_core(LIMITS), Err(ConversionError::CompressedLength { found: 0, .. })));
}

/// Java compresses what its buffer has room for, and says how much of it is the body.
#[test]
fn of_a_compressed_bytes_body_as_much_is_taken_as_is_said() {
    let mut padded = compressed(Body::bytes("body\0\0\0"));
    let mut bytes = padded.content.take().unwrap().to_vec();
    bytes[3] = 4;
    padded.content = Some(bytes.into());
    assert_eq!(padded.to_core(LIMITS).unwrap().body(), &Body::bytes("body"));
}

#[test]
fn maps_and_lists_within_a_message_are_kept_and_go_out_again() {
    let list = Primitive::List(vec![Primitive::from(1), Primitive::Map(PrimitiveMap(Vec::new()))]);
    let map = PrimitiveMap(vec![("list".into(), list.clone()), ("plain".into(), Primitive::from(1_i8))]);
    let encoded = map.encode().unwrap();
    let sent = Message {
        kind: MessageKind::Map,
        content: Some(encoded.clone()),
        marshalled_properties: Some(encoded.clone()),
        ..Message::default()
    };
    let message = sent.to_core(LIMITS).unwrap();
    let kept = message.properties().get("list").unwrap();
    assert_eq!(nested_value(kept), Some(list));
    let again = Message::from_core(&message).unwrap();
    assert_eq!(again.content, Some(encoded.clone()));
    assert_eq!(again.marshalled_properties, Some(encoded));
}

#[test]
fn bytes_that_look_like_a_kept_list_stay_bytes() {
    let kept = value::to_core(Primitive::List(Vec::new())).unwrap();
    let Value::Bytes(forged) = kept else { panic!("{kept:?}") };
    let content = Primitive::encode_all([&Primitive::from(forged.clone())]).unwrap();
    let sent = Message { kind: MessageKind::Stream, content: Some(content.clone()), ..Message::default() };
    let message = sent.to_core(LIMITS).unwrap();
    assert_eq!(Message::from_core(&message).unwrap().content, Some(content));
    let cut = Value::Bytes(forged.slice(..forged.len() - 1));
    assert_eq!((nested_value(&cut), nested_value(&Value::from("text"))), (None, None));
}

#[test]
fn what_core_has_no_words_for_is_named() {
    let refused = |message: Message| message.to_core(LIMITS).unwrap_err();
    let queue = |name| Some(crate::structures::Destination::new(DestinationKind::Queue, name));
    assert_eq!(refused(Message { kind: MessageKind::Blob, ..Message::default() }), ConversionError::Blob);
    let plain = Message { content: Some("x".into()), ..Message::default() };
    assert_eq!(refused(plain), ConversionError::Unexpected { length: 1 });
    for (field, message) in [
        ("reply_to", Message { reply_to: queue("a,b"), ..Message::default() }),
        ("destination", Message { destination: queue("a.*"), ..Message::default() }),
    ] {
        assert!(
            matches!(refused(message), ConversionError::Destination { field: found, .. } if found == field)
        );
    }
    let negative = MessageId {
        producer_sequence_id: -1,
        producer_id: Some(ProducerId::default()),
        ..MessageId::default()
    };
    assert_eq!(negative.to_core(), Err(ConversionError::Number { number: -1, of: "message" }));
    assert_eq!(MessageId::default().to_core(), Err(ConversionError::NoProducer));
    // Half of a character, which Java can send.
    let half = Message {
        kind: MessageKind::Text,
        content: Some(Bytes::from_static(b"\0\0\0\x03\xed\xa0\xbd")),
        ..Message::default()
    };
    assert!(matches!(refused(half), ConversionError::Body(error) if error.fault == DecodeFault::Text));

    // The error stands within the body, not within a frame.
    let cut = Message {
        kind: MessageKind::Stream,
        content: Some(Bytes::from_static(b"\x02")),
        ..Message::default()
    };
    assert_eq!(
        refused(cut).to_string(),
        "the body of the message cannot be read: byte 1: 1 bytes are needed and 0 are left"
    );

    assert_eq!(Message::default().beyond_core(), Vec::<&str>::new());
    let set = Message { droppable: true, arrival: 1, original_destination: queue("a"), ..Message::default() };
    assert_eq!(set.beyond_core(), ["original_destination", "arrival", "droppable"]);
}

#[test]
fn odd_numbers_are_taken_as_java_takes_them() {
    let odd = Message {
        priority: 100,
        timestamp: -5,
        expiration: -5,
        redelivery_counter: -1,
        ..Message::default()
    };
    let headers = odd.to_core(LIMITS).unwrap().headers().clone();
    assert_eq!((headers.priority.level(), headers.timestamp, headers.expiration), (9, Timestamp(0), None));
    let low = Message { priority: -1, ..Message::default() };
    assert_eq!(low.to_core(LIMITS).unwrap().headers().priority.level(), 0);
}

#[test]
fn a_null_text_is_not_an_empty_one() {
    let text = |content: Option<&'static [u8]>| {
        let content = content.map(Bytes::from_static);
        let message = Message { kind: MessageKind::Text, content, ..Message::default() };
        message.to_core(LIMITS).unwrap().as_text().unwrap().map(str::to_owned)
    };
    assert_eq!((text(None), text(Some(b"\xff\xff\xff\xff"))), (None, None));
    assert_eq!(text(Some(b"\0\0\0\0")), Some(String::new()));
}

#[test]
fn names_of_messages_and_transactions_come_back() {
    for text in ["ID:host-40123-1700000000000-1:1:1:1:1", "ID:4711-18c2-1:1:-1:42", "ID:odd:7", "ID:a:01:1:7"]
    {
        let id: corriere_core::MessageId = text.parse().unwrap();
        let converted = MessageId::from_core(&id).unwrap();
        assert_eq!((converted.to_string().as_str(), converted.to_core()), (text, Ok(id)));
    }
    // A connection may have any prefix in ActiveMQ.
    let prefixed: MessageId = "shop-1:1:1:1:9".parse().unwrap();
    assert_eq!(MessageId::from_core(&prefixed.to_core().unwrap()), Ok(prefixed));

    let connection = ConnectionId { value: "ID:h-1:1".into() };
    let local = corriere_core::TransactionId::Local(7);
    let converted = TransactionId::from_core(&local, &connection).unwrap();
    let expected = LocalTransactionId { value: 7, connection_id: connection.clone() };
    assert_eq!((&converted, converted.to_core()), (&TransactionId::Local(expected), Ok(local)));
    let xid = corriere_core::id::Xid { format: -1, global: "global".into(), branch: Bytes::new() };
    let distributed = corriere_core::TransactionId::Distributed(xid);
    let converted = TransactionId::from_core(&distributed, &connection).unwrap();
    assert_eq!(converted.to_core(), Ok(distributed));
    let too_large = corriere_core::TransactionId::Local(u64::MAX);
    assert!(TransactionId::from_core(&too_large, &connection).is_err());
}
