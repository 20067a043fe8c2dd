//! What was given back: how often, when and in which order it comes again.

use std::time::Duration;

use corriere_core::AcknowledgeMode::{Auto, Client};
use corriere_core::provider::{Cause, CauseKind};
use corriere_core::{Connection, Release, Session};

use crate::peer::{AT_ONCE, Peer, Seen, again, first, firsts, nth, see, send_text, take, within};

over_each_peer! {
    a_failed_message_comes_again_before_all_that_is_behind_it,
    a_delay_holds_up_its_consumer_and_nobody_else,
    without_blocking_what_is_behind_goes_ahead,
    a_delay_that_is_over_ends,
    the_first_failed_conversion_is_not_counted,
    a_message_that_failed_keeps_its_place_when_a_later_one_fails_first,
}

const HOUR: Duration = Duration::from_secs(3_600);

async fn session_with(
    peer: &Peer,
    options: &str,
    mode: corriere_core::AcknowledgeMode,
) -> (Connection, Session) {
    let connection = peer.connect(options).await;
    let session = within(connection.create_session(mode)).await.unwrap();
    (connection, session)
}

async fn a_failed_message_comes_again_before_all_that_is_behind_it(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 30).await;
    let session = peer.session(Client).await;
    let consumer = within(session.create_consumer_with_prefetch(&q, 10)).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 60 {
        let delivery = take(&consumer).await;
        seen.push(Seen::of(&delivery));
        if delivery.count() == 1 {
            within(delivery.release(again(None))).await.unwrap();
        } else {
            within(delivery.acknowledge()).await.unwrap();
        }
    }
    let expected: Vec<Seen> =
        (1..=30).flat_map(|number| [1, 2].map(|count| nth(&format!("m{number}"), count))).collect();
    assert_eq!(seen, expected);
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 0).await, []);
}

async fn a_delay_holds_up_its_consumer_and_nobody_else(peer: &Peer) {
    let q = peer.queue("q");
    let session = peer.session(Client).await;
    // With a window it would have more than that one of a peer whose clients redeliver.
    let failing = within(session.create_consumer_with_prefetch(&q, 0)).await.unwrap();
    peer.send_numbered(&q, 1).await;
    within(take(&failing).await.release(again(Some(HOUR)))).await.unwrap();
    peer.send_numbered(&q, 2).await;
    let other = peer.session(Auto).await;
    let other = within(other.create_consumer_with_prefetch(&q, 0)).await.unwrap();
    assert_eq!(see(&other, 2).await, firsts(1..=2));
    assert!(within(failing.receive_no_wait()).await.unwrap().is_none());
    within(session.close()).await.unwrap();
    if peer.is_ours() {
        assert!(within(other.receive_no_wait()).await.unwrap().is_none(), "the delay stays");
    } else {
        assert_eq!(see(&other, 1).await, [nth("m1", 2)], "the delay was its client's, who is gone");
    }
}

async fn without_blocking_what_is_behind_goes_ahead(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 3).await;
    let options = format!("{AT_ONCE}&jms.nonBlockingRedelivery=true");
    let (_connection, session) = session_with(peer, &options, Client).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    within(take(&consumer).await.release(again(Some(HOUR)))).await.unwrap();
    assert_eq!(see(&consumer, 2).await, firsts(2..=3));
    assert!(within(consumer.receive_no_wait()).await.unwrap().is_none());
}

async fn a_delay_that_is_over_ends(peer: &Peer) {
    for non_blocking in [false, true] {
        let q = peer.queue(&format!("q{non_blocking}"));
        peer.send_numbered(&q, 3).await;
        let options = format!(
            "jms.nonBlockingRedelivery={non_blocking}&jms.redeliveryPolicy.initialRedeliveryDelay=30"
        );
        let (_connection, session) = session_with(peer, &options, Client).await;
        let consumer = within(session.create_consumer(&q)).await.unwrap();
        within(take(&consumer).await.release(again(None))).await.unwrap();
        let mut seen = see(&consumer, 3).await;
        if non_blocking {
            seen.sort_by(|one, other| one.text.cmp(&other.text));
        }
        assert_eq!(seen, [nth("m1", 2), first("m2"), first("m3")]);
    }
}

async fn the_first_failed_conversion_is_not_counted(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 2).await;
    let session = peer.session(Auto).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    for count in [1, 1, 2, 3] {
        let delivery = within(consumer.take()).await.unwrap().unwrap();
        assert_eq!(Seen::of(&delivery), nth("m1", count));
        let cause = Cause { kind: CauseKind::Conversion, text: "no number".into(), listener: None };
        within(delivery.release(Release::Redeliver { delay: None, cause })).await.unwrap();
    }
    assert_eq!(see(&consumer, 1).await, firsts(2..=2));
}

async fn a_message_that_failed_keeps_its_place_when_a_later_one_fails_first(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 4).await;
    let session = peer.session(Client).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    let (one, two) = (take(&consumer).await, take(&consumer).await);
    within(two.release(again(None))).await.unwrap();
    within(one.release(again(None))).await.unwrap();
    assert_eq!(see(&consumer, 4).await, [nth("m1", 2), nth("m2", 2), first("m3"), first("m4")]);
    within(session.acknowledge()).await.unwrap();
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 0).await, []);
}

#[tokio::test]
async fn what_the_wire_has_no_room_for_counts_for_nothing_that_is_buffered_before_it() {
    let (narrow, wide) = Peer::narrow_corriere().await;
    let q = wide.queue("q");
    let sending = wide.session(Auto).await;
    let large = "x".repeat(100_000);
    for body in ["m1", "m2", &large, "m4"] {
        send_text(&sending, &q, body).await;
    }
    let session = narrow.session(Client).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    assert_eq!(see(&consumer, 1).await, firsts(1..=1));
    assert_eq!(wide.drain(&wide.dead_letters_of(&q), 1).await, [first(&large)]);
    // What is behind it is with the client, which drops it now and waits for it in the next epoch.
    within(session.recover()).await.unwrap();
    assert_eq!(see(&consumer, 3).await, [nth("m1", 2), first("m2"), first("m4")]);
}
