//! What a restart brings back, in whichever way the process ended.

use std::sync::Mutex;

use corriere_core::Timestamp;

use super::*;
use crate::store::{RecoveredMessage, Totals};

const ENDS: [Survival; 2] = [Survival::Process, Survival::OnlySynced];

#[test]
fn a_new_directory_is_empty_and_stays_so() {
    let mut store = Stepwise::new();
    for _ in 0..3 {
        let recovered = store.store.recover();
        assert!(recovered.queues.is_empty() && recovered.producers.is_empty());
        assert_eq!(recovered.last_id, StoredId(0));
        store = store.restart().crash(Survival::OnlySynced);
    }
}

#[test]
fn every_operation_is_there_after_every_kind_of_end() {
    let state = DeliveryState {
        failed_deliveries: 2,
        not_before: Some(Timestamp(50)),
        since: Timestamp(40),
        conversion_failed: true,
    };
    let run = || {
        let store = Stepwise::new();
        for stored in 1..=6 {
            store.ok(send(stored));
        }
        store.ok(remove(2));
        store.ok(vec![StoreOperation::DeliveryState { stored: StoredId(3), state }]);
        // A dead letter: it leaves one queue and enters another at once.
        store.ok(vec![
            StoreOperation::Append {
                stored: StoredId(7),
                queue: queue("DLQ.orders"),
                arrival: Arrival::MovedIn,
                message: message(4, 10),
                transaction: None,
            },
            StoreOperation::Remove { stored: StoredId(4), reason: Removal::DeadLettered, transaction: None },
        ]);
        store.ok(vec![append_of(8, 20, Some(local(1)), Arrival::Sent)]);
        store.ok(vec![StoreOperation::Remove {
            stored: StoredId(5),
            reason: Removal::Acknowledged,
            transaction: Some(local(1)),
        }]);
        store.ok(vec![append_of(9, 20, Some(local(2)), Arrival::Sent)]);
        store.ok(vec![StoreOperation::Rollback(local(2))]);
        store.ok(vec![StoreOperation::Commit(local(1))]);
        store
    };
    let check = |recovered: &Recovered| {
        assert_eq!(names(recovered), [7, 1, 3, 6, 8]);
        assert_eq!(recovered.queues[0].destination, queue("DLQ.orders"));
        assert_eq!(recovered.queues[0].totals, Totals::default());
        let totals = Totals { enqueued: 7, acknowledged: 2, dead_lettered: 1 };
        assert_eq!(recovered.queues[1].totals, totals);
        let third = RecoveredMessage {
            stored: StoredId(3),
            priority: message(3, 300).headers().priority,
            expiration: None,
            size: message(3, 300).size() as u64,
            state,
        };
        assert_eq!(recovered.queues[1].messages[1], third);
        assert_eq!(recovered.producers, [("ID:p".into(), 8)]);
        assert_eq!(recovered.last_id, StoredId(9));
    };
    for how in ENDS {
        let store = run().crash(how);
        check(&store.store.recover());
        for again in [Stepwise::restart as fn(_) -> _, |store: Stepwise| store.crash(Survival::OnlySynced)] {
            let store = again(run().crash(how));
            check(&store.store.recover());
            assert_eq!(*store.load(3).unwrap(), *message(3, 300));
        }
    }
    check(&run().restart().store.recover());
    check(&run().restart().restart().store.recover());
}

#[test]
fn totals_and_order_are_exact_however_checkpoints_and_ends_are_mixed() {
    let mut store = Stepwise::new();
    let (mut expected, mut totals) = (Vec::new(), Totals::default());
    for round in 0_u64..60 {
        for stored in round * 3 + 1..=round * 3 + 3 {
            store.ok(send(stored));
            totals.enqueued += 1;
            expected.push(stored);
        }
        let taken = expected.remove((round as usize * 7) % expected.len());
        store.ok(remove(taken));
        totals.acknowledged += 1;
        if round % 3 == 0 {
            store.store.checkpoint().unwrap();
        }
        store.store.housekeep();
        store = match round % 5 {
            0 => store.restart(),
            1 => store.crash(Survival::Process),
            // The acknowledgement was not synced, and a power cut may take it.
            2 => {
                store.store.step();
                store.crash(Survival::PowerCut { seed: round })
            }
            _ => continue,
        };
        let recovered = store.store.recover();
        assert_eq!(names(&recovered), expected, "round {round}");
        assert_eq!(recovered.queues[0].totals, totals, "round {round}");
    }
}

#[test]
fn an_acknowledgement_survives_the_end_of_the_process_at_once_and_a_power_cut_after_its_sync() {
    let run = |also_sync: bool| {
        let store = Stepwise::new();
        store.ok(send(1));
        store.ok(remove(1));
        if also_sync {
            store.store.step();
        }
        store
    };
    assert!(names(&run(false).crash(Survival::Process).store.recover()).is_empty());
    assert_eq!(names(&run(false).crash(Survival::OnlySynced).store.recover()), [1]);
    assert!(names(&run(true).crash(Survival::OnlySynced).store.recover()).is_empty());

    let synced = JournalOptions { ack_sync: true, ..options() };
    let store = Stepwise::open(RecordedFiles::new(), synced).unwrap();
    store.ok(send(1));
    store.ok(remove(1));
    assert!(names(&store.crash(Survival::OnlySynced).store.recover()).is_empty());
}

#[test]
fn without_sync_on_write_a_send_survives_the_end_of_the_process() {
    let unsynced = JournalOptions { sync_on_write: false, ack_sync: true, ..options() };
    let run = || {
        let store = Stepwise::open(RecordedFiles::new(), unsynced.clone()).unwrap();
        store.ok(send(1));
        store
    };
    assert_eq!(names(&run().crash(Survival::Process).store.recover()), [1]);
    assert!(names(&run().crash(Survival::OnlySynced).store.recover()).is_empty());
    let store = run();
    store.store.step();
    assert_eq!(names(&store.crash(Survival::OnlySynced).store.recover()), [1]);
}

#[test]
fn what_a_killed_process_left_unsynced_is_durable_once_it_was_recovered() {
    let store =
        Stepwise::open(RecordedFiles::new(), JournalOptions { sync_on_write: false, ..options() }).unwrap();
    for stored in 1..=30 {
        store.ok(send(stored));
    }
    let store = store.crash(Survival::Process).crash(Survival::OnlySynced);
    assert_eq!(names(&store.store.recover()), (1..=30).collect::<Vec<_>>());
    for stored in 1..=30 {
        assert_eq!(*store.load(stored).unwrap(), *message(stored, 300));
    }
}

#[test]
fn a_message_in_the_hands_of_the_application_is_counted_when_the_process_dies() {
    let store = Stepwise::new();
    for stored in 1..=3 {
        store.ok(send(stored));
    }
    let attempt = |stored, delivery| Some(Attempt { stored: StoredId(stored), delivery });
    store.store.note_attempt(AttemptSlot(0), attempt(1, 1));
    store.store.note_attempt(AttemptSlot(5), attempt(2, 4));
    store.store.note_attempt(AttemptSlot(7), attempt(3, 1));
    store.store.note_attempt(AttemptSlot(7), None);
    store.store.note_attempt(AttemptSlot(8), attempt(99, 1));
    let counts = |recovered: &Recovered| {
        let messages = recovered.queues[0].messages.iter();
        messages.map(|message| message.state.failed_deliveries).collect::<Vec<_>>()
    };
    let store = store.crash(Survival::Process);
    assert_eq!(counts(&store.store.recover()), [1, 4, 0]);
    // It was counted once and for all.
    let store = store.crash(Survival::OnlySynced);
    assert_eq!(counts(&store.store.recover()), [1, 4, 0]);
}

#[test]
fn many_producers_leave_the_last_of_them() {
    let mut store =
        Stepwise::open(RecordedFiles::new(), JournalOptions { max_file_length: 1 << 20, ..options() })
            .unwrap();
    for stored in 1..=1_100 {
        let mut message = Message::text("x");
        message.headers_mut().message_id =
            Some(MessageId { producer: format!("ID:{stored}").into(), sequence: 5 });
        drop(submit(
            &store.store,
            vec![StoreOperation::Append {
                stored: StoredId(stored),
                queue: queue("orders"),
                arrival: Arrival::Sent,
                message: Arc::new(message),
                transaction: None,
            }],
        ));
    }
    store.store.step();
    for _ in 0..2 {
        store = store.restart();
        let producers = store.store.recover().producers;
        assert_eq!(producers.len(), 1_024);
        assert_eq!((&*producers[0].0, producers[0].1), ("ID:77", 5));
    }
}

#[test]
fn a_segment_with_a_live_message_stays_and_those_without_one_are_used_again() {
    let mut store = Stepwise::new();
    store.ok(send(1));
    for stored in 2..=100 {
        store.ok(send(stored));
        store.ok(remove(stored));
        if stored % 10 == 0 {
            store.store.checkpoint().unwrap();
            // The first one, the last one, and those since the last checkpoint.
            assert!(store.segments() <= 3, "{} segments after message {stored}", store.segments());
            store.store.housekeep();
        }
        if stored % 25 == 0 {
            store = store.crash(Survival::Process);
            assert_eq!(names(&store.store.recover()), [1]);
            assert_eq!(*store.load(1).unwrap(), *message(1, 300));
        }
    }
    assert_eq!(store.load(50).unwrap_err(), StoreError::NotKept { stored: StoredId(50) });
}

#[test]
fn what_is_asked_of_a_closed_store_is_not_said_to_be_gone() {
    let store = Stepwise::new();
    store.ok(send(1));
    store.store.close();
    assert_eq!(store.load(1).unwrap_err(), StoreError::Closed);
    assert_eq!(store.run(send(2)).unwrap_err(), StoreError::Closed);
    let store = store.restart();
    assert_eq!(*store.load(1).unwrap(), *message(1, 300));
}

#[test]
fn a_segment_is_not_given_up_before_the_checkpoint_that_allows_it_is_durable() {
    for operation in 1..60 {
        let store = Stepwise::new();
        for stored in 1..=30 {
            store.ok(send(stored));
        }
        store.store.checkpoint().unwrap();
        for stored in 1..=25 {
            store.ok(remove(stored));
        }
        store.store.step();
        store.files.crash_at(store.files.operations() + operation, operation);
        let ended = store.store.checkpoint().is_err();
        let store = store.crash(Survival::PowerCut { seed: operation });
        assert_eq!(names(&store.store.recover()), [26, 27, 28, 29, 30], "operation {operation}");
        for stored in 26..=30 {
            assert_eq!(*store.load(stored).unwrap(), *message(stored, 300));
        }
        if !ended && operation > 40 {
            return;
        }
    }
}

#[test]
fn archived_segments_are_moved_and_not_used_again() {
    let archive = path("archive");
    let options = JournalOptions { archive: Some(archive.clone()), ..options() };
    let store = Stepwise::open(RecordedFiles::new(), options).unwrap();
    for stored in 1..=30 {
        store.ok(send(stored));
        store.ok(remove(stored));
    }
    store.store.checkpoint().unwrap();
    assert_eq!(store.segments(), 1);
    let archived = store.files.paths().into_iter().filter(|path| path.starts_with(&archive)).count();
    assert!(archived >= 3, "{archived}");
}

#[test]
fn large_messages_have_files_of_their_own_until_they_are_gone() {
    let large = |files: &RecordedFiles| {
        files.paths().iter().filter(|path| path.extension().is_some_and(|kind| kind == "large")).count()
    };
    let mut store = Stepwise::new();
    for stored in 1..=3 {
        store.ok(vec![append_of(stored, 50_000, None, Arrival::Sent)]);
    }
    store.ok(vec![append_of(4, 50_000, Some(local(1)), Arrival::Sent)]);
    assert_eq!(large(&store.files), 4);
    store.ok(remove(2));
    store.store.checkpoint().unwrap();
    assert_eq!(large(&store.files), 3);
    // The transaction is over with its process.
    store = store.crash(Survival::OnlySynced);
    assert_eq!(large(&store.files), 2);
    assert_eq!(names(&store.store.recover()), [1, 3]);
    for stored in [1, 3] {
        assert_eq!(*store.load(stored).unwrap(), *message(stored, 50_000));
    }

    store.store.close();
    let files = store.files.survive(Survival::OnlySynced);
    files.remove_now(path("journal/0000000000000003.large"));
    let refused = Stepwise::open(files, options()).err().expect("a body is missing").to_string();
    assert!(refused.starts_with("data/broker/journal/0000000000000003.large: it is missing"), "{refused}");
    assert!(refused.contains("`corriere-store repair data/broker INTO`"), "{refused}");
}

#[test]
fn a_missing_segment_that_a_live_message_needs_is_named() {
    let store = Stepwise::new();
    for stored in 1..=40 {
        store.ok(send(stored));
    }
    store.store.close();
    let files = store.files.survive(Survival::OnlySynced);
    files.remove_now(path("journal/0000000000001000.journal"));
    let journal = || {
        files.paths().into_iter().filter(|path| path.starts_with(self::path("journal"))).collect::<Vec<_>>()
    };
    let before = journal();
    let refused = Stepwise::open(files.clone(), options()).err().expect("a segment is missing");
    assert!(matches!(refused, OpenError::Missing { .. }), "{refused}");
    let refused = refused.to_string();
    assert!(refused.starts_with("data/broker/journal/0000000000001000.journal: it is missing"), "{refused}");
    assert_eq!(journal(), before);
}

#[test]
fn a_journal_without_its_checkpoint_is_refused_naming_it_and_the_repair() {
    for cut in [None, Some(0), Some(5_000)] {
        let store = Stepwise::new();
        store.ok(send(1));
        store.store.close();
        let files = store.files.survive(Survival::OnlySynced);
        let checkpoint = path("kr-store/state");
        match cut {
            None => files.remove_now(&checkpoint),
            Some(length) => files.truncate(&checkpoint, length),
        }
        let before = files.contents(path("journal/0000000000000000.journal"));
        let refused = Stepwise::open(files.clone(), options()).err().expect("the checkpoint is gone");
        assert!(matches!(refused, OpenError::Missing { .. }), "{refused}");
        let refused = refused.to_string();
        assert!(refused.starts_with("data/broker/kr-store/state: the checkpoint"), "{refused}");
        assert!(refused.contains("`corriere-store repair data/broker INTO`"), "{refused}");
        assert_eq!(files.contents(path("journal/0000000000000000.journal")), before);
    }
}

#[test]
fn a_directory_that_was_never_finished_is_made_anew() {
    for operation in 1..40 {
        let files = RecordedFiles::new();
        files.crash_at(operation, operation);
        let opened = Stepwise::open(files.clone(), options());
        let done = opened.is_ok();
        let survivors = files.survive(Survival::PowerCut { seed: operation });
        drop(opened);
        let store = Stepwise::on(survivors);
        store.ok(send(1));
        assert_eq!(names(&store.crash(Survival::OnlySynced).store.recover()), [1], "operation {operation}");
        if done {
            return;
        }
    }
    panic!("a directory takes less than 40 operations");
}

#[test]
fn segments_of_another_length_are_read_when_the_length_was_changed() {
    let mut store = Stepwise::new();
    let mut expected = Vec::new();
    for (round, length) in [4_096, 16_384, 8_192, 4_096].into_iter().enumerate() {
        for stored in round as u64 * 40 + 1..=round as u64 * 40 + 40 {
            store.ok(send(stored));
            expected.push(stored);
        }
        for gone in expected.drain(..10) {
            store.ok(remove(gone));
        }
        store.store.step();
        let files = store.files.survive(Survival::OnlySynced);
        store = Stepwise::open(files, JournalOptions { max_file_length: length, ..options() }).unwrap();
        assert_eq!(names(&store.store.recover()), expected);
        for stored in &expected {
            assert_eq!(*store.load(*stored).unwrap(), *message(*stored, 300));
        }
    }
}

#[test]
fn a_second_store_is_refused_with_the_holder_until_the_first_one_ends() {
    let store = Stepwise::new();
    let refused = Stepwise::open(store.files.clone(), options()).err().expect("it is in use");
    let OpenError::Locked { holder, .. } = &refused else { panic!("{refused}") };
    assert!(holder.contains(&format!("process {}", std::process::id())), "{holder}");
    assert!(refused.to_string().starts_with("data/broker is in use: it is held by process "), "{refused}");
    drop(store.store);
    drop(Stepwise::on(store.files));
}

#[test]
fn completions_come_in_order_and_after_the_end_everything_is_refused() {
    let store = Stepwise::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    for stored in 1..=50 {
        let seen = Arc::clone(&seen);
        store
            .store
            .submit(send(stored), Box::new(move |outcome, _| seen.lock().unwrap().push((stored, outcome))));
    }
    assert_eq!(seen.lock().unwrap().len(), 0);
    store.store.close();
    assert_eq!(*seen.lock().unwrap(), (1..=50).map(|stored| (stored, Ok(()))).collect::<Vec<_>>());
    store.store.close();
    let refused = submit(&store.store, send(51)).try_recv().unwrap();
    assert_eq!(refused, Err(StoreError::Closed));
    let store = Stepwise::on(store.files.survive(Survival::OnlySynced));
    assert_eq!(names(&store.store.recover()).len(), 50);
}

#[test]
fn a_dropped_store_tells_all_who_wait_and_writes_nothing() {
    let store = Stepwise::new();
    let outcome = submit(&store.store, send(1));
    let before = store.files.operations();
    drop(store.store);
    assert_eq!(store.files.operations(), before);
    assert_eq!(outcome.try_recv(), Ok(Err(StoreError::Closed)));
}

#[test]
fn damage_of_a_message_is_found_when_it_is_read_and_named_by_its_place() {
    let store = Stepwise::new();
    store.ok(send(1));
    store.ok(send(2));
    store.files.flip(path("journal/0000000000000000.journal"), 300, 1);
    let damaged = store.load(1).unwrap_err();
    let StoreError::Damaged { place, .. } = &damaged else { panic!("{damaged}") };
    assert!(place.starts_with("data/broker/journal/0000000000000000.journal, offset "), "{place}");
    assert_eq!(*store.load(2).unwrap(), *message(2, 300));
}
