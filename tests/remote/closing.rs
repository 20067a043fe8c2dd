//! What a consumer, a session or a connection leaves when it is closed, or dropped.

use corriere_core::AcknowledgeMode::{Client, Transacted};
use corriere_core::Error;
use corriere_core::provider::Command;

use crate::peer::{AT_ONCE, Peer, first, firsts, next, nth, see, send_text, within};

over_each_peer! {
    what_only_sat_in_a_buffer_returns_uncounted,
    what_was_handed_over_returns_counted,
    what_a_closed_consumer_handed_over_is_still_the_sessions_to_settle,
    a_dropped_connection_returns_what_it_had,
    what_is_closed_says_so,
    of_a_client_that_vanishes_what_it_was_handed_counts,
}

async fn what_only_sat_in_a_buffer_returns_uncounted(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 10).await;
    let session = peer.session(Client).await;
    let consumer = within(session.create_consumer_with_prefetch(&q, 10)).await.unwrap();
    let received = next(&consumer).await;
    within(received.acknowledge()).await.unwrap();
    within(consumer.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 9).await, firsts(2..=10));
}

async fn what_was_handed_over_returns_counted(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 4).await;
    let session = peer.session(Client).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(next(&consumer).await.into_single());
    }
    within(held[2].acknowledge()).await.unwrap();
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 3).await, [nth("m1", 2), nth("m2", 2), first("m4")]);
}

async fn what_a_closed_consumer_handed_over_is_still_the_sessions_to_settle(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 4).await;
    let session = peer.session(Client).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    see(&consumer, 2).await;
    within(consumer.close()).await.unwrap();
    within(session.acknowledge()).await.unwrap();
    assert_eq!(peer.drain(&q, 2).await, firsts(3..=4));

    let consumer = within(session.create_consumer(&q)).await.unwrap();
    send_text(&session, &q, "m1").await;
    see(&consumer, 1).await;
    within(consumer.close()).await.unwrap();
    within(session.recover()).await.unwrap();
    assert_eq!(peer.drain(&q, 1).await, [nth("m1", 2)]);
}

async fn a_dropped_connection_returns_what_it_had(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 3).await;
    let session = peer.session(Transacted).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    see(&consumer, 1).await;
    // With the last handle everything goes.
    drop((session, consumer));
    let mut came = peer.drain(&q, 3).await;
    came.sort_by(|one, other| one.text.cmp(&other.text));
    assert_eq!(came, [nth("m1", 2), first("m2"), first("m3")]);
}

async fn what_is_closed_says_so(peer: &Peer) {
    let q = peer.queue("q");
    let connection = peer.connect(AT_ONCE).await;
    let session = within(connection.create_session(Client)).await.unwrap();
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    let producer = within(session.create_producer(Some(&q))).await.unwrap();
    let waiting = async { within(consumer.receive()).await.unwrap().is_none() };
    let closing = async { within(connection.close()).await.unwrap() };
    assert!(tokio::join!(waiting, closing).0, "a receive ends with its connection");
    assert!(matches!(within(consumer.receive()).await, Err(Error::IllegalState { .. })));
    let sent = within(producer.send(&corriere_core::Message::text("m"))).await;
    assert!(matches!(sent, Err(Error::IllegalState { .. })));
    within(session.close()).await.unwrap();
    within(connection.close()).await.unwrap();
}

async fn of_a_client_that_vanishes_what_it_was_handed_counts(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 3).await;
    let vanishing = crate::seam::Client::connect(peer).await;
    within(vanishing.consume(1, &q)).await.unwrap();
    vanishing.texts(3).await;
    let subscription = corriere_core::id::SubscriptionId(1);
    vanishing.ask(Command::HandedOver { subscription, number: 1, mark: None }).await.unwrap();
    // What was submitted is with the peer when a later command is confirmed.
    vanishing.ask(Command::Drain { subscription }).await.unwrap();
    drop(vanishing);
    let mut came = peer.drain(&q, 3).await;
    came.sort_by(|one, other| one.text.cmp(&other.text));
    if peer.is_ours() {
        assert_eq!(came, [nth("m1", 2), first("m2"), first("m3")]);
    } else {
        assert_eq!(came, [nth("m1", 2), nth("m2", 2), nth("m3", 2)], "it cannot tell them apart");
    }
}
