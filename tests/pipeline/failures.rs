//! Runs that cannot go well, and what they say.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::program::{Ended, Program};
use crate::reference::sample;

/// A run over copies of the sample's files, after a change to them.
fn run_changed(change: impl FnOnce(&Path)) -> Ended {
    let directory = tempfile::tempdir().unwrap();
    for file in ["orders.csv", "order_lines.csv"] {
        fs::copy(sample().join(file), directory.path().join(file)).unwrap();
    }
    change(directory.path());
    run_in(
        directory,
        &["--json", "--outbox", "outbox", "--orders", "orders.csv", "--lines", "order_lines.csv"],
    )
}

fn run_in(directory: TempDir, arguments: &[&str]) -> Ended {
    Program::start_in(directory, "order_pipeline", arguments).end()
}

fn append(path: &Path, row: &[u8]) {
    let mut text = fs::read(path).unwrap();
    text.extend_from_slice(row);
    fs::write(path, text).unwrap();
}

/// The run stopped before the first order, naming this.
fn assert_stopped(ended: &Ended, expected: &str) {
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains(expected), "{expected:?} is not in {:?}", ended.stderr);
    assert_eq!(ended.stdout, "");
    assert!(!ended.directory.path().join("outbox").exists());
}

#[test]
fn a_row_with_too_few_fields_stops_the_run_at_its_place() {
    let ended = run_changed(|folder| append(&folder.join("orders.csv"), "6000,2025-01-01,é\n".as_bytes()));
    assert_stopped(&ended, "orders.csv:320:18: the row ends after 3 of 14 fields");
}

#[test]
fn a_row_with_too_many_fields_stops_the_run_at_its_place() {
    let ended =
        run_changed(|folder| append(&folder.join("order_lines.csv"), b"5001,\"a,\"\"b\",1,2,0.00,more\n"));
    assert_stopped(&ended, "order_lines.csv:838:23: expected the end of the row after 5 fields");
}

#[test]
fn a_quote_that_is_never_closed_stops_the_run_at_its_place() {
    let ended =
        run_changed(|folder| append(&folder.join("order_lines.csv"), b"5001,\"Rooibos,1.00,1,0.00\n"));
    assert_stopped(&ended, "order_lines.csv:838:6: this quote is never closed");
}

#[test]
fn bytes_that_are_no_text_stop_the_run_at_their_place() {
    let ended = run_changed(|folder| append(&folder.join("order_lines.csv"), b"5001,Caf\xe9,1.00,1,0.00\n"));
    assert_stopped(&ended, "order_lines.csv:838:9: the text is not UTF-8");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let ended = run_changed(|folder| fs::remove_file(folder.join("order_lines.csv")).unwrap());
    assert_stopped(&ended, "cannot read order_lines.csv");
}

#[test]
fn orders_without_their_lines_are_a_wrong_call() {
    let ended = run_in(tempfile::tempdir().unwrap(), &["--orders", "orders.csv"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("--lines"), "{ended:?}");
}

#[test]
fn an_outbox_that_cannot_be_made_stops_the_start() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("outbox"), "a file").unwrap();
    let ended = run_in(directory, &["--outbox", "outbox"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("cannot write outbox"), "{ended:?}");
}

#[test]
fn an_email_that_cannot_be_written_is_tried_again_and_then_a_dead_letter() {
    let directory = tempfile::tempdir().unwrap();
    // No file can take the place of a directory.
    fs::create_dir_all(directory.path().join("outbox/order-5001.eml")).unwrap();
    let ended = run_in(directory, &["--outbox", "outbox", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let json = ended.json();
    assert_eq!((json.orders, json.emails, json.dead_letters), (320, 299, 21));
    assert_eq!(json.redeliveries, 6);
}

#[test]
fn a_run_that_stands_still_ends_and_says_what_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(directory.path().join("outbox/order-5001.eml")).unwrap();
    let arguments = ["--outbox", "outbox", "--patience", "1"];
    // The e-mail that cannot be written would be tried again only after hours.
    let environment = [("CORRIERE__BROKER__REDELIVERY__INITIAL_DELAY", "5h")];
    let ended = Program::start_with(directory, "order_pipeline", arguments, &environment).end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let missing =
        "nothing has moved for 1s: 320 of 320 orders are published, 0 of them are still on `orders`";
    assert!(ended.stderr.contains(missing), "{ended:?}");
    assert_eq!(ended.stdout, "");
}
