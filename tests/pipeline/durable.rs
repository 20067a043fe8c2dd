//! Runs on one data directory, one after the other: each goes on where the one before it stopped, however that ended.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use corriere_templates::{JsonConverter, MessageConverter};
use corriere_tests::random::number;
use mailparse::MailHeaderMap;
use serde::Deserialize;
use tempfile::TempDir;

use crate::dead_letters;
use crate::program::{Ended, Program};
use crate::reference::{broken, broken_by_reason, sound_orders};

/// The broken orders of the sample, and the sound ones.
const BROKEN: u64 = 20;
const SOUND: u64 = 300;

fn start(directory: TempDir, arguments: &[&str]) -> Program {
    let durable = ["--data", "data", "--outbox", "outbox"];
    Program::start_in(directory, "order_pipeline", durable.iter().chain(arguments))
}

fn run(directory: TempDir, arguments: &[&str]) -> Ended {
    start(directory, arguments).end()
}

/// The lines of a summary for people without those that are about this run.
fn totals(ended: &Ended) -> Vec<&str> {
    let of_this_run = ["redeliveries", "seconds", "orders per second"];
    ended.stdout.lines().filter(|line| of_this_run.iter().all(|name| !line.starts_with(name))).collect()
}

#[test]
fn a_finished_directory_publishes_nothing_and_says_the_same() {
    let first = run(tempfile::tempdir().unwrap(), &["--repeat", "2"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let expected: Vec<_> = totals(&first).into_iter().map(str::to_owned).collect();
    assert!(expected[0].ends_with(" 640"), "{expected:?}");
    fs::remove_dir_all(first.directory.path().join("outbox")).unwrap();

    let second = run(first.directory, &["--repeat", "2"]);
    assert_eq!(second.code, Some(0), "{second:?}");
    assert_eq!(totals(&second), expected);
    assert_eq!(second.files("outbox"), []);
    let third = run(second.directory, &["--repeat", "2", "--json"]);
    let json = third.json();
    assert_eq!((json.orders, json.emails, json.dead_letters, json.redeliveries), (640, 600, 40, 0));
    assert!(json.orders_per_s.abs() < f64::EPSILON, "{json:?}");
}

#[test]
fn a_directory_of_another_input_is_refused_and_left_as_it_is() {
    let first = run(tempfile::tempdir().unwrap(), &[]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let other = run(first.directory, &["--repeat", "2"]);
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(
        other.stderr.contains("the data directory belongs to another input: it has 320 orders"),
        "{other:?}"
    );
    assert_eq!(other.stdout, "");
    let again = run(other.directory, &["--json"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(again.json().orders, 320);
}

#[test]
fn a_directory_that_another_run_is_at_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let data = data.to_str().unwrap();
    let mut first = start(directory, &["--repeat", "1000000"]);
    first.wait_until(|program| program.count_files("outbox") > 10);
    let second = Program::start("order_pipeline", ["--data", data]).end();
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(second.stderr.contains("order_pipeline: "), "{second:?}");
    assert_eq!(second.stdout, "");
    first.kill();
}

#[cfg(unix)]
#[test]
fn without_a_directory_a_run_leaves_none() {
    let directory = tempfile::tempdir().unwrap();
    let temporary = directory.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let environment = [("TMPDIR", temporary.to_str().unwrap())];
    let ended = Program::start_with(directory, "order_pipeline", ["--sink", "count"], &environment).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("removed; `--data DIR` keeps it"), "{ended:?}");
    assert_eq!(fs::read_dir(temporary).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn a_run_that_was_asked_to_end_is_taken_up_again() {
    let mut program = start(tempfile::tempdir().unwrap(), &["--repeat", "5"]);
    program.wait_until(|program| program.count_files("outbox") > 100);
    program.signal("TERM");
    let ended = program.end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let ended = run(ended.directory, &["--repeat", "5", "--json"]);
    assert_all_done(&ended, 5);
}

#[test]
fn killed_again_and_again_it_loses_nothing_and_does_nothing_twice() {
    let seed = number("CORRIERE_SEED").unwrap_or_else(seed_from_clock);
    let kills = number("CORRIERE_KILLS").unwrap_or(20);
    println!("to run this again: CORRIERE_SEED={seed} CORRIERE_KILLS={kills}");
    let rounds = u32::try_from(kills.div_ceil(2)).unwrap();
    let repeat = rounds.to_string();
    let arguments = ["--repeat", &repeat, "--json"];

    let mut random = seed;
    let mut directory = tempfile::tempdir().unwrap();
    let mut at_work = 0;
    for _ in 0..kills {
        let program = start(directory, &arguments);
        thread::sleep(Duration::from_millis(next(&mut random) % 700));
        let was_at_work;
        (was_at_work, directory) = program.kill();
        at_work += u64::from(was_at_work);
    }
    println!("{at_work} of {kills} kills found the program at work");
    let ended = run(directory, &arguments);
    assert_all_done(&ended, rounds);
}

/// Every sound order of every round has its mail, once; every broken one is a dead letter, once; and the summary says so.
fn assert_all_done(ended: &Ended, rounds: u32) {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let (json, count) = (ended.json(), u64::from(rounds));
    assert_eq!(
        (json.orders, json.emails, json.dead_letters),
        (count * (SOUND + BROKEN), count * SOUND, count * BROKEN)
    );
    assert_mails(ended, rounds);
    assert_dead_letters(&ended.directory.path().join("data"), rounds);
}

fn assert_mails(ended: &Ended, rounds: u32) {
    let mut expected = BTreeSet::new();
    for order in sound_orders() {
        let id = &order["order_id"];
        expected.insert(format!("order-{id}.eml"));
        expected.extend((2..=rounds).map(|round| format!("order-{id}.{round}.eml")));
    }
    let mails = ended.files("outbox");
    let names: BTreeSet<_> = mails.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names, expected);
    for (name, mail) in &mails {
        let mail = mailparse::parse_mail(mail).unwrap();
        let id = mail.headers.get_first_value("Message-ID").unwrap();
        assert_eq!(id, format!("<{}@corriere.example>", name.trim_end_matches(".eml")));
        assert_eq!(mail.subparts.len(), 2, "{name} is not whole");
    }
}

/// What of an order is looked at.
#[derive(Debug, Deserialize)]
struct Entry {
    order_id: String,
    round: u32,
}

fn assert_dead_letters(data: &Path, rounds: u32) {
    let mut once: Vec<_> =
        broken().into_iter().map(|(id, _)| id.trim_end_matches(" (the second)").to_owned()).collect();
    once.sort();
    let json: &dyn MessageConverter = &JsonConverter::default();
    let mut found = BTreeMap::<_, Vec<_>>::new();
    let mut reasons = BTreeMap::<_, u64>::new();
    for message in dead_letters::on_queue(data, "DLQ.shop.orders") {
        let entry: Entry = json.decode(&message).unwrap();
        found.entry(entry.round).or_default().push(entry.order_id);
        let cause: String = message.property("dlqDeliveryFailureCause").unwrap().unwrap();
        let (class, _) = cause.split_once(": ").unwrap();
        *reasons.entry(class.to_owned()).or_default() += 1;
    }
    found.values_mut().for_each(|ids| ids.sort());
    assert_eq!(found, (1..=rounds).map(|round| (round, once.clone())).collect());
    let expected = broken_by_reason().into_iter().map(|(class, count)| (class, count * u64::from(rounds)));
    assert_eq!(reasons, expected.collect());
    assert!(dead_letters::on_queue(data, "DLQ.shop.emails").is_empty());
}

fn seed_from_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// A number that looks random (`SplitMix64`).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
