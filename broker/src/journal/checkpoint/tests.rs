use std::sync::atomic::Ordering;

use bytes::Bytes;
use corriere_core::id::Xid;
use corriere_core::message::Priority;
use corriere_core::{ConnectionId, Destination, Timestamp};

use super::tables::{META, SUBSCRIPTIONS};
use super::*;
use crate::files::{Fault, Operation as FileOperation, RecordedFiles, Survival};
use crate::journal::change::{Appended, Change, Entry, LargeFile, Recipients};
use crate::journal::index::Index;
use crate::store::{
    Arrival, DeliveryState, Recovered, Removal, StoreTransaction, StoredId, SubscriptionName,
};

const PATH: &str = "broker/kr-store/state";

fn shared(files: &RecordedFiles) -> Arc<dyn FileSystem> {
    Arc::new(files.clone())
}

fn create(files: &RecordedFiles) -> Checkpoint {
    files.create_directory(Path::new("broker/kr-store")).unwrap();
    Checkpoint::create(&shared(files), Path::new(PATH), &Arc::default()).unwrap()
}

fn open(files: &RecordedFiles) -> Result<(Checkpoint, Saved, Place), CheckpointError> {
    Checkpoint::open(&shared(files), Path::new(PATH), &Arc::default())
}

fn place(epoch: u64, tail: u64) -> Place {
    Place { epoch, tail: Lsn(tail), durable: Lsn(tail) }
}

fn local() -> StoreTransaction {
    StoreTransaction::Local(ConnectionId::foreign("ID:c"), 3)
}

fn xid() -> Xid {
    Xid { format: -1, global: Bytes::from_static(b"global"), branch: Bytes::from_static(b"branch") }
}

fn append(stored: u64, transaction: Option<StoreTransaction>) -> Change {
    Change::Append(Appended {
        stored: StoredId(stored),
        to: Recipients::Queue(Destination::queue("orders").unwrap()),
        arrival: if stored == 3 { Arrival::MovedIn } else { Arrival::Sent },
        priority: Priority::new(9).unwrap(),
        expiration: (stored == 2).then_some(Timestamp(77)),
        size: 1_000 + stored,
        producer: (stored != 2).then(|| ("ID:p".into(), stored)),
        transaction,
        large: (stored == 1).then_some(LargeFile { name: StoredId(stored), length: 5_000 }),
    })
}

fn subscription(name: &str) -> SubscriptionName {
    SubscriptionName { client_id: "client".into(), name: name.into() }
}

fn create_subscription(name: &str) -> Change {
    let (subscription, topic) = (subscription(name), Destination::topic("prices").unwrap());
    Change::CreateSubscription { subscription, topic, no_local: name == "b" }
}

fn publish(stored: u64, to: &[&str], transaction: Option<StoreTransaction>) -> Change {
    let Change::Append(appended) = append(1, transaction) else { unreachable!() };
    let names = to.iter().map(|name| subscription(name)).collect();
    let to = Recipients::Subscriptions(Destination::topic("prices").unwrap(), names);
    let (stored, large) = (StoredId(stored), Some(LargeFile { name: StoredId(stored), length: 7 }));
    Change::Append(Appended { stored, to, large, ..appended })
}

fn remove(stored: u64, reason: Removal, transaction: Option<StoreTransaction>) -> Change {
    Change::Remove { stored: StoredId(stored), reason, transaction }
}

/// A checkpoint with one message, up to 100.
fn of_one_message(files: &RecordedFiles) -> (Checkpoint, Index) {
    let mut checkpoint = create(files);
    let mut index = Index::default();
    index.apply(Entry { lsn: Lsn(0), length: 100, change: append(1, None) });
    checkpoint.write(index.take_changes(), place(1, 100)).unwrap();
    (checkpoint, index)
}

/// One of everything, with a checkpoint after each record.
fn history() -> Vec<Change> {
    let distributed = || Some(StoreTransaction::Distributed(xid()));
    let state = DeliveryState {
        failed_deliveries: 4,
        not_before: Some(Timestamp(99)),
        since: Timestamp(98),
        conversion_failed: true,
    };
    vec![
        append(1, None),
        append(2, None),
        create_subscription("a"),
        create_subscription("b"),
        publish(20, &["a", "b"], None),
        publish(22, &["b", "a"], Some(local())),
        Change::RemoveSubscription(subscription("a")),
        append(3, Some(local())),
        remove(1, Removal::DeadLettered, Some(local())),
        append(4, distributed()),
        Change::DeliveryState { stored: StoredId(2), state },
        remove(2, Removal::Acknowledged, distributed()),
        Change::Prepare(xid()),
        Change::Commit(local()),
        append(5, None),
        remove(5, Removal::Expired, None),
        append(6, distributed()),
    ]
}

fn text(recovered: &Recovered) -> String {
    format!("{recovered:?}")
}

#[test]
fn what_was_written_bit_by_bit_comes_back_whole() {
    let files = RecordedFiles::new();
    drop(create(&files));
    let mut index = Index::default();
    let mut files = files.survive(Survival::OnlySynced);
    for (number, change) in (1..).zip(history()) {
        index.apply(Entry { lsn: Lsn(number * 100), length: 100, change });
        let (mut checkpoint, _, _) = open(&files).unwrap();
        checkpoint.write(index.take_changes(), place(number, number * 100 + 100)).unwrap();

        files = files.survive(Survival::OnlySynced);
        let (_, saved, found) = open(&files).unwrap();
        assert_eq!(found, place(number, number * 100 + 100));
        let restored = Index::restore(saved, []);
        assert_eq!(text(&restored.recovered()), text(&index.recovered()), "after record {number}");
        for (stored, reference) in index.live() {
            assert_eq!(restored.find(stored), Some(reference));
        }
        assert_eq!(restored.live().count(), index.live().count());
        assert_eq!(restored.weight(), index.weight(), "after record {number}");
        files = files.survive(Survival::OnlySynced);
    }
}

#[test]
fn a_power_cut_at_any_operation_leaves_the_old_state_or_the_new_one() {
    for operation in 1.. {
        let files = RecordedFiles::new();
        let (mut checkpoint, mut index) = of_one_message(&files);
        index.apply(Entry { lsn: Lsn(100), length: 100, change: append(2, None) });

        let seed = operation * 7_919;
        files.crash_at(files.operations() + operation, seed);
        let written = checkpoint.write(index.take_changes(), place(1, 200));
        let survivors = files.survive(Survival::PowerCut { seed });
        let (_, saved, found) =
            open(&survivors).unwrap_or_else(|error| panic!("operation {operation}: {error}"));
        assert_eq!(saved.references.len() as u64, found.tail.0 / 100, "operation {operation}");
        if written.is_ok() {
            assert_eq!(found.tail, Lsn(200));
            break;
        }
    }
}

#[test]
fn after_a_failed_write_the_changes_are_in_the_next_one() {
    for kind in [FileOperation::Write, FileOperation::SyncData] {
        let files = RecordedFiles::new();
        let mut checkpoint = create(&files);
        let mut index = Index::default();
        index.apply(Entry { lsn: Lsn(0), length: 100, change: append(1, None) });
        files.fail(Fault { operation: kind, nth: 1, error: io::ErrorKind::StorageFull, lasting: false });
        let failed = checkpoint.write(index.take_changes(), place(1, 100)).unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::StorageFull, "{kind:?}");

        index.apply(Entry { lsn: Lsn(100), length: 100, change: append(2, None) });
        checkpoint.write(index.take_changes(), place(1, 200)).unwrap();
        let (_, saved, _) = open(&files.survive(Survival::OnlySynced)).unwrap();
        assert_eq!(saved.references.len(), 2, "{kind:?}");
    }
}

#[test]
fn what_is_written_again_is_as_true_as_it_was_to_be_and_nothing_is_forgotten_where_there_is_none() {
    let files = RecordedFiles::new();
    let mut checkpoint = create(&files);
    let mut index = Index::default();
    index.apply(Entry { lsn: Lsn(0), length: 100, change: append(7, None) });
    files.fail(Fault {
        operation: FileOperation::Write,
        nth: 1,
        error: io::ErrorKind::StorageFull,
        lasting: false,
    });
    checkpoint.write(index.take_changes(), place(3, 100)).unwrap_err();
    checkpoint.write_again().unwrap();
    // Nothing is left to write.
    checkpoint.write_again().unwrap();
    let (_, saved, found) = open(&files.survive(Survival::OnlySynced)).unwrap();
    assert_eq!((found, saved.references.len()), (place(3, 100), 1));
    assert_eq!((saved.counters.last_id, saved.counters.position), (StoredId(7), 1));
}

#[test]
fn one_of_the_first_version_which_knew_no_subscriptions_is_read_and_goes_on() {
    let files = RecordedFiles::new();
    let (checkpoint, index) = of_one_message(&files);
    let transaction = checkpoint.database.as_ref().unwrap().begin_write().unwrap();
    {
        let mut meta = transaction.open_table(META).unwrap();
        meta.insert("version", 1).unwrap();
        meta.remove("queues").unwrap();
    }
    transaction.delete_table(SUBSCRIPTIONS).unwrap();
    transaction.commit().unwrap();
    drop(checkpoint);
    let (mut checkpoint, saved, _) = open(&files).unwrap();
    let mut restored = Index::restore(saved, []);
    assert_eq!(text(&restored.recovered()), text(&index.recovered()));
    for (number, change) in (2..).zip([create_subscription("a"), publish(20, &["a"], None)]) {
        restored.apply(Entry { lsn: Lsn(number * 100), length: 100, change });
    }
    checkpoint.write(restored.take_changes(), place(2, 400)).unwrap();
    drop(checkpoint);
    let (_, saved, _) = open(&files).unwrap();
    let again = Index::restore(saved, []);
    assert_eq!(text(&again.recovered()), text(&restored.recovered()));
    assert_eq!(again.recovered().subscriptions[0].messages.len(), 1);
}

#[test]
fn one_of_a_newer_version_is_refused_by_its_number() {
    let files = RecordedFiles::new();
    let checkpoint = create(&files);
    let transaction = checkpoint.database.as_ref().unwrap().begin_write().unwrap();
    transaction.open_table(META).unwrap().insert("version", VERSION + 1).unwrap();
    transaction.commit().unwrap();
    drop(checkpoint);
    let refused = open(&files).unwrap_err();
    assert!(matches!(refused, CheckpointError::Newer { found } if found == VERSION + 1), "{refused}");
    assert_eq!(
        refused.to_string(),
        "it was written by a newer version (checkpoint format 3, this one knows 2)"
    );
}

#[test]
fn one_that_is_gone_empty_cut_or_full_of_something_else_is_told_from_a_failing_disk() {
    let files = RecordedFiles::new();
    files.create_directory(Path::new("broker/kr-store")).unwrap();
    assert!(matches!(open(&files).unwrap_err(), CheckpointError::Missing));
    drop(create(&files));
    let length = files.contents(PATH).len() as u64;

    for cut in [0, 1, 100, 4_096, length / 2, length - 1] {
        let cut_off = files.survive(Survival::Process);
        cut_off.truncate(PATH, cut);
        let refused = open(&cut_off).unwrap_err();
        assert!(matches!(refused, CheckpointError::Unreadable(_)), "cut at {cut}: {refused}");
    }

    let files = files.survive(Survival::Process);
    files.fail(Fault { operation: FileOperation::Read, nth: 1, error: io::ErrorKind::Other, lasting: true });
    assert!(matches!(open(&files).unwrap_err(), CheckpointError::Io(_)));
}

#[test]
fn a_process_that_ended_without_closing_it_writes_nothing_more() {
    let files = RecordedFiles::new();
    files.create_directory(Path::new("broker/kr-store")).unwrap();
    let crashed = Arc::new(AtomicBool::new(false));
    let checkpoint = Checkpoint::create(&shared(&files), Path::new(PATH), &crashed).unwrap();
    crashed.store(true, Ordering::Release);
    let before = files.operations();
    drop(checkpoint);
    assert_eq!(files.operations(), before);
    assert!(open(&files).is_ok());
}

#[test]
fn it_grows_into_what_is_kept_back_for_it_on_a_full_disk() {
    let files = RecordedFiles::new();
    let mut checkpoint = create(&files);
    checkpoint.extent().reserve(1 << 20).unwrap();
    files.limit(Some(0));
    let mut index = Index::default();
    let state = DeliveryState {
        failed_deliveries: 1,
        not_before: Some(Timestamp(9)),
        since: Timestamp(8),
        conversion_failed: false,
    };
    (1..=3_000)
        .for_each(|stored| index.apply(Entry { lsn: Lsn(stored), length: 1, change: append(stored, None) }));
    let mut write = |index: &mut Index, tail| {
        let written = checkpoint.write(index.take_changes(), place(1, tail));
        // Redb doubles its file, for which there is no room; when it opens it anew it finds that it is longer.
        written.or_else(|_| checkpoint.write_again()).unwrap();
        checkpoint.measure().unwrap()
    };
    let pages = write(&mut index, 100);
    assert!(pages <= index.weight().references * 9 / 8, "{pages}, {:?}", index.weight());
    for stored in 1..=3_000 {
        let change = Change::DeliveryState { stored: StoredId(stored), state };
        index.apply(Entry { lsn: Lsn(stored), length: 1, change });
    }
    assert_eq!(write(&mut index, 200), pages, "a state makes no row longer");
    (1..=3_000).for_each(|stored| {
        let change = remove(stored, Removal::Acknowledged, None);
        index.apply(Entry { lsn: Lsn(stored), length: 1, change });
    });
    write(&mut index, 300);
    checkpoint.compact().unwrap();
    checkpoint.extent().trim(0).unwrap();
    assert!(checkpoint.extent().whole() < 256 << 10, "{}", checkpoint.extent().whole());
    let (_, saved, found) = open(&files.survive(Survival::OnlySynced)).unwrap();
    assert_eq!((saved.references.len(), found), (0, place(1, 300)));
}

#[test]
fn a_power_cut_while_it_is_made_longer_or_cut_leaves_what_was_written() {
    for operation in 1.. {
        let files = RecordedFiles::new();
        let (mut checkpoint, _) = of_one_message(&files);
        files.crash_at(files.operations() + operation, operation);
        let changed = checkpoint.extent().reserve(3 << 20).and_then(|()| {
            checkpoint.compact()?;
            checkpoint.extent().trim(0)
        });
        for seed in 0..4 {
            let survivors = files.survive(Survival::PowerCut { seed: operation * 4 + seed });
            let (_, saved, found) =
                open(&survivors).unwrap_or_else(|error| panic!("operation {operation}: {error}"));
            assert_eq!((saved.references.len(), found), (1, place(1, 100)), "operation {operation}");
        }
        if changed.is_ok() {
            assert!(operation > 3, "{operation}");
            break;
        }
    }
}
