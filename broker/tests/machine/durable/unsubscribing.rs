//! The end of durable subscriptions, and what keeps them from it.

use corriere_broker::store::StoreOperation;
use corriere_core::provider::{Command, Confirmation, ProviderError};

use super::{prices, unsubscribe};
use crate::world::*;

/// C-33 (a) and (b).
#[test]
fn unsubscribing_an_unknown_or_used_subscription_is_refused_by_name_and_changes_nothing() {
    let mut world = World::new();
    let (sender, client) = (world.connect(), world.connect_as(Some("c")));
    world.leave_durable("other", "orders-archive");
    let consumer = world.durable(client, "orders");
    let refused = world.ask(client, unsubscribe("ordres"));
    let unknown = |name: &str, nearest: Option<&str>| ProviderError::UnknownSubscription {
        name: name.to_owned(),
        client_id: "c".to_owned(),
        nearest: nearest.map(str::to_owned),
    };
    assert_eq!(refused, Err(unknown("ordres", Some("orders"))));
    assert_eq!(world.ask(client, unsubscribe("orders-archive")), Err(unknown("orders-archive", None)));
    let Err(ProviderError::SubscriptionInUse { name, holder, .. }) = world.ask(client, unsubscribe("orders"))
    else {
        panic!("a consumer has it")
    };
    assert_eq!((&*name, &*holder), ("orders", "a consumer of connection ID:connection-2"));

    world.publish(sender, 1..=2);
    world.begin(client, 1);
    world.ack_in(consumer, 1, 1, 1);
    world.close(consumer, 1);
    assert!(!world.described("orders").is_active);
    let refused = world.ask(client, unsubscribe("orders"));
    assert!(
        matches!(&refused, Err(ProviderError::SubscriptionInUse { holder, .. })
            if holder.contains("connection ID:connection-2") && holder.contains("1 of its messages")),
        "{refused:?}"
    );
    world.roll_back(client, 1);
    let consumer = world.durable(client, "orders");
    assert_eq!(counted(&world.received(consumer)), [(1, 2), (2, 1)], "it is intact");
}

/// C-33 (b): a received message that nothing was said of.
#[test]
fn what_a_session_has_not_settled_keeps_the_subscription_until_the_session_has() {
    let mut world = World::new();
    let (sender, client) = (world.connect(), world.connect_as(Some("c")));
    let consumer = world.durable(client, "d");
    world.publish(sender, [1]);
    world.close(consumer, 1);
    assert!(matches!(world.ask(client, unsubscribe("d")), Err(ProviderError::SubscriptionInUse { .. })));
    let (_, refused) = world.try_durable(client, "d", |subscribe| subscribe.no_local = true);
    assert!(matches!(refused, Err(ProviderError::SubscriptionInUse { .. })), "made anew it would lose that");
    world.close_session(consumer);
    world.done(client, unsubscribe("d"));
}

/// C-33 (c) and (d).
#[test]
fn an_unsubscribed_one_takes_all_with_it_and_is_not_made_by_a_name_without_a_client() {
    let mut world = World::new();
    let (sender, client) = (world.connect(), world.connect_as(Some("c")));
    world.leave_durable("c2", "d");
    world.publish(sender, 1..=3);
    let client2 = world.connect_as(Some("c2"));
    world.hold_store = true;
    let ticket = world.submit(client2, unsubscribe("d"));
    assert_eq!(world.outcome(ticket), None, "it is confirmed when that is durable");
    let removed = |operation: &StoreOperation| matches!(operation, StoreOperation::RemoveSubscription(_));
    assert!(removed(world.operations.last().unwrap()));
    world.store(Ok(()));
    world.hold_store = false;
    assert_eq!(world.outcome(ticket), Some(&Ok(Confirmation::Done)));
    assert_eq!((world.machine.memory_used(), world.wake_at), (0, None));
    assert_eq!((world.counts(&prices()).discarded, world.counts(&prices()).pending), (3, 0));
    assert!(world.machine.durable_subscriptions().is_empty());
    world.operations.clear();
    world.publish(sender, [4]);
    assert!(world.operations.is_empty(), "nothing of the topic is stored any more");
    let refused = world.ask(sender, unsubscribe("d"));
    assert_eq!(refused, Err(ProviderError::NoClientId { name: "d".into() }));
    world.done(client, Command::Close);
}
