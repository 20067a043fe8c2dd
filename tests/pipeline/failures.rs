//! Runs that cannot go well, and what they say.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::program::{Ended, PROGRAMS, Program};
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
fn an_outbox_that_is_a_file_stops_the_start() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("outbox"), "a file").unwrap();
    let ended = run_in(directory, &["--outbox", "outbox"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("outbox is a file; expected a directory"), "{ended:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_outbox_that_takes_no_files_stops_the_start() {
    let ended = run_in(tempfile::tempdir().unwrap(), &["--outbox", "/proc/self"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("cannot write /proc/self: "), "{ended:?}");
    assert_eq!(ended.stdout, "");
}

#[test]
fn an_outbox_whose_name_looks_like_a_placeholder_is_taken_by_its_name() {
    let ended = run_in(tempfile::tempdir().unwrap(), &["--outbox", "$${env:HOME}"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.files("$${env:HOME}").len(), 300);
}

#[cfg(unix)]
#[test]
fn an_outbox_whose_name_is_no_text_is_refused_by_its_name() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let arguments = [OsStr::new("--outbox"), OsStr::from_bytes(b"out\xffbox")];
    let ended = Program::start("order_pipeline", arguments).end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains(r#"the outbox "out\xFFbox" has a name that is not UTF-8"#), "{ended:?}");
}

#[test]
fn an_email_that_cannot_be_written_ends_the_run_and_buries_nothing() {
    let directory = tempfile::tempdir().unwrap();
    // No file can take the place of a directory.
    fs::create_dir_all(directory.path().join("outbox/order-5001.eml")).unwrap();
    let ended = run_in(directory, &["--outbox", "outbox", "--sink", "files"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let cause = "order_pipeline: outbox: cannot write outbox/order-5001.eml: Is a directory";
    assert!(ended.stderr.contains(cause), "{ended:?}");
    assert!(ended.stdout.starts_with("orders "), "{ended:?}");
    assert!(!ended.stdout.contains("outbox"), "no dead letter for want of a place: {ended:?}");
    let left = ended.directory.path().join("outbox/.order-5001.eml.part");
    assert!(!left.exists());
}

#[cfg(unix)]
#[test]
fn a_run_that_stands_still_ends_and_says_what_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let outbox = directory.path().join("outbox");
    fs::create_dir(&outbox).unwrap();
    // Nobody reads from this pipe, so writing into it hangs.
    let made = Command::new("mkfifo").arg(outbox.join(".order-5001.eml.part")).status().unwrap();
    assert!(made.success());
    let arguments = ["--outbox", "outbox", "--patience", "1", "--json"];
    let environment = [("CORRIERE__LISTENER_CONTAINERS__DEFAULT__SHUTDOWN_TIMEOUT", "1s")];
    let ended = Program::start_with(directory, "order_pipeline", arguments, &environment).end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let missing =
        "nothing has moved for 1s: 320 of 320 orders are published, 0 of them are still on `orders`";
    assert!(ended.stderr.contains(missing), "{ended:?}");
    let json = ended.json();
    assert_eq!((json.orders, json.dead_letters), (320, 20));
    assert!(json.emails < 300, "{json:?}");
}

/// Asks a run to end in the middle of its work.
fn interrupt(signal: &str) -> Ended {
    let mut program =
        Program::start("order_pipeline", ["--json", "--outbox", "outbox", "--repeat", "1000000"]);
    program.wait_until(|program| program.count_files("outbox") > 100);
    program.signal(signal);
    program.end()
}

#[cfg(unix)]
#[test]
fn a_run_that_is_asked_to_end_stops_in_order_and_says_what_was_done() {
    for signal in ["INT", "TERM"] {
        let ended = interrupt(signal);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains(&format!("stopped by SIG{signal} before the end")), "{ended:?}");
        let json = ended.json();
        assert!(json.orders >= json.emails + json.dead_letters, "{json:?}");
        // What was under way came to its end: each file is an acknowledged e-mail, and none is half written.
        assert_eq!(ended.files("outbox").len() as u64, json.emails);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_log_that_cannot_be_written_does_not_end_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ended = Command::new(PROGRAMS.join("order_pipeline"))
        .args(["--json", "--sink", "count"])
        .current_dir(directory.path())
        .stderr(full)
        .output()
        .unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stdout).contains("\"orders\":320"), "{ended:?}");
}
