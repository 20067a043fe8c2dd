//! Messages that only sat in a worker's buffer are never counted (C-02).

use std::time::Duration;

use corriere::prelude::*;

use crate::support::{Log, World, in_time};

#[jms_listener(queue = "a", ack = "transacted")]
async fn fails_with_the_first(text: String, delivery: Delivery, log: Bean<Log>) -> Result<(), ListenerError> {
    log.add(format!("{text} {}", delivery.count()));
    if text == "m1" { Err(ListenerError::redeliver("no")) } else { Ok(()) }
}

/// C-02.
#[tokio::test]
async fn what_sat_behind_a_failing_message_is_neither_counted_nor_out_of_order() {
    let world = World::new().await;
    for number in 1..=20 {
        world.send("a", &format!("m{number}")).await;
    }
    // A container for each round, as if its owner were restarted after each failure.
    for round in 1..=7 {
        let container = world.start(fails_with_the_first::DEF).await;
        world.ends.wait_for(round).await;
        in_time("the stop", container.stop()).await;
        world.clock.advance(secs(2));
    }
    let container = world.start(fails_with_the_first::DEF).await;
    world.ends.wait_for(26).await;
    in_time("the stop", container.stop()).await;
    let seen = world.log.all();
    let expected: Vec<_> = (1..=7).map(|count| format!("m1 {count}")).collect();
    assert_eq!(seen[..7], expected);
    let expected: Vec<_> = (2..=20).map(|number| format!("m{number} 1")).collect();
    assert_eq!(seen[7..], expected, "first deliveries all, in order");
    assert_eq!(world.left_in("DLQ.a").await.len(), 1);
    assert!(world.counts("a").are_conserved());
}

#[jms_listener(queue = "b", ack = "client")]
async fn waits_at_the_gate(text: String, log: Bean<Log>) {
    log.add(&text);
    log.pass_gate().await;
}

/// C-41 (e): ten sit in the buffer when the container stops. Spring 3.
#[tokio::test]
async fn a_message_caught_by_a_stop_is_handled_or_still_there_untouched() {
    for prefetch in [0, 1, 10] {
        let world = World::new().await;
        for number in 0..10 {
            world.send("b", &format!("m{number}")).await;
        }
        let container =
            world.start_with(waits_at_the_gate::DEF, |settings| settings.prefetch = prefetch).await;
        world.log.wait_for(1).await;
        let stopping = tokio::spawn({
            let container = container.clone();
            async move { container.stop().await }
        });
        crate::support::until("the stop has begun", || {
            container.status().state == corriere::containers::ContainerState::Stopping
        })
        .await;
        world.log.gate.add_permits(1);
        let report = in_time("the stop", stopping).await.unwrap();
        assert!(report.is_clean() && !report.deferred);
        assert_eq!(world.log.all(), ["m0"], "prefetch {prefetch}: nothing new is taken after a stop");
        let left: Vec<_> = (1..10).map(|number| (format!("m{number}"), 1)).collect();
        assert_eq!(world.left_in("b").await, left, "prefetch {prefetch}");
    }
}

/// C-41 (b): prefetch 0 hung in its receive.
#[tokio::test]
async fn a_stop_of_an_idle_container_is_quick_whatever_its_prefetch() {
    for prefetch in [0, 1, 10] {
        let world = World::new().await;
        let container =
            world.start_with(waits_at_the_gate::DEF, |settings| settings.prefetch = prefetch).await;
        let stopped = tokio::time::timeout(Duration::from_secs(120), container.stop()).await;
        assert!(stopped.unwrap().is_clean(), "prefetch {prefetch}");
        world.send("b", "later").await;
        assert_eq!(world.left_in("b").await.len(), 1, "prefetch {prefetch}: it takes nothing afterwards");
    }
}
