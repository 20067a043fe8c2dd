//! Transactions: what is sent and received in one takes effect together, or not at all.

use corriere_core::AcknowledgeMode::{Auto, Transacted};
use corriere_core::{DeliveryMode, Destination, Error, Message, SendOptions};

use crate::peer::{Peer, Seen, first, firsts, nth, see, send_text, text, within};

over_each_peer! {
    a_commit_settles_and_sends,
    a_rollback_gives_back_in_order_and_sends_nothing,
    a_transaction_that_is_not_committed_ends_with_its_session,
    a_consumer_that_is_closed_leaves_what_it_received_to_the_transaction,
    transactions_follow_each_other_without_waiting,
    a_send_that_fails_makes_the_commit_a_rollback,
    a_reply_within_a_transaction_to_who_is_gone_is_the_peers_to_judge,
    what_is_rolled_back_too_often_is_a_dead_letter,
    each_message_of_a_transaction_has_a_limit_of_its_own,
    a_transaction_over_several_destinations_is_one,
    a_rollback_gives_back_what_a_closed_consumer_received,
    what_a_closed_consumer_failed_with_reaches_the_limit_all_the_same,
    a_transaction_larger_than_the_window_is_rolled_back_whole,
    a_consumer_of_a_topic_that_is_closed_leaves_the_transaction_whole,
    a_session_that_is_closed_gives_back_what_its_closed_consumers_received,
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

/// The texts of so many dead letters of a queue; each says why.
async fn dead_letters(peer: &Peer, of: &Destination, count: usize) -> Vec<String> {
    let letters = peer.dead_letters(of, count).await;
    for letter in &letters {
        let cause = letter.property::<String>("dlqDeliveryFailureCause").unwrap().unwrap();
        assert!(cause.contains("the transaction was rolled back"), "{cause}");
    }
    letters.iter().map(|letter| text(letter).to_owned()).collect()
}

/// Deliveries of this number of `m<from>` to `m<to>`.
fn nths(numbers: std::ops::RangeInclusive<usize>, count: u32) -> Vec<Seen> {
    numbers.map(|number| nth(&format!("m{number}"), count)).collect()
}

async fn what_is_rolled_back_too_often_is_a_dead_letter(peer: &Peer) {
    let (q, out) = (peer.queue("q"), peer.queue("out"));
    peer.send_numbered(&q, 4).await;
    let session = peer.session(Transacted).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    for count in 1..=3 {
        assert_eq!(see(&consumer, 3).await, nths(1..=3, count));
        send_text(&session, &out, "m1").await;
        within(session.rollback()).await.unwrap();
    }
    assert_eq!(see(&consumer, 1).await, firsts(4..=4));
    within(session.commit()).await.unwrap();
    within(session.close()).await.unwrap();
    assert_eq!(dead_letters(peer, &q, 3).await, ["m1", "m2", "m3"]);
    assert_eq!(peer.drain(&q, 0).await, []);
    assert_eq!(peer.drain(&out, 0).await, []);
}

async fn each_message_of_a_transaction_has_a_limit_of_its_own(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 3).await;
    let session = peer.session(Transacted).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    assert_eq!(see(&consumer, 1).await, firsts(1..=1));
    within(session.rollback()).await.unwrap();
    assert_eq!(see(&consumer, 2).await, [nth("m1", 2), first("m2")]);
    within(session.rollback()).await.unwrap();
    assert_eq!(see(&consumer, 3).await, [nth("m1", 3), nth("m2", 2), first("m3")]);
    within(session.rollback()).await.unwrap();
    assert_eq!(see(&consumer, 2).await, [nth("m2", 3), nth("m3", 2)]);
    within(session.commit()).await.unwrap();
    within(session.close()).await.unwrap();
    assert_eq!(dead_letters(peer, &q, 1).await, ["m1"]);
    assert_eq!(peer.drain(&q, 0).await, []);
}

async fn a_transaction_over_several_destinations_is_one(peer: &Peer) {
    let (q, other, out, prices) =
        (peer.queue("q"), peer.queue("other"), peer.queue("out"), peer.topic("prices"));
    peer.send_numbered(&q, 3).await;
    peer.send_numbered(&other, 3).await;
    let listening = peer.session(Auto).await;
    let published = within(listening.create_consumer(&prices)).await.unwrap();
    let session = peer.session(Transacted).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    let other_consumer = within(session.create_consumer(&other)).await.unwrap();
    for count in 1..=2 {
        // By turns, and not as many of each.
        assert_eq!(see(&consumer, 1).await, nths(1..=1, count));
        assert_eq!(see(&other_consumer, 1).await, nths(1..=1, count));
        assert_eq!(see(&consumer, 1).await, nths(2..=2, count));
        send_text(&session, &out, &format!("queued {count}")).await;
        send_text(&session, &prices, &format!("published {count}")).await;
        if count == 1 {
            within(session.rollback()).await.unwrap();
        } else {
            within(session.commit()).await.unwrap();
        }
    }
    assert_eq!(see(&published, 1).await, [first("published 2")]);
    assert!(within(published.receive_no_wait()).await.unwrap().is_none());
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&out, 1).await, [first("queued 2")]);
    assert_eq!(peer.drain(&q, 1).await, firsts(3..=3));
    assert_eq!(peer.drain(&other, 2).await, firsts(2..=3));
}

async fn a_rollback_gives_back_what_a_closed_consumer_received(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 5).await;
    let session = peer.session(Transacted).await;
    // With a window it would have all of them until the transaction ends, at ActiveMQ.
    let closed = within(session.create_consumer_with_prefetch(&q, 0)).await.unwrap();
    assert_eq!(see(&closed, 2).await, firsts(1..=2));
    within(closed.close()).await.unwrap();
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    assert_eq!(see(&consumer, 1).await, firsts(3..=3));
    within(session.rollback()).await.unwrap();
    let mut seen = see(&consumer, 5).await;
    // What the closed one received is nobody's, so it comes behind what this one failed with.
    seen.sort_by(|one, other| one.text.cmp(&other.text));
    let mut expected = nths(1..=3, 2);
    expected.extend(firsts(4..=5));
    assert_eq!(seen, expected);
    within(session.commit()).await.unwrap();
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 0).await, []);
}

async fn what_a_closed_consumer_failed_with_reaches_the_limit_all_the_same(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 1).await;
    let session = peer.session(Transacted).await;
    for count in 1..=3 {
        let consumer = within(session.create_consumer(&q)).await.unwrap();
        assert_eq!(see(&consumer, 1).await, nths(1..=1, count));
        within(consumer.close()).await.unwrap();
        within(session.rollback()).await.unwrap();
    }
    peer.send_numbered(&q, 1).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    assert_eq!(see(&consumer, 1).await, firsts(1..=1));
    within(session.commit()).await.unwrap();
    within(session.close()).await.unwrap();
    assert_eq!(dead_letters(peer, &q, 1).await, ["m1"]);
}

async fn a_transaction_larger_than_the_window_is_rolled_back_whole(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 40).await;
    let session = peer.session(Transacted).await;
    let consumer = within(session.create_consumer_with_prefetch(&q, 4)).await.unwrap();
    for count in 1..=2 {
        assert_eq!(see(&consumer, 30).await, nths(1..=30, count));
        within(session.rollback()).await.unwrap();
    }
    let mut expected = nths(1..=30, 3);
    expected.extend(firsts(31..=40));
    assert_eq!(see(&consumer, 40).await, expected);
    within(session.commit()).await.unwrap();
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 0).await, []);
}

async fn a_consumer_of_a_topic_that_is_closed_leaves_the_transaction_whole(peer: &Peer) {
    let (q, prices) = (peer.queue("q"), peer.topic("prices"));
    peer.send_numbered(&q, 2).await;
    let session = peer.session(Transacted).await;
    let closed = within(session.create_consumer(&prices)).await.unwrap();
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    peer.send_numbered(&prices, 3).await;
    assert_eq!(see(&closed, 2).await, firsts(1..=2));
    within(closed.close()).await.unwrap();
    assert_eq!(see(&consumer, 1).await, nths(1..=1, 1));
    within(session.rollback()).await.unwrap();
    assert_eq!(see(&consumer, 1).await, nths(1..=1, 2));
    within(session.commit()).await.unwrap();
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 1).await, firsts(2..=2));
}

async fn a_session_that_is_closed_gives_back_what_its_closed_consumers_received(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 3).await;
    let session = peer.session(Transacted).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    assert_eq!(see(&consumer, 2).await, firsts(1..=2));
    within(consumer.close()).await.unwrap();
    within(session.close()).await.unwrap();
    let mut came = peer.drain(&q, 3).await;
    // Each at its own moment, where the peer has a delay.
    came.sort_by(|one, other| one.text.cmp(&other.text));
    let mut expected = nths(1..=2, 2);
    expected.extend(firsts(3..=3));
    assert_eq!(came, expected);
}
