//! Durable subscriptions.

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::provider::ProviderError;
use corriere_core::{AcknowledgeMode, ConsumerOptions, Destination, Error, Session};

use crate::support::{TestBroker, firsts, next, now, nth, queue, see, within};

fn topic() -> Destination {
    Destination::topic("prices").unwrap()
}

/// A session of the client `auditor`.
async fn session(broker: &TestBroker, mode: AcknowledgeMode) -> Session {
    let connection = broker.factory("jms.clientID=auditor").create_connection().await.unwrap();
    connection.start().unwrap();
    connection.create_session(mode).await.unwrap()
}

#[tokio::test]
async fn what_is_published_while_nobody_consumes_waits_for_the_subscription() {
    let broker = TestBroker::start();
    let first = session(&broker, Auto).await;
    let consumer = first.create_durable_consumer(&topic(), "audit").await.unwrap();
    assert_eq!(consumer.prefetch(), 100);
    first.connection().close().await.unwrap();
    broker.send_numbered(&topic(), 3).await;
    let again = session(&broker, Auto).await;
    let consumer = again.create_durable_consumer(&topic(), "audit").await.unwrap();
    assert_eq!(see(&consumer, 3).await, firsts(1..=3));
    again.connection().close().await.unwrap();
    let nothing_left = session(&broker, Auto).await;
    let consumer = nothing_left.create_durable_consumer(&topic(), "audit").await.unwrap();
    assert_eq!(now(&consumer).await, None);
}

#[tokio::test]
async fn what_was_received_and_not_acknowledged_comes_again_to_the_subscription() {
    let broker = TestBroker::start();
    let first = session(&broker, Client).await;
    let consumer = first.create_durable_consumer(&topic(), "audit").await.unwrap();
    broker.send_numbered(&topic(), 2).await;
    next(&consumer).await;
    first.connection().close().await.unwrap();
    let again = session(&broker, Auto).await;
    let consumer = again.create_durable_consumer(&topic(), "audit").await.unwrap();
    assert_eq!(see(&consumer, 2).await, [nth("m1", 2), crate::support::first("m2")]);
}

/// C-33 (a).
#[tokio::test]
async fn unsubscribing_what_is_not_there_is_refused_by_name() {
    let broker = TestBroker::start();
    let session = session(&broker, Auto).await;
    drop(session.create_durable_consumer(&topic(), "audit").await.unwrap());
    match session.unsubscribe("audti").await.unwrap_err() {
        Error::Provider(ProviderError::UnknownSubscription { name, client_id, nearest }) => {
            assert_eq!((name.as_str(), client_id.as_str()), ("audti", "auditor"));
            assert_eq!(nearest.as_deref(), Some("audit"));
        }
        other => panic!("{other:?}"),
    }
}

/// C-33 (b).
#[tokio::test]
async fn a_subscription_that_is_used_is_not_removed_and_goes_on() {
    let broker = TestBroker::start();
    let session = session(&broker, Transacted).await;
    let consumer = session.create_durable_consumer(&topic(), "audit").await.unwrap();
    let in_use = |error: Error| {
        assert!(matches!(error, Error::Provider(ProviderError::SubscriptionInUse { .. })), "{error:?}");
    };
    in_use(session.unsubscribe("audit").await.unwrap_err());
    broker.send_numbered(&topic(), 2).await;
    next(&consumer).await;
    consumer.close().await.unwrap();
    // The message is the session's still, in a transaction that is open.
    in_use(session.unsubscribe("audit").await.unwrap_err());
    session.commit().await.unwrap();
    let again = session.create_durable_consumer(&topic(), "audit").await.unwrap();
    assert_eq!(see(&again, 1).await, [crate::support::first("m2")]);
    session.commit().await.unwrap();
    again.close().await.unwrap();
    session.unsubscribe("audit").await.unwrap();
    broker.send_numbered(&topic(), 1).await;
    let anew = session.create_durable_consumer(&topic(), "audit").await.unwrap();
    assert_eq!(now(&anew).await, None, "it is another one");
}

/// C-33 (d).
#[tokio::test]
async fn without_a_client_id_there_are_no_durable_subscriptions() {
    let broker = TestBroker::start();
    let session = broker.session(Auto).await;
    for (operation, refused) in [
        ("create_durable_consumer", session.create_durable_consumer(&topic(), "audit").await.map(drop)),
        ("unsubscribe", session.unsubscribe("audit").await),
    ] {
        let error = refused.unwrap_err();
        assert!(error.to_string().starts_with(&format!("{operation} is not possible: ")), "{error}");
        match error {
            Error::IllegalState { operation: named, reason } => {
                assert_eq!(named, operation);
                assert!(reason.contains("jms.clientID"), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_durable_subscription_is_to_a_topic_that_stays_and_has_a_name() {
    let broker = TestBroker::start();
    let session = session(&broker, Auto).await;
    let temporary = session.create_temporary_topic().await.unwrap();
    for destination in [&queue("q"), temporary.destination()] {
        let error = session.create_durable_consumer(destination, "audit").await.unwrap_err();
        assert!(matches!(error, Error::Provider(ProviderError::InvalidDestination { .. })), "{error:?}");
    }
    for name in ["", "a\nb", &"n".repeat(1_025)] {
        let error = session.create_durable_consumer(&topic(), name).await.unwrap_err();
        assert!(
            matches!(error, Error::IllegalState { operation: "create_durable_consumer", .. }),
            "{error:?}"
        );
        let error = session.unsubscribe(name).await.unwrap_err();
        assert!(matches!(error, Error::IllegalState { operation: "unsubscribe", .. }), "{error:?}");
        assert!(!error.to_string().contains('\n') && error.to_string().len() < 200, "{error}");
    }
    assert!(broker.broker.durable_subscriptions().is_empty());
}

/// One that a broker behind a wire would have no room for, or that would be two lines in a log.
#[tokio::test]
async fn a_client_id_that_not_every_broker_takes_is_refused_before_anybody_is_asked() {
    let broker = TestBroker::start();
    for (id, expected) in [
        ("a\nb", "`a\\nb` cannot be a client id: it holds a control character"),
        (" ", "` ` cannot be a client id: it is empty"),
        (&"i".repeat(1_025), "cannot be a client id: it is longer than 1,024 bytes"),
    ] {
        let error = broker.factory("").with_client_id(id).create_connection().await.unwrap_err();
        assert!(matches!(error, Error::IllegalState { operation: "create_connection", .. }), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn a_second_consumer_of_a_subscription_is_refused_while_the_first_is_there() {
    let broker = TestBroker::start();
    let session = session(&broker, Auto).await;
    let first = session.create_durable_consumer(&topic(), "audit").await.unwrap();
    let error = session.create_durable_consumer(&topic(), "audit").await.unwrap_err();
    assert!(matches!(error, Error::Provider(ProviderError::SubscriptionInUse { .. })), "{error:?}");
    broker.send_numbered(&topic(), 1).await;
    assert_eq!(see(&first, 1).await, firsts(1..=1), "the first goes on");
}

/// Jakarta Messaging 3.1, section 8.3.3.
#[tokio::test]
async fn another_topic_makes_the_subscription_anew() {
    let broker = TestBroker::start();
    let session = session(&broker, Auto).await;
    drop(session.create_durable_consumer(&topic(), "audit").await.unwrap());
    broker.send_numbered(&topic(), 2).await;
    let other = Destination::topic("other").unwrap();
    let consumer = session.create_durable_consumer(&other, "audit").await.unwrap();
    broker.send_numbered(&other, 1).await;
    assert_eq!(see(&consumer, 1).await, firsts(1..=1));
    assert_eq!(now(&consumer).await, None);
    consumer.close().await.unwrap();
    let consumer = session.create_durable_consumer(&topic(), "audit").await.unwrap();
    assert_eq!(now(&consumer).await, None, "what waited went with the first one");
}

/// C-33 (e), with 30 messages and a return after every second one.
#[tokio::test]
async fn a_subscriber_that_comes_and_goes_gets_each_message_once_and_in_order() {
    let broker = TestBroker::start();
    let first = session(&broker, Auto).await;
    drop(first.create_durable_consumer(&topic(), "audit").await.unwrap());
    first.connection().close().await.unwrap();
    let sender = broker.session(Auto).await;
    let mut seen = Vec::new();
    let mut sent = 0;
    while seen.len() < 30 {
        for _ in 0..4 {
            if sent < 30 {
                sent += 1;
                crate::support::send_text(&sender, &topic(), &format!("m{sent}")).await;
            }
        }
        let session = session(&broker, Auto).await;
        let options = ConsumerOptions { prefetch: Some(5), ..ConsumerOptions::default() };
        let consumer = session.create_durable_consumer_with(&topic(), "audit", &options).await.unwrap();
        seen.extend(see(&consumer, 2).await);
        within(session.connection().close()).await.unwrap();
    }
    assert_eq!(seen, firsts(1..=30));
}
