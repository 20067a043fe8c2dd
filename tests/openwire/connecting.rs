//! Who may connect, and what has to be said first.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use corriere_core::provider::Password;
use corriere_openwire::Structure;
use corriere_openwire::acceptor::{Acceptor, AcceptorOptions, BindError};
use corriere_openwire::structures::{ConnectionInfo, RemoveSubscriptionInfo, ShutdownInfo};

use crate::peer::{Peer, queue};
use crate::server::{Server, settings};

#[tokio::test]
async fn a_user_is_refused_by_name_and_none_or_an_empty_one_is_not() {
    let server = Server::start().await;
    let mut peer = server.peer().await;
    let user = ConnectionInfo { user_name: Some("ada".into()), ..peer.introduction() };
    let (class, message) = peer.refused(user).await;
    assert_eq!(class, "java.lang.SecurityException");
    assert!(message.starts_with("user `ada` cannot be checked: this broker has no users yet"), "{message}");
    assert!(peer.rest().await.is_empty(), "and is closed");

    let mut peer = server.peer().await;
    let password = Some(Password("secret".into()));
    let (class, message) = peer.refused(ConnectionInfo { password, ..peer.introduction() }).await;
    assert_eq!(class, "java.lang.SecurityException");
    assert!(!message.contains("secret"));

    let mut peer = server.peer().await;
    let (user_name, password) = (Some("".into()), Some(Password("".into())));
    peer.request(ConnectionInfo { user_name, password, ..peer.introduction() }).await;
}

#[tokio::test]
async fn a_client_id_that_is_in_use_is_refused_and_free_when_its_connection_ends() {
    let server = Server::start().await;
    let client_id = Some("billing".into());
    let mut first = server.peer().await;
    first.request(ConnectionInfo { client_id: client_id.clone(), ..first.introduction() }).await;
    let mut second = server.peer().await;
    let (class, message) =
        second.refused(ConnectionInfo { client_id: client_id.clone(), ..second.introduction() }).await;
    assert_eq!(class, "javax.jms.InvalidClientIDException");
    assert!(message.contains("billing"), "{message}");
    first.request(Peer::removal(first.connection.clone(), -1)).await;
    let mut third = server.peer().await;
    third.request(ConnectionInfo { client_id, ..third.introduction() }).await;
}

#[tokio::test]
async fn nothing_is_done_before_the_peer_has_introduced_itself_nor_after_it_has_closed() {
    let server = Server::start().await;
    let mut peer = server.peer().await;
    let session = peer.session_id(1);
    let open = corriere_openwire::structures::SessionInfo { session_id: session, ..Default::default() };
    let (class, message) = peer.refused(open.clone()).await;
    assert_eq!(class, "javax.jms.IllegalStateException");
    assert!(message.ends_with("expected ConnectionInfo before anything else"), "{message}");
    peer.introduce().await;
    peer.introduce().await;
    peer.request(Peer::removal(peer.connection.clone(), -1)).await;
    assert_eq!(peer.refused(open).await.1, "the connection is closed");
    peer.tell(ShutdownInfo::default()).await;
    assert!(peer.rest().await.is_empty());
}

#[tokio::test]
async fn what_is_opened_again_is_there_already() {
    let server = Server::start().await;
    let mut peer = server.client().await;
    let orders = queue("orders");
    peer.send_first(&orders, &["one"]).await;
    peer.session(1).await;
    peer.producer(1, 1).await;
    peer.consumer((1, 1), &orders, 10).await;
    peer.dispatches(&["one"]).await;
    peer.consumer((1, 1), &orders, 10).await;
    peer.send(&orders, &["two"]).await;
    peer.dispatches(&["two"]).await;
    assert!(peer.is_silent().await);
}

#[tokio::test]
async fn what_belongs_to_another_connection_cannot_be_used() {
    let server = Server::start().await;
    let other = server.client().await;
    let mut peer = server.client().await;
    let session_id = other.session_id(1);
    let (class, message) =
        peer.refused(corriere_openwire::structures::SessionInfo { session_id, ..Default::default() }).await;
    assert_eq!(class, "javax.jms.IllegalStateException");
    assert!(
        message.contains(&*other.connection.value) && message.contains(&*peer.connection.value),
        "{message}"
    );
    let (class, _) = peer.refused(Peer::removal(other.connection.clone(), -1)).await;
    assert_eq!(class, "javax.jms.IllegalStateException");
}

#[tokio::test]
async fn a_client_that_comes_again_takes_the_place_of_its_lost_connection() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut lost = server.client().await;
    lost.send_first(&orders, &["one"]).await;
    lost.consumer((1, 1), &orders, 10).await;
    lost.dispatches(&["one"]).await;
    let mut again = server.peer().await;
    again.connection = lost.connection.clone();
    again.introduce().await;
    assert!(lost.rest().await.is_empty(), "the older one is closed");
    again.session(1).await;
    again.consumer((1, 1), &orders, 10).await;
    let dispatch = again.dispatches(&["one"]).await.remove(0);
    assert_eq!(dispatch.redelivery_counter, 1, "the lost one had it");
}

#[tokio::test]
async fn more_connections_than_are_allowed_are_told_so_until_one_ends() {
    let server = Server::with("?maximumConnections=1", settings(), AcceptorOptions::default()).await;
    let mut first = server.client().await;
    let mut second = Peer::connect(server.acceptor.local_address()).await;
    assert!(matches!(second.next().await, Structure::WireFormatInfo(_)));
    let (class, message) = second.error().await;
    assert_eq!(class, "javax.jms.ResourceAllocationException");
    assert!(message.contains("maximumConnections"), "{message}");
    drop(second);
    first.tell(ShutdownInfo::default()).await;
    assert!(first.rest().await.is_empty());
    let mut third = server.peer().await;
    third.introduce().await;
}

#[tokio::test]
async fn who_connects_at_once_with_many_others_is_not_made_to_ask_again() {
    let server = Server::start().await;
    let address = server.acceptor.local_address();
    // The acceptor has this thread, so that it accepts none of them meanwhile.
    let peers: Vec<_> = (0..300)
        .map(|number| {
            let connected = TcpStream::connect_timeout(&address, Duration::from_secs(10));
            connected.unwrap_or_else(|error| panic!("connection {number}: {error}"))
        })
        .collect();
    server.client().await;
    drop(peers);
}

#[tokio::test]
async fn an_address_that_others_reach_is_refused_while_there_are_no_users() {
    let server = Server::start().await;
    for url in ["tcp://0.0.0.0:0", "tcp://[::]:0"] {
        let bound = Acceptor::bind(url, Arc::new(server.broker.clone()), AcceptorOptions::default()).await;
        assert!(matches!(bound, Err(BindError::NotLoopback { .. })), "{url}");
    }
    let taken =
        Acceptor::bind(&server.acceptor.url(), Arc::new(server.broker.clone()), AcceptorOptions::default())
            .await;
    assert!(matches!(taken, Err(BindError::Io { .. })));
}

#[tokio::test]
async fn a_durable_subscription_is_refused_by_name() {
    let server = Server::start().await;
    let mut peer = server.client().await;
    let (class, message) = peer.refused(RemoveSubscriptionInfo::default()).await;
    assert_eq!(class, "javax.jms.InvalidDestinationException");
    assert!(message.contains("durable subscriptions are not offered"), "{message}");
}
