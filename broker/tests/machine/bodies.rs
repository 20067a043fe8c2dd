//! Bodies that are with the store only.

use corriere_broker::Settings;
use corriere_broker::machine::Input;
use corriere_broker::store::StoreError;
use corriere_core::provider::{AckKind, Command, Confirmation};
use corriere_core::{Destination, Message, TransactionId};

use super::world::*;

fn heavy(destination: &Destination, sequence: u64, bytes: usize) -> Message {
    let mut message = message(destination, sequence);
    *message.body_mut().unwrap() = Message::bytes(vec![7; bytes]).body().clone();
    message
}

fn limited(memory_limit: u64) -> World {
    World::loading(Settings { memory_limit, redelivery: policy(), ..Settings::default() })
}

#[test]
fn a_backlog_beyond_memory_is_taken_and_comes_in_its_order() {
    let mut world = limited(10_000);
    let (connection, orders) = (world.connect(), queue("orders"));
    for sequence in 1..=100 {
        let send = world.send(connection, heavy(&orders, sequence, 1_000));
        assert_eq!(world.outcome(send), Some(&Ok(Confirmation::Done)), "{sequence}");
        assert!(world.machine.memory_used() <= 10_000);
    }
    let consumer = world.consumer(connection, &orders, window(5));
    let mut came = Vec::new();
    while came.len() < 100 {
        world.bring_back();
        let received = world.received(consumer);
        assert!(!received.is_empty(), "after {came:?}");
        assert!(world.machine.memory_used() <= 10_000, "{}", world.machine.memory_used());
        for dispatch in received {
            came.push(sequence_of(&dispatch));
            world.ack(consumer, dispatch.number, dispatch.number, AckKind::Standard);
        }
    }
    assert_eq!(came, (1..=100).collect::<Vec<_>>());
    assert_eq!((world.machine.memory_used(), world.machine.totals(&orders).unwrap().acknowledged), (0, 100));
}

#[test]
fn only_what_consumers_have_room_for_is_read_and_never_much_at_once() {
    let mut world = limited(80_000);
    let (connection, orders) = (world.connect(), queue("orders"));
    for sequence in 1..=200 {
        world.send(connection, heavy(&orders, sequence, 2_000));
    }
    assert!(world.loads.is_empty(), "nobody wants any");
    world.consumer(connection, &orders, window(3));
    // The first ones are still here.
    assert!(world.loads.is_empty());
    world.consumer(connection, &orders, window(100));
    assert!((1..=4).contains(&world.loads.len()), "an eighth of the limit, not {}", world.loads.len());
}

#[test]
fn the_first_in_line_waits_for_its_body_and_a_more_urgent_one_passes_it() {
    let mut world = limited(4_000);
    let (connection, orders) = (world.connect(), queue("orders"));
    world.send(connection, heavy(&orders, 1, 3_000));
    let consumer = world.consumer(connection, &orders, window(9));
    assert_eq!(world.loads.len(), 1);
    world.send(connection, message(&orders, 2));
    assert!(world.received(consumer).is_empty(), "behind the first");
    world.send(connection, with_priority(&orders, 3, 9));
    assert_eq!(sequences(&world.received(consumer)), [3]);
    world.bring_back();
    assert_eq!(sequences(&world.received(consumer)), [1, 2]);
}

#[test]
fn a_message_that_cannot_be_read_back_is_set_aside_and_the_queue_goes_on() {
    let mut world = limited(4_000);
    let (connection, orders) = (world.connect(), queue("orders"));
    for sequence in 1..=2 {
        world.send(connection, heavy(&orders, sequence, 3_000));
    }
    let consumer = world.consumer(connection, &orders, window(1));
    let stored = world.loads.remove(0);
    let error = StoreError::Damaged { place: "journal, offset 512".to_owned(), reason: "a bit".to_owned() };
    world.step(Input::Loaded { messages: vec![(stored, Err(error.clone()))] });
    assert_eq!(world.set_aside.len(), 1);
    assert_eq!((&world.set_aside[0].queue, world.set_aside[0].stored), (&orders, stored));
    world.bring_back();
    assert_eq!(sequences(&world.received(consumer)), [2]);
    world.ack(consumer, 1, 1, AckKind::Standard);
    assert_eq!(world.counts(&orders).pending, 1, "stored, and nobody gets it in this run");
    assert!(world.loads.is_empty());
}

#[test]
fn what_goes_while_its_body_is_read_back_holds_up_nobody() {
    let settings = Settings { dead_letters: corriere_broker::DeadLetters::Discard, ..Settings::default() };
    let mut world = World::loading(Settings { memory_limit: 4_000, ..settings });
    let (connection, orders) = (world.connect(), queue("orders"));
    let mut first = heavy(&orders, 1, 3_000);
    first.headers_mut().expiration = Some(corriere_core::Timestamp(world.now.0 + 1_000));
    world.send(connection, first);
    world.send(connection, message(&orders, 2));
    let consumer = world.consumer(connection, &orders, window(1));
    assert!(world.received(consumer).is_empty(), "the first is being read back");
    world.advance(std::time::Duration::from_secs(1));
    assert_eq!(sequences(&world.received(consumer)), [2]);
}

#[test]
fn what_expires_without_its_body_reaches_the_dead_letters_with_it() {
    let mut world = limited(4_000);
    let (connection, orders) = (world.connect(), queue("orders"));
    for sequence in 1..=3 {
        let mut message = heavy(&orders, sequence, 3_000);
        message.headers_mut().expiration = Some(corriere_core::Timestamp(world.now.0 + 1_000));
        world.send(connection, message);
    }
    world.advance(std::time::Duration::from_secs(1));
    assert_eq!(world.counts(&orders).expired, 0, "each waits for its body");
    assert_eq!(world.loads.len(), 1, "one of any size at once");
    assert_eq!(world.bring_back(), 3);
    assert_eq!((world.counts(&orders).expired, world.counts(&orders).pending), (3, 0));
    let dead = world.consumer(connection, &queue("DLQ.orders"), window(9));
    world.bring_back();
    let dead = world.received(dead);
    assert_eq!(sequences(&dead), [1, 2, 3]);
    assert!(dead.iter().all(|dispatch| dispatch.message.body().size() == 3_000));
}

/// A message without its body costs what is kept of it: 168 bytes of the process when this was written. Nothing is asserted
/// of the process, whose memory is shared with other tests; to measure it again:
/// `CORRIERE_BACKLOG=1000000 cargo test -p corriere-broker --test machine many_messages -- --nocapture`.
#[test]
fn many_messages_are_pending_in_little_memory() {
    let resident = || -> u64 {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default() * 4_096
    };
    let mut world = limited(1024 * 1024);
    let (connection, orders) = (world.connect(), queue("orders"));
    let before = resident();
    let asked = std::env::var("CORRIERE_BACKLOG").ok();
    let count = asked.map_or(20_000, |asked| asked.parse().expect("CORRIERE_BACKLOG is a number"));
    for sequence in 1..=count {
        world.send(connection, message(&orders, sequence));
        world.operations.clear();
        world.forget_outcomes();
    }
    println!("{} bytes for each of {count} messages", resident().saturating_sub(before) / count);
    assert_eq!(world.counts(&orders).pending, count);
    assert!(world.machine.memory_used() <= 1024 * 1024);
}

#[test]
fn a_transaction_larger_than_memory_is_sent_and_committed_and_comes_in_its_order() {
    let mut world = limited(10_000);
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(5));
    world.begin(connection, 1);
    for sequence in 1..=100 {
        let send = world.send_in(connection, 1, heavy(&orders, sequence, 1_000));
        assert_eq!(world.outcome(send), Some(&Ok(Confirmation::Done)), "{sequence}");
        assert!(world.machine.memory_used() <= 10_000);
    }
    assert_eq!((world.counts(&orders).pending, world.loads.len()), (0, 0));
    let commit = world.commit(connection, 1);
    assert_eq!(world.outcome(commit), Some(&Ok(Confirmation::Done)));
    let mut came = Vec::new();
    while came.len() < 100 {
        world.bring_back();
        assert!(world.machine.memory_used() <= 10_000, "{}", world.machine.memory_used());
        let received = world.received(consumer);
        assert!(!received.is_empty(), "after {came:?}");
        for dispatch in received {
            came.push(sequence_of(&dispatch));
            world.ack(consumer, dispatch.number, dispatch.number, AckKind::Standard);
        }
    }
    assert_eq!(came, (1..=100).collect::<Vec<_>>());
    assert_eq!(world.machine.memory_used(), 0);
}

#[test]
fn a_body_of_an_open_transaction_stays_until_the_store_has_it_and_none_is_left_by_a_rollback() {
    let mut world = limited(4_000);
    let (connection, orders) = (world.connect(), queue("orders"));
    world.hold_store = true;
    world.begin(connection, 1);
    let sends = [1, 2, 3].map(|sequence| world.send_in(connection, 1, heavy(&orders, sequence, 3_000)));
    let done = |world: &World| sends.iter().filter(|send| world.outcome(**send).is_some()).count();
    assert_eq!(done(&world), 1, "nothing of it can be read back");
    let used = world.machine.memory_used();
    world.store(Ok(()));
    assert_eq!((done(&world), world.machine.memory_used()), (2, used));
    world.store(Ok(()));
    assert_eq!(done(&world), 3);
    let transaction = TransactionId::Local(1);
    world.submit(connection, Command::Rollback { transaction, cause: None });
    assert_eq!(world.machine.memory_used(), 0);
    // The same names again, of which the store says something late.
    world.begin(connection, 1);
    world.send_in(connection, 1, heavy(&orders, 4, 3_000));
    world.store(Ok(()));
    let waiting = world.send_in(connection, 1, heavy(&orders, 5, 3_000));
    assert_eq!(world.outcome(waiting), None, "it is the third of the first that is stored");
}

#[test]
fn what_expired_in_an_open_transaction_reaches_the_dead_letters_without_having_been_here() {
    let mut world = limited(4_000);
    let (connection, orders) = (world.connect(), queue("orders"));
    world.begin(connection, 1);
    for sequence in 1..=3 {
        let mut message = heavy(&orders, sequence, 3_000);
        message.headers_mut().expiration = Some(corriere_core::Timestamp(world.now.0 + 1_000));
        world.send_in(connection, 1, message);
    }
    world.advance(std::time::Duration::from_secs(2));
    let commit = world.commit(connection, 1);
    assert_eq!(world.outcome(commit), Some(&Ok(Confirmation::Done)));
    world.bring_back();
    assert_eq!((world.counts(&orders).expired, world.counts(&queue("DLQ.orders")).pending), (3, 3));
}
