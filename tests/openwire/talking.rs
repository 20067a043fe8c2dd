//! Sending, receiving, acknowledging.

use corriere_openwire::structures::AckType;

use crate::peer::{Peer, queue};
use crate::server::Server;

#[tokio::test]
async fn what_one_peer_sends_another_receives_and_what_is_acknowledged_is_gone() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut sender = server.client().await;
    sender.send_first(&orders, &["one", "two", "three"]).await;

    let mut receiver = server.client().await;
    receiver.session(1).await;
    receiver.consumer((1, 1), &orders, 10).await;
    let dispatches = receiver.dispatches(&["one", "two", "three"]).await;
    assert!(dispatches.iter().all(|dispatch| dispatch.redelivery_counter == 0));
    receiver.request(Peer::ack(AckType::Standard, &dispatches[0], &dispatches[2], None)).await;
    let counts = server.counts(&orders);
    assert_eq!((counts.acknowledged, counts.pending), (3, 0));
}
