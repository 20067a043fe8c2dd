//! Brokers that are not there, or not any more.

use corriere::containers::ListenerContainer;
use corriere::prelude::*;

use crate::support::{Log, World, in_time, queue, start_broker, until};

#[jms_listener(queue = "a", concurrency = "2-2")]
async fn on_message(text: String, log: Bean<Log>) {
    log.add(text);
}

/// C-17, Spring 14.
#[tokio::test]
async fn a_container_goes_on_when_its_broker_is_back() {
    let world = World::new().await;
    let container = world.start(on_message::DEF).await;
    world.send("a", "before").await;
    world.ends.wait_for(1).await;
    let name = world.broker.name().to_owned();
    world.broker.stop();
    until("the loss is noticed", || container.status().connection_error.is_some()).await;

    let broker = start_broker(&name, &world.clock);
    until("both workers are back", || container.status().subscribed == 2).await;
    let connection = world.factory.create_connection().await.unwrap();
    let session = connection.create_session(corriere::core::AcknowledgeMode::Auto).await.unwrap();
    let message = crate::support::json("after");
    session.send(&queue("a"), &message, &corriere::core::SendOptions::default()).await.unwrap();
    assert_eq!(world.log.wait_for(2).await, ["before", "after"]);
    assert_eq!(container.status().connection_error, None);
    assert!(in_time("the stop", container.stop()).await.is_clean());
    drop(broker);
}

#[jms_listener(queue = "a")]
async fn at_the_gate(text: String, log: Bean<Log>) {
    log.add(text);
    log.pass_gate().await;
}

#[tokio::test]
async fn a_worker_that_lost_its_broker_while_it_was_busy_is_not_said_to_be_subscribed() {
    let world = World::new().await;
    let container = world.start(at_the_gate::DEF).await;
    world.send("a", "one").await;
    world.log.wait_for(1).await;
    assert_eq!(container.status().subscribed, 1);
    world.broker.stop();
    world.log.gate.add_permits(1);
    world.ends.wait_for(1).await;
    until("it tries to connect again", || container.status().connection_error.is_some()).await;
    assert_eq!(container.status().subscribed, 0);
}

/// C-41 (d), Spring 14.
#[tokio::test]
async fn a_container_may_be_started_before_its_broker_and_stopped_without_one() {
    let world = World::new().await;
    let name = world.broker.name().to_owned();
    world.broker.stop();
    let never = ListenerContainer::start(on_message::DEF, world.settings(&on_message::DEF)).unwrap();
    let container = ListenerContainer::start(on_message::DEF, world.settings(&on_message::DEF)).unwrap();
    until("it has tried", || container.status().connection_error.is_some()).await;
    assert!(in_time("the stop", never.stop()).await.is_clean());

    let _broker = start_broker(&name, &world.clock);
    in_time("the container to be ready", container.ready()).await;
    assert_eq!(container.status().subscribed, 2);
}
