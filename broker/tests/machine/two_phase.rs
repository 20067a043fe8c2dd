//! Distributed transactions.

use corriere_broker::machine::{ConnectionKey, Input, Machine};
use corriere_broker::store::{
    Attempt, AttemptSlot, DeliveryState, PreparedTransaction, Recovered, RecoveredMessage, RecoveredQueue,
    StoreError, StoreOperation, StoredId, Totals,
};
use corriere_broker::{DestinationPolicy, Settings};
use corriere_core::message::Priority;
use corriere_core::provider::{AckKind, Command, Confirmation, ProviderError};
use corriere_core::{DestinationPattern, RedeliveryOverrides, TransactionId, Xid};

use super::world::*;

fn xid(number: u8) -> Xid {
    Xid { format: 1, global: vec![number].into(), branch: "b".into() }
}

fn branch(number: u8) -> TransactionId {
    TransactionId::Distributed(xid(number))
}

fn prepare(world: &mut World, connection: ConnectionKey, number: u8) -> Outcome {
    world.done(connection, Command::End { transaction: branch(number) });
    world.ask(connection, Command::Prepare { transaction: branch(number) })
}

const VOTE: Outcome = Ok(Confirmation::Prepared { must_commit: true });

/// A branch that sends message 2 and has acknowledged message 1.
fn begin(world: &mut World, connection: ConnectionKey) -> Consumer {
    let orders = queue("orders");
    world.send(connection, message(&orders, 1));
    let consumer = world.consumer(connection, &orders, window(1));
    world.done(connection, Command::Begin { transaction: branch(1) });
    world.done(connection, acknowledge(consumer, 1, 1, AckKind::Standard, Some(branch(1))));
    world.done(connection, send(message(&orders, 2), Some(branch(1))));
    consumer
}

#[test]
fn a_prepared_branch_outlives_its_connection_and_is_ended_by_any() {
    for commits in [true, false] {
        let mut world = World::new();
        let (connection, orders) = (world.connect(), queue("orders"));
        begin(&mut world, connection);
        assert_eq!(prepare(&mut world, connection, 1), VOTE);
        world.step(Input::Vanished { connection });
        let other = world.connect();
        let reader = world.consumer(other, &orders, window(9));
        assert!(world.received(reader).is_empty(), "locked, and not yet sent");
        assert_eq!(world.ask(other, Command::Recover), Ok(Confirmation::Recovered(vec![xid(1)])));
        if commits {
            world.done(other, Command::Commit { transaction: branch(1), one_phase: false });
            assert_eq!(counted(&world.received(reader)), [(2, 1)]);
        } else {
            world.done(other, Command::Rollback { transaction: branch(1), cause: None });
            assert_eq!(counted(&world.received(reader)), [(1, 2)]);
        }
        assert_eq!(world.ask(other, Command::Recover), Ok(Confirmation::Recovered(Vec::new())));
    }
}

#[test]
fn a_branch_that_is_not_prepared_ends_with_its_connection_and_is_nobody_elses() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    begin(&mut world, connection);
    let other = world.connect();
    let foreign = [
        Command::Commit { transaction: branch(1), one_phase: true },
        Command::Rollback { transaction: branch(1), cause: None },
        Command::Prepare { transaction: branch(1) },
        Command::End { transaction: branch(1) },
        send(message(&orders, 3), Some(branch(1))),
        Command::Forget { transaction: branch(1) },
    ];
    for command in foreign {
        let what = format!("{command:?}");
        assert!(matches!(world.ask(other, command), Err(ProviderError::Unknown { .. })), "{what}");
    }
    let taken = world.ask(other, Command::Begin { transaction: branch(1) });
    assert!(matches!(taken, Err(ProviderError::Exists { .. })));
    let early = world.ask(connection, Command::Commit { transaction: branch(1), one_phase: false });
    assert!(matches!(early, Err(ProviderError::NotPrepared { .. })));
    world.step(Input::Vanished { connection });
    let reader = world.consumer(other, &orders, window(9));
    assert_eq!(counted(&world.received(reader)), [(1, 2)]);
}

#[test]
fn a_branch_with_nothing_in_it_need_not_be_committed() {
    let mut world = World::new();
    let connection = world.connect();
    world.done(connection, Command::Begin { transaction: branch(1) });
    assert_eq!(prepare(&mut world, connection, 1), Ok(Confirmation::Prepared { must_commit: false }));
    assert!(world.operations.is_empty());
    world.done(connection, Command::Begin { transaction: branch(1) });
}

#[test]
fn a_prepare_that_the_store_fails_is_rolled_back_and_a_commit_that_it_fails_may_be_tried_again() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let failed = || Err(StoreError::Io("no".to_owned()));
    let consumer = begin(&mut world, connection);
    world.hold_store = true;
    let first = world.submit(connection, Command::Prepare { transaction: branch(1) });
    world.store(failed());
    assert!(matches!(world.outcome(first), Some(Err(ProviderError::RolledBack { .. }))));
    world.hold_store = false;
    world.done(connection, Command::Begin { transaction: branch(2) });
    world.done(connection, acknowledge(consumer, 1, 1, AckKind::Standard, Some(branch(2))));
    assert_eq!(prepare(&mut world, connection, 2), VOTE);
    world.hold_store = true;
    let commit = || Command::Commit { transaction: branch(2), one_phase: false };
    let second = world.submit(connection, commit());
    // The rollback of the first is behind it.
    while !world.unstored.is_empty() {
        world.store(failed());
    }
    assert!(matches!(world.outcome(second), Some(Err(ProviderError::Store { .. }))));
    assert_eq!(world.counts(&orders).pending, 1, "it was promised");
    world.hold_store = false;
    world.done(connection, commit());
    assert_eq!(world.counts(&orders).pending, 0);
}

/// A branch that is prepared and has acknowledged the second of two messages, which its consumer was handed last.
fn prepared_with_the_last(world: &mut World, connection: ConnectionKey) -> Consumer {
    let orders = queue("orders");
    for sequence in 1..=2 {
        world.send(connection, message(&orders, sequence));
    }
    let consumer = world.consumer(connection, &orders, window(9));
    world.hand_over(consumer, 2);
    world.done(connection, Command::Begin { transaction: branch(1) });
    world.done(connection, acknowledge(consumer, 2, 2, AckKind::Standard, Some(branch(1))));
    assert_eq!(std::mem::take(&mut world.attempts), [second()]);
    assert_eq!(prepare(world, connection, 1), VOTE);
    assert_eq!(std::mem::take(&mut world.attempts), [(AttemptSlot(0), None)]);
    consumer
}

fn second() -> (AttemptSlot, Option<Attempt>) {
    (AttemptSlot(0), Some(Attempt { stored: StoredId(2), delivery: 1 }))
}

#[test]
fn a_delivery_that_a_prepared_branch_acknowledged_is_not_noted_when_its_consumer_acknowledges_an_earlier_one()
{
    let mut world = World::new();
    let connection = world.connect();
    let consumer = prepared_with_the_last(&mut world, connection);
    world.ack(consumer, 1, 1, AckKind::Standard);
    assert_eq!(world.attempts, [], "a rollback after a restart would count it twice");
    world.done(connection, Command::Rollback { transaction: branch(1), cause: None });
    assert_eq!(world.attempts, [second()], "its consumer has it in its hands again");
}

#[test]
fn a_delivery_that_a_prepared_branch_acknowledged_counts_once_when_its_consumer_is_closed() {
    let mut world = World::new();
    let connection = world.connect();
    let consumer = prepared_with_the_last(&mut world, connection);
    world.close(consumer, 2);
    assert_eq!(world.attempts, [], "a rollback after a restart would count it twice");
    world.close_session(consumer);
    world.done(connection, Command::Rollback { transaction: branch(1), cause: None });
    let reader = world.consumer(connection, &queue("orders"), window(9));
    assert_eq!(counted(&world.received(reader)), [(1, 2), (2, 2)]);
}

#[test]
fn acknowledgements_of_a_prepared_branch_are_locks_that_survive_a_restart() {
    let orders = queue("orders");
    for commits in [true, false] {
        let letter = message(&orders, 3);
        let row = |stored| RecoveredMessage {
            stored: StoredId(stored),
            priority: Priority::default(),
            expiration: None,
            size: 300,
            state: DeliveryState::default(),
        };
        let messages = vec![row(1), row(2)];
        let queues =
            vec![RecoveredQueue { destination: orders.clone(), totals: Totals::default(), messages }];
        let prepared = vec![PreparedTransaction {
            xid: xid(1),
            sends: vec![(orders.clone().into(), row(3))],
            ids: vec![letter.headers().message_id.clone()],
            acknowledged: vec![StoredId(1)],
        }];
        let recovered = Recovered { queues, prepared, last_id: StoredId(3), ..Recovered::default() };
        let mut world = World::on(Machine::recovered(Settings::default(), recovered, true, NOW));
        for stored in 1..=3 {
            world.operations.push(StoreOperation::Append {
                stored: StoredId(stored),
                queue: orders.clone(),
                arrival: corriere_broker::store::Arrival::Sent,
                message: std::sync::Arc::new(if stored == 3 {
                    letter.clone()
                } else {
                    message(&orders, stored)
                }),
                transaction: None,
            });
        }
        let connection = world.connect();
        let reader = world.consumer(connection, &orders, window(9));
        world.bring_back();
        assert_eq!(counted(&world.received(reader)), [(2, 1)]);
        assert_eq!(world.counts(&orders).in_flight, 2);
        let again = world.ask(connection, send(letter.clone(), None));
        assert!(matches!(again, Err(ProviderError::InDoubt { .. })), "{again:?}");
        let operation = if commits {
            world.done(connection, Command::Commit { transaction: branch(1), one_phase: false });
            StoreOperation::Commit(corriere_broker::store::StoreTransaction::Distributed(xid(1)))
        } else {
            world.done(connection, Command::Rollback { transaction: branch(1), cause: None });
            StoreOperation::Rollback(corriere_broker::store::StoreTransaction::Distributed(xid(1)))
        };
        let told = world.operations.iter().any(|told| format!("{told:?}") == format!("{operation:?}"));
        assert!(told);
        world.bring_back();
        let expected = if commits { (3, 1) } else { (1, 2) };
        assert_eq!(counted(&world.received(reader)), [expected]);
        world.done(connection, send(letter, None));
        let duplicates = u64::from(commits);
        assert_eq!(world.counts(&orders).duplicates, duplicates, "it is there, or was never");
        assert_eq!(world.received(reader).len() as u64, 1 - duplicates);
    }
}

#[test]
fn what_a_branch_of_an_earlier_run_gives_back_is_counted_and_fails_by_the_policy_of_its_queue() {
    let orders = queue("orders");
    let row = RecoveredMessage {
        stored: StoredId(1),
        priority: Priority::default(),
        expiration: None,
        size: 300,
        state: DeliveryState::default(),
    };
    let messages = vec![row];
    let queues = vec![RecoveredQueue { destination: orders.clone(), totals: Totals::default(), messages }];
    let acknowledged = vec![StoredId(1)];
    let prepared =
        vec![PreparedTransaction { xid: xid(1), sends: Vec::new(), ids: Vec::new(), acknowledged }];
    let recovered = Recovered { queues, prepared, last_id: StoredId(1), ..Recovered::default() };
    let redelivery =
        RedeliveryOverrides { maximum_redeliveries: Some(Some(0)), ..RedeliveryOverrides::default() };
    let pattern = DestinationPattern::queue("orders").unwrap();
    let never = DestinationPolicy { redelivery, ..DestinationPolicy::new(pattern) };
    let settings = Settings { policies: vec![never], ..Settings::default() };
    let mut world = World::on(Machine::recovered(settings, recovered, true, NOW));
    world.operations.push(StoreOperation::Append {
        stored: StoredId(1),
        queue: orders.clone(),
        arrival: corriere_broker::store::Arrival::Sent,
        message: std::sync::Arc::new(message(&orders, 1)),
        transaction: None,
    });
    let connection = world.connect();
    world.done(connection, Command::Rollback { transaction: branch(1), cause: None });
    let is_counted = |operation: &StoreOperation| matches!(operation, StoreOperation::DeliveryState { state, .. } if state.failed_deliveries == 1);
    assert!(world.operations.iter().any(is_counted), "the process may end before its body is read back");
    world.bring_back();
    assert_eq!(world.counts(&orders).pending, 0);
    assert_eq!(world.counts(&queue("DLQ.orders")).pending, 1);
}
