//! When a message counts as consumed: never before its listener has returned `Ok` (decision 1).

use corriere::containers::EndKind;
use corriere::prelude::*;

use crate::support::{Log, World, in_time};

#[jms_listener(queue = "a", ack = "auto")]
async fn auto(text: String, log: Bean<Log>) -> Result<(), ListenerError> {
    work(text, log).await
}

#[jms_listener(queue = "a", ack = "client")]
async fn client(text: String, log: Bean<Log>) -> Result<(), ListenerError> {
    work(text, log).await
}

#[jms_listener(queue = "a", ack = "dups_ok")]
async fn dups_ok(text: String, log: Bean<Log>) -> Result<(), ListenerError> {
    work(text, log).await
}

#[jms_listener(queue = "a", ack = "individual")]
async fn individual(text: String, log: Bean<Log>) -> Result<(), ListenerError> {
    work(text, log).await
}

#[jms_listener(queue = "a", ack = "transacted")]
async fn transacted(text: String, log: Bean<Log>) -> Result<(), ListenerError> {
    work(text, log).await
}

#[jms_listener(queue = "a", ack = "manual")]
async fn manual(text: String, log: Bean<Log>) -> Result<(), ListenerError> {
    work(text, log).await
}

async fn work(text: String, log: Bean<Log>) -> Result<(), ListenerError> {
    log.add(&text);
    log.pass_gate().await;
    if text == "bad" { Err(ListenerError::redeliver("no")) } else { Ok(()) }
}

#[tokio::test]
async fn a_message_is_settled_only_when_its_listener_has_returned() {
    for listener in [auto::DEF, client::DEF, dups_ok::DEF, individual::DEF, transacted::DEF] {
        let world = World::new().await;
        let container = world.start(listener).await;
        world.send("a", "good").await;
        world.log.wait_for(1).await;
        let counts = world.counts("a");
        assert_eq!((counts.pending, counts.acknowledged), (1, 0), "{}: while it is at work", listener.id);

        world.log.gate.add_permits(1);
        assert_eq!(world.ends.wait_for(1).await[0].kind, EndKind::Settled, "{}", listener.id);
        assert_eq!(world.counts("a").acknowledged, 1, "{}", listener.id);
        assert_eq!(container.status().handled, 1);
    }
}

#[tokio::test]
async fn a_failed_message_comes_again_in_every_mode() {
    for listener in [auto::DEF, client::DEF, dups_ok::DEF, individual::DEF, transacted::DEF, manual::DEF] {
        let world = World::new().await;
        let _container = world.start(listener).await;
        world.send("a", "bad").await;
        world.log.gate.add_permits(2);
        let ends = world.ends.wait_for(1).await;
        assert_eq!((ends[0].kind, ends[0].delivery_count), (EndKind::Redelivered, 1), "{}", listener.id);
        assert_eq!(world.counts("a").pending, 1, "{}", listener.id);

        world.pass_delays_until(2).await;
        assert_eq!(world.ends.all()[1].delivery_count, 2, "{}: counted and flagged", listener.id);
    }
}

#[tokio::test]
async fn a_message_whose_listener_is_at_work_when_the_connection_dies_comes_again() {
    for listener in [auto::DEF, client::DEF, dups_ok::DEF, individual::DEF, transacted::DEF, manual::DEF] {
        let world = World::new().await;
        let container =
            world.start_with(listener, |settings| settings.shutdown_timeout = std::time::Duration::ZERO);
        let container = container.await;
        world.send("a", "good").await;
        world.log.wait_for(1).await;
        in_time("the stop", container.stop()).await;
        world.clock.advance(secs(2));
        assert_eq!(world.left_in("a").await, [("good".to_owned(), 2)], "{}", listener.id);
    }
}

#[jms_listener(queue = "kept", ack = "manual")]
async fn keeps(delivery: Delivery, kept: Bean<crate::support::Kept>) {
    kept.0.lock().unwrap().push(delivery);
}

#[tokio::test]
async fn a_manual_listener_may_acknowledge_long_after_it_has_returned() {
    let world = World::new().await;
    let kept = Bean::new(crate::support::Kept::default());
    let container = world
        .start_with(keeps::DEF, |settings| {
            let mut beans = corriere::Beans::new();
            beans.add("kept", kept.clone()).unwrap();
            settings.beans = beans.into();
        })
        .await;
    world.send("kept", "one").await;
    world.send("kept", "two").await;
    world.ends.wait_for(2).await;
    assert_eq!(world.ends.kinds(), [EndKind::LeftToListener; 2]);
    assert_eq!(world.counts("kept").acknowledged, 0);

    for settled in 1..=2 {
        let delivery = kept.0.lock().unwrap()[settled - 1].clone();
        delivery.acknowledge().await.unwrap();
        assert_eq!(world.counts("kept").acknowledged, settled as u64, "each settles itself");
    }
    assert!(container.stop().await.is_clean());
    assert_eq!(world.counts("kept").pending, 0);
}

#[jms_listener(queue = "late", ack = "manual")]
async fn keeps_the_first_in_manual(
    text: String,
    delivery: Delivery,
    kept: Bean<crate::support::Kept>,
    log: Bean<Log>,
) -> Result<(), ListenerError> {
    keep_the_first(&text, delivery, &kept, &log).await
}

#[jms_listener(queue = "late", ack = "client")]
async fn keeps_the_first_in_client(
    text: String,
    delivery: Delivery,
    kept: Bean<crate::support::Kept>,
    log: Bean<Log>,
) -> Result<(), ListenerError> {
    keep_the_first(&text, delivery, &kept, &log).await
}

async fn keep_the_first(
    text: &str,
    delivery: Delivery,
    kept: &crate::support::Kept,
    log: &Log,
) -> Result<(), ListenerError> {
    log.add(text);
    if text == "first" {
        kept.0.lock().unwrap().push(delivery);
        return Ok(());
    }
    log.pass_gate().await;
    Err(ListenerError::redeliver("after the acknowledgement of the first"))
}

#[tokio::test]
async fn a_late_acknowledgement_settles_nothing_that_is_at_work() {
    for listener in [keeps_the_first_in_manual::DEF, keeps_the_first_in_client::DEF] {
        let world = World::new().await;
        let kept = Bean::new(crate::support::Kept::default());
        let _container = world
            .start_with(listener, |settings| {
                let mut beans = corriere::Beans::new();
                beans.add("log", world.log.clone()).unwrap();
                beans.add("kept", kept.clone()).unwrap();
                settings.beans = beans.into();
            })
            .await;
        world.send("late", "first").await;
        world.send("late", "second").await;
        world.log.wait_for(2).await;
        let first = kept.0.lock().unwrap()[0].clone();
        first.acknowledge().await.unwrap();
        assert_eq!(world.counts("late").acknowledged, 1, "{}", listener.id);
        world.log.gate.add_permits(1);
        assert_eq!(world.ends.wait_for(2).await[1].kind, EndKind::Redelivered, "{}", listener.id);
        assert_eq!(world.counts("late").pending, 1, "{}: the failed one is still there", listener.id);
    }
}

#[jms_listener(queue = "b", ack = "client")]
async fn settles_and_fails(delivery: Delivery) -> Result<(), ListenerError> {
    delivery.acknowledge().await?;
    Err(ListenerError::redeliver("after the acknowledgement"))
}

#[tokio::test]
async fn what_the_listener_settled_itself_stays_settled() {
    let world = World::new().await;
    let container = world.start(settles_and_fails::DEF).await;
    world.send("b", "one").await;
    assert_eq!(world.ends.wait_for(1).await[0].kind, EndKind::FailedAfterSettling);
    world.until_empty("b").await;
    assert_eq!(world.counts("b").redelivered, 0);
    assert_eq!(container.status().failed, 1, "a failed run is recorded as failed");
}

#[jms_listener(queue = "c", ack = "client")]
async fn recovers(delivery: Delivery, session: Session, log: Bean<Log>) -> Result<(), ListenerError> {
    log.add(delivery.count().to_string());
    session.recover().await?;
    Ok(())
}

/// C-10: recovering inside the listener stopped redelivery after the first time.
#[tokio::test]
async fn a_listener_that_recovers_its_session_is_redelivered_up_to_the_limit() {
    let world = World::new().await;
    let _container = world.start(recovers::DEF).await;
    world.send("c", "one").await;
    world.ends.wait_for(1).await;
    world.pass_delays_until(7).await;
    assert_eq!(world.log.all(), ["1", "2", "3", "4", "5", "6", "7"]);
    world.until_empty("c").await;
    assert_eq!(world.counts("DLQ.c").pending, 1);
}

#[jms_listener(queue = "own", ack = "individual")]
async fn acknowledges_and_fails(
    text: String,
    delivery: Delivery,
    log: Bean<Log>,
) -> Result<(), ListenerError> {
    log.add(text);
    delivery.acknowledge().await?;
    Err(ListenerError::redeliver("after the acknowledgement"))
}

#[tokio::test]
async fn what_an_individual_listener_acknowledged_stays_so_when_it_fails() {
    let world = World::new().await;
    let _container = world.start(acknowledges_and_fails::DEF).await;
    world.send("own", "one").await;
    world.send("own", "two").await;
    world.ends.wait_for(2).await;
    assert_eq!(world.ends.kinds(), [EndKind::FailedAfterSettling; 2]);
    assert_eq!(world.counts("own").acknowledged, 2);
    assert_eq!(world.log.all(), ["one", "two"]);
}

#[jms_listener(topic = "lazily", ack = "dups_ok")]
async fn lazily(text: String, log: Bean<Log>) {
    log.add(text);
    log.pass_gate().await;
}

#[tokio::test]
async fn a_pause_tells_the_broker_of_what_a_topic_listener_has_settled() {
    let world = World::new().await;
    let container = world.start(lazily::DEF).await;
    let topic = corriere::core::Destination::topic("lazily").unwrap();
    for text in ["one", "two"] {
        let message = crate::support::json(text);
        world.session.send(&topic, &message, &corriere::core::SendOptions::default()).await.unwrap();
    }
    world.log.wait_for(1).await;
    container.pause().unwrap();
    world.log.gate.add_permits(1);
    world.ends.wait_for(1).await;
    crate::support::until("the broker knows", || {
        world.broker.counts(&topic).unwrap_or_default().acknowledged == 1
    })
    .await;
    container.resume().unwrap();
    world.log.gate.add_permits(1);
    world.ends.wait_for(2).await;
    assert_eq!(world.log.all(), ["one", "two"]);
}
