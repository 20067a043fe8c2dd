//! A store without room: who waits, and what goes on. C-46 and C-13.

use std::sync::Arc;
use std::time::Duration;

use corriere_broker::Settings;
use corriere_broker::machine::Input;
use corriere_broker::store::StoreError;
use corriere_core::provider::{AckKind, Command, Confirmation, ProviderError};

use super::world::*;

const DONE: Option<&Outcome> = Some(&Ok(Confirmation::Done));

fn full(world: &mut World) {
    world.step(Input::StoreFull { reason: Arc::from("40 of 40 segments are in use") });
}

fn is_refused(outcome: Option<&Outcome>) -> bool {
    matches!(outcome, Some(Err(ProviderError::StoreFull { reason, .. })) if reason.contains("segments"))
}

#[test]
fn a_transacted_sender_is_refused_at_its_deadline_and_its_end_hangs_nobody() {
    let settings = Settings { send_deadline: Duration::from_secs(2), ..Settings::default() };
    let mut world = World::with(settings);
    let (connection, orders) = (world.connect(), queue("orders"));
    world.begin(connection, 1);
    world.send_in(connection, 1, message(&orders, 1));
    full(&mut world);
    let waiting = world.send_in(connection, 1, message(&orders, 2));
    let commit = world.commit(connection, 1);
    world.advance(Duration::from_millis(1_999));
    assert_eq!((world.outcome(waiting), world.outcome(commit)), (None, None));
    world.advance(Duration::from_millis(1));
    assert!(is_refused(world.outcome(waiting)));
    assert!(matches!(world.outcome(commit), Some(Err(ProviderError::RolledBack { .. }))));
    assert_eq!(world.counts(&orders).came_in(), 0, "not one of them");
    world.begin(connection, 2);
    let left = world.send_in(connection, 2, message(&orders, 3));
    let close = world.submit(connection, Command::Close);
    assert_eq!(world.outcome(close), DONE);
    assert!(world.outcome(left).is_some_and(Result::is_err));
}

#[test]
fn draining_goes_on_and_sending_resumes_by_itself() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    for sequence in 1..=3 {
        world.send(connection, message(&orders, sequence));
    }
    full(&mut world);
    let other = world.connect();
    let waiting = [4, 5].map(|sequence| world.send(connection, message(&orders, sequence)));
    let behind = world.send(connection, non_persistent(&orders, 6));
    let passing = world.send(other, non_persistent(&orders, 7));
    assert_eq!([waiting[0], waiting[1], behind].map(|send| world.outcome(send)), [None; 3]);
    assert_eq!(world.outcome(passing), DONE, "what is not stored needs no room");
    let consumer = world.consumer(other, &orders, window(9));
    world.ack(consumer, 1, 1, AckKind::Standard);
    world.begin(other, 1);
    world.ack_in(consumer, 1, 2, 2);
    let commit = world.commit(other, 1);
    assert_eq!(world.outcome(commit), DONE);
    world.ack(consumer, 3, 3, poison());
    assert_eq!(world.counts(&queue("DLQ.orders")).pending, 1);
    world.step(Input::StoreRoom);
    assert_eq!([waiting[0], waiting[1], behind].map(|send| world.outcome(send)), [DONE; 3]);
    assert_eq!(sequences(&world.received(consumer)), [1, 2, 3, 7, 6, 4, 5]);
}

#[test]
fn what_waits_only_behind_a_send_that_needs_the_store_goes_on_when_that_is_refused() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    full(&mut world);
    let waiting = world.send(connection, message(&orders, 1));
    world.advance(Duration::from_secs(1));
    let behind = world.send(connection, non_persistent(&orders, 2));
    world.advance(Duration::from_secs(29));
    assert!(is_refused(world.outcome(waiting)));
    assert_eq!(world.outcome(behind), DONE);
}

#[test]
fn a_send_that_the_store_has_no_room_for_is_refused_at_once_and_its_commit_rolled_back() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    world.send(connection, message(&orders, 100));
    let consumer = world.consumer(connection, &orders, window(9));
    world.hold_store = true;
    let full = || Err(StoreError::Full { reason: "all segments are in use".into() });
    let alone = world.send(connection, message(&orders, 1));
    world.store(full());
    assert!(is_refused(world.outcome(alone)));
    world.begin(connection, 1);
    world.ack_in(consumer, 1, 1, 1);
    for sequence in 2..=11 {
        world.send_in(connection, 1, message(&orders, sequence));
    }
    let commit = world.commit(connection, 1);
    world.store(Ok(()));
    world.store(full());
    while !world.unstored.is_empty() {
        world.store(Ok(()));
    }
    let Some(Err(ProviderError::RolledBack { reason, .. })) = world.outcome(commit) else {
        panic!("{:?}", world.outcome(commit));
    };
    assert!(reason.contains("all segments are in use"), "{reason}");
    assert_eq!(world.pending(&orders), [100]);
    world.hold_store = false;
    world.begin(connection, 2);
    world.ack_in(consumer, 2, 1, 1);
    world.send_in(connection, 2, message(&orders, 12));
    let next = world.commit(connection, 2);
    assert_eq!(world.outcome(next), DONE);
    assert_eq!(world.pending(&orders), [12]);
}

#[test]
fn a_message_whose_dead_letter_finds_no_room_is_where_it_was_until_there_is_some() {
    let mut world = World::new();
    let (connection, orders, dead) = (world.connect(), queue("orders"), queue("DLQ.orders"));
    world.send(connection, message(&orders, 1));
    let consumer = world.consumer(connection, &orders, window(9));
    assert_eq!(sequences(&world.received(consumer)), [1]);
    world.hold_store = true;
    let poisoned = world.submit(connection, acknowledge(consumer, 1, 1, poison(), None));
    world.store(Err(StoreError::Full { reason: "all segments are in use".into() }));
    assert_eq!(world.outcome(poisoned), DONE, "its consumer is not held up");
    assert_eq!((world.pending(&orders), world.pending(&dead)), (vec![1], vec![]));
    assert_eq!(world.counts(&orders).dead_lettered, 0);
    world.store(Ok(()));
    world.step(Input::StoreRoom);
    world.store(Ok(()));
    assert_eq!((world.pending(&orders), world.pending(&dead)), (vec![], vec![1]));
    assert_eq!(world.counts(&orders).dead_lettered, 1);
    assert_eq!(sequences(&world.received(consumer)), [0; 0], "nobody got it again");
}
