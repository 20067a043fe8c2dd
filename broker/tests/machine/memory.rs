//! The memory limit: who waits, for how long, and who never does.

use std::sync::Arc;
use std::time::Duration;

use corriere_broker::Settings;
use corriere_broker::machine::Input;
use corriere_core::provider::{AckKind, Command, Confirmation, ProviderError, SendMessage};
use corriere_core::{DeliveryMode, Destination, Message, ProducerId, TransactionId};

use super::world::*;

const DONE: Option<&Outcome> = Some(&Ok(Confirmation::Done));

fn limited(messages: u64) -> World {
    let size = message(&queue("orders"), 1).size() as u64;
    World::with(Settings { memory_limit: size * messages, redelivery: policy(), ..Settings::default() })
}

fn large(orders: &Destination, bytes: usize) -> Message {
    let mut message = message(orders, 1);
    *message.body_mut().unwrap() = Message::bytes(vec![7; bytes]).body().clone();
    message
}

#[test]
fn sends_wait_in_their_order_until_acknowledgements_make_room() {
    let mut world = limited(2);
    let (connection, orders) = (world.connect(), queue("orders"));
    let sends: Vec<_> = (1..=5).map(|sequence| world.send(connection, message(&orders, sequence))).collect();
    assert_eq!(world.pending(&orders), [1, 2]);
    let consumer = world.consumer(connection, &orders, window(1));
    for number in 1..=5 {
        assert_eq!(sequences(&world.received(consumer)), [number]);
        assert!(world.machine.memory_used() <= 2 * message(&orders, 1).size() as u64);
        world.ack(consumer, number, number, AckKind::Standard);
    }
    assert!(sends.iter().all(|send| world.outcome(*send) == DONE));
    assert_eq!(world.machine.memory_used(), 0);
}

#[test]
fn a_small_message_does_not_overtake_a_large_one() {
    let orders = queue("orders");
    let mut world = limited(4);
    let connection = world.connect();
    world.send(connection, message(&orders, 9));
    let big = world.send(connection, large(&orders, 900));
    let small = world.send(connection, message(&orders, 2));
    assert_eq!((world.outcome(big), world.outcome(small)), (None, None));
    let consumer = world.consumer(connection, &orders, window(9));
    world.ack(consumer, 1, 1, AckKind::Standard);
    assert_eq!((world.outcome(big), world.outcome(small)), (DONE, None));
}

#[test]
fn a_message_above_the_limit_is_admitted_alone_and_only_alone() {
    let mut world = World::with(Settings { memory_limit: 32 * 1024 * 1024, ..Settings::default() });
    let (connection, orders) = (world.connect(), queue("orders"));
    let alone = world.send(connection, large(&orders, 64 * 1024 * 1024));
    assert_eq!(world.outcome(alone), DONE);
    let behind = world.send(connection, message(&orders, 2));
    assert_eq!(world.outcome(behind), None);
    let consumer = world.consumer(connection, &orders, window(2));
    world.ack(consumer, 1, 1, AckKind::Standard);
    assert_eq!(world.outcome(behind), DONE);
    let again = world.send(connection, large(&orders, 64 * 1024 * 1024));
    assert_eq!(world.outcome(again), None, "another message is there");
}

#[test]
fn a_message_above_the_limit_holds_up_nobody_but_its_own_producer() {
    let mut world = limited(3);
    let orders = queue("orders");
    let [greedy, modest] = [world.connect(), world.connect()];
    world.send(modest, message(&orders, 1));
    let oversized = world.send(greedy, large(&orders, 50_000));
    let behind = world.send(greedy, message(&orders, 2));
    for sequence in 3..=4 {
        let passing = world.send(modest, message(&orders, sequence));
        assert_eq!(world.outcome(passing), DONE, "there is room for {sequence}");
    }
    let waiting = world.send(modest, message(&orders, 5));
    assert_eq!([oversized, behind, waiting].map(|send| world.outcome(send)), [None; 3]);
    let consumer = world.consumer(modest, &orders, window(9));
    world.ack(consumer, 1, 1, AckKind::Standard);
    assert_eq!([oversized, behind, waiting].map(|send| world.outcome(send)), [None, None, DONE]);
    world.ack(consumer, 2, 4, AckKind::Standard);
    assert_eq!([oversized, behind].map(|send| world.outcome(send)), [DONE, None], "it is there alone");
    world.ack(consumer, 5, 5, AckKind::Standard);
    assert_eq!(world.outcome(behind), DONE);
    assert_eq!(sequences(&world.received(consumer)), [1, 3, 4, 5, 1, 2]);
}

#[test]
fn what_waits_behind_a_message_above_the_limit_goes_on_when_that_fails() {
    let mut world = limited(3);
    let orders = queue("orders");
    let [greedy, modest] = [world.connect(), world.connect()];
    world.send(modest, message(&orders, 1));
    let patience = [1, 2, 9].map(Duration::from_secs);
    let messages = [large(&orders, 50_000), large(&orders, 50_000), message(&orders, 2)];
    let [first, second, behind] = std::array::from_fn(|index| {
        let (message, deadline) = (Arc::new(messages[index].clone()), Some(patience[index]));
        let send = SendMessage { producer: ProducerId(1), message, transaction: None, deadline };
        world.submit(greedy, Command::Send(send))
    });
    world.advance(Duration::from_secs(1));
    assert!(matches!(world.outcome(first), Some(Err(ProviderError::MemoryFull { .. }))));
    assert_eq!([second, behind].map(|send| world.outcome(send)), [None, None]);
    world.advance(Duration::from_secs(1));
    assert!(matches!(world.outcome(second), Some(Err(ProviderError::MemoryFull { .. }))));
    assert_eq!(world.outcome(behind), DONE);
}

#[test]
fn a_transaction_that_settles_what_fills_memory_need_not_wait_for_its_own_sends() {
    let mut world = limited(3);
    let [orders, mails] = ["orders", "mails"].map(queue);
    let [crowd, worker] = [world.connect(), world.connect()];
    let sends: Vec<_> = (1..=9).map(|sequence| world.send(crowd, message(&orders, sequence))).collect();
    assert_eq!((world.outcome(sends[2]), world.outcome(sends[3])), (DONE, None));
    let consumer = world.consumer(worker, &orders, window(1));
    let producer = ProducerId(2);
    let identity = "ID:worker".into();
    let open = Command::OpenProducer { producer, session: consumer.session, identity, destination: None };
    world.done(worker, open);
    world.begin(worker, 1);
    let mail = |sequence, transaction: Option<u64>, producer| {
        let (message, transaction) = (message(&mails, sequence), transaction.map(TransactionId::Local));
        Command::Send(SendMessage { producer, message: Arc::new(message), transaction, deadline: None })
    };
    let beside = world.submit(worker, mail(1, Some(1), ProducerId(1)));
    assert_eq!(world.outcome(beside), None, "its session has no deliveries");
    world.roll_back(worker, 1);
    world.begin(worker, 2);
    world.ack_in(consumer, 2, 1, 1);
    // Three on top of the three that are there, in less than twice the limit: destinations differ in length.
    for sequence in 1..=3 {
        let overdrawn = world.submit(worker, mail(sequence, Some(2), producer));
        assert_eq!(world.outcome(overdrawn), DONE, "mail {sequence}");
    }
    let too_many = world.submit(worker, mail(4, Some(2), producer));
    let outside = world.submit(worker, mail(5, None, producer));
    assert_eq!((world.outcome(too_many), world.outcome(outside)), (None, None));
    world.roll_back(worker, 2);
    world.begin(worker, 3);
    world.ack_in(consumer, 3, 1, 1);
    let behind = world.submit(worker, mail(6, Some(3), producer));
    assert_eq!(world.outcome(behind), None, "it does not overtake what its producer sent before");
    assert_eq!(world.outcome(sends[3]), None);
}

#[test]
fn a_rollback_does_not_walk_the_sends_that_wait() {
    let mut world = limited(1);
    let orders = queue("orders");
    let [crowd, other] = [world.connect(), world.connect()];
    world.send(crowd, message(&orders, 1));
    for sequence in 2..=100_000 {
        world.send(crowd, message(&orders, sequence));
    }
    // A walk over all that wait at each rollback would be 10^10 looks, which is a hang; without it this is a second.
    let started = std::time::Instant::now();
    for transaction in 1..=100_000 {
        world.begin(other, transaction);
        world.roll_back(other, transaction);
        assert!(started.elapsed() < Duration::from_secs(60), "rollback {transaction} is still not reached");
    }
}

#[test]
fn a_send_that_waited_too_long_fails_by_name_while_acknowledgements_go_on() {
    let mut world = limited(1);
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(1));
    world.send(connection, message(&orders, 1));
    let patient = world.send(connection, message(&orders, 2));
    let deadline = Some(Duration::from_secs(3));
    let message = Arc::new(message(&orders, 3));
    let send = SendMessage { producer: ProducerId(1), message, transaction: None, deadline };
    let hasty = world.submit(connection, Command::Send(send));
    world.advance(Duration::from_secs(3));
    let Some(Err(error @ ProviderError::MemoryFull { .. })) = world.outcome(hasty) else {
        panic!("{:?}", world.outcome(hasty));
    };
    let text = error.to_string();
    assert!(
        text.contains("ID:test-")
            && text.contains(":3 to ")
            && text.contains("queue://orders")
            && text.contains("3s"),
        "{text}"
    );
    assert_eq!(world.outcome(patient), None);
    world.ack(consumer, 1, 1, AckKind::Standard);
    assert_eq!(world.outcome(patient), DONE);
    assert_eq!(sequences(&world.received(consumer)), [1, 2]);
}

#[test]
fn a_send_without_patience_fails_at_once() {
    let mut world = limited(1);
    let (connection, orders) = (world.connect(), queue("orders"));
    world.send(connection, message(&orders, 1));
    let message = Arc::new(message(&orders, 2));
    let deadline = Some(Duration::ZERO);
    let send = SendMessage { producer: ProducerId(1), message, transaction: None, deadline };
    let refused = world.ask(connection, Command::Send(send));
    assert!(matches!(refused, Err(ProviderError::MemoryFull { .. })));
}

#[test]
fn open_transactions_count_and_rollbacks_free() {
    let mut world = limited(2);
    let (connection, orders) = (world.connect(), queue("orders"));
    world.begin(connection, 1);
    world.send_in(connection, 1, message(&orders, 1));
    world.send_in(connection, 1, message(&orders, 2));
    let outside = world.send(connection, message(&orders, 3));
    assert_eq!(world.outcome(outside), None);
    world.roll_back(connection, 1);
    assert_eq!(world.outcome(outside), DONE);
}

#[test]
fn a_rollback_takes_its_waiting_sends_along() {
    let mut world = limited(1);
    let (connection, orders) = (world.connect(), queue("orders"));
    world.send(connection, message(&orders, 1));
    world.begin(connection, 1);
    let waiting = world.send_in(connection, 1, message(&orders, 2));
    world.roll_back(connection, 1);
    assert!(matches!(world.outcome(waiting), Some(Err(ProviderError::RolledBack { .. }))));
    assert_eq!(world.wake_at, None, "its deadline is gone too");
}

#[test]
fn a_message_on_several_subscriptions_counts_once() {
    let mut world = World::new();
    let (connection, prices) = (world.connect(), Destination::topic("prices").unwrap());
    let consumers = [0; 3].map(|_| world.consumer(connection, &prices, window(5)));
    world.send(connection, message(&prices, 1));
    let size = message(&prices, 1).size() as u64;
    for consumer in consumers {
        assert_eq!(world.machine.memory_used(), size);
        world.ack(consumer, 1, 1, AckKind::Standard);
    }
    assert_eq!(world.machine.memory_used(), 0);
}

#[test]
fn waiting_sends_end_with_their_connection() {
    let mut world = limited(1);
    let orders = queue("orders");
    let [keeper, lost, closed] = [0; 3].map(|_| world.connect());
    world.send(keeper, message(&orders, 1));
    world.send(lost, message(&orders, 2));
    let unheard = world.send(closed, message(&orders, 3));
    world.step(Input::Vanished { connection: lost });
    world.done(closed, Command::Close);
    assert_eq!(world.outcome(unheard), Some(&Err(ProviderError::Lost)));
    let consumer = world.consumer(keeper, &orders, window(1));
    world.ack(consumer, 1, 1, AckKind::Standard);
    assert_eq!(sequences(&world.received(consumer)), [1]);
    assert_eq!(world.wake_at, None);
}

#[test]
fn an_urgent_message_that_waited_for_memory_goes_before_what_was_there() {
    let mut world = limited(2);
    let (connection, orders) = (world.connect(), queue("orders"));
    let consumer = world.consumer(connection, &orders, window(1));
    for (sequence, priority) in [(1, 4), (2, 4), (3, 9)] {
        let mut message = with_priority(&orders, sequence, priority);
        // A persistent one would have to be stored first.
        message.headers_mut().delivery_mode = DeliveryMode::NonPersistent;
        world.send(connection, message);
    }
    world.ack(consumer, 1, 1, AckKind::Standard);
    assert_eq!(sequences(&world.received(consumer)), [1, 3]);
}
