//! Consumers in great number, and consumers that close with much in their buffer.

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::{Destination, Message, SendOptions};

use crate::support::{broker, connect, within};

#[tokio::test]
async fn ten_thousand_consumers_on_one_connection_get_their_messages_and_leave_nothing() {
    const COUNT: usize = 10_000;
    let broker = broker(64 << 20);
    let connection = connect(&broker).await;
    let session = connection.create_session(Auto).await.unwrap();
    let sender = connection.create_session(Auto).await.unwrap();
    let mut consumers = Vec::new();
    for number in 0..COUNT {
        let q = Destination::queue(&format!("q{number}")).unwrap();
        let consumer = session.create_consumer(&q).await.unwrap();
        sender.send(&q, &Message::text(number.to_string()), &SendOptions::default()).await.unwrap();
        consumers.push((q, consumer));
    }
    for (number, (_, consumer)) in consumers.iter().enumerate() {
        let delivery = within(consumer.receive()).await.unwrap().unwrap();
        assert_eq!(delivery.as_text().unwrap(), Some(number.to_string().as_str()));
    }
    for (q, _) in &consumers {
        sender.send(q, &Message::text("left behind"), &SendOptions::default()).await.unwrap();
    }
    within(connection.close()).await.unwrap();
    for (q, _) in &consumers {
        let counts = broker.counts(q).unwrap();
        assert_eq!((counts.acknowledged, counts.pending, counts.in_flight), (1, 1, 0));
    }
}

#[tokio::test]
async fn ten_thousand_consumers_on_one_queue_share_it() {
    const COUNT: usize = 10_000;
    let broker = broker(64 << 20);
    let q = Destination::queue("q").unwrap();
    let connection = connect(&broker).await;
    let session = connection.create_session(Auto).await.unwrap();
    let mut consumers = Vec::new();
    for _ in 0..COUNT {
        consumers.push(session.create_consumer_with_prefetch(&q, 1).await.unwrap());
    }
    for _ in 0..COUNT {
        session.send(&q, &Message::text("m"), &SendOptions::default()).await.unwrap();
    }
    for consumer in &consumers {
        assert!(within(consumer.receive()).await.unwrap().is_some(), "each has one");
    }
    drop(consumers);
    assert_eq!(broker.counts(&q).unwrap().acknowledged, COUNT as u64);
}

#[tokio::test]
async fn a_consumer_that_closes_with_a_full_buffer_returns_it_in_order_and_uncounted() {
    const COUNT: usize = 2_000;
    let broker = broker(64 << 20);
    let q = Destination::queue("q").unwrap();
    let sender = connect(&broker).await.create_session(Auto).await.unwrap();
    for number in 0..COUNT {
        sender.send(&q, &Message::text(number.to_string()), &SendOptions::default()).await.unwrap();
    }
    let mut settled = 0;
    for round in 0..30 {
        let connection = connect(&broker).await;
        let session = connection.create_session([Auto, Client, Transacted][round % 3]).await.unwrap();
        let consumer = session.create_consumer_with_prefetch(&q, 1_000).await.unwrap();
        assert_eq!(broker.counts(&q).unwrap().in_flight, 1_000.min((COUNT - settled) as u64));
        for _ in 0..20 {
            let delivery = within(consumer.receive()).await.unwrap().unwrap();
            let seen = (delivery.as_text().unwrap().map(str::to_owned), delivery.count());
            assert_eq!(seen, (Some(settled.to_string()), 1));
            settled += 1;
        }
        session.acknowledge().await.unwrap();
        if session.is_transacted() {
            session.commit().await.unwrap();
        }
        match round % 4 {
            0 => consumer.close().await.unwrap(),
            1 => session.close().await.unwrap(),
            2 => connection.close().await.unwrap(),
            _ => drop((consumer, session, connection)),
        }
        assert_eq!(broker.counts(&q).unwrap().in_flight, 0, "round {round}");
    }
    let counts = broker.counts(&q).unwrap();
    assert!(counts.are_conserved(), "{counts:?}");
    assert_eq!((counts.acknowledged, counts.redelivered), (settled as u64, 0));
}
