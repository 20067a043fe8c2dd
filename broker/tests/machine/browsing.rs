//! Browsers: what is in a queue is shown, in its order, and nothing comes of it.

use std::time::Duration;

use corriere_broker::Settings;
use corriere_broker::machine::Input;
use corriere_broker::store::StoreError;
use corriere_core::provider::{AckKind, Command, Confirmation, ProviderError, SessionMode};
use corriere_core::{Destination, SessionId, TransactionId};

use super::world::*;

fn filled(count: u64) -> (World, corriere_broker::machine::ConnectionKey, Destination) {
    let mut world = World::new();
    let (connection, orders) = (world.connect(), queue("orders"));
    for sequence in 1..=count {
        world.send(connection, message(&orders, sequence));
    }
    (world, connection, orders)
}

#[test]
fn a_browser_sees_all_and_removes_none_in_flight_and_delayed_ones_included() {
    let (mut world, connection, orders) = filled(3);
    let consumer = world.consumer(connection, &orders, window(2));
    world.ack(consumer, 1, 1, failed());
    world.send(connection, with_priority(&orders, 4, 9));
    let before = world.counts(&orders);
    let (operations, notes) = (world.operations.len(), world.notes.len());
    let browser = world.browser(connection, &orders);
    world.grant(browser, 10);
    let shown = world.received(browser);
    assert_eq!(counted(&shown), [(4, 1), (1, 2), (2, 1), (3, 1)]);
    assert!(shown.iter().all(|dispatch| dispatch.mark.is_none()));
    assert_eq!(world.counts(&orders), before);
    assert_eq!((world.operations.len(), world.notes.len()), (operations, notes));
    world.received(consumer);
    world.advance(Duration::from_secs(1));
    assert_eq!(counted(&world.received(consumer)), [(1, 2), (4, 1)], "as if nobody had looked");
}

#[test]
fn a_browser_is_shown_no_more_than_it_has_credit_for_and_its_end_needs_none() {
    let (mut world, connection, orders) = filled(5);
    let browser = world.browser(connection, &orders);
    assert!(world.received(browser).is_empty() && !world.has_ended(browser));
    world.grant(browser, 2);
    world.grant(browser, 2);
    assert_eq!(sequences(&world.received(browser)), [1, 2, 3, 4]);
    assert!(!world.has_ended(browser));
    world.grant(browser, 1);
    assert_eq!(world.browse_ends, [(browser, 1)], "told behind the last message, in its step");
    world.grant(browser, 5);
    assert_eq!(sequences(&world.received(browser)), [5]);
}

#[test]
fn a_browser_shows_what_was_there_when_it_was_opened_as_far_as_it_still_is() {
    let (mut world, connection, orders) = filled(5);
    let consumer = world.consumer(connection, &orders, window(3));
    let browser = world.browser(connection, &orders);
    world.grant(browser, 1);
    world.ack(consumer, 2, 3, AckKind::Standard);
    world.send(connection, with_priority(&orders, 6, 9));
    world.send(connection, message(&orders, 7));
    world.grant(browser, 10);
    assert_eq!(sequences(&world.received(browser)), [1, 4, 5]);
    assert!(world.has_ended(browser));
}

#[test]
fn a_browser_of_which_the_rest_was_consumed_ends_at_its_next_credit() {
    let (mut world, connection, orders) = filled(3);
    let browser = world.browser(connection, &orders);
    let consumer = world.consumer(connection, &orders, window(3));
    world.ack(consumer, 1, 3, AckKind::Standard);
    world.grant(browser, 1);
    assert_eq!(world.browse_ends, [(browser, 0)]);
}

#[test]
fn a_queue_that_is_not_there_is_empty_and_is_not_made() {
    let mut world = World::new();
    let connection = world.connect();
    let browser = world.browser(connection, &queue("nowhere"));
    assert_eq!(world.browse_ends, [(browser, 0)]);
    assert!(world.machine.destinations().is_empty());
    world.close(browser, 0);
}

#[test]
fn a_topic_cannot_be_browsed() {
    let mut world = World::new();
    let connection = world.connect();
    let destination = Destination::topic("prices").unwrap();
    let (subscription, session) = (corriere_core::SubscriptionId(50), SessionId(1));
    let browse = Command::Browse { subscription, session, destination, selector: None };
    let refused = world.ask(connection, browse);
    assert!(
        matches!(&refused, Err(ProviderError::InvalidDestination { destination, .. }) if destination == "topic://prices"),
        "{refused:?}"
    );
}

#[test]
fn what_a_browser_was_shown_can_be_acknowledged_and_nothing_comes_of_it() {
    let (mut world, connection, orders) = filled(3);
    let browser = world.browser(connection, &orders);
    world.grant(browser, 3);
    world.begin(connection, 1);
    let before = world.counts(&orders);
    for kind in
        [AckKind::Delivered, AckKind::Standard, failed(), poison(), AckKind::Expired, AckKind::Retained]
    {
        world.ack(browser, 1, 3, kind);
    }
    world.ack_in(browser, 1, 1, 3);
    world.hand_over(browser, 3);
    let commit = world.commit(connection, 1);
    assert_eq!(world.outcome(commit), Some(&Ok(Confirmation::Done)));
    assert_eq!(world.counts(&orders), before);
    assert_eq!(world.pending(&orders), [1, 2, 3]);
    assert!(world.attempts.is_empty());
}

#[test]
fn a_closed_browser_is_shown_nothing_more_and_its_number_is_free() {
    let (mut world, connection, orders) = filled(3);
    let browser = world.browser(connection, &orders);
    world.grant(browser, 1);
    world.close(browser, 0);
    let grant = Command::Grant { subscription: browser.subscription, credit: 5 };
    let gone = Err(ProviderError::Unknown { what: format!("subscription {}", browser.subscription) });
    assert_eq!(world.ask(connection, grant), gone);
    assert_eq!(sequences(&world.received(browser)), [1]);
    let again = subscribe(SessionId(1), browser.subscription, &orders, window(1));
    world.done(connection, Command::OpenSubscription(Box::new(again)));
    let taken = Command::Browse {
        subscription: browser.subscription,
        session: SessionId(1),
        destination: orders,
        selector: None,
    };
    assert!(matches!(world.ask(connection, taken), Err(ProviderError::Exists { .. })));
}

#[test]
fn a_browser_ends_with_its_session_and_with_its_connection() {
    let (mut world, connection, orders) = filled(3);
    let browser = world.browser(connection, &orders);
    world.close_session(browser);
    world.done(connection, Command::OpenSession { session: SessionId(1), mode: SessionMode::Auto });
    let grant = Command::Grant { subscription: browser.subscription, credit: 5 };
    assert!(matches!(world.ask(connection, grant), Err(ProviderError::Unknown { .. })));
    let other = world.browser(connection, &orders);
    world.step(Input::Vanished { connection });
    assert!(!world.has_ended(other));
    assert_eq!(world.counts(&orders).pending, 3);
}

#[test]
fn a_drain_takes_back_the_credit_of_a_browser() {
    let (mut world, connection, orders) = filled(1);
    let browser = world.browser(connection, &orders);
    let drain = Command::Drain { subscription: browser.subscription };
    world.done(connection, drain);
    world.grant(browser, 3);
    assert_eq!((sequences(&world.received(browser)), world.has_ended(browser)), (vec![1], true));
}

/// A queue with more than fits in memory, so that most bodies are with the store only.
fn overfull(count: u64) -> (World, corriere_broker::machine::ConnectionKey, Destination) {
    let mut world =
        World::loading(Settings { memory_limit: 4_000, redelivery: policy(), ..Settings::default() });
    let (connection, orders) = (world.connect(), queue("orders"));
    for sequence in 1..=count {
        world.send(connection, message(&orders, sequence));
    }
    world.loads.clear();
    (world, connection, orders)
}

#[test]
fn bodies_that_are_with_the_store_are_read_back_for_a_browser_a_few_at_a_time_and_not_kept() {
    let (mut world, connection, orders) = overfull(100);
    let used = world.machine.memory_used();
    let browser = world.browser(connection, &orders);
    world.grant(browser, 5);
    world.grant(browser, 500);
    let mut shown = 0;
    while !world.loads.is_empty() {
        assert!(world.loads.len() <= 16, "{} are read back at once", world.loads.len());
        let wanted = std::mem::take(&mut world.loads);
        shown += wanted.len();
        let messages = wanted.into_iter().map(|stored| (stored, Ok(world.stored_message(stored).unwrap())));
        let messages = messages.collect();
        world.step(Input::Loaded { messages });
    }
    assert!(shown > 50, "{shown} were read back");
    assert_eq!(sequences(&world.received(browser)), (1..=100).collect::<Vec<_>>());
    assert!(world.has_ended(browser));
    assert_eq!(world.machine.memory_used(), used, "the queue has not regained any");
}

#[test]
fn a_drain_of_a_browser_waits_for_the_bodies_that_it_may_have() {
    let (mut world, connection, orders) = overfull(100);
    let browser = world.browser(connection, &orders);
    world.grant(browser, 60);
    let drain = world.submit(connection, Command::Drain { subscription: browser.subscription });
    assert_eq!(world.outcome(drain), None);
    world.bring_back();
    assert_eq!(world.outcome(drain), Some(&Ok(Confirmation::Done)));
    assert_eq!(world.received(browser).len(), 60);
}

#[test]
fn a_body_that_a_consumer_and_a_browser_want_is_asked_for_once_and_reaches_both() {
    let (mut world, connection, orders) = overfull(100);
    let browser = world.browser(connection, &orders);
    world.grant(browser, 500);
    let consumer = world.consumer(connection, &orders, window(100));
    let mut asked = world.loads.clone();
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(asked.len(), world.loads.len());
    world.bring_back();
    assert_eq!(sequences(&world.received(browser)), (1..=100).collect::<Vec<_>>());
    assert_eq!(world.received(consumer).len(), 100);
}

#[test]
fn a_message_that_does_not_decode_is_left_out_of_a_browse_and_told_of_once() {
    let (mut world, connection, orders) = overfull(100);
    let browser = world.browser(connection, &orders);
    world.grant(browser, 500);
    let mut wanted = std::mem::take(&mut world.loads);
    let damaged = wanted.remove(1);
    let lost = sequence_of_stored(&world, damaged);
    let error = StoreError::Damaged { place: "journal 1".to_owned(), reason: "a bit".to_owned() };
    let mut messages = vec![(damaged, Err(error))];
    messages.extend(wanted.into_iter().map(|stored| (stored, Ok(world.stored_message(stored).unwrap()))));
    world.step(Input::Loaded { messages });
    world.bring_back();
    let expected: Vec<u64> = (1..=100).filter(|sequence| *sequence != lost).collect();
    assert_eq!(sequences(&world.received(browser)), expected);
    assert!(world.has_ended(browser));
    assert_eq!(world.set_aside.iter().map(|aside| aside.stored).collect::<Vec<_>>(), [damaged]);
    let again = world.browser(connection, &orders);
    world.grant(again, 500);
    let consumer = world.consumer(connection, &orders, window(200));
    world.bring_back();
    assert_eq!(world.received(again).len(), 99);
    assert_eq!(world.received(consumer).len(), 99, "the messages behind it are delivered");
    assert_eq!(world.set_aside.len(), 1);
}

#[test]
fn a_message_that_is_consumed_while_it_is_read_back_for_a_browser_is_left_out() {
    let (mut world, connection, orders) = overfull(100);
    let browser = world.browser(connection, &orders);
    world.grant(browser, 500);
    let wanted = std::mem::take(&mut world.loads);
    let consumer = world.consumer(connection, &orders, window(100));
    let to_consume: Vec<_> =
        wanted.iter().take(3).map(|stored| sequence_of_stored(&world, *stored)).collect();
    // The consumer is ahead of the browser: it is brought what it wants first.
    let first: Vec<_> = std::mem::take(&mut world.loads);
    let all = wanted.into_iter().chain(first);
    let messages = all.map(|stored| (stored, Ok(world.stored_message(stored).unwrap()))).collect();
    world.step(Input::Loaded { messages });
    let numbers: Vec<u64> = world.received(consumer).iter().map(|dispatch| dispatch.number).collect();
    world.ack(consumer, 1, *numbers.last().unwrap(), AckKind::Standard);
    world.bring_back();
    let shown = sequences(&world.received(browser));
    assert!(to_consume.iter().all(|sequence| shown.contains(sequence)), "it had come by then");
    assert!(world.has_ended(browser));
    assert_eq!(shown.len(), shown.iter().collect::<std::collections::BTreeSet<_>>().len());
}

#[test]
fn an_acknowledgement_of_a_browser_in_a_transaction_that_is_not_there_is_refused() {
    let (mut world, connection, orders) = filled(1);
    let browser = world.browser(connection, &orders);
    let ack = acknowledge(browser, 1, 1, AckKind::Standard, Some(TransactionId::Local(404)));
    assert!(matches!(world.ask(connection, ack), Err(ProviderError::Unknown { .. })));
}

fn sequence_of_stored(world: &World, stored: corriere_broker::store::StoredId) -> u64 {
    world.stored_message(stored).unwrap().headers().message_id.as_ref().unwrap().sequence
}
