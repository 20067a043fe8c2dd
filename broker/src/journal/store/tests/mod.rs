//! The store over recorded files, step by step, and over a disk with its threads.

mod draining;
mod failures;
mod handles;
mod held;
mod limit;
mod places;
mod restarts;
mod room;
mod threads;
mod transactions;

use std::path::{Path, PathBuf};
use std::sync::mpsc;

use bytes::Bytes;
use corriere_core::id::Xid;
use corriere_core::{ConnectionId, Destination, Message, MessageId, Timestamp};

use super::*;
use crate::files::{RecordedFiles, Survival};
use crate::store::{Arrival, DeliveryState, RecoveredQueue, Removal, StoreEvent, SubscriptionName};

const DIRECTORY: &str = "data/broker";

/// Longer than anything takes that does not wait for ever.
const HANG: Duration = Duration::from_secs(120);

/// A store without threads, on recorded files, with small segments.
struct Stepwise {
    files: RecordedFiles,
    store: JournalStore,
}

impl Stepwise {
    fn new() -> Self {
        Self::on(RecordedFiles::new())
    }

    fn on(files: RecordedFiles) -> Self {
        Self::open(files, options()).unwrap_or_else(|error| panic!("{error}"))
    }

    fn open(files: RecordedFiles, options: JournalOptions) -> Result<Self, OpenError> {
        let store = JournalStore::open_stepwise(Arc::new(files.clone()), options)?;
        Ok(Self { files, store })
    }

    /// Submits it and takes a step.
    fn run(&self, operations: Vec<StoreOperation>) -> Result<(), StoreError> {
        let outcome = submit(&self.store, operations);
        self.store.step();
        outcome.try_recv().expect("it is complete after a step")
    }

    fn ok(&self, operations: Vec<StoreOperation>) {
        self.run(operations).unwrap();
    }

    /// Ends the process and begins the next one on what survives.
    fn crash(self, how: Survival) -> Self {
        let files = self.files.survive(how);
        drop(self.store);
        Self::on(files)
    }

    /// Ends in order and begins again.
    fn restart(self) -> Self {
        self.store.close();
        drop(self.store);
        Self::on(self.files.survive(Survival::OnlySynced))
    }

    fn load(&self, stored: u64) -> Result<Arc<Message>, StoreError> {
        let (sender, receiver) = mpsc::channel();
        self.store.load(vec![StoredId(stored)], Box::new(move |loaded| drop(sender.send(loaded))));
        self.store.step();
        receiver.try_recv().unwrap().remove(0).1
    }

    /// Segments with records.
    fn segments(&self) -> usize {
        self.store.core.segments.live().len()
    }
}

fn options() -> JournalOptions {
    JournalOptions { max_file_length: 4_096, ..JournalOptions::new(DIRECTORY) }
}

fn submit(store: &JournalStore, operations: Vec<StoreOperation>) -> mpsc::Receiver<Result<(), StoreError>> {
    let (sender, receiver) = mpsc::channel();
    store.submit(operations, Box::new(move |outcome, _| drop(sender.send(outcome))));
    store.lead();
    receiver
}

/// What happens to a store from now on.
fn watch(store: &JournalStore) -> mpsc::Receiver<StoreEvent> {
    let (sender, receiver) = mpsc::channel();
    store.watch(Box::new(move |event| drop(sender.send(event))));
    receiver
}

fn queue(name: &str) -> Destination {
    Destination::queue(name).unwrap()
}

fn message(stored: u64, bytes: usize) -> Arc<Message> {
    let mut message = Message::bytes(vec![stored as u8; bytes]);
    message.headers_mut().message_id = Some(MessageId { producer: "ID:p".into(), sequence: stored });
    Arc::new(message)
}

fn append_of(
    stored: u64,
    bytes: usize,
    transaction: Option<StoreTransaction>,
    arrival: Arrival,
) -> StoreOperation {
    StoreOperation::Append {
        stored: StoredId(stored),
        queue: queue("orders"),
        arrival,
        message: message(stored, bytes),
        transaction,
    }
}

/// A message of 300 bytes is sent.
fn send(stored: u64) -> Vec<StoreOperation> {
    vec![append_of(stored, 300, None, Arrival::Sent)]
}

fn remove(stored: u64) -> Vec<StoreOperation> {
    vec![StoreOperation::Remove {
        stored: StoredId(stored),
        reason: Removal::Acknowledged,
        transaction: None,
    }]
}

fn local(number: u64) -> StoreTransaction {
    StoreTransaction::Local(ConnectionId::foreign("ID:c"), number)
}

fn xid() -> Xid {
    Xid { format: 7, global: Bytes::from_static(b"g"), branch: Bytes::from_static(b"b") }
}

fn path(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

/// The names of the messages of the only queue, in order.
fn names(recovered: &Recovered) -> Vec<u64> {
    let messages =
        |queue: &RecoveredQueue| queue.messages.iter().map(|message| message.stored.0).collect::<Vec<_>>();
    recovered.queues.iter().flat_map(messages).collect()
}
