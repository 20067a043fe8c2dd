//! Properties: their names, their types, and what each can be read as when it has arrived.

use bytes::Bytes;
use corriere_core::AcknowledgeMode::Auto;
use corriere_core::message::FromValue;
use corriere_core::{Message, MessageError, SendOptions, Value};

use crate::peer::{Peer, next, within};

over_each_peer! {
    a_legal_name_arrives_and_any_other_is_refused_when_it_is_set,
    a_name_that_only_others_may_give_arrives_as_it_came,
    every_type_arrives_bit_for_bit_and_reads_as_its_table_says,
    text_reads_as_a_number_only_as_a_whole_and_what_is_missing_as_none,
    a_received_message_is_read_only_until_it_is_cleared_and_may_then_be_sent_again,
}

/// What arrives of a message.
async fn there(peer: &Peer, message: &Message) -> Message {
    let q = peer.queue("q");
    let session = peer.session(Auto).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    within(session.send(&q, message, &SendOptions::default())).await.unwrap();
    next(&consumer).await.into_message()
}

/// C-29, all but selectors.
async fn a_legal_name_arrives_and_any_other_is_refused_when_it_is_set(peer: &Peer) {
    let mut message = Message::text("m");
    for name in ["ok_1", "_a", "$b", "日本", "JMSXGroupID"] {
        message.set_property(name, "value").unwrap();
    }
    let too_long = "n".repeat(70_000);
    for name in [
        "sentry-trace",
        "X.Y",
        "1a",
        "",
        "NULL",
        "null",
        "true",
        "True",
        "between",
        "BETWEEN",
        "JMSFoo",
        too_long.as_str(),
    ] {
        let error = message.set_property(name, "value").unwrap_err();
        assert!(matches!(error, MessageError::Name { .. }), "{error}");
        let beginning: String = name.chars().take(20).collect();
        assert!(error.to_string().starts_with(&format!("`{beginning}")), "{error}");
    }
    let error = message.set_property("JMSXGroupID", 7).unwrap_err();
    assert!(matches!(error, MessageError::PropertyType { .. }), "{error}");
    let received = there(peer, &message).await;
    for (name, value) in message.properties().iter() {
        assert_eq!(received.properties().get(name), Some(value), "{name}");
    }
    // ActiveMQ says of a group that this is its first message.
    let added = usize::from(!peer.is_ours());
    assert_eq!(received.properties().len(), 5 + added, "{:?}", received.properties());
}

/// C-29: decision 10 keeps what arrives over a wire as it came, so that a client of another make loses no header.
async fn a_name_that_only_others_may_give_arrives_as_it_came(peer: &Peer) {
    let mut message = Message::text("m");
    for name in ["sentry-trace", "X.Y", "1a", "between"] {
        message.properties_mut_unchecked().set_unchecked(name, Value::from(name));
    }
    let received = there(peer, &message).await;
    for name in ["sentry-trace", "X.Y", "1a", "between"] {
        assert_eq!(received.property::<String>(name).unwrap().as_deref(), Some(name));
    }
}

/// Which types a property can be read as, an `x` for each that it can.
fn readings(message: &Message, name: &str) -> String {
    fn mark<T: FromValue>(message: &Message, name: &str) -> char {
        match message.property::<T>(name) {
            Ok(Some(_)) => 'x',
            Err(MessageError::Format { .. }) => '.',
            Err(MessageError::Number { .. }) => 'n',
            _ => '?',
        }
    }
    [
        mark::<bool>(message, name),
        mark::<i8>(message, name),
        mark::<i16>(message, name),
        mark::<i32>(message, name),
        mark::<i64>(message, name),
        mark::<f32>(message, name),
        mark::<f64>(message, name),
        mark::<String>(message, name),
    ]
    .into_iter()
    .collect()
}

/// C-30: the table of Jakarta Messaging 3.1, section 3.5.4, of what has arrived.
async fn every_type_arrives_bit_for_bit_and_reads_as_its_table_says(peer: &Peer) {
    // boolean, byte, short, int, long, float, double, String
    let table = [
        ("boolean", Value::from(true), "x......x"),
        ("byte", i8::MIN.into(), ".xxxx..x"),
        ("short", i16::MIN.into(), "..xxx..x"),
        ("int", i32::MIN.into(), "...xx..x"),
        ("long", i64::MIN.into(), "....x..x"),
        ("not_a_number", f32::NAN.into(), ".....xxx"),
        ("negative_zero", (-0.0_f32).into(), ".....xxx"),
        ("double", f64::MIN_POSITIVE.into(), "......xx"),
        ("negative_double_zero", (-0.0).into(), "......xx"),
        ("text", "12".into(), "xxxxxxxx"),
    ];
    let mut message = Message::text("m");
    for (name, value, _) in &table {
        message.set_property(name, value.clone()).unwrap();
    }
    let bytes = message.set_property("bytes", vec![1_u8]).unwrap_err();
    assert!(matches!(bytes, MessageError::PropertyType { .. }), "{bytes}");
    let received = there(peer, &message).await;
    assert_eq!(received.properties(), message.properties());
    for (name, _, expected) in &table {
        assert_eq!(readings(&received, name), *expected, "{name}");
        assert!(received.property::<Bytes>(name).is_err(), "{name}");
    }
    assert_eq!(received.property::<i64>("int"), Ok(Some(i64::from(i32::MIN))), "widening keeps the value");
    assert!(received.property::<f32>("negative_zero").unwrap().unwrap().is_sign_negative());
}

/// C-30. What is missing is `None` whatever it is read as, which is how an API with optional answers may say it.
async fn text_reads_as_a_number_only_as_a_whole_and_what_is_missing_as_none(peer: &Peer) {
    let mut message = Message::text("m");
    for (name, text) in
        [("whole", "12"), ("beginning", "12x"), ("truth", "TRUE"), ("empty", ""), ("beyond", "1e400")]
    {
        message.set_property(name, text).unwrap();
    }
    let received = there(peer, &message).await;
    for (name, expected) in [
        ("whole", "xxxxxxxx"),
        ("beginning", "xnnnnnnx"),
        ("truth", "xnnnnnnx"),
        ("empty", "xnnnnnnx"),
        ("beyond", "xnnnnxxx"),
    ] {
        assert_eq!(readings(&received, name), expected, "{name}");
    }
    let boolean = |name| received.property::<bool>(name);
    assert_eq!(
        (boolean("whole"), boolean("truth"), boolean("empty")),
        (Ok(Some(false)), Ok(Some(true)), Ok(Some(false)))
    );
    assert_eq!(received.property::<f64>("beyond"), Ok(Some(f64::INFINITY)), "as Java reads it");

    assert_eq!(received.property::<bool>("missing"), Ok(None));
    assert_eq!(received.property::<i8>("missing"), Ok(None));
    assert_eq!(received.property::<i16>("missing"), Ok(None));
    assert_eq!(received.property::<i32>("missing"), Ok(None));
    assert_eq!(received.property::<i64>("missing"), Ok(None));
    assert_eq!(received.property::<f32>("missing"), Ok(None));
    assert_eq!(received.property::<f64>("missing"), Ok(None));
    assert_eq!(received.property::<String>("missing"), Ok(None));
}

/// C-30.
async fn a_received_message_is_read_only_until_it_is_cleared_and_may_then_be_sent_again(peer: &Peer) {
    let mut message = Message::text("m");
    message.set_property("a", 1).unwrap().set_property("b", 1).unwrap();
    let mut received = there(peer, &message).await;
    let refused = received.set_property("a", 2).unwrap_err();
    assert_eq!(refused, MessageError::NotWriteable { part: "properties" });
    received.clear_properties();
    received.set_property("a", 3).unwrap();
    let again = there(peer, &received).await;
    assert_eq!((again.property::<i32>("a"), again.property::<i32>("b")), (Ok(Some(3)), Ok(None)));
    assert_eq!(again.as_text(), Ok(Some("m")));
}
