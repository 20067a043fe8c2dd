//! The end of durable subscriptions, and what there is to end.

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::provider::ProviderError;
use corriere_core::{AcknowledgeMode, Destination, Error, Session};

use crate::support::{TestBroker, first, firsts, now, nth, see, send_text, within};

fn topic() -> Destination {
    Destination::topic("news").unwrap()
}

/// A session of the client `reader`, on a connection of its own.
async fn reader(broker: &TestBroker, mode: AcknowledgeMode) -> Session {
    let factory = broker.factory("jms.clientID=reader&jms.prefetchPolicy.all=10");
    let connection = within(factory.create_connection()).await.unwrap();
    connection.start().unwrap();
    connection.create_session(mode).await.unwrap()
}

fn assert_in_use(outcome: Result<(), Error>) {
    match outcome.unwrap_err() {
        Error::Provider(ProviderError::SubscriptionInUse { name, client_id, holder }) => {
            assert_eq!((name.as_str(), client_id.as_str()), ("daily", "reader"));
            assert!(!holder.is_empty());
        }
        other => panic!("{other:?}"),
    }
}

/// C-33 (a).
#[tokio::test]
async fn a_subscription_that_there_is_not_is_no_subscription_to_remove() {
    let broker = TestBroker::start();
    let session = reader(&broker, Auto).await;
    let consumer = session.create_durable_consumer(&topic(), "daily").await.unwrap();
    let refused = within(session.unsubscribe("dayly")).await.unwrap_err();
    let Error::Provider(ProviderError::UnknownSubscription { name, nearest, .. }) = &refused else {
        panic!("{refused:?}");
    };
    assert_eq!((name.as_str(), nearest.as_deref()), ("dayly", Some("daily")));
    // That of another client is none of this one's either.
    let other = broker.factory("jms.clientID=other").create_connection().await.unwrap();
    let others = other.create_session(Auto).await.unwrap();
    let refused = within(others.unsubscribe("daily")).await.unwrap_err();
    assert!(matches!(refused, Error::Provider(ProviderError::UnknownSubscription { .. })), "{refused:?}");
    broker.send_numbered(&topic(), 2).await;
    assert_eq!(see(&consumer, 2).await, firsts(1..=2), "what is there is untouched");
    consumer.close().await.unwrap();
    within(session.unsubscribe("daily")).await.unwrap();
    let again = within(session.unsubscribe("daily")).await.unwrap_err();
    assert!(matches!(again, Error::Provider(ProviderError::UnknownSubscription { .. })), "{again:?}");
    assert!(broker.broker.durable_subscriptions().is_empty());
}

/// C-33 (b), while a consumer has it.
#[tokio::test]
async fn a_subscription_that_a_consumer_has_cannot_be_removed_and_goes_on() {
    let broker = TestBroker::start();
    let session = reader(&broker, Client).await;
    let consumer = session.create_durable_consumer(&topic(), "daily").await.unwrap();
    broker.send_numbered(&topic(), 2).await;
    assert_eq!(see(&consumer, 1).await, firsts(1..=1));
    assert_in_use(within(session.unsubscribe("daily")).await);
    let second = session.create_durable_consumer(&topic(), "daily").await.map(drop);
    assert_in_use(second);
    assert_eq!(see(&consumer, 1).await, firsts(2..=2));
    broker.send(&topic(), ["m3"]).await;
    assert_eq!(see(&consumer, 1).await, firsts(3..=3), "it still gets messages");
    session.acknowledge().await.unwrap();
    consumer.close().await.unwrap();
    broker.send(&topic(), ["m4"]).await;
    let consumer = session.create_durable_consumer(&topic(), "daily").await.unwrap();
    assert_eq!(see(&consumer, 1).await, firsts(4..=4), "also while nobody is there");
    session.acknowledge().await.unwrap();
    consumer.close().await.unwrap();
    within(session.unsubscribe("daily")).await.unwrap();
}

/// C-33 (b), while a message that was received is in an open transaction.
#[tokio::test]
async fn a_subscription_of_which_an_open_transaction_has_a_message_cannot_be_removed_and_goes_on() {
    for commits in [true, false] {
        let broker = TestBroker::start();
        let session = reader(&broker, Transacted).await;
        let consumer = session.create_durable_consumer(&topic(), "daily").await.unwrap();
        broker.send_numbered(&topic(), 2).await;
        assert_eq!(see(&consumer, 1).await, firsts(1..=1));
        // It is the transaction's, though its consumer is closed.
        consumer.close().await.unwrap();
        assert_in_use(within(session.unsubscribe("daily")).await);
        send_text(&session, &topic(), "m3").await;
        if commits {
            session.commit().await.unwrap();
        } else {
            session.rollback().await.unwrap();
        }
        let consumer = session.create_durable_consumer(&topic(), "daily").await.unwrap();
        let expected = if commits { vec![first("m2"), first("m3")] } else { vec![nth("m1", 2), first("m2")] };
        assert_eq!(see(&consumer, 2).await, expected, "commits: {commits}");
        assert_eq!(now(&consumer).await, None);
        session.commit().await.unwrap();
        consumer.close().await.unwrap();
        within(session.unsubscribe("daily")).await.unwrap();
        assert!(broker.broker.durable_subscriptions().is_empty());
    }
}

/// C-33 (d).
#[tokio::test]
async fn without_a_client_id_there_is_no_durable_subscription() {
    let broker = TestBroker::start();
    let session = broker.session(Auto).await;
    for refused in [
        within(session.create_durable_consumer(&topic(), "daily")).await.map(drop).unwrap_err(),
        within(session.unsubscribe("daily")).await.unwrap_err(),
    ] {
        assert!(matches!(refused, Error::IllegalState { .. }), "{refused:?}");
        assert!(refused.to_string().contains("jms.clientID"), "{refused}");
    }
    assert!(broker.broker.durable_subscriptions().is_empty());
    broker.send(&topic(), ["m1"]).await;
    let consumer = session.create_consumer(&topic()).await.unwrap();
    broker.send(&topic(), ["m2"]).await;
    assert_eq!(see(&consumer, 1).await, [first("m2")], "the session is usable");
}
