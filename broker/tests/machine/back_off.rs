//! Delays that grow, and that are spread.

use std::time::Duration;

use corriere_broker::Settings;
use corriere_core::RedeliveryPolicy;

use super::world::*;

const MILLISECOND: Duration = Duration::from_millis(1);

/// C-03 (c).
#[test]
fn a_back_off_that_grows_tenfold_forty_times_stays_at_its_maximum() {
    let policy = RedeliveryPolicy {
        maximum_redeliveries: Some(40),
        back_off: Some(10.0),
        maximum_delay: Some(Duration::from_secs(1)),
        initial_delay: Duration::from_millis(100),
        ..RedeliveryPolicy::default()
    };
    let mut world = World::with(Settings { redelivery: policy, ..Settings::default() });
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(10));
    world.send(connection, message(&orders, 1));
    for count in 1..=41 {
        let received = world.received(consumer);
        assert_eq!(counted(&received), [(1, count)]);
        world.ack(consumer, received[0].number, received[0].number, failed());
        if count == 41 {
            break;
        }
        let delay = Duration::from_millis(if count == 1 { 100 } else { 1_000 });
        world.advance(delay - MILLISECOND);
        assert!(world.received(consumer).is_empty(), "delivery {count} came early");
        world.advance(MILLISECOND);
    }
    assert_eq!(world.counts(&queue("DLQ.orders")).pending, 1);
}

#[test]
fn messages_that_failed_together_do_not_come_again_together_with_jitter() {
    const MANY: u64 = 100;
    let policy = RedeliveryPolicy { non_blocking: true, jitter_percent: 15, ..RedeliveryPolicy::default() };
    let mut world = World::with(Settings { redelivery: policy, ..Settings::default() });
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(200));
    for sequence in 1..=MANY {
        world.send(connection, message(&orders, sequence));
    }
    world.hand_over(consumer, MANY);
    for dispatch in world.received(consumer) {
        world.ack(consumer, dispatch.number, dispatch.number, failed());
    }
    world.advance(Duration::from_millis(849));
    assert!(world.received(consumer).is_empty(), "none is earlier than 15 %");
    let mut moments = 0;
    for _ in 0..302 {
        world.advance(MILLISECOND);
        moments += usize::from(!world.received(consumer).is_empty());
    }
    assert!(moments > 50, "{moments} moments for {MANY} messages");
    assert_eq!(world.counts(&orders).in_flight, MANY, "none is later than 15 %");
}
