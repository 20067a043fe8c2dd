//! How much may be with a consumer (C-23).

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};

use crate::support::{TestBroker, firsts, next, now, nth, queue, see, within};

/// C-23 (a).
#[tokio::test]
async fn a_consumer_never_has_more_than_its_prefetch_and_what_it_was_handed() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 20).await;
    let session = broker.session(Client).await;
    let consumer = session.create_consumer_with_prefetch(&q, 5).await.unwrap();
    assert_eq!(broker.counts(&q).in_flight, 5);
    for handed in 1..=8 {
        next(&consumer).await;
        let in_flight = broker.counts(&q).in_flight;
        assert!(in_flight <= 5 + handed.min(3), "{in_flight} in flight with {handed} handed over");
    }
    assert_eq!(now(&consumer).await, None, "in CLIENT half of the prefetch may be handed out beside it");
    session.acknowledge().await.unwrap();
    assert_eq!(broker.counts(&q).in_flight, 5);
    see(&consumer, 8).await;
    session.acknowledge().await.unwrap();
    see(&consumer, 4).await;
    session.acknowledge().await.unwrap();
    assert_eq!((broker.counts(&q).acknowledged, broker.counts(&q).pending), (20, 0));
}

#[tokio::test]
async fn without_a_bound_a_consumer_that_acknowledges_later_goes_on_as_activemqs_does() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 20).await;
    let factory = broker.factory("jms.prefetchPolicy.all=2&jms.prefetchPolicy.boundedExtension=false");
    let connection = factory.create_connection().await.unwrap();
    connection.start().unwrap();
    let session = connection.create_session(Client).await.unwrap();
    let consumer = session.create_consumer(&q).await.unwrap();
    for handed in 1..=18 {
        next(&consumer).await;
        assert_eq!(
            broker.counts(&q).in_flight,
            handed + 2,
            "each that was handed over makes room for another"
        );
    }
    see(&consumer, 2).await;
    session.acknowledge().await.unwrap();
    assert_eq!((broker.counts(&q).acknowledged, broker.counts(&q).pending), (20, 0));
}

#[tokio::test]
async fn a_consumer_in_auto_never_has_more_than_its_prefetch() {
    for prefetch in [1, 2, 5] {
        let broker = TestBroker::start();
        let q = queue("q");
        broker.send_numbered(&q, 20).await;
        let session = broker.session(Auto).await;
        let consumer = session.create_consumer_with_prefetch(&q, prefetch).await.unwrap();
        for number in 1..=20 {
            assert!(broker.counts(&q).in_flight <= u64::from(prefetch));
            assert_eq!(see(&consumer, 1).await, firsts(number..=number));
        }
    }
}

/// C-23 (b).
#[tokio::test]
async fn after_many_rollbacks_the_window_is_as_wide_as_before() {
    let mut settings = crate::support::settings();
    settings.redelivery.maximum_redeliveries = None;
    let broker = TestBroker::with(settings);
    let q = queue("q");
    broker.send_numbered(&q, 20).await;
    let session = broker.session(Transacted).await;
    let consumer = session.create_consumer_with_prefetch(&q, 5).await.unwrap();
    for count in 1..=10 {
        let seen = see(&consumer, 3).await;
        assert_eq!(seen, [nth("m1", count), nth("m2", count), nth("m3", count)]);
        assert!(broker.counts(&q).in_flight <= 8);
        session.rollback().await.unwrap();
        assert!(broker.counts(&q).in_flight <= 5);
    }
    let mut expected: Vec<_> = (1..=3).map(|number| nth(&format!("m{number}"), 11)).collect();
    expected.extend(firsts(4..=20));
    assert_eq!(see(&consumer, 20).await, expected);
    session.commit().await.unwrap();
    assert_eq!(broker.counts(&q).pending, 0);
    broker.send_numbered(&q, 20).await;
    assert_eq!(broker.counts(&q).in_flight, 5, "neither wider nor narrower");
}

/// C-23 (c).
#[tokio::test]
async fn a_consumer_that_joins_in_the_middle_gets_its_share() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 20).await;
    let (one, other) = (broker.session(Client).await, broker.session(Client).await);
    let first = one.create_consumer_with_prefetch(&q, 5).await.unwrap();
    see(&first, 3).await;
    let second = other.create_consumer_with_prefetch(&q, 1).await.unwrap();
    assert_eq!(broker.counts(&q).in_flight, 9, "5 + 3 and 1");
    let mut turns = 0;
    while broker.counts(&q).pending > 0 {
        for (session, consumer) in [(&one, &first), (&other, &second)] {
            if within(consumer.receive_no_wait()).await.unwrap().is_some()
                && consumer.session().is_same(&other)
            {
                turns += 1;
            }
            session.acknowledge().await.unwrap();
        }
    }
    assert!(turns >= 5, "{turns}");
    assert_eq!(broker.counts(&q).acknowledged, 20);
}

#[tokio::test]
async fn the_smallest_window_takes_a_whole_queue_in_every_mode() {
    for mode in [Auto, Client, Transacted] {
        let broker = TestBroker::start();
        let q = queue("q");
        broker.send_numbered(&q, 30).await;
        let session = broker.session(mode).await;
        let consumer = session.create_consumer_with_prefetch(&q, 1).await.unwrap();
        for number in 1..=30 {
            assert_eq!(see(&consumer, 1).await, firsts(number..=number));
            session.acknowledge().await.unwrap();
        }
        if mode == Transacted {
            session.commit().await.unwrap();
        }
        assert_eq!(broker.counts(&q).pending, 0, "{mode:?}");
    }
}
