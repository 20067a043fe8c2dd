//! One thread drives for all: what may keep it, what may be left behind, and how much one call is asked to do.

use std::cell::Cell;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Wake, Waker};

use corriere_broker::files::RecordedFiles;
use corriere_broker::journal::{JournalOptions, JournalStore};
use corriere_broker::store::{
    Attempt, AttemptSlot, Completion, Loaded, MessageStore, Recovered, StoreError, StoreEvent,
    StoreOperation, StoreWatcher, StoredId, Sweep,
};
use corriere_broker::{Broker, Settings};
use corriere_core::provider::{Command, DeliverySink, Dispatch, Event, Provider};
use corriere_core::{Clock, SubscriptionId};

use crate::support::*;

thread_local! {
    static LEADS: Cell<usize> = const { Cell::new(0) };
}

/// A journal that notes how many calls of its `lead` are on one stack.
#[derive(Debug)]
struct Led {
    journal: JournalStore,
    deepest: AtomicUsize,
}

impl MessageStore for Led {
    fn recover(&self) -> Recovered {
        self.journal.recover()
    }

    fn submit(&self, batch: Vec<StoreOperation>, completion: Completion) {
        self.journal.submit(batch, completion);
    }

    fn lead(&self) {
        LEADS.set(LEADS.get() + 1);
        self.deepest.fetch_max(LEADS.get(), Ordering::Relaxed);
        self.journal.lead();
        LEADS.set(LEADS.get() - 1);
    }

    fn can_load(&self) -> bool {
        true
    }

    fn load(&self, wanted: Vec<StoredId>, completion: Loaded) {
        self.journal.load(wanted, completion);
    }

    fn watch(&self, watcher: StoreWatcher) {
        self.journal.watch(watcher);
    }

    fn close(&self) {
        self.journal.close();
    }
}

#[tokio::test]
async fn a_sink_that_acknowledges_from_within_has_the_store_led_on_no_stack_twice() {
    const BACKLOG: usize = 4_000;
    let mut unsynced = JournalOptions::new("data/broker");
    unsynced.sync_on_write = false;
    let journal = JournalStore::open(Arc::new(RecordedFiles::new()), unsynced).unwrap();
    let store = Arc::new(Led { journal, deepest: AtomicUsize::new(0) });
    let as_store = Arc::clone(&store) as Arc<dyn MessageStore>;
    let broker = Broker::start("led", Settings::default(), as_store, Clock::system()).unwrap();
    let (sender, _) = connect_sender("led").await;
    let receipts: Vec<_> = (0..BACKLOG).map(|number| sender.submit(send(message(number as u64)))).collect();
    for receipt in receipts {
        assert_eq!(within(receipt).await, DONE);
    }
    let sink = Arc::new(Sink::default());
    let connection = broker.connect(options(None), Arc::clone(&sink) as Arc<dyn DeliverySink>).await.unwrap();
    sink.answers.set(Arc::downgrade(&connection)).unwrap();
    open_sender(&*connection).await;
    drop(connection.submit(Command::OpenSubscription(Box::new(reader(1)))));
    let at_once = sink.sequences().len();
    assert!(at_once < BACKLOG / 2, "one call has delivered {at_once}");
    sink.wait_for(BACKLOG).await;
    assert_eq!(store.deepest.load(Ordering::Relaxed), 1);
    broker.stop();
}

/// Is at its first delivery until it is let go.
#[derive(Debug)]
struct Busy {
    gate: Mutex<Option<mpsc::Receiver<()>>>,
    entered: AtomicBool,
}

impl DeliverySink for Busy {
    fn deliver(&self, _: Vec<Dispatch>) {
        if let Some(gate) = self.gate.lock().unwrap().take() {
            self.entered.store(true, Ordering::Release);
            let _ = gate.recv();
        }
    }

    fn notify(&self, _: Event) {}
}

/// A broker of which another thread drives, and does not get on until it is let go.
async fn driven(broker: &Broker) -> (mpsc::Sender<()>, std::thread::JoinHandle<()>) {
    let (go, gate) = mpsc::channel();
    let sink = Arc::new(Busy { gate: Mutex::new(Some(gate)), entered: AtomicBool::new(false) });
    let connection = broker.connect(options(None), Arc::clone(&sink) as Arc<dyn DeliverySink>).await.unwrap();
    open_sender(&*connection).await;
    open_reader(&*connection).await;
    let driver = std::thread::spawn(move || drop(connection.submit(send(message(1)))));
    within(async {
        while !sink.entered.load(Ordering::Acquire) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    (go, driver)
}

#[tokio::test]
async fn a_close_is_confirmed_though_its_connection_is_dropped_before_the_driver_comes_to_it() {
    let broker = start("closed_and_dropped");
    let (other, _sink) = connect_sender("closed_and_dropped").await;
    let (go, driver) = driven(&broker).await;
    let receipt = other.submit(Command::Close);
    drop(other);
    go.send(()).unwrap();
    driver.join().unwrap();
    assert_eq!(within(receipt).await, DONE);
}

/// Panics at the first note.
#[derive(Debug, Default)]
struct PanickingNotes(AtomicBool);

impl MessageStore for PanickingNotes {
    fn submit(&self, _: Vec<StoreOperation>, completion: Completion) {
        completion(Ok(()), Sweep::Ends);
    }

    fn note_attempt(&self, _: AttemptSlot, _: Option<Attempt>) {
        assert!(self.0.swap(true, Ordering::Relaxed), "a store that panics");
    }
}

#[tokio::test]
async fn a_store_that_panics_at_a_note_stops_nobody() {
    let store = Arc::new(PanickingNotes::default());
    let _broker = Broker::start("notes", Settings::default(), store, Clock::system()).unwrap();
    let (connection, sink) = connect("notes").await;
    assert_eq!(within(connection.submit(send(message(1)))).await, DONE);
    sink.wait_for(1).await;
    for _ in 0..2 {
        connection.tell(Command::HandedOver { subscription: SubscriptionId(1), number: 1, mark: None });
        assert_eq!(within(connection.submit(send(message(2)))).await, DONE);
    }
}

#[tokio::test]
async fn a_store_that_panics_at_a_marked_note_stops_nobody() {
    let store = Arc::new(PanickingNotes::default());
    let _broker = Broker::start("marked_notes", Settings::default(), store, Clock::system()).unwrap();
    let (connection, sink) = connect("marked_notes").await;
    assert_eq!(within(connection.submit(send(message(1)))).await, DONE);
    sink.wait_for(1).await;
    let mark = sink.deliveries.lock().unwrap()[0].mark;
    for _ in 0..2 {
        connection.tell(Command::HandedOver { subscription: SubscriptionId(1), number: 1, mark });
        assert_eq!(within(connection.submit(send(message(2)))).await, DONE);
    }
}

/// Lets its watcher be called.
#[derive(Default)]
struct Watched(Mutex<Option<StoreWatcher>>);

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watched")
    }
}

impl MessageStore for Watched {
    fn submit(&self, _: Vec<StoreOperation>, completion: Completion) {
        completion(Ok(()), Sweep::Ends);
    }

    fn watch(&self, watcher: StoreWatcher) {
        *self.0.lock().unwrap() = Some(watcher);
    }
}

/// Asks the broker something before it returns.
struct Asks(Broker, mpsc::Sender<()>);

impl Wake for Asks {
    fn wake(self: Arc<Self>) {
        let _ = self.0.destinations();
        let _ = self.1.send(());
    }
}

#[tokio::test]
async fn who_waits_for_a_failure_may_ask_the_broker_while_he_is_told() {
    let store = Arc::new(Watched::default());
    let as_store = Arc::clone(&store) as Arc<dyn MessageStore>;
    let broker = Broker::start("failed_told", Settings::default(), as_store, Clock::system()).unwrap();
    let mut failed = Box::pin(broker.failed());
    let (told, is_told) = mpsc::channel();
    let waker = Waker::from(Arc::new(Asks(broker.clone(), told)));
    assert!(failed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    std::thread::spawn(move || {
        let watcher = store.0.lock().unwrap().take().unwrap();
        watcher(StoreEvent::Failed(StoreError::Io("no".into())));
    });
    is_told.recv_timeout(std::time::Duration::from_secs(40)).expect("it does not hang");
}
