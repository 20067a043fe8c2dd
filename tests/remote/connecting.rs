//! Connections that are refused, by name.

use corriere_core::provider::{Capability, ProviderError};
use corriere_core::{ConnectionFactory, Error};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::peer::{Peer, within};

over_each_peer! {
    a_client_id_is_one_connections_at_a_time,
    a_name_and_a_password_are_taken_or_refused_by_name,
    a_connection_says_what_can_be_had_of_its_peer,
}

async fn a_client_id_is_one_connections_at_a_time(peer: &Peer) {
    let client_id = peer.queue("client").name().to_owned();
    let factory = peer.factory(&format!("jms.clientID={client_id}"));
    let first = within(factory.create_connection()).await.unwrap();
    match within(factory.create_connection()).await.unwrap_err() {
        Error::Provider(ProviderError::ClientIdInUse { client_id: refused, holder }) => {
            assert_eq!(refused, client_id);
            assert!(!holder.is_empty());
        }
        other => panic!("{other}"),
    }
    within(first.close()).await.unwrap();
    within(factory.create_connection()).await.unwrap();
}

async fn a_name_and_a_password_are_taken_or_refused_by_name(peer: &Peer) {
    let connected = within(peer.factory("jms.userName=shop&jms.password=secret").create_connection()).await;
    match connected {
        Ok(connection) => assert!(connection.capabilities().has(Capability::Authentication)),
        Err(Error::Provider(ProviderError::Refused { exception, .. })) => {
            assert_eq!(exception, "java.lang.SecurityException");
        }
        Err(error) => assert_eq!(error, Error::Unsupported(Capability::Authentication)),
    }
}

async fn a_connection_says_what_can_be_had_of_its_peer(peer: &Peer) {
    let capabilities = peer.connect("").await.capabilities();
    assert_eq!(capabilities.has(Capability::BrokerRedelivery), peer.is_ours());
    assert_eq!(capabilities.has(Capability::Authentication), !peer.is_ours());
    assert!(capabilities.has(Capability::IndividualAcknowledge));
    assert!(capabilities.has(Capability::DurableSubscriptions));
    assert!(capabilities.has(Capability::Browse) && capabilities.has(Capability::ExplicitCredit));
}

async fn refusal(url: &str) -> String {
    match within(ConnectionFactory::from_url(url).unwrap().create_connection()).await.unwrap_err() {
        Error::Provider(ProviderError::Unreachable { url: named, reason }) => {
            assert_eq!(named, url);
            reason
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn an_address_where_nobody_listens_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("tcp://{}", listener.local_addr().unwrap());
    drop(listener);
    let reason = refusal(&url).await;
    assert!(reason.to_lowercase().contains("refused"), "{reason}");
}

#[tokio::test]
async fn who_speaks_something_else_is_no_broker() {
    for (said, expected) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "does not speak OpenWire"),
        (b"\0\0\0\x01\x0a", "does not speak OpenWire"),
        (b"", "closed"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("tcp://{}", listener.local_addr().unwrap());
        let answering = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(said).await.unwrap();
            stream.shutdown().await.unwrap();
            // It is read to its end, so that closing it resets nothing.
            tokio::io::copy(&mut stream, &mut tokio::io::sink()).await.unwrap();
        };
        let (reason, ()) = tokio::join!(refusal(&url), answering);
        assert!(reason.contains(expected), "{reason}");
    }
}

#[tokio::test]
async fn an_address_without_a_port_is_refused_with_the_form_that_it_should_have() {
    let factory = ConnectionFactory::from_url("tcp://localhost").unwrap();
    let error = within(factory.create_connection()).await.unwrap_err();
    assert!(matches!(error, Error::Provider(ProviderError::Address { .. })), "{error}");
    assert_eq!(error.to_string(), "`tcp://localhost` is no address of a broker; expected `tcp://HOST:PORT`");
}
