//! Connections: start, stop, close, and what is left of them.

use std::time::{Duration, Instant};

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::provider::ProviderError;
use corriere_core::{ConnectionFactory, Error, Message};

use crate::support::{
    HANG, Log, TestBroker, eventually, first, firsts, next, now, nth, others_run, queue, see, send_text,
    within,
};

#[tokio::test]
async fn nothing_is_received_before_start() {
    let broker = TestBroker::start();
    let q = queue("q");
    let connection = broker.factory("jms.prefetchPolicy.all=10").create_connection().await.unwrap();
    let session = connection.create_session(Auto).await.unwrap();
    let consumer = session.create_consumer(&q).await.unwrap();
    broker.send_numbered(&q, 2).await;
    assert_eq!(now(&consumer).await, None);
    assert!(consumer.has_backlog());
    connection.start().unwrap();
    assert_eq!(see(&consumer, 2).await, firsts(1..=2));
}

#[tokio::test]
async fn a_message_listener_is_not_called_before_start() {
    let broker = TestBroker::start();
    let q = queue("q");
    let connection = broker.factory("").create_connection().await.unwrap();
    let session = connection.create_session(Auto).await.unwrap();
    let consumer = session.create_consumer(&q).await.unwrap();
    consumer.set_message_listener(|_| async { Ok(()) }).unwrap();
    broker.send_numbered(&q, 1).await;
    others_run().await;
    assert_eq!(broker.counts(&q).acknowledged, 0);
    connection.start().unwrap();
    broker.until(&q, |counts| counts.acknowledged == 1).await;
}

#[tokio::test]
async fn who_forgot_to_start_is_warned_once_after_half_a_second() {
    const WARNING: &str = "is not started; call `connection.start()`";
    let (log, _guard) = Log::capture();
    let broker = TestBroker::start();
    let q = queue("q");
    let connection = broker.factory("").create_connection().await.unwrap();
    let session = connection.create_session(Auto).await.unwrap();
    let (one, other) =
        (session.create_consumer(&q).await.unwrap(), session.create_consumer(&q).await.unwrap());
    let begin = Instant::now();
    let receives = tokio::spawn(async move { tokio::join!(one.receive(), other.receive()) });
    // Messages that arrive meanwhile do not put the warning off.
    while log.lines_with(WARNING) == 0 {
        assert!(begin.elapsed() < HANG, "messages put the warning off");
        broker.send_numbered(&q, 1).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(begin.elapsed() >= Duration::from_millis(500), "{:?} is early", begin.elapsed());
    others_run().await;
    assert_eq!(log.lines_with(WARNING), 1);
    connection.start().unwrap();
    let (one, other) = within(receives).await.unwrap();
    assert!(one.unwrap().is_some() && other.unwrap().is_some());
}

#[tokio::test]
async fn stop_keeps_what_is_buffered_and_start_goes_on_with_it() {
    let broker = TestBroker::start();
    let q = queue("q");
    let connection = broker.connect().await;
    let session = connection.create_session(Auto).await.unwrap();
    let consumer = session.create_consumer(&q).await.unwrap();
    broker.send_numbered(&q, 5).await;
    assert_eq!(see(&consumer, 1).await, firsts(1..=1));
    connection.stop().unwrap();
    assert_eq!(now(&consumer).await, None);
    assert_eq!(broker.counts(&q).in_flight, 4);
    for _ in 0..1_000 {
        connection.start().unwrap();
        connection.stop().unwrap();
    }
    connection.start().unwrap();
    assert_eq!(see(&consumer, 4).await, firsts(2..=5));
}

#[tokio::test]
async fn start_wakes_every_receive_that_waits() {
    let broker = TestBroker::start();
    let q = queue("q");
    let connection = broker.factory("").create_connection().await.unwrap();
    let session = connection.create_session(Auto).await.unwrap();
    let consumer = session.create_consumer(&q).await.unwrap();
    broker.send_numbered(&q, 3).await;
    let receives = async { tokio::join!(next(&consumer), next(&consumer), next(&consumer)) };
    let start = async {
        others_run().await;
        connection.start().unwrap();
    };
    within(async { tokio::join!(receives, start) }).await;
    assert_eq!(broker.counts(&q).acknowledged, 3);
}

#[tokio::test]
async fn close_closes_all_that_the_connection_made() {
    let broker = TestBroker::start();
    let q = queue("q");
    let connection = broker.connect().await;
    let (auto, transacted) = (
        connection.create_session(Auto).await.unwrap(),
        connection.create_session(Transacted).await.unwrap(),
    );
    let producer = auto.create_producer(Some(&q)).await.unwrap();
    let consumer = transacted.create_consumer(&q).await.unwrap();
    let idle = auto.create_consumer(&queue("idle")).await.unwrap();
    broker.send_numbered(&q, 3).await;
    assert_eq!(see(&consumer, 1).await, firsts(1..=1));
    send_text(&transacted, &q, "never committed").await;

    let (waiting, closed) = within(async { tokio::join!(idle.receive(), connection.close()) }).await;
    closed.unwrap();
    assert_eq!(waiting.unwrap().map(|delivery| delivery.count()), None);
    assert!(!connection.is_open());
    let is_closed = |error: Error| assert!(matches!(error, Error::IllegalState { .. }), "{error:?}");
    is_closed(connection.start().unwrap_err());
    is_closed(connection.stop().unwrap_err());
    is_closed(connection.create_session(Auto).await.unwrap_err());
    is_closed(auto.create_consumer(&q).await.unwrap_err());
    is_closed(auto.create_producer(None).await.unwrap_err());
    is_closed(producer.send(&Message::text("late")).await.unwrap_err());
    is_closed(consumer.receive().await.unwrap_err());
    is_closed(transacted.commit().await.unwrap_err());

    assert_eq!(broker.counts(&q).in_flight, 0);
    assert_eq!(broker.drain(&q).await, [nth("m1", 2), first("m2"), first("m3")]);
}

/// C-12.
#[tokio::test]
async fn a_second_close_is_silent() {
    let broker = TestBroker::start();
    let connection = broker.connect().await;
    let session = connection.create_session(Auto).await.unwrap();
    let producer = session.create_producer(None).await.unwrap();
    let consumer = session.create_consumer(&queue("q")).await.unwrap();
    for _ in 0..2 {
        consumer.close().await.unwrap();
        producer.close().await.unwrap();
    }
    for _ in 0..2 {
        session.close().await.unwrap();
    }
    for _ in 0..2 {
        connection.close().await.unwrap();
        session.close().await.unwrap();
        consumer.close().await.unwrap();
        producer.close().await.unwrap();
    }
}

#[tokio::test]
async fn what_is_closed_after_its_connection_is_closed_silently() {
    let broker = TestBroker::start();
    let connection = broker.connect().await;
    let session = connection.create_session(Client).await.unwrap();
    let producer = session.create_producer(None).await.unwrap();
    let consumer = session.create_consumer(&queue("q")).await.unwrap();
    connection.close().await.unwrap();
    producer.close().await.unwrap();
    consumer.close().await.unwrap();
    session.close().await.unwrap();
}

#[tokio::test]
async fn an_unknown_option_broker_or_scheme_is_refused_by_name() {
    let broker = TestBroker::start();
    let error =
        ConnectionFactory::from_url("vm://local?jms.redeliveryPolicy.maximumRedelivery=1").unwrap_err();
    assert!(error.to_string().contains("jms.redeliveryPolicy.maximumRedelivery"), "{error}");
    assert!(error.to_string().contains("did you mean `jms.redeliveryPolicy.maximumRedeliveries`"), "{error}");

    let absent = ConnectionFactory::from_url("vm://nobody-at-home").unwrap();
    let error = absent.create_connection().await.unwrap_err();
    assert!(matches!(error, Error::Provider(ProviderError::Unreachable { .. })), "{error:?}");
    assert!(error.to_string().contains("vm://nobody-at-home"), "{error}");
    assert!(error.to_string().contains(broker.broker.name()), "{error}");

    let foreign = ConnectionFactory::from_url("carrier-pigeon://roof");
    assert!(foreign.unwrap_err().to_string().contains("carrier-pigeon"));
    let foreign = ConnectionFactory::from_url("pigeon://roof").unwrap();
    let error = foreign.create_connection().await.unwrap_err();
    assert!(error.to_string().contains("no provider serves `pigeon:`; there is `"), "{error}");
    assert!(error.to_string().contains("`vm:`"), "{error}");
}

#[tokio::test]
async fn a_factory_finds_a_broker_that_is_started_after_it() {
    let factory = ConnectionFactory::from_url("vm://started-later").unwrap();
    assert!(factory.create_connection().await.is_err());
    let broker = corriere_broker::Broker::start(
        "started-later",
        crate::support::settings(),
        std::sync::Arc::new(corriere_broker::store::MemoryStore),
        corriere_core::Clock::system(),
    )
    .unwrap();
    factory.create_connection().await.unwrap();
    broker.stop();
}

#[tokio::test]
async fn dropping_everything_leaves_nothing_at_the_broker() {
    let broker = TestBroker::start();
    let (q, t) = (queue("q"), corriere_core::Destination::topic("t").unwrap());
    let connection = broker.factory("jms.clientID=me").create_connection().await.unwrap();
    connection.start().unwrap();
    let session = connection.create_session(Transacted).await.unwrap();
    let producer = session.create_producer(Some(&q)).await.unwrap();
    let consumer = session.create_consumer(&q).await.unwrap();
    let subscriber = session.create_consumer(&t).await.unwrap();
    broker.send_numbered(&q, 4).await;
    broker.send(&t, ["to nobody"]).await;
    let taken = see(&consumer, 2).await;
    assert_eq!(taken, firsts(1..=2));
    producer.send(&Message::text("never committed")).await.unwrap();
    // Not in the order in which they were made.
    drop((connection, session));
    drop((subscriber, producer));
    assert_eq!(broker.counts(&q).in_flight, 4, "the consumer is there, and it keeps its session");
    drop(consumer);

    let counts = broker.counts(&q);
    assert_eq!((counts.in_flight, counts.pending, counts.enqueued), (0, 4, 4));
    assert_eq!(broker.counts(&t).pending, 0);
    assert_eq!(broker.drain(&q).await, [nth("m1", 2), nth("m2", 2), first("m3"), first("m4")]);
    // The client id is free again, so the connection is gone as well.
    broker.factory("jms.clientID=me").create_connection().await.unwrap();
}

#[tokio::test]
async fn a_delivery_keeps_its_session_open() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 1).await;
    let delivery = {
        let session = broker.session(Client).await;
        let consumer = session.create_consumer(&q).await.unwrap();
        next(&consumer).await
    };
    delivery.acknowledge().await.unwrap();
    assert!(delivery.is_settled());
    assert_eq!(broker.counts(&q).acknowledged, 1);
}

#[tokio::test]
async fn a_future_that_was_never_polled_makes_nothing() {
    let broker = TestBroker::start();
    let q = queue("q");
    let connection = broker.connect().await;
    let session = connection.create_session(Auto).await.unwrap();
    drop(session.create_consumer(&q));
    let (message, options) = (Message::text("unsent"), corriere_core::SendOptions::default());
    drop(session.send(&q, &message, &options));
    drop(connection.create_session(Transacted));
    assert_eq!(broker.broker.counts(&q), None);
}

#[tokio::test]
async fn the_end_of_the_broker_ends_every_wait() {
    let (log, _guard) = Log::capture();
    let broker = TestBroker::start();
    let q = queue("q");
    let connection = broker.connect().await;
    let session = connection.create_session(Client).await.unwrap();
    let consumer = session.create_consumer(&q).await.unwrap();
    let pulling = session.create_consumer_with_prefetch(&q, 0).await.unwrap();
    let listening = session.create_consumer(&queue("other")).await.unwrap();
    listening.set_message_listener(|_| async { Ok(()) }).unwrap();
    let stop = async {
        others_run().await;
        broker.broker.stop();
    };
    let (one, other, ()) = within(async { tokio::join!(consumer.receive(), pulling.receive(), stop) }).await;
    for outcome in [one, other] {
        assert_eq!(outcome.unwrap_err(), Error::Provider(ProviderError::Lost));
    }
    assert!(!connection.is_open());
    let error = session.send(&q, &Message::text("late"), &corriere_core::SendOptions::default()).await;
    assert_eq!(error.unwrap_err(), Error::Provider(ProviderError::Lost));
    assert_eq!(session.acknowledge().await.unwrap_err(), Error::Provider(ProviderError::Lost));
    eventually("the log", || {
        let lines = log.lines_with("a message listener gets no more messages");
        if lines == 1 { Ok(()) } else { Err(format!("{lines} lines")) }
    })
    .await;
    consumer.close().await.unwrap();
    session.close().await.unwrap();
    connection.close().await.unwrap();
}

/// C-34.
#[tokio::test]
async fn a_client_id_belongs_to_one_connection_at_a_time() {
    let broker = TestBroker::start();
    let factory = broker.factory("jms.clientID=billing");
    let connection = factory.create_connection().await.unwrap();
    let error = factory.create_connection().await.unwrap_err();
    assert!(matches!(&error, Error::Provider(ProviderError::ClientIdInUse { .. })), "{error:?}");
    assert!(error.to_string().contains("billing"), "{error}");
    assert!(error.to_string().contains(connection.id().as_str()), "{error}");
    connection.close().await.unwrap();
    factory.create_connection().await.unwrap();
}
