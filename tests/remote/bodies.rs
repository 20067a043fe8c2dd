//! Messages of every kind, there and back.

use std::time::Duration;

use corriere_core::AcknowledgeMode::Auto;
use corriere_core::message::{MapBody, StreamBody};
use corriere_core::{Body, DeliveryMode, Message, Priority, SendOptions, Value};

use crate::peer::{Peer, next, within};

over_each_peer! {
    every_kind_of_body_and_property_arrives_as_it_was_sent,
    headers_arrive_as_they_were_sent,
    a_body_of_ten_megabytes_arrives_whole,
    what_the_wire_has_no_room_for_is_refused_and_the_connection_goes_on,
}

fn every_value() -> Vec<(&'static str, Value)> {
    vec![
        ("boolean", true.into()),
        ("byte", i8::MIN.into()),
        ("short", i16::MIN.into()),
        ("int", i32::MIN.into()),
        ("long", i64::MIN.into()),
        ("float", f32::MIN_POSITIVE.into()),
        ("double", f64::MAX.into()),
        ("text", "名前 \u{1F980} \0".into()),
        ("long_text", "é".repeat(20_000).into()),
    ]
}

async fn every_kind_of_body_and_property_arrives_as_it_was_sent(peer: &Peer) {
    let q = peer.queue("q");
    let session = peer.session(Auto).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    let (mut map, mut stream) = (MapBody::default(), StreamBody::default());
    for (name, value) in every_value() {
        map.set(name, value.clone()).unwrap();
        stream.push(value);
    }
    map.set("null", Value::Null).unwrap();
    map.set("bytes", Value::Bytes(vec![0, 255].into())).unwrap();
    for mut message in [
        Message::new(Body::Empty),
        Message::new(Body::Text(None)),
        Message::text(""),
        Message::text("名前 \u{1F980} \0"),
        Message::bytes(Vec::new()),
        Message::bytes(vec![0, 1, 255]),
        Message::map(MapBody::default()),
        Message::map(map),
        Message::stream(StreamBody::default()),
        Message::stream(stream),
        Message::object(vec![1, 2, 3], "application/json", "Order"),
    ] {
        for (name, value) in every_value() {
            message.set_property(name, value).unwrap();
        }
        within(session.send(&q, &message, &SendOptions::default())).await.unwrap();
        let received = next(&consumer).await;
        assert_eq!(received.body(), message.body());
        assert_eq!(received.properties(), message.properties());
    }
}

async fn headers_arrive_as_they_were_sent(peer: &Peer) {
    let (q, replies) = (peer.queue("q"), peer.topic("replies"));
    let session = peer.session(Auto).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    let mut message = Message::text("m");
    let headers = message.headers_mut();
    headers.correlation_id = Some("order 7".into());
    headers.message_type = Some("order".into());
    headers.reply_to = Some(replies.clone());
    let options = SendOptions {
        delivery_mode: Some(DeliveryMode::NonPersistent),
        priority: Some(Priority::new(7).unwrap()),
        time_to_live: Some(Duration::from_secs(3_600)),
        ..SendOptions::default()
    };
    let id = within(session.send(&q, &message, &options)).await.unwrap();
    let received = next(&consumer).await;
    let headers = received.headers();
    assert_eq!(headers.message_id, Some(id));
    assert_eq!(headers.destination, Some(q));
    assert_eq!(headers.reply_to, Some(replies));
    assert_eq!(headers.correlation_id.as_deref(), Some("order 7"));
    assert_eq!(headers.message_type.as_deref(), Some("order"));
    assert_eq!((headers.priority.level(), headers.is_persistent()), (7, false));
    let life = headers.expiration.map(|expiration| expiration.since(headers.timestamp));
    assert_eq!(life, Some(Duration::from_secs(3_600)));
    assert_eq!((received.count(), headers.redelivered()), (1, false));
}

async fn a_body_of_ten_megabytes_arrives_whole(peer: &Peer) {
    let q = peer.queue("q");
    let session = peer.session(Auto).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    let body: Vec<u8> =
        (0..10_000_000_u32).map(|index| (index ^ (index >> 8) ^ (index >> 16)) as u8).collect();
    within(session.send(&q, &Message::bytes(body.clone()), &SendOptions::default())).await.unwrap();
    let received = next(&consumer).await;
    assert!(received.as_bytes().unwrap().as_bytes()[..] == body[..], "it arrived otherwise");
}

async fn what_the_wire_has_no_room_for_is_refused_and_the_connection_goes_on(peer: &Peer) {
    let q = peer.queue("q");
    let session = peer.session(Auto).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    let mut message = Message::text("m1");
    message.headers_mut().correlation_id = Some("c".repeat(70_000).into());
    for delivery_mode in [DeliveryMode::Persistent, DeliveryMode::NonPersistent] {
        let options = SendOptions { delivery_mode: Some(delivery_mode), ..SendOptions::default() };
        let sent = within(session.send(&q, &message, &options)).await;
        if peer.is_here() {
            sent.unwrap();
            next(&consumer).await;
        } else {
            let error = sent.unwrap_err().to_string();
            assert!(error.contains("correlation_id"), "{error}");
        }
    }
    within(session.send(&q, &Message::text("m2"), &SendOptions::default())).await.unwrap();
    assert_eq!(next(&consumer).await.as_text().unwrap(), Some("m2"));
}
