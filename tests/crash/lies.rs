//! Whether a bad store is found out: one that keeps what it was asked to passes, and each that does not is caught.

use crate::history::history;
use crate::play::{crashes, play_asking, survival};
use crate::reach::Reach;
use crate::standin::{LIES, Lie, StandIn};
use corriere_tests::random::{Random, number};

/// The first of so many histories that finds a lie out, and by what.
fn found_out(lie: Lie, histories: u64, clients_only: bool) -> Result<Reach, String> {
    let mut reach = Reach::default();
    for number in 0..histories {
        let mut random = Random::of(7, number);
        let actions = history(random.next(), 150);
        let (operation, survival) = (random.between(1, 120), survival(&mut random));
        let crashes = crashes(operation, 100, survival, &mut random);
        let played = play_asking(Box::new(StandIn::new(lie)), &actions, &crashes, clients_only);
        let (reached, _) = played
            .map_err(|failure| format!("history {number}: {}\n{}", failure.log.join("\n"), failure.text))?;
        reach.add(&reached);
    }
    Ok(reach)
}

fn cases() -> u64 {
    number("CORRIERE_CASES").unwrap_or(150)
}

#[test]
fn a_store_that_keeps_what_it_was_asked_to_is_not_blamed() {
    match found_out(Lie::None, cases(), false) {
        Ok(reach) => reach.assert_is_everywhere(),
        Err(failure) => panic!("{failure}"),
    }
}

#[test]
fn every_lie_of_a_store_is_found_out_by_what_it_holds() {
    find_out(false);
}

#[test]
fn every_lie_of_a_store_is_found_out_by_its_clients() {
    find_out(true);
}

fn find_out(clients_only: bool) {
    for lie in LIES {
        let failure = found_out(*lie, 150, clients_only);
        let failure = failure.expect_err(&format!("{lie:?} is not found out"));
        println!("{lie:?}: {}", failure.lines().last().unwrap_or_default());
    }
}
