//! A disk that fails or is full, at every point of a short history: the store fails with it or waits, as it should, and
//! the next start finds everything.

use std::io::ErrorKind;

use corriere_broker::files::{Fault, Operation, Survival};

use crate::ground::{Recorded, Trouble};
use crate::history::history;
use crate::play::{Troubled, crashes, play_in_trouble};
use crate::reach::Reach;
use corriere_tests::random::{Random, number};

const LENGTH: usize = 90;

/// Plays a history in trouble.
fn play(seed: u64, middle: usize, trouble: Trouble, survival: Survival, reach: &mut Reach) -> Troubled {
    let ground = Box::new(Recorded::new(4 * 1024));
    match play_in_trouble(ground, &history(seed, LENGTH), middle, trouble, survival) {
        Ok(troubled) => {
            reach.add(&troubled.reach);
            troubled
        }
        Err(failure) => panic!(
            "seed {seed}, {LENGTH} actions, the disk goes wrong from {middle} on by {trouble:?}\n\nwhat happened:\n{}\n\n\
             on the disk:\n{}\n\n{}",
            failure.log.join("\n"),
            failure.disk.join("\n"),
            failure.text
        ),
    }
}

/// So many histories: one in the suite, more where cases are asked for.
fn seeds() -> Vec<u64> {
    let histories = number("CORRIERE_CASES").map_or(2, |cases| cases.div_ceil(500));
    let seed = number("CORRIERE_SEED").unwrap_or(1);
    (0..histories).map(|history| Random::of(seed ^ 0x0002_0000, history).next()).collect()
}

/// A different one each time.
fn survival(number: u64) -> Survival {
    match number % 3 {
        0 => Survival::Process,
        1 => Survival::PowerCut { seed: number },
        _ => Survival::OnlySynced,
    }
}

/// The how manieth operation fails, for all of them.
fn fail_each(operation: Operation) {
    let mut reach = Reach::default();
    let mut hit = 0;
    for seed in seeds() {
        for middle in [0, LENGTH / 2] {
            for nth in 1.. {
                let fault = Fault { operation, nth, error: ErrorKind::Other, lasting: nth % 2 == 0 };
                let troubled = play(seed, middle, Trouble::Fault(fault), survival(nth), &mut reach);
                if troubled.failures.is_empty() {
                    break;
                }
                hit += 1;
            }
        }
    }
    println!("{hit} times, {reach:?}");
    assert!(hit > 0, "{operation:?} fails only {hit} times");
}

#[test]
fn a_write_that_fails_ends_the_store_and_loses_nothing() {
    fail_each(Operation::Write);
}

#[test]
fn a_sync_that_fails_ends_the_store_and_loses_nothing() {
    fail_each(Operation::SyncData);
}

#[test]
fn a_name_that_cannot_be_changed_loses_nothing() {
    for operation in [Operation::Create, Operation::Rename, Operation::SyncDirectory, Operation::SetLen] {
        fail_each(operation);
    }
}

#[test]
fn a_read_that_fails_loses_nothing() {
    fail_each(Operation::Read);
}

#[test]
fn a_full_disk_makes_senders_wait_and_nobody_else() {
    let step = if number("CORRIERE_CASES").is_some_and(|cases| cases >= 500) { 512 } else { 4_096 };
    let mut reach = Reach::default();
    for seed in seeds() {
        for middle in [0, LENGTH / 2] {
            let needed = play(seed, middle, Trouble::Room(1 << 40), Survival::Process, &mut reach).bytes;
            for room in (0..=needed).step_by(step) {
                play(seed, middle, Trouble::Room(room), survival(room / step as u64), &mut reach);
            }
        }
    }
    assert!(reach.crashes < 300 || reach.full > 3, "{reach:?}");
    println!("{reach:?}");
}

#[test]
fn a_store_limit_makes_senders_wait_until_messages_are_gone() {
    let mut reach = Reach::default();
    let seed = number("CORRIERE_SEED").unwrap_or(1);
    for case in 0..number("CORRIERE_CASES").map_or(30, |cases| cases.div_ceil(20)) {
        let mut random = Random::of(seed ^ 0x0003_0000, case);
        let mut ground = Recorded::new(4 * 1024);
        ground.options.store_limit = Some(4 * 1024 * random.between(2, 6));
        let (seed, length) = (random.next(), 40 + 4 * usize::try_from(case % 40).unwrap());
        let survival = survival(case);
        let crashes = crashes(random.between(1, 400), 300, survival, &mut random);
        match crate::play::play(Box::new(ground), &history(seed, length), &crashes) {
            Ok((reached, _)) => reach.add(&reached),
            Err(failure) => panic!(
                "seed {seed}, {length} actions, {crashes:?}\n\nwhat happened:\n{}\n\non the disk:\n{}\n\n{}",
                failure.log.join("\n"),
                failure.disk.join("\n"),
                failure.text
            ),
        }
    }
    println!("{reach:?}");
    assert!(reach.crashes < 300 || reach.full > 10, "{reach:?}");
}
