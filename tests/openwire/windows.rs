//! Windows of producers and consumers, and what a connection's own consumers leave out.

use corriere_openwire::Structure;
use corriere_openwire::structures::{ConsumerInfo, ProducerInfo};

use crate::peer::{queue, topic};
use crate::server::Server;

#[tokio::test]
async fn a_producer_with_a_window_is_told_of_each_message_for_which_it_asks_no_answer() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = server.client().await;
    peer.session(1).await;
    let producer_id = peer.producer_id(1, 1);
    peer.request(ProducerInfo {
        producer_id: producer_id.clone(),
        window_size: 10_000,
        ..Default::default()
    })
    .await;
    for is_persistent in [true, false] {
        let message = peer.text(&orders, "four", is_persistent);
        peer.tell(message).await;
        let Structure::ProducerAck(ack) = peer.next().await else { panic!("it is acknowledged") };
        // As the client counts it: 1,024 and the body, which is the text behind its length.
        assert_eq!((ack.producer_id, ack.size), (producer_id.clone(), 1_024 + 8));
        let message = peer.text(&orders, "four", is_persistent);
        peer.request(message).await;
        assert!(peer.is_silent().await, "an answer is enough");
    }
}

#[tokio::test]
async fn a_producer_without_a_window_is_told_nothing() {
    let server = Server::start().await;
    let mut peer = server.client().await;
    peer.send_first(&queue("orders"), &[]).await;
    let message = peer.text(&queue("orders"), "x", true);
    peer.tell(message).await;
    assert!(peer.is_silent().await);
    server.until("the message", |broker| broker.memory_used() > 0).await;
}

#[tokio::test]
async fn a_consumer_has_no_more_than_its_window() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = server.client().await;
    peer.send_first(&orders, &["one", "two", "three"]).await;
    peer.consumer((1, 1), &orders, 2).await;
    let dispatches = peer.dispatches(&["one", "two"]).await;
    assert!(peer.is_silent().await);
    peer.settle(&dispatches[1]).await;
    peer.dispatches(&["three"]).await;
}

#[tokio::test]
async fn a_topic_reaches_each_consumer_but_the_one_that_leaves_out_its_own() {
    let server = Server::start().await;
    let prices = topic("prices");
    let mut peer = server.client().await;
    peer.send_first(&prices, &[]).await;
    let own = ConsumerInfo { no_local: true, ..peer.consumer_info((1, 1), &prices, 10) };
    peer.request(own).await;
    let mut other = server.client().await;
    other.session(1).await;
    let everybody = ConsumerInfo { no_local: true, ..other.consumer_info((1, 1), &prices, 10) };
    other.request(everybody).await;
    peer.send(&prices, &["12"]).await;
    other.dispatches(&["12"]).await;
    assert!(peer.is_silent().await);
}

#[tokio::test]
async fn the_answer_to_a_consumer_comes_before_its_messages() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = server.client().await;
    peer.send_first(&orders, &["one"]).await;
    let info = peer.consumer_info((1, 1), &orders, 10);
    peer.begin(info).await;
    assert!(matches!(peer.next().await, Structure::Response(_)));
    peer.dispatches(&["one"]).await;
}
