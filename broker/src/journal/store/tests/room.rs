//! No room: sends fail by name, all else goes on with what is kept back, and room is told of.

use super::*;
use crate::files::{Fault, Operation};
use crate::journal::index::Weight;
use crate::journal::writer::Claim;

/// Sends until there is no room; the names of those that were confirmed.
fn fill(store: &Stepwise, from: u64) -> Vec<u64> {
    let mut confirmed = Vec::new();
    for stored in from..from + 5_000 {
        match store.run(send(stored)) {
            Ok(()) => confirmed.push(stored),
            Err(StoreError::Full { .. }) => return confirmed,
            Err(other) => panic!("{other}"),
        }
    }
    panic!("there is room for ever");
}

/// Acknowledges them all at once.
fn take(store: &Stepwise, messages: &[u64]) {
    let outcomes: Vec<_> = messages.iter().map(|stored| submit(&store.store, remove(*stored))).collect();
    store.store.step();
    for outcome in outcomes {
        assert_eq!(outcome.try_recv().unwrap(), Ok(()));
    }
}

#[test]
fn a_full_disk_refuses_sends_and_not_what_makes_room() {
    let longer = JournalOptions { max_file_length: 128 << 10, ..options() };
    let store = Stepwise::open(RecordedFiles::new(), longer.clone()).unwrap();
    store.store.housekeep();
    let events = watch(&store.store);
    let now: u64 = store.files.paths().iter().map(|path| store.files.contents(path).len() as u64).sum();
    store.files.limit(Some(now + 350_000));
    let confirmed = fill(&store, 1);
    let Ok(StoreEvent::Full { reason }) = events.try_recv() else { panic!("it is full") };
    assert!(reason.starts_with("data/broker/journal"), "{reason}");
    assert!(confirmed.len() > 20, "{}", confirmed.len());

    // Still full, told once, and a transaction that lacks a message cannot be committed.
    store.store.housekeep();
    store.run(vec![append_of(9_600, 10, Some(local(1)), Arrival::Sent)]).unwrap_err();
    let refused = store.run(vec![StoreOperation::Commit(local(1))]).unwrap_err();
    assert!(matches!(refused, StoreError::Full { .. }), "{refused}");
    assert!(events.try_recv().is_err());

    // The messages are taken, which makes room.
    take(&store, &confirmed);
    store.ok(vec![append_of(9_700, 10, None, Arrival::MovedIn)]);
    store.store.checkpoint().unwrap();
    store.store.housekeep();
    assert_eq!(events.try_recv(), Ok(StoreEvent::Room));
    store.run(send(9_799)).unwrap_err();
    // None that was submitted before its sender knew of the refused one overtakes that.
    store.store.take_sends();
    store.ok(send(9_800));
    let store = Stepwise::open(store.files.survive(Survival::OnlySynced), longer).unwrap();
    assert_eq!(names(&store.store.recover()), [9_700, 9_800]);
}

/// The checkpoint grows by doubling itself; a large message must not take the room that this needs.
#[test]
fn a_disk_that_large_messages_filled_has_room_for_the_checkpoint_of_the_next_start() {
    let options = || JournalOptions { max_file_length: 16 << 10, ..options() };
    let mut store = Stepwise::open(RecordedFiles::new(), options()).unwrap();
    store.files.limit(Some(1 << 20));
    let large = |stored| vec![append_of(stored, 8_000, None, Arrival::Sent)];
    let mut confirmed = Vec::new();
    for stored in 1..=1_000 {
        if stored % 16 == 1 {
            drop(store.store.checkpoint());
            store.store.housekeep();
            store.store.take_sends();
        }
        match store.run(large(stored)) {
            Ok(()) => confirmed.push(stored),
            Err(StoreError::Full { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert!(confirmed.len() > 60, "{}", confirmed.len());
    for _ in 0..3 {
        store = Stepwise::open(store.files.survive(Survival::Process), options()).unwrap();
        assert_eq!(names(&store.store.recover()), confirmed);
        take(&store, &confirmed.split_off(confirmed.len() - 10));
        store.store.checkpoint().unwrap();
    }
    take(&store, &confirmed);
    store.store.checkpoint().unwrap();
    store.store.housekeep();
    store.ok(large(2_000));
}

#[test]
fn a_start_needs_no_room_for_the_checkpoint_of_what_was_sent_since_the_last_one() {
    let store = Stepwise::new();
    for stored in 1..=3_000 {
        store.ok(send(stored));
    }
    let files = store.files.survive(Survival::Process);
    files.limit(Some(0));
    let store = Stepwise::on(files);
    assert_eq!(names(&store.store.recover()).len(), 3_000);
    assert!(store.store.core.segments.spares() >= Segments::RESERVE);
}

#[test]
fn a_start_whose_checkpoint_finds_no_room_all_the_same_says_so_by_name() {
    let store = Stepwise::new();
    store.ok(send(1));
    let files = store.files.survive(Survival::Process);
    files.fail(Fault {
        operation: Operation::Write,
        nth: 1,
        error: io::ErrorKind::StorageFull,
        lasting: true,
    });
    let Err(error) = Stepwise::open(files.clone(), options()) else { panic!("it cannot start") };
    assert!(matches!(error, OpenError::NoRoom { .. }), "{error}");
    assert!(error.to_string().contains("kr-store/state: a start needs room"), "{error}");
    let store = Stepwise::on(files.survive(Survival::Process));
    assert_eq!(names(&store.store.recover()), [1]);
}

#[test]
fn a_store_limit_is_as_a_full_disk() {
    let limited = JournalOptions { store_limit: Some(3 * 4_096), ..options() };
    let store = Stepwise::open(RecordedFiles::new(), limited).unwrap();
    let events = watch(&store.store);
    for round in 0..5 {
        let confirmed = fill(&store, 1 + round * 1_000);
        assert!((10..40).contains(&confirmed.len()), "{}", confirmed.len());
        let Ok(StoreEvent::Full { reason }) = events.try_recv() else { panic!("it is full") };
        assert!(reason.contains("the store limit is 12288"), "{reason}");
        store.store.housekeep();
        assert!(events.try_recv().is_err());
        take(&store, &confirmed);
        store.store.checkpoint().unwrap();
        store.store.housekeep();
        assert_eq!(events.try_recv(), Ok(StoreEvent::Room));
        store.store.take_sends();
    }
    // A body of its own counts, too.
    let large = vec![append_of(9_000, 20_000, None, Arrival::Sent)];
    assert!(matches!(store.run(large), Err(StoreError::Full { .. })));
}

/// A dead letter is sent again to a topic where only durable subscriptions are.
#[test]
fn what_is_moved_to_a_subscription_needs_no_more_room_than_to_a_queue_and_is_no_send_of_its_producer() {
    let limited = JournalOptions { store_limit: Some(3 * 4_096), ..options() };
    let store = Stepwise::open(RecordedFiles::new(), limited.clone()).unwrap();
    let topic = Destination::topic("prices").unwrap();
    let name = SubscriptionName { client_id: "c".into(), name: "d".into() };
    store.ok(vec![StoreOperation::CreateSubscription {
        subscription: name.clone(),
        topic: topic.clone(),
        no_local: false,
    }]);
    let confirmed = fill(&store, 1);
    let publish = |arrival| {
        let mut message = Message::clone(&message(9_000, 300));
        message.headers_mut().message_id = Some(MessageId { producer: "ID:gone".into(), sequence: 1 });
        StoreOperation::Publish {
            stored: StoredId(9_000),
            topic: topic.clone(),
            subscriptions: vec![name.clone()],
            arrival,
            message: Arc::new(message),
            transaction: None,
        }
    };
    assert!(matches!(store.run(vec![publish(Arrival::Sent)]), Err(StoreError::Full { .. })));
    let letter = confirmed[0];
    store.ok([remove(letter), vec![publish(Arrival::MovedIn)]].concat());
    let files = store.files.survive(Survival::OnlySynced);
    let recovered = Stepwise::open(files, limited).unwrap().store.recover();
    let [subscription] = &*recovered.subscriptions else { panic!("{recovered:?}") };
    assert_eq!((subscription.messages.len(), subscription.totals.enqueued), (1, 0));
    assert_eq!(names(&recovered), confirmed[1..]);
    let producers: Vec<_> = recovered.producers.iter().map(|(producer, _)| &**producer).collect();
    assert_eq!(producers, ["ID:p"]);
}

#[test]
fn who_writes_little_has_only_the_spares_that_are_kept_back() {
    let longer = JournalOptions { max_file_length: 64 << 10, ..options() };
    let store = Stepwise::open(RecordedFiles::new(), longer).unwrap();
    store.store.housekeep();
    store.ok(send(1));
    store.store.housekeep();
    let segments = &store.store.core.segments;
    assert_eq!((segments.live().len(), segments.spares()), (1, Segments::RESERVE));
    // Much more, and the next segments are ready before they are needed.
    (2..=20).for_each(|stored| store.ok(send(stored)));
    store.store.housekeep();
    assert_eq!((segments.live().len(), segments.spares()), (1, Segments::RESERVE + 2));
}

#[test]
fn sends_that_find_no_room_do_not_take_the_others_of_their_batch_with_them() {
    let store = Stepwise::new();
    store.store.housekeep();
    store.files.fill();
    store.ok(send(1));
    let mut outcomes = Vec::new();
    for stored in 2..=60 {
        outcomes.push(submit(&store.store, send(stored)));
    }
    let acknowledged = submit(&store.store, remove(1));
    store.store.step();
    let outcomes: Vec<_> = outcomes.iter().map(|outcome| outcome.try_recv().unwrap()).collect();
    // The first ones fill the segment that is there.
    let written = outcomes.iter().take_while(|outcome| outcome.is_ok()).count();
    assert!((1..20).contains(&written), "{written}");
    assert!(outcomes[written..].iter().all(|outcome| matches!(outcome, Err(StoreError::Full { .. }))));
    assert_eq!(acknowledged.try_recv().unwrap(), Ok(()));
}

#[test]
fn a_disk_that_gets_full_at_any_operation_fails_by_name_and_recovers() {
    for (operation, faults) in [(Operation::Write, 90), (Operation::SetLen, 10)] {
        for nth in 1..=faults {
            let store = Stepwise::new();
            let events = watch(&store.store);
            store.files.fail(Fault { operation, nth, error: io::ErrorKind::StorageFull, lasting: false });
            let mut confirmed = Vec::new();
            for stored in 1..=40 {
                match store.run(send(stored)) {
                    Ok(()) => confirmed.push(stored),
                    Err(StoreError::Full { .. } | StoreError::Io(_) | StoreError::Failed { .. }) => {}
                    Err(other) => panic!("{operation:?} {nth}: {other}"),
                }
                if stored % 10 == 0 {
                    let failed = store.store.checkpoint().is_err();
                    store.store.housekeep();
                    store.store.take_sends();
                    if failed && !events.try_iter().any(|event| matches!(event, StoreEvent::Failed(_))) {
                        drop(store.store.checkpoint());
                    }
                }
            }
            let store = store.crash(Survival::OnlySynced);
            assert_eq!(names(&store.store.recover()), confirmed, "{operation:?} {nth}");
        }
    }
}

#[test]
fn a_start_on_a_full_disk_gives_up_spares_for_its_checkpoint() {
    let store = Stepwise::new();
    store.store.housekeep();
    for stored in 1..=60 {
        store.ok(send(stored));
        store.store.housekeep();
    }
    let files = store.files.survive(Survival::OnlySynced);
    drop(store);
    files.fill();
    let store = Stepwise::on(files);
    assert_eq!(names(&store.store.recover()).len(), 60);
    take(&store, &(1..=60).collect::<Vec<_>>());
    store.store.checkpoint().unwrap();
    assert_eq!(store.segments(), 1);
}

#[test]
fn a_rollback_that_found_no_room_is_written_when_there_is_some_and_its_name_is_free_again() {
    for is_prepared in [false, true] {
        let store = Stepwise::new();
        store.store.housekeep();
        let transaction = || StoreTransaction::Distributed(xid());
        let sent = |stored| vec![append_of(stored, 300, Some(transaction()), Arrival::Sent)];
        store.ok(sent(1));
        if is_prepared {
            store.ok(vec![StoreOperation::Prepare(xid())]);
        }
        let sent_before = fill_up(&store.files, &store.store, 10);
        // Not all of it is there, so its commit is a rollback, for which there is no room either.
        store.run(sent(2)).unwrap_err();
        store.run(vec![StoreOperation::Commit(transaction())]).unwrap_err();
        assert!(!lock(&store.store.core.committer).is_plain());

        store.files.limit(None);
        store.store.housekeep();
        store.store.take_sends();
        store.ok(send(3));
        assert_eq!(store.load(1).unwrap_err(), StoreError::NotKept { stored: StoredId(1) });
        store.ok(sent(4));
        store.ok(vec![StoreOperation::Commit(transaction())]);
        assert!(lock(&store.store.core.committer).is_plain(), "others are not held up by it for ever");
        let recovered = store.crash(Survival::OnlySynced).store.recover();
        assert_eq!(names(&recovered), [sent_before, vec![3, 4]].concat());
        assert_eq!(recovered.prepared, []);
    }
}

#[test]
fn a_transaction_without_a_record_for_its_own_name_leaves_nothing_behind() {
    let store = Stepwise::new();
    let long = || StoreTransaction::Local(ConnectionId::foreign(&"x".repeat(2_000)), 1);
    store.run(vec![append_of(1, 10, Some(long()), Arrival::Sent)]).unwrap_err();
    store.run(vec![StoreOperation::Rollback(long())]).unwrap_err();
    assert!(lock(&store.store.core.committer).is_plain());
    store.ok(send(2));
    assert_eq!(names(&store.crash(Survival::OnlySynced).store.recover()), [2]);
}

#[test]
fn a_prepared_transaction_that_found_no_room_for_its_commit_can_still_be_committed() {
    let store = Stepwise::new();
    let transaction = StoreTransaction::Distributed(xid());
    store.ok(send(1));
    store.ok(vec![append_of(2, 10, Some(transaction.clone()), Arrival::Sent)]);
    store.ok(vec![StoreOperation::Remove {
        stored: StoredId(1),
        reason: Removal::Acknowledged,
        transaction: Some(transaction.clone()),
    }]);
    store.ok(vec![StoreOperation::Prepare(xid())]);
    // Somebody else has taken what was kept back.
    while store.store.core.segments.give_up_spare(0).unwrap() {}
    store.files.fill();
    let filled = fill(&store, 3);
    // The rest of the segment is filled with ends of transactions that never began.
    let refused = (1..100).find_map(|number| store.run(vec![StoreOperation::Commit(local(number))]).err());
    assert!(matches!(refused, Some(StoreError::Full { .. })), "{refused:?}");
    for _ in 0..2 {
        let refused = store.run(vec![StoreOperation::Commit(transaction.clone())]).unwrap_err();
        assert!(matches!(refused, StoreError::Full { .. }), "{refused}");
    }

    store.files.limit(None);
    store.store.housekeep();
    store.ok(vec![StoreOperation::Commit(transaction)]);
    let store = store.crash(Survival::OnlySynced);
    assert_eq!(names(&store.store.recover()), [filled, vec![2]].concat());
}

/// A store that somebody else has left no room, not even what was kept back; its messages are these.
fn crowded(files: &RecordedFiles, store: &JournalStore) -> Vec<u64> {
    fill_up(files, store, 1)
}

/// The same, with messages of these names.
fn fill_up(files: &RecordedFiles, store: &JournalStore, from: u64) -> Vec<u64> {
    let run = |operations| {
        let outcome = submit(store, operations);
        store.step();
        outcome.recv_timeout(HANG).expect("it does not hang")
    };
    let sent: Vec<u64> = (from..from + 20).collect();
    sent.iter().for_each(|stored| run(send(*stored)).unwrap());
    let refused = (1..1_000).find_map(|number| {
        // Each time, as the housekeeper may have made one in between.
        while store.core.segments.give_up_spare(0).unwrap() {}
        files.fill();
        run(vec![StoreOperation::Commit(local(number))]).err()
    });
    assert!(matches!(refused, Some(StoreError::Full { .. })), "{refused:?}");
    sent
}

#[test]
fn an_acknowledgement_that_finds_no_room_at_all_is_written_once_there_is_some() {
    let store = Stepwise::new();
    let sent = crowded(&store.files, &store.store);
    let outcomes: Vec<_> = sent.iter().map(|stored| submit(&store.store, remove(*stored))).collect();
    store.store.step();
    assert!(outcomes.iter().all(|outcome| outcome.try_recv().is_err()), "they wait");
    assert!(matches!(store.run(send(100)), Err(StoreError::Full { .. })));
    store.files.limit(None);
    store.store.step();
    for outcome in outcomes {
        assert_eq!(outcome.try_recv().unwrap(), Ok(()));
    }
    let store = store.crash(Survival::Process);
    assert_eq!(names(&store.store.recover()), [0; 0]);
}

#[test]
fn an_acknowledgement_that_waits_for_room_is_told_when_the_store_ends() {
    let store = Stepwise::new();
    let sent = crowded(&store.files, &store.store);
    let outcome = submit(&store.store, remove(1));
    store.store.step();
    store.store.close();
    assert!(matches!(outcome.try_recv().unwrap(), Err(StoreError::Full { .. })));
    let store = Stepwise::on(store.files.survive(Survival::OnlySynced));
    assert_eq!(names(&store.store.recover()), sent);
}

#[test]
fn an_acknowledgement_that_waits_for_room_goes_on_by_itself() {
    let files = RecordedFiles::new();
    let store = JournalStore::open(Arc::new(files.clone()), options()).unwrap();
    let outcomes: Vec<_> =
        crowded(&files, &store).into_iter().map(|stored| submit(&store, remove(stored))).collect();
    files.limit(None);
    for outcome in outcomes {
        assert_eq!(outcome.recv_timeout(HANG).expect("it does not hang"), Ok(()));
    }
    store.close();
}

#[test]
fn what_ends_messages_does_not_leave_to_sends_what_they_leave_to_others() {
    let most_sent = |after_an_end: bool| {
        let store = Stepwise::new();
        store.store.housekeep();
        store.files.fill();
        let core = &store.store.core;
        let admits =
            |others, claim| core.room.admit(core, Weight { others, ..Weight::default() }, claim).is_ok();
        assert!(!after_an_end || admits(1, Claim::Ends));
        (1..1_000).rev().map(|kib| kib << 10).find(|others| admits(*others, Claim::Sends)).unwrap_or(0)
    };
    assert_eq!(most_sent(true), most_sent(false));
}
