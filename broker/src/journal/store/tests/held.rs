//! The directory, or a part of it, is taken away under a running store. It notices before it gives anything a name there,
//! and at the next checkpoint.

use super::*;
use crate::files::{Disk, OpenMode};

/// It notices at the next checkpoint, or at the next segment, where it would give a file a name.
fn notices(store: &Stepwise, by_checkpoint: bool) {
    if by_checkpoint {
        store.store.checkpoint().unwrap_err();
    } else {
        (2..=30).find(|stored| store.run(send(*stored)).is_err()).expect("it notices");
    }
}

/// What has failed, if it has; nothing is confirmed then.
fn failure(store: &Stepwise, events: &mpsc::Receiver<StoreEvent>) -> String {
    let Ok(StoreEvent::Failed(error)) = events.try_recv() else { panic!("it has not failed") };
    assert!(matches!(store.run(send(900)), Err(StoreError::Failed { .. })));
    assert!(matches!(store.store.checkpoint(), Err(StoreError::Failed { .. })));
    error.to_string()
}

#[test]
fn a_lock_that_was_removed_is_taken_anew() {
    let store = Stepwise::new();
    let events = watch(&store.store);
    store.ok(send(1));
    store.files.remove_now(path("lock"));
    store.store.checkpoint().unwrap();
    let second = Stepwise::open(store.files.clone(), options()).map(drop);
    assert!(matches!(second, Err(OpenError::Locked { .. })), "{second:?}");

    // The same when a segment is begun.
    store.files.remove_now(path("lock"));
    let before = store.segments();
    for stored in 2..=20 {
        store.ok(send(stored));
    }
    assert!(store.segments() > before);
    let second = Stepwise::open(store.files.clone(), options()).map(drop);
    assert!(matches!(second, Err(OpenError::Locked { .. })), "{second:?}");
    assert!(events.try_recv().is_err());
    store.store.close();
    drop(store.store);
    let next = Stepwise::on(store.files);
    assert_eq!(names(&next.store.recover()), (1..=20).collect::<Vec<_>>());
}

#[test]
fn a_directory_that_another_process_took_is_left_to_it() {
    for by_checkpoint in [true, false] {
        let store = Stepwise::new();
        let events = watch(&store.store);
        store.ok(send(1));
        store.files.remove_now(path("lock"));
        let second = Stepwise::on(store.files.clone());
        notices(&store, by_checkpoint);
        let error = failure(&store, &events);
        let expected =
            "data/broker/lock was removed or replaced while it was in use: another process may be at work";
        assert!(error.contains(expected), "{error}");
        let before = store.files.operations();
        store.store.note_attempt(AttemptSlot(0), None);
        store.store.housekeep();
        store.store.close();
        drop(store.store);
        assert_eq!(store.files.operations(), before, "it changes nothing any more: {:?}", store.files.log());
        if by_checkpoint {
            second.ok(send(100));
            assert_eq!(names(&second.crash(Survival::OnlySynced).store.recover()), [1, 100]);
        }
    }
}

#[test]
fn files_that_the_next_start_needs_and_that_are_gone_end_the_store_by_name() {
    for (removed, by_checkpoint) in [
        (vec!["journal/0000000000000000.journal"], true),
        (vec!["kr-store/state"], true),
        (vec![], true),
        (vec![], false),
    ] {
        let store = Stepwise::new();
        let events = watch(&store.store);
        store.ok(send(1));
        let all = store.files.paths();
        let removed: Vec<_> = removed.into_iter().map(path).collect();
        let (removed, named) = match removed.first().cloned() {
            Some(named) => (removed, named),
            None => (all, PathBuf::from(DIRECTORY)),
        };
        removed.iter().for_each(|path| store.files.remove_now(path));
        notices(&store, by_checkpoint);
        let error = failure(&store, &events);
        let expected =
            format!("{} was removed or replaced while it was in use: the next start", named.display());
        assert!(error.contains(&expected), "{error}");
    }
}

#[test]
fn a_file_with_the_same_name_is_not_the_same_file() {
    let store = Stepwise::new();
    let events = watch(&store.store);
    store.ok(send(1));
    let state = path("kr-store/state");
    let bytes = store.files.contents(&state);
    store.files.remove_now(&state);
    store.files.open(&state, OpenMode::New).unwrap().write_all_at(&bytes, 0).unwrap();
    store.store.checkpoint().unwrap_err();
    assert!(failure(&store, &events).contains("kr-store/state was removed or replaced"));
}

#[test]
fn a_directory_that_is_removed_on_a_disk_is_noticed_by_a_store_with_nothing_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("broker");
    let options =
        JournalOptions { cleanup_interval: Duration::from_millis(20), ..JournalOptions::new(&root) };
    let store = JournalStore::open(Arc::new(Disk), options).unwrap();
    let events = watch(&store);
    // Spares are being made in it.
    let since = Instant::now();
    while std::fs::remove_dir_all(&root).is_err() && root.exists() {
        assert!(since.elapsed() < HANG, "it cannot be removed");
    }
    let event = events.recv_timeout(HANG).expect("it notices");
    let StoreEvent::Failed(error) = event else { panic!("{event:?}") };
    assert!(error.to_string().contains("broker was removed or replaced while it was in use"), "{error}");
    store.close();
    assert!(!root.exists(), "it makes nothing there");
}
