//! Who does its work, who may call back meanwhile, and what a panic of theirs costs.

use std::cell::Cell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use corriere_broker::store::{
    Attempt, AttemptSlot, Completion, MessageStore, StoreError, StoreOperation, StoredId, Sweep,
};
use corriere_broker::{Broker, Settings};
use corriere_core::provider::{
    AckKind, Command, DeliverySink, Dispatch, Event, Provider, ProviderConnection, ProviderError, Receipt,
};
use corriere_core::{Clock, DeliveryMode, SubscriptionId};

use crate::support::*;

/// A waker that asks the broker something before it returns, as an executor in the same process may.
struct Asks(Broker, AtomicBool);

impl std::task::Wake for Asks {
    fn wake(self: Arc<Self>) {
        let _ = self.0.destinations();
        self.1.store(true, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn who_waits_may_ask_the_broker_while_he_is_told_that_the_connection_is_lost() {
    for stops in [true, false] {
        let name = format!("asks_{stops}");
        let store = Arc::new(SlowStore::default()) as Arc<dyn MessageStore>;
        let broker = Broker::start(&name, Settings::default(), store, Clock::system()).unwrap();
        let (connection, _sink) = connect(&name).await;
        let mut receipt = pin!(connection.submit(send(message(1))));
        let asks = Arc::new(Asks(broker.clone(), AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&asks));
        assert!(receipt.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        // On a thread of its own, so that a lock that is taken twice fails the test and does not hang it.
        let end = std::thread::spawn(move || if stops { broker.stop() } else { drop(connection) });
        within(async {
            while !end.is_finished() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        assert!(asks.1.load(Ordering::Relaxed));
        assert_eq!(within(receipt).await, Err(ProviderError::Lost));
    }
}

#[tokio::test]
async fn a_dropped_connection_gives_back_what_it_had() {
    let _broker = start("dropped");
    let (connection, sink) = connect("dropped").await;
    assert_eq!(connection.submit(send(message(1))).await, DONE);
    assert_eq!(sink.sequences(), [1]);
    drop(connection);
    let (_next, sink) = connect("dropped").await;
    assert_eq!(sink.sequences(), [1], "at once: the drop has done it");
}

#[tokio::test]
async fn a_sink_may_call_back_while_it_is_delivered_to() {
    let broker = start("calls_back");
    let (connection, sink) = connect("calls_back").await;
    sink.answers.set(Arc::downgrade(&connection)).unwrap();
    for sequence in 1..=100 {
        assert_eq!(within(connection.submit(send(message(sequence)))).await, DONE);
    }
    assert_eq!(sink.sequences(), (1..=100).collect::<Vec<_>>());
    assert_eq!(broker.counts(&orders()).unwrap().acknowledged, 100);
}

#[tokio::test]
async fn what_a_sink_sends_from_within_arrives_in_its_order() {
    #[derive(Debug, Default)]
    struct Echo {
        connection: OnceLock<Weak<dyn ProviderConnection>>,
        kept: Sink,
    }
    impl DeliverySink for Echo {
        fn deliver(&self, batch: Vec<Dispatch>) {
            self.kept.deliver(batch);
            if self.kept.sequences() == [1] {
                let connection = self.connection.get().and_then(Weak::upgrade).unwrap();
                for sequence in 2..=4 {
                    let mut message = message(sequence);
                    message.headers_mut().delivery_mode = DeliveryMode::NonPersistent;
                    drop(connection.submit(send(message)));
                }
            }
        }
        fn notify(&self, _: Event) {}
    }
    let broker = start("echo");
    let sink = Arc::new(Echo::default());
    let connection = broker.connect(options(None), Arc::clone(&sink) as Arc<dyn DeliverySink>).await.unwrap();
    sink.connection.set(Arc::downgrade(&connection)).unwrap();
    open_sender(&*connection).await;
    open_reader(&*connection).await;
    assert_eq!(within(connection.submit(send(message(1)))).await, DONE);
    assert_eq!(sink.kept.sequences(), [1, 2, 3, 4]);
}

/// As many deliveries as one call may make here; it takes 256 inputs and effects, several for each of them.
const TURN: u64 = 64;

thread_local! {
    /// What this thread has performed since its latest call.
    static PERFORMED: Cell<u64> = const { Cell::new(0) };
}

/// Acknowledges each message and sends the next one from within, up to a last one.
#[derive(Debug)]
struct Relay {
    last: u64,
    connection: OnceLock<Weak<dyn ProviderConnection>>,
    arrived: Sink,
}

impl Relay {
    async fn connect(broker: &Broker, last: u64) -> (Arc<dyn ProviderConnection>, Arc<Self>) {
        let sink = Arc::new(Self { last, connection: OnceLock::new(), arrived: Sink::default() });
        let dyn_sink = Arc::clone(&sink) as Arc<dyn DeliverySink>;
        let connection = broker.connect(options(None), dyn_sink).await.unwrap();
        sink.connection.set(Arc::downgrade(&connection)).unwrap();
        open_sender(&*connection).await;
        open_reader(&*connection).await;
        (connection, sink)
    }
}

impl DeliverySink for Relay {
    fn deliver(&self, batch: Vec<Dispatch>) {
        PERFORMED.set(PERFORMED.get() + 1);
        let connection = self.connection.get().and_then(Weak::upgrade).unwrap();
        for dispatch in &batch {
            drop(connection.submit(acknowledge(dispatch.number, AckKind::Standard)));
            let sequence = dispatch.message.headers().message_id.as_ref().unwrap().sequence;
            if sequence < self.last {
                drop(connection.submit(send(message(sequence + 1))));
            }
        }
        self.arrived.deliver(batch);
    }

    fn notify(&self, _: Event) {}
}

#[tokio::test]
async fn a_call_is_not_kept_by_what_its_effects_bring_and_the_rest_is_done_without_it() {
    let broker = start("relay");
    let (connection, sink) = Relay::connect(&broker, 10_000).await;
    PERFORMED.set(0);
    assert_eq!(within(connection.submit(send(message(1)))).await, DONE);
    assert!(PERFORMED.get() <= TURN, "{}", PERFORMED.get());
    sink.arrived.wait_for(10_000).await;
    assert_eq!(sink.arrived.sequences(), (1..=10_000).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_performs_more_than_its_turn_while_other_threads_bring_more() {
    let broker = start("turns");
    let (_reader, sink) = Relay::connect(&broker, 0).await;
    let mut threads = Vec::new();
    for producer in 0..4_u64 {
        let (connection, _sink) = connect_sender("turns").await;
        threads.push(std::thread::spawn(move || {
            let mut most = 0;
            let receipts: Vec<_> = (0..2_000)
                .map(|number| {
                    PERFORMED.set(0);
                    let receipt = connection.submit(send(message(producer * 10_000 + number)));
                    most = most.max(PERFORMED.get());
                    receipt
                })
                .collect();
            (most, receipts, connection)
        }));
    }
    for thread in threads {
        let (most, receipts, _connection) = thread.join().unwrap();
        assert!(most <= TURN, "{most}");
        for receipt in receipts {
            assert_eq!(within(receipt).await, DONE);
        }
    }
    sink.arrived.wait_for(8_000).await;
}

#[tokio::test]
async fn a_confirmation_that_is_handed_out_ready_comes_after_what_was_queued_before_it() {
    let broker = start("ready_last");
    let (relay, sink) = Relay::connect(&broker, 1_000).await;
    let mut receipts = vec![relay.submit(send(message(1)))];
    // Each call finds what the one before left, and its own delivery behind it.
    for number in 2..=50 {
        let sequence = number * 10_000;
        receipts.push(relay.submit(send(message(sequence))));
        let mut receipt = receipts.pop().unwrap();
        match Pin::new(&mut receipt).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => {
                assert_eq!(outcome, DONE);
                assert!(sink.arrived.sequences().contains(&sequence), "{sequence} is confirmed too early");
            }
            Poll::Pending => receipts.push(receipt),
        }
    }
    for receipt in receipts {
        assert_eq!(within(receipt).await, DONE);
    }
}

#[tokio::test]
async fn a_sink_may_hold_the_last_handle_of_its_connection() {
    #[derive(Debug)]
    struct Cycle(Mutex<Option<Arc<dyn ProviderConnection>>>);
    impl DeliverySink for Cycle {
        fn deliver(&self, _: Vec<Dispatch>) {}
        fn notify(&self, _: Event) {}
    }
    let broker = start("cycle");
    let sink = Arc::new(Cycle(Mutex::new(None)));
    let connection = broker.connect(options(None), Arc::clone(&sink) as Arc<dyn DeliverySink>).await.unwrap();
    *sink.0.lock().unwrap() = Some(Arc::clone(&connection));
    drop(sink);
    let close = connection.submit(Command::Close);
    drop(connection);
    assert_eq!(within(close).await, DONE);
}

#[tokio::test]
async fn a_sink_that_panics_loses_its_connection_and_strands_nothing() {
    let broker = start("panicking_sink");
    let (bad, bad_sink) = connect("panicking_sink").await;
    let (good, sink) = connect("panicking_sink").await;
    bad_sink.panics.store(true, Ordering::Relaxed);
    for sequence in 1..=2 {
        assert_eq!(within(good.submit(send(message(sequence)))).await, DONE);
    }
    let mut sequences = sink.sequences();
    sequences.sort_unstable();
    assert_eq!(sequences, [1, 2], "one of them was the bad one's");
    assert_eq!(broker.counts(&orders()).unwrap().redelivered, 0, "it never reached the application");
    assert!(bad_sink.is_lost());
    assert_eq!(within(bad.submit(send(message(3)))).await, Err(ProviderError::Lost));
}

#[tokio::test]
async fn a_command_whose_own_sink_panics_is_answered() {
    let store = Arc::new(SlowStore::default());
    let dyn_store = Arc::clone(&store) as Arc<dyn MessageStore>;
    let _broker = Broker::start("own_panic", Settings::default(), dyn_store, Clock::system()).unwrap();
    let (bad, sink) = connect("own_panic").await;
    sink.panics.store(true, Ordering::Relaxed);
    let stored = bad.submit(send(message(1)));
    let mut transient = message(2);
    transient.headers_mut().delivery_mode = DeliveryMode::NonPersistent;
    assert_eq!(within(bad.submit(send(transient))).await, DONE, "sent before its delivery failed");
    assert_eq!(within(stored).await, Err(ProviderError::Lost));
    store.complete(&Ok(()));
}

#[tokio::test]
async fn a_panicking_store_refuses_the_send() {
    let _broker =
        Broker::start("panicking_store", Settings::default(), Arc::new(PanickingStore), Clock::system())
            .unwrap();
    let (connection, _sink) = connect("panicking_store").await;
    assert!(matches!(within(connection.submit(send(message(1)))).await, Err(ProviderError::Store { .. })));
}

#[tokio::test]
async fn a_confirmation_comes_from_whichever_thread_the_store_completes_on() {
    let store = Arc::new(SlowStore::default());
    let dyn_store = Arc::clone(&store) as Arc<dyn MessageStore>;
    let _broker = Broker::start("slow_store", Settings::default(), dyn_store, Clock::system()).unwrap();
    let (connection, sink) = connect("slow_store").await;
    let receipts: Vec<Receipt> = (1..=3).map(|sequence| connection.submit(send(message(sequence)))).collect();
    assert!(sink.sequences().is_empty());
    std::thread::spawn({
        let store = Arc::clone(&store);
        move || store.complete(&Ok(()))
    })
    .join()
    .unwrap();
    for receipt in receipts {
        assert_eq!(within(receipt).await, DONE);
    }
    assert_eq!(sink.sequences(), [1, 2, 3]);
    let refused = connection.submit(send(message(4)));
    store.complete(&Err(StoreError::Io("disk is full".to_owned())));
    assert!(matches!(within(refused).await, Err(ProviderError::Store { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_threads_lose_nothing_and_keep_each_producers_order() {
    let broker = start("crowd");
    let (reader, sink) = connect("crowd").await;
    sink.answers.set(Arc::downgrade(&reader)).unwrap();
    let mut senders = Vec::new();
    for producer in 0..4_u64 {
        senders.push(tokio::spawn(async move {
            let (connection, _sink) = connect_sender("crowd").await;
            for number in 0..500 {
                assert_eq!(within(connection.submit(send(message(producer * 1_000 + number)))).await, DONE);
            }
        }));
    }
    for sender in senders {
        sender.await.unwrap();
    }
    sink.wait_for(2_000).await;
    for producer in 0..4 {
        let own: Vec<_> =
            sink.sequences().into_iter().filter(|sequence| sequence / 1_000 == producer).collect();
        assert_eq!(own, (0..500).map(|number| producer * 1_000 + number).collect::<Vec<_>>());
    }
    assert!(broker.counts(&orders()).unwrap().are_conserved());
}

/// Is at its second batch until it is let go, and says what was noted.
#[derive(Debug)]
struct BusyStore {
    batches: AtomicU64,
    busy: Barrier,
    noted: Mutex<Vec<Option<Attempt>>>,
}

impl MessageStore for BusyStore {
    fn submit(&self, _: Vec<StoreOperation>, completion: Completion) {
        if self.batches.fetch_add(1, Ordering::Relaxed) == 1 {
            self.busy.wait();
            self.busy.wait();
        }
        completion(Ok(()), Sweep::Ends);
    }

    fn note_attempt(&self, _: AttemptSlot, attempt: Option<Attempt>) {
        self.noted.lock().unwrap().push(attempt);
    }
}

#[tokio::test]
async fn a_hand_over_is_noted_when_the_call_returns_though_somebody_else_performs() {
    let store = BusyStore { batches: AtomicU64::new(0), busy: Barrier::new(2), noted: Mutex::default() };
    let store = Arc::new(store);
    let as_store = Arc::clone(&store) as Arc<dyn MessageStore>;
    let _broker = Broker::start("noted_at_once", Settings::default(), as_store, Clock::system()).unwrap();
    let (connection, sink) = connect("noted_at_once").await;
    assert_eq!(within(connection.submit(send(message(1)))).await, DONE);
    sink.wait_for(1).await;
    let sender = Arc::clone(&connection);
    let performer = std::thread::spawn(move || drop(sender.submit(send(message(2)))));
    store.busy.wait();
    // From here on the other thread performs, and does not get on.
    let mark = sink.deliveries.lock().unwrap()[0].mark;
    connection.tell(Command::HandedOver { subscription: SubscriptionId(1), number: 1, mark });
    let noted = store.noted.lock().unwrap().clone();
    store.busy.wait();
    performer.join().unwrap();
    assert_eq!(noted, [Some(Attempt { stored: StoredId(1), delivery: 1 })]);
}
