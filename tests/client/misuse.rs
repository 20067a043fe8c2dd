//! Calls at the wrong time (C-12): a typed error, and the session is usable after it.

use corriere_core::AcknowledgeMode::{Auto, Client, DupsOk, Individual, Transacted};
use corriere_core::provider::{Capabilities, Capability, ProviderConnection, ProviderError, ProviderScheme};
use corriere_core::{ConnectionFactory, Error, Message, MessageError, Priority, SendOptions};
use corriere_tests::wrapped::{Between, wrapped};

use crate::support::{TestBroker, first, next, queue, see, send_text};

fn is_illegal(error: &Error, words: &str) {
    assert!(matches!(error, Error::IllegalState { .. }), "{error:?}");
    assert!(error.to_string().contains(words), "{error}");
}

/// C-12.
#[tokio::test]
async fn a_transaction_is_ended_only_where_there_are_transactions() {
    let broker = TestBroker::start();
    let q = queue("q");
    for mode in [Auto, Client] {
        let session = broker.session(mode).await;
        is_illegal(
            &session.commit().await.unwrap_err(),
            "commit is not possible: the session is not transacted",
        );
        is_illegal(
            &session.rollback().await.unwrap_err(),
            "rollback is not possible: the session is not transacted",
        );
        send_text(&session, &q, "m").await;
    }
    assert_eq!(broker.drain(&q).await, [first("m"), first("m")]);
}

/// C-12.
#[tokio::test]
async fn a_transacted_session_is_rolled_back_and_not_recovered() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 1).await;
    let session = broker.session(Transacted).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let m1 = next(&consumer).await;
    is_illegal(&session.recover().await.unwrap_err(), "roll back instead");
    // These do nothing there, as the specification has it.
    session.acknowledge().await.unwrap();
    m1.acknowledge().await.unwrap();
    assert_eq!(broker.counts(&q).acknowledged, 0);
    session.commit().await.unwrap();
    assert_eq!(broker.counts(&q).acknowledged, 1);
}

#[tokio::test]
async fn an_end_without_a_beginning_is_fine() {
    let broker = TestBroker::start();
    let session = broker.session(Transacted).await;
    for _ in 0..3 {
        session.commit().await.unwrap();
        session.rollback().await.unwrap();
    }
}

/// C-12.
#[tokio::test]
async fn a_send_to_nowhere_is_an_invalid_destination() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let producer = session.create_producer(None).await.unwrap();
    let error = producer.send(&Message::text("m")).await.unwrap_err();
    assert!(matches!(&error, Error::Provider(ProviderError::InvalidDestination { .. })), "{error:?}");
    producer.send_with(Some(&q), &Message::text("m"), &SendOptions::default()).await.unwrap();
    let bound = session.create_producer(Some(&q)).await.unwrap();
    let elsewhere =
        bound.send_with(Some(&queue("other")), &Message::text("m"), &SendOptions::default()).await;
    is_illegal(&elsewhere.unwrap_err(), "the producer sends to queue://q");
    bound.send_with(Some(&q), &Message::text("m"), &SendOptions::default()).await.unwrap();
    assert_eq!(broker.counts(&q).enqueued, 2);
    assert_eq!(broker.counts(&queue("other")).enqueued, 0);
}

/// C-12.
#[test]
fn a_priority_outside_zero_to_nine_is_out_of_range() {
    for level in [10, 255] {
        assert_eq!(Priority::new(level).unwrap_err(), MessageError::Priority { level });
    }
}

/// C-12.
#[tokio::test]
async fn whatever_is_closed_refuses_by_its_name_and_leaves_its_session_usable() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let producer = session.create_producer(Some(&q)).await.unwrap();
    let consumer = session.create_consumer(&q).await.unwrap();
    producer.close().await.unwrap();
    is_illegal(&producer.send(&Message::text("m")).await.unwrap_err(), "the producer is closed");
    consumer.close().await.unwrap();
    is_illegal(&consumer.receive().await.unwrap_err(), "the consumer is closed");
    is_illegal(&consumer.receive_no_wait().await.unwrap_err(), "the consumer is closed");
    is_illegal(&consumer.take().await.unwrap_err(), "the consumer is closed");
    is_illegal(&consumer.set_message_listener(|_| async { Ok(()) }).unwrap_err(), "the consumer is closed");
    send_text(&session, &q, "m").await;
    let again = session.create_consumer(&q).await.unwrap();
    assert_eq!(see(&again, 1).await, [first("m")]);

    session.close().await.unwrap();
    is_illegal(&session.acknowledge().await.unwrap_err(), "the session is closed");
    is_illegal(&session.recover().await.unwrap_err(), "the session is closed");
    is_illegal(&session.commit().await.unwrap_err(), "the session is closed");
    is_illegal(&session.rollback().await.unwrap_err(), "the session is closed");
    is_illegal(&session.create_consumer(&q).await.unwrap_err(), "the session is closed");
    is_illegal(&session.create_producer(None).await.unwrap_err(), "the session is closed");
    let send = session.send(&q, &Message::text("m"), &SendOptions::default()).await;
    is_illegal(&send.unwrap_err(), "the session is closed");
    is_illegal(&again.receive().await.unwrap_err(), "is closed");
    let other = session.connection().create_session(Auto).await.unwrap();
    send_text(&other, &q, "m").await;
    session.connection().close().await.unwrap();
    is_illegal(&other.create_producer(None).await.unwrap_err(), "is closed");
}

#[tokio::test]
async fn what_a_provider_cannot_do_is_refused_before_it_is_asked() {
    let broker = TestBroker::start();
    let factory = ConnectionFactory::from_url(&format!("poor://{}", broker.broker.name())).unwrap();
    let connection = factory.create_connection().await.unwrap();
    for (mode, capability) in
        [(DupsOk, Capability::DupsOkAcknowledge), (Individual, Capability::IndividualAcknowledge)]
    {
        let error = connection.create_session(mode).await.unwrap_err();
        assert_eq!(error, Error::Unsupported(capability));
        assert!(error.to_string().contains(&capability.to_string()), "{error}");
    }
    let session = connection.create_session(Auto).await.unwrap();
    let browser = session.create_browser(&queue("q")).await.unwrap_err();
    assert_eq!(browser, Error::Unsupported(Capability::Browse));
    for refused in [session.create_temporary_queue().await, session.create_temporary_topic().await] {
        assert_eq!(refused.unwrap_err(), Error::Unsupported(Capability::TemporaryDestinations));
    }
    assert!(broker.broker.destinations().is_empty());
    send_text(&session, &queue("q"), "m").await;
}

inventory::submit! {
    ProviderScheme { scheme: "poor", open: |name| wrapped(name, || Poor) }
}

/// Says of itself that it can do nothing beyond the least.
#[derive(Debug)]
struct Poor;

impl Between for Poor {
    fn capabilities(&self, _: &dyn ProviderConnection) -> Capabilities {
        Capabilities::default()
    }
}
