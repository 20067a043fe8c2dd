//! What happens in a random history. Every action can be played in any state, so that a history cut short is one still:
//! a number such as `Pick(7)` chooses among what is there at that moment.

use corriere_tests::random::Random;

/// Chooses one of the things that are there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick(pub(crate) u16);

/// A destination of the histories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    A,
    B,
    Topic,
    OtherTopic,
    /// The dead letters of queue A or B.
    DeadA,
    DeadB,
}

/// How the work of a session takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// At once.
    Alone,
    /// With the session's local transaction.
    Local,
    /// With a branch of a distributed transaction.
    Distributed,
}

/// Why something is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failing {
    Handler,
    Conversion,
    Resource,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    Connect,
    OpenSession {
        connection: Pick,
        work: Work,
    },
    Subscribe {
        session: Pick,
        place: Place,
        prefetch: u8,
        maximum_redeliveries: u8,
        delay: u16,
        non_blocking: bool,
    },
    /// Consumes by one of two durable subscriptions of the connection's client.
    SubscribeDurably {
        session: Pick,
        name: u8,
        /// Its topic, and whether it leaves out what its own client sends; nothing for what it is already.
        kind: Option<(Place, bool)>,
        prefetch: u8,
        maximum_redeliveries: u8,
    },
    Unsubscribe {
        connection: Pick,
        name: u8,
    },
    Send {
        session: Pick,
        place: Place,
        priority: u8,
        persistent: bool,
        size: u32,
        live: Option<u16>,
    },
    HandOver {
        consumer: Pick,
        count: u8,
    },
    /// Settles the first of what was handed over, within the session's transaction if it has one.
    Acknowledge {
        consumer: Pick,
        count: u8,
    },
    GiveBack {
        consumer: Pick,
        count: u8,
        delay: Option<u16>,
        failing: Failing,
    },
    /// Sends the first of what was handed over to the dead letters.
    Condemn {
        consumer: Pick,
    },
    Commit {
        session: Pick,
    },
    RollBack {
        session: Pick,
    },
    Prepare {
        session: Pick,
    },
    /// The outcome of a prepared transaction, from any connection.
    Decide {
        prepared: Pick,
        connection: Pick,
        commit: bool,
    },
    CloseConsumer {
        consumer: Pick,
    },
    CloseSession {
        session: Pick,
    },
    Close {
        connection: Pick,
    },
    Vanish {
        connection: Pick,
    },
    Advance {
        millis: u16,
    },
    /// The store writes what waits.
    Write,
    Housekeep,
    Checkpoint,
}

/// So many actions.
pub(crate) fn history(seed: u64, length: usize) -> Vec<Action> {
    let mut random = Random::of(seed, 1);
    let mut actions = vec![
        Action::Connect,
        Action::Connect,
        Action::OpenSession { connection: Pick(0), work: Work::Local },
        Action::OpenSession { connection: Pick(1), work: Work::Distributed },
        Action::OpenSession { connection: Pick(1), work: Work::Alone },
    ];
    let (priority, persistent, size, live) = (4, true, 100, None);
    let send = |session, place| Action::Send { session, place, priority, persistent, size, live };
    // A dead letter, a durable subscription that is made anew and leaves out what its own client sends, and a message that stays in
    // somebody's hands.
    let (session, name, prefetch, maximum_redeliveries) = (Pick(0), 1, 5, 6);
    let durably = |kind| Action::SubscribeDurably { session, name, kind, prefetch, maximum_redeliveries };
    actions.extend([
        subscribe(&mut random, Pick(2), Place::A),
        send(Pick(2), Place::A),
        durably(None),
        Action::Write,
        Action::HandOver { consumer: Pick(0), count: 1 },
        Action::Condemn { consumer: Pick(0) },
        Action::CloseConsumer { consumer: Pick(1) },
        durably(Some((Place::Topic, true))),
        send(Pick(2), Place::A),
        Action::Write,
        Action::HandOver { consumer: Pick(0), count: 1 },
        send(Pick(0), Place::Topic),
    ]);
    for (session, place) in [(0, Place::A), (1, Place::B), (2, Place::B)] {
        if !random.one_in(3) {
            actions.push(subscribe(&mut random, Pick(session), place));
        }
    }
    for (session, name) in [(1, 1), (2, 2)] {
        if !random.one_in(3) {
            let session = Pick(session);
            let kind = kind(&mut random);
            let (prefetch, maximum_redeliveries) = (5, 6);
            actions.push(Action::SubscribeDurably { session, name, kind, prefetch, maximum_redeliveries });
        }
    }
    // A branch that is prepared and waits until somebody decides it.
    actions.extend([send(Pick(1), Place::B), Action::Prepare { session: Pick(1) }, Action::Write]);
    // Some histories have many waiting batches, some few; some send much, some consume much.
    let eager = random.between(2, 9);
    let sends = random.between(14, 34);
    while actions.len() < length {
        actions.push(if random.one_in(eager) { Action::Write } else { action(&mut random, sends) });
    }
    actions.truncate(length);
    actions
}

fn action(random: &mut Random, sends: u64) -> Action {
    let pick = Pick(u16::try_from(random.below(1 << 16)).expect("sixteen bits"));
    let small = |random: &mut Random, high| u8::try_from(random.between(1, high)).expect("small");
    match random.below(sends + 83) {
        0..1 => Action::Connect,
        1..4 => Action::OpenSession {
            connection: pick,
            work: *random.pick(&[Work::Alone, Work::Local, Work::Distributed]),
        },
        4..10 => {
            let places = [Place::A, Place::A, Place::B, Place::B, Place::Topic, Place::DeadA, Place::DeadB];
            let place = *random.pick(&places);
            subscribe(random, pick, place)
        }
        10..24 => Action::HandOver { consumer: pick, count: small(random, 4) },
        24..37 => Action::Acknowledge { consumer: pick, count: small(random, 5) },
        37..42 => Action::GiveBack {
            consumer: pick,
            count: small(random, 2),
            delay: if random.one_in(3) { Some(*random.pick(&[0, 100])) } else { None },
            failing: *random.pick(&[
                Failing::Handler,
                Failing::Handler,
                Failing::Conversion,
                Failing::Resource,
            ]),
        },
        42..44 => Action::Condemn { consumer: pick },
        44..51 => Action::Commit { session: pick },
        51..53 => Action::RollBack { session: pick },
        53..57 => Action::Prepare { session: pick },
        57..61 => Action::Decide {
            prepared: pick,
            connection: Pick(u16::try_from(random.below(1 << 16)).expect("sixteen bits")),
            commit: !random.one_in(3),
        },
        61..63 => Action::CloseConsumer { consumer: pick },
        63..64 => Action::CloseSession { session: pick },
        64..65 => Action::Close { connection: pick },
        65..66 => Action::Vanish { connection: pick },
        66..70 => Action::Advance { millis: *random.pick(&[1, 20, 100, 600]) },
        70..73 => Action::Housekeep,
        73..76 => Action::Checkpoint,
        76..81 => Action::SubscribeDurably {
            session: pick,
            name: small(random, 2),
            kind: kind(random),
            prefetch: *random.pick(&[1, 2, 5, 20]),
            maximum_redeliveries: *random.pick(&[0, 1, 6, 6]),
        },
        81..83 => Action::Unsubscribe { connection: pick, name: small(random, 2) },
        _ => Action::Send {
            session: pick,
            place: *random.pick(&[
                Place::A,
                Place::A,
                Place::A,
                Place::B,
                Place::B,
                Place::Topic,
                Place::Topic,
                Place::Topic,
                Place::OtherTopic,
            ]),
            priority: *random.pick(&[4, 4, 4, 0, 9]),
            persistent: !random.one_in(8),
            size: size(random),
            live: if random.one_in(10) { Some(*random.pick(&[30, 300])) } else { None },
        },
    }
}

fn subscribe(random: &mut Random, session: Pick, place: Place) -> Action {
    Action::Subscribe {
        session,
        place,
        prefetch: *random.pick(&[1, 2, 5, 20]),
        maximum_redeliveries: *random.pick(&[0, 1, 2, 6]),
        delay: *random.pick(&[0, 0, 50, 400]),
        non_blocking: random.one_in(3),
    }
}

fn kind(random: &mut Random) -> Option<(Place, bool)> {
    let topics = [Place::Topic, Place::Topic, Place::OtherTopic];
    random.one_in(3).then(|| (*random.pick(&topics), random.one_in(2)))
}

/// Mostly small, some that fill a good part of a segment, a few with a file of their own.
fn size(random: &mut Random) -> u32 {
    let (low, high) = match random.below(20) {
        0..13 => (0, 300),
        13..17 => (300, 1_500),
        17..19 => (1_500, 3_900),
        _ => *random.pick(&[(4_000, 4_200), (5_000, 9_000), (16_000, 17_000), (30_000, 40_000)]),
    };
    u32::try_from(random.between(low, high)).expect("a size")
}
