//! How much a consumer may have ahead: where it comes from, and how it changes.

use corriere_broker::{DestinationPolicy, Settings};
use corriere_core::AcknowledgeMode::{Auto, Client, Individual, Transacted};
use corriere_core::{Consumer, ConsumerOptions, Destination, DestinationPattern, Error};

use crate::support::{TestBroker, eventually, firsts, next, queue, see, settings, within};

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

/// A broker whose queues of these names have so many messages sent ahead, where nobody chose it.
fn policed(names: &str, prefetch: u32) -> TestBroker {
    let pattern = DestinationPattern::queue(names).unwrap();
    let policy = DestinationPolicy { prefetch: Some(prefetch), ..DestinationPolicy::new(pattern) };
    TestBroker::with(Settings { policies: vec![policy], ..settings() })
}

async fn until_prefetch(consumer: &Consumer, prefetch: u32) {
    eventually("another prefetch", || match consumer.prefetch() {
        now if now == prefetch => Ok(()),
        now => Err(format!("{now}")),
    })
    .await;
}

#[tokio::test]
async fn a_policys_prefetch_reaches_the_consumers_to_whose_own_nobody_has_said_anything() {
    let broker = policed("shop.*", 7);
    let connection = broker.factory("").create_connection().await.unwrap();
    let ordinary = connection.create_session(Auto).await.unwrap();
    for (options, name, own, expected) in [
        ("", "queue://shop.orders", None, 7),
        ("", "queue://other", None, 100),
        ("", "topic://shop.orders", None, 1000),
        ("", "queue://shop.orders", Some(3), 3),
        ("", "queue://shop.orders", Some(0), 0),
        ("", "queue://shop.orders?consumer.prefetchSize=4", None, 4),
        ("jms.prefetchPolicy.queuePrefetch=100", "queue://shop.orders", None, 100),
    ] {
        let connection = broker.factory(options).create_connection().await.unwrap();
        let session = connection.create_session(Auto).await.unwrap();
        let own = ConsumerOptions { prefetch: own, ..ConsumerOptions::default() };
        let consumer = session.create_consumer_with(&destination(name), &own).await.unwrap();
        // What a later one is told comes behind what this one is.
        let later = ordinary.create_consumer(&queue("shop.orders")).await.unwrap();
        until_prefetch(&later, 7).await;
        assert_eq!(consumer.prefetch(), expected, "{options} {name} {own:?}");
    }
}

#[tokio::test]
async fn an_operator_changes_the_prefetch_of_consumers_that_are_used_and_of_later_ones() {
    let broker = policed("shop.*", 7);
    let orders = queue("shop.orders");
    let connection = broker.factory("").create_connection().await.unwrap();
    connection.start().unwrap();
    let session = connection.create_session(Auto).await.unwrap();
    let consumer = session.create_consumer(&orders).await.unwrap();
    broker.send_numbered(&orders, 30).await;
    broker.until(&orders, |counts| counts.in_flight == 7).await;
    let operated = broker.broker.queue("shop.orders").unwrap();
    operated.set_prefetch(12);
    until_prefetch(&consumer, 12).await;
    broker.until(&orders, |counts| counts.in_flight == 12).await;
    operated.set_prefetch(3);
    until_prefetch(&consumer, 3).await;
    assert_eq!(broker.counts(&orders).in_flight, 12, "what is under way stays with it");
    assert_eq!(see(&consumer, 10).await, firsts(1..=10));
    broker.until(&orders, |counts| counts.in_flight == 3).await;
    let own = session.create_consumer_with_prefetch(&orders, 2).await.unwrap();
    consumer.set_prefetch(5).await.unwrap();
    operated.set_prefetch(9);
    let later = session.create_consumer(&orders).await.unwrap();
    until_prefetch(&later, 9).await;
    // It is told behind the others.
    assert_eq!((consumer.prefetch(), own.prefetch()), (5, 2), "who chose it keeps it");
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
