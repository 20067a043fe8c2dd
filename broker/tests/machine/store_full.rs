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

fn refused() -> Result<(), StoreError> {
    Err(StoreError::Full { reason: "all segments are in use".into() })
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
fn a_send_that_is_being_written_as_the_store_becomes_full_waits_and_none_of_its_producer_overtakes_it() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    world.hold_store = true;
    let mut sends: Vec<_> =
        (1..=3).map(|sequence| world.send(connection, message(&orders, sequence))).collect();
    // Answered before anything was said of it, and while it is said that there is room again.
    world.store(refused());
    sends.push(world.send(connection, non_persistent(&orders, 4)));
    full(&mut world);
    world.store(refused());
    sends.push(world.send(connection, message(&orders, 5)));
    world.step(Input::StoreRoom);
    assert_eq!((world.appended(), world.reopened), (vec![1, 2, 3], 0), "the third is still with the store");
    assert!(sends.iter().all(|send| world.outcome(*send).is_none()));
    world.store(refused());
    assert_eq!((world.appended()[3..].to_vec(), world.reopened), (vec![1, 2, 3, 5], 1));
    while !world.unstored.is_empty() {
        world.store(Ok(()));
    }
    assert!(sends.iter().all(|send| world.outcome(*send) == DONE));
    assert_eq!(world.pending(&orders), [4, 1, 2, 3, 5], "what is not stored does not wait for the store");
}

#[test]
fn a_send_that_met_a_full_store_fails_by_name_at_the_deadline_that_it_had() {
    let settings = Settings { send_deadline: Duration::from_secs(2), ..Settings::default() };
    let mut world = World::with(settings);
    let (connection, orders) = (world.connect(), queue("orders"));
    world.hold_store = true;
    let [late, later] = [1, 2].map(|sequence| world.send(connection, message(&orders, sequence)));
    world.advance(Duration::from_millis(1_500));
    full(&mut world);
    world.store(refused());
    world.advance(Duration::from_millis(499));
    assert_eq!(world.outcome(late), None);
    world.advance(Duration::from_millis(1));
    let error = world.outcome(late);
    assert!(matches!(error, Some(Err(ProviderError::StoreFull { waited, .. })) if waited.as_secs() == 2));
    assert!(is_refused(error));
    // Its time is over when the store is done with it.
    world.store(refused());
    assert!(is_refused(world.outcome(later)));
    assert_eq!((world.machine.memory_used(), world.wake_at), (0, None));
}

#[test]
fn what_waits_for_memory_and_needs_the_store_holds_nobody_up_while_that_is_full_and_says_so() {
    let orders = queue("orders");
    let size = message(&orders, 1).size() as u64;
    let mut world = World::with(Settings { memory_limit: size, ..Settings::default() });
    let [greedy, modest] = [world.connect(), world.connect()];
    world.hold_store = true;
    let first = world.send(greedy, message(&orders, 1));
    let second = world.send(greedy, message(&orders, 2));
    let third = world.send(greedy, non_persistent(&orders, 3));
    let passing = world.send(modest, non_persistent(&orders, 4));
    assert!([first, second, third, passing].iter().all(|send| world.outcome(*send).is_none()));
    full(&mut world);
    world.store(refused());
    assert_eq!(world.outcome(passing), DONE, "the memory of the first is free");
    world.advance(Duration::from_secs(30));
    assert!([first, second, third].iter().all(|send| is_refused(world.outcome(*send))));
    assert_eq!(world.pending(&orders), [4]);
}

#[test]
fn a_send_that_met_a_full_store_ends_with_its_connection() {
    let mut world = World::new();
    let orders = queue("orders");
    let [waiting, lost] = [world.connect(), world.connect()];
    world.hold_store = true;
    let told = world.send(waiting, message(&orders, 1));
    world.send(lost, message(&orders, 2));
    full(&mut world);
    world.store(refused());
    world.done(waiting, Command::Close);
    assert_eq!(world.outcome(told), Some(&Err(ProviderError::Lost)));
    world.step(Input::Vanished { connection: lost });
    world.store(refused());
    world.step(Input::StoreRoom);
    assert_eq!((world.appended(), world.reopened), (vec![1, 2], 1), "neither of them again");
    assert_eq!((world.machine.memory_used(), world.wake_at), (0, None));
}

#[test]
fn a_send_that_is_sent_again_outlives_the_connection_of_the_first_in_a_full_store() {
    let mut world = World::new();
    let orders = queue("orders");
    let [lost, next] = [world.connect(), world.connect()];
    world.hold_store = true;
    let letter = message(&orders, 1);
    world.send(lost, letter.clone());
    let [again, once_more] = [0; 2].map(|_| world.send(next, letter.clone()));
    world.step(Input::Vanished { connection: lost });
    full(&mut world);
    world.store(refused());
    assert_eq!((world.outcome(again), world.counts(&orders).duplicates), (None, 0));
    world.step(Input::StoreRoom);
    world.store(Ok(()));
    assert_eq!([again, once_more].map(|send| world.outcome(send)), [DONE; 2]);
    assert_eq!((world.pending(&orders), world.counts(&orders).duplicates), (vec![1], 1));
}

#[test]
fn an_acknowledgement_is_not_refused_with_a_send_that_it_makes_room_for() {
    let orders = queue("orders");
    let size = message(&orders, 1).size() as u64;
    let mut world = World::with(Settings { memory_limit: size, ..Settings::default() });
    let connection = world.connect();
    world.send(connection, message(&orders, 1));
    let waiting = world.send(connection, message(&orders, 2));
    let consumer = world.consumer(connection, &orders, window(1));
    world.hold_store = true;
    let settled = world.submit(connection, acknowledge(consumer, 1, 1, AckKind::Standard, None));
    assert_eq!(world.unstored.len(), 2);
    world.store(Ok(()));
    assert_eq!(world.outcome(settled), DONE);
    world.store(refused());
    assert_eq!(world.outcome(waiting), None);
}

#[test]
fn a_send_of_a_transaction_that_met_a_full_store_makes_its_commit_a_rollback() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    world.send(connection, message(&orders, 100));
    let consumer = world.consumer(connection, &orders, window(9));
    world.hold_store = true;
    world.begin(connection, 1);
    world.ack_in(consumer, 1, 1, 1);
    for sequence in 2..=11 {
        world.send_in(connection, 1, message(&orders, sequence));
    }
    let commit = world.commit(connection, 1);
    world.store(Ok(()));
    world.store(refused());
    while !world.unstored.is_empty() {
        world.store(Ok(()));
    }
    let Some(Err(ProviderError::RolledBack { reason, .. })) = world.outcome(commit) else {
        panic!("{:?}", world.outcome(commit));
    };
    assert!(reason.contains("all segments are in use"), "{reason}");
    assert_eq!(world.pending(&orders), [100]);
    world.hold_store = false;
    full(&mut world);
    world.step(Input::StoreRoom);
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
