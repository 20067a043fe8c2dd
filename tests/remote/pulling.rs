//! Consumers without a prefetch, which are sent a message only when they ask.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};

use crate::peer::{Peer, firsts, next, nth, see, send_text, text, within};

over_each_peer! {
    a_consumer_that_does_not_ask_takes_nothing_from_others,
    a_receive_that_does_not_wait_takes_one_and_no_more,
    receives_at_the_same_time_are_each_served,
    a_pull_is_served_whatever_is_unacknowledged,
    what_comes_when_a_receive_is_over_is_not_lost,
    what_was_pulled_and_given_back_comes_again,
}

async fn a_consumer_that_does_not_ask_takes_nothing_from_others(peer: &Peer) {
    let q = peer.queue("q");
    let (idle, busy) = (peer.session(Auto).await, peer.session(Auto).await);
    let idle = within(idle.create_consumer_with_prefetch(&q, 0)).await.unwrap();
    let busy = within(busy.create_consumer_with_prefetch(&q, 0)).await.unwrap();
    peer.send_numbered(&q, 3).await;
    assert_eq!(see(&busy, 3).await, firsts(1..=3));
    assert!(!idle.has_backlog());
}

async fn a_receive_that_does_not_wait_takes_one_and_no_more(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 20).await;
    let (one, other) = (peer.session(Auto).await, peer.session(Auto).await);
    let one = within(one.create_consumer_with_prefetch(&q, 0)).await.unwrap();
    let other = within(other.create_consumer_with_prefetch(&q, 0)).await.unwrap();
    for number in 1..=20 {
        let consumer = if number % 2 == 0 { &one } else { &other };
        let delivery = within(consumer.receive_no_wait()).await.unwrap().unwrap();
        assert_eq!(text(&delivery), format!("m{number}"));
        assert!(!consumer.has_backlog());
    }
    for consumer in [&one, &other] {
        assert!(within(consumer.receive_no_wait()).await.unwrap().is_none());
    }
}

async fn receives_at_the_same_time_are_each_served(peer: &Peer) {
    let q = peer.queue("q");
    let session = peer.session(Client).await;
    let consumer = within(session.create_consumer_with_prefetch(&q, 0)).await.unwrap();
    let receives = async { tokio::join!(next(&consumer), next(&consumer), next(&consumer)) };
    let (received, ()) = within(async { tokio::join!(receives, peer.send_numbered(&q, 5)) }).await;
    let mut texts = [text(&received.0), text(&received.1), text(&received.2)];
    texts.sort_unstable();
    assert_eq!(texts, ["m1", "m2", "m3"]);
    assert_eq!(peer.drain(&q, 2).await, firsts(4..=5));
}

async fn a_pull_is_served_whatever_is_unacknowledged(peer: &Peer) {
    for (mode, name) in [(Client, "client"), (Transacted, "transacted")] {
        let q = peer.queue(name);
        peer.send_numbered(&q, 50).await;
        let session = peer.session(mode).await;
        let consumer = within(session.create_consumer_with_prefetch(&q, 0)).await.unwrap();
        assert_eq!(see(&consumer, 50).await, firsts(1..=50));
    }
}

async fn what_comes_when_a_receive_is_over_is_not_lost(peer: &Peer) {
    let q = peer.queue("q");
    let session = peer.session(Auto).await;
    let consumer = within(session.create_consumer_with_prefetch(&q, 0)).await.unwrap();
    for number in 1..=20 {
        let mut receive = Box::pin(consumer.receive());
        let is_pending = poll_fn(|cx| Poll::Ready(receive.as_mut().poll(cx).is_pending())).await;
        assert!(is_pending);
        if number % 2 == 0 {
            drop(receive);
            peer.send_numbered(&q, 1).await;
        } else {
            peer.send_numbered(&q, 1).await;
            drop(receive);
        }
        let delivery = within(consumer.receive_timeout(Duration::from_secs(60))).await.unwrap().unwrap();
        assert_eq!((text(&delivery), delivery.count()), ("m1", 1));
    }
    assert!(within(consumer.receive_no_wait()).await.unwrap().is_none());
}

async fn what_was_pulled_and_given_back_comes_again(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 2).await;
    let session = peer.session(Client).await;
    let consumer = within(session.create_consumer_with_prefetch(&q, 0)).await.unwrap();
    for count in 1..=2 {
        assert_eq!(see(&consumer, 1).await, [nth("m1", count)]);
        within(session.recover()).await.unwrap();
    }
    assert_eq!(see(&consumer, 1).await, [nth("m1", 3)]);
    within(session.acknowledge()).await.unwrap();
    assert_eq!(see(&consumer, 1).await, firsts(2..=2));
}

/// So large that the broker has drained before the acceptor knows that it cannot be written.
const UNWRITABLE: usize = 10_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_receive_that_does_not_wait_gets_what_is_behind_a_message_that_cannot_be_written() {
    let (narrow, wide) = Peer::narrow_corriere().await;
    let sending = wide.session(Auto).await;
    let session = narrow.session(Auto).await;
    for round in 0..5 {
        let q = wide.queue(&format!("q{round}"));
        for body in [&"x".repeat(UNWRITABLE), "m1", "m2", "m3"] {
            send_text(&sending, &q, body).await;
        }
        let consumer = within(session.create_consumer_with_prefetch(&q, 0)).await.unwrap();
        for body in ["m1", "m2", "m3"] {
            let delivery = within(consumer.receive_no_wait()).await.unwrap().expect("it waits");
            assert_eq!(text(&delivery), body);
            assert!(!consumer.has_backlog());
        }
        assert!(within(consumer.receive_no_wait()).await.unwrap().is_none());
    }
}
