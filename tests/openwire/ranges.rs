//! Ranges of a peer of another make that do not fit what the broker has sent it: what it certainly has is settled, what it may
//! not have is not, and it goes on.

use corriere_openwire::structures::{
    AckType, ConsumerInfo, MessageAck, MessageDispatch, TransactionOperation,
};

use crate::peer::{Peer, id_of, queue, topic};
use crate::server::Server;

const TEXTS: [&str; 5] = ["one", "two", "three", "four", "five"];

/// Five messages with a consumer of the peer.
async fn five(server: &Server) -> (Peer, Vec<MessageDispatch>) {
    let orders = queue("orders");
    let mut peer = server.client().await;
    peer.send_first(&orders, &TEXTS).await;
    peer.consumer((1, 1), &orders, 10).await;
    let dispatches = peer.dispatches(&TEXTS).await;
    (peer, dispatches)
}

fn counting(ack: MessageAck, message_count: i32) -> MessageAck {
    MessageAck { message_count, ..ack }
}

fn unknown(mut ack: MessageAck, is_first: bool) -> MessageAck {
    let id = if is_first { &mut ack.first_message_id } else { &mut ack.last_message_id };
    id.as_mut().unwrap().producer_sequence_id = 99;
    ack
}

/// What a new consumer gets, and nothing more.
async fn left(server: &Server, texts: &[&str]) {
    let mut other = server.client().await;
    other.session(1).await;
    other.consumer((1, 1), &queue("orders"), 10).await;
    other.dispatches(texts).await;
    assert!(other.is_silent().await);
}

#[tokio::test]
async fn of_a_range_that_counts_fewer_than_are_in_it_only_the_ends_are_settled() {
    for kind in [AckType::Standard, AckType::Poison] {
        let server = Server::start().await;
        let (mut peer, dispatches) = five(&server).await;
        peer.request(counting(Peer::ack(kind, &dispatches[0], &dispatches[3], None), 3)).await;
        assert_eq!(server.counts(&queue("orders")).pending, 3, "{kind:?}");
        drop(peer);
        left(&server, &["two", "three", "five"]).await;
    }
}

#[tokio::test]
async fn a_range_that_counts_more_than_are_left_in_it_is_settled_with_all_that_is() {
    let server = Server::start().await;
    let (mut peer, dispatches) = five(&server).await;
    peer.settle(&dispatches[1]).await;
    peer.request(counting(Peer::ack(AckType::Standard, &dispatches[0], &dispatches[3], None), 4)).await;
    drop(peer);
    left(&server, &["five"]).await;
}

/// A client that sorts what it has by priority acknowledges in that order.
#[tokio::test]
async fn a_range_against_the_order_of_dispatch_is_settled_as_far_as_its_count_says() {
    for (count, rest) in [(2, ["one", "two", "four"].as_slice()), (3, &["one", "two"])] {
        let server = Server::start().await;
        let (mut peer, dispatches) = five(&server).await;
        let ack = Peer::ack(AckType::Standard, &dispatches[2], &dispatches[2], None);
        let first_message_id = Some(id_of(&dispatches[4]));
        peer.request(MessageAck { first_message_id, message_count: count, ..ack }).await;
        drop(peer);
        left(&server, rest).await;
    }
}

#[tokio::test]
async fn of_a_range_of_which_one_end_is_not_known_the_other_is_settled_and_the_window_goes_on() {
    for is_first in [true, false] {
        let server = Server::start().await;
        let orders = queue("orders");
        let mut peer = server.client().await;
        peer.send_first(&orders, &TEXTS).await;
        peer.consumer((1, 1), &orders, 1).await;
        // With a window of one, what was not settled would stop it.
        for text in TEXTS {
            let one = peer.dispatches(&[text]).await.remove(0);
            let ack = unknown(Peer::ack(AckType::Standard, &one, &one, None), is_first);
            peer.request(counting(ack, 2)).await;
        }
        assert_eq!(server.counts(&orders).acknowledged, 5);
    }
}

#[tokio::test]
async fn of_a_range_of_which_no_end_is_known_nothing_is_settled_and_the_connection_goes_on() {
    let server = Server::start().await;
    let (mut peer, dispatches) = five(&server).await;
    let ack = Peer::ack(AckType::Standard, &dispatches[0], &dispatches[4], None);
    peer.request(unknown(unknown(ack, true), false)).await;
    assert_eq!(server.counts(&queue("orders")).acknowledged, 0);
    peer.request(Peer::ack(AckType::Standard, &dispatches[0], &dispatches[4], None)).await;
    assert_eq!(server.counts(&queue("orders")).acknowledged, 5);
}

#[tokio::test]
async fn a_failure_of_a_range_that_counts_fewer_counts_for_its_ends_only() {
    let server = Server::start().await;
    let (mut peer, dispatches) = five(&server).await;
    peer.request(counting(Peer::ack(AckType::Redelivered, &dispatches[1], &dispatches[3], None), 2)).await;
    drop(peer);
    let mut other = server.client().await;
    other.session(1).await;
    other.consumer((1, 1), &queue("orders"), 10).await;
    let counters: Vec<i32> =
        other.dispatches(&TEXTS).await.iter().map(|dispatch| dispatch.redelivery_counter).collect();
    // What came before the last one that it failed with was in its hands when it vanished.
    assert_eq!(counters, [1, 2, 1, 2, 0]);
}

/// Of what its listener failed with, a client that acknowledges a topic lazily says nothing, and does not count it.
#[tokio::test]
async fn a_lazy_range_of_a_topic_settles_all_that_is_in_it() {
    let server = Server::start().await;
    let prices = topic("prices");
    let mut peer = server.client().await;
    peer.session(1).await;
    peer.producer(1, 1).await;
    let info = ConsumerInfo { prefetch_size: 4, ..peer.consumer_info((1, 1), &prices, 4) };
    peer.request(info).await;
    for _ in 0..10 {
        peer.send(&prices, &TEXTS[..4]).await;
        let dispatches = peer.dispatches(&TEXTS[..4]).await;
        peer.request(counting(Peer::ack(AckType::Standard, &dispatches[0], &dispatches[3], None), 2)).await;
    }
}

#[tokio::test]
async fn in_a_transaction_a_range_is_meant_with_all_that_is_in_it() {
    let server = Server::start().await;
    let (mut peer, dispatches) = five(&server).await;
    let transaction = peer.transaction_id(1);
    peer.request(peer.transaction(1, TransactionOperation::Begin)).await;
    let ack = Peer::ack(AckType::Standard, &dispatches[0], &dispatches[4], Some(&transaction));
    peer.request(counting(ack, 1)).await;
    peer.request(peer.transaction(1, TransactionOperation::CommitOnePhase)).await;
    assert_eq!(server.counts(&queue("orders")).acknowledged, 5);
}

/// A client that redelivers without blocking, or sorts by priority, acknowledges each message in its transaction at once.
#[tokio::test]
async fn single_acknowledgements_of_a_transaction_in_any_order_are_one_with_it() {
    for commits in [true, false] {
        let server = Server::start().await;
        let (mut peer, dispatches) = five(&server).await;
        let transaction = peer.transaction_id(1);
        peer.request(peer.transaction(1, TransactionOperation::Begin)).await;
        for number in [3, 0, 4] {
            let ack =
                Peer::ack(AckType::Individual, &dispatches[number], &dispatches[number], Some(&transaction));
            peer.request(ack).await;
        }
        let end = if commits { TransactionOperation::CommitOnePhase } else { TransactionOperation::Rollback };
        peer.request(peer.transaction(1, end)).await;
        let orders = queue("orders");
        assert_eq!(server.counts(&orders).acknowledged, if commits { 3 } else { 0 });
        // What was rolled back is with the consumer, which settles it in another.
        peer.request(peer.transaction(1, TransactionOperation::Begin)).await;
        let rest = if commits { vec![1, 2] } else { vec![4, 3, 2, 1, 0] };
        for number in rest {
            let ack =
                Peer::ack(AckType::Individual, &dispatches[number], &dispatches[number], Some(&transaction));
            peer.request(ack).await;
        }
        peer.request(peer.transaction(1, TransactionOperation::CommitOnePhase)).await;
        assert_eq!(server.counts(&orders).acknowledged, 5);
    }
}
