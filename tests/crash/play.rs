//! Plays a history: its actions, the end of the process in the middle of it, and what is there afterwards.

use std::time::Duration;

use corriere_broker::Settings;
use corriere_broker::files::Survival;
use corriere_core::{Destination, RedeliveryPolicy};

use crate::clients::Draft;
use crate::drain;
use crate::ground::{Ground, Trouble};
use crate::history::{Action, Pick, Place};
use crate::ledger::{Judgement, Kind, Violation};
use crate::reach::Reach;
use crate::world::World;
use corriere_tests::random::Random;

/// Where a process ends, and what the next one finds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crash {
    /// The disk operation in which it ends, counted from 1 from where the process before ended.
    pub(crate) operation: u64,
    pub(crate) survival: Survival,
    /// Decides what is written of the operation in which it ends.
    pub(crate) seed: u64,
}

/// What came of a history on a disk that goes wrong.
#[derive(Debug)]
pub(crate) struct Troubled {
    pub(crate) reach: Reach,
    /// What the disk refused.
    pub(crate) failures: Vec<String>,
    /// By how much the files grew.
    pub(crate) bytes: u64,
}

/// A history that broke a rule.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) text: String,
    pub(crate) log: Vec<String>,
    pub(crate) disk: Vec<String>,
}

/// Little memory, so that bodies have to leave it.
pub(crate) fn settings() -> Settings {
    Settings { memory_limit: 24 * 1024, send_deadline: Duration::from_millis(500), ..Settings::default() }
}

/// Plays a history in which the process ends so often, and settles everything afterwards.
pub(crate) fn play(
    ground: Box<dyn Ground>,
    actions: &[Action],
    crashes: &[Crash],
) -> Result<(Reach, u64), Failure> {
    play_asking(ground, actions, crashes, false)
}

/// The same, with the store's own account looked at or not.
pub(crate) fn play_asking(
    ground: Box<dyn Ground>,
    actions: &[Action],
    crashes: &[Crash],
    clients_only: bool,
) -> Result<(Reach, u64), Failure> {
    let mut world = World::begin(ground, settings()).map_err(|Violation(text)| Failure {
        text,
        log: Vec::new(),
        disk: Vec::new(),
    })?;
    world.asks_clients_only = clients_only;
    match to_the_end(&mut world, actions, crashes) {
        Ok(operations) => Ok((world.reach, operations)),
        Err(Violation(text)) => Err(Failure { text, disk: world.disk(), log: world.log }),
    }
}

/// The same on a disk that goes wrong from a start in the middle of the history on. Until then nothing ends.
pub(crate) fn play_in_trouble(
    ground: Box<dyn Ground>,
    actions: &[Action],
    middle: usize,
    trouble: Trouble,
    survival: Survival,
) -> Result<Troubled, Failure> {
    let mut world = World::begin(ground, settings()).map_err(|Violation(text)| Failure {
        text,
        log: Vec::new(),
        disk: Vec::new(),
    })?;
    match through_trouble(&mut world, actions, middle.min(actions.len()), trouble, survival) {
        Ok((failures, bytes)) => Ok(Troubled { reach: world.reach, failures, bytes }),
        Err(Violation(text)) => Err(Failure { text, disk: world.disk(), log: world.log }),
    }
}

fn through_trouble(
    world: &mut World,
    actions: &[Action],
    middle: usize,
    trouble: Trouble,
    survival: Survival,
) -> Result<(Vec<String>, u64), Violation> {
    play_on(world, &actions[..middle])?;
    world.trouble = Some(trouble);
    world.restart()?;
    let before = world.ground.bytes();
    play_on(world, &actions[middle..])?;
    world.write()?;
    let bytes = world.ground.bytes().saturating_sub(before);
    let failures = world.failures();
    let must_fail = world.ground.log().iter().any(|line| is_failure_of_a_segment(line));
    if must_fail && !world.has_failed {
        return Err(Violation("a write or a sync of a segment failed, and the store goes on".to_owned()));
    }
    if matches!(trouble, Trouble::Room(_)) {
        if world.has_failed {
            return Err(Violation("the store has failed for want of room".to_owned()));
        }
        drain::room_comes_back(world)?;
    }
    world.survival = survival;
    world.restart()?;
    drain::settle_everything(world)?;
    Ok((failures, bytes))
}

/// Whether a line of the disk's log says that a write or a sync of a segment failed, which is not a spare.
fn is_failure_of_a_segment(line: &str) -> bool {
    let is_write = line.contains(" write ") || line.contains(" sync /");
    is_write && line.contains(" fails: ") && line.contains(".journal") && !line.contains("spare")
}

fn play_on(world: &mut World, actions: &[Action]) -> Judgement {
    for action in actions {
        if world.is_over() {
            return Ok(());
        }
        world.log.push(format!("{action:?}"));
        perform(world, *action)?;
    }
    Ok(())
}

fn to_the_end(world: &mut World, actions: &[Action], crashes: &[Crash]) -> Result<u64, Violation> {
    world.crash_at(crashes);
    for action in actions {
        while world.is_over() {
            world.restart()?;
        }
        world.log.push(format!("{action:?}"));
        perform(world, *action)?;
    }
    let operations = world.ground.operations();
    world.restart()?;
    while world.is_over() {
        world.restart()?;
    }
    world.crash_no_more();
    drain::settle_everything(world)?;
    Ok(operations)
}

/// Up to three ends, the first in a given operation.
pub(crate) fn crashes(first: u64, operations: u64, survival: Survival, random: &mut Random) -> Vec<Crash> {
    let mut crashes = vec![Crash { operation: first, survival, seed: random.next() }];
    for _ in 0..random.below(3) {
        // Some in the recovery itself.
        let operation =
            if random.one_in(2) { random.between(1, 12) } else { random.between(1, operations.max(1)) };
        crashes.push(Crash { operation, survival: self::survival(random), seed: random.next() });
    }
    crashes
}

pub(crate) fn survival(random: &mut Random) -> Survival {
    match random.below(4) {
        0 | 1 => Survival::PowerCut { seed: random.next() },
        2 => Survival::OnlySynced,
        _ => Survival::Process,
    }
}

pub(crate) fn destination(place: Place) -> Destination {
    let place = match place {
        Place::A => Destination::queue("a"),
        Place::B => Destination::queue("b"),
        Place::Topic => Destination::topic("t"),
        Place::OtherTopic => Destination::topic("u"),
        Place::DeadA => Destination::queue("DLQ.a"),
        Place::DeadB => Destination::queue("DLQ.b"),
    };
    place.expect("a name")
}

fn choose(pick: Pick, count: usize) -> Option<usize> {
    (count > 0).then(|| usize::from(pick.0) % count)
}

pub(crate) fn perform(world: &mut World, action: Action) -> Judgement {
    let (connections, sessions, consumers) =
        (world.clients.connections.len(), world.clients.sessions.len(), world.clients.consumers.len());
    let connection =
        |world: &World, pick| choose(pick, connections).map(|index| world.clients.connections[index].key);
    match action {
        Action::Connect if connections < 4 => world.connect().map(drop),
        Action::OpenSession { connection: pick, work } if sessions < 6 => {
            let key = match connection(world, pick) {
                Some(key) => key,
                None => world.connect()?,
            };
            world.open_session(key, work)
        }
        Action::Connect | Action::OpenSession { .. } => Ok(()),
        Action::Subscribe { session, place, prefetch, maximum_redeliveries, delay, non_blocking } => {
            let Some(session) = choose(session, sessions).filter(|_| consumers < 6) else { return Ok(()) };
            let delay = Duration::from_millis(delay.into());
            let policy = RedeliveryPolicy {
                maximum_redeliveries: Some(maximum_redeliveries.into()),
                initial_delay: delay,
                delay,
                non_blocking,
                ..RedeliveryPolicy::default()
            };
            world.subscribe(session, &destination(place), prefetch.into(), &policy)
        }
        Action::SubscribeDurably { session, name, kind, prefetch, maximum_redeliveries } => {
            let Some(session) = choose(session, sessions).filter(|_| consumers < 6) else { return Ok(()) };
            let policy = RedeliveryPolicy {
                maximum_redeliveries: Some(maximum_redeliveries.into()),
                initial_delay: Duration::ZERO,
                delay: Duration::ZERO,
                ..RedeliveryPolicy::default()
            };
            let kind = kind.map(|(place, no_local)| Kind { topic: destination(place), no_local });
            world.subscribe_durably(session, name, kind, prefetch.into(), &policy)
        }
        Action::Unsubscribe { connection: pick, name } => {
            connection(world, pick).map_or(Ok(()), |key| world.unsubscribe(key, name))
        }
        Action::Send { session, place, priority, persistent, size, live } => {
            let Some(session) = choose(session, sessions) else { return Ok(()) };
            world.send(session, &destination(place), &Draft { priority, persistent, size, live })
        }
        Action::Commit { session } => choose(session, sessions).map_or(Ok(()), |index| world.commit(index)),
        Action::RollBack { session } => {
            choose(session, sessions).map_or(Ok(()), |index| world.roll_back(index))
        }
        Action::Prepare { session } => choose(session, sessions).map_or(Ok(()), |index| world.prepare(index)),
        Action::CloseSession { session } => {
            choose(session, sessions).map_or(Ok(()), |index| world.close_session(index))
        }
        Action::Decide { prepared, connection: pick, commit } => {
            let branches = world.decidable();
            let branch = choose(prepared, branches.len()).map(|index| branches[index]);
            match (branch, connection(world, pick)) {
                (Some(branch), Some(key)) => world.decide(branch, key, commit),
                _ => Ok(()),
            }
        }
        Action::Close { connection: pick } => {
            connection(world, pick).map_or(Ok(()), |key| world.close(key, false))
        }
        Action::Vanish { connection: pick } => {
            connection(world, pick).map_or(Ok(()), |key| world.close(key, true))
        }
        Action::Advance { millis } => world.advance(millis.into()),
        Action::Write => world.write(),
        Action::Housekeep => world.housekeep(),
        Action::Checkpoint => world.checkpoint(),
        Action::HandOver { consumer, count } => {
            choose(consumer, consumers).map_or(Ok(()), |index| world.hand_over(index, count.into()))
        }
        Action::Acknowledge { consumer, count } => {
            choose(consumer, consumers).map_or(Ok(()), |index| world.acknowledge(index, count.into()))
        }
        Action::GiveBack { consumer, count, delay, failing } => choose(consumer, consumers)
            .map_or(Ok(()), |index| world.give_back_last(index, count.into(), delay, failing)),
        Action::Condemn { consumer } => {
            choose(consumer, consumers).map_or(Ok(()), |index| world.condemn(index))
        }
        Action::CloseConsumer { consumer } => {
            choose(consumer, consumers).map_or(Ok(()), |index| world.close_consumer(index))
        }
    }
}
