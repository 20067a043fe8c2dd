//! Bodies of every size and kind (C-55, C-56).

use corriere_core::AcknowledgeMode::{Auto, Transacted};
use corriere_core::message::{MapBody, StreamBody};
use corriere_core::{Message, SendOptions, Value};

use crate::support::{TestBroker, next, queue, settings, within};

const MIB: usize = 1 << 20;

/// Bytes that show where they were cut or swapped.
fn bytes(size: usize) -> Vec<u8> {
    (0..size).map(|index| (index ^ (index >> 8) ^ (index >> 16)) as u8).collect()
}

/// Without printing either when they differ.
fn is_whole(message: &Message, body: &[u8]) -> bool {
    message.as_bytes().unwrap().as_bytes()[..] == *body
}

/// C-55.
#[tokio::test]
async fn bodies_from_nothing_to_64_mib_arrive_whole_through_redelivery_and_dead_letter() {
    let broker = TestBroker::with(corriere_broker::Settings { memory_limit: 32 * MIB as u64, ..settings() });
    let q = queue("q");
    let sender = broker.session(Auto).await;
    let session = broker.session(Transacted).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let dead = sender.create_consumer(&queue("DLQ.q")).await.unwrap();
    for size in [0, 1, 10_000_000, 64 * MIB] {
        let body = bytes(size);
        let message = Message::bytes(body.clone());
        within(sender.send(&q, &message, &SendOptions::default())).await.unwrap();
        for count in 1..=3 {
            let delivery = next(&consumer).await;
            assert_eq!(delivery.count(), count);
            assert!(is_whole(&delivery, &body), "{size} bytes arrived otherwise");
            session.rollback().await.unwrap();
        }
        let delivery = next(&dead).await;
        assert!(is_whole(&delivery, &body), "{size} bytes died otherwise");
    }
    assert_eq!(broker.broker.memory_used(), 0);
}

#[tokio::test]
async fn every_kind_of_body_arrives_as_it_was_sent() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let mut map = MapBody::default();
    map.set("null", Value::Null).unwrap();
    map.set("number", 1_i32).unwrap();
    let mut stream = StreamBody::default();
    stream.push("item");
    for message in [
        Message::new(corriere_core::Body::Empty),
        Message::new(corriere_core::Body::Text(None)),
        Message::text(""),
        Message::text("名前 \u{1F980}"),
        Message::bytes(Vec::new()),
        Message::map(MapBody::default()),
        Message::map(map),
        Message::stream(StreamBody::default()),
        Message::stream(stream),
        Message::object(vec![1, 2, 3], "application/json", "Order"),
    ] {
        session.send(&q, &message, &SendOptions::default()).await.unwrap();
        let received = next(&consumer).await;
        assert_eq!(received.body(), message.body());
        assert_eq!(received.properties(), message.properties());
    }
}

/// C-55.
#[tokio::test]
async fn two_consumers_share_large_bodies() {
    let broker = TestBroker::with(corriere_broker::Settings { memory_limit: 32 * MIB as u64, ..settings() });
    let q = queue("q");
    let sender = broker.session(Auto).await;
    let (one, other) = (broker.session(Auto).await, broker.session(Auto).await);
    let (one, other) = (one.create_consumer(&q).await.unwrap(), other.create_consumer(&q).await.unwrap());
    let body = bytes(10 * MIB);
    let send = async {
        for _ in 0..8 {
            sender.send(&q, &Message::bytes(body.clone()), &SendOptions::default()).await.unwrap();
            assert!(broker.broker.memory_used() <= 32 * MIB as u64);
        }
    };
    let receive = async |consumer| {
        for _ in 0..4 {
            let delivery = next(consumer).await;
            assert!(is_whole(&delivery, &body));
        }
    };
    within(async { tokio::join!(send, receive(&one), receive(&other)) }).await;
    assert_eq!(broker.counts(&q).acknowledged, 8);
}
