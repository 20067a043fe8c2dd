//! Durable subscriptions.

use corriere_core::AcknowledgeMode::{Auto, Client, DupsOk, Individual, Transacted};
use corriere_core::provider::ProviderError;
use corriere_core::{ConsumerOptions, Error};

use crate::peer::{AT_ONCE, Peer, first, firsts, next, nth, see, send_text, within};

over_each_peer! {
    what_comes_while_nobody_consumes_is_kept,
    a_subscriber_goes_on_where_it_was_in_each_mode,
    what_was_rolled_back_comes_again_counted,
    an_end_drops_what_was_kept,
    what_is_not_there_or_in_use_is_not_ended,
    one_consumer_has_it_and_then_another,
    a_client_id_is_one_connections,
    without_a_client_id_there_is_none,
    ones_own_messages_are_left_out,
}

async fn what_comes_while_nobody_consumes_is_kept(peer: &Peer) {
    let prices = peer.topic("prices");
    peer.send_numbered(&prices, 1).await;
    let (_connection, session) = peer.session_of("billing", Auto).await;
    let consumer = within(session.create_durable_consumer(&prices, "audit")).await.unwrap();
    within(consumer.close()).await.unwrap();
    peer.send_numbered(&prices, 3).await;
    let consumer = within(session.create_durable_consumer(&prices, "audit")).await.unwrap();
    assert_eq!(see(&consumer, 3).await, firsts(1..=3));
    peer.send_numbered(&prices, 2).await;
    assert_eq!(see(&consumer, 2).await, firsts(1..=2));
    within(consumer.close()).await.unwrap();
    within(session.unsubscribe("audit")).await.unwrap();
}

async fn a_subscriber_goes_on_where_it_was_in_each_mode(peer: &Peer) {
    let prices = peer.topic("prices");
    for mode in [Auto, Client, DupsOk, Individual, Transacted] {
        let (connection, session) = peer.session_of("billing", mode).await;
        let consumer = within(session.create_durable_consumer(&prices, "audit")).await.unwrap();
        peer.send_numbered(&prices, 5).await;
        for number in 1..=3 {
            let delivery = next(&consumer).await;
            match mode {
                Individual => within(delivery.acknowledge()).await.unwrap(),
                Client if number == 3 => within(delivery.acknowledge()).await.unwrap(),
                Transacted if number == 3 => within(session.commit()).await.unwrap(),
                _ => {}
            }
        }
        let settles_by_itself = matches!(mode, Auto | DupsOk);
        if !settles_by_itself {
            assert_eq!(see(&consumer, 1).await, firsts(4..=4));
        }
        within(connection.close()).await.unwrap();
        let (connection, session) = peer.session_of("billing", Auto).await;
        let consumer = within(session.create_durable_consumer(&prices, "audit")).await.unwrap();
        let fourth = if settles_by_itself { first("m4") } else { nth("m4", 2) };
        assert_eq!(see(&consumer, 2).await, [fourth, first("m5")], "{mode:?}");
        within(consumer.close()).await.unwrap();
        within(session.unsubscribe("audit")).await.unwrap();
        within(connection.close()).await.unwrap();
    }
}

async fn what_was_rolled_back_comes_again_counted(peer: &Peer) {
    let prices = peer.topic("prices");
    let (_connection, session) = peer.session_of("billing", Transacted).await;
    let consumer = within(session.create_durable_consumer(&prices, "audit")).await.unwrap();
    peer.send_numbered(&prices, 3).await;
    assert_eq!(see(&consumer, 2).await, firsts(1..=2));
    within(session.rollback()).await.unwrap();
    assert_eq!(see(&consumer, 3).await, [nth("m1", 2), nth("m2", 2), first("m3")]);
    within(session.commit()).await.unwrap();
    within(consumer.close()).await.unwrap();
    within(session.unsubscribe("audit")).await.unwrap();
}

async fn an_end_drops_what_was_kept(peer: &Peer) {
    let prices = peer.topic("prices");
    let (_connection, session) = peer.session_of("billing", Auto).await;
    let consumer = within(session.create_durable_consumer(&prices, "audit")).await.unwrap();
    within(consumer.close()).await.unwrap();
    peer.send_numbered(&prices, 3).await;
    within(session.unsubscribe("audit")).await.unwrap();
    let consumer = within(session.create_durable_consumer(&prices, "audit")).await.unwrap();
    let sending = peer.session(Auto).await;
    send_text(&sending, &prices, "later").await;
    assert_eq!(see(&consumer, 1).await, [first("later")]);
    within(consumer.close()).await.unwrap();
    within(session.unsubscribe("audit")).await.unwrap();
}

async fn what_is_not_there_or_in_use_is_not_ended(peer: &Peer) {
    let prices = peer.topic("prices");
    let (_connection, session) = peer.session_of("billing", Auto).await;
    let error = within(session.unsubscribe("audit")).await.unwrap_err();
    assert!(matches!(error, Error::Provider(ProviderError::UnknownSubscription { .. })), "{error:?}");
    let consumer = within(session.create_durable_consumer(&prices, "audit")).await.unwrap();
    let error = within(session.unsubscribe("audit")).await.unwrap_err();
    assert!(matches!(error, Error::Provider(ProviderError::SubscriptionInUse { .. })), "{error:?}");
    peer.send_numbered(&prices, 1).await;
    assert_eq!(see(&consumer, 1).await, firsts(1..=1));
    within(consumer.close()).await.unwrap();
    within(session.unsubscribe("audit")).await.unwrap();
}

async fn one_consumer_has_it_and_then_another(peer: &Peer) {
    let prices = peer.topic("prices");
    let (_connection, session) = peer.session_of("billing", Auto).await;
    let consumer = within(session.create_durable_consumer(&prices, "audit")).await.unwrap();
    let error = within(session.create_durable_consumer(&prices, "audit")).await.unwrap_err();
    assert!(matches!(error, Error::Provider(ProviderError::SubscriptionInUse { .. })), "{error:?}");
    peer.send_numbered(&prices, 1).await;
    assert_eq!(see(&consumer, 1).await, firsts(1..=1));
    within(consumer.close()).await.unwrap();
    let consumer = within(session.create_durable_consumer(&prices, "audit")).await.unwrap();
    within(consumer.close()).await.unwrap();
    within(session.unsubscribe("audit")).await.unwrap();
}

async fn a_client_id_is_one_connections(peer: &Peer) {
    let (connection, _session) = peer.session_of("billing", Auto).await;
    let error = within(peer.factory(&peer.client_id("billing")).create_connection()).await.unwrap_err();
    assert!(matches!(error, Error::Provider(ProviderError::ClientIdInUse { .. })), "{error:?}");
    within(connection.close()).await.unwrap();
    peer.session_of("billing", Auto).await;
}

async fn without_a_client_id_there_is_none(peer: &Peer) {
    let prices = peer.topic("prices");
    let session = peer.session(Auto).await;
    let error = within(session.create_durable_consumer(&prices, "audit")).await.unwrap_err();
    assert!(matches!(error, Error::IllegalState { .. }), "{error:?}");
    let error = within(session.unsubscribe("audit")).await.unwrap_err();
    assert!(matches!(error, Error::IllegalState { .. }), "{error:?}");
}

async fn ones_own_messages_are_left_out(peer: &Peer) {
    let prices = peer.topic("prices");
    let connection = peer.connect(&format!("{AT_ONCE}&{}", peer.client_id("billing"))).await;
    let session = within(connection.create_session(Auto)).await.unwrap();
    let options = ConsumerOptions { no_local: true, ..ConsumerOptions::default() };
    let consumer = within(session.create_durable_consumer_with(&prices, "audit", &options)).await.unwrap();
    send_text(&session, &prices, "own").await;
    peer.send_numbered(&prices, 1).await;
    assert_eq!(see(&consumer, 1).await, firsts(1..=1));
    within(consumer.close()).await.unwrap();
    within(session.unsubscribe("audit")).await.unwrap();
}
