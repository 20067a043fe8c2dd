//! Cases from the field, played at the machine with the model at its side: whatever a case looks at besides, every
//! step of it keeps the rules.

use std::time::Duration;

use corriere_broker::Settings;
use corriere_broker::machine::ConnectionKey;
use corriere_core::provider::{AckKind, Command, Credit, Dispatch};
use corriere_core::{MessageId, RedeliveryPolicy, SubscriptionId};
use corriere_tests::model::{Judgement, Violation};

use crate::world::{Letter, SessionKey, Wishes, World, failure, queue};

/// Plays a case; a broken rule is told with all that led to it.
fn case(play: impl FnOnce(&mut World) -> Judgement) {
    let mut world = World::new(Settings::default());
    if let Err(Violation(text)) = play(&mut world) {
        panic!("what happened:\n{}\n\n{text}", world.log());
    }
}

const fn window(prefetch: u32) -> Credit {
    Credit::Window { prefetch, extension: None }
}

/// A connection with one session.
fn client(world: &mut World) -> Result<SessionKey, Violation> {
    let connection = world.connect()?;
    world.open_session(connection)
}

/// Sends so many messages to `q`.
fn send(world: &mut World, session: SessionKey, count: usize) -> Result<Vec<MessageId>, Violation> {
    (0..count).map(|_| world.send(session, &queue("q"), Letter::default())).collect()
}

fn id(dispatch: &Dispatch) -> MessageId {
    corriere_tests::model::id_of(&dispatch.message)
}

/// The deliveries of a subscription so far.
fn deliveries(world: &World, connection: ConnectionKey, subscription: SubscriptionId) -> Vec<Dispatch> {
    world
        .dispatches
        .iter()
        .filter(|(to, dispatch)| *to == connection && dispatch.subscription == subscription)
        .map(|(_, dispatch)| dispatch.clone())
        .collect()
}

fn hand_over(world: &mut World, session: SessionKey, subscription: SubscriptionId, number: u64) -> Judgement {
    world.command(session.connection, Command::HandedOver { subscription, number, mark: None })
}

fn give_back(world: &mut World, session: SessionKey, subscription: SubscriptionId, number: u64) -> Judgement {
    let kind = AckKind::Redelivered { delay: None, cause: failure() };
    world.acknowledge(session, subscription, number..=number, kind, false)
}

fn at_once(maximum_redeliveries: u32) -> RedeliveryPolicy {
    RedeliveryPolicy {
        maximum_redeliveries: Some(maximum_redeliveries),
        initial_delay: Duration::ZERO,
        delay: Duration::ZERO,
        ..RedeliveryPolicy::default()
    }
}

/// C-02. Five rounds of receiving the first message, giving it back and going away, orderly or not.
#[test]
fn a_neighbour_that_rolls_back_counts_for_nobody_who_sat_in_the_buffer() {
    for vanishes in [false, true] {
        case(|world| {
            let sender = client(world)?;
            let ids = send(world, sender, 20)?;
            for _ in 0..5 {
                let session = client(world)?;
                let subscription =
                    world.subscribe(session, &queue("q"), window(20), Wishes::redelivered(at_once(2)))?;
                hand_over(world, session, subscription, 1)?;
                give_back(world, session, subscription, 1)?;
                if vanishes {
                    world.vanish(session.connection)?;
                } else {
                    world.close(session.connection)?;
                }
            }
            let session = client(world)?;
            let dead = world.subscribe(session, &queue("DLQ.q"), window(20), Wishes::default())?;
            let dead: Vec<_> = deliveries(world, session.connection, dead).iter().map(id).collect();
            // Three deliveries killed the first; the second has had the two that were left of five.
            assert_eq!(dead, ids[..1]);
            let left = world.subscribe(session, &queue("q"), window(20), Wishes::redelivered(at_once(2)))?;
            let left = deliveries(world, session.connection, left);
            assert_eq!(left.iter().map(id).collect::<Vec<_>>(), ids[1..]);
            let counts: Vec<_> = left.iter().map(|dispatch| dispatch.delivery_count).collect();
            assert_eq!((counts[0], counts[1..].iter().max()), (3, Some(&1)));
            Ok(())
        });
    }
}

/// C-03. A hundred poison messages in a row: each waits by its own count, never for the others.
#[test]
fn delays_grow_with_a_message_s_own_failures_and_not_with_its_neighbours() {
    case(|world| {
        let policy = RedeliveryPolicy {
            maximum_redeliveries: Some(3),
            initial_delay: Duration::from_millis(100),
            back_off: Some(2.0),
            non_blocking: true,
            ..RedeliveryPolicy::default()
        };
        let session = client(world)?;
        send(world, session, 100)?;
        let good = send(world, session, 1)?;
        let subscription = world.subscribe(session, &queue("q"), window(200), Wishes::redelivered(policy))?;
        let start = world.now();
        let (mut seen, mut deaths) = (0, Vec::new());
        let mut good_at = None;
        for _ in 0..10 {
            let fresh = deliveries(world, session.connection, subscription).split_off(seen);
            seen += fresh.len();
            if let Some(last) = fresh.last() {
                hand_over(world, session, subscription, last.number)?;
            }
            for dispatch in fresh {
                if id(&dispatch) == good[0] {
                    good_at = Some(world.now().since(start));
                    let number = dispatch.number;
                    world.acknowledge(session, subscription, number..=number, AckKind::Standard, false)?;
                } else {
                    give_back(world, session, subscription, dispatch.number)?;
                    deaths.extend((dispatch.delivery_count == 4).then(|| world.now().since(start)));
                }
            }
            world.advance(Duration::from_millis(100))?;
        }
        assert_eq!(good_at, Some(Duration::ZERO));
        // 100, 200 and 400 ms, each on its own clock.
        assert_eq!(deaths, vec![Duration::from_millis(700); 100]);
        assert_eq!(world.counts(&queue("q")).dead_lettered, 100);
        Ok(())
    });
}

/// C-03 (b). Blocking, the next message starts only when the one before is settled.
#[test]
fn a_blocking_consumer_gets_nothing_while_its_message_waits() {
    case(|world| {
        let policy = RedeliveryPolicy {
            maximum_redeliveries: Some(2),
            initial_delay: Duration::from_millis(100),
            back_off: Some(2.0),
            ..RedeliveryPolicy::default()
        };
        let session = client(world)?;
        let ids = send(world, session, 2)?;
        let subscription = world.subscribe(session, &queue("q"), window(1), Wishes::redelivered(policy))?;
        for (number, delay) in [(1, 100), (2, 200)] {
            give_back(world, session, subscription, number)?;
            world.advance(Duration::from_millis(delay - 1))?;
            assert_eq!(deliveries(world, session.connection, subscription).len() as u64, number);
            world.advance(Duration::from_millis(1))?;
        }
        give_back(world, session, subscription, 3)?;
        let order: Vec<_> = deliveries(world, session.connection, subscription).iter().map(id).collect();
        assert_eq!(order, [&ids[0], &ids[0], &ids[0], &ids[1]].map(Clone::clone));
        Ok(())
    });
}

/// C-08. Two consumers that finish in the other order than they began.
#[test]
fn acknowledgements_out_of_order_are_no_error() {
    for kind in [AckKind::Standard, AckKind::Individual] {
        case(|world| {
            let sessions = [client(world)?, client(world)?];
            let mut subscriptions = Vec::new();
            for session in sessions {
                subscriptions.push(world.subscribe(session, &queue("q"), window(1), Wishes::default())?);
            }
            send(world, sessions[0], 2)?;
            for index in [1, 0] {
                world.acknowledge(sessions[index], subscriptions[index], 1..=1, kind.clone(), false)?;
            }
            assert!(world.confirmations.iter().all(|(_, outcome)| outcome.is_ok()));
            assert_eq!(world.counts(&queue("q")).pending, 0);
            Ok(())
        });
    }
}

/// C-08 (c). What an individual consumer left comes back, in its order.
#[test]
fn what_was_not_acknowledged_one_by_one_comes_back_in_order() {
    case(|world| {
        let session = client(world)?;
        let ids = send(world, session, 10)?;
        let subscription = world.subscribe(session, &queue("q"), window(10), Wishes::default())?;
        hand_over(world, session, subscription, 10)?;
        for number in [7, 3, 9] {
            world.acknowledge(session, subscription, number..=number, AckKind::Individual, false)?;
        }
        world.close(session.connection)?;
        let session = client(world)?;
        let subscription = world.subscribe(session, &queue("q"), window(10), Wishes::default())?;
        let back = deliveries(world, session.connection, subscription);
        let expected: Vec<_> = [1, 2, 4, 5, 6, 8, 10].map(|number: usize| ids[number - 1].clone()).into();
        assert_eq!(back.iter().map(id).collect::<Vec<_>>(), expected);
        assert!(back.iter().all(|dispatch| dispatch.delivery_count == 2));
        Ok(())
    });
}

/// C-23. Neither delivered-acknowledgements nor rollbacks let a window grow or shrink, and a second consumer has its
/// share.
#[test]
fn a_window_is_the_same_after_ten_rollbacks_and_leaves_others_their_share() {
    case(|world| {
        let session = client(world)?;
        send(world, session, 20)?;
        let credit = Credit::Window { prefetch: 5, extension: Some(3) };
        let subscription =
            world.subscribe(session, &queue("q"), credit, Wishes::redelivered(at_once(100)))?;
        let outstanding = |world: &World| world.model.unsettled(session.connection, subscription);
        for _ in 0..10 {
            let held = outstanding(world);
            assert_eq!(held.len(), 5);
            world.acknowledge(session, subscription, held[0]..=held[2], AckKind::Delivered, false)?;
            assert_eq!(outstanding(world).len(), 8, "prefetch and what was handed out");
            let kind = AckKind::Redelivered { delay: None, cause: failure() };
            world.acknowledge(session, subscription, held[0]..=held[2], kind, false)?;
        }
        let joined = client(world)?;
        let second = world.subscribe(joined, &queue("q"), window(1), Wishes::default())?;
        assert_eq!(deliveries(world, joined.connection, second).len(), 1);
        while let (Some(&first), Some(&last)) = (outstanding(world).first(), outstanding(world).last()) {
            world.acknowledge(session, subscription, first..=last, AckKind::Standard, false)?;
        }
        // All but the one that the second consumer holds.
        assert_eq!(world.counts(&queue("q")).pending, 1);
        assert_eq!(world.counts(&queue("q")).in_flight, 1);
        Ok(())
    });
}
