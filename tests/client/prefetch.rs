//! How much a consumer may have ahead: where it comes from, and how it changes.

use corriere_core::AcknowledgeMode::{Auto, Client, Individual, Transacted};
use corriere_core::{ConsumerOptions, Destination, Error};

use crate::support::{TestBroker, firsts, next, queue, see, within};

fn destination(name: &str) -> Destination {
    name.parse().unwrap()
}

#[tokio::test]
async fn the_prefetch_is_the_consumers_own_or_its_destinations_or_its_factorys_or_that_of_its_kind() {
    let broker = TestBroker::start();
    for (options, name, own, expected) in [
        ("", "queue://q", None, 100),
        ("", "topic://t", None, 1000),
        ("jms.prefetchPolicy.queuePrefetch=7&jms.prefetchPolicy.topicPrefetch=8", "queue://q", None, 7),
        ("jms.prefetchPolicy.queuePrefetch=7&jms.prefetchPolicy.topicPrefetch=8", "topic://t", None, 8),
        ("jms.prefetchPolicy.all=7", "queue://q?consumer.prefetchSize=3", None, 3),
        ("jms.prefetchPolicy.all=7", "queue://q?consumer.prefetchSize=3", Some(2), 2),
        ("jms.prefetchPolicy.all=7", "queue://q", Some(0), 0),
    ] {
        let connection = broker.factory(options).create_connection().await.unwrap();
        let session = connection.create_session(Auto).await.unwrap();
        let own = ConsumerOptions { prefetch: own, ..ConsumerOptions::default() };
        let consumer = session.create_consumer_with(&destination(name), &own).await.unwrap();
        assert_eq!(consumer.prefetch(), expected, "{options} {name} {own:?}");
    }
    let factory = broker.factory("");
    assert_eq!((factory.durable_prefetch(), factory.browser_prefetch()), (100, 500));
    let factory =
        broker.factory("jms.prefetchPolicy.durableTopicPrefetch=5&jms.prefetchPolicy.queueBrowserPrefetch=6");
    assert_eq!((factory.durable_prefetch(), factory.browser_prefetch()), (5, 6));
    let factory = broker.factory("jms.prefetchPolicy.all=0");
    assert_eq!(
        (factory.durable_prefetch(), factory.browser_prefetch()),
        (0, 500),
        "none browses without any"
    );
}

#[tokio::test]
async fn a_browser_is_shown_as_much_ahead_as_its_factory_says() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 20).await;
    let connection =
        broker.factory("jms.prefetchPolicy.queueBrowserPrefetch=1").create_connection().await.unwrap();
    let session = connection.create_session(Auto).await.unwrap();
    let mut browser = session.create_browser(&q).await.unwrap();
    let mut shown = 0;
    while within(browser.next()).await.unwrap().is_some() {
        shown += 1;
    }
    assert_eq!(shown, 20);
}

#[tokio::test]
async fn a_window_is_made_wider_and_narrower_while_it_is_used() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 30).await;
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer_with_prefetch(&q, 2).await.unwrap();
    assert_eq!(broker.counts(&q).in_flight, 2);
    consumer.set_prefetch(10).await.unwrap();
    assert_eq!((consumer.prefetch(), broker.counts(&q).in_flight), (10, 10));
    consumer.set_prefetch(3).await.unwrap();
    assert_eq!(broker.counts(&q).in_flight, 10, "what is under way stays with it");
    assert_eq!(see(&consumer, 8).await, firsts(1..=8));
    assert_eq!(broker.counts(&q).in_flight, 3);
    assert_eq!(see(&consumer, 22).await, firsts(9..=30));
}

#[tokio::test]
async fn a_narrower_window_does_not_stand_still_over_what_the_broker_was_not_told() {
    use corriere_core::{DeliveryMode, Message, SendOptions};
    for mode in [Client, Individual, Transacted] {
        let broker = TestBroker::start();
        let q = queue("q");
        let session = broker.session(mode).await;
        let consumer = session.create_consumer_with_prefetch(&q, 10).await.unwrap();
        let sender = broker.session(Auto).await;
        let options =
            SendOptions { delivery_mode: Some(DeliveryMode::NonPersistent), ..SendOptions::default() };
        let send = async || sender.send(&q, &Message::text("m"), &options).await.unwrap();
        for _ in 0..4 {
            send().await;
        }
        for _ in 0..4 {
            next(&consumer).await;
        }
        // Four are with the application, of which the broker was told nothing: they are less than half of ten.
        consumer.set_prefetch(4).await.unwrap();
        for _ in 0..2 {
            send().await;
        }
        for _ in 0..2 {
            next(&consumer).await;
        }
        session.acknowledge().await.unwrap();
        if mode == Transacted {
            session.commit().await.unwrap();
        }
        assert_eq!(broker.counts(&q).pending, 0, "{mode:?}");
    }
}

#[tokio::test]
async fn a_window_does_not_become_a_pull_nor_a_pull_a_window() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let window = session.create_consumer_with_prefetch(&q, 5).await.unwrap();
    let pull = session.create_consumer_with_prefetch(&q, 0).await.unwrap();
    for (consumer, prefetch, words) in [
        (&window, 0, "close this one and make one with the prefetch 0"),
        (&pull, 5, "make one with the prefetch 5"),
    ] {
        let error = consumer.set_prefetch(prefetch).await.unwrap_err();
        assert!(matches!(error, Error::IllegalState { operation: "set_prefetch", .. }), "{error:?}");
        assert!(error.to_string().contains(words), "{error}");
    }
    assert_eq!((window.prefetch(), pull.prefetch()), (5, 0));
    window.close().await.unwrap();
    let error = window.set_prefetch(1).await.unwrap_err();
    assert!(error.to_string().contains("the consumer is closed"), "{error}");
}
