//! Transactions: what is sent and received in one takes effect together, or not at all.

use corriere_core::AcknowledgeMode::{Auto, Transacted};
use corriere_core::{DeliveryMode, Error, Message, SendOptions};

use crate::peer::{Peer, firsts, nth, see, send_text, within};

over_each_peer! {
    a_commit_settles_and_sends,
    a_rollback_gives_back_in_order_and_sends_nothing,
    a_transaction_that_is_not_committed_ends_with_its_session,
    a_consumer_that_is_closed_leaves_what_it_received_to_the_transaction,
    transactions_follow_each_other_without_waiting,
    a_send_that_fails_makes_the_commit_a_rollback,
    a_reply_within_a_transaction_to_who_is_gone_is_the_peers_to_judge,
}

async fn a_commit_settles_and_sends(peer: &Peer) {
    let (q, out) = (peer.queue("q"), peer.queue("out"));
    peer.send_numbered(&q, 3).await;
    let session = peer.session(Transacted).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    assert_eq!(see(&consumer, 2).await, firsts(1..=2));
    send_text(&session, &out, "m1").await;
    let options = SendOptions { delivery_mode: Some(DeliveryMode::NonPersistent), ..SendOptions::default() };
    within(session.send(&out, &Message::text("m2"), &options)).await.unwrap();
    assert_eq!(peer.drain(&out, 0).await, [], "not before the commit");
    within(session.commit()).await.unwrap();
    assert_eq!(peer.drain(&out, 2).await, firsts(1..=2));
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 1).await, firsts(3..=3));
}

async fn a_rollback_gives_back_in_order_and_sends_nothing(peer: &Peer) {
    let (q, out) = (peer.queue("q"), peer.queue("out"));
    peer.send_numbered(&q, 5).await;
    let session = peer.session(Transacted).await;
    let consumer = within(session.create_consumer_with_prefetch(&q, 3)).await.unwrap();
    assert_eq!(see(&consumer, 2).await, firsts(1..=2));
    send_text(&session, &out, "m1").await;
    within(session.rollback()).await.unwrap();
    let mut expected = vec![nth("m1", 2), nth("m2", 2)];
    expected.extend(firsts(3..=5));
    assert_eq!(see(&consumer, 5).await, expected);
    within(session.commit()).await.unwrap();
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 0).await, []);
    assert_eq!(peer.drain(&out, 0).await, []);
}

async fn a_transaction_that_is_not_committed_ends_with_its_session(peer: &Peer) {
    let (q, out) = (peer.queue("q"), peer.queue("out"));
    peer.send_numbered(&q, 3).await;
    let session = peer.session(Transacted).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    see(&consumer, 2).await;
    send_text(&session, &out, "m1").await;
    within(session.close()).await.unwrap();
    let mut expected = vec![nth("m1", 2), nth("m2", 2)];
    expected.extend(firsts(3..=3));
    let mut came = peer.drain(&q, 3).await;
    // Each at its own moment, where the peer has a delay.
    came.sort_by(|one, other| one.text.cmp(&other.text));
    assert_eq!(came, expected);
    assert_eq!(peer.drain(&out, 0).await, []);
}

async fn a_consumer_that_is_closed_leaves_what_it_received_to_the_transaction(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 4).await;
    let session = peer.session(Transacted).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    assert_eq!(see(&consumer, 2).await, firsts(1..=2));
    within(consumer.close()).await.unwrap();
    within(session.commit()).await.unwrap();
    assert_eq!(peer.drain(&q, 2).await, firsts(3..=4));
}

async fn transactions_follow_each_other_without_waiting(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 30).await;
    let session = peer.session(Transacted).await;
    let consumer = within(session.create_consumer_with_prefetch(&q, 3)).await.unwrap();
    for begin in (1..=30).step_by(2) {
        assert_eq!(see(&consumer, 2).await, firsts(begin..=begin + 1));
        if begin % 3 == 0 {
            within(session.rollback()).await.unwrap();
            let again = [nth(&format!("m{begin}"), 2), nth(&format!("m{}", begin + 1), 2)];
            assert_eq!(see(&consumer, 2).await, again);
        }
        within(session.commit()).await.unwrap();
    }
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 0).await, []);
}

async fn a_send_that_fails_makes_the_commit_a_rollback(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 1).await;
    let session = peer.session(Transacted).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    see(&consumer, 1).await;
    // Dropped before it is known to have been sent.
    let (message, options) = (Message::text("m2"), SendOptions::default());
    let mut send = Box::pin(session.send(&q, &message, &options));
    let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(send.as_mut().poll(cx))).await;
    drop(send);
    if polled.is_pending() {
        let error = within(session.commit()).await.unwrap_err();
        assert!(matches!(error, Error::TransactionRolledBack { .. }), "{error}");
        assert_eq!(see(&consumer, 1).await, [nth("m1", 2)]);
    }
    within(session.commit()).await.unwrap();
}

async fn a_reply_within_a_transaction_to_who_is_gone_is_the_peers_to_judge(peer: &Peer) {
    let (q, out) = (peer.queue("q"), peer.queue("out"));
    peer.send_numbered(&q, 1).await;
    let owner = peer.session(Auto).await;
    let gone = within(owner.create_temporary_queue()).await.unwrap();
    within(gone.delete()).await.unwrap();
    let session = peer.session(Transacted).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    see(&consumer, 1).await;
    send_text(&session, &out, "m1").await;
    let sent = within(session.send(&gone, &Message::text("m2"), &SendOptions::default())).await;
    // Over a wire nobody waits for its answer, so it seems to go well.
    assert_eq!(sent.is_err(), peer.is_here());
    let committed = within(session.commit()).await;
    if peer.is_ours() {
        committed.unwrap();
        assert_eq!(peer.drain(&out, 1).await, firsts(1..=1), "nobody could get it, and the rest is whole");
        return;
    }
    let error = committed.unwrap_err();
    assert!(matches!(error, Error::TransactionRolledBack { .. }), "{error}");
    assert_eq!(see(&consumer, 1).await, [nth("m1", 2)]);
    within(session.commit()).await.unwrap();
    assert_eq!(peer.drain(&out, 0).await, []);
}
