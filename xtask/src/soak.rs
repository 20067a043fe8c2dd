//! The random tests of message delivery and of the store, and of processes that are killed, for as long as one likes, and a storm
//! of clients behind them.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::failure::Failure;
use crate::process::Run;
use crate::project::Project;

/// The tests' package and the binaries in it whose cases are made from a seed.
pub(crate) const PACKAGE: &str = "corriere-tests";
const BINARIES: &[&str] =
    &["--test", "delivery", "--test", "endurance", "--test", "crash", "--test", "openwire_damage"];

/// The test that kills the order pipeline, and how often it does so in a round.
const KILLED: &[&str] = &["test", "-p", PACKAGE, "--test", "pipeline", "--", "--nocapture", "killed_again"];
const KILLS: &str = "200";

/// Clients and brokers that are ended at random. It takes its time in each of two arenas, by these.
const STORM: &[&str] = &["test", "-p", PACKAGE, "--test", "storm", "--", "--nocapture"];
const STORM_SECONDS: &str = "CORRIERE_STORM_SECONDS";
const STORM_SEED: &str = "CORRIERE_STORM_SEED";
const ARENAS: u64 = 2;

/// What these two mean is said in the tests: how many histories each random test makes, and from which seed.
pub(crate) const CASES: &str = "CORRIERE_CASES";
const SEED: &str = "CORRIERE_SEED";

/// How long, from which seed, and with how many cases in each round; and how long it storms then.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) minutes: u64,
    pub(crate) storm_minutes: u64,
    pub(crate) seed: Option<u64>,
    pub(crate) cases: u64,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan { minutes: 10, storm_minutes: 60, seed: None, cases: 2_000 }
    }
}

/// Rounds until the time is over, and the storm. A round that has begun is finished; the first that fails ends it all.
pub(crate) fn run(project: &Project, plan: &Plan) -> Result<(), Failure> {
    let first = plan.seed.unwrap_or_else(seed_from_clock);
    println!("soak: {} minutes from seed {first}", plan.minutes);
    project.cargo(&[&["test", "-p", PACKAGE, "--no-run"], BINARIES].concat()).check()?;
    let begin = Instant::now();
    let time = Duration::from_secs(plan.minutes.saturating_mul(60));
    let mut rounds = 0;
    while rounds == 0 || begin.elapsed() < time {
        let seed = seed_of_round(first, rounds);
        println!("\n==> round {}, {} s of {} s", rounds + 1, begin.elapsed().as_secs(), time.as_secs());
        let round = round(project, seed, plan.cases);
        if round.is_err() {
            eprintln!(
                "\nsoak: to run this round again: cargo xtask soak --minutes 0 --storm-minutes 0 --seed {seed} --cases {}",
                plan.cases
            );
        }
        round?;
        rounds += 1;
    }
    println!("\nsoak: {rounds} rounds of {} cases passed in {} s", plan.cases, begin.elapsed().as_secs());
    storm(project, first, plan.storm_minutes)
}

fn storm(project: &Project, seed: u64, minutes: u64) -> Result<(), Failure> {
    let seconds = minutes.saturating_mul(60) / ARENAS;
    if seconds == 0 {
        return Ok(());
    }
    println!("\n==> storm, {minutes} minutes from seed {seed}");
    let run = project.cargo(STORM).env(STORM_SEED, &seed.to_string());
    run.env(STORM_SECONDS, &seconds.to_string()).check()
}

fn round(project: &Project, seed: u64, cases: u64) -> Result<(), Failure> {
    let run: Run = project.cargo(&[&["test", "-p", PACKAGE], BINARIES].concat());
    run.env(CASES, &cases.to_string()).env(SEED, &seed.to_string()).check()?;
    project.cargo(KILLED).env("CORRIERE_KILLS", KILLS).env(SEED, &seed.to_string()).check()
}

/// The first round has the given seed itself, so that any round can be run again as a first one. The others are
/// far from it, not beside it: two runs with neighbouring seeds shall not make the same rounds.
fn seed_of_round(first: u64, round: u64) -> u64 {
    // The constant is 2^64 divided by the golden ratio, which spreads multiples evenly.
    first.wrapping_add(round.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

fn seed_from_clock() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs().rotate_left(32) ^ u64::from(now.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_round_can_be_asked_for_by_its_seed() {
        assert_eq!(seed_of_round(77, 0), 77);
        let third = seed_of_round(77, 2);
        assert_eq!(seed_of_round(third, 0), third);
    }

    #[test]
    fn neighbouring_seeds_make_different_rounds() {
        let rounds = |first| (0..50).map(|round| seed_of_round(first, round)).collect::<Vec<_>>();
        assert!(rounds(1).iter().all(|seed| !rounds(2).contains(seed)));
    }
}
