//! Browsers.

use corriere_openwire::structures::{AckType, ConsumerInfo};

use crate::peer::{Peer, queue, topic};
use crate::server::Server;

#[tokio::test]
async fn a_browser_sees_what_is_there_and_then_its_end_and_takes_nothing() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = server.client().await;
    peer.send_first(&orders, &["one", "two", "three"]).await;
    // In flight to another one.
    peer.consumer((1, 1), &orders, 1).await;
    let held = peer.dispatches(&["one"]).await.remove(0);
    let browser = ConsumerInfo { browser: true, ..peer.consumer_info((1, 2), &orders, 500) };
    let id = browser.consumer_id.clone();
    peer.request(browser).await;
    let seen = peer.dispatches(&["one", "two", "three"]).await;
    assert!(seen.iter().all(|dispatch| dispatch.redelivery_counter == 0));
    assert_eq!(peer.dispatch().await.message, None);
    peer.request(Peer::removal(id, -1)).await;
    assert_eq!(server.counts(&orders).pending, 3);
    peer.settle(&held).await;
    let next = peer.dispatches(&["two"]).await.remove(0);
    assert_eq!(next.redelivery_counter, 0, "to have been looked at is no delivery");
}

#[tokio::test]
async fn a_browser_gets_more_than_its_window_by_what_it_acknowledges() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = server.client().await;
    peer.send_first(&orders, &["one", "two", "three"]).await;
    let browser = ConsumerInfo { browser: true, ..peer.consumer_info((1, 1), &orders, 1) };
    peer.request(browser).await;
    for (text, kind) in
        [("one", AckType::Standard), ("two", AckType::Delivered), ("three", AckType::Standard)]
    {
        let dispatch = peer.dispatches(&[text]).await.remove(0);
        assert!(text == "three" || peer.is_silent().await);
        for _ in 0..2 {
            peer.request(Peer::ack(kind, &dispatch, &dispatch, None)).await;
        }
    }
    assert_eq!(peer.dispatch().await.message, None);
    assert!(peer.is_silent().await);
    let counts = server.counts(&orders);
    assert_eq!((counts.pending, counts.acknowledged), (3, 0));
}

#[tokio::test]
async fn a_queue_that_is_not_there_is_empty_and_is_not_made() {
    let server = Server::start().await;
    let mut peer = server.client().await;
    peer.session(1).await;
    let browser = ConsumerInfo { browser: true, ..peer.consumer_info((1, 1), &queue("nothing"), 500) };
    peer.request(browser).await;
    assert_eq!(peer.dispatch().await.message, None);
    assert_eq!(server.broker.destinations(), Vec::new());
}

#[tokio::test]
async fn a_topic_cannot_be_browsed() {
    let server = Server::start().await;
    let mut peer = server.client().await;
    peer.session(1).await;
    let browser = ConsumerInfo { browser: true, ..peer.consumer_info((1, 1), &topic("prices"), 500) };
    assert_eq!(peer.refused(browser).await.0, "javax.jms.InvalidDestinationException");
}

#[tokio::test]
async fn a_browser_that_vanishes_counts_nothing() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = server.client().await;
    peer.send_first(&orders, &["one"]).await;
    let browser = ConsumerInfo { browser: true, ..peer.consumer_info((1, 1), &orders, 500) };
    peer.request(browser).await;
    peer.dispatches(&["one"]).await;
    drop(peer);
    let mut other = server.client().await;
    other.session(1).await;
    other.consumer((1, 1), &orders, 10).await;
    assert_eq!(other.dispatches(&["one"]).await[0].redelivery_counter, 0);
}
