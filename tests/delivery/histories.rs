//! Random histories, through the machine and the model in lockstep.
//!
//! `CORRIERE_SEED` chooses the histories, `CORRIERE_CASES` how many. Unless they say otherwise it is the same few
//! hundred every time, cut off after twenty seconds.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use corriere_broker::Settings;
use corriere_broker::machine::{Action, ConnectionKey};
use corriere_core::Destination;
use corriere_core::provider::{AckKind, Command, Credit};
use corriere_tests::model::{Judgement, Subscription, Violation};
use corriere_tests::random::number;
use proptest::bool::weighted;
use proptest::prelude::any;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::operations::{Deed, Operation, Pick, Place, Window, Word};
use crate::reach::Reach;
use crate::strategies;
use crate::world::{Letter, SessionKey, Wishes, World, conversion, failure, queue, resource};

const DEFAULT_SEED: u64 = 1;
const DEFAULT_CASES: u64 = 600;
const TIME: Duration = Duration::from_secs(20);

#[test]
fn no_history_breaks_a_rule_of_delivery() {
    let seed = number("CORRIERE_SEED").unwrap_or(DEFAULT_SEED);
    let asked = number("CORRIERE_CASES");
    let reach = RefCell::new(Reach::default());
    let start = Instant::now();
    for case in 0..asked.unwrap_or(DEFAULT_CASES) {
        if asked.is_none() && start.elapsed() > TIME {
            // On a slow machine; what so few of them come to is chance.
            println!("seed {seed}: {case} histories in {TIME:?}");
            return;
        }
        play_one(seed, case, &reach);
    }
    reach.borrow().assert_is_everywhere();
}

/// Plays one random history; if it breaks a rule, panics with the shortest that does.
fn play_one(seed: u64, case: u64, reach: &RefCell<Reach>) {
    let config = Config {
        cases: 1,
        failure_persistence: None,
        max_shrink_time: 60_000,
        max_shrink_iters: 20_000,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&case.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let outcome = TestRunner::new_with_rng(config, rng).run(
        &(strategies::settings(), any::<bool>(), strategies::history(), weighted(0.75)),
        |(settings, can_load, history, priorities)| {
            let settings = Settings { priorities, ..settings };
            let mut world = World::with(settings, can_load);
            play(&mut world, &history).map_err(|Violation(text)| {
                TestCaseError::fail(format!("what happened:\n{}\n\n{text}", world.log()))
            })?;
            reach.borrow_mut().add(&world);
            Ok(())
        },
    );
    if let Err(error) = outcome {
        let (reason, history) = match error {
            TestError::Fail(reason, (settings, can_load, history, priorities)) => {
                let settings = Settings { priorities, ..settings };
                (reason, format!("{settings:?}, bodies come and go: {can_load}\n{}", lines(&history)))
            }
            TestError::Abort(reason) => (reason, String::new()),
        };
        panic!("seed {seed}, case {case}; the history, as short as it gets:\n{history}\n{reason}");
    }
}

fn lines(history: &[Operation]) -> String {
    history.iter().map(|operation| format!("    {operation:?},\n")).collect()
}

/// Plays a history to its end, and then settles everything.
pub(crate) fn play(world: &mut World, history: &[Operation]) -> Judgement {
    for _ in 0..2 {
        let connection = world.connect()?;
        world.open_session(connection)?;
    }
    for operation in history {
        perform(world, operation)?;
    }
    settle(world)
}

/// Plays a history in which bodies stay and no process ends, for a regression.
pub(crate) fn assert_keeps_the_rules(settings: Settings, history: &[Operation]) {
    assert_keeps_the_rules_in(World::new(settings), history);
}

/// Plays a history for a regression.
pub(crate) fn assert_keeps_the_rules_in(mut world: World, history: &[Operation]) {
    if let Err(Violation(text)) = play(&mut world, history) {
        panic!("{text}\n\nwhat happened:\n{}", world.log());
    }
}

fn choose<T>(pick: Pick, from: &[T]) -> Option<&T> {
    from.get(usize::from(pick.0) % from.len().max(1))
}

fn destination(world: &World, place: Place) -> Destination {
    match place {
        Place::A => queue("a"),
        Place::B => queue("b"),
        Place::Topic => Destination::topic("t").expect("a name"),
        Place::DeadLetters if world.settings().dead_letters == corriere_broker::DeadLetters::Shared => {
            queue("ActiveMQ.DLQ")
        }
        Place::DeadLetters => queue("DLQ.a"),
        Place::Temporary(pick) => {
            let latest = &world.temporaries[world.temporaries.len().saturating_sub(4)..];
            choose(pick, latest).cloned().unwrap_or_else(|| queue("a"))
        }
    }
}

fn durable_name(number: u8) -> Arc<str> {
    format!("d{number}").into()
}

fn connection(world: &World, pick: Pick) -> Option<ConnectionKey> {
    choose(pick, &world.connections).copied()
}

fn session(world: &World, pick: Pick) -> Option<SessionKey> {
    choose(pick, &world.sessions).map(|session| session.key)
}

fn subscription(
    world: &World,
    pick: Pick,
    is_wanted: impl Fn(&Subscription) -> bool,
) -> Option<Subscription> {
    let wanted: Vec<_> = world
        .model
        .subscriptions()
        .iter()
        .filter(|subscription| session_of(world, subscription).is_some() && is_wanted(subscription))
        .collect();
    choose(pick, &wanted).map(|subscription| (*subscription).clone())
}

fn session_of(world: &World, subscription: &Subscription) -> Option<SessionKey> {
    world
        .sessions
        .iter()
        .map(|session| session.key)
        .find(|key| key.connection == subscription.key.0 && key.session == subscription.session.id)
}

fn perform(world: &mut World, operation: &Operation) -> Judgement {
    match *operation {
        Operation::Connect if world.connections.len() < 4 => {
            let connection = world.connect()?;
            world.open_session(connection)?;
        }
        Operation::Connect => {}
        Operation::OpenSession { connection: pick } => {
            if let Some(connection) = connection(world, pick).filter(|_| world.sessions.len() < 6) {
                world.open_session(connection)?;
            }
        }
        Operation::Subscribe { session: pick, place, credit, is_default, policy, no_local } => {
            if let Some(session) = session(world, pick).filter(|_| world.model.subscriptions().len() < 8) {
                let destination = destination(world, place);
                let wishes = Wishes { is_default, policy: policy.policy(), no_local, durable_name: None };
                world.subscribe(session, &destination, credit, wishes)?;
            }
        }
        Operation::SubscribeDurably { session: pick, name, is_to_other, credit, policy, no_local } => {
            if let Some(session) = session(world, pick).filter(|_| world.model.subscriptions().len() < 8) {
                let topic = Destination::topic(if is_to_other { "u" } else { "t" }).expect("a name");
                let durable_name = Some(durable_name(name));
                let wishes = Wishes { is_default: true, policy: policy.policy(), no_local, durable_name };
                world.subscribe(session, &topic, credit, wishes)?;
            }
        }
        Operation::Manage { place, deed, to, every } => {
            let (from, to) = (destination(world, place), destination(world, to));
            let action = match deed {
                Deed::Purge => Action::Purge,
                Deed::Retry => Action::Retry,
                Deed::Move => Action::Move(to),
                Deed::Copy => Action::Copy(to),
            };
            world.manage(&from, action, u64::from(every))?;
        }
        Operation::SetPrefetch { place, prefetch } => {
            world.set_prefetch(&destination(world, place), u32::from(prefetch))?;
        }
        Operation::Unsubscribe { connection: pick, name } => {
            if let Some(connection) = connection(world, pick) {
                world.command(connection, Command::Unsubscribe { name: durable_name(name) })?;
            }
        }
        Operation::Send { session: pick, place, priority, persistent, size, live, transacted } => {
            if let Some(session) = session(world, pick) {
                let destination = destination(world, place);
                let (size, live) = (usize::from(size), live.map(u64::from));
                world.send(session, &destination, Letter { priority, persistent, size, live, transacted })?;
            }
        }
        Operation::Advance { millis } => world.advance(Duration::from_millis(u64::from(millis)))?,
        Operation::StoreWaits => world.store_waits = true,
        Operation::StoreAnswers { count: 255 } => {
            world.store_waits = false;
            world.answer_all()?;
        }
        Operation::StoreAnswers { count } => {
            for _ in 0..count {
                world.answer_batch(true)?;
            }
            world.answer_loads()?;
        }
        Operation::StoreFills { is_full } => world.fill_store(is_full)?,
        Operation::StoreRefuses => world.refuse_messages()?,
        Operation::BodiesAreDamaged { count } => world.unreadable = count,
        Operation::Restart { survive, set_back } => {
            world.restart(usize::from(survive), Duration::from_millis(u64::from(set_back)))?;
        }
        Operation::ListPrepared { connection: pick } => {
            if let Some(connection) = connection(world, pick) {
                world.command(connection, Command::Recover)?;
            }
        }
        Operation::EndPrepared { connection: pick, transaction, commits } => {
            let prepared = world.model.prepared();
            if let (Some(connection), Some(xid)) = (connection(world, pick), choose(transaction, &prepared)) {
                world.end_prepared(connection, xid.clone(), commits)?;
            }
        }
        Operation::StoreFails => world.fail_batches()?,
        Operation::CreateTemporary { connection: pick, is_topic } => {
            if let Some(connection) = connection(world, pick) {
                world.create_temporary(connection, is_topic)?;
            }
        }
        Operation::DeleteTemporary { connection: pick, temporary } => {
            let destination = destination(world, Place::Temporary(temporary));
            if let Some(connection) = connection(world, pick) {
                world.command(connection, Command::DeleteTemporary { destination })?;
            }
        }
        Operation::Watch { connection: pick } => {
            if let Some(connection) = connection(world, pick) {
                world.command(connection, Command::WatchEvents)?;
            }
        }
        _ => perform_on_what_is_open(world, operation)?,
    }
    Ok(())
}

fn perform_on_what_is_open(world: &mut World, operation: &Operation) -> Judgement {
    match *operation {
        Operation::HandOver { subscription: pick, count } => {
            let Some(subscription) = subscription(world, pick, |subscription| subscription.is_open) else {
                return Ok(());
            };
            let (connection, id) = subscription.key;
            let in_buffer: Vec<u64> = world.model.unsettled(connection, id);
            let next = in_buffer.into_iter().filter(|number| *number > subscription.handed_over);
            if let Some(number) = next.take(usize::from(count)).last() {
                world.command(connection, Command::HandedOver { subscription: id, number, mark: None })?;
            }
        }
        Operation::Acknowledge { subscription: pick, skip, count, word, transacted } => {
            let has_some = |subscription: &Subscription| {
                !world.model.unsettled(subscription.key.0, subscription.key.1).is_empty()
            };
            if let Some(subscription) = subscription(world, pick, has_some) {
                acknowledge(world, &subscription, (skip, count), word, transacted)?;
            }
        }
        Operation::Grant { subscription: pick, credit } => {
            let is_explicit =
                |subscription: &Subscription| subscription.is_open && subscription.credit == Credit::Explicit;
            if let Some(subscription) = subscription(world, pick, is_explicit) {
                let (connection, subscription) = subscription.key;
                world.command(connection, Command::Grant { subscription, credit: u32::from(credit) })?;
            }
        }
        Operation::Drain { subscription: pick } => {
            if let Some(subscription) = subscription(world, pick, |subscription| subscription.is_open) {
                let (connection, subscription) = subscription.key;
                world.command(connection, Command::Drain { subscription })?;
            }
        }
        Operation::ChangeWindow { subscription: pick, window: Window(prefetch, extension) } => {
            if let Some(subscription) = subscription(world, pick, |subscription| subscription.is_open) {
                let (connection, subscription) = subscription.key;
                world.command(connection, Command::ChangeWindow { subscription, prefetch, extension })?;
            }
        }
        Operation::CloseSubscription { subscription: pick, handed_over } => {
            if let Some(open) = subscription(world, pick, |subscription| subscription.is_open) {
                let (connection, subscription) = open.key;
                let last_handed_over = (open.handed_over + u64::from(handed_over)).min(open.delivered);
                world.command(connection, Command::CloseSubscription { subscription, last_handed_over })?;
            }
        }
        Operation::Browse { session: pick, place } => {
            if let Some(session) = session(world, pick).filter(|_| world.model.browsers().len() < 6) {
                let destination = destination(world, place);
                world.browse(session, &destination)?;
            }
        }
        Operation::Look { browser: pick, look } => {
            let browser = choose(pick, world.model.browsers()).cloned();
            if let Some(browser) = browser {
                let (connection, subscription) = browser.key;
                let session = SessionKey { connection, session: browser.session.id };
                world.look(session, subscription, look)?;
            }
        }
        Operation::Commit { session: pick } => {
            if let Some(session) = session(world, pick) {
                world.commit(session)?;
            }
        }
        Operation::Rollback { session: pick } => {
            if let Some(session) = session(world, pick) {
                world.roll_back(session)?;
            }
        }
        Operation::Resend { session: pick, transacted } => {
            if let Some(session) = session(world, pick) {
                world.resend(session, transacted)?;
            }
        }
        Operation::BeginDistributed { session: pick } => {
            if let Some(session) = session(world, pick) {
                world.begin_distributed(session)?;
            }
        }
        Operation::Prepare { session: pick, ends_first } => {
            if let Some(session) = session(world, pick) {
                world.prepare(session, ends_first)?;
            }
        }
        Operation::Misuse { session: pick, misuse } => {
            if let Some(session) = session(world, pick) {
                world.misuse(session, misuse)?;
            }
        }
        Operation::CloseSession { session: pick } => {
            if let Some(session) = session(world, pick) {
                world.close_session(session)?;
            }
        }
        Operation::Close { connection: pick } => {
            if let Some(connection) = connection(world, pick) {
                world.close(connection)?;
            }
        }
        Operation::Vanish { connection: pick } => {
            if let Some(connection) = connection(world, pick) {
                world.vanish(connection)?;
            }
        }
        _ => unreachable!("performed elsewhere"),
    }
    Ok(())
}

fn acknowledge(
    world: &mut World,
    subscription: &Subscription,
    (skip, count): (u8, u8),
    word: Word,
    transacted: bool,
) -> Judgement {
    let Some(session) = session_of(world, subscription) else { return Ok(()) };
    let (connection, id) = subscription.key;
    let unsettled = world.model.unsettled(connection, id);
    let first = usize::from(skip) % unsettled.len();
    let last = (first + usize::from(count) - 1).min(unsettled.len() - 1);
    let range = match word {
        Word::Individual => unsettled[first]..=unsettled[first],
        _ => unsettled[first]..=unsettled[last],
    };
    let kind = match word {
        Word::Delivered => AckKind::Delivered,
        Word::Standard => AckKind::Standard,
        Word::Individual => AckKind::Individual,
        Word::Poison => AckKind::Poison { cause: failure() },
        Word::Undeliverable => AckKind::Undeliverable { reason: "too large for its consumer".into() },
        Word::Expired => AckKind::Expired,
        Word::Unmatched => AckKind::Unmatched,
        Word::Retained => AckKind::Retained,
        Word::Redelivered => AckKind::Redelivered { delay: None, cause: failure() },
        Word::RedeliveredAfter(millis) => {
            AckKind::Redelivered { delay: Some(Duration::from_millis(u64::from(millis))), cause: failure() }
        }
        Word::ConversionFailed => AckKind::Redelivered { delay: None, cause: conversion() },
        Word::OutOfResources => AckKind::Redelivered { delay: None, cause: resource() },
    };
    world.acknowledge(session, id, range, kind, transacted)
}

/// Ends everything that is open and consumes all that is left: nothing may be lost, stuck or made up.
fn settle(world: &mut World) -> Judgement {
    world.store_waits = false;
    world.unreadable = 0;
    world.fill_store(false)?;
    world.answer_all()?;
    for session in world.sessions.iter().map(|session| session.key).collect::<Vec<_>>() {
        world.commit(session)?;
    }
    for connection in world.connections.clone() {
        world.close(connection)?;
    }
    if world.model.entries().iter().any(|entry| entry.is_aside) {
        // The next process reads them.
        world.restart(usize::MAX, Duration::ZERO)?;
        for connection in world.connections.clone() {
            world.close(connection)?;
        }
    }
    let connection = world.connect()?;
    let session = world.open_session(connection)?;
    let other = world.connect()?;
    let other = world.open_session(other)?;
    for (index, xid) in world.model.prepared().into_iter().enumerate() {
        world.end_prepared(connection, xid, index % 2 == 0)?;
    }
    for lasting in world.model.lasting().to_vec() {
        let own = [session, other].into_iter().find(|own| {
            world.client_id(own.connection).is_some_and(|client_id| *client_id == *lasting.name.client_id)
        });
        let credit = Credit::Window { prefetch: 5, extension: None };
        let (no_local, durable_name) = (lasting.no_local, Some(lasting.name.name));
        let wishes = Wishes { no_local, durable_name, ..Wishes::default() };
        world.subscribe(own.expect("both are here"), &lasting.topic, credit, wishes)?;
    }
    let mut consumed: Vec<Destination> = Vec::new();
    for _ in 0..1_000 {
        let missing: Vec<_> = world
            .model
            .destinations()
            .filter(|destination| !destination.is_topic() && !consumed.contains(destination))
            .cloned()
            .collect();
        for destination in missing {
            let credit = Credit::Window { prefetch: 5, extension: None };
            world.subscribe(session, &destination, credit, Wishes::default())?;
            consumed.push(destination);
        }
        let open: Vec<_> = world.model.subscriptions().iter().map(|subscription| subscription.key).collect();
        for (connection, subscription) in open {
            let unsettled = world.model.unsettled(connection, subscription);
            if let (Some(&first), Some(&last)) = (unsettled.first(), unsettled.last()) {
                let session = SessionKey { connection, session: session.session };
                world.acknowledge(session, subscription, first..=last, AckKind::Standard, false)?;
            }
        }
        if world.model.entries().is_empty() {
            break;
        }
        if let Some(due) = world.model.next_due() {
            let until = due.since(world.now());
            world.advance(until)?;
        }
    }
    for destination in world.model.destinations() {
        let counts = world.counts(destination);
        if counts.pending > 0 || !counts.are_conserved() {
            return Err(Violation(format!("{destination} ends with {counts:?}")));
        }
    }
    world.check_end()
}
