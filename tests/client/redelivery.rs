//! What counts as a delivery, and where what was given back goes.

use std::time::Duration;

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::provider::{Cause, CauseKind};
use corriere_core::{RedeliveryPolicy, Release};

use crate::support::{TestBroker, first, firsts, next, now, nth, others_run, queue, see, settings, within};

/// C-02.
#[tokio::test]
async fn what_only_sat_in_a_buffer_never_counts_as_delivered() {
    for closes in [true, false] {
        let broker = TestBroker::start();
        let q = queue("q");
        broker.send_numbered(&q, 20).await;
        let mut seen = Vec::new();
        for _ in 0..5 {
            let session = broker.session(Transacted).await;
            let consumer = session.create_consumer_with_prefetch(&q, 20).await.unwrap();
            seen.extend(see(&consumer, 1).await);
            session.rollback().await.unwrap();
            if closes {
                consumer.close().await.unwrap();
                session.close().await.unwrap();
            }
            // Else all is dropped, connection included.
        }
        assert_eq!(seen, [first("m1"), nth("m1", 2), nth("m1", 3), first("m2"), nth("m2", 2)]);
        let session = broker.session(Transacted).await;
        let consumer = session.create_consumer_with_prefetch(&q, 20).await.unwrap();
        let mut expected = vec![nth("m2", 3)];
        expected.extend(firsts(3..=20));
        assert_eq!(see(&consumer, 19).await, expected);
        session.commit().await.unwrap();
        assert_eq!(broker.drain(&queue("DLQ.q")).await, [first("m1")]);
        assert_eq!((broker.counts(&q).acknowledged, broker.counts(&q).dead_lettered), (19, 1));
    }
}

#[tokio::test]
async fn a_neighbour_is_not_held_up_by_a_message_that_waits_for_its_redelivery() {
    let mut settings = settings();
    settings.redelivery.initial_delay = Duration::from_secs(60);
    let broker = TestBroker::with(settings);
    let q = queue("q");
    let (one, other) = (broker.session(Transacted).await, broker.session(Auto).await);
    let failing = one.create_consumer_with_prefetch(&q, 1).await.unwrap();
    let working = other.create_consumer_with_prefetch(&q, 1).await.unwrap();
    broker.send_numbered(&q, 10).await;
    let failed = see(&failing, 1).await.remove(0);
    one.rollback().await.unwrap();
    let mut others = see(&working, 9).await;
    others.push(failed.clone());
    others.sort_by_key(|seen| seen.text[1..].parse::<u32>().unwrap());
    assert_eq!(others, firsts(1..=10));
    assert_eq!(now(&failing).await, None);
    broker.clock.advance(Duration::from_secs(60));
    assert_eq!(see(&failing, 1).await, [nth(&failed.text, 2)]);
}

#[tokio::test]
async fn when_the_consumer_that_failed_closes_its_message_is_for_anyone_after_the_delay() {
    let mut settings = settings();
    settings.redelivery.initial_delay = Duration::from_secs(60);
    let broker = TestBroker::with(settings);
    let q = queue("q");
    broker.send_numbered(&q, 2).await;
    let session = broker.session(Transacted).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    see(&consumer, 1).await;
    session.rollback().await.unwrap();
    consumer.close().await.unwrap();
    let other = broker.session(Auto).await.create_consumer(&q).await.unwrap();
    assert_eq!(see(&other, 1).await, [first("m2")]);
    assert_eq!(now(&other).await, None);
    broker.clock.advance(Duration::from_secs(60));
    assert_eq!(see(&other, 1).await, [nth("m1", 2)]);
}

#[tokio::test]
async fn non_blocking_redelivery_lets_what_is_behind_go_ahead() {
    let mut settings = settings();
    settings.redelivery.initial_delay = Duration::from_secs(1);
    settings.redelivery.non_blocking = true;
    let broker = TestBroker::with(settings);
    let q = queue("q");
    broker.send_numbered(&q, 3).await;
    let session = broker.session(Transacted).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    assert_eq!(see(&consumer, 1).await, firsts(1..=1));
    session.rollback().await.unwrap();
    assert_eq!(see(&consumer, 2).await, firsts(2..=3));
    session.commit().await.unwrap();
    assert_eq!(now(&consumer).await, None);
    broker.clock.advance(Duration::from_secs(1));
    assert_eq!(see(&consumer, 1).await, [nth("m1", 2)]);
    session.commit().await.unwrap();
    assert_eq!((broker.counts(&q).acknowledged, broker.counts(&q).pending), (3, 0));
}

#[tokio::test]
async fn the_policy_of_the_url_goes_before_that_of_the_broker() {
    let broker =
        TestBroker::with(corriere_broker::Settings { redelivery: RedeliveryPolicy::default(), ..settings() });
    let q = queue("q");
    broker.send_numbered(&q, 1).await;
    let options = "jms.redeliveryPolicy.maximumRedeliveries=1&jms.redeliveryPolicy.initialRedeliveryDelay=0";
    let connection = broker.factory(options).create_connection().await.unwrap();
    connection.start().unwrap();
    let session = connection.create_session(Transacted).await.unwrap();
    let consumer = session.create_consumer(&q).await.unwrap();
    for count in 1..=2 {
        assert_eq!(see(&consumer, 1).await, [nth("m1", count)]);
        session.rollback().await.unwrap();
    }
    broker.until(&queue("DLQ.q"), |counts| counts.pending == 1).await;
}

#[tokio::test]
async fn without_a_limit_a_message_is_never_a_dead_letter() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 1).await;
    let options = "jms.redeliveryPolicy.maximumRedeliveries=-1&jms.redeliveryPolicy.initialRedeliveryDelay=0\
                   &jms.redeliveryPolicy.redeliveryDelay=0";
    let connection = broker.factory(options).create_connection().await.unwrap();
    connection.start().unwrap();
    let session = connection.create_session(Client).await.unwrap();
    let consumer = session.create_consumer(&q).await.unwrap();
    for count in 1..=50 {
        assert_eq!(see(&consumer, 1).await, [nth("m1", count)]);
        session.recover().await.unwrap();
    }
}

#[tokio::test]
async fn the_first_failed_conversion_is_neither_counted_nor_flagged_and_each_further_one_is() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 2).await;
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    for count in [1, 1, 2, 3] {
        let delivery = within(consumer.take()).await.unwrap().unwrap();
        assert_eq!(crate::support::Seen::of(&delivery), nth("m1", count));
        let cause = Cause { kind: CauseKind::Conversion, text: "no number".into(), listener: None };
        delivery.release(Release::Redeliver { delay: None, cause }).await.unwrap();
    }
    assert_eq!(see(&consumer, 1).await, firsts(2..=2));
    let dead = broker.session(Auto).await.create_consumer(&queue("DLQ.q")).await.unwrap();
    let dead = next(&dead).await;
    assert_eq!(dead.property::<String>("dlqDeliveryFailureCause").unwrap().as_deref(), Some("no number"));
}

#[tokio::test]
async fn the_longest_delay_does_not_overflow() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 1).await;
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let delivery = within(consumer.take()).await.unwrap().unwrap();
    let (delay, cause) = (Some(Duration::MAX), Cause::failure("not in this life"));
    delivery.release(Release::Redeliver { delay, cause }).await.unwrap();
    broker.clock.advance(Duration::from_secs(3_600 * 24 * 365 * 1_000));
    others_run().await;
    assert_eq!(now(&consumer).await, None);
    assert_eq!(broker.counts(&q).pending, 1);
}
