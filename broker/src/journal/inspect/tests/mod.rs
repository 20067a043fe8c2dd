//! Directories that are whole, torn, damaged, or without a segment or the checkpoint. C-45.

mod damaged;
mod old_bytes;
mod read_only;
mod whole;

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use corriere_core::id::Xid;
use corriere_core::{ConnectionId, Destination, Message, MessageId, Timestamp};
use serde_json::{Value as Json, json};

use super::*;
use crate::files::{FileSystem, RecordedFiles, Survival};
use crate::journal::{JournalOptions, JournalStore};
use crate::store::{
    Arrival, Attempt, AttemptSlot, DeliveryState, MessageStore, Recovered, Removal, StoreOperation,
    StoreTransaction, StoredId,
};

const DIRECTORY: &str = "data/local";
const INTO: &str = "data/repaired";
const LENGTH: u64 = 4_096;

fn open(files: &RecordedFiles, directory: &str) -> Result<JournalStore, OpenError> {
    let options = JournalOptions { max_file_length: LENGTH, ..JournalOptions::new(directory) };
    JournalStore::open_stepwise(Arc::new(files.clone()), options)
}

fn run(store: &JournalStore, operations: Vec<StoreOperation>) {
    let (sender, receiver) = mpsc::channel();
    store.submit(operations, Box::new(move |outcome, _| drop(sender.send(outcome))));
    store.step();
    receiver.try_recv().unwrap().unwrap();
}

fn message(stored: u64, bytes: usize) -> Arc<Message> {
    let mut message = Message::text(format!("{stored}: {}", "x".repeat(bytes)));
    message.set_property("table", 7).unwrap();
    message.headers_mut().message_id = Some(MessageId { producer: "ID:p".into(), sequence: stored });
    Arc::new(message)
}

fn append(stored: u64, bytes: usize, transaction: Option<StoreTransaction>) -> StoreOperation {
    StoreOperation::Append {
        stored: StoredId(stored),
        queue: Destination::queue(if stored.is_multiple_of(5) { "emails" } else { "orders" }).unwrap(),
        arrival: Arrival::Sent,
        message: message(stored, bytes),
        transaction,
    }
}

fn send(store: &JournalStore, stored: u64) {
    run(store, vec![append(stored, 300, None)]);
}

fn acknowledge(store: &JournalStore, stored: u64) {
    let (stored, reason) = (StoredId(stored), Removal::Acknowledged);
    run(store, vec![StoreOperation::Remove { stored, reason, transaction: None }]);
}

fn local() -> StoreTransaction {
    StoreTransaction::Local(ConnectionId::foreign("ID:c"), 1)
}

fn kill(store: JournalStore, files: &RecordedFiles) -> RecordedFiles {
    let survivors = files.survive(Survival::Process);
    drop(store);
    survivors
}

/// A directory with something of everything, whose process was killed.
fn everything() -> RecordedFiles {
    let files = RecordedFiles::new();
    let store = open(&files, DIRECTORY).unwrap();
    for stored in 1..=30 {
        send(&store, stored);
    }
    (1..=9).chain(20..=25).for_each(|stored| acknowledge(&store, stored));
    let xid = Xid { format: 7, global: Bytes::from_static(b"g"), branch: Bytes::from_static(b"b") };
    let distributed = StoreTransaction::Distributed(xid.clone());
    run(
        &store,
        vec![append(31, 100, Some(distributed.clone())), append(32, 5_000, Some(distributed.clone()))],
    );
    store.checkpoint().unwrap();
    let removal = StoreOperation::Remove {
        stored: StoredId(10),
        reason: Removal::Acknowledged,
        transaction: Some(distributed),
    };
    run(&store, vec![removal, StoreOperation::Prepare(xid)]);
    run(&store, vec![append(33, 9_000, None)]);
    let state = DeliveryState {
        failed_deliveries: 2,
        not_before: Some(Timestamp(1_000_000)),
        since: Timestamp(999_000),
        conversion_failed: true,
    };
    run(&store, vec![StoreOperation::DeliveryState { stored: StoredId(11), state }]);
    run(&store, vec![append(34, 10, Some(local()))]);
    run(&store, vec![append(35, 10, Some(local())), StoreOperation::Commit(local())]);
    run(&store, vec![append(36, 10, Some(local()))]);
    store.note_attempt(AttemptSlot(0), Some(Attempt { stored: StoredId(12), delivery: 3 }));
    kill(store, &files)
}

/// Fifty messages over several files, and nothing else.
fn fifty(checkpoint: bool) -> RecordedFiles {
    let files = RecordedFiles::new();
    let store = open(&files, DIRECTORY).unwrap();
    for stored in 1..=50 {
        send(&store, stored);
    }
    if checkpoint {
        store.checkpoint().unwrap();
    }
    kill(store, &files)
}

fn looked_at(files: &RecordedFiles) -> Arc<dyn FileSystem> {
    Arc::new(files.clone())
}

fn file(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

fn segments(files: &RecordedFiles, directory: &str) -> Vec<PathBuf> {
    let journal = Path::new(directory).join("journal");
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "journal");
    let is_spare = |path: &PathBuf| path.to_string_lossy().contains("spare");
    files
        .paths()
        .into_iter()
        .filter(|path| path.starts_with(&journal) && is_segment(path) && !is_spare(path))
        .collect()
}

/// All that must not change, by its checksums.
fn contents(files: &RecordedFiles) -> Vec<(PathBuf, u32)> {
    let kept =
        files.paths().into_iter().filter(|path| path.starts_with(DIRECTORY) && !path.ends_with("lock"));
    kept.map(|path| (path.clone(), crc32c::crc32c(&files.contents(&path)))).collect()
}

/// The same of the journal: redb may mend its own file when it is opened.
fn journal(files: &RecordedFiles) -> Vec<(PathBuf, u32)> {
    contents(files).into_iter().filter(|(path, _)| path.starts_with(file("journal"))).collect()
}

/// What a broker finds that starts there, and the messages. The process of `files` is over then.
fn started(files: &RecordedFiles, directory: &str) -> (Recovered, Vec<Arc<Message>>) {
    let files = files.survive(Survival::Process);
    let store = open(&files, directory).unwrap_or_else(|error| panic!("{error}"));
    let recovered = store.recover();
    let wanted = names(&recovered).into_iter().map(StoredId).collect();
    let (sender, receiver) = mpsc::channel();
    store.load(wanted, Box::new(move |loaded| drop(sender.send(loaded))));
    store.step();
    let loaded = receiver.try_recv().unwrap();
    store.close();
    (recovered, loaded.into_iter().map(|(_, message)| message.unwrap()).collect())
}

fn names(recovered: &Recovered) -> Vec<u64> {
    recovered.queues.iter().flat_map(|queue| &queue.messages).map(|message| message.stored.0).collect()
}

/// Fifty messages are on two queues, each in its order.
fn in_order(stored: impl Iterator<Item = u64> + Clone) -> Vec<u64> {
    let emails = stored.clone().filter(|stored| stored.is_multiple_of(5));
    emails.chain(stored.filter(|stored| !stored.is_multiple_of(5))).collect()
}

fn repaired(files: &RecordedFiles) -> (Repaired, Recovered) {
    let before = contents(files);
    let repaired = repair(&looked_at(files), Path::new(DIRECTORY), Path::new(INTO)).unwrap();
    assert_eq!(contents(files), before, "what is repaired is not touched");
    let after = verify(&looked_at(files), Path::new(INTO)).unwrap();
    assert_eq!((&*after.findings, &after.torn), (&[] as &[Finding], &None));
    (repaired, started(files, INTO).0)
}

fn dumped(files: &RecordedFiles) -> (Dumped, Vec<Json>) {
    let mut out = Vec::new();
    let dumped = dump(&looked_at(files), Path::new(DIRECTORY), &mut out).unwrap();
    (dumped, out.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}
