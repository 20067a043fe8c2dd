//! Redelivery delays over restarts.

use std::time::Duration;

use corriere_core::AcknowledgeMode::{Auto, Transacted};
use corriere_core::provider::{Cause, CauseKind};
use corriere_core::{Clock, Destination, Release, Timestamp};

use crate::support::{End, Home, firsts, nth, queue, see, within};

/// What a broker leaves that came to its end while the first of its messages waited for a minute.
async fn ended_in_a_delay(end: End, q: &Destination, messages: usize) -> Home {
    let mut home = Home::recorded();
    home.settings.redelivery.initial_delay = Duration::from_secs(60);
    let broker = home.start();
    broker.send(q, 1..=messages).await;
    let session = broker.session(Transacted).await;
    let consumer = session.create_consumer(q).await.unwrap();
    see(&consumer, 1).await;
    within(session.rollback()).await.unwrap();
    home.end(broker, end);
    home
}

#[tokio::test]
async fn a_delay_goes_on_where_it_was_and_ends_when_it_should() {
    for end in [End::Stop, End::Kill] {
        let mut home = Home::recorded();
        home.settings.redelivery.initial_delay = Duration::from_secs(60);
        home.settings.redelivery.delay = Duration::from_secs(60);
        let q = queue("q");
        let broker = home.start();
        broker.send(&q, 1..=2).await;
        let session = broker.session(Transacted).await;
        let consumer = session.create_consumer_with_prefetch(&q, 1).await.unwrap();
        assert_eq!(see(&consumer, 1).await, firsts(1..=1));
        within(session.rollback()).await.unwrap();
        home.clock.advance(Duration::from_secs(20));
        let broker = home.restart(broker, end);
        assert_eq!(broker.broker.delayed(&q), 1, "{end:?}");
        assert_eq!(broker.drain(&q).await, firsts(2..=2), "{end:?}");
        home.clock.advance(Duration::from_millis(39_999));
        assert_eq!(broker.drain(&q).await, [], "{end:?}");
        home.clock.advance(Duration::from_millis(1));
        broker.until(&q, |_| broker.broker.delayed(&q) == 0).await;
        assert_eq!(broker.drain(&q).await, [nth("m1", 2)], "{end:?}");
        broker.stop();
    }
}

#[tokio::test]
async fn a_delay_is_no_longer_than_it_was_when_the_clock_is_set_back_meanwhile() {
    for end in [End::Stop, End::Kill] {
        let q = queue("q");
        let mut home = ended_in_a_delay(end, &q, 1).await;
        home.clock = Clock::manual(Timestamp(home.clock.now().0 - 7 * 24 * 60 * 60 * 1_000));
        // The second start in the past has it from the checkpoint.
        let broker = home.start();
        let broker = home.restart(broker, end);
        home.clock.advance(Duration::from_millis(59_999));
        assert_eq!(broker.drain(&q).await, [], "{end:?}");
        home.clock.advance(Duration::from_millis(1));
        broker.until(&q, |_| broker.broker.delayed(&q) == 0).await;
        assert_eq!(broker.drain(&q).await, [nth("m1", 2)], "{end:?}");
        broker.stop();
    }
}

#[tokio::test]
async fn a_delay_that_ended_while_the_broker_was_down_holds_up_nothing() {
    for end in [End::Stop, End::Kill] {
        let q = queue("q");
        let home = ended_in_a_delay(end, &q, 2).await;
        home.clock.advance(Duration::from_secs(61));
        let broker = home.start();
        assert_eq!(broker.drain(&q).await, [nth("m1", 2), nth("m2", 1)], "{end:?}");
        broker.stop();
    }
}

#[tokio::test]
async fn the_one_conversion_that_may_fail_uncounted_is_remembered() {
    for end in [End::Stop, End::Kill] {
        let mut home = Home::recorded();
        let q = queue("q");
        let mut broker = home.start();
        broker.send(&q, 1..=1).await;
        for count in [1, 1, 2, 3] {
            let consumer = broker.consumer(Auto, &q).await;
            let delivery = within(consumer.take()).await.unwrap().unwrap();
            assert_eq!(delivery.count(), count, "{end:?}");
            let cause = Cause { kind: CauseKind::Conversion, text: "no number".into(), listener: None };
            within(delivery.release(Release::Redeliver { delay: None, cause })).await.unwrap();
            broker = home.restart(broker, end);
        }
        assert_eq!(broker.drain(&q).await, [], "{end:?}");
        assert_eq!(broker.counts(&queue("DLQ.q")).pending, 1, "{end:?}");
        broker.stop();
    }
}
