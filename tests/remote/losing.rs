//! A broker that dies.

use corriere_core::AcknowledgeMode::{Client, Transacted};
use corriere_core::provider::ProviderError;
use corriere_core::{Error, Message, SendOptions};

use crate::peer::{AT_ONCE, Peer, next, within};

fn assert_lost<T: std::fmt::Debug>(outcome: Result<T, Error>) {
    match outcome.unwrap_err() {
        Error::Provider(error) => assert!(error.ends_connection(), "{error}"),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn whoever_waits_is_told_that_the_broker_died_and_whoever_comes_later_too() {
    let (peer, broker) = Peer::mortal_activemq();
    let q = peer.queue("q");
    peer.send_numbered(&q, 1).await;
    let connection = peer.connect(AT_ONCE).await;
    let session = within(connection.create_session(Client)).await.unwrap();
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    let pulling = within(session.create_consumer_with_prefetch(&peer.queue("other"), 0)).await.unwrap();
    let transacted = within(connection.create_session(Transacted)).await.unwrap();
    within(transacted.send(&q, &Message::text("m"), &SendOptions::default())).await.unwrap();
    let received = next(&consumer).await;
    let waiting = async {
        let (one, other) = tokio::join!(consumer.receive(), pulling.receive());
        assert_lost(one);
        assert_lost(other);
    };
    let dying = async {
        tokio::task::yield_now().await;
        broker.kill();
    };
    within(async { tokio::join!(waiting, dying) }).await;
    assert!(!connection.is_open());
    assert_lost(within(session.send(&q, &Message::text("m"), &SendOptions::default())).await);
    assert_lost(within(received.acknowledge()).await);
    assert_lost(within(transacted.commit()).await);
    assert_lost(within(connection.create_session(Client)).await);
    within(connection.close()).await.unwrap();
    let refused = within(peer.factory("").create_connection()).await.unwrap_err();
    assert!(matches!(refused, Error::Provider(ProviderError::Unreachable { .. })), "{refused}");
}
