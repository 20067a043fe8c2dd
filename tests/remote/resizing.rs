//! The window of a consumer, changed while it is used.

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};

use crate::peer::{Peer, eventually, firsts, see, within};

over_each_peer! {
    a_wider_window_brings_more,
    a_smaller_window_loses_nothing,
}

async fn a_wider_window_brings_more(peer: &Peer) {
    for (mode, name) in [(Auto, "auto"), (Client, "client"), (Transacted, "transacted")] {
        let q = peer.queue(name);
        let session = peer.session(mode).await;
        let idle = within(session.create_consumer_with_prefetch(&q, 1)).await.unwrap();
        peer.send_numbered(&q, 5).await;
        within(idle.set_prefetch(5)).await.unwrap();
        assert_eq!(idle.prefetch(), 5);
        // Once it has all of them, nobody else gets one.
        let other = peer.session(Auto).await;
        let other = within(other.create_consumer_with_prefetch(&q, 0)).await.unwrap();
        if peer.is_ours() {
            assert!(within(other.receive_no_wait()).await.unwrap().is_none(), "{mode:?}");
        }
        assert_eq!(see(&idle, 5).await, firsts(1..=5));
        within(session.close()).await.unwrap();
    }
}

async fn a_smaller_window_loses_nothing(peer: &Peer) {
    let q = peer.queue("q");
    let session = peer.session(Auto).await;
    let consumer = within(session.create_consumer_with_prefetch(&q, 10)).await.unwrap();
    peer.send_numbered(&q, 30).await;
    eventually("a backlog", || if consumer.has_backlog() { Ok(()) } else { Err("none".to_owned()) }).await;
    within(consumer.set_prefetch(2)).await.unwrap();
    assert_eq!(see(&consumer, 20).await, firsts(1..=20));
    within(consumer.set_prefetch(7)).await.unwrap();
    assert_eq!(see(&consumer, 10).await, firsts(21..=30));
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 0).await, []);
}
