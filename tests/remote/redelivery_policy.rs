//! The redelivery policy of a connection's URL: how late and how often a message comes again.
//!
//! No time is measured: a delay that has to be over is short, and one that must not be over is an hour.

use std::time::Duration;

use corriere_core::AcknowledgeMode::{Client, Transacted};
use corriere_core::{AcknowledgeMode, Consumer, Session};

use crate::peer::{Peer, Seen, again, first, firsts, next, nth, see, take, within};

over_each_peer! {
    after_the_first_the_other_delay_counts,
    delays_grow_by_their_factor,
    delays_do_not_grow_beyond_their_maximum,
    without_a_limit_it_comes_again_and_again,
    a_rolled_back_transaction_waits_for_its_delay,
    without_blocking_each_failed_message_has_a_delay_of_its_own,
    without_blocking_a_rolled_back_transaction_lets_others_pass,
    a_delay_of_its_own_goes_before_the_policy,
}

/// A session's own connection has this policy.
async fn session_with(peer: &Peer, policy: &str, mode: AcknowledgeMode) -> Session {
    let options: Vec<String> =
        policy.split_whitespace().map(|option| format!("jms.redeliveryPolicy.{option}")).collect();
    within(peer.connect(&options.join("&")).await.create_session(mode)).await.unwrap()
}

/// Fails the next message, which must be this delivery of `m1`.
async fn fail_first(consumer: &Consumer, count: u32) {
    let delivery = take(consumer).await;
    assert_eq!(Seen::of(&delivery), nth("m1", count));
    within(delivery.release(again(None))).await.unwrap();
}

async fn is_waiting(consumer: &Consumer) -> bool {
    within(consumer.receive_no_wait()).await.unwrap().is_none()
}

async fn after_the_first_the_other_delay_counts(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 2).await;
    let session = session_with(peer, "initialRedeliveryDelay=1 redeliveryDelay=3600000", Client).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    fail_first(&consumer, 1).await;
    fail_first(&consumer, 2).await;
    assert!(is_waiting(&consumer).await);
}

async fn delays_grow_by_their_factor(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 2).await;
    let policy = "initialRedeliveryDelay=1 redeliveryDelay=1 backOffMultiplier=2000";
    let session = session_with(peer, policy, Client).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    // 1 ms, 2 s, and more than an hour.
    for count in 1..=3 {
        fail_first(&consumer, count).await;
    }
    assert!(is_waiting(&consumer).await);
}

async fn delays_do_not_grow_beyond_their_maximum(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 2).await;
    let policy = "initialRedeliveryDelay=1 backOffMultiplier=3600000 maximumRedeliveryDelay=2";
    let session = session_with(peer, policy, Client).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    for count in 1..=4 {
        fail_first(&consumer, count).await;
    }
    assert_eq!(see(&consumer, 2).await, [nth("m1", 5), first("m2")]);
    within(session.acknowledge()).await.unwrap();
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 0).await, []);
}

async fn without_a_limit_it_comes_again_and_again(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 2).await;
    let policy = "initialRedeliveryDelay=0 redeliveryDelay=0 maximumRedeliveries=-1";
    let session = session_with(peer, policy, Transacted).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    for count in 1..=30 {
        assert_eq!(see(&consumer, 1).await, [nth("m1", count)]);
        within(session.rollback()).await.unwrap();
    }
    assert_eq!(see(&consumer, 2).await, [nth("m1", 31), first("m2")]);
    within(session.commit()).await.unwrap();
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 0).await, []);
}

async fn a_rolled_back_transaction_waits_for_its_delay(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 3).await;
    let session = session_with(peer, "initialRedeliveryDelay=3600000", Transacted).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    assert_eq!(see(&consumer, 2).await, firsts(1..=2));
    within(session.rollback()).await.unwrap();
    assert!(is_waiting(&consumer).await, "what is behind them waits, too");
    // The transaction that follows has nothing to do with them.
    within(session.commit()).await.unwrap();
    assert!(is_waiting(&consumer).await);
}

async fn without_blocking_each_failed_message_has_a_delay_of_its_own(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 4).await;
    let options = "jms.nonBlockingRedelivery=true&jms.redeliveryPolicy.initialRedeliveryDelay=1\
                   &jms.redeliveryPolicy.redeliveryDelay=3600000";
    let session = within(peer.connect(options).await.create_session(Client)).await.unwrap();
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    let mut seen = Vec::new();
    // Each comes twice; the second time its delay is an hour.
    for _ in 0..8 {
        let delivery = take(&consumer).await;
        seen.push(Seen::of(&delivery));
        within(delivery.release(again(None))).await.unwrap();
    }
    seen.sort_by(|one, other| (one.count, &one.text).cmp(&(other.count, &other.text)));
    let mut expected = firsts(1..=4);
    expected.extend((1..=4).map(|number| nth(&format!("m{number}"), 2)));
    assert_eq!(seen, expected);
    assert!(is_waiting(&consumer).await);
    peer.send_numbered(&q, 1).await;
    assert_eq!(see(&consumer, 1).await, firsts(1..=1), "what comes new passes all of them");
}

async fn without_blocking_a_rolled_back_transaction_lets_others_pass(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 4).await;
    let options = "jms.nonBlockingRedelivery=true&jms.redeliveryPolicy.initialRedeliveryDelay=3600000";
    let session = within(peer.connect(options).await.create_session(Transacted)).await.unwrap();
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    assert_eq!(see(&consumer, 2).await, firsts(1..=2));
    within(session.rollback()).await.unwrap();
    assert_eq!(see(&consumer, 2).await, firsts(3..=4));
    within(session.commit()).await.unwrap();
    assert!(is_waiting(&consumer).await);
}

async fn a_delay_of_its_own_goes_before_the_policy(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 2).await;
    let session = session_with(peer, "initialRedeliveryDelay=3600000", Client).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    let delivery = take(&consumer).await;
    within(delivery.release(again(Some(Duration::from_millis(1))))).await.unwrap();
    let second = next(&consumer).await;
    assert_eq!(Seen::of(&second), nth("m1", 2));
    within(second.acknowledge()).await.unwrap();
    assert_eq!(see(&consumer, 1).await, firsts(2..=2));
}
