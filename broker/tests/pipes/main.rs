//! Who opens a pipe waits for its other end, for ever if there is none. One in the place of a file is told instead.
//!
//! Alone in its program: the process that makes a pipe has for a moment the locks of the one that starts it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use corriere_broker::files::{Disk, FileSystem, OpenMode};
use corriere_broker::journal::{JournalOptions, JournalStore, inspect};
use corriere_broker::store::MessageStore;

/// Longer than anything takes that does not wait for ever.
const HANG: Duration = Duration::from_secs(120);

#[test]
fn a_pipe_in_the_place_of_a_file_is_told_and_not_waited_for() {
    let (told, hears) = mpsc::channel();
    thread::spawn(move || {
        let names = [
            "lock",
            "attempts",
            "unfinished-repair",
            "kr-store/state",
            "kr-store/state.doubtful",
            "journal/0000000000000000.journal",
            "journal/0000000002000000.journal",
            "journal/spare-7.journal",
            "journal/spare-room",
            "journal/0000000000000001.large",
        ];
        for name in names {
            let refusals = refusals(name);
            assert!(
                refusals.iter().any(|refused| refused.contains("a pipe, a socket or a device")),
                "{name}: {refusals:?}"
            );
        }
        told.send(()).unwrap();
    });
    match hears.recv_timeout(HANG) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it waits for a pipe"),
        outcome => outcome.expect("it failed, as is said above"),
    }
}

/// What is said by a start, by every look, and by whoever opens the pipe itself.
fn refusals(name: &str) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("local");
    let files: Arc<dyn FileSystem> = Arc::new(Disk);
    JournalStore::open_stepwise(Arc::clone(&files), JournalOptions::new(&root)).unwrap().close();
    let path = root.join(name);
    drop(std::fs::remove_file(&path));
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    for mode in [OpenMode::Existing, OpenMode::ReadOnly, OpenMode::New, OpenMode::Any] {
        assert!(files.open(&path, mode).is_err(), "{name} {mode:?}");
    }
    assert!(files.lock(&path, "holder").is_err() && files.lock_to_read(&path).is_err(), "{name}");
    assert!(files.create_directory(&path.join("below")).is_err(), "{name}");
    let looks = [
        inspect::verify(&files, &root).map(drop).map_err(|error| error.to_string()),
        inspect::dump(&files, &root, &mut Vec::new()).map(drop).map_err(|error| error.to_string()),
        inspect::explain(&files, &root, &mut Vec::new()).map_err(|error| error.to_string()),
        inspect::repair(&files, &root, Path::new(&directory.path().join("into")))
            .map(drop)
            .map_err(|error| error.to_string()),
        JournalStore::open_stepwise(files, JournalOptions::new(&root))
            .map(drop)
            .map_err(|error| error.to_string()),
    ];
    looks.into_iter().filter_map(Result::err).collect()
}
