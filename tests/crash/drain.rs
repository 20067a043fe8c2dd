//! The end of every history: each branch gets its outcome, fresh consumers take all that is left, the store is closed in
//! order, and what it brings back then is nothing but its totals.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use corriere_broker::machine::Ticket;
use corriere_core::provider::Dispatch;
use corriere_core::{MessageId, RedeliveryPolicy};

use crate::clients::{Draft, id_of};
use crate::history::{Place, Work};
use crate::ledger::{Judgement, Origin, Spot, Violation};
use crate::play::destination;
use crate::world::World;

/// So many rounds are enough for all that can wait.
const ROUNDS: u64 = 10_000;

pub(crate) fn settle_everything(world: &mut World) -> Judgement {
    let connection = world.connect()?;
    world.open_session(connection, Work::Alone)?;
    for number in 0.. {
        let branches = world.decidable();
        let Some(branch) = branches.first() else { break };
        world.decide(*branch, connection, number % 3 != 1)?;
        world.write()?;
    }
    // All delays are over, and what can expire has.
    world.advance(10_000)?;
    quiet(world)?;
    world.close(connection, false)?;
    quiet(world)?;
    // What was decided and what died by itself is certain now.
    world.close_and_open()?;
    take_all(world)?;
    world.close_and_open()?;
    if let Some((name, left)) = world.ledger.subscriptions().into_iter().find(|(_, left)| !left.is_empty()) {
        return Err(Violation(format!("{left:?} are with {name} after everything was settled")));
    }
    for (id, letter, spot) in world.ledger.settled_spots() {
        if letter.is_persistent() && !letter.queue.is_topic() && !matches!(spot, Spot::Gone | Spot::Never) {
            return Err(Violation(format!("{id} is {spot:?} after everything was settled")));
        }
    }
    // Nothing is there any more, so whatever was full is not.
    world.checkpoint()?;
    room_comes_back(world)
}

/// Once there is room again, a send is confirmed, and those that waited have been answered.
pub(crate) fn room_comes_back(world: &mut World) -> Judgement {
    world.ground.limit(None);
    world.housekeep()?;
    quiet(world)?;
    world.advance(1_000)?;
    let connection = world.connect()?;
    world.open_session(connection, Work::Alone)?;
    let draft = Draft { priority: 4, persistent: true, size: 100, live: None };
    let ticket = world.last_number + 1;
    world.send(world.clients.sessions.len() - 1, &destination(Place::A), &draft)?;
    quiet(world)?;
    match world.ledger.outcome(Ticket(ticket)) {
        Some(Ok(_)) => Ok(()),
        outcome => Err(Violation(format!("there is room again, and a send comes to {outcome:?}"))),
    }
}

/// Lets the store write until it has answered everything.
fn quiet(world: &mut World) -> Judgement {
    for _ in 0..100 {
        world.write()?;
        world.housekeep()?;
        if !world.waits() {
            return Ok(());
        }
    }
    Err(Violation("the store leaves a batch unanswered".to_owned()))
}

/// Fresh consumers get everything that is there, once, in order, and settle it.
fn take_all(world: &mut World) -> Judgement {
    let wanted: BTreeMap<MessageId, Spot> = world
        .ledger
        .settled_spots()
        .filter(|(_, letter, spot)| {
            letter.is_persistent() && !letter.queue.is_topic() && matches!(spot, Spot::Queue | Spot::Dead)
        })
        .map(|(id, _, spot)| (id.clone(), spot))
        .collect();
    let connection = world.connect()?;
    world.open_session(connection, Work::Alone)?;
    let forever = RedeliveryPolicy { maximum_redeliveries: None, ..RedeliveryPolicy::default() };
    let queues = world.machine.destinations().into_iter().filter(|destination| !destination.is_topic());
    for queue in queues.collect::<Vec<_>>() {
        world.subscribe(0, &queue, 7, &forever)?;
    }
    let subscriptions = world.ledger.subscriptions();
    let other = world.connect()?;
    world.open_session(other, Work::Alone)?;
    for name in subscriptions.keys() {
        let session = world.session_for(name).expect("one of the two first connections");
        world.consume_from(session, name.clone(), None, 7, &forever)?;
    }
    let mut copies: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    let mut taken: BTreeMap<(MessageId, bool), u64> = BTreeMap::new();
    let mut order = BTreeMap::new();
    for _ in 0..ROUNDS {
        let mut is_idle = true;
        for consumer in 0..world.clients.consumers.len() {
            let dispatches = world.take_buffer(consumer);
            is_idle &= dispatches.is_empty();
            let count = dispatches.len();
            let from = world.clients.consumers[consumer].from.clone();
            for dispatch in dispatches {
                in_order(&mut order, &from, &dispatch)?;
                let id = id_of(&dispatch);
                if let Some((name, _)) = from.durable.clone() {
                    if !copies.entry(name.clone()).or_default().insert(id.clone()) {
                        return Err(Violation(format!("{id} came twice from {name}")));
                    }
                } else {
                    let is_dead = from.destination.name().starts_with("DLQ.");
                    *taken.entry((id, is_dead)).or_default() += 1;
                }
                world.hold(consumer, dispatch);
            }
            world.acknowledge(consumer, count)?;
        }
        let waited = world.waits();
        world.write()?;
        if is_idle && !waited {
            break;
        }
    }
    for (name, wanted) in &subscriptions {
        let came = copies.remove(name).unwrap_or_default();
        if came != *wanted {
            return Err(Violation(format!("from {name} came {came:?}, not {wanted:?}")));
        }
    }
    world.reach.drained += taken.len() as u64;
    world.reach.dead_letters += taken.keys().filter(|(_, is_dead)| *is_dead).count() as u64;
    for (id, spot) in &wanted {
        match taken.get(&(id.clone(), *spot == Spot::Dead)) {
            Some(1) => {}
            times => return Err(Violation(format!("{id} is {spot:?} and was delivered {times:?} times"))),
        }
    }
    let is_of_topic = |id: &MessageId| world.ledger.letter(id).is_some_and(|letter| letter.queue.is_topic());
    if let Some((id, _)) = taken.keys().find(|(id, _)| !wanted.contains_key(id) && !is_of_topic(id)) {
        return Err(Violation(format!("{id} was delivered and is nowhere")));
    }
    Ok(())
}

/// Within a queue and a priority, what a producer sent first comes first.
fn in_order(
    order: &mut BTreeMap<(String, u8, Arc<str>), u64>,
    from: &Origin,
    dispatch: &Dispatch,
) -> Judgement {
    let id = id_of(dispatch);
    let place =
        from.durable.as_ref().map_or_else(|| from.destination.to_string(), |(name, _)| name.to_string());
    let key = (place.clone(), dispatch.message.headers().priority.level(), Arc::clone(&id.producer));
    let before = order.insert(key, id.sequence);
    if before.is_some_and(|before| before >= id.sequence) && !from.destination.name().starts_with("DLQ.") {
        return Err(Violation(format!("{id} came behind {before:?} of its producer from {place}")));
    }
    Ok(())
}
