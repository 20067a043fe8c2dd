//! Who gets what, in which order, and how much at a time.

use corriere_broker::Settings;
use corriere_core::Destination;
use corriere_core::provider::{AckKind, Command, Credit};

use super::world::*;

#[test]
fn a_queue_shares_its_messages_in_turn_among_consumers_with_room() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let small = world.consumer(connection, &orders, window(1));
    let [left, right] = [0; 2].map(|_| world.consumer(connection, &orders, window(10)));
    for sequence in 1..=7 {
        world.send(connection, message(&orders, sequence));
    }
    assert_eq!(sequences(&world.received(small)), [1]);
    assert_eq!(sequences(&world.received(left)), [2, 4, 6]);
    assert_eq!(sequences(&world.received(right)), [3, 5, 7]);
}

#[test]
fn a_consumer_that_had_no_room_is_next_when_it_has_some() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let small = world.consumer(connection, &orders, window(1));
    let large = world.consumer(connection, &orders, window(10));
    for sequence in 1..=4 {
        world.send(connection, message(&orders, sequence));
    }
    world.ack(small, 1, 1, AckKind::Standard);
    world.send(connection, message(&orders, 5));
    assert_eq!(sequences(&world.received(small)), [1, 5]);
    assert_eq!(sequences(&world.received(large)), [2, 3, 4]);
}

#[test]
fn urgent_messages_go_first_and_equals_in_the_order_of_their_sending() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    for (sequence, priority) in [(1, 4), (2, 9), (3, 0), (4, 9), (5, 4)] {
        world.send(connection, with_priority(&orders, sequence, priority));
    }
    let consumer = world.consumer(connection, &orders, window(10));
    assert_eq!(sequences(&world.received(consumer)), [2, 4, 1, 5, 3]);
}

#[test]
fn a_consumer_that_was_there_first_still_gets_urgent_messages_first() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(1));
    for (sequence, priority) in [(1, 4), (2, 0), (3, 9), (4, 4)] {
        world.send(connection, with_priority(&orders, sequence, priority));
    }
    let mut order = Vec::new();
    for number in 1..=4 {
        order.extend(sequences(&world.received(consumer)));
        world.ack(consumer, number, number, AckKind::Standard);
    }
    assert_eq!(order, [1, 3, 4, 2]);
}

#[test]
fn without_priorities_all_go_in_the_order_of_their_arrival() {
    let mut world = World::with(Settings { priorities: false, redelivery: policy(), ..Settings::default() });
    let (connection, orders, prices) =
        (world.connect(), queue("orders"), Destination::topic("prices").unwrap());
    let subscriber = world.consumer(connection, &prices, window(10));
    for (sequence, priority) in [(1, 4), (2, 9), (3, 0), (4, 9)] {
        world.send(connection, with_priority(&orders, sequence, priority));
        world.send(connection, with_priority(&prices, sequence, priority));
    }
    assert_eq!(sequences(&world.received(subscriber)), [1, 2, 3, 4]);
    let consumer = world.consumer(connection, &orders, window(10));
    let received = world.received(consumer);
    assert_eq!(sequences(&received), [1, 2, 3, 4]);
    assert_eq!(received[1].message.headers().priority.level(), 9, "what a message says stays");
    world.close(consumer, 0);
    let next = world.consumer(connection, &orders, window(10));
    assert_eq!(sequences(&world.received(next)), [1, 2, 3, 4], "given back, each stands where it stood");
}

#[test]
fn a_window_is_the_prefetch_and_what_was_handed_over_up_to_the_extension() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    for sequence in 1..=20 {
        world.send(connection, message(&orders, sequence));
    }
    let credit = Credit::Window { prefetch: 5, extension: Some(3) };
    let consumer = world.consumer(connection, &orders, credit);
    assert_eq!(world.received(consumer).len(), 5);
    world.ack(consumer, 1, 2, AckKind::Delivered);
    assert_eq!(world.received(consumer).len(), 2);
    world.hand_over(consumer, 5);
    assert_eq!(world.received(consumer).len(), 1, "three of the five widen the window");
    assert_eq!(world.counts(&orders).in_flight, 8);
    world.ack(consumer, 1, 1, AckKind::Standard);
    assert_eq!(world.received(consumer).len(), 1, "four are handed over, three of them widen it");
    world.ack(consumer, 2, 5, AckKind::Standard);
    assert_eq!(world.counts(&orders).in_flight, 5);
}

#[test]
fn an_unbounded_window_never_holds_up_what_was_not_handed_over() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    for sequence in 1..=20 {
        world.send(connection, message(&orders, sequence));
    }
    let consumer = world.consumer(connection, &orders, window(2));
    for number in 1..=18 {
        world.hand_over(consumer, number);
    }
    assert_eq!(world.counts(&orders).in_flight, 20);
}

#[test]
fn explicit_credit_is_used_up_message_by_message_and_ends_with_a_drain() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let puller = world.consumer(connection, &orders, Credit::Explicit);
    for sequence in 1..=4 {
        world.send(connection, message(&orders, sequence));
    }
    assert!(world.received(puller).is_empty());
    let subscription = puller.subscription;
    world.done(connection, Command::Grant { subscription, credit: 1 });
    assert_eq!(sequences(&world.received(puller)), [1]);
    world.done(connection, Command::Grant { subscription, credit: 1 });
    assert_eq!(sequences(&world.received(puller)), [2], "whatever is not settled");
    world.done(connection, Command::Grant { subscription, credit: 4 });
    assert_eq!(sequences(&world.received(puller)), [3, 4]);
    world.done(connection, Command::Drain { subscription });
    world.send(connection, message(&orders, 5));
    assert!(world.received(puller).is_empty(), "the credit was taken back");
}

#[test]
fn an_open_subscription_is_confirmed_with_its_deliveries() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    world.send(connection, message(&orders, 1));
    // `consumer` asks for a confirmation in the step of the command itself.
    let consumer = world.consumer(connection, &orders, window(1));
    assert_eq!(sequences(&world.received(consumer)), [1]);
}

#[test]
fn ten_thousand_consumers_take_their_turns() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumers: Vec<_> = (0..10_000).map(|_| world.consumer(connection, &orders, window(2))).collect();
    for sequence in 1..=20_000 {
        world.send(connection, message(&orders, sequence));
    }
    for (index, consumer) in consumers.into_iter().enumerate() {
        let index = index as u64;
        assert_eq!(sequences(&world.received(consumer)), [index + 1, index + 10_001]);
    }
}

#[test]
fn the_same_history_has_the_same_effects() {
    let run = || {
        let mut world = World::new();
        let (connection, orders) = (world.connect(), queue("orders"));
        let consumers: Vec<_> = (0..50).map(|_| world.consumer(connection, &orders, window(3))).collect();
        for sequence in 1..=120 {
            world.send(connection, message(&orders, sequence));
        }
        consumers.into_iter().map(|consumer| sequences(&world.received(consumer))).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}
