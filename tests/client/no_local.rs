//! Consumers of a topic that leave out what their own connection sends.

use corriere_core::AcknowledgeMode::{Auto, Transacted};
use corriere_core::{ConsumerOptions, Destination};

use crate::support::{TestBroker, now, queue, send_text};

const NO_LOCAL: ConsumerOptions = ConsumerOptions { prefetch: None, no_local: true };

#[tokio::test]
async fn what_the_own_connection_sends_is_left_out_and_the_rest_is_not() {
    let broker = TestBroker::start();
    let prices = Destination::topic("prices").unwrap();
    let connection = broker.connect().await;
    let session = connection.create_session(Auto).await.unwrap();
    let beside = connection.create_session(Auto).await.unwrap();
    let other = broker.session(Auto).await;
    let consumer = session.create_consumer_with(&prices, &NO_LOCAL).await.unwrap();
    let plain = session.create_consumer(&prices).await.unwrap();
    for (session, text) in [(&session, "own"), (&beside, "beside"), (&other, "other")] {
        send_text(session, &prices, text).await;
    }
    assert_eq!(now(&consumer).await.as_deref(), Some("other"));
    assert_eq!(now(&consumer).await, None);
    for text in ["own", "beside", "other"] {
        assert_eq!(now(&plain).await.as_deref(), Some(text));
    }
}

#[tokio::test]
async fn what_the_own_connection_commits_is_left_out() {
    let broker = TestBroker::start();
    let prices = Destination::topic("prices").unwrap();
    let connection = broker.connect().await;
    let consumer = connection.create_session(Auto).await.unwrap();
    let consumer = consumer.create_consumer_with(&prices, &NO_LOCAL).await.unwrap();
    let own = connection.create_session(Transacted).await.unwrap();
    let other = broker.session(Transacted).await;
    for (session, text) in [(&own, "own"), (&other, "other")] {
        send_text(session, &prices, text).await;
        session.commit().await.unwrap();
    }
    assert_eq!(now(&consumer).await.as_deref(), Some("other"));
    assert_eq!(now(&consumer).await, None);
}

#[tokio::test]
async fn a_consumer_of_a_queue_gets_what_its_own_connection_sends_all_the_same() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let options = ConsumerOptions { prefetch: Some(0), ..NO_LOCAL };
    let consumer = session.create_consumer_with(&q, &options).await.unwrap();
    send_text(&session, &q, "own").await;
    assert!(!consumer.has_backlog(), "it pulls, as its options say");
    assert_eq!(now(&consumer).await.as_deref(), Some("own"));
}
