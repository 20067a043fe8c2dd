//! Commands that are wrong, late, or not there yet: refused by name, without a trace.

use corriere_broker::machine::{ConnectionKey, Input};
use corriere_core::provider::{AckKind, Capability, Command, ProviderError, SessionMode};
use corriere_core::{ProducerId, SessionId, SubscriptionId, TransactionId};

use super::world::*;

#[test]
fn what_is_not_there_yet_is_refused_by_its_capability_and_leaves_nothing() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let session = SessionId(1);
    let subscription = SubscriptionId(50);
    let plain = || subscribe(session, subscription, &orders, window(1));
    let selecting = corriere_core::provider::Subscribe { selector: Some("a = 1".into()), ..plain() };
    let durable = corriere_core::provider::Subscribe { durable_name: Some("d".into()), ..plain() };
    let refused = [
        (Command::OpenSubscription(Box::new(selecting)), Capability::Selectors),
        (
            Command::Browse {
                subscription,
                session,
                destination: orders.clone(),
                selector: Some("a = 1".into()),
            },
            Capability::Selectors,
        ),
    ];
    for (command, capability) in refused {
        let what = format!("{command:?}");
        assert_eq!(world.ask(connection, command), Err(ProviderError::Unsupported(capability)), "{what}");
    }
    for command in [Command::OpenSubscription(Box::new(durable)), Command::Unsubscribe { name: "d".into() }] {
        let refused = world.ask(connection, command);
        assert_eq!(refused, Err(ProviderError::NoClientId { name: "d".into() }));
    }
    assert!(world.machine.destinations().is_empty());
    world.done(connection, Command::OpenSession { session: SessionId(9), mode: SessionMode::Auto });
    world.done(connection, Command::OpenSubscription(Box::new(plain())));
}

#[test]
fn unknown_numbers_are_refused_by_name() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let subscription = SubscriptionId(404);
    let consumer = Consumer { connection, session: SessionId(1), subscription };
    let transaction = TransactionId::Local(404);
    let mut stranger = message(&orders, 1);
    stranger.headers_mut().message_id = None;
    let commands = [
        (Command::CloseSession { session: SessionId(404) }, "session 404"),
        (Command::CloseProducer { producer: ProducerId(404) }, "producer 404"),
        (Command::CloseSubscription { subscription, last_handed_over: 0 }, "subscription 404"),
        (Command::HandedOver { subscription, number: 1, mark: None }, "subscription 404"),
        (Command::Grant { subscription, credit: 1 }, "subscription 404"),
        (Command::Drain { subscription }, "subscription 404"),
        (acknowledge(consumer, 1, 1, AckKind::Standard, None), "subscription 404"),
        (Command::Commit { transaction: transaction.clone(), one_phase: true }, "TX:404"),
        (Command::Rollback { transaction: transaction.clone(), cause: None }, "TX:404"),
        (send(message(&orders, 1), Some(transaction)), "TX:404"),
        (
            Command::OpenProducer {
                producer: ProducerId(5),
                session: SessionId(404),
                identity: "p".into(),
                destination: None,
            },
            "session 404",
        ),
        (
            Command::OpenSubscription(Box::new(subscribe(SessionId(404), subscription, &orders, window(1)))),
            "session 404",
        ),
        (send(stranger, None), "without id"),
    ];
    for (command, name) in commands {
        let what = format!("{command:?}");
        let error = world.ask(connection, command).unwrap_err();
        assert!(error.to_string().contains(name), "{what}: {error}");
    }
    assert!(world.machine.destinations().is_empty());
}

/// C-12: among them a transaction that was begun already.
#[test]
fn numbers_that_are_taken_are_refused() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(1));
    world.begin(connection, 1);
    let again = subscribe(SessionId(1), consumer.subscription, &orders, window(1));
    let commands = [
        Command::OpenSession { session: SessionId(1), mode: SessionMode::Auto },
        Command::OpenProducer {
            producer: ProducerId(1),
            session: SessionId(1),
            identity: "p".into(),
            destination: None,
        },
        Command::OpenSubscription(Box::new(again)),
        Command::Begin { transaction: TransactionId::Local(1) },
    ];
    for command in commands {
        assert!(matches!(world.ask(connection, command), Err(ProviderError::Exists { .. })));
    }
}

#[test]
fn a_closed_connection_answers_that_it_is_lost() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    world.done(connection, Command::Close);
    assert_eq!(world.ask(connection, send(message(&orders, 1), None)), Err(ProviderError::Lost));
    assert_eq!(world.ask(ConnectionKey(404), Command::Close), Err(ProviderError::Lost));
    world.step(Input::Vanished { connection });
    world.step(Input::Vanished { connection: ConnectionKey(404) });
}

#[test]
fn options_behind_a_name_are_not_part_of_it() {
    let mut world = World::new();
    let connection = world.connect();
    world.send(connection, message(&queue("orders?consumer.prefetchSize=10"), 1));
    let consumer = world.consumer(connection, &queue("orders"), window(1));
    assert_eq!(world.received(consumer).len(), 1);
    assert_eq!(world.machine.destinations(), [queue("orders")]);
}

#[test]
fn time_that_goes_back_counts_as_standing_still() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    world.send(connection, with_expiration(&orders, 1, world.now.0 + 10));
    world.now = corriere_core::Timestamp(5);
    world.send(connection, with_expiration(&orders, 2, 1_000_000));
    assert_eq!(world.pending(&orders), [1], "the second was past its expiration by the latest time known");
}
