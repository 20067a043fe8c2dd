//! Messages that come back: their place, their count, their delay, and whom they wait for.

use std::time::Duration;

use corriere_core::provider::{AckKind, Cause, CauseKind, Command, Credit};
use corriere_core::{Destination, RedeliveryPolicy};

use super::world::*;
use corriere_broker::machine::Input;

const SECOND: Duration = Duration::from_secs(1);

fn patient() -> RedeliveryPolicy {
    RedeliveryPolicy { maximum_redeliveries: None, ..RedeliveryPolicy::default() }
}

fn non_blocking() -> RedeliveryPolicy {
    RedeliveryPolicy { non_blocking: true, ..policy() }
}

#[test]
fn a_blocking_give_back_takes_back_what_was_not_handed_over() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(10));
    for sequence in 1..=4 {
        world.send(connection, message(&orders, sequence));
    }
    world.received(consumer);
    let other = world.consumer(connection, &orders, window(10));
    world.ack(consumer, 1, 1, failed());
    assert_eq!(counted(&world.received(other)), [(2, 1), (3, 1), (4, 1)], "for anyone, uncounted");
    assert!(world.received(consumer).is_empty(), "the failed one waits for its delay");
    world.advance(SECOND);
    let again = world.received(consumer);
    assert_eq!(counted(&again), [(1, 2)]);
    assert_eq!((again[0].epoch, again[0].number), (1, 5), "a new number in a new epoch");
}

#[test]
fn what_came_back_is_delivered_before_anything_else_and_in_its_order() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(10));
    for sequence in 1..=5 {
        world.send(connection, message(&orders, sequence));
    }
    world.received(consumer);
    world.ack(consumer, 1, 3, failed());
    assert!(world.received(consumer).is_empty(), "nothing new goes before what came back");
    world.advance(SECOND);
    assert_eq!(counted(&world.received(consumer)), [(1, 2), (2, 2), (3, 2), (4, 1), (5, 1)]);
}

#[test]
fn what_came_back_and_was_not_seen_again_stays_with_its_consumer_through_the_next_give_back() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer_with(connection, &orders, window(10), Some(patient()));
    for sequence in 1..=4 {
        world.send(connection, message(&orders, sequence));
    }
    world.received(consumer);
    world.ack(consumer, 1, 3, failed());
    let other = world.consumer(connection, &orders, window(10));
    assert_eq!(sequences(&world.received(other)), [4], "what it was never handed");
    for count in 2..=4 {
        world.advance(SECOND);
        let again = world.received(consumer);
        assert_eq!(counted(&again), [(1, count), (2, 2), (3, 2)]);
        world.ack(consumer, again[0].number, again[0].number, failed());
    }
    assert!(world.received(other).is_empty(), "not for anyone");
    world.close(consumer, 0);
    assert_eq!(counted(&world.received(other)), [(2, 2), (3, 2)], "its reservations end with it");
    world.advance(SECOND);
    assert_eq!(counted(&world.received(other)), [(1, 5)]);
}

#[test]
fn what_came_back_and_is_under_way_again_is_not_overtaken_by_what_came_back_with_it() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let credit = Credit::Window { prefetch: 1, extension: None };
    let consumer = world.consumer_with(connection, &orders, credit, Some(patient()));
    for sequence in 1..=3 {
        world.send(connection, message(&orders, sequence));
    }
    let take = |world: &mut World| {
        let one = world.received(consumer).remove(0);
        world.hand_over(consumer, one.number);
        (counted(std::slice::from_ref(&one))[0], one.number)
    };
    assert_eq!([(); 3].map(|()| take(&mut world).0), [(1, 1), (2, 1), (3, 1)]);
    world.ack(consumer, 1, 3, failed());
    world.advance(SECOND);
    let (first, number) = take(&mut world);
    assert_eq!(first, (1, 2));
    assert_eq!(counted(&world.received(consumer)), [(2, 2)], "on its way, and nobody has seen it");
    world.ack(consumer, number, number, failed());
    world.advance(SECOND);
    assert_eq!([(); 3].map(|()| take(&mut world).0), [(1, 3), (2, 2), (3, 2)]);
}

#[test]
fn reserved_messages_wait_for_each_other_in_their_order() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(10));
    for sequence in 1..=2 {
        world.send(connection, message(&orders, sequence));
    }
    world.received(consumer);
    world.hand_over(consumer, 2);
    let late = AckKind::Redelivered { delay: Some(SECOND * 5), cause: Cause::failure("late") };
    world.ack(consumer, 1, 1, late);
    world.ack(consumer, 2, 2, failed());
    world.advance(SECOND * 2);
    assert!(world.received(consumer).is_empty(), "the second is due, but the first is not");
    world.advance(SECOND * 3);
    assert_eq!(sequences(&world.received(consumer)), [1, 2]);
}

#[test]
fn what_is_in_the_hands_of_the_application_is_not_taken_back() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(10));
    for sequence in 1..=3 {
        world.send(connection, message(&orders, sequence));
    }
    world.received(consumer);
    world.hand_over(consumer, 2);
    world.ack(consumer, 1, 1, failed());
    let other = world.consumer(connection, &orders, window(10));
    assert_eq!(sequences(&world.received(other)), [3]);
    world.ack(consumer, 2, 2, AckKind::Standard);
    assert_eq!(world.pending(&orders), [1, 3]);
}

#[test]
fn a_give_back_of_nothing_still_begins_an_epoch() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(10));
    world.ack(consumer, 1, 1, failed());
    world.send(connection, message(&orders, 1));
    assert_eq!(world.received(consumer)[0].epoch, 1, "the client has counted it as well");
}

#[test]
fn a_non_blocking_give_back_lets_others_pass_and_serves_anyone() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer_with(connection, &orders, window(1), Some(non_blocking()));
    for sequence in 1..=2 {
        world.send(connection, message(&orders, sequence));
    }
    world.received(consumer);
    world.ack(consumer, 1, 1, failed());
    let passing = world.received(consumer);
    assert_eq!((sequences(&passing), passing[0].epoch), (vec![2], 1));
    let other = world.consumer(connection, &orders, window(1));
    world.advance(SECOND);
    assert_eq!(counted(&world.received(other)), [(1, 2)]);
}

#[test]
fn a_non_blocking_give_back_recalls_what_no_handler_saw() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer_with(connection, &orders, window(5), Some(non_blocking()));
    for sequence in 1..=3 {
        world.send(connection, message(&orders, sequence));
    }
    world.received(consumer);
    world.ack(consumer, 1, 1, failed());
    let again = world.received(consumer);
    assert_eq!(counted(&again), [(2, 1), (3, 1)], "the client cannot know the policy and drops its buffer");
    assert!(again.iter().all(|dispatch| dispatch.epoch == 1));
    world.ack(consumer, again[0].number, again[1].number, AckKind::Standard);
    assert_eq!(world.pending(&orders), [1]);
}

#[test]
fn each_message_waits_by_its_own_count() {
    let back_off = RedeliveryPolicy {
        maximum_redeliveries: Some(3),
        initial_delay: Duration::from_millis(100),
        back_off: Some(2.0),
        ..non_blocking()
    };
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer_with(connection, &orders, window(200), Some(back_off));
    for sequence in 1..=101 {
        world.send(connection, message(&orders, sequence));
    }
    for (delay, count) in [(100, 1), (200, 2), (400, 3), (0, 4)] {
        let mut failures = 0;
        // What is given back recalls the rest, which comes anew: the buffer begins again with each.
        while let Some(dispatch) = world.received(consumer).into_iter().next() {
            let poisonous = sequence_of(&dispatch) <= 100;
            let kind = if poisonous { failed() } else { AckKind::Standard };
            assert_eq!(dispatch.delivery_count, if poisonous { count } else { 1 });
            failures += usize::from(poisonous);
            world.ack(consumer, dispatch.number, dispatch.number, kind);
        }
        assert_eq!(
            failures, 100,
            "the good one goes by in the first delay and nothing waits for its neighbours"
        );
        world.advance(Duration::from_millis(u64::saturating_sub(delay, 1)));
        assert!(world.received(consumer).is_empty());
        world.advance(Duration::from_millis(1));
    }
    assert_eq!(world.counts(&orders).dead_lettered, 100);
    assert_eq!(world.counts(&orders).acknowledged, 1);
}

#[test]
fn a_reservation_ends_with_its_consumer_and_the_delay_stays() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(1));
    world.send(connection, message(&orders, 1));
    world.ack(consumer, 1, 1, failed());
    let other = world.consumer(connection, &orders, window(1));
    world.advance(Duration::from_millis(500));
    world.close(consumer, 1);
    assert!(world.received(other).is_empty());
    world.advance(Duration::from_millis(500));
    assert_eq!(counted(&world.received(other)), [(1, 2)]);
}

#[test]
fn a_message_that_comes_back_keeps_its_place() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(2));
    for sequence in 1..=4 {
        world.send(connection, message(&orders, sequence));
    }
    world.close(consumer, 0);
    let next = world.consumer(connection, &orders, window(4));
    assert_eq!(counted(&world.received(next)), [(1, 1), (2, 1), (3, 1), (4, 1)]);
}

#[test]
fn only_what_was_handed_over_counts_when_a_session_closes() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    for sequence in 1..=10 {
        world.send(connection, message(&orders, sequence));
    }
    let consumer = world.consumer(connection, &orders, window(10));
    world.hand_over(consumer, 5);
    world.close_session(consumer);
    let next = world.consumer(connection, &orders, window(10));
    let counts: Vec<_> = world.received(next).iter().map(|dispatch| dispatch.delivery_count).collect();
    assert_eq!(counts, [2, 2, 2, 2, 2, 1, 1, 1, 1, 1]);
    world.step(Input::Vanished { connection });
    let connection = world.connect();
    let last = world.consumer(connection, &orders, window(10));
    let counts: Vec<_> = world.received(last).iter().map(|dispatch| dispatch.delivery_count).collect();
    assert_eq!(counts, [2, 2, 2, 2, 2, 1, 1, 1, 1, 1], "it vanished before it handed anything over");
}

#[test]
fn messages_that_no_handler_saw_never_reach_the_dead_letters() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    for sequence in 1..=20 {
        world.send(connection, message(&orders, sequence));
    }
    for round in 0..5 {
        let consumer = world.consumer(connection, &orders, window(20));
        let first = &world.received(consumer)[0];
        assert_eq!(
            counted(std::slice::from_ref(first)),
            [if round < 3 { (1, round + 1) } else { (2, round - 2) }]
        );
        world.begin(connection, 1);
        world.ack_in(consumer, 1, 1, 1);
        world.roll_back(connection, 1);
        world.ack(consumer, 1, 1, failed());
        world.close(consumer, 1);
        world.close_session(consumer);
        world.advance(SECOND);
    }
    assert_eq!(world.pending(&queue("DLQ.orders")), [1]);
    let last = world.consumer(connection, &orders, window(20));
    let received = counted(&world.received(last));
    assert_eq!(received[0], (2, 3));
    assert_eq!(received[1..], (3..=20).map(|sequence| (sequence, 1)).collect::<Vec<_>>());
}

#[test]
fn the_first_failed_conversion_is_noted_and_the_next_ones_count() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(5));
    world.send(connection, message(&orders, 1));
    world.send(connection, message(&orders, 2));
    let conversion = || AckKind::Redelivered {
        delay: None,
        cause: Cause { kind: CauseKind::Conversion, ..Cause::failure("not a number") },
    };
    world.received(consumer);
    world.ack(consumer, 1, 1, conversion());
    let again = world.received(consumer);
    assert_eq!(counted(&again), [(1, 1), (2, 1)], "at once, uncounted, and first");
    assert_eq!(again[0].epoch, 1);
    world.ack(consumer, again[0].number, again[0].number, conversion());
    assert!(world.received(consumer).is_empty(), "this one counts and waits");
    world.advance(SECOND);
    assert_eq!(counted(&world.received(consumer))[0], (1, 2));
}

#[test]
fn a_window_holds_through_many_rollbacks() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    for sequence in 1..=20 {
        world.send(connection, message(&orders, sequence));
    }
    let consumer = world.consumer_with(connection, &orders, window(5), Some(patient()));
    for _ in 0..10 {
        let received = world.received(consumer);
        assert_eq!(sequences(&received), [1, 2, 3, 4, 5]);
        let first = received[0].number;
        world.ack(consumer, first, first + 2, failed());
        assert!(world.counts(&orders).in_flight <= 5);
        world.advance(SECOND);
    }
    let mut seen = Vec::new();
    loop {
        let received = world.received(consumer);
        let Some(last) = received.last() else { break };
        seen.extend(sequences(&received));
        world.ack(consumer, 1, last.number, AckKind::Standard);
    }
    assert_eq!(seen, (1..=20).collect::<Vec<_>>());
}

#[test]
fn explicit_credit_that_went_into_a_recalled_message_is_free_again() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let puller = world.consumer(connection, &orders, Credit::Explicit);
    let subscription = puller.subscription;
    for sequence in 1..=2 {
        world.send(connection, message(&orders, sequence));
    }
    world.done(connection, Command::Grant { subscription, credit: 2 });
    world.received(puller);
    world.ack(puller, 1, 1, failed());
    world.advance(SECOND);
    assert_eq!(sequences(&world.received(puller)), [1], "one credit, for the one that never arrived");
}

#[test]
fn what_a_closed_consumer_gives_back_is_reserved_for_nobody() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(1));
    world.send(connection, message(&orders, 1));
    world.close(consumer, 1);
    world.ack(consumer, 1, 1, failed());
    let other = world.consumer(connection, &orders, window(1));
    world.advance(SECOND);
    assert_eq!(counted(&world.received(other)), [(1, 2)]);
}

#[test]
fn what_is_delayed_is_counted_by_destination_until_it_is_due() {
    let mut world = World::new();
    let connection = world.connect();
    let [orders, prices] = [queue("orders"), Destination::topic("prices").unwrap()];
    let readers =
        [world.consumer(connection, &orders, window(5)), world.consumer(connection, &prices, window(5))];
    let other = world.consumer(connection, &prices, window(5));
    for destination in [&orders, &prices] {
        for sequence in 1..=3 {
            world.send(connection, message(destination, sequence));
        }
    }
    for reader in readers {
        world.ack(reader, 1, 2, failed());
    }
    world.ack(other, 1, 1, failed());
    let delayed = |world: &World| [&orders, &prices].map(|to| world.machine.delayed(to, world.now));
    assert_eq!(delayed(&world), [2, 3]);
    // The reservation ends, and the delay stays.
    world.close(readers[0], 2);
    assert_eq!(delayed(&world), [2, 3]);
    world.advance(SECOND - Duration::from_millis(1));
    assert_eq!(delayed(&world), [2, 3]);
    world.advance(Duration::from_millis(1));
    assert_eq!(delayed(&world), [0, 0]);
    assert_eq!(world.machine.delayed(&queue("prices"), world.now), 0, "there is no queue of that name");
}

#[test]
fn want_of_memory_is_never_counted_and_always_delayed_as_a_first_failure() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let growing = RedeliveryPolicy { back_off: Some(10.0), ..policy() };
    let consumer = world.consumer_with(connection, &orders, window(5), Some(growing));
    world.send(connection, message(&orders, 1));
    world.ack(consumer, 1, 1, failed());
    world.advance(SECOND);
    for number in 2..=9 {
        let cause = Cause { kind: CauseKind::Resource, ..Cause::failure("no memory for the mail") };
        world.ack(consumer, number, number, AckKind::Redelivered { delay: None, cause });
        world.received(consumer);
        world.advance(SECOND - Duration::from_millis(1));
        assert!(world.received(consumer).is_empty());
        world.advance(Duration::from_millis(1));
        assert_eq!(counted(&world.received(consumer)), [(1, 2)]);
    }
    world.ack(consumer, 10, 10, AckKind::Standard);
}
