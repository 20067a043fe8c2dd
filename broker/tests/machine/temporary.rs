//! Temporary destinations: whose they are, what they keep, and that nothing is left of them.

use std::time::Duration;

use corriere_broker::machine::{ConnectionKey, Input, Machine, Ticket};
use corriere_broker::store::StoreError;
use corriere_broker::{DeadLetters, Settings};
use corriere_core::provider::{AckKind, Command, Confirmation, Event, ProviderError, SessionMode, Subscribe};
use corriere_core::{
    ConnectionId, Destination, DestinationKind, ProducerId, SessionId, SubscriptionId, Timestamp,
    TransactionId, Xid,
};

use super::world::*;

#[track_caller]
fn assert_invalid(outcome: &Outcome, destination: &Destination, says: &str) {
    let Err(ProviderError::InvalidDestination { destination: named, reason }) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(*named, destination.to_string());
    assert!(reason.contains(says), "{reason}");
}

fn open(destination: &Destination, subscription: u64) -> Command {
    let plain = subscribe(SessionId(1), SubscriptionId(subscription), destination, window(5));
    Command::OpenSubscription(Box::new(plain))
}

fn browse(destination: &Destination, subscription: u64) -> Command {
    let (subscription, session) = (SubscriptionId(subscription), SessionId(1));
    Command::Browse { subscription, session, destination: destination.clone(), selector: None }
}

fn produce(destination: &Destination, producer: u64) -> Command {
    let (producer, session) = (ProducerId(producer), SessionId(1));
    Command::OpenProducer {
        producer,
        session,
        identity: "ID:p".into(),
        destination: Some(destination.clone()),
    }
}

#[test]
fn only_the_connection_that_made_it_consumes_from_it_and_anybody_sends_to_it() {
    let mut world = World::new();
    let (owner, other) = (world.connect(), world.connect());
    let replies = world.temporary_queue(owner);
    world.done(other, produce(&replies, 2));
    world.send(other, message(&replies, 1));
    assert_invalid(&world.ask(other, open(&replies, 50)), &replies, "belongs to connection ID:connection-1");
    assert_invalid(
        &world.ask(other, browse(&replies, 51)),
        &replies,
        "belongs to connection ID:connection-1",
    );
    let delete = Command::DeleteTemporary { destination: replies.clone() };
    assert_invalid(&world.ask(other, delete), &replies, "belongs to connection ID:connection-1");
    let consumer = world.consumer(owner, &replies, window(5));
    assert_eq!(sequences(&world.received(consumer)), [1]);
    let browser = world.browser(owner, &replies);
    world.grant(browser, 5);
    assert_eq!(sequences(&world.received(browser)), [1]);
}

#[test]
fn what_is_not_there_is_refused_and_not_made() {
    let mut world = World::new();
    let connection = world.connect();
    for kind in [DestinationKind::Queue, DestinationKind::Topic] {
        let nowhere = temporary(kind, connection, 404);
        assert_invalid(&world.ask(connection, send(message(&nowhere, 1), None)), &nowhere, "does not exist");
        assert_invalid(&world.ask(connection, open(&nowhere, 50)), &nowhere, "does not exist");
        assert_invalid(&world.ask(connection, produce(&nowhere, 2)), &nowhere, "does not exist");
        let delete = Command::DeleteTemporary { destination: nowhere.clone() };
        assert_invalid(&world.ask(connection, delete), &nowhere, "does not exist");
    }
    let nowhere = temporary(DestinationKind::Queue, connection, 404);
    assert_invalid(&world.ask(connection, browse(&nowhere, 50)), &nowhere, "does not exist");
    assert!(world.machine.destinations().is_empty());
    assert_eq!(world.machine.memory_used(), 0);
}

#[test]
fn a_name_that_is_not_the_connections_own_or_not_new_is_refused() {
    let mut world = World::new();
    let (connection, other) = (world.connect(), world.connect());
    let create = |destination: &Destination| Command::CreateTemporary { destination: destination.clone() };
    let lasting = queue("ID:connection-1:1");
    assert_invalid(&world.ask(connection, create(&lasting)), &lasting, "not temporary");
    for name in ["replies", "ID:connection-2:1", "ID:connection-1", "ID:connection-1:", "ID:connection-11:1"]
    {
        let foreign = Destination::temporary(DestinationKind::Queue, name).unwrap();
        assert_invalid(&world.ask(connection, create(&foreign)), &foreign, "`ID:connection-1:`");
    }
    let replies = world.temporary_queue(connection);
    assert!(matches!(world.ask(connection, create(&replies)), Err(ProviderError::Exists { .. })));
    // A topic of that name is another destination.
    let topic = Destination::temporary(DestinationKind::Topic, replies.name()).unwrap();
    assert_eq!(world.ask(connection, create(&topic)), Ok(Confirmation::Created(topic.clone())));
    assert_eq!(world.machine.destinations(), [replies, topic]);
    world.close_session(Consumer {
        connection: other,
        session: SessionId(1),
        subscription: SubscriptionId(0),
    });
}

#[test]
fn nothing_in_it_is_stored_and_none_of_it_becomes_a_dead_letter() {
    let settings = Settings { redelivery: policy(), dead_letter_non_persistent: true, ..Settings::default() };
    let mut world = World::with(settings);
    let connection = world.connect();
    let replies = world.temporary_queue(connection);
    world.begin(connection, 1);
    world.send_in(connection, 1, message(&replies, 1));
    world.commit(connection, 1);
    world.send(connection, message(&replies, 2));
    world.send(connection, with_expiration(&replies, 3, NOW.0 + 500));
    let consumer = world.consumer(connection, &replies, window(2));
    let received = world.received(consumer);
    assert_eq!(sequences(&received), [1, 2]);
    assert!(received.iter().all(|dispatch| dispatch.mark.is_none()));
    world.hand_over(consumer, 2);
    world.ack(consumer, 1, 1, poison());
    world.advance(Duration::from_secs(1));
    for number in [2, 4, 5] {
        world.ack(consumer, number, number, failed());
        world.advance(Duration::from_secs(60));
    }
    let counts = world.counts(&replies);
    assert_eq!((counts.discarded, counts.expired, counts.pending), (2, 1, 0));
    assert_eq!(counts.dead_lettered, 0);
    assert!(world.operations.is_empty() && world.attempts.is_empty());
    assert_eq!(world.machine.destinations(), [replies]);
    assert_eq!(world.machine.memory_used(), 0);
}

#[test]
fn priority_credit_redelivery_and_blocking_go_there_as_anywhere() {
    let mut world = World::new();
    let connection = world.connect();
    let replies = world.temporary_queue(connection);
    for (sequence, priority) in [(1, 4), (2, 9), (3, 4)] {
        world.send(connection, with_priority(&replies, sequence, priority));
    }
    let consumer = world.consumer(connection, &replies, window(2));
    assert_eq!(counted(&world.received(consumer)), [(2, 1), (1, 1)]);
    world.ack(consumer, 1, 1, failed());
    assert!(world.received(consumer).is_empty());
    world.advance(Duration::from_secs(1));
    assert_eq!(counted(&world.received(consumer)), [(2, 2), (1, 1)]);
    let other = world.consumer(connection, &replies, window(5));
    assert_eq!(counted(&world.received(other)), [(3, 1)]);
}

#[test]
fn a_body_that_is_nowhere_else_is_not_given_up_when_memory_is_short() {
    let mut world = World::loading(Settings { memory_limit: 4_000, ..Settings::default() });
    let connection = world.connect();
    let replies = world.temporary_queue(connection);
    let messages = (1..=12).map(|sequence| message(&replies, sequence));
    let mut size = 0;
    for message in messages {
        size += message.size() as u64;
        let sent = world.send(connection, message);
        assert_eq!(world.outcome(sent), Some(&Ok(Confirmation::Done)));
    }
    assert!(size > 2_000, "more than half of the memory, so that bodies would be given up elsewhere");
    assert_eq!(world.machine.memory_used(), size);
    let consumer = world.consumer(connection, &replies, window(100));
    assert_eq!(world.received(consumer).len(), 12);
    assert!(world.loads.is_empty());
}

#[test]
fn it_is_not_deleted_while_anybody_consumes_from_it() {
    let mut world = World::new();
    let connection = world.connect();
    let topic = temporary(DestinationKind::Topic, connection, 7);
    world.ask(connection, Command::CreateTemporary { destination: topic.clone() }).unwrap();
    for destination in [world.temporary_queue(connection), topic] {
        let consumer = world.consumer(connection, &destination, window(5));
        world.send(connection, message(&destination, 1));
        let delete = || Command::DeleteTemporary { destination: destination.clone() };
        assert_invalid(&world.ask(connection, delete()), &destination, "consumers (1)");
        // What it was handed and has not settled is discarded with the rest.
        world.close(consumer, 1);
        world.done(connection, delete());
        assert_eq!(world.machine.counts(&destination), None);
        assert_eq!(world.machine.memory_used(), 0);
        world.ack(consumer, 1, 1, AckKind::Standard);
        world.close_session(consumer);
    }
    assert!(world.machine.destinations().is_empty());
}

#[test]
fn a_browser_of_one_that_is_deleted_comes_to_its_end() {
    let mut world = World::new();
    let connection = world.connect();
    let replies = world.temporary_queue(connection);
    for sequence in 1..=3 {
        world.send(connection, message(&replies, sequence));
    }
    let browser = world.browser(connection, &replies);
    world.grant(browser, 1);
    world.done(connection, Command::DeleteTemporary { destination: replies });
    assert_eq!(world.browse_ends, [(browser, 1)]);
    world.close(browser, 0);
}

#[test]
fn it_ends_with_its_connection_and_refuses_the_producers_of_others_from_then_on() {
    let mut world = World::new();
    let (owner, other) = (world.connect(), world.connect());
    let replies = world.temporary_queue(owner);
    world.done(other, produce(&replies, 2));
    let consumer = world.consumer(owner, &replies, window(1));
    for sequence in 1..=3 {
        world.send(other, with_expiration(&replies, sequence, NOW.0 + 60_000));
    }
    world.hand_over(consumer, 1);
    world.step(Input::Vanished { connection: owner });
    assert!(world.machine.destinations().is_empty());
    assert_eq!((world.machine.memory_used(), world.wake_at), (0, None));
    let late = world.ask(other, send(message(&replies, 4), None));
    assert_invalid(&late, &replies, "does not exist");
    assert!(world.machine.destinations().is_empty(), "no queue of that name is made");
}

#[test]
fn sends_that_wait_for_one_that_goes_are_refused_and_those_behind_them_go_on() {
    let mut world = World::with(Settings { memory_limit: 2_000, ..Settings::default() });
    let (owner, other) = (world.connect(), world.connect());
    let (replies, orders) = (world.temporary_queue(owner), queue("orders"));
    let large = |destination: &Destination, sequence| {
        let mut large = corriere_core::Message::bytes(vec![7; 1_500]);
        *large.headers_mut() = non_persistent(destination, sequence).headers().clone();
        large
    };
    world.send(other, large(&replies, 1));
    world.begin(other, 1);
    let waiting = world.send(other, large(&replies, 2));
    let transacted = world.send_in(other, 1, large(&replies, 3));
    let behind = world.send(other, large(&orders, 4));
    assert_eq!([waiting, transacted, behind].map(|ticket| world.outcome(ticket)), [None; 3]);
    let commit = world.commit(other, 1);
    world.done(owner, Command::Close);
    for refused in [waiting, transacted] {
        assert_invalid(world.outcome(refused).unwrap(), &replies, "does not exist");
    }
    assert_eq!(world.outcome(commit), Some(&Ok(Confirmation::Done)));
    assert_eq!(world.outcome(behind), Some(&Ok(Confirmation::Done)));
    assert_eq!(world.pending(&orders), [4]);
}

#[test]
fn a_commit_goes_through_without_what_was_sent_to_one_that_is_gone() {
    let mut world = World::new();
    let (owner, other) = (world.connect(), world.connect());
    let (replies, orders) = (world.temporary_queue(owner), queue("orders"));
    world.send(other, message(&orders, 1));
    let consumer = world.consumer(other, &orders, window(1));
    world.begin(other, 1);
    world.ack_in(consumer, 1, 1, 1);
    let before = world.send_in(other, 1, message(&replies, 2));
    assert_eq!(world.outcome(before), Some(&Ok(Confirmation::Done)));
    world.send_in(other, 1, message(&queue("audit"), 3));
    world.done(owner, Command::Close);
    let after = world.send_in(other, 1, message(&replies, 4));
    assert_invalid(world.outcome(after).unwrap(), &replies, "does not exist");
    let commit = world.commit(other, 1);
    assert_eq!(world.outcome(commit), Some(&Ok(Confirmation::Done)));
    assert_eq!(world.counts(&orders).acknowledged, 1);
    assert_eq!(world.pending(&queue("audit")), [3]);
    assert_eq!(world.machine.destinations(), [queue("audit"), orders]);
}

#[test]
fn a_prepared_transaction_outlives_the_temporary_destination_that_it_names() {
    let mut world = World::new();
    let (owner, other) = (world.connect(), world.connect());
    let replies = world.temporary_queue(owner);
    let xid = Xid { format: 1, global: "g".into(), branch: "b".into() };
    let transaction = TransactionId::Distributed(xid);
    world.send(owner, message(&replies, 1));
    let consumer = world.consumer(owner, &replies, window(1));
    world.done(owner, Command::Begin { transaction: transaction.clone() });
    world.done(owner, acknowledge(consumer, 1, 1, AckKind::Standard, Some(transaction.clone())));
    world.done(owner, send(message(&replies, 2), Some(transaction.clone())));
    let prepared = world.ask(owner, Command::Prepare { transaction: transaction.clone() });
    assert_eq!(prepared, Ok(Confirmation::Prepared { must_commit: true }));
    world.done(owner, Command::Close);
    assert!(world.machine.destinations().is_empty());
    world.done(other, Command::Commit { transaction, one_phase: false });
    assert_eq!(world.machine.memory_used(), 0);
    assert!(world.operations.is_empty());
}

#[test]
fn who_watches_is_told_of_what_is_there_and_of_what_comes_and_goes() {
    let mut world = World::new();
    let (watcher, owner) = (world.connect(), world.connect());
    let early = world.temporary_queue(owner);
    assert!(world.changes.is_empty());
    world.done(watcher, Command::WatchEvents);
    let own = world.temporary_queue(watcher);
    let late = world.temporary_queue(owner);
    world.done(owner, Command::DeleteTemporary { destination: early.clone() });
    world.step(Input::Vanished { connection: owner });
    let told: Vec<_> = std::mem::take(&mut world.changes)
        .into_iter()
        .map(|(connection, event)| match event {
            Event::DestinationChanged { destination, exists } => (connection, destination, exists),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [(&early, true), (&own, true), (&late, true), (&early, false), (&late, false)];
    let expected: Vec<_> =
        expected.into_iter().map(|(destination, exists)| (watcher, destination.clone(), exists)).collect();
    assert_eq!(told, expected);
    world.done(watcher, Command::Close);
    assert!(world.changes.is_empty(), "its own are of no interest to one that is gone");
}

#[test]
fn ten_thousand_requests_leave_nothing_behind() {
    const CONNECTIONS: u64 = 20;
    const REQUESTS: u64 = 500;
    let settings = Settings { dead_letters: DeadLetters::Individual, ..Settings::default() };
    let mut machine = Machine::new(settings);
    let mut tickets = 0;
    let mut ask = |machine: &mut Machine, connection: ConnectionKey, command: Command| {
        tickets += 1;
        let input = Input::Command { connection, ticket: Ticket(tickets), command };
        let effects = machine.step(NOW, input);
        assert!(effects.store.is_empty(), "nothing of it is stored");
        assert_eq!(effects.wake_at, None);
        for (_, outcome) in effects.confirmations {
            outcome.unwrap();
        }
    };
    for key in 1..=CONNECTIONS {
        let connection = ConnectionKey(key);
        let identity = ConnectionId::foreign(&format!("ID:connection-{key}"));
        machine.step(NOW, Input::Connect { connection, identity, client_id: None });
        let (session, producer) = (SessionId(1), ProducerId(1));
        ask(&mut machine, connection, Command::OpenSession { session, mode: SessionMode::Auto });
        let identity = format!("ID:p-{key}").into();
        let producer = Command::OpenProducer { producer, session, identity, destination: None };
        ask(&mut machine, connection, producer);
        for request in 1..=REQUESTS {
            let kind = if request % 3 == 0 { DestinationKind::Topic } else { DestinationKind::Queue };
            let replies = temporary(kind, connection, request);
            ask(&mut machine, connection, Command::CreateTemporary { destination: replies.clone() });
            let subscription = SubscriptionId(request);
            let consumer = Subscribe { ..subscribe(session, subscription, &replies, window(1)) };
            ask(&mut machine, connection, Command::OpenSubscription(Box::new(consumer)));
            for sequence in 1..=2 {
                ask(&mut machine, connection, send(message(&replies, sequence), None));
            }
            let consumer = Consumer { connection, session, subscription };
            ask(&mut machine, connection, acknowledge(consumer, 1, 1, AckKind::Standard, None));
            let close = Command::CloseSubscription { subscription, last_handed_over: 0 };
            ask(&mut machine, connection, close);
            if request % 2 == 0 {
                ask(&mut machine, connection, Command::DeleteTemporary { destination: replies });
            }
        }
        machine.step(NOW, Input::Vanished { connection });
        assert!(machine.destinations().is_empty());
        assert_eq!(machine.memory_used(), 0);
    }
    let fresh = format!("{:?}", Machine::new(Settings::default()));
    let used = format!("{machine:?}");
    // What only counts up apart, it looks like one that was never used: no map of it has kept anything.
    assert!(used.len() < fresh.len() + 200, "{used}\n{fresh}");
    assert_eq!(machine.step(Timestamp(NOW.0 + 1), Input::Tick).wake_at, None);
}

#[test]
fn what_lets_a_transaction_of_another_end_neither_waits_for_that_nor_fails_with_it() {
    let size = message(&queue("orders"), 1).size() as u64;
    for ends in [None, Some(Command::Close)] {
        let mut world = World::with(Settings { memory_limit: 2 * size, ..Settings::default() });
        let (owner, other) = (world.connect(), world.connect());
        let replies = world.temporary_queue(owner);
        let end = ends.unwrap_or_else(|| Command::DeleteTemporary { destination: replies.clone() });
        world.begin(other, 1);
        world.send_in(other, 1, message(&queue("orders"), 1));
        world.send(owner, message(&queue("orders"), 2));
        let waiting = world.send_in(other, 1, message(&replies, 3));
        world.hold_store = true;
        let commit = world.commit(other, 1);
        assert_eq!(
            (world.outcome(waiting), world.outcome(commit)),
            (None, None),
            "there is no memory for it"
        );
        let ended = world.submit(owner, end);
        assert_eq!(world.outcome(ended), Some(&Ok(Confirmation::Done)));
        assert_eq!((world.outcome(commit), world.unstored.len()), (None, 1));
        world.store(Err(StoreError::Io("no".to_owned())));
        assert!(matches!(world.outcome(commit), Some(Err(ProviderError::RolledBack { .. }))));
    }
}
