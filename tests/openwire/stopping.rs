//! The end of the acceptor, and of the broker below it.

use corriere_openwire::Structure;
use corriere_openwire::structures::{AckType, FlushCommand};
use tokio::net::TcpStream;

use crate::peer::{Peer, queue, words};
use crate::server::Server;

#[tokio::test]
async fn a_stop_tells_the_peers_takes_their_acknowledgements_and_closes() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = server.client().await;
    peer.send_first(&orders, &["one", "two"]).await;
    peer.consumer((1, 1), &orders, 10).await;
    let dispatches = peer.dispatches(&["one", "two"]).await;
    let mut idle = server.peer().await;
    let _silent = TcpStream::connect(server.acceptor.local_address()).await.unwrap();
    let talking = async {
        let (class, message) = peer.error().await;
        assert_eq!(class, "org.apache.activemq.ConnectionFailedException");
        assert_eq!(message, "broker `localhost` is stopping");
        peer.tell(Peer::ack(AckType::Standard, &dispatches[0], &dispatches[0], None)).await;
        let (class, _) = peer.refused(FlushCommand::default()).await;
        assert_eq!(class, "org.apache.activemq.ConnectionFailedException");
        assert!(peer.rest().await.is_empty());
        idle.rest().await;
    };
    tokio::join!(server.acceptor.stop(), talking);
    assert!(TcpStream::connect(server.acceptor.local_address()).await.is_err(), "nobody listens");
    assert_eq!(server.counts(&orders).acknowledged, 1);
    server.until_waiting(&orders, 1).await;
    server.acceptor.stop().await;
}

#[tokio::test]
async fn a_dropped_acceptor_closes_its_connections_too() {
    let server = Server::start().await;
    let mut peer = server.client().await;
    let Server { acceptor, broker, .. } = server;
    drop(acceptor);
    let rest = peer.rest().await;
    assert!(matches!(rest.as_slice(), [Structure::ConnectionError(_)]), "{rest:?}");
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
    assert!(message.contains("has stopped"), "{message}");
    let mut next = server.peer().await;
    let (class, _) = next.refused(next.introduction()).await;
    assert_eq!(class, "org.apache.activemq.ConnectionFailedException");
}
