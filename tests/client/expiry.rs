//! Time to live, and what expires in a consumer's buffer.

use std::time::Duration;

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::{AcknowledgeMode, Clock, DeliveryMode, Message, SendOptions, Session, Timestamp};

use crate::support::{TestBroker, first, firsts, next, now, others_run, queue, see, send_text, text, within};

const SECOND: Duration = Duration::from_secs(1);

async fn send_for(session: &Session, q: &corriere_core::Destination, text: &str, time_to_live: Duration) {
    let options = SendOptions { time_to_live: Some(time_to_live), ..SendOptions::default() };
    session.send(q, &Message::text(text), &options).await.unwrap();
}

/// C-19 (a) and (b): a hundred that expire in the buffer and one that does not.
#[tokio::test]
async fn what_expires_in_the_buffer_leaves_the_window_open() {
    for mode in [Client, Transacted] {
        expire_in_the_buffer(mode, |number| number == 100).await;
    }
}

/// C-19 (c): every second one expires.
#[tokio::test]
async fn what_expires_in_the_buffer_between_others_leaves_the_window_open() {
    for mode in [Client, Transacted] {
        expire_in_the_buffer(mode, |number| number % 2 == 0).await;
    }
}

/// Sends up to a hundred that expire while they are in the buffer, and those that last; then two hundred more.
async fn expire_in_the_buffer(mode: AcknowledgeMode, lasts: impl Fn(usize) -> bool) {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(mode).await;
    let consumer = session.create_consumer_with_prefetch(&q, 400).await.unwrap();
    let sender = broker.session(Auto).await;
    let (mut lasting, mut expiring, mut number) = (0, 0, 0);
    while expiring < 100 || lasting == 0 {
        if lasts(number) {
            send_text(&sender, &q, "long").await;
            lasting += 1;
        } else {
            send_for(&sender, &q, "short", 4 * SECOND).await;
            expiring += 1;
        }
        number += 1;
    }
    assert_eq!(broker.counts(&q).in_flight, lasting + expiring);
    broker.clock.advance(5 * SECOND);
    for _ in 0..lasting {
        assert_eq!(text(&next(&consumer).await.into_message()), "long");
    }
    assert_eq!(now(&consumer).await, None);
    settle(&session).await;
    let counts = broker.counts(&q);
    assert_eq!((counts.in_flight, counts.pending, counts.acknowledged), (0, 0, lasting), "{mode:?}");
    assert_eq!(counts.expired, 100);
    broker.send_numbered(&q, 200).await;
    assert_eq!(see(&consumer, 200).await, firsts(1..=200));
    settle(&session).await;
    assert_eq!(broker.counts(&q).pending, 0);
    assert_eq!(broker.counts(&queue("DLQ.q")).moved_in, 100, "each once");
}

async fn settle(session: &Session) {
    if session.is_transacted() {
        session.commit().await.unwrap();
    } else {
        session.acknowledge().await.unwrap();
    }
}

#[tokio::test]
async fn what_expires_in_the_buffer_of_a_narrow_window_holds_up_nothing() {
    for prefetch in [1, 2] {
        let broker = TestBroker::start();
        let q = queue("q");
        let session = broker.session(Client).await;
        let consumer = session.create_consumer_with_prefetch(&q, prefetch).await.unwrap();
        let sender = broker.session(Auto).await;
        for _ in 0..5 {
            send_for(&sender, &q, "short", SECOND).await;
        }
        send_text(&sender, &q, "long").await;
        broker.clock.advance(SECOND);
        assert_eq!(now(&consumer).await.as_deref(), Some("long"), "prefetch {prefetch}");
    }
}

#[tokio::test]
async fn a_listener_does_not_see_what_expired_before_its_turn() {
    let broker = TestBroker::start();
    let q = queue("q");
    let connection = broker.connect().await;
    connection.stop().unwrap();
    let session = connection.create_session(Auto).await.unwrap();
    let consumer = session.create_consumer(&q).await.unwrap();
    let (texts, mut heard) = tokio::sync::mpsc::unbounded_channel();
    consumer
        .set_message_listener(move |delivery| {
            let sent = texts.send(text(&delivery).to_owned());
            async move { Ok(sent?) }
        })
        .unwrap();
    let sender = broker.session(Auto).await;
    for number in 0..5 {
        send_for(&sender, &q, "short", SECOND).await;
        send_text(&sender, &q, &format!("long {number}")).await;
    }
    broker.clock.advance(SECOND);
    connection.start().unwrap();
    for number in 0..5 {
        assert_eq!(within(heard.recv()).await.unwrap(), format!("long {number}"));
    }
    broker.until(&q, |counts| counts.acknowledged == 5 && counts.pending == 0).await;
    assert_eq!(broker.counts(&q).expired, 5);
}

/// C-19 (d).
#[tokio::test]
async fn a_client_whose_clock_is_ahead_leaves_nothing_in_flight() {
    let broker = TestBroker::start();
    let q = queue("q");
    let ahead = Clock::manual(broker.clock.now().saturating_add(30 * SECOND));
    let connection = broker.factory("").with_clock(ahead).create_connection().await.unwrap();
    connection.start().unwrap();
    let session = connection.create_session(Client).await.unwrap();
    let consumer = session.create_consumer(&q).await.unwrap();
    let sender = broker.session(Auto).await;
    for _ in 0..3 {
        send_for(&sender, &q, "short", 10 * SECOND).await;
    }
    send_text(&sender, &q, "long").await;
    assert_eq!(see(&consumer, 1).await, [first("long")]);
    session.acknowledge().await.unwrap();
    let counts = broker.counts(&q);
    assert_eq!((counts.in_flight, counts.pending, counts.expired), (0, 0, 3));
}

/// C-20: a negative time to live cannot be said; the rest of the row.
#[tokio::test]
async fn a_time_to_live_is_kept_as_it_was_given_and_never_ends_in_the_past() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let now = broker.clock.now();
    let milliseconds = Duration::from_millis;
    for (time_to_live, expiration) in [
        (None, None),
        (Some(Duration::ZERO), None),
        (Some(milliseconds(1)), Some(Timestamp(now.0 + 1))),
        (Some(milliseconds(500)), Some(Timestamp(now.0 + 500))),
        (Some(milliseconds(i64::MAX as u64 - now.0 + 1)), Some(Timestamp(i64::MAX as u64 + 1))),
        (Some(milliseconds(i64::MAX as u64)), Some(Timestamp(i64::MAX as u64 + now.0))),
        (Some(Duration::MAX), Some(Timestamp(u64::MAX))),
    ] {
        let options = SendOptions { time_to_live, ..SendOptions::default() };
        session.send(&q, &Message::text("m"), &options).await.unwrap();
        assert_eq!(next(&consumer).await.headers().expiration, expiration, "{time_to_live:?}");
        let producer = session.create_producer(Some(&q)).await.unwrap().with_options(options);
        producer.send(&Message::text("m")).await.unwrap();
        assert_eq!(next(&consumer).await.headers().expiration, expiration, "{time_to_live:?}");
    }
}

#[tokio::test]
async fn what_the_send_says_goes_before_what_the_producer_says_and_the_message_says_nothing() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let defaults = SendOptions {
        time_to_live: Some(SECOND),
        delivery_mode: Some(DeliveryMode::NonPersistent),
        ..SendOptions::default()
    };
    let producer = session.create_producer(Some(&q)).await.unwrap().with_options(defaults);
    let mut message = Message::text("m");
    message.headers_mut().expiration = Some(Timestamp(1));
    message.headers_mut().delivery_count = 7;
    producer.send(&message).await.unwrap();
    let received = next(&consumer).await;
    assert_eq!(received.headers().expiration, Some(broker.clock.now().saturating_add(SECOND)));
    assert_eq!(received.headers().delivery_mode, DeliveryMode::NonPersistent);
    assert_eq!(received.count(), 1);
    let own = SendOptions {
        time_to_live: Some(Duration::ZERO),
        delivery_mode: Some(DeliveryMode::Persistent),
        ..SendOptions::default()
    };
    producer.send_with(None, &message, &own).await.unwrap();
    let received = next(&consumer).await;
    assert_eq!(received.headers().expiration, None);
    assert_eq!(received.headers().delivery_mode, DeliveryMode::Persistent);
}

#[tokio::test]
async fn a_message_that_nobody_consumes_expires_by_itself() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    send_for(&session, &q, "short", Duration::from_millis(500)).await;
    broker.clock.advance(Duration::from_millis(499));
    others_run().await;
    assert_eq!(broker.counts(&q).pending, 1);
    broker.clock.advance(Duration::from_millis(1));
    broker.until(&q, |counts| counts.expired == 1 && counts.pending == 0).await;
}

#[tokio::test]
async fn a_message_that_does_not_persist_expires_without_a_dead_letter() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let options = SendOptions {
        delivery_mode: Some(DeliveryMode::NonPersistent),
        time_to_live: Some(SECOND),
        ..SendOptions::default()
    };
    session.send(&q, &Message::text("m"), &options).await.unwrap();
    broker.clock.advance(SECOND);
    broker.until(&q, |counts| counts.pending == 0).await;
    assert_eq!(broker.counts(&queue("DLQ.q")).moved_in, 0);
}
