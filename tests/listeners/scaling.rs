//! How many workers there are, and containers that pause.

use corriere::containers::{ContainerError, ContainerState, ListenerContainer};
use corriere::listener::Concurrency;
use corriere::prelude::*;

use crate::support::{Log, World, in_time, until};

#[jms_listener(queue = "work", concurrency = "1-4")]
async fn busy(text: String, log: Bean<Log>) {
    log.add(&text);
    log.pass_gate().await;
}

#[jms_listener(queue = "work", concurrency = "1-4", ack = "transacted")]
async fn busy_in_a_transaction(text: String, log: Bean<Log>) {
    log.add(&text);
    log.pass_gate().await;
}

#[tokio::test]
async fn workers_are_added_while_messages_wait_and_retire_when_they_are_idle() {
    for listener in [busy::DEF, busy_in_a_transaction::DEF] {
        for prefetch in [0, 1, 10] {
            let world = World::new().await;
            let container = world.start_with(listener, |settings| settings.prefetch = prefetch).await;
            assert_eq!(container.status().workers, 1, "the lower bound");

            // Fewer than one worker's prefetch: what sits in its buffer must not wait for it.
            for number in 0..6 {
                world.send("work", &format!("m{number}")).await;
            }
            let seen = world.log.wait_for(4).await;
            assert_eq!((container.status().workers, container.status().busy), (4, 4), "prefetch {prefetch}");
            assert_eq!(seen.len(), 4, "never more than the upper bound at once: {seen:?}");

            world.log.gate.add_permits(6);
            world.ends.wait_for(6).await;
            world.until_empty("work").await;
            until("no worker is busy", || container.status().busy == 0).await;
            assert_eq!(world.counts("work").redelivered, 0, "moving to another worker is no redelivery");

            until("the surplus workers have retired", || {
                world.clock.advance(secs(10));
                container.status().workers == 1
            })
            .await;
            world.send("work", "after").await;
            world.log.gate.add_permits(1);
            world.ends.wait_for(7).await;
        }
    }
}

#[jms_listener(queue = "work", concurrency = "1-8")]
async fn quick(_text: String) {
    // Long enough to be worth a second worker, and shorter than anything that only looks at single runs would notice.
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
}

#[tokio::test]
async fn workers_are_added_while_a_backlog_lasts_although_every_run_is_short() {
    let world = World::new().await;
    for number in 0..150 {
        world.send("work", &format!("m{number}")).await;
    }
    let container = world.start(quick::DEF).await;
    until("there are more workers", || container.status().workers >= 4).await;
    assert!(world.ends.all().len() < 150, "they came when the work was done");
    world.ends.wait_for(150).await;
    world.until_empty("work").await;
    assert_eq!(world.counts("work").redelivered, 0);
}

#[tokio::test]
async fn messages_that_come_while_the_only_worker_is_busy_get_another() {
    let world = World::new().await;
    let container = world.start(busy::DEF).await;
    world.send("work", "long").await;
    world.log.wait_for(1).await;
    world.send("work", "short").await;
    world.log.wait_for(2).await;
    world.log.gate.add_permits(2);
    assert!(in_time("the stop", container.stop()).await.is_clean());
}

#[tokio::test]
async fn a_container_can_be_resized_while_it_runs() {
    let world = World::new().await;
    let container = world.start(busy::DEF).await;
    container.resize(Concurrency::new(3, 3)).unwrap();
    until("three are there", || container.status().subscribed == 3).await;
    for number in 0..3 {
        world.send("work", &format!("m{number}")).await;
    }
    world.log.wait_for(3).await;

    container.resize(Concurrency::ONE).unwrap();
    assert_eq!(container.status().busy, 3, "runs that are under way go on");
    world.log.gate.add_permits(3);
    world.ends.wait_for(3).await;
    until("one is left", || container.status().workers == 1).await;
    assert_eq!(world.counts("work").redelivered, 0);
}

#[tokio::test]
async fn a_paused_container_leaves_messages_to_others_and_goes_on_when_resumed() {
    let world = World::new().await;
    let container = world.start(busy::DEF).await;
    world.send("work", "under way").await;
    world.log.wait_for(1).await;
    container.pause().unwrap();
    world.log.gate.add_permits(1);
    world.ends.wait_for(1).await;
    until("it has no consumer", || container.status().subscribed == 0).await;
    assert_eq!(container.status().state, ContainerState::Paused);

    world.send("work", "for others").await;
    assert_eq!(world.left_in("work").await, [("for others".to_owned(), 1)]);
    world.send("work", "waits").await;
    container.resume().unwrap();
    world.log.gate.add_permits(1);
    assert_eq!(world.log.wait_for(2).await, ["under way", "waits"]);
}

#[tokio::test]
async fn a_stopped_container_refuses_to_be_changed() {
    let world = World::new().await;
    let container = world.start(busy::DEF).await;
    container.stop().await;
    assert_eq!(container.status().state, ContainerState::Stopped);
    for refused in [container.pause(), container.resume(), container.resize(Concurrency::ONE)] {
        assert!(matches!(refused, Err(ContainerError::Stopped { .. })), "{refused:?}");
    }
    assert_eq!(container.status().state, ContainerState::Stopped);
}

#[test]
fn a_container_outside_a_runtime_is_an_error() {
    let world = tokio::runtime::Runtime::new().unwrap();
    let settings = world.block_on(async { World::new().await.settings(&busy::DEF) });
    let refused = ListenerContainer::start(busy::DEF, settings);
    assert!(matches!(refused, Err(ContainerError::NoRuntime { .. })), "{refused:?}");
}
