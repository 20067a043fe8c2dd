//! The program `corriere-store`, on a disk.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, mpsc};

use corriere_broker::files::Disk;
use corriere_broker::journal::{JournalOptions, JournalStore};
use corriere_broker::store::{Arrival, MessageStore, StoreOperation, StoredId};
use corriere_core::{Destination, Message};

fn corriere_store(arguments: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_corriere-store")).args(arguments).output().unwrap()
}

fn run(arguments: &[&Path], code: i32) -> String {
    let output = corriere_store(arguments);
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    text
}

fn open(directory: &Path) -> JournalStore {
    let mut options = JournalOptions::new(directory);
    options.max_file_length = 4_096;
    JournalStore::open_stepwise(Arc::new(Disk), options).unwrap()
}

fn send(store: &JournalStore, stored: u64) {
    let append = StoreOperation::Append {
        stored: StoredId(stored),
        queue: Destination::queue("orders").unwrap(),
        arrival: Arrival::Sent,
        message: Arc::new(Message::text("x".repeat(600))),
        transaction: None,
    };
    let (sender, receiver) = mpsc::channel();
    store.submit(vec![append], Box::new(move |outcome, _| drop(sender.send(outcome))));
    store.step();
    receiver.try_recv().unwrap().unwrap();
}

#[test]
fn a_directory_is_verified_dumped_explained_and_repaired() {
    let root = tempfile::tempdir().unwrap();
    let (directory, into) = (root.path().join("local"), root.path().join("repaired"));
    let store = open(&directory);
    (1..=20).for_each(|stored| send(&store, stored));
    let in_use = run(&["verify".as_ref(), &directory], 2);
    assert!(in_use.contains("is in use: it is held by process "), "{in_use}");
    store.close();
    drop(store);

    let verified = run(&["verify".as_ref(), &directory], 0);
    assert!(verified.contains("20 live messages: all is well"), "{verified}");
    assert_eq!(run(&["dump".as_ref(), &directory], 0).lines().count(), 20);
    let explained = run(&["explain".as_ref(), &directory], 0);
    assert!(explained.contains("live messages of queue://orders"), "{explained}");

    let segment = directory.join("journal/0000000000000000.journal");
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[400] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let verified = run(&["verify".as_ref(), &directory], 1);
    let place = format!("damaged: {}, offset ", segment.display());
    assert!(verified.starts_with(&place) && verified.contains("message 1 of queue://orders"), "{verified}");
    let dumped = run(&["dump".as_ref(), &directory], 1);
    assert!(dumped.contains("1 of 20 messages could not be read"), "{dumped}");
    let repaired = run(&["repair".as_ref(), &directory, &into], 1);
    assert!(repaired.contains("message 1 of queue://orders is lost"), "{repaired}");
    assert!(repaired.contains("19 live messages are in "), "{repaired}");
    assert!(run(&["repair".as_ref(), &directory, &into], 2).contains("is not empty"));
    assert!(run(&["verify".as_ref(), &into], 0).contains("19 live messages: all is well"));
    let store = open(&into);
    let recovered = store.recover();
    let stored = recovered.queues[0].messages.iter().map(|message| message.stored.0);
    assert_eq!(stored.collect::<Vec<_>>(), (2..=20).collect::<Vec<_>>());
}

/// Who is allowed everything can write to it all the same; for anyone else it is as on a medium that cannot be written to.
#[cfg(unix)]
#[test]
fn a_directory_that_cannot_be_written_to_is_looked_at() {
    use std::fs::{Permissions, read_dir, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    let root = tempfile::tempdir().unwrap();
    let (directory, into) = (root.path().join("local"), root.path().join("repaired"));
    let store = open(&directory);
    (1..=20).for_each(|stored| send(&store, stored));
    store.close();
    drop(store);
    let directories = [directory.join("journal"), directory.join("kr-store"), directory.clone()];
    let permit = |file: u32, of_directory: u32| {
        for within in &directories {
            for entry in read_dir(within).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file())
            {
                set_permissions(entry.path(), Permissions::from_mode(file)).unwrap();
            }
            set_permissions(within, Permissions::from_mode(of_directory)).unwrap();
        }
    };
    permit(0o444, 0o555);
    assert!(run(&["verify".as_ref(), &directory], 0).contains("20 live messages: all is well"));
    assert_eq!(run(&["dump".as_ref(), &directory], 0).lines().count(), 20);
    run(&["explain".as_ref(), &directory], 0);
    assert!(run(&["repair".as_ref(), &directory, &into], 0).contains("20 live messages are in "));
    permit(0o644, 0o755);
}

#[test]
fn wrong_arguments_say_what_was_meant() {
    let directory = tempfile::tempdir().unwrap();
    let wrong = run(&["verfy".as_ref(), directory.path()], 2);
    assert!(wrong.contains("there is no command `verfy`; did you mean `verify`?"), "{wrong}");
    assert!(run(&[], 2).contains("a command is missing"));
    assert!(run(&["repair".as_ref(), directory.path()], 2).contains("takes two directories"));
    assert!(run(&["explain".as_ref()], 2).contains("takes one directory"));
    let none = run(&["dump".as_ref(), directory.path()], 2);
    assert!(none.contains("is not the directory of a broker"), "{none}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is made there");
    assert!(run(&["--help".as_ref()], 0).contains("repair DIR INTO"));
}
