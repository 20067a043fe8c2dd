//! What an operator does: nothing is lost or doubled, what somebody has is left alone, and all of it is counted.

use std::time::Duration;

use corriere_broker::machine::{Action, Input};
use corriere_broker::store::{Arrival, StoreError, StoreOperation};
use corriere_broker::{Counts, OperationCounts, Settings};
use corriere_core::provider::{AckKind, Cause, Command};
use corriere_core::{Destination, Message};

use super::world::*;

const SECOND: Duration = Duration::from_secs(1);

fn done(count: u64) -> OperationCounts {
    OperationCounts { matched: count, done: count, ..OperationCounts::default() }
}

fn full() -> Result<(), StoreError> {
    Err(StoreError::Full { reason: "no segment is free".into() })
}

/// What the store was given last, shortly.
fn last_operations(world: &World, count: usize) -> Vec<String> {
    let shortly = |operation: &StoreOperation| match operation {
        StoreOperation::Append { queue, arrival: Arrival::MovedIn, .. } => format!("moved in {queue}"),
        StoreOperation::Append { queue, arrival: Arrival::Copied, .. } => format!("copied to {queue}"),
        StoreOperation::Publish { topic, subscriptions, arrival: Arrival::MovedIn, .. } => {
            format!("moved in {topic} for {}", subscriptions.len())
        }
        StoreOperation::Remove { reason, transaction: None, .. } => format!("{reason:?}"),
        other => format!("{other:?}"),
    };
    let from = world.operations.len().saturating_sub(count);
    world.operations[from..].iter().map(shortly).collect()
}

/// A queue with so many messages.
fn filled(world: &mut World, name: &str, count: u64) -> Destination {
    let (connection, queue) = (world.connect(), queue(name));
    for sequence in 1..=count {
        world.send(connection, message(&queue, sequence));
    }
    queue
}

/// A dead letter for each of so many messages of a destination, which nobody consumes from afterwards.
fn dead(world: &mut World, destination: &Destination, count: u64) {
    let connection = world.connect();
    let consumer = world.consumer(connection, destination, window(100));
    for sequence in 1..=count {
        world.send(connection, message(destination, sequence));
    }
    world.ack(consumer, 1, count, poison());
    world.close_session(consumer);
}

/// What a new consumer is given.
fn delivered(world: &mut World, queue: &Destination) -> Vec<(u64, u32, Message)> {
    let connection = world.connect();
    let consumer = world.consumer(connection, queue, window(100));
    let received = world.received(consumer);
    received.iter().map(|it| (sequence_of(it), it.delivery_count, Message::clone(&it.message))).collect()
}

#[test]
fn what_is_purged_is_gone_and_counted_and_the_rest_stays() {
    let mut world = World::new();
    let orders = filled(&mut world, "orders", 6);
    assert_eq!(world.manage(&orders, Action::Purge, |sequence| sequence % 2 == 0), done(3));
    assert_eq!(world.pending(&orders), [1, 3, 5]);
    assert_eq!(last_operations(&world, 3), ["Purged", "Purged", "Purged"]);
    let counts = world.counts(&orders);
    assert_eq!((counts.purged, counts.pending, counts.discarded), (3, 3, 0));
    assert_eq!(world.machine.totals(&orders).unwrap().acknowledged, 0);
}

#[test]
fn what_is_to_be_taken_is_not_handed_out_as_what_stood_before_it_is_taken() {
    let mut world = World::new();
    let orders = filled(&mut world, "orders", 3);
    let connection = world.connect();
    let consumer = world.consumer(connection, &orders, window(2));
    world.hand_over(consumer, 2);
    for (number, delay) in [(1, SECOND), (2, Duration::ZERO)] {
        let cause = Cause::failure("the handler failed");
        world.ack(consumer, number, number, AckKind::Redelivered { delay: Some(delay), cause });
    }
    world.received(consumer);
    assert_eq!(world.manage(&orders, Action::Purge, |sequence| sequence < 3), done(2));
    assert_eq!(sequences(&world.received(consumer)), [3]);
}

#[test]
fn what_a_consumer_or_an_open_transaction_has_is_left_alone() {
    let mut world = World::new();
    let orders = filled(&mut world, "orders", 5);
    let connection = world.connect();
    let consumer = world.consumer(connection, &orders, window(3));
    world.begin(connection, 1);
    // It is in the hands of the application, so one more comes.
    world.ack_in(consumer, 1, 1, 1);
    let expected = OperationCounts { matched: 5, done: 1, skipped: 4, ..OperationCounts::default() };
    assert_eq!(world.manage(&orders, Action::Purge, |_| true), expected);
    let away = queue("away");
    let expected = OperationCounts { matched: 4, skipped: 4, ..OperationCounts::default() };
    assert_eq!(world.manage(&orders, Action::Move(away), |_| true), expected);
    world.commit(connection, 1);
    world.ack(consumer, 2, 4, AckKind::Standard);
    assert_eq!(world.counts(&orders).acknowledged, 4);
}

/// C-22.
#[test]
fn a_dead_letter_that_is_retried_begins_anew_and_can_fail_again() {
    let mut world = World::new();
    let (orders, letters) = (queue("orders"), queue("DLQ.orders"));
    let connection = world.connect();
    let consumer = world.consumer(connection, &orders, window(5));
    let mut sent = with_expiration(&orders, 1, world.now.0 + 3_600_000);
    sent.set_property("customer", 42).unwrap();
    world.send(connection, sent.clone());
    world.ack(consumer, 1, 1, poison());
    world.close_session(consumer);
    assert_eq!(world.manage(&letters, Action::Retry, |_| true), done(1));
    assert_eq!(last_operations(&world, 2), ["MovedOut", "moved in queue://orders"]);

    let connection = world.connect();
    let consumer = world.consumer(connection, &orders, window(5));
    let again = world.received(consumer).remove(0);
    assert_eq!(again.delivery_count, 1);
    let names: Vec<_> = again.message.properties().iter().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(names, ["customer"]);
    assert_eq!(again.message.headers().expiration, None);
    assert_eq!(again.message.headers().message_id, sent.headers().message_id);
    assert_eq!(again.message.headers().destination.as_ref(), Some(&orders));
    assert_eq!(again.message.body(), sent.body());
    let (from, to) = (world.counts(&letters), world.counts(&orders));
    assert_eq!((from.moved_in, from.moved_out, from.pending), (1, 1, 0));
    assert_eq!((to.enqueued, to.moved_in, to.dead_lettered, to.pending), (1, 1, 1, 1));

    world.ack(consumer, again.number, again.number, failed());
    world.advance(SECOND);
    assert_eq!(counted(&world.received(consumer)), [(1, 2)]);
    world.ack(consumer, again.number + 1, again.number + 1, poison());
    let (_, count, letter) = delivered(&mut world, &letters).remove(0);
    assert_eq!(count, 1);
    let cause: Option<String> = letter.property("dlqDeliveryFailureCause").unwrap();
    assert_eq!(cause.as_deref(), Some("E1"));
    let expiration: Option<i64> = letter.property("dlqOriginalExpiration").unwrap();
    assert_eq!(expiration, None, "it had none any more");
}

#[test]
fn a_retry_ends_although_consumers_fail_again_meanwhile() {
    let mut world = World::new();
    let (orders, letters) = (queue("orders"), queue("DLQ.orders"));
    dead(&mut world, &orders, 3);
    let page = world.machine.look_into(&letters).unwrap();
    assert_eq!(world.manage(&letters, Action::Retry, |_| true), done(3));
    let connection = world.connect();
    let consumer = world.consumer(connection, &orders, window(5));
    world.ack(consumer, 1, 3, poison());
    assert_eq!(world.counts(&letters).pending, 3);
    assert!(world.machine.show(&letters, page, 10).is_none(), "what died meanwhile is not in the first look");
}

#[test]
fn what_does_not_say_where_it_came_from_is_not_retried() {
    let mut world = World::new();
    let letters = queue("DLQ.orders");
    let connection = world.connect();
    world.send(connection, message(&letters, 1));
    let mut nowhere = message(&letters, 2);
    let properties = nowhere.properties_mut_unchecked();
    properties
        .set_unchecked("dlqOriginalDestination", corriere_core::Value::String("temp-queue://gone".into()));
    world.send(connection, nowhere);
    let expected = OperationCounts { matched: 2, without_destination: 2, ..OperationCounts::default() };
    assert_eq!(world.manage(&letters, Action::Retry, |_| true), expected);
    assert_eq!(world.pending(&letters), [1, 2]);
}

#[test]
fn dead_letters_of_a_topic_go_to_its_subscribers_and_stay_where_there_is_none() {
    let mut world = World::new();
    let (prices, letters) = (Destination::topic("prices").unwrap(), queue("DLQ.topic.prices"));
    dead(&mut world, &prices, 2);
    let expected = OperationCounts { matched: 2, without_destination: 2, ..OperationCounts::default() };
    assert_eq!(world.manage(&letters, Action::Retry, |_| true), expected);
    assert_eq!(world.counts(&letters).pending, 2);
    let connection = world.connect();
    let readers = [1, 2].map(|_| world.consumer(connection, &prices, window(5)));
    assert_eq!(world.manage(&letters, Action::Retry, |sequence| sequence == 2), done(1));
    for reader in readers {
        assert_eq!(counted(&world.received(reader)), [(2, 1)]);
    }
    assert_eq!(last_operations(&world, 1), ["MovedOut"]);
    assert_eq!(world.pending(&letters), [1]);
}

#[test]
fn a_dead_letter_goes_back_to_durable_subscriptions_as_to_a_queue_and_while_the_store_is_full() {
    let mut world = World::new();
    let (prices, letters) = (Destination::topic("prices").unwrap(), queue("DLQ.topic.prices"));
    dead(&mut world, &prices, 1);
    ["a", "b"].into_iter().for_each(|name| world.leave_durable("c", name));
    world.step(Input::StoreFull { reason: "no segment is free".into() });
    assert_eq!(world.manage(&letters, Action::Retry, |_| true), done(1));
    assert_eq!(last_operations(&world, 2), ["MovedOut", "moved in topic://prices for 2"]);
    let [a, b] = ["a", "b"].map(|name| world.described(name));
    for durable in [a, b] {
        let counts = durable.counts;
        assert_eq!((counts.moved_in, counts.enqueued, durable.totals.enqueued), (1, 0, 0));
        assert_eq!((counts.pending, durable.topic), (1, prices.clone()));
    }
    assert_eq!(world.counts(&letters).pending, 0);
}

#[test]
fn what_is_moved_begins_anew_behind_all_that_is_there() {
    let mut world = World::new();
    let (orders, away) = (filled(&mut world, "orders", 3), filled(&mut world, "away", 1));
    let connection = world.connect();
    let consumer = world.consumer(connection, &orders, window(1));
    world.ack(consumer, 1, 1, failed());
    // Reserved for its consumer, which goes on without it.
    assert_eq!(world.manage(&orders, Action::Move(away.clone()), |sequence| sequence == 1), done(1));
    world.received(consumer);
    world.ack(consumer, 2, 2, AckKind::Standard);
    assert_eq!(sequences(&world.received(consumer)), [3]);
    let there = delivered(&mut world, &away);
    let shortly: Vec<_> = there.iter().map(|(sequence, count, _)| (*sequence, *count)).collect();
    assert_eq!(shortly, [(1, 1), (1, 1)]);
    assert!(there.iter().all(|(_, _, message)| message.headers().destination.as_ref() == Some(&away)));
    world.advance(SECOND);
}

#[test]
fn what_there_is_no_room_for_in_the_store_is_where_it_was_and_as_it_was() {
    let mut world = World::new();
    let (orders, away) = (filled(&mut world, "orders", 2), queue("away"));
    let connection = world.connect();
    let patient = corriere_core::RedeliveryPolicy { non_blocking: true, ..policy() };
    let consumer = world.consumer_with(connection, &orders, window(1), Some(patient));
    world.ack(consumer, 1, 1, failed());
    world.close_session(consumer);
    world.hold_store = true;
    let ticket = world.order(&orders, Action::Move(away.clone()), |_| true);
    assert_eq!(world.unstored.len(), 2, "each by itself");
    assert_eq!(world.counts(&orders).pending, 0);
    world.store(full());
    assert!(world.managed.is_empty(), "not before all is known");
    world.store(Ok(()));
    let expected = OperationCounts { matched: 2, done: 1, no_room: 1, ..OperationCounts::default() };
    assert_eq!(world.managed.pop(), Some((ticket, Ok(expected))));
    world.hold_store = false;
    assert_eq!((world.pending(&orders), world.pending(&away)), (vec![1], vec![2]));
    let counts = world.counts(&orders);
    assert_eq!((counts.moved_out, counts.pending), (1, 1));
    // Its delay and its count are what they were, and it is no dead letter.
    let connection = world.connect();
    let consumer = world.consumer(connection, &orders, window(1));
    assert!(world.received(consumer).is_empty());
    world.advance(SECOND);
    assert_eq!(counted(&world.received(consumer)), [(1, 2)]);
}

#[test]
fn what_could_not_be_moved_is_kept_for_its_consumer_again_and_blocks_it() {
    for closes in [false, true] {
        let mut world = World::new();
        let orders = filled(&mut world, "orders", 3);
        let connection = world.connect();
        let consumer = world.consumer(connection, &orders, window(1));
        world.received(consumer);
        world.ack(consumer, 1, 1, failed());
        world.hold_store = true;
        world.order(&orders, Action::Move(queue("away")), |sequence| sequence == 1);
        assert_eq!(sequences(&world.received(consumer)), [2], "it goes on without it");
        if closes {
            world.submit(connection, Command::CloseSession { session: consumer.session });
        }
        while !world.unstored.is_empty() {
            let outcome = if world.is_move_next() { full() } else { Ok(()) };
            world.store(outcome);
        }
        world.hold_store = false;
        let other = world.consumer(connection, &orders, window(1));
        let second = if closes { (2, 1) } else { (3, 1) };
        assert_eq!(counted(&world.received(other)), [second]);
        world.advance(SECOND);
        world.ack(other, 1, 1, AckKind::Standard);
        if closes {
            assert_eq!(counted(&world.received(other)), [(1, 2)], "nobody is there that it was kept for");
        } else {
            assert!(world.received(other).is_empty(), "it is another one's");
            world.ack(consumer, 2, 2, AckKind::Standard);
            assert_eq!(counted(&world.received(consumer)), [(1, 2)]);
        }
    }
}

#[test]
fn what_expires_while_it_is_moved_in_vain_expires_then() {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    world.send(connection, with_expiration(&orders, 1, world.now.0 + 500));
    world.hold_store = true;
    world.order(&orders, Action::Move(queue("away")), |_| true);
    world.advance(SECOND);
    world.store(full());
    world.hold_store = false;
    world.step(Input::Tick);
    assert_eq!((world.counts(&orders).expired, world.counts(&orders).pending), (1, 0));
    while !world.unstored.is_empty() {
        world.store(Ok(()));
    }
    assert_eq!(world.counts(&queue("DLQ.orders")).pending, 1);
}

#[test]
fn a_failed_store_is_told_to_the_operator() {
    let mut world = World::new();
    let orders = filled(&mut world, "orders", 1);
    for action in [Action::Move(queue("away")), Action::Purge] {
        world.hold_store = true;
        let ticket = world.order(&orders, action, |_| true);
        world.store(Err(StoreError::Io("the disk is gone".to_owned())));
        let (told, outcome) = world.managed.pop().unwrap();
        assert_eq!(told, ticket);
        assert!(outcome.unwrap_err().to_string().contains("the disk is gone"));
    }
}

#[test]
fn copies_leave_everything_where_it_is_and_need_memory() {
    let size = message(&queue("orders"), 1).size() as u64;
    let mut world = World::with(Settings { memory_limit: size * 5, ..Settings::default() });
    let (orders, away) = (filled(&mut world, "orders", 3), queue("away"));
    let connection = world.connect();
    let consumer = world.consumer(connection, &orders, window(1));
    let expected = OperationCounts { matched: 3, done: 2, no_room: 1, ..OperationCounts::default() };
    assert_eq!(world.manage(&orders, Action::Copy(away.clone()), |_| true), expected);
    assert_eq!((world.pending(&orders), world.pending(&away)), (vec![1, 2, 3], vec![1, 2]));
    assert_eq!(world.counts(&orders).moved_out, 0);
    assert_eq!(last_operations(&world, 1), ["copied to queue://away"]);
    world.ack(consumer, 1, 1, AckKind::Standard);
}

#[test]
fn a_copy_that_the_store_has_no_room_for_leaves_nothing_and_sends_go_on_only_after_its_answer() {
    let mut world = World::new();
    let (orders, away) = (filled(&mut world, "orders", 2), queue("away"));
    let connection = world.connect();
    world.hold_store = true;
    let ticket = world.order(&orders, Action::Copy(away.clone()), |_| true);
    world.step(Input::StoreFull { reason: "no segment is free".into() });
    world.step(Input::StoreRoom);
    assert_eq!(world.reopened, 0, "the store may refuse the copies still");
    world.store(full());
    world.send(connection, message(&orders, 3));
    assert_eq!(world.unstored.len(), 1, "what is sent waits behind the second copy");
    assert!(world.managed.is_empty());
    world.store(full());
    let expected = OperationCounts { matched: 2, no_room: 2, ..OperationCounts::default() };
    assert_eq!(world.managed.pop(), Some((ticket, Ok(expected))));
    assert_eq!((world.reopened, world.unstored.len()), (1, 1), "and is sent then");
    world.store(Ok(()));
    world.hold_store = false;
    assert_eq!((world.pending(&orders), world.pending(&away)), (vec![1, 2, 3], vec![]));
    assert_eq!(world.counts(&away), Counts::default());
}

#[test]
fn what_is_moved_onto_its_own_queue_is_there_once() {
    let mut world = World::new();
    let orders = filled(&mut world, "orders", 3);
    assert_eq!(world.manage(&orders, Action::Move(orders.clone()), |sequence| sequence < 3), done(2));
    assert_eq!(world.pending(&orders), [3, 1, 2]);
}

#[test]
fn what_is_not_stored_moves_between_queues_that_end_with_a_connection_and_others() {
    let mut world = World::new();
    let connection = world.connect();
    let (orders, temporary) = (queue("orders"), world.temporary_queue(connection));
    world.send(connection, non_persistent(&orders, 1));
    world.send(connection, message(&orders, 2));
    assert_eq!(world.manage(&orders, Action::Move(temporary.clone()), |_| true), done(2));
    assert_eq!(world.pending(&temporary), [1, 2]);
    assert_eq!(world.manage(&temporary, Action::Move(orders.clone()), |_| true), done(2));
    assert_eq!((world.pending(&orders), world.machine.memory_used() > 0), (vec![1, 2], true));
    assert_eq!(world.manage(&orders, Action::Move(temporary.clone()), |_| true), done(2));
    world.done(connection, Command::DeleteTemporary { destination: temporary.clone() });
    assert_eq!(world.machine.memory_used(), 0);
    world.send(connection, message(&orders, 3));
    let expected = OperationCounts { matched: 1, without_destination: 1, ..OperationCounts::default() };
    assert_eq!(world.manage(&orders, Action::Move(temporary), |_| true), expected);
}

#[test]
fn bodies_that_are_with_the_store_only_are_moved_and_nothing_is_left_in_memory() {
    let size = message(&queue("orders"), 1).size() as u64;
    let mut world = World::loading(Settings { memory_limit: size * 4, ..Settings::default() });
    let orders = filled(&mut world, "orders", 20);
    assert!(world.machine.pending(&orders).len() < 20, "not all bodies are here");
    assert_eq!(world.manage(&orders, Action::Move(queue("away")), |_| true), done(20));
    assert_eq!(world.counts(&queue("away")).pending, 20);
    assert!(world.machine.memory_used() <= size * 4, "{}", world.machine.memory_used());
    assert_eq!(world.manage(&queue("away"), Action::Purge, |_| true), done(20));
    assert_eq!(world.machine.memory_used(), 0);
}

#[test]
fn what_is_gone_by_its_turn_is_skipped() {
    let mut world = World::new();
    let orders = filled(&mut world, "orders", 2);
    world.hold_store = true;
    world.order(&orders, Action::Move(queue("away")), |sequence| sequence == 1);
    let page = world.machine.look_into(&orders).unwrap();
    let (shown, _) = world.machine.show(&orders, page, 10).unwrap();
    assert_eq!(shown.len(), 1, "one is under way");
    world.hold_store = false;
    let messages = shown.into_iter().map(|shown| (shown.location, shown.body.unwrap())).collect::<Vec<_>>();
    assert_eq!(world.manage(&orders, Action::Purge, |_| true), done(1));
    let order = corriere_broker::machine::Order { queue: orders, action: Action::Purge, messages };
    world.step(Input::Manage { ticket: corriere_broker::machine::Ticket(999), order });
    let expected = OperationCounts { matched: 1, skipped: 1, ..OperationCounts::default() };
    assert_eq!(world.managed.pop().unwrap().1, Ok(expected));
}

#[test]
fn a_copy_that_the_store_does_not_get_is_made_while_that_is_full() {
    let mut world = World::new();
    let orders = queue("orders");
    let sender = world.connect();
    world.send(sender, message(&orders, 1));
    world.send(sender, non_persistent(&orders, 2));
    let news = Destination::topic("news").unwrap();
    let reader = world.connect();
    let reader = world.consumer(reader, &news, window(10));
    world.step(Input::StoreFull { reason: "no room".into() });
    let outcome = world.manage(&orders, Action::Copy(queue("copies")), |_| true);
    assert_eq!((outcome.done, outcome.no_room), (1, 1));
    assert_eq!(world.pending(&queue("copies")), [2]);
    // Of a topic without a durable subscription nothing is stored.
    let outcome = world.manage(&orders, Action::Copy(news), |_| true);
    assert_eq!((outcome.done, outcome.no_room), (2, 0));
    assert_eq!(sequences(&world.received(reader)), [1, 2]);
}
