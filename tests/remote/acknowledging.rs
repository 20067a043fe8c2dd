//! The modes of a session.

use corriere_core::AcknowledgeMode::{Auto, Client, DupsOk, Individual, Transacted};
use corriere_core::Error;
use corriere_core::provider::Capability;

use crate::peer::{AT_ONCE, Peer, Seen, first, firsts, next, nth, see, within};

over_each_peer! {
    auto_settles_what_is_received,
    client_settles_all_that_the_session_received,
    what_is_recovered_comes_again_counted_and_in_order,
    individual_settles_one,
    dups_ok_settles,
    a_topic_goes_on_in_each_mode_beyond_its_window,
    what_is_put_off_is_settled_in_the_end,
    a_transaction_by_single_acknowledgements_is_one,
}

async fn auto_settles_what_is_received(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 3).await;
    let session = peer.session(Auto).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    assert_eq!(see(&consumer, 2).await, firsts(1..=2));
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 1).await, firsts(3..=3));
}

async fn client_settles_all_that_the_session_received(peer: &Peer) {
    let (q, other) = (peer.queue("q"), peer.queue("other"));
    peer.send_numbered(&q, 5).await;
    peer.send_numbered(&other, 2).await;
    let session = peer.session(Client).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    let other_consumer = within(session.create_consumer(&other)).await.unwrap();
    see(&consumer, 2).await;
    see(&other_consumer, 1).await;
    let third = next(&consumer).await;
    within(third.acknowledge()).await.unwrap();
    assert!(third.is_settled());
    assert_eq!(see(&consumer, 1).await, firsts(4..=4));
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 2).await, [nth("m4", 2), first("m5")]);
    assert_eq!(peer.drain(&other, 1).await, firsts(2..=2));
}

async fn what_is_recovered_comes_again_counted_and_in_order(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 6).await;
    let session = peer.session(Client).await;
    let consumer = within(session.create_consumer_with_prefetch(&q, 4)).await.unwrap();
    assert_eq!(see(&consumer, 3).await, firsts(1..=3));
    within(session.recover()).await.unwrap();
    assert_eq!(see(&consumer, 4).await, [nth("m1", 2), nth("m2", 2), nth("m3", 2), first("m4")]);
    within(session.acknowledge()).await.unwrap();
    assert_eq!(see(&consumer, 2).await, firsts(5..=6));
    within(session.acknowledge()).await.unwrap();
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 0).await, []);
}

async fn individual_settles_one(peer: &Peer) {
    let connection = peer.connect(AT_ONCE).await;
    let session = within(connection.create_session(Individual)).await;
    if !connection.capabilities().has(Capability::IndividualAcknowledge) {
        assert_eq!(session.unwrap_err(), Error::Unsupported(Capability::IndividualAcknowledge));
        return;
    }
    let session = session.unwrap();
    let q = peer.queue("q");
    peer.send_numbered(&q, 4).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(next(&consumer).await);
    }
    within(held[1].acknowledge()).await.unwrap();
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 3).await, [nth("m1", 2), nth("m3", 2), first("m4")]);
}

async fn dups_ok_settles(peer: &Peer) {
    let connection = peer.connect(AT_ONCE).await;
    let session = within(connection.create_session(DupsOk)).await;
    if !connection.capabilities().has(Capability::DupsOkAcknowledge) {
        assert_eq!(session.unwrap_err(), Error::Unsupported(Capability::DupsOkAcknowledge));
        return;
    }
    let session = session.unwrap();
    let q = peer.queue("q");
    peer.send_numbered(&q, 3).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    assert_eq!(see(&consumer, 3).await, firsts(1..=3));
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 0).await, []);
}

/// With a window of four, what is settled late, or said to be in hands, has to make room in time.
async fn a_topic_goes_on_in_each_mode_beyond_its_window(peer: &Peer) {
    let prices = peer.topic("prices");
    for mode in [Auto, Client, DupsOk, Individual, Transacted] {
        let session = peer.session(mode).await;
        let consumer = within(session.create_consumer_with_prefetch(&prices, 4)).await.unwrap();
        peer.send_numbered(&prices, 40).await;
        for number in 1..=40 {
            let delivery = next(&consumer).await;
            assert_eq!(Seen::of(&delivery), first(&format!("m{number}")), "{mode:?}");
            match mode {
                Individual => within(delivery.acknowledge()).await.unwrap(),
                Client if number % 2 == 0 => within(delivery.acknowledge()).await.unwrap(),
                Transacted if number % 10 == 0 => within(session.commit()).await.unwrap(),
                _ => {}
            }
        }
        within(session.close()).await.unwrap();
    }
}

async fn what_is_put_off_is_settled_in_the_end(peer: &Peer) {
    for (mode, name) in [(Auto, "auto"), (DupsOk, "dups_ok")] {
        let q = peer.queue(name);
        peer.send_numbered(&q, 100).await;
        let connection = peer.connect(&format!("{AT_ONCE}&jms.optimizeAcknowledge=true")).await;
        let session = within(connection.create_session(mode)).await.unwrap();
        let consumer = within(session.create_consumer_with_prefetch(&q, 20)).await.unwrap();
        assert_eq!(see(&consumer, 90).await, firsts(1..=90));
        within(connection.close()).await.unwrap();
        assert_eq!(peer.drain(&q, 10).await, firsts(91..=100), "{mode:?}");
    }
}

async fn a_transaction_by_single_acknowledgements_is_one(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 6).await;
    let options = format!("{AT_ONCE}&jms.nonBlockingRedelivery=true");
    let connection = peer.connect(&options).await;
    let session = within(connection.create_session(Transacted)).await.unwrap();
    let consumer = within(session.create_consumer_with_prefetch(&q, 3)).await.unwrap();
    assert_eq!(see(&consumer, 4).await, firsts(1..=4));
    within(session.rollback()).await.unwrap();
    let mut seen = see(&consumer, 6).await;
    seen.sort_by(|one, other| one.text.cmp(&other.text));
    assert_eq!(seen, [nth("m1", 2), nth("m2", 2), nth("m3", 2), nth("m4", 2), first("m5"), first("m6")]);
    within(session.commit()).await.unwrap();
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 0).await, []);
}
