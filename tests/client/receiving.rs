//! The family of receives on a consumer with a prefetch.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use futures_core::Stream;

use crate::support::{TestBroker, first, firsts, next, now, others_run, queue, see, send_text, text, within};

#[tokio::test]
async fn a_receive_settles_in_auto_and_in_no_other_mode() {
    for (mode, acknowledged) in [(Auto, 1), (Client, 0), (Transacted, 0)] {
        let broker = TestBroker::start();
        let q = queue("q");
        broker.send_numbered(&q, 1).await;
        let session = broker.session(mode).await;
        let consumer = session.create_consumer(&q).await.unwrap();
        let delivery = next(&consumer).await;
        assert_eq!(broker.counts(&q).acknowledged, acknowledged, "{mode:?}");
        assert_eq!(delivery.is_settled(), acknowledged == 1, "{mode:?}");
    }
}

/// C-16.
#[tokio::test]
async fn a_timeout_of_zero_does_not_wait() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    for prefetch in [0, 10] {
        let consumer = session.create_consumer_with_prefetch(&q, prefetch).await.unwrap();
        assert!(within(consumer.receive_timeout(Duration::ZERO)).await.unwrap().is_none());
        broker.send_numbered(&q, 1).await;
        assert!(within(consumer.receive_timeout(Duration::ZERO)).await.unwrap().is_some());
    }
}

/// C-16.
#[tokio::test]
async fn a_timeout_ends_when_its_time_has_come_and_not_before() {
    let broker = TestBroker::start();
    let session = broker.session(Auto).await;
    for prefetch in [0, 10] {
        let consumer = session.create_consumer_with_prefetch(&queue("q"), prefetch).await.unwrap();
        let receive = tokio::spawn(async move { consumer.receive_timeout(Duration::from_millis(500)).await });
        others_run().await;
        broker.clock.advance(Duration::from_millis(499));
        others_run().await;
        assert!(!receive.is_finished(), "prefetch {prefetch}");
        broker.clock.advance(Duration::from_millis(1));
        assert!(within(receive).await.unwrap().unwrap().is_none(), "prefetch {prefetch}");
    }
}

/// C-16.
#[tokio::test]
async fn the_longest_timeout_does_not_overflow() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    for prefetch in [0, 10] {
        for timeout in [Duration::MAX, Duration::from_millis(i64::MAX as u64)] {
            let consumer = session.create_consumer_with_prefetch(&q, prefetch).await.unwrap();
            let receive = tokio::spawn(async move { consumer.receive_timeout(timeout).await });
            others_run().await;
            broker.clock.advance(Duration::from_secs(3_600 * 24 * 365));
            others_run().await;
            assert!(!receive.is_finished());
            broker.send_numbered(&q, 1).await;
            assert!(within(receive).await.unwrap().unwrap().is_some());
        }
    }
}

/// C-16.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receive_that_does_not_wait_always_gets_the_message_that_is_there() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let sender = broker.session(Auto).await;
    for prefetch in [0, 10] {
        let lasting = session.create_consumer_with_prefetch(&queue("lasting"), prefetch).await.unwrap();
        for number in 0..200 {
            assert_eq!(now(&lasting).await, None);
            send_text(&sender, &queue("lasting"), "m").await;
            assert!(now(&lasting).await.is_some(), "prefetch {prefetch}, number {number}");

            send_text(&sender, &q, "m").await;
            let new = session.create_consumer_with_prefetch(&q, prefetch).await.unwrap();
            assert!(now(&new).await.is_some(), "prefetch {prefetch}, number {number}");
            assert_eq!(now(&new).await, None);
        }
    }
}

#[tokio::test]
async fn several_receives_on_one_consumer_get_one_message_each() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let receives = async { tokio::join!(next(&consumer), next(&consumer), next(&consumer)) };
    let send = async {
        others_run().await;
        broker.send_numbered(&q, 4).await;
    };
    let ((one, two, three), ()) = within(async { tokio::join!(receives, send) }).await;
    let mut texts = [text(&one), text(&two), text(&three)];
    texts.sort_unstable();
    assert_eq!(texts, ["m1", "m2", "m3"]);
    assert_eq!(now(&consumer).await.as_deref(), Some("m4"));
}

#[tokio::test]
async fn a_dropped_receive_neither_loses_nor_counts_a_message() {
    let broker = TestBroker::start();
    let q = queue("q");
    for mode in [Auto, Client] {
        for prefetch in [0, 1, 10] {
            let session = broker.session(mode).await;
            let consumer = session.create_consumer_with_prefetch(&q, prefetch).await.unwrap();
            for round in 0..20 {
                let mut receive = Box::pin(consumer.receive());
                let is_pending = poll_fn(|cx| Poll::Ready(receive.as_mut().poll(cx).is_pending())).await;
                assert!(is_pending);
                if round % 2 == 0 {
                    // It is woken, and dropped before it is polled again.
                    broker.send_numbered(&q, 1).await;
                    drop(receive);
                } else {
                    drop(receive);
                    broker.send_numbered(&q, 1).await;
                }
                let delivery = next(&consumer).await;
                assert_eq!((text(&delivery), delivery.count()), ("m1", 1), "{mode:?}, prefetch {prefetch}");
                delivery.acknowledge().await.unwrap();
            }
        }
    }
    assert_eq!(broker.counts(&q).pending, 0);
}

#[tokio::test]
async fn a_woken_receive_that_is_dropped_passes_the_word_on() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    for prefetch in [0, 10] {
        let consumer = session.create_consumer_with_prefetch(&q, prefetch).await.unwrap();
        let mut dropped = Box::pin(consumer.receive());
        let mut waiting = Box::pin(consumer.receive());
        poll_fn(|cx| {
            assert!(dropped.as_mut().poll(cx).is_pending());
            assert!(waiting.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        broker.send_numbered(&q, 1).await;
        drop(dropped);
        assert!(within(waiting).await.unwrap().is_some(), "prefetch {prefetch}");
    }
}

#[tokio::test]
async fn a_stream_gives_the_messages_in_order_and_ends_when_the_consumer_is_closed() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    broker.send_numbered(&q, 3).await;
    let mut stream = consumer.stream();
    for number in 1..=3 {
        let delivery = within(poll_fn(|cx| Pin::new(&mut stream).poll_next(cx))).await.unwrap().unwrap();
        assert_eq!(text(&delivery), format!("m{number}"));
    }
    let end = poll_fn(|cx| Pin::new(&mut stream).poll_next(cx));
    let (end, closed) = within(async { tokio::join!(end, consumer.close()) }).await;
    closed.unwrap();
    assert!(end.is_none());
}

#[tokio::test]
async fn a_stream_ends_after_a_close_between_two_items_and_after_an_error() {
    let broker = TestBroker::start();
    let session = broker.session(Auto).await;
    let closed = session.create_consumer(&queue("q")).await.unwrap();
    let lost = session.create_consumer(&queue("q")).await.unwrap();
    let (mut of_closed, mut of_lost) = (closed.stream(), lost.stream());
    closed.close().await.unwrap();
    for _ in 0..2 {
        assert!(within(poll_fn(|cx| Pin::new(&mut of_closed).poll_next(cx))).await.is_none());
    }
    broker.broker.stop();
    assert!(matches!(within(poll_fn(|cx| Pin::new(&mut of_lost).poll_next(cx))).await, Some(Err(_))));
    for _ in 0..2 {
        assert!(within(poll_fn(|cx| Pin::new(&mut of_lost).poll_next(cx))).await.is_none());
    }
}

#[tokio::test]
async fn a_stream_dropped_between_two_items_loses_nothing() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    for _ in 0..5 {
        let mut stream = consumer.stream();
        poll_fn(|cx| {
            assert!(Pin::new(&mut stream).poll_next(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        send_text(&session, &q, "m").await;
        drop(stream);
        assert_eq!(see(&consumer, 1).await, [first("m")]);
    }
}

#[tokio::test]
async fn messages_from_before_and_after_the_consumer_come_in_the_order_of_their_sends() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send(&q, ["m1", "m2"]).await;
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    broker.send(&q, ["m3", "m4"]).await;
    assert_eq!(see(&consumer, 4).await, firsts(1..=4));
}

#[tokio::test]
async fn every_subscriber_of_a_topic_gets_what_is_published_while_it_is_there() {
    let broker = TestBroker::start();
    let t = corriere_core::Destination::topic("t").unwrap();
    broker.send(&t, ["before"]).await;
    let (one, other) = (broker.session(Auto).await, broker.session(Client).await);
    let (one, other) = (one.create_consumer(&t).await.unwrap(), other.create_consumer(&t).await.unwrap());
    broker.send(&t, ["m1", "m2"]).await;
    assert_eq!(see(&one, 2).await, firsts(1..=2));
    one.close().await.unwrap();
    broker.send(&t, ["m3"]).await;
    assert_eq!(see(&other, 3).await, firsts(1..=3));
    other.session().acknowledge().await.unwrap();
    assert_eq!(broker.counts(&t).pending, 0);
}

#[tokio::test]
async fn a_received_message_has_what_was_sent_and_is_read_only() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let mut message = corriere_core::Message::text("body");
    message.set_property("table", 7).unwrap();
    message.headers_mut().correlation_id = Some("c".into());
    message.headers_mut().reply_to = Some(queue("answers"));
    message.headers_mut().message_type = Some("t".into());
    let id = session.send(&q, &message, &corriere_core::SendOptions::default()).await.unwrap();
    // What the sender does with its message afterwards is its own affair.
    message.set_property("table", 8).unwrap();

    let consumer = session.create_consumer(&q).await.unwrap();
    let received = next(&consumer).await;
    assert_eq!(received.headers().message_id, Some(id));
    assert_eq!(received.headers().destination, Some(q));
    assert_eq!(received.headers().timestamp, broker.clock.now());
    assert_eq!(received.headers().correlation_id.as_deref(), Some("c"));
    assert_eq!(received.headers().reply_to, Some(queue("answers")));
    assert_eq!(received.headers().message_type.as_deref(), Some("t"));
    assert_eq!(received.property::<i32>("table").unwrap(), Some(7));
    assert_eq!(received.property::<i32>("JMSXDeliveryCount").unwrap(), Some(1));
    assert!(received.into_message().set_property("table", 9).is_err());
}

#[tokio::test]
async fn the_prefetch_of_the_destination_goes_before_that_of_the_factory() {
    let broker = TestBroker::start();
    let q = queue("q?consumer.prefetchSize=2");
    broker.send_numbered(&q, 5).await;
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    assert_eq!(broker.counts(&q).in_flight, 2);
    consumer.close().await.unwrap();
    let consumer = session.create_consumer(&queue("q")).await.unwrap();
    assert_eq!(broker.counts(&q).in_flight, 5);
    consumer.close().await.unwrap();
    let consumer = session.create_consumer(&queue("q?consumer.prefetchSize=0")).await.unwrap();
    assert_eq!(broker.counts(&q).in_flight, 0);
    assert_eq!(see(&consumer, 1).await, [first("m1")]);
}
