//! Random histories of an operator among consumers that fail, with a store that is slow and has no room for some moves: each
//! message that was sent is settled, purged or there, once. `CORRIERE_SEED` plays one of them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use corriere_broker::Settings;
use corriere_broker::machine::Action;
use corriere_broker::store::StoreError;
use corriere_core::provider::{AckKind, Dispatch};

use super::world::*;

/// For how long histories are played.
const TIME: Duration = Duration::from_secs(5);
const STEPS: u64 = 150;
const QUEUES: [&str; 5] = ["orders", "returns", "away", "DLQ.orders", "DLQ.returns"];

/// A source of numbers that is the same for the same seed, by the `SplitMix64` generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        let bound = all.len() as u64;
        all[usize::try_from(self.below(bound)).unwrap()]
    }
}

struct History {
    world: World,
    dice: Dice,
    consumers: Vec<(Consumer, Vec<Dispatch>)>,
    sent: u64,
    acknowledged: BTreeSet<u64>,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let size = message(&queue("orders"), 1).size() as u64;
        let mut world = match dice.below(2) {
            0 => World::new(),
            _ => World::loading(Settings {
                memory_limit: size * 60,
                redelivery: policy(),
                ..Settings::default()
            }),
        };
        let connection = world.connect();
        let mut consumers = Vec::new();
        for name in ["orders", "returns", "orders"] {
            let prefetch = u32::try_from(1 + dice.below(5)).unwrap();
            consumers.push((world.consumer(connection, &queue(name), window(prefetch)), Vec::new()));
        }
        Self { world, dice, consumers, sent: 0, acknowledged: BTreeSet::new() }
    }

    fn step(&mut self) {
        match self.dice.below(12) {
            0..=3 => {
                self.sent += 1;
                let to = queue(self.dice.one_of(&["orders", "returns"]));
                let connection = self.consumers[0].0.connection;
                self.world.send(connection, message(&to, self.sent));
            }
            4..=6 => self.consume(),
            7 | 8 => self.operate(),
            9 => self.world.advance(Duration::from_millis(self.dice.below(1_500))),
            10 => self.world.hold_store = !self.world.hold_store,
            _ => self.answer(),
        }
        self.world.bring_back();
    }

    /// A consumer settles the first that it has, or fails it.
    fn consume(&mut self) {
        let index = usize::try_from(self.dice.below(3)).unwrap();
        let (consumer, waiting) = &mut self.consumers[index];
        waiting.extend(self.world.received(*consumer));
        if waiting.is_empty() {
            return;
        }
        let dispatch = waiting.remove(0);
        let kind = match self.dice.below(3) {
            0 => failed(),
            1 => poison(),
            _ => {
                assert!(self.acknowledged.insert(sequence_of(&dispatch)), "it came after it was settled");
                AckKind::Standard
            }
        };
        if matches!(kind, AckKind::Redelivered { .. }) {
            // What it did not look at yet is taken back with it.
            waiting.clear();
        }
        let ack = acknowledge(*consumer, dispatch.number, dispatch.number, kind, None);
        self.world.submit(consumer.connection, ack);
    }

    fn operate(&mut self) {
        let from = queue(self.dice.one_of(&QUEUES));
        let to = queue(self.dice.one_of(&["orders", "returns", "away"]));
        let action = match self.dice.below(5) {
            0 => Action::Purge,
            1 | 2 => Action::Retry,
            _ => Action::Move(to),
        };
        let every = 1 + self.dice.below(3);
        if self.world.machine.look_into(&from).is_some() {
            self.world.order(&from, action, |sequence| sequence % every == 0);
        }
    }

    /// The store is done with what it was given first.
    fn answer(&mut self) {
        if self.world.unstored.is_empty() {
            return;
        }
        let is_refused = self.world.is_move_next() && self.dice.below(2) == 0;
        let full = || Err(StoreError::Full { reason: "no segment is free".into() });
        self.world.store(if is_refused { full() } else { Ok(()) });
    }

    /// All that is there comes to somebody, once.
    fn check(mut self) {
        self.world.hold_store = false;
        for (consumer, _) in std::mem::take(&mut self.consumers) {
            self.world.close_session(consumer);
        }
        let connection = self.world.connect();
        let mut left = BTreeSet::new();
        let readers: Vec<_> =
            QUEUES.iter().map(|name| self.world.consumer(connection, &queue(name), window(10_000))).collect();
        for _ in 0..20 {
            self.world.bring_back();
            self.world.advance(Duration::from_secs(1));
            for reader in &readers {
                for dispatch in self.world.received(*reader) {
                    let sequence = sequence_of(&dispatch);
                    assert!(left.insert(sequence), "m{sequence} is there twice");
                    let connection = reader.connection;
                    let ack = acknowledge(*reader, dispatch.number, dispatch.number, AckKind::Standard, None);
                    self.world.submit(connection, ack);
                }
            }
        }
        assert!(left.is_disjoint(&self.acknowledged), "something came back");
        let counts = QUEUES.map(|name| self.world.counts(&queue(name)));
        let purged: u64 = counts.iter().map(|counts| counts.purged).sum();
        assert_eq!(counts.map(|counts| counts.pending), [0; 5], "something is stuck");
        assert_eq!(
            self.sent,
            left.len() as u64 + self.acknowledged.len() as u64 + purged,
            "something is lost"
        );
        for (_, outcome) in &self.world.managed {
            let outcome = outcome.as_ref().unwrap();
            let parts = outcome.done + outcome.skipped + outcome.without_destination + outcome.no_room;
            assert_eq!(outcome.matched, parts, "{outcome:?}");
        }
        assert_eq!(self.world.machine.memory_used(), 0);
    }
}

fn play(seed: u64) {
    // Shown when the history fails.
    eprintln!("CORRIERE_SEED={seed}");
    let mut history = History::new(seed);
    for _ in 0..STEPS {
        history.step();
    }
    history.check();
}

#[test]
fn whatever_an_operator_does_meanwhile_each_message_is_settled_purged_or_there_once() {
    if let Ok(seed) = std::env::var("CORRIERE_SEED") {
        return play(seed.parse().expect("CORRIERE_SEED is a whole number"));
    }
    let begin = Instant::now();
    for seed in 1..=2_000 {
        if begin.elapsed() >= TIME {
            break;
        }
        play(seed);
    }
}
