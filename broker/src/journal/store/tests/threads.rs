//! The store with its threads, on a disk.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use super::*;
use crate::files::{Disk, Fault, Operation};

fn disk(directory: &tempfile::TempDir) -> JournalOptions {
    JournalOptions { max_file_length: 64 << 10, ..JournalOptions::new(directory.path().join("broker")) }
}

fn open(options: &JournalOptions) -> JournalStore {
    JournalStore::open(Arc::new(Disk), options.clone()).unwrap()
}

fn wait<T>(receiver: &Receiver<T>) -> T {
    receiver.recv_timeout(HANG).expect("it does not hang")
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < HANG, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn load(store: &JournalStore, wanted: &[u64]) -> Vec<(StoredId, Result<Arc<Message>, StoreError>)> {
    let (sender, receiver) = mpsc::channel();
    let wanted = wanted.iter().copied().map(StoredId).collect();
    store.load(wanted, Box::new(move |loaded| drop(sender.send(loaded))));
    wait(&receiver)
}

/// In memory where the system has that, which is another file system than that of temporary files then.
#[test]
fn segments_are_archived_whatever_the_archive_is_on() {
    let directory = tempfile::tempdir().unwrap();
    let archive = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let options = JournalOptions { archive: Some(archive.path().to_owned()), ..disk(&directory) };
    let store = open(&options);
    for stored in 1..=400 {
        wait(&submit(&store, send(stored))).unwrap();
        wait(&submit(&store, remove(stored))).unwrap();
    }
    store.checkpoint().unwrap();
    assert_eq!(store.core.segments.live().len(), 1);
    store.close();
    let archived =
        std::fs::read_dir(archive.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    let archived: Vec<_> = archived.collect();
    assert!(archived.len() >= 4 && archived.iter().all(|length| *length == 64 << 10), "{archived:?}");
}

#[test]
fn what_many_senders_had_confirmed_is_there_after_a_close_and_after_a_drop() {
    for close in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&disk(&directory));
        thread::scope(|scope| {
            for sender in 0..8_u64 {
                let store = &store;
                scope.spawn(move || {
                    for number in 0..50 {
                        let stored = 1 + sender * 1_000 + number;
                        wait(&submit(store, send(stored))).unwrap();
                        if number % 2 == 0 {
                            wait(&submit(store, remove(stored))).unwrap();
                        }
                        let loaded = load(store, &[stored]).remove(0).1;
                        assert_eq!(loaded.is_ok(), number % 2 == 1, "{loaded:?}");
                    }
                });
            }
        });
        if close {
            store.close();
        }
        drop(store);
        let store = open(&disk(&directory));
        let recovered = store.recover();
        let mut names = names(&recovered);
        assert_eq!(recovered.queues[0].totals.enqueued, 400);
        assert_eq!(recovered.queues[0].totals.acknowledged, 200);
        for sender in 0..8 {
            let of_sender = names.iter().filter(|stored| (*stored - 1) / 1_000 == sender);
            let expected = (0..25).map(|number| 1 + sender * 1_000 + number * 2 + 1);
            assert_eq!(of_sender.copied().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }
        names.truncate(40);
        for (stored, loaded) in load(&store, &names) {
            assert_eq!(*loaded.unwrap(), *message(stored.0, 300));
        }
    }
}

#[test]
fn the_end_of_a_part_is_told_in_the_order_of_the_submissions() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&disk(&directory));
    let (sender, receiver) = mpsc::channel();
    for stored in 1..=2_000 {
        let sender = sender.clone();
        store.submit(send(stored), Box::new(move |outcome, _| drop(sender.send((stored, outcome)))));
        store.lead();
        if stored % 97 == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }
    for stored in 1..=2_000 {
        assert_eq!(wait(&receiver), (stored, Ok(())));
    }
}

#[test]
fn what_is_staged_and_what_is_only_written_does_not_wait_for_ever() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&disk(&directory));
    wait(&submit(&store, vec![append_of(1, 100, Some(local(1)), Arrival::Sent)])).unwrap();
    wait(&submit(&store, send(2))).unwrap();
    wait(&submit(&store, remove(2))).unwrap();
    until("what is written is synced by itself", || !store.core.pending.is_unsynced());
}

#[test]
fn what_is_remembered_of_a_message_last_is_not_written_first() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&disk(&directory));
    wait(&submit(&store, send(1))).unwrap();
    let failed = |failed_deliveries| StoreOperation::DeliveryState {
        stored: StoredId(1),
        state: DeliveryState { failed_deliveries, ..DeliveryState::default() },
    };
    let (sender, outcomes) = mpsc::channel();
    // The first stands in line, beside a dead letter; nobody leads yet.
    for operations in [vec![append_of(2, 10, None, Arrival::MovedIn), failed(1)], vec![failed(2)]] {
        let sender = sender.clone();
        store.submit(operations, Box::new(move |outcome, _| drop(sender.send(outcome))));
    }
    store.lead();
    for _ in 0..2 {
        wait(&outcomes).unwrap();
    }
    drop(store);
    let recovered = open(&disk(&directory)).recover();
    assert_eq!(recovered.queues[0].messages[0].state.failed_deliveries, 2);
}

#[test]
fn messages_are_still_read_back_after_one_who_wanted_some_panicked() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&disk(&directory));
    wait(&submit(&store, send(1))).unwrap();
    store.load(vec![StoredId(1)], Box::new(|_| panic!("on purpose")));
    load(&store, &[1]).remove(0).1.unwrap();
}

#[test]
fn checkpoints_come_by_themselves_and_give_segments_up() {
    let directory = tempfile::tempdir().unwrap();
    for options in [
        JournalOptions { cleanup_interval: Duration::from_millis(20), ..disk(&directory) },
        JournalOptions { checkpoint_after: 100 << 10, ..disk(&directory) },
    ] {
        let store = open(&options);
        let from = 1 + store.recover().last_id.0;
        for stored in from..from + 1_000 {
            drop(submit(&store, send(stored)));
        }
        wait(&submit(&store, vec![StoreOperation::Commit(local(1))])).unwrap();
        for stored in from..from + 1_000 {
            drop(submit(&store, remove(stored)));
        }
        until("dead segments are given up", || {
            // What comes behind makes the checkpoint due where it goes by bytes.
            wait(&submit(&store, send(from + 2_000))).unwrap();
            wait(&submit(&store, remove(from + 2_000))).unwrap();
            store.core.segments.live().len() <= 3
        });
        until("spares are made ahead", || store.core.segments.spares() >= 4);
        store.close();
    }
}

#[test]
fn a_failed_sync_is_told_to_all_who_wait_and_the_end_does_not_hang() {
    let files = RecordedFiles::new();
    let store = JournalStore::open(Arc::new(files.clone()), options()).unwrap();
    wait(&submit(&store, send(1))).unwrap();
    let events = watch(&store);
    files.fail(Fault { operation: Operation::SyncData, nth: 1, error: io::ErrorKind::Other, lasting: true });
    let outcomes: Vec<_> = (2..100).map(|stored| submit(&store, send(stored))).collect();
    for outcome in outcomes {
        wait(&outcome).unwrap_err();
    }
    assert!(matches!(wait(&events), StoreEvent::Failed(_)));
    store.close();
    drop(store);
    let store = JournalStore::open(Arc::new(files.survive(Survival::OnlySynced)), options()).unwrap();
    assert_eq!(names(&store.recover()), [1]);
}

#[test]
fn a_full_store_goes_on_by_itself_when_messages_are_taken() {
    let limited = JournalOptions { store_limit: Some(2 * 4_096), ..options() };
    let store = JournalStore::open(Arc::new(RecordedFiles::new()), limited).unwrap();
    let events = watch(&store);
    let mut confirmed = Vec::new();
    for stored in 1..100 {
        match wait(&submit(&store, send(stored))) {
            Ok(()) => confirmed.push(stored),
            Err(_) => break,
        }
    }
    assert!(matches!(wait(&events), StoreEvent::Full { .. }));
    assert!(matches!(events.recv_timeout(Duration::from_millis(50)), Err(RecvTimeoutError::Timeout)));
    for stored in confirmed {
        wait(&submit(&store, remove(stored))).unwrap();
    }
    assert_eq!(wait(&events), StoreEvent::Room);
    store.take_sends();
    wait(&submit(&store, send(200))).unwrap();
}

#[test]
fn a_second_process_is_refused_on_the_disk_and_a_moved_directory_works() {
    let directory = tempfile::tempdir().unwrap();
    let options = disk(&directory);
    let store = open(&options);
    wait(&submit(&store, send(1))).unwrap();
    let refused = JournalStore::open(Arc::new(Disk), options.clone()).expect_err("it is in use").to_string();
    assert!(
        refused.contains(&format!("is in use: it is held by process {}", std::process::id())),
        "{refused}"
    );
    drop(store);

    let moved = directory.path().join("elsewhere");
    std::fs::rename(&options.directory, &moved).unwrap();
    let store = open(&JournalOptions { max_file_length: 64 << 10, ..JournalOptions::new(moved) });
    assert_eq!(names(&store.recover()), [1]);
    assert_eq!(*load(&store, &[1]).remove(0).1.unwrap(), *message(1, 300));
}

#[test]
fn a_store_that_is_dropped_by_a_completion_does_not_wait_for_itself() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(open(&disk(&directory)));
    let (sender, receiver) = mpsc::channel();
    let (go, gone) = mpsc::channel::<()>();
    let last = Arc::clone(&store);
    store.submit(
        send(1),
        Box::new(move |_, _| {
            let _ = gone.recv();
            drop(last);
            let _ = sender.send(());
        }),
    );
    store.lead();
    drop(store);
    drop(go);
    wait(&receiver);
}

#[test]
fn an_acknowledgement_that_found_the_writer_busy_is_written_after_a_checkpoint_has_looked_at_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&disk(&directory));
    let sent = submit(&store, send(1));
    store.lead();
    wait(&sent).unwrap();
    let acknowledged = {
        let _busy = lock(&store.core.committer);
        let acknowledged = submit(&store, remove(1));
        store.lead();
        acknowledged
    };
    store.core.checkpoint().unwrap();
    wait(&acknowledged).unwrap();
}
