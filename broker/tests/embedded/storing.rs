//! A store that fails, that is full, that brings bodies back, and its end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use corriere_broker::store::{
    Attempt, AttemptSlot, Completion, Loaded, MessageStore, StoreError, StoreEvent, StoreOperation,
    StoreWatcher, StoredId, Sweep,
};
use corriere_broker::{Broker, Settings};
use corriere_core::provider::{AckKind, Command, DeliverySink, Event, Provider, ProviderError, SendMessage};
use corriere_core::{
    Clock, Destination, DestinationKind, Message, ProducerId, SessionId, SubscriptionId, TransactionId,
};

use crate::support::*;

/// Keeps messages in a map, and completions back while it is told to wait.
#[derive(Default)]
struct KeepingStore {
    kept: Mutex<BTreeMap<StoredId, Arc<Message>>>,
    waits: AtomicBool,
    waiting: Mutex<Vec<Completion>>,
    watcher: Mutex<Option<StoreWatcher>>,
    /// What was called, in order.
    calls: Mutex<Vec<&'static str>>,
    attempts: Mutex<Vec<(AttemptSlot, Option<Attempt>)>>,
    damaged: Mutex<Option<StoredId>>,
}

impl std::fmt::Debug for KeepingStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeepingStore")
    }
}

impl MessageStore for KeepingStore {
    fn submit(&self, batch: Vec<StoreOperation>, completion: Completion) {
        self.calls.lock().unwrap().push("submit");
        for operation in batch {
            match operation {
                StoreOperation::Append { stored, message, .. } => {
                    self.kept.lock().unwrap().insert(stored, message);
                }
                StoreOperation::Remove { stored, .. } => drop(self.kept.lock().unwrap().remove(&stored)),
                _ => {}
            }
        }
        if self.waits.load(Ordering::Relaxed) {
            self.waiting.lock().unwrap().push(completion);
        } else {
            completion(Ok(()), Sweep::Ends);
        }
    }

    fn can_load(&self) -> bool {
        true
    }

    fn load(&self, wanted: Vec<StoredId>, completion: Loaded) {
        let read = |stored| {
            if *self.damaged.lock().unwrap() == Some(stored) {
                let (place, reason) = ("a file, offset 0".to_owned(), "a bit".to_owned());
                return Err(StoreError::Damaged { place, reason });
            }
            self.kept.lock().unwrap().get(&stored).cloned().ok_or(StoreError::NotKept { stored })
        };
        completion(wanted.into_iter().map(|stored| (stored, read(stored))).collect());
    }

    fn note_attempt(&self, slot: AttemptSlot, attempt: Option<Attempt>) {
        self.attempts.lock().unwrap().push((slot, attempt));
    }

    fn watch(&self, watcher: StoreWatcher) {
        *self.watcher.lock().unwrap() = Some(watcher);
    }

    fn close(&self) {
        self.calls.lock().unwrap().push("close");
    }
}

impl KeepingStore {
    fn says(&self, event: StoreEvent) {
        self.watcher.lock().unwrap().as_ref().unwrap()(event);
    }
}

fn start_on(name: &str, memory_limit: u64) -> (Broker, Arc<KeepingStore>) {
    let store = Arc::new(KeepingStore::default());
    let settings = Settings { memory_limit, ..Settings::default() };
    let dyn_store = Arc::clone(&store) as Arc<dyn MessageStore>;
    (Broker::start(name, settings, dyn_store, Clock::system()).unwrap(), store)
}

fn heavy(sequence: u64) -> Message {
    let mut message = message(sequence);
    *message.body_mut().unwrap() = Message::bytes(vec![7; 3_000]).body().clone();
    message
}

#[tokio::test]
async fn a_store_that_fails_stops_the_broker_and_hangs_nobody() {
    let (broker, store) = start_on("poisoned", 1 << 20);
    let (connection, sink) = connect("poisoned").await;
    let failed = tokio::spawn(broker.failed());
    store.waits.store(true, Ordering::Relaxed);
    let pending = connection.submit(send(message(1)));
    store.says(StoreEvent::Failed(StoreError::Io("fdatasync of 7.journal: no".to_owned())));
    let told = within(pending).await.unwrap_err();
    assert!(matches!(&told, ProviderError::Stopped { reason, .. } if reason.contains("7.journal")), "{told}");
    assert_eq!(within(connection.submit(send(message(2)))).await, Err(told.clone()));
    assert_eq!(within(failed).await.unwrap(), told);
    assert!(sink.is_lost());
    let refused = broker.connect(options(None), Arc::new(Sink::default())).await.unwrap_err();
    assert_eq!(refused, told);
    for completion in std::mem::take(&mut *store.waiting.lock().unwrap()) {
        completion(Err(StoreError::Failed { reason: "no".into() }), Sweep::Ends);
    }
    broker.stop();
    assert_eq!(*store.calls.lock().unwrap(), ["submit", "close"]);
}

#[tokio::test]
async fn a_commit_that_a_failed_store_may_have_written_is_in_doubt_and_not_rolled_back() {
    let (broker, store) = start_on("in_doubt", 1 << 20);
    let (connection, _sink) = connect("in_doubt").await;
    let failed = tokio::spawn(broker.failed());
    store.waits.store(true, Ordering::Relaxed);
    let transaction = TransactionId::Local(1);
    drop(connection.submit(Command::Begin { transaction: transaction.clone() }));
    let (producer, message) = (ProducerId(1), Arc::new(message(1)));
    let within_it = Some(transaction.clone());
    drop(connection.submit(Command::Send(SendMessage {
        producer,
        message,
        transaction: within_it,
        deadline: None,
    })));
    let commit = connection.submit(Command::Commit { transaction, one_phase: true });
    // Both were written, and the sync failed; the store says so of them before it says so of itself.
    let [sent, committed]: [Completion; 2] =
        std::mem::take(&mut *store.waiting.lock().unwrap()).try_into().map_err(|_| "two batches").unwrap();
    sent(Ok(()), Sweep::GoesOn);
    committed(Err(StoreError::Failed { reason: "fdatasync of 7.journal: no".into() }), Sweep::Ends);
    let told = within(commit).await.unwrap_err();
    assert!(matches!(&told, ProviderError::Stopped { reason, .. } if reason.contains("7.journal")), "{told}");
    store.says(StoreEvent::Failed(StoreError::Io("fdatasync of 7.journal: no".to_owned())));
    assert_eq!(within(failed).await.unwrap(), told, "once");
}

#[tokio::test]
async fn a_broker_that_is_told_to_stop_has_not_failed() {
    let (broker, store) = start_on("told", 1 << 20);
    let failed = tokio::spawn(broker.failed());
    broker.stop();
    broker.stop();
    assert_eq!(*store.calls.lock().unwrap(), ["close"], "once");
    drop(broker);
    tokio::task::yield_now().await;
    assert!(!failed.is_finished());
    failed.abort();
}

#[tokio::test]
async fn a_stop_closes_the_store_when_all_that_it_was_to_be_given_has_been() {
    let (broker, store) = start_on("orderly", 1 << 20);
    let (connection, _sink) = connect("orderly").await;
    for sequence in 1..=200 {
        drop(connection.submit(send(message(sequence))));
    }
    broker.stop();
    let calls = store.calls.lock().unwrap();
    assert_eq!(calls.iter().position(|call| *call == "close"), Some(calls.len() - 1));
    assert_eq!(store.kept.lock().unwrap().len(), 200);
}

#[tokio::test]
async fn a_sink_may_stop_the_broker_that_delivers_to_it() {
    #[derive(Debug)]
    struct Stops(Broker);
    impl DeliverySink for Stops {
        fn deliver(&self, _: Vec<corriere_core::provider::Dispatch>) {
            self.0.stop();
        }
        fn notify(&self, _: Event) {}
    }
    let (broker, store) = start_on("stops_itself", 1 << 20);
    let sink = Arc::new(Stops(broker.clone()));
    let connection = broker.connect(options(None), sink).await.unwrap();
    open_sender(&*connection).await;
    open_reader(&*connection).await;
    drop(connection.submit(send(message(1))));
    within(async {
        while store.calls.lock().unwrap().last() != Some(&"close") {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn what_a_listener_has_in_its_hands_is_noted() {
    let (_broker, store) = start_on("noted", 1 << 20);
    let (connection, _sink) = connect("noted").await;
    assert_eq!(within(connection.submit(send(message(1)))).await, DONE);
    let handed_over = Command::HandedOver { subscription: SubscriptionId(1), number: 1, mark: None };
    assert_eq!(within(connection.submit(handed_over)).await, DONE);
    let attempt = Attempt { stored: StoredId(1), delivery: 1 };
    assert_eq!(*store.attempts.lock().unwrap(), [(AttemptSlot(0), Some(attempt))]);
}

#[tokio::test]
async fn browsing_shows_all_that_is_pending_in_its_order_and_changes_nothing() {
    let (broker, store) = start_on("browsed", 10_000);
    let (connection, _sink) = connect_sender("browsed").await;
    for sequence in 1..=20 {
        assert_eq!(within(connection.submit(send(heavy(sequence)))).await, DONE);
    }
    assert!(broker.memory_used() <= 10_000);
    *store.damaged.lock().unwrap() = Some(StoredId(9));
    let before = broker.counts(&orders());
    let mut browse = broker.browse(&orders());
    assert_eq!(within(connection.submit(send(message(21)))).await, DONE, "too late to be shown");
    let mut shown = Vec::new();
    while let Some(message) = within(browse.next()).await {
        shown.push(message.map(|message| message.headers().message_id.as_ref().unwrap().sequence).ok());
    }
    let expected: Vec<_> =
        (1..=20).map(|sequence| Some(sequence).filter(|sequence| *sequence != 9)).collect();
    assert_eq!(shown, expected);
    let after = broker.counts(&orders());
    assert_eq!(after.map(|counts| counts.pending), before.map(|counts| counts.pending + 1));
    assert_eq!(after.map(|counts| counts.in_flight), Some(0));
    let nothing = broker.browse(&Destination::queue("nowhere").unwrap()).next().await;
    assert!(nothing.is_none());
}

#[tokio::test]
async fn a_backlog_beyond_memory_is_delivered_and_what_is_damaged_left_out() {
    let (broker, store) = start_on("backlog", 10_000);
    let (sender, _sink) = connect_sender("backlog").await;
    for sequence in 1..=30 {
        assert_eq!(within(sender.submit(send(heavy(sequence)))).await, DONE);
    }
    *store.damaged.lock().unwrap() = Some(StoredId(15));
    let (reader, sink) = connect("backlog").await;
    for number in 1..=29 {
        sink.wait_for(number).await;
        assert_eq!(within(reader.submit(acknowledge(number as u64, AckKind::Standard))).await, DONE);
    }
    let expected: Vec<_> = (1..=30).filter(|sequence| *sequence != 15).collect();
    assert_eq!(sink.sequences(), expected);
    assert_eq!(broker.counts(&orders()).unwrap().pending, 1);
    assert_eq!(broker.totals(&orders()).unwrap().acknowledged, 29);
}

#[tokio::test]
async fn a_browser_over_a_backlog_beyond_memory_is_shown_all_but_what_is_damaged() {
    let (broker, store) = start_on("browser_backlog", 10_000);
    let (connection, sink) = connect_sender("browser_backlog").await;
    for sequence in 1..=30 {
        assert_eq!(within(connection.submit(send(heavy(sequence)))).await, DONE);
    }
    *store.damaged.lock().unwrap() = Some(StoredId(15));
    let (subscription, session) = (SubscriptionId(7), SessionId(1));
    let browse = Command::Browse { subscription, session, destination: orders(), selector: None };
    assert_eq!(within(connection.submit(browse)).await, DONE);
    drop(connection.submit(Command::Grant { subscription, credit: 500 }));
    assert_eq!(within(connection.submit(Command::Drain { subscription })).await, DONE);
    let expected: Vec<_> = (1..=30).filter(|sequence| *sequence != 15).collect();
    assert_eq!(sink.sequences(), expected);
    assert!(broker.memory_used() <= 10_000);
    let counts = broker.counts(&orders()).unwrap();
    assert_eq!((counts.pending, counts.in_flight), (30, 0));
}

#[tokio::test]
async fn what_is_in_a_temporary_destination_never_reaches_the_store() {
    let (broker, store) = start_on("temporary", 10_000);
    let provider = corriere_core::provider::provider_for("vm", "//temporary").unwrap();
    let sink = Arc::new(Sink::default());
    let options = options(None);
    let name = format!("{}:1", options.connection);
    let connection = provider.connect(options, sink.clone()).await.unwrap();
    open_sender(&*connection).await;
    let replies = Destination::temporary(DestinationKind::Queue, &name).unwrap();
    within(connection.submit(Command::CreateTemporary { destination: replies.clone() })).await.unwrap();
    let mut reply = message(1);
    reply.headers_mut().destination = Some(replies.clone());
    assert!(reply.headers().is_persistent());
    assert_eq!(within(connection.submit(send(reply))).await, DONE);
    let consumer = corriere_core::provider::Subscribe { destination: replies, ..reader(10) };
    assert_eq!(within(connection.submit(Command::OpenSubscription(Box::new(consumer)))).await, DONE);
    assert_eq!(sink.sequences(), [1]);
    let mark = sink.deliveries.lock().unwrap()[0].mark;
    let handed_over = Command::HandedOver { subscription: SubscriptionId(1), number: 1, mark };
    assert_eq!(within(connection.submit(handed_over)).await, DONE);
    assert_eq!(within(connection.submit(acknowledge(1, AckKind::Standard))).await, DONE);
    drop(connection);
    assert!(broker.destinations().is_empty());
    assert!(store.calls.lock().unwrap().is_empty() && store.attempts.lock().unwrap().is_empty());
}
