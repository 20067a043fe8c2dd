//! Every kind of acknowledgement, and what a second consumer sees then.

use corriere_openwire::structures::{AckType, MessageAck, Throwable};

use crate::peer::{Peer, id_of, queue};
use crate::server::Server;

/// Three messages with a consumer of the peer.
async fn three(server: &Server) -> (Peer, Vec<corriere_openwire::structures::MessageDispatch>) {
    let orders = queue("orders");
    let mut peer = server.client().await;
    peer.send_first(&orders, &["one", "two", "three"]).await;
    peer.consumer((1, 1), &orders, 10).await;
    let dispatches = peer.dispatches(&["one", "two", "three"]).await;
    (peer, dispatches)
}

/// What a new consumer gets: texts and counts of failed deliveries.
async fn seen_by_another(server: &Server, texts: &[&str]) -> Vec<i32> {
    let mut other = server.client().await;
    other.session(1).await;
    other.consumer((1, 1), &queue("orders"), 10).await;
    let dispatches = other.dispatches(texts).await;
    assert!(other.is_silent().await);
    for dispatch in &dispatches {
        let counter = dispatch.message.as_ref().unwrap().redelivery_counter;
        assert_eq!(counter, dispatch.redelivery_counter, "the message says what the dispatch does");
    }
    dispatches.iter().map(|dispatch| dispatch.redelivery_counter).collect()
}

#[tokio::test]
async fn without_a_first_message_a_range_begins_with_the_oldest() {
    let server = Server::start().await;
    let (mut peer, dispatches) = three(&server).await;
    let ack = Peer::ack(AckType::Standard, &dispatches[0], &dispatches[1], None);
    peer.request(MessageAck { first_message_id: None, ..ack }).await;
    drop(peer);
    assert_eq!(seen_by_another(&server, &["three"]).await, [1]);
}

#[tokio::test]
async fn an_individual_acknowledgement_settles_one_message_only() {
    let server = Server::start().await;
    let (mut peer, dispatches) = three(&server).await;
    let ack = Peer::ack(AckType::Individual, &dispatches[1], &dispatches[1], None);
    peer.request(MessageAck { first_message_id: None, ..ack }).await;
    drop(peer);
    assert_eq!(seen_by_another(&server, &["one", "three"]).await.len(), 2);
}

#[tokio::test]
async fn what_is_delivered_moves_the_window_and_counts() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = server.client().await;
    peer.send_first(&orders, &["one", "two", "three", "four"]).await;
    peer.consumer((1, 1), &orders, 2).await;
    let dispatches = peer.dispatches(&["one", "two"]).await;
    assert!(peer.is_silent().await, "the window is full");
    peer.tell(Peer::ack(AckType::Delivered, &dispatches[0], &dispatches[0], None)).await;
    peer.dispatches(&["three"]).await;
    assert!(peer.is_silent().await);
    peer.tell(Peer::ack(AckType::Standard, &dispatches[0], &dispatches[1], None)).await;
    peer.dispatches(&["four"]).await;
}

#[tokio::test]
async fn poison_goes_to_the_dead_letters_with_its_cause() {
    let server = Server::start().await;
    let (mut peer, dispatches) = three(&server).await;
    let cause =
        Throwable { class: "java.lang.Throwable".into(), message: Some("no".into()), ..Default::default() };
    let ack = Peer::ack(AckType::Poison, &dispatches[0], &dispatches[1], None);
    peer.request(MessageAck { poison_cause: Some(cause), ..ack }).await;
    peer.consumer((1, 2), &queue("DLQ.orders"), 10).await;
    for dead in peer.dispatches(&["one", "two"]).await {
        let message = dead.message.unwrap().to_core(Default::default()).unwrap();
        let cause: Option<String> = message.property("dlqDeliveryFailureCause").unwrap();
        assert_eq!(cause.as_deref(), Some("java.lang.Throwable: no"));
    }
    drop(peer);
    assert_eq!(seen_by_another(&server, &["three"]).await, [1]);
}

#[tokio::test]
async fn a_client_that_redelivers_by_itself_keeps_the_message_and_its_count_rises() {
    let server = Server::start().await;
    let (mut peer, dispatches) = three(&server).await;
    // More often than the broker's own limit.
    for _ in 0..5 {
        peer.request(Peer::ack(AckType::Redelivered, &dispatches[0], &dispatches[0], None)).await;
    }
    assert!(peer.is_silent().await, "it has the message");
    drop(peer);
    assert_eq!(seen_by_another(&server, &["one", "two", "three"]).await, [6, 0, 0]);
}

#[tokio::test]
async fn unmatched_is_gone_and_what_expired_by_a_wrong_clock_is_not() {
    let server = Server::start().await;
    let (mut peer, dispatches) = three(&server).await;
    peer.request(Peer::ack(AckType::Unmatched, &dispatches[0], &dispatches[0], None)).await;
    // It has no expiration at all, so it comes back, uncounted, and at once.
    peer.request(Peer::ack(AckType::Expired, &dispatches[1], &dispatches[1], None)).await;
    let again = peer.dispatches(&["two"]).await.remove(0);
    assert_eq!(again.redelivery_counter, 0);
    assert_eq!(id_of(&again).to_string(), id_of(&dispatches[1]).to_string());
    // By its id it is the new delivery now.
    peer.settle(&again).await;
    drop(peer);
    assert_eq!(seen_by_another(&server, &["three"]).await, [1]);
}

#[tokio::test]
async fn one_that_expired_takes_none_before_it_along() {
    let server = Server::start().await;
    let (mut peer, dispatches) = three(&server).await;
    let ack = Peer::ack(AckType::Expired, &dispatches[1], &dispatches[1], None);
    peer.request(MessageAck { first_message_id: None, ..ack }).await;
    // It has no expiration, so it comes again.
    peer.dispatches(&["two"]).await;
    assert!(peer.is_silent().await);
}

#[tokio::test]
async fn what_is_not_known_or_settled_already_is_passed_over() {
    let server = Server::start().await;
    let (mut peer, dispatches) = three(&server).await;
    peer.settle(&dispatches[0]).await;
    peer.settle(&dispatches[0]).await;
    let mut unknown = Peer::ack(AckType::Standard, &dispatches[2], &dispatches[2], None);
    unknown.consumer_id.value = 7;
    peer.request(unknown).await;
    let mut unknown = Peer::ack(AckType::Standard, &dispatches[2], &dispatches[2], None);
    unknown.last_message_id.as_mut().unwrap().producer_sequence_id = 99;
    unknown.first_message_id.clone_from(&unknown.last_message_id);
    peer.request(unknown).await;
    peer.request(MessageAck { consumer_id: dispatches[0].consumer_id.clone(), ..Default::default() }).await;
    drop(peer);
    assert_eq!(seen_by_another(&server, &["two", "three"]).await.len(), 2);
}

#[tokio::test]
async fn of_two_messages_of_one_id_each_is_settled_by_itself() {
    for (settled, left) in [(0, "second"), (1, "first")] {
        let server = Server::start().await;
        let orders = queue("orders");
        let mut peer = server.client().await;
        peer.session(1).await;
        peer.producer(1, 1).await;
        // What is stored would be taken for sent again.
        let mut first = peer.text(&orders, "first", false);
        let second = peer.text(&orders, "second", false);
        first.message_id.clone_from(&second.message_id);
        peer.request(first).await;
        peer.request(second).await;
        peer.consumer((1, 1), &orders, 10).await;
        let dispatches = peer.dispatches(&["first", "second"]).await;
        peer.request(Peer::ack(AckType::Individual, &dispatches[settled], &dispatches[settled], None)).await;
        assert_eq!(server.counts(&orders).acknowledged, 1);
        drop(peer);
        assert_eq!(seen_by_another(&server, &[left]).await, [1]);
    }
}
