//! The end of the process at every operation on the disk.

use std::time::{Duration, Instant};

use corriere_broker::files::Survival;

use crate::ground::{Ground, Recorded};
use crate::history::{Action, history};
use crate::play::{Crash, Failure, crashes, play, survival};
use crate::reach::Reach;
use corriere_tests::random::{Random, number};

const DEFAULT_SEED: u64 = 1;
/// How long random histories are played where no number of cases is asked for.
const TIME: Duration = Duration::from_secs(20);
/// Actions of a history that is ended at each of its operations.
const SHORT: usize = 70;
const LONG: usize = 260;

/// A history and how its processes end.
#[derive(Debug)]
struct Case {
    seed: u64,
    length: usize,
    crashes: Vec<Crash>,
}

fn ground() -> Box<dyn Ground> {
    Box::new(Recorded::new(16 * 1024))
}

impl Case {
    fn actions(&self) -> Vec<Action> {
        history(self.seed, self.length)
    }

    fn play(&self) -> Result<(Reach, u64), Failure> {
        play(ground(), &self.actions(), &self.crashes)
    }

    /// Plays it; if it breaks a rule, panics with the shortest beginning that does.
    fn assert_keeps_the_rules(&self) -> (Reach, u64) {
        self.play().unwrap_or_else(|failure| {
            let (length, failure) = self.shortest(failure);
            panic!(
                "seed {}, the first {length} actions, {:?}\n\nwhat happened:\n{}\n\non the disk:\n{}\n\n{}",
                self.seed,
                self.crashes,
                failure.log.join("\n"),
                failure.disk.join("\n"),
                failure.text
            );
        })
    }

    /// The shortest beginning that fails, with its failure.
    fn shortest(&self, whole: Failure) -> (usize, Failure) {
        let actions = self.actions();
        for length in 0..actions.len() {
            if let Err(failure) = play(ground(), &actions[..length], &self.crashes) {
                return (length, failure);
            }
        }
        (actions.len(), whole)
    }
}

/// Operations on the disk of a history that nothing ends.
fn operations_of(seed: u64, length: usize) -> u64 {
    Case { seed, length, crashes: Vec::new() }.assert_keeps_the_rules().1
}

#[test]
fn a_history_that_ends_at_any_of_its_operations_loses_nothing_and_brings_nothing_back() {
    let seed = number("CORRIERE_SEED").unwrap_or(DEFAULT_SEED);
    let mut left = number("CORRIERE_CASES").unwrap_or(900);
    let mut reach = Reach::default();
    for history in 0.. {
        let seed = Random::of(seed, history).next();
        let operations = operations_of(seed, SHORT);
        for operation in 1..=operations {
            for survival in [Survival::Process, Survival::OnlySynced, Survival::PowerCut { seed: operation }]
            {
                let crashes = vec![Crash { operation, survival, seed: seed ^ operation }];
                reach.add(&Case { seed, length: SHORT, crashes }.assert_keeps_the_rules().0);
                left = left.saturating_sub(1);
            }
            if left == 0 {
                reach.assert_is_everywhere();
                return;
            }
        }
    }
}

#[test]
fn a_long_history_goes_on_after_each_of_several_ends() {
    let seed = number("CORRIERE_SEED").unwrap_or(DEFAULT_SEED);
    let asked = number("CORRIERE_CASES");
    let mut reach = Reach::default();
    let start = Instant::now();
    for case in 0..asked.unwrap_or(u64::MAX) {
        if asked.is_none() && start.elapsed() > TIME {
            break;
        }
        let mut random = Random::of(seed ^ 0x0001_0000, case);
        let seed = random.next();
        let length = usize::try_from(random.between(40, LONG as u64)).unwrap();
        let operations = random.between(1, 500);
        let survival = survival(&mut random);
        let crashes = crashes(operations, 400, survival, &mut random);
        reach.add(&Case { seed, length, crashes }.assert_keeps_the_rules().0);
    }
    reach.assert_is_everywhere();
}
