//! What the summary says.

use std::collections::{BTreeMap, BTreeSet};

use crate::program::{Ended, Program};
use crate::reference::{broken, broken_by_reason, other_orders, sound_orders};

fn run(arguments: &[&str]) -> Ended {
    Program::start("order_pipeline", arguments).end()
}

#[test]
fn every_order_of_the_sample_is_an_email_or_a_dead_letter() {
    let ended = run(&["--json", "--outbox", "outbox"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let json = ended.json();
    assert_eq!((json.orders, json.emails, json.dead_letters), (320, 300, 20));
    assert_eq!(json.redeliveries, 0);
    assert!(json.seconds > 0.0);
    assert!((json.orders_per_s * json.seconds - 320.0).abs() < 1e-6, "{json:?}");

    let expected: BTreeSet<_> =
        sound_orders().iter().map(|row| format!("order-{}.eml", row["order_id"])).collect();
    let names: BTreeSet<_> = ended.files("outbox").into_iter().map(|(name, _)| name).collect();
    assert_eq!(expected.len(), 300);
    assert_eq!(names, expected);
}

#[test]
fn the_dead_letters_have_the_reasons_that_the_sample_promises() {
    assert_eq!(broken().len(), 20);
    let ended = run(&["--sink", "count"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let reasons: BTreeMap<_, _> = ended
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.rsplit_once(' '))
        .map(|(reason, count)| (reason.trim().to_owned(), count.parse::<u64>().unwrap()))
        .collect();
    assert_eq!(reasons, broken_by_reason());
    assert!(reasons.len() >= 8);
}

#[test]
fn repeated_input_makes_distinct_orders() {
    let ended = run(&["--json", "--outbox", "outbox", "--repeat", "3"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let json = ended.json();
    assert_eq!((json.orders, json.emails, json.dead_letters), (960, 900, 60));
    assert_eq!(ended.files("outbox").len(), 900);
}

#[test]
fn counted_emails_are_written_nowhere() {
    let ended = run(&["--json", "--outbox", "outbox", "--sink", "count"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.json().emails, 300);
    assert!(!ended.directory.path().join("outbox").exists());
}

#[test]
fn orders_from_elsewhere_are_confirmed_too() {
    let Some(folder) = other_orders() else { return };
    let orders = folder.join("orders.csv").into_os_string().into_string().unwrap();
    let lines = folder.join("order_lines.csv").into_os_string().into_string().unwrap();
    let ended = run(&["--json", "--outbox", "outbox", "--orders", &orders, "--lines", &lines]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let json = ended.json();
    assert_eq!(json.orders, json.emails + json.dead_letters);
    assert_eq!(ended.files("outbox").len() as u64, json.emails);
    assert!(json.emails > 0);
}
