//! Which test shows which case from the field, and which cases are left out, and why.

mod listed;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use table::{CASES, Case, Reason, Shown};

/// The rows that have to do with acknowledgement, redelivery, prefetch, transactions, dead letters, messages, connections and
/// templates; with them the rows whose variants need what stands beside these.
const ROWS: [&str; 22] = [
    "C-02", "C-03", "C-05", "C-07", "C-08", "C-09", "C-10", "C-12", "C-13", "C-14", "C-16", "C-17", "C-19",
    "C-22", "C-23", "C-29", "C-30", "C-33", "C-34", "C-41", "C-55", "C-56",
];

/// The cases of Spring's users.
const OF_SPRING: [&str; 9] = [
    "Spring 1",
    "Spring 2",
    "Spring 3",
    "Spring 6",
    "Spring 7",
    "Spring 8",
    "Spring 14",
    "Spring 15",
    "Spring 16",
];

fn of(id: &str) -> impl Iterator<Item = &'static Case> {
    CASES.iter().filter(move |case| case.id == id)
}

#[test]
fn no_row_is_missing_and_none_is_made_up() {
    let expected: BTreeSet<_> = ROWS.into_iter().chain(OF_SPRING).collect();
    let listed: BTreeSet<_> = CASES.iter().map(|case| case.id).collect();
    assert_eq!(listed, expected);
}

#[test]
fn the_letters_of_a_row_have_no_gap() {
    let mut rows: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for case in CASES {
        let letter = case.variant.strip_prefix('(').and_then(|rest| rest.chars().next());
        rows.entry(case.id).or_default().extend(letter);
    }
    for (id, letters) in rows {
        let expected: BTreeSet<_> = ('a'..).take(letters.len()).collect();
        assert_eq!(letters, expected, "{id}");
    }
}

#[test]
fn every_case_is_shown_somewhere_or_left_out_with_a_reason() {
    for case in CASES {
        match case.shown {
            Shown::By(tests) => {
                assert!(!tests.is_empty(), "{} {} is shown by nothing", case.id, case.variant);
            }
            Shown::Not(Reason::CannotBeSaid("") | Reason::ByDesign("")) => {
                panic!("{} {} is left out without a word", case.id, case.variant);
            }
            Shown::Not(reason) => println!("left out: {} {}: {reason}", case.id, case.variant),
        }
        let same = of(case.id).filter(|other| other.variant == case.variant).count();
        assert_eq!(same, 1, "{} {} stands there {same} times", case.id, case.variant);
    }
}

#[test]
fn every_test_that_the_table_names_is_there_and_says_the_case_that_it_shows() {
    let mut wrong = Vec::new();
    for case in CASES {
        let Shown::By(tests) = case.shown else { continue };
        wrong.extend(
            tests.iter().filter_map(|test| Some(format!("{test}: {}", listed::fault(test, case.id)?))),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
