//! The start on what a store brings back, and what is noted for it.

use std::collections::BTreeMap;

use corriere_broker::Settings;
use corriere_broker::machine::{Input, Machine, SlotNote};
use corriere_broker::store::{
    Attempt, AttemptSlot, DeliveryState, Recovered, RecoveredMessage, RecoveredQueue, StoreOperation,
    StoredId, Totals,
};
use corriere_core::message::Priority;
use corriere_core::provider::{AckKind, Cause, CauseKind, Command, Confirmation};
use corriere_core::{MessageId, Timestamp};

use super::world::*;

fn recovered_message(stored: u64, state: DeliveryState) -> RecoveredMessage {
    RecoveredMessage {
        stored: StoredId(stored),
        priority: Priority::default(),
        expiration: None,
        size: 300,
        state,
    }
}

fn failed_times(failed_deliveries: u32) -> DeliveryState {
    DeliveryState { failed_deliveries, ..DeliveryState::default() }
}

/// A world that begins with these messages in `orders`, each with its name as its sequence.
fn world_with(messages: Vec<RecoveredMessage>) -> World {
    let orders = queue("orders");
    let totals = Totals { enqueued: 9, acknowledged: 5, dead_lettered: 1 };
    let names: Vec<_> = messages.iter().map(|message| message.stored).collect();
    let queues = vec![RecoveredQueue { destination: orders.clone(), totals, messages }];
    let recovered = Recovered { queues, last_id: StoredId(100), ..Recovered::default() };
    let settings = Settings { redelivery: policy(), ..Settings::default() };
    let mut world = World::on(Machine::recovered(settings, recovered, true, NOW));
    for stored in names {
        world.operations.push(StoreOperation::Append {
            stored,
            queue: orders.clone(),
            arrival: corriere_broker::store::Arrival::Sent,
            message: std::sync::Arc::new(message(&orders, stored.0)),
            transaction: None,
        });
    }
    world.step(Input::Tick);
    world
}

#[test]
fn what_was_there_is_there_with_its_counts_delays_and_totals() {
    let delayed = DeliveryState { not_before: Some(Timestamp(1_005_000)), ..failed_times(1) };
    let messages = vec![
        recovered_message(3, DeliveryState::default()),
        recovered_message(4, delayed),
        RecoveredMessage { priority: Priority::new(9).unwrap(), ..recovered_message(5, failed_times(2)) },
    ];
    let mut world = world_with(messages);
    let orders = queue("orders");
    let counts = world.counts(&orders);
    assert_eq!((counts.recovered, counts.pending, counts.enqueued), (3, 3, 0));
    assert_eq!(world.machine.totals(&orders).unwrap().enqueued, 9);
    let connection = world.connect();
    let consumer = world.consumer(connection, &orders, window(9));
    world.bring_back();
    assert_eq!(counted(&world.received(consumer)), [(5, 3), (3, 1)]);
    world.advance(std::time::Duration::from_secs(5));
    world.bring_back();
    assert_eq!(counted(&world.received(consumer)), [(4, 2)]);
    world.ack(consumer, 1, 3, AckKind::Standard);
    let totals = world.machine.totals(&orders).unwrap();
    assert_eq!((totals.acknowledged, totals.enqueued), (8, 9));
    world.send(connection, message(&orders, 6));
    let names = world.operations.iter().filter_map(|operation| match operation {
        StoreOperation::Append { stored, .. } => Some(stored.0),
        _ => None,
    });
    assert_eq!(names.max(), Some(101), "behind all that were ever used");
}

#[test]
fn a_clock_that_was_set_back_makes_no_delay_longer_than_it_was() {
    // By a day, and by less than is known of the third.
    let state = |not_before: u64, since: u64| DeliveryState {
        not_before: Some(Timestamp(NOW.0 + not_before)),
        since: Timestamp(since),
        ..failed_times(1)
    };
    const DAY: u64 = 24 * 60 * 60 * 1_000;
    let mut world = world_with(vec![
        recovered_message(1, state(DAY + 5_000, NOW.0 + DAY)),
        recovered_message(2, state(3_000, NOW.0 - 1_000)),
        recovered_message(3, state(9_000, 0)),
    ]);
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(9));
    for (seconds, expected) in [(3, 2), (5, 1), (9, 3)] {
        world.advance(
            NOW.saturating_add(std::time::Duration::from_millis(seconds * 1_000 - 1)).since(world.now),
        );
        world.bring_back();
        assert_eq!(sequences(&world.received(consumer)), [0; 0], "before {seconds} s");
        world.advance(std::time::Duration::from_millis(1));
        world.bring_back();
        assert_eq!(counted(&world.received(consumer)), [(expected, 2)], "after {seconds} s");
    }
}

#[test]
fn what_expired_meanwhile_goes_to_the_dead_letters_at_the_first_step() {
    let expired =
        RecoveredMessage { expiration: Some(Timestamp(5)), ..recovered_message(7, DeliveryState::default()) };
    let mut world = world_with(vec![expired]);
    assert_eq!(world.bring_back(), 1);
    assert_eq!(world.counts(&queue("orders")).expired, 1);
    assert_eq!(world.counts(&queue("DLQ.orders")).pending, 1);
}

#[test]
fn a_message_that_ended_the_process_of_its_consumer_too_often_is_not_delivered_again() {
    // Two redeliveries are allowed, so the third delivery was the last.
    let mut world =
        world_with(vec![recovered_message(1, failed_times(3)), recovered_message(2, failed_times(2))]);
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(9));
    world.bring_back();
    assert_eq!(counted(&world.received(consumer)), [(2, 3)]);
    assert_eq!(world.counts(&orders).dead_lettered, 1);
    let dead = world.consumer(connection, &queue("DLQ.orders"), window(9));
    let dead = world.received(dead);
    assert_eq!(dead[0].message.property::<i32>("JMSXDeliveryCount").unwrap(), Some(3));
}

#[test]
fn what_is_in_the_hands_of_the_application_is_noted_and_cleared_only_when_it_would_say_too_much() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(9));
    for sequence in 1..=3 {
        world.send(connection, message(&orders, sequence));
    }
    let noted = |world: &mut World| {
        let attempts = std::mem::take(&mut world.attempts);
        attempts.into_iter().map(|(slot, attempt)| (slot.0, attempt)).collect::<Vec<_>>()
    };
    let attempt = |stored, delivery| Some(Attempt { stored: StoredId(stored), delivery });
    world.hand_over(consumer, 1);
    assert_eq!(noted(&mut world), [(0, attempt(1, 1))]);
    world.ack(consumer, 1, 1, AckKind::Standard);
    assert_eq!(noted(&mut world), [], "of what is gone a recovery makes nothing");
    world.hand_over(consumer, 2);
    assert_eq!(noted(&mut world), [(0, attempt(2, 1))]);
    world.ack(consumer, 2, 2, failed());
    assert_eq!(noted(&mut world), [], "it is recorded with that count");
    world.advance(std::time::Duration::from_secs(1));
    world.hand_over(consumer, 4);
    assert_eq!(noted(&mut world), [(0, attempt(2, 2))]);
    let cause = Cause { kind: CauseKind::Resource, ..Cause::failure("no room") };
    world.ack(consumer, 4, 4, AckKind::Redelivered { delay: None, cause });
    assert_eq!(noted(&mut world), [(0, None)], "it came back uncounted");
    let other = world.consumer(connection, &queue("other"), window(9));
    world.send(connection, message(&queue("other"), 1));
    world.hand_over(other, 1);
    assert_eq!(noted(&mut world), [(1, attempt(4, 1))], "each consumer has its own");
}

/// A consumer that receives messages up to the poison, or a batch of four, and ends its process then, until it gets through; what
/// became of the numbered messages that are dead by then, and after how many lives. There is always a next message.
fn lives_with(poison: u64, are_gathered: bool) -> (Vec<u64>, u32) {
    let mut failed: BTreeMap<u64, u32> = (1..=4).map(|stored| (stored, 0)).collect();
    let mut dead = Vec::new();
    for life in 1..=30 {
        let recovered =
            failed.iter().map(|(stored, failed)| recovered_message(*stored, failed_times(*failed)));
        let mut world = world_with(recovered.collect());
        let connection = world.connect();
        let consumer = world.consumer(connection, &queue("orders"), window(4));
        world.bring_back();
        let handed_over: Vec<_> = world
            .received(consumer)
            .iter()
            .map(|dispatch| (dispatch.number, sequence_of(dispatch)))
            .collect();
        let Some(at) = handed_over.iter().position(|(_, sequence)| *sequence == poison) else {
            return (dead, life);
        };
        let last = if are_gathered { handed_over.len() - 1 } else { at };
        handed_over[..=last].iter().for_each(|(number, _)| world.hand_over(consumer, *number));
        let noted: BTreeMap<_, _> = std::mem::take(&mut world.attempts).into_iter().collect();
        for attempt in noted.into_values().flatten() {
            failed.insert(attempt.stored.0, attempt.delivery);
        }
        // Two redeliveries are allowed.
        let over: Vec<u64> =
            failed.iter().filter(|(_, failed)| **failed > 2).map(|(stored, _)| *stored).collect();
        over.iter().for_each(|stored| _ = failed.remove(stored));
        dead.extend(over);
        failed.insert(100 + u64::from(life), 0);
    }
    panic!("it ends its process for ever; dead: {dead:?}");
}

#[test]
fn a_consumer_that_dies_over_the_last_message_it_received_makes_a_dead_letter_of_that_alone() {
    assert_eq!(lives_with(1, false), (vec![1], 4));
    assert_eq!(lives_with(3, false), (vec![3], 4));
}

#[test]
fn a_consumer_that_dies_over_the_first_of_several_messages_does_not_do_so_for_ever() {
    // The last one is taken for the poison first.
    assert_eq!(lives_with(1, true), (vec![4, 1], 6));
    let (dead, _) = lives_with(2, true);
    assert!(dead.contains(&2), "{dead:?}");
}

#[test]
fn a_message_that_is_sent_again_is_confirmed_and_dropped() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let first = message(&orders, 5);
    let producer = first.headers().message_id.clone().unwrap().producer;
    world.hold_store = true;
    let sent = world.send(connection, first.clone());
    let meanwhile = world.send(connection, first.clone());
    assert_eq!(world.unstored.len(), 1);
    world.store(Err(corriere_broker::store::StoreError::Io("no".to_owned())));
    assert!(world.outcome(sent).unwrap().is_err() && world.outcome(meanwhile).unwrap().is_err());
    let again = world.send(connection, first.clone());
    world.store(Ok(()));
    assert_eq!(world.outcome(again), Some(&Ok(Confirmation::Done)), "one that failed may be sent again");
    world.hold_store = false;
    world.begin(connection, 1);
    let within = world.send_in(connection, 1, first.clone());
    assert_eq!(world.outcome(within), Some(&Ok(Confirmation::Done)));
    world.commit(connection, 1);
    let counts = world.counts(&orders);
    assert_eq!((counts.enqueued, counts.pending, counts.duplicates), (1, 1, 2));
    assert!(counts.are_conserved());
    let recovered = Recovered { producers: vec![(producer, 5)], ..Recovered::default() };
    let mut world = World::on(Machine::recovered(Settings::default(), recovered, true, NOW));
    let connection = world.connect();
    world.send(connection, first);
    assert_eq!((world.counts(&orders).pending, world.counts(&orders).duplicates), (0, 1));
}

#[test]
fn a_message_that_was_refused_is_taken_when_it_is_sent_again_behind_a_later_one() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let of = |sequence: u64| {
        let mut message = message(&orders, sequence);
        message.headers_mut().message_id = Some(MessageId { producer: "ID:one".into(), sequence });
        message
    };
    world.hold_store = true;
    let refused = world.send(connection, of(1));
    world.store(Err(corriere_broker::store::StoreError::Io("no".to_owned())));
    assert!(world.outcome(refused).unwrap().is_err());
    world.hold_store = false;
    for sequence in [2, 1, 1, 2] {
        world.send(connection, of(sequence));
    }
    assert_eq!(world.pending(&orders), [2, 1]);
    assert_eq!(world.counts(&orders).duplicates, 2);
}

#[test]
fn of_many_producers_those_that_sent_last_are_known() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let of = |producer: u64| {
        let mut message = message(&orders, 1);
        message.headers_mut().message_id =
            Some(MessageId { producer: format!("ID:many-{producer}").into(), sequence: 1 });
        message
    };
    for producer in 0..=1_024 {
        world.send(connection, of(producer));
    }
    for producer in [1, 1_024, 0] {
        world.send(connection, of(producer));
    }
    assert_eq!(world.counts(&orders).duplicates, 2, "the first of all is forgotten");
}

#[test]
fn a_slot_is_used_again_when_its_consumer_is_gone() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    world.send(connection, message(&orders, 1));
    for _ in 0..3 {
        let consumer = world.consumer(connection, &orders, window(1));
        world.advance(std::time::Duration::from_secs(60));
        world.hand_over(consumer, 1);
        world.done(connection, Command::CloseSession { session: consumer.session });
    }
    assert!(world.attempts.iter().all(|(slot, _)| slot.0 == 0), "{:?}", world.attempts);
}

#[test]
fn what_the_machine_writes_in_a_slot_says_which_hand_over_it_knows() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(9));
    for sequence in 1..=4 {
        world.send(connection, message(&orders, sequence));
    }
    let delivered = world.received(consumer);
    let marks: Vec<_> = delivered.iter().filter_map(|dispatch| dispatch.mark).collect();
    assert_eq!(
        marks.iter().map(|mark| (mark.slot, mark.message)).collect::<Vec<_>>(),
        [(0, 1), (0, 2), (0, 3), (0, 4)]
    );
    let subscription = consumer.subscription;
    let handed_over = |number, mark| Command::HandedOver { subscription, number, mark };
    world.done(connection, handed_over(1, Some(marks[0])));
    assert_eq!(world.notes, [], "its client has written it");
    let cause = Cause { kind: CauseKind::Resource, ..Cause::failure("no room") };
    world.ack(consumer, 1, 1, AckKind::Redelivered { delay: None, cause });
    let note = |attempt, handed_over| SlotNote {
        slot: AttemptSlot(0),
        attempt,
        subscription: (connection, subscription),
        handed_over,
    };
    assert_eq!(std::mem::take(&mut world.notes), [note(None, 1)], "it came back uncounted");
    world.advance(std::time::Duration::from_secs(1));
    let delivered = world.received(consumer);
    world.done(connection, handed_over(delivered[0].number, delivered[0].mark));
    assert_eq!(world.notes, [], "its client has written it, and wins over what came before");
    world.done(connection, handed_over(delivered[1].number, None));
    let attempt = Some(Attempt { stored: StoredId(2), delivery: 1 });
    assert_eq!(world.notes, [note(attempt, delivered[1].number)]);
}

#[test]
fn what_was_handed_over_and_ends_uncounted_is_noted_no_more_as_it_may_come_back_for_want_of_room() {
    for kind in [AckKind::Undeliverable { reason: "too large".into() }, AckKind::Expired] {
        let mut world = World::new();
        let (connection, orders) = (world.connect(), queue("orders"));
        world.send(connection, with_expiration(&orders, 1, NOW.0 + 1_000));
        let consumer = world.consumer(connection, &orders, window(1));
        world.hand_over(consumer, 1);
        world.attempts.clear();
        world.ack(consumer, 1, 1, kind);
        assert_eq!(world.attempts, [(AttemptSlot(0), None)]);
    }
}
