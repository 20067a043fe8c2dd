//! Consumers without a window.

use corriere_openwire::structures::{ConsumerId, MessagePull};

use crate::peer::{Peer, queue, text_of};
use crate::server::Server;

fn pull(consumer: &ConsumerId, timeout: i64) -> MessagePull {
    MessagePull { consumer_id: consumer.clone(), timeout, ..Default::default() }
}

async fn puller(server: &Server) -> (Peer, ConsumerId) {
    let mut peer = server.client().await;
    peer.session(1).await;
    peer.producer(1, 1).await;
    let consumer = peer.consumer((1, 1), &queue("orders"), 0).await;
    (peer, consumer)
}

#[tokio::test]
async fn each_pull_gets_one_message_and_nothing_comes_without() {
    let server = Server::start().await;
    let orders = queue("orders");
    let (mut peer, consumer) = puller(&server).await;
    peer.send(&orders, &["one", "two", "three"]).await;
    assert!(peer.is_silent().await);
    for text in ["one", "two"] {
        peer.tell(pull(&consumer, 0)).await;
        peer.dispatches(&[text]).await;
        assert!(peer.is_silent().await);
    }
    // What it has may not be settled: the next pull is served all the same.
    peer.tell(pull(&consumer, -1)).await;
    peer.dispatches(&["three"]).await;
    assert!(peer.is_silent().await);
}

#[tokio::test]
async fn a_pull_that_does_not_wait_or_no_longer_is_told_that_there_is_nothing() {
    let server = Server::start().await;
    let orders = queue("orders");
    let (mut peer, consumer) = puller(&server).await;
    for timeout in [-1, 20] {
        peer.tell(pull(&consumer, timeout)).await;
        let nothing = peer.dispatch().await;
        assert_eq!((nothing.consumer_id, nothing.message), (consumer.clone(), None));
        peer.send(&orders, &["x"]).await;
        assert!(peer.is_silent().await, "the pull is over, and so is its credit");
        peer.tell(pull(&consumer, 0)).await;
        peer.dispatches(&["x"]).await;
    }
}

#[tokio::test]
async fn a_pull_waits_for_a_message_and_takes_one_whatever_came_before_its_time_was_over() {
    let server = Server::start().await;
    let orders = queue("orders");
    let (mut peer, consumer) = puller(&server).await;
    peer.tell(pull(&consumer, 0)).await;
    // A client whose thread was interrupted asks again: that is the same pull.
    peer.tell(pull(&consumer, i64::MAX)).await;
    assert!(peer.is_silent().await);
    peer.send(&orders, &["one", "two"]).await;
    peer.dispatches(&["one"]).await;
    assert!(peer.is_silent().await);
    // Its timer was stopped with the next one.
    peer.tell(pull(&consumer, 60_000)).await;
    peer.dispatches(&["two"]).await;
    peer.tell(pull(&consumer, -1)).await;
    assert_eq!(peer.dispatch().await.message, None);
}

#[tokio::test]
async fn many_pulls_that_end_at_once_each_have_one_answer() {
    let server = Server::start().await;
    let orders = queue("orders");
    let (mut peer, consumer) = puller(&server).await;
    let mut sender = server.client().await;
    sender.send_first(&orders, &[]).await;
    let (mut messages, mut nothings) = (0, 0);
    for round in 0..200 {
        let message = sender.text(&orders, "x", false);
        sender.tell(message).await;
        peer.tell(pull(&consumer, if round % 2 == 0 { 1 } else { -1 })).await;
        let dispatch = peer.dispatch().await;
        match dispatch.message {
            Some(_) => {
                assert_eq!(text_of(&dispatch), "x");
                messages += 1;
            }
            None => nothings += 1,
        }
    }
    assert_eq!(messages + nothings, 200);
    for _ in 0..nothings {
        peer.tell(pull(&consumer, 0)).await;
        peer.dispatches(&["x"]).await;
    }
    assert!(peer.is_silent().await);
}

#[tokio::test]
async fn a_pull_of_a_consumer_that_is_not_there_is_passed_over() {
    let server = Server::start().await;
    let (mut peer, consumer) = puller(&server).await;
    peer.request(pull(&ConsumerId { value: 9, ..consumer.clone() }, 0)).await;
    peer.request(pull(&consumer, 0)).await;
    peer.request(Peer::removal(consumer.clone(), -1)).await;
    peer.request(pull(&consumer, -1)).await;
    assert!(peer.is_silent().await);
}
