//! Listeners on topics.

use corriere::containers::{ContainerError, ContainerState, ListenerContainer};
use corriere::core::{Destination, SendOptions};
use corriere::listener::Concurrency;
use corriere::prelude::*;

use crate::support::{Log, World, json};

#[jms_listener(topic = "prices")]
async fn on_price(text: String, log: Bean<Log>) {
    log.add(text);
}

async fn publish(world: &World, text: &str) {
    let prices = Destination::topic("prices").unwrap();
    world.session.send(&prices, &json(text), &SendOptions::default()).await.unwrap();
}

#[tokio::test]
async fn every_container_gets_each_message_once() {
    let world = World::new().await;
    let _one = world.start(on_price::DEF).await;
    let _other = world.start(on_price::DEF).await;
    publish(&world, "10").await;
    world.ends.wait_for(2).await;
    publish(&world, "11").await;
    world.ends.wait_for(4).await;
    assert_eq!(world.log.all(), ["10", "10", "11", "11"]);
}

#[tokio::test]
async fn a_topic_listener_has_one_worker() {
    let world = World::new().await;
    let mut settings = world.settings(&on_price::DEF);
    settings.concurrency = Concurrency::new(1, 2);
    let refused = ListenerContainer::start(on_price::DEF, settings);
    assert!(matches!(refused, Err(ContainerError::ConcurrentTopic { upper: 2, .. })), "{refused:?}");
    let container = world.start(on_price::DEF).await;
    assert!(container.resize(Concurrency::new(2, 2)).is_err());
}

#[tokio::test]
async fn a_paused_topic_listener_misses_nothing() {
    let world = World::new().await;
    let container = world.start(on_price::DEF).await;
    container.pause().unwrap();
    crate::support::until("it pauses", || container.status().state == ContainerState::Paused).await;
    publish(&world, "while paused").await;
    container.resume().unwrap();
    assert_eq!(world.log.wait_for(1).await, ["while paused"]);
}

/// Case 11 of Spring's: a subscription name is one of a topic.
#[tokio::test]
async fn a_durable_subscription_is_to_a_topic_and_has_a_client_id() {
    let world = World::new().await;
    let mut settings = world.settings(&on_price::DEF);
    settings.subscription = Some("audit".into());
    let refused = ListenerContainer::start(on_price::DEF, settings.clone()).unwrap_err();
    assert!(matches!(&refused, ContainerError::NoClientId { .. }), "{refused:?}");
    for word in ["on_price", "audit", "client_id"] {
        assert!(refused.to_string().contains(word), "{refused}");
    }
    settings.factory = settings.factory.with_client_id("auditor");
    settings.destination = crate::support::queue("prices");
    let refused = ListenerContainer::start(on_price::DEF, settings).unwrap_err();
    assert!(matches!(&refused, ContainerError::SubscriptionWithoutTopic { .. }), "{refused:?}");
    assert!(refused.to_string().contains("queue://prices"), "{refused}");
}
