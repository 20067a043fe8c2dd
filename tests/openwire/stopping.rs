//! The end of the acceptor, and of the broker below it.

use corriere_openwire::Structure;
use corriere_openwire::structures::TransactionOperation::{Begin, CommitOnePhase};
use corriere_openwire::structures::{AckType, FlushCommand};
use tokio::net::TcpStream;

use crate::peer::{Peer, queue, words};
use crate::server::Server;

#[tokio::test]
async fn a_stop_carries_out_and_answers_what_has_come_and_closes_without_a_word() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = server.client().await;
    peer.send_first(&orders, &["one", "two"]).await;
    peer.consumer((1, 1), &orders, 10).await;
    let dispatches = peer.dispatches(&["one", "two"]).await;
    let mut idle = server.peer().await;
    let _silent = TcpStream::connect(server.acceptor.local_address()).await.unwrap();

    peer.tell(Peer::ack(AckType::Standard, &dispatches[0], &dispatches[0], None)).await;
    let unasked = peer.text(&queue("late"), "unasked", false);
    peer.tell(unasked).await;
    let asked = peer.text(&queue("late"), "asked", true);
    let id = peer.begin(asked).await;
    let talking = async {
        let rest = peer.rest().await;
        let [Structure::Response(response)] = rest.as_slice() else {
            panic!("there is one answer: {rest:?}")
        };
        assert_eq!(response.correlation_id, id);
        drop(peer);
        idle.rest().await;
    };
    tokio::join!(server.acceptor.stop(), talking);
    assert!(TcpStream::connect(server.acceptor.local_address()).await.is_err(), "nobody listens");
    assert_eq!(server.counts(&orders).acknowledged, 1);
    assert_eq!(server.counts(&queue("late")).enqueued, 2);
    server.until_waiting(&orders, 1).await;
    server.acceptor.stop().await;
}

#[tokio::test]
async fn what_comes_during_a_stop_is_not_answered_and_done_only_where_nobody_waits() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = server.client().await;
    peer.send_first(&orders, &["one", "two"]).await;
    peer.consumer((1, 1), &orders, 1).await;
    let dispatches = peer.dispatches(&["one"]).await;
    let talking = async {
        assert!(peer.rest().await.is_empty(), "it is told nothing");
        // It would send these again elsewhere, where it waits for an answer.
        peer.begin(FlushCommand::default()).await;
        let asked = peer.text(&queue("late"), "asked", true);
        peer.begin(asked).await;
        let begin = peer.transaction(1, Begin);
        peer.tell(begin).await;
        let commit = peer.transaction(1, CommitOnePhase);
        peer.begin(commit).await;
        // And these never.
        let unasked = peer.text(&queue("late"), "unasked", false);
        peer.tell(unasked).await;
        peer.tell(Peer::ack(AckType::Standard, &dispatches[0], &dispatches[0], None)).await;
        assert!(peer.rest().await.is_empty(), "it is told nothing");
        drop(peer);
    };
    tokio::join!(server.acceptor.stop(), talking);
    assert_eq!(server.counts(&queue("late")).enqueued, 1);
    // The message that the acknowledgement made room for was not sent any more.
    let counts = server.counts(&orders);
    assert_eq!((counts.acknowledged, counts.redelivered), (1, 0), "{counts:?}");
    server.until_waiting(&orders, 1).await;
}

#[tokio::test]
async fn a_dropped_acceptor_closes_its_connections_too() {
    let server = Server::start().await;
    let mut peer = server.client().await;
    let Server { acceptor, broker, .. } = server;
    drop(acceptor);
    let rest = peer.rest().await;
    assert!(rest.is_empty(), "{rest:?}");
    drop(broker);
}

#[tokio::test]
async fn when_the_broker_stops_its_peers_are_told_and_closed() {
    let server = Server::start().await;
    let mut peer = server.client().await;
    server.broker.stop();
    let rest = peer.rest().await;
    let [Structure::ConnectionError(error)] = rest.as_slice() else { panic!("it is told: {rest:?}") };
    let (class, message) = words(error.exception.clone());
    assert_eq!(class, "org.apache.activemq.ConnectionFailedException");
    assert!(message.contains("is gone"), "{message}");
    let mut next = server.peer().await;
    let (class, _) = next.refused(next.introduction()).await;
    assert_eq!(class, "org.apache.activemq.ConnectionFailedException");
}
