//! Writes and syncs that fail: the store is poisoned, confirms nothing more, and a restart finds all that it confirmed.

use std::collections::BTreeSet;

use super::*;
use crate::files::{Fault, Operation};

/// What a history knows of each message and transaction.
#[derive(Debug, Default)]
struct Outcome {
    /// Must be there.
    confirmed: BTreeSet<u64>,
    /// Must not be there.
    gone: BTreeSet<u64>,
    first_error: Option<StoreError>,
}

impl Outcome {
    /// A power cut may take acknowledgements outside of a transaction, and so all but one.
    fn forget_unsynced(&mut self) {
        self.gone.retain(|stored| *stored == 2);
    }
}

/// A short history with everything in it. What was confirmed stays confirmed, whatever fails.
fn history(store: &Stepwise) -> Outcome {
    let mut outcome = Outcome::default();
    let mut run = |operations, added: &[u64], removed: &[u64]| {
        match store.run(operations) {
            Ok(()) => {
                outcome.confirmed.extend(added);
                outcome.confirmed.retain(|stored| !removed.contains(stored));
                outcome.gone.extend(removed);
            }
            Err(error) => {
                // It may have been written all the same.
                outcome.confirmed.retain(|stored| !removed.contains(stored));
                outcome.first_error.get_or_insert(error);
            }
        }
    };
    for stored in 1..=12 {
        run(send(stored), &[stored], &[]);
    }
    run(remove(1), &[], &[1]);
    run(vec![append_of(20, 300, Some(local(1)), Arrival::Sent)], &[], &[]);
    run(
        vec![StoreOperation::Remove {
            stored: StoredId(2),
            reason: Removal::Acknowledged,
            transaction: Some(local(1)),
        }],
        &[],
        &[],
    );
    run(vec![StoreOperation::Commit(local(1))], &[20], &[2]);
    run(vec![append_of(30, 9_000, None, Arrival::Sent)], &[30], &[]);
    drop(store.store.checkpoint());
    store.store.housekeep();
    for stored in 40..=52 {
        run(send(stored), &[stored], &[]);
    }
    run(remove(30), &[], &[30]);
    store.store.step();
    drop(store.store.checkpoint());
    outcome
}

fn check(store: &Stepwise, outcome: &Outcome, what: &str) {
    let names: BTreeSet<_> = names(&store.store.recover()).into_iter().collect();
    assert!(
        names.is_superset(&outcome.confirmed),
        "{what}: {names:?}, and confirmed were {:?}",
        outcome.confirmed
    );
    let back: Vec<_> = names.intersection(&outcome.gone).collect();
    assert!(back.is_empty(), "{what}: {back:?} came back");
    for stored in &names {
        let expected = message(*stored, if *stored == 30 { 9_000 } else { 300 });
        assert_eq!(*store.load(*stored).unwrap(), *expected, "{what}");
    }
    store.ok(vec![append_of(99, 300, None, Arrival::Sent)]);
}

#[test]
fn each_write_and_sync_that_fails_once_poisons_the_store_and_a_restart_is_clean() {
    for operation in [Operation::Write, Operation::SyncData] {
        let (mut failures, mut last, mut nth) = (0, 0, 0);
        // A fault that hits a spare being made is no failure; many in a row without one are beyond the history.
        while nth < last + 20 {
            nth += 1;
            let store = Stepwise::new();
            let events = watch(&store.store);
            store.files.fail(Fault { operation, nth, error: io::ErrorKind::Other, lasting: false });
            let mut outcome = history(&store);
            let events: Vec<_> = events.try_iter().collect();
            let what = format!("{operation:?} {nth}");
            if let Some(StoreEvent::Failed(error)) = events.first() {
                failures += 1;
                last = nth;
                assert!(
                    matches!(error, StoreError::Io(text) if text.starts_with("data/broker/")),
                    "{what}: {error}"
                );
                assert_eq!(events.len(), 1, "{what}: {events:?}");
                let told = outcome.first_error.take();
                assert!(
                    matches!(told, None | Some(StoreError::Failed { .. })),
                    "{what}: {told:?}, though it may have been written"
                );
                let later = store.run(send(98)).unwrap_err();
                assert!(matches!(later, StoreError::Failed { .. }), "{what}: {later}");
                assert!(store.store.checkpoint().is_err(), "{what}");
            } else {
                assert!(outcome.first_error.is_none(), "{what}: {:?} without an event", outcome.first_error);
            }
            // Ending it in order neither hangs nor confirms anything.
            if nth % 2 == 0 {
                store.store.close();
            }
            outcome.forget_unsynced();
            check(&store.crash(Survival::PowerCut { seed: nth }), &outcome, &what);
        }
        assert!(failures > 20, "{operation:?}: {failures} failures");
    }
}

#[test]
fn what_a_failed_sync_left_in_memory_is_made_durable_by_the_next_start() {
    let mut failures = 0;
    for nth in 1.. {
        let store = Stepwise::new();
        let events = watch(&store.store);
        store.files.fail(Fault {
            operation: Operation::SyncData,
            nth,
            error: io::ErrorKind::Other,
            lasting: false,
        });
        let outcome = history(&store);
        if events.try_recv().is_ok() {
            failures += 1;
        } else if nth > 200 {
            break;
        }
        // The next process reads what the failed sync did not write, as the system still has it; the one after a
        // power cut finds what is on the disk.
        let next = store.crash(Survival::Process);
        next.ok(send(97));
        check(&next.crash(Survival::OnlySynced), &outcome, &format!("sync {nth}"));
    }
    assert!(failures > 20, "{failures} failures");
}

#[test]
fn a_crash_at_any_operation_leaves_every_confirmed_message_and_nothing_settled() {
    let operations = {
        let store = Stepwise::new();
        let before = store.files.operations();
        history(&store);
        store.files.operations() - before
    };
    assert!(operations > 100, "{operations}");
    for operation in 1..=operations {
        // Each end in turn; the random histories have them all at every moment.
        let ends = [Survival::Process, Survival::PowerCut { seed: operation * 31 }, Survival::OnlySynced];
        let how = ends[(operation % 3) as usize];
        let store = Stepwise::new();
        store.files.crash_at(store.files.operations() + operation, operation);
        let mut outcome = history(&store);
        if how != Survival::Process {
            outcome.forget_unsynced();
        }
        check(&store.crash(how), &outcome, &format!("operation {operation}, {how:?}"));
    }
}

#[test]
fn an_open_that_fails_at_any_operation_loses_nothing() {
    for operation in 1.. {
        let store = Stepwise::new();
        let outcome = history(&store);
        let files = store.files.survive(Survival::Process);
        drop(store);
        files.crash_at(operation, operation);
        let opened = Stepwise::open(files.clone(), options());
        let is_over = opened.is_ok();
        drop(opened);
        let store = Stepwise::on(files.survive(Survival::PowerCut { seed: operation }));
        check(&store, &outcome, &format!("operation {operation}"));
        if is_over {
            break;
        }
    }
}
