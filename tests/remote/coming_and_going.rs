//! A durable subscriber that is there now and then.

use corriere_core::AcknowledgeMode::Auto;
use corriere_core::provider::ProviderError;
use corriere_core::{Connection, Error};

use crate::peer::{AT_ONCE, Peer, firsts, see, send_text, within};

over_each_peer! {
    a_durable_subscriber_that_comes_and_goes_gets_every_message_once_and_in_order,
}

const MESSAGES: usize = 30;

/// C-33 (e).
async fn a_durable_subscriber_that_comes_and_goes_gets_every_message_once_and_in_order(peer: &Peer) {
    let news = peer.topic("news");
    let client_id = peer.queue("reader").name().to_owned();
    let options = format!("{AT_ONCE}&jms.clientID={client_id}");
    let sender = peer.session(Auto).await;
    // The subscription is there before anything is sent.
    drop_in(peer, &options, 0).await;
    // The other broker shows with few what is expected of ours.
    let runs = if peer.is_ours() { 75 } else { 5 };
    for run in 0..runs {
        let sending = async {
            for number in 1..=MESSAGES {
                send_text(&sender, &news, &format!("m{number}")).await;
                tokio::task::yield_now().await;
            }
        };
        let receiving = async {
            let mut seen = Vec::new();
            while seen.len() < MESSAGES {
                seen.extend(drop_in(peer, &options, 2).await);
            }
            seen
        };
        let ((), seen) = within(async { tokio::join!(sending, receiving) }).await;
        assert_eq!(seen, firsts(1..=MESSAGES), "run {run}");
    }
    let connection = connect(peer, &options).await;
    let session = within(connection.create_session(Auto)).await.unwrap();
    within(session.unsubscribe("daily")).await.unwrap();
    within(connection.close()).await.unwrap();
}

/// Comes, takes so many messages, and goes.
async fn drop_in(peer: &Peer, options: &str, count: usize) -> Vec<crate::peer::Seen> {
    let connection = connect(peer, options).await;
    let session = within(connection.create_session(Auto)).await.unwrap();
    let consumer = within(session.create_durable_consumer(&peer.topic("news"), "daily")).await.unwrap();
    let seen = see(&consumer, count).await;
    within(connection.close()).await.unwrap();
    seen
}

/// Another broker may need a moment to see that a connection was closed.
async fn connect(peer: &Peer, options: &str) -> Connection {
    loop {
        match within(peer.factory(options).create_connection()).await {
            Ok(connection) => {
                connection.start().unwrap();
                return connection;
            }
            Err(Error::Provider(ProviderError::ClientIdInUse { .. })) => tokio::task::yield_now().await,
            Err(other) => panic!("{other}"),
        }
    }
}
