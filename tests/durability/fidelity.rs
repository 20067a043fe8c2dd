//! What a message is after it was on disk.

use std::time::Duration;

use corriere_core::AcknowledgeMode::Client;
use corriere_core::message::{MapBody, Priority, StreamBody};
use corriere_core::{Body, Message, SendOptions, Value};

use crate::support::{End, Home, next, queue, within};

fn bodies() -> Vec<Message> {
    let mut map = MapBody::default();
    map.set("null", Value::Null).unwrap();
    map.set("number", i64::MIN).unwrap();
    map.set("bytes", vec![0_u8, 255]).unwrap();
    let mut stream = StreamBody::default();
    stream.push("item");
    stream.push(-0.0_f64);
    vec![
        Message::new(Body::Empty),
        Message::new(Body::Text(None)),
        Message::text(""),
        Message::text("名前 \u{1F980}\0"),
        Message::bytes(Vec::new()),
        Message::bytes(vec![7; 100_000]),
        Message::map(MapBody::default()),
        Message::map(map),
        Message::stream(StreamBody::default()),
        Message::stream(stream),
        Message::object(vec![1, 2, 3], "application/json", "Order"),
    ]
}

#[tokio::test]
async fn every_header_property_and_kind_of_body_comes_back_as_it_was_sent() {
    for mut home in [Home::on_disk(), Home::recorded()] {
        let q = queue("q");
        let broker = home.start();
        let session = broker.session(Client).await;
        let options = SendOptions {
            priority: Some(Priority::new(4).unwrap()),
            time_to_live: Some(Duration::from_secs(1_000)),
            ..SendOptions::default()
        };
        for mut message in bodies() {
            message.set_property("yes", true).unwrap();
            message.set_property("byte", -1_i8).unwrap();
            message.set_property("short", i16::MIN).unwrap();
            message.set_property("int", i32::MAX).unwrap();
            message.set_property("long", i64::MAX).unwrap();
            message.set_property("float", f32::MIN_POSITIVE).unwrap();
            message.set_property("double", f64::MAX).unwrap();
            message.set_property("text", "größer").unwrap();
            let headers = message.headers_mut();
            headers.correlation_id = Some("it's".into());
            headers.reply_to = Some(queue("replies"));
            within(session.send(&q, &message, &options)).await.unwrap();
        }
        let consumer = session.create_consumer_with_prefetch(&q, 100).await.unwrap();
        let mut sent = Vec::new();
        for _ in bodies() {
            sent.push(next(&consumer).await.into_message());
        }
        let broker = home.restart(broker, End::Stop);
        let consumer = broker.consumer(Client, &q).await;
        for (sent, original) in sent.iter().zip(bodies()) {
            let received = next(&consumer).await.into_message();
            assert_eq!(received.body(), original.body());
            assert_eq!(received.properties(), sent.properties());
            assert_eq!(received.headers().delivery_count, 2);
            let mut headers = received.headers().clone();
            headers.delivery_count = 1;
            assert_eq!(headers, *sent.headers());
            within(consumer.session().acknowledge()).await.unwrap();
        }
        broker.stop();
    }
}
