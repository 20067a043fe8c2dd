//! Back-off: each message waits by its own count, whatever failed before it.

use std::time::Duration;

use corriere_core::AcknowledgeMode::Auto;
use corriere_core::provider::Cause;
use corriere_core::{Consumer, Release};

use crate::support::{Seen, TestBroker, now, nth, queue, settings, within};

const POISON: usize = 100;

fn milliseconds(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Takes what is ready and gives it back, and says what it was.
async fn fail(consumer: &Consumer) -> Option<Seen> {
    let delivery = within(consumer.take_timeout(Duration::ZERO)).await.unwrap()?;
    let cause = Cause::failure("poison");
    delivery.release(Release::Redeliver { delay: None, cause }).await.unwrap();
    Some(Seen::of(&delivery))
}

/// A broker with 100 poison messages in its queue `q`, and one more behind them.
async fn poisoned(maximum: u32, factor: f64, cap: Option<Duration>, non_blocking: bool) -> TestBroker {
    let mut settings = settings();
    settings.redelivery.maximum_redeliveries = Some(maximum);
    settings.redelivery.initial_delay = milliseconds(100);
    settings.redelivery.back_off = Some(factor);
    settings.redelivery.maximum_delay = cap;
    settings.redelivery.non_blocking = non_blocking;
    let broker = TestBroker::with(settings);
    broker.send_numbered(&queue("q"), POISON).await;
    broker.send(&queue("q"), ["good"]).await;
    broker
}

/// C-03 (a).
#[tokio::test]
async fn without_blocking_each_poison_message_waits_on_its_own_clock_and_the_good_one_on_none() {
    let broker = poisoned(3, 2.0, None, true).await;
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer_with_prefetch(&queue("q"), 10).await.unwrap();
    for (count, delay) in [(1, 100), (2, 200), (3, 400), (4, 0)] {
        for number in 1..=POISON {
            assert_eq!(fail(&consumer).await, Some(nth(&format!("m{number}"), count)));
        }
        if count == 1 {
            assert_eq!(now(&consumer).await.as_deref(), Some("good"), "within the first delay");
        }
        if count == 4 {
            break;
        }
        broker.clock.advance(milliseconds(delay - 1));
        assert_eq!(now(&consumer).await, None, "none is early after failure {count}");
        broker.clock.advance(milliseconds(1));
    }
    assert_eq!(now(&consumer).await, None);
    assert_eq!((broker.counts(&queue("q")).dead_lettered, broker.counts(&queue("q")).acknowledged), (100, 1));
}

/// C-03 (b).
#[tokio::test]
async fn blocking_the_next_of_many_poison_messages_comes_when_the_one_before_is_dead() {
    let broker = poisoned(3, 2.0, None, false).await;
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer_with_prefetch(&queue("q"), 10).await.unwrap();
    for number in 1..=POISON {
        for (count, delay) in [(1, 100), (2, 200), (3, 400)] {
            assert_eq!(fail(&consumer).await, Some(nth(&format!("m{number}"), count)));
            broker.clock.advance(milliseconds(delay - 1));
            assert_eq!(now(&consumer).await, None, "m{number} is not settled after failure {count}");
            broker.clock.advance(milliseconds(1));
        }
        assert_eq!(fail(&consumer).await, Some(nth(&format!("m{number}"), 4)));
    }
    assert_eq!(now(&consumer).await.as_deref(), Some("good"));
    assert_eq!(broker.counts(&queue("q")).dead_lettered, 100);
}

/// C-03 (c).
#[tokio::test]
async fn forty_tenfold_delays_are_capped_and_overflow_nothing() {
    for non_blocking in [true, false] {
        let broker = poisoned(40, 10.0, Some(milliseconds(1_000)), non_blocking).await;
        let session = broker.session(Auto).await;
        let consumer = session.create_consumer_with_prefetch(&queue("q"), 10).await.unwrap();
        // Blocking, only the first of them has its turn.
        let failing = if non_blocking { POISON } else { 1 };
        let fail_all = async |count| {
            for number in 1..=failing {
                assert_eq!(fail(&consumer).await, Some(nth(&format!("m{number}"), count)));
            }
        };
        for count in 1..=40 {
            fail_all(count).await;
            if non_blocking && count == 1 {
                assert_eq!(now(&consumer).await.as_deref(), Some("good"));
            }
            let delay = if count == 1 { 100 } else { 1_000 };
            broker.clock.advance(milliseconds(delay - 1));
            assert_eq!(now(&consumer).await, None, "failure {count}");
            broker.clock.advance(milliseconds(1));
        }
        fail_all(41).await;
        assert_eq!(broker.counts(&queue("q")).dead_lettered, failing as u64);
        assert_eq!(now(&consumer).await.as_deref(), if non_blocking { None } else { Some("m2") });
    }
}

/// C-03 (c), without a cap.
#[tokio::test]
async fn forty_tenfold_delays_without_a_cap_end_beyond_the_calendar_and_not_in_the_past() {
    let broker = poisoned(40, 10.0, None, false).await;
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer_with_prefetch(&queue("q"), 1).await.unwrap();
    for count in 1..=40 {
        assert_eq!(fail(&consumer).await, Some(nth("m1", count)));
        assert_eq!(now(&consumer).await, None, "failure {count}");
        broker.clock.advance(Duration::from_millis(100).saturating_mul(10_u32.saturating_pow(count - 1)));
        if broker.broker.delayed(&queue("q")) > 0 {
            assert!(count > 10, "failure {count}: 100 ms times ten to the {} are over", count - 1);
            return;
        }
    }
    panic!("the clock cannot have gone that far");
}
