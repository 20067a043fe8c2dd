//! Consumers with a prefetch of 0, which are sent a message only when they ask.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::provider::Cause;
use corriere_core::{Message, Release, SendOptions};

use crate::support::{
    TestBroker, first, firsts, next, now, nth, others_run, queue, see, send_text, text, within,
};

/// Polls futures once, which must all be pending.
macro_rules! begin {
    ($($future:ident),+) => {
        poll_fn(|cx| {
            $(assert!($future.as_mut().poll(cx).is_pending());)+
            Poll::Ready(())
        })
        .await
    };
}

#[tokio::test]
async fn a_consumer_that_does_not_ask_takes_nothing_from_others() {
    let broker = TestBroker::start();
    let q = queue("q");
    let (idle, busy) = (broker.session(Auto).await, broker.session(Auto).await);
    let idle = idle.create_consumer_with_prefetch(&q, 0).await.unwrap();
    let busy = busy.create_consumer_with_prefetch(&q, 0).await.unwrap();
    broker.send_numbered(&q, 3).await;
    assert_eq!(broker.counts(&q).in_flight, 0);
    assert_eq!(see(&busy, 3).await, firsts(1..=3));
    assert!(!idle.has_backlog());
}

#[tokio::test]
async fn receives_at_the_same_time_are_sent_as_many_messages_and_no_more() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Client).await;
    let consumer = session.create_consumer_with_prefetch(&q, 0).await.unwrap();
    let receives = async { tokio::join!(next(&consumer), next(&consumer), next(&consumer)) };
    let send = async {
        others_run().await;
        broker.send_numbered(&q, 5).await;
    };
    within(async { tokio::join!(receives, send) }).await;
    assert_eq!(broker.counts(&q).in_flight, 3);
    assert!(!consumer.has_backlog());
    assert_eq!(broker.drain(&q).await, firsts(4..=5));
}

#[tokio::test]
async fn a_pull_is_served_whatever_is_unacknowledged() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 50).await;
    for mode in [Client, Transacted] {
        let session = broker.session(mode).await;
        let consumer = session.create_consumer_with_prefetch(&q, 0).await.unwrap();
        see(&consumer, 50).await;
    }
}

#[tokio::test]
async fn a_dropped_receive_takes_its_credit_back() {
    let broker = TestBroker::start();
    let q = queue("q");
    let (session, other) = (broker.session(Auto).await, broker.session(Auto).await);
    let consumer = session.create_consumer_with_prefetch(&q, 0).await.unwrap();
    let other = other.create_consumer_with_prefetch(&q, 0).await.unwrap();
    for _ in 0..10 {
        let mut receive = Box::pin(consumer.receive());
        begin!(receive);
        drop(receive);
        broker.send_numbered(&q, 1).await;
        assert!(!consumer.has_backlog(), "it asks for nothing any more");
        assert_eq!(see(&other, 1).await, [first("m1")]);
    }
}

#[tokio::test]
async fn a_receive_that_ends_takes_no_credit_from_those_that_wait() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer_with_prefetch(&q, 0).await.unwrap();
    let mut waiting = Box::pin(consumer.receive());
    let mut dropped = Box::pin(consumer.receive());
    let mut timed = Box::pin(consumer.receive_timeout(Duration::from_secs(1)));
    begin!(waiting, dropped, timed);
    drop(dropped);
    broker.clock.advance(Duration::from_secs(1));
    assert!(within(timed).await.unwrap().is_none());
    assert_eq!(now(&consumer).await, None);
    broker.send_numbered(&q, 2).await;
    assert_eq!(text(&within(waiting).await.unwrap().unwrap()), "m1");
    assert!(!consumer.has_backlog(), "the credit of those that ended is gone");
    assert_eq!(broker.drain(&q).await, [first("m2")]);
}

#[tokio::test]
async fn a_message_on_its_way_to_a_dropped_receive_goes_to_the_next_one() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer_with_prefetch(&q, 0).await.unwrap();
    let mut receive = Box::pin(consumer.receive());
    begin!(receive);
    broker.send_numbered(&q, 3).await;
    drop(receive);
    assert_eq!(broker.counts(&q).in_flight, 1);
    assert_eq!(see(&consumer, 1).await, [first("m1")]);
    assert_eq!(broker.counts(&q).in_flight, 0, "one message was asked for twice, and sent once");
    assert_eq!(see(&consumer, 2).await, firsts(2..=3));
}

#[tokio::test]
async fn a_message_that_expires_on_its_way_does_not_use_up_the_receive() {
    let broker = TestBroker::start();
    let q = queue("q");
    // A client whose clock is ahead finds messages expired that the broker does not.
    let ahead = corriere_core::Clock::manual(broker.clock.now().saturating_add(Duration::from_secs(30)));
    let connection = broker.factory("").with_clock(ahead).create_connection().await.unwrap();
    connection.start().unwrap();
    let session = connection.create_session(Auto).await.unwrap();
    let consumer = session.create_consumer_with_prefetch(&q, 0).await.unwrap();
    let sender = broker.session(Auto).await;
    let short = SendOptions { time_to_live: Some(Duration::from_secs(10)), ..SendOptions::default() };
    let receive = async {
        let delivery = next(&consumer).await;
        text(&delivery).to_owned()
    };
    let send = async {
        others_run().await;
        for _ in 0..3 {
            sender.send(&q, &Message::text("short"), &short).await.unwrap();
        }
        send_text(&sender, &q, "long").await;
    };
    let (received, ()) = within(async { tokio::join!(receive, send) }).await;
    assert_eq!(received, "long");
    assert_eq!((broker.counts(&q).expired, broker.counts(&q).pending), (3, 0));
    // And one that does not wait looks behind them as well.
    sender.send(&q, &Message::text("short"), &short).await.unwrap();
    send_text(&sender, &q, "long").await;
    assert_eq!(now(&consumer).await.as_deref(), Some("long"));
}

#[tokio::test]
async fn a_stopped_connection_pulls_nothing() {
    let broker = TestBroker::start();
    let q = queue("q");
    let connection = broker.factory("").create_connection().await.unwrap();
    let session = connection.create_session(Auto).await.unwrap();
    let consumer = session.create_consumer_with_prefetch(&q, 0).await.unwrap();
    broker.send_numbered(&q, 2).await;
    assert_eq!(now(&consumer).await, None);
    let mut receive = Box::pin(consumer.receive());
    begin!(receive);
    assert_eq!(broker.counts(&q).in_flight, 0, "others may have what nobody here can receive");
    connection.start().unwrap();
    assert_eq!(text(&within(receive).await.unwrap().unwrap()), "m1");
}

#[tokio::test]
async fn what_is_given_back_is_pulled_again_before_the_rest() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 3).await;
    let session = broker.session(Transacted).await;
    let consumer = session.create_consumer_with_prefetch(&q, 0).await.unwrap();
    for count in 1..=2 {
        assert_eq!(see(&consumer, 2).await, [nth("m1", count), nth("m2", count)]);
        session.rollback().await.unwrap();
    }
    assert_eq!(see(&consumer, 3).await, [nth("m1", 3), nth("m2", 3), first("m3")]);
    session.commit().await.unwrap();
    assert_eq!(broker.counts(&q).acknowledged, 3);
}

#[tokio::test]
async fn a_message_that_is_buffered_while_another_is_given_back_comes_once() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer_with_prefetch(&q, 0).await.unwrap();
    broker.send_numbered(&q, 1).await;
    let delivery = within(consumer.take()).await.unwrap().unwrap();
    let mut receive = Box::pin(consumer.receive());
    begin!(receive);
    send_text(&session, &q, "m2").await;
    drop(receive);
    assert!(consumer.has_backlog());
    let cause = Cause::failure("again");
    delivery.release(Release::Redeliver { delay: None, cause }).await.unwrap();
    assert_eq!(see(&consumer, 2).await, [nth("m1", 2), first("m2")]);
    assert_eq!((broker.counts(&q).acknowledged, broker.counts(&q).pending), (2, 0));
}

#[tokio::test]
async fn closing_ends_a_pull_that_waits() {
    let broker = TestBroker::start();
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer_with_prefetch(&queue("q"), 0).await.unwrap();
    let close = async {
        others_run().await;
        consumer.close().await.unwrap();
    };
    let (received, ()) = within(async { tokio::join!(consumer.receive(), close) }).await;
    assert!(received.unwrap().is_none());
}
