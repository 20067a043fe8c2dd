//! A broker in this process, reached as `vm:`: its name, its end, its clock, and who may call back.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

use std::cell::Cell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use corriere_broker::store::{Completion, MemoryStore, MessageStore, StoreError, StoreOperation};
use corriere_broker::{Broker, Settings, StartError};
use corriere_core::provider::{
    Ack, AckKind, Capability, Cause, Command, Confirmation, ConnectOptions, Credit, DeliverySink, Dispatch,
    Event, Provider, ProviderConnection, ProviderError, Receipt, SendMessage, SessionMode, Subscribe,
    provider_for,
};
use corriere_core::{
    Clock, ConnectionFactory, ConnectionId, DeliveryMode, Destination, Error, Message, MessageId, ProducerId,
    SessionId, SubscriptionId, Timestamp,
};
use tokio::sync::Notify;

const DONE: Result<Confirmation, ProviderError> = Ok(Confirmation::Done);

/// Keeps what comes, and may answer from within.
#[derive(Debug, Default)]
struct Sink {
    deliveries: Mutex<Vec<Dispatch>>,
    events: Mutex<Vec<Event>>,
    arrived: Notify,
    /// The connection through which each delivery is acknowledged from within the sink.
    answers: OnceLock<Weak<dyn ProviderConnection>>,
    panics: AtomicBool,
}

impl DeliverySink for Sink {
    fn deliver(&self, batch: Vec<Dispatch>) {
        assert!(!self.panics.load(Ordering::Relaxed), "a sink that panics");
        for dispatch in &batch {
            if let Some(connection) = self.answers.get().and_then(Weak::upgrade) {
                drop(connection.submit(acknowledge(dispatch.number, AckKind::Standard)));
            }
        }
        self.deliveries.lock().unwrap().extend(batch);
        self.arrived.notify_one();
    }

    fn notify(&self, event: Event) {
        self.events.lock().unwrap().push(event);
    }
}

impl Sink {
    fn sequences(&self) -> Vec<u64> {
        let deliveries = self.deliveries.lock().unwrap();
        deliveries
            .iter()
            .map(|dispatch| dispatch.message.headers().message_id.as_ref().unwrap().sequence)
            .collect()
    }

    async fn wait_for(&self, count: usize) {
        within(async {
            while self.deliveries.lock().unwrap().len() < count {
                self.arrived.notified().await;
            }
        })
        .await;
    }

    fn is_lost(&self) -> bool {
        matches!(self.events.lock().unwrap()[..], [Event::Lost { .. }])
    }
}

/// Keeps completions back until it is told, as a disk does.
#[derive(Debug, Default)]
struct SlowStore {
    waiting: Mutex<Vec<Waiting>>,
}

struct Waiting(Completion);

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Waiting")
    }
}

impl MessageStore for SlowStore {
    fn submit(&self, _: Vec<StoreOperation>, completion: Completion) {
        self.waiting.lock().unwrap().push(Waiting(completion));
    }
}

impl SlowStore {
    fn complete(&self, outcome: &Result<(), StoreError>) {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap());
        for Waiting(completion) in waiting {
            completion(outcome.clone());
        }
    }
}

#[derive(Debug)]
struct PanickingStore;

impl MessageStore for PanickingStore {
    fn submit(&self, _: Vec<StoreOperation>, _: Completion) {
        panic!("a store that panics");
    }
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("done within 30 s")
}

fn start(name: &str) -> Broker {
    Broker::start(name, Settings::default(), Arc::new(MemoryStore), Clock::system()).unwrap()
}

fn orders() -> Destination {
    Destination::queue("orders").unwrap()
}

fn message(sequence: u64) -> Message {
    let mut message = Message::text("body");
    message.headers_mut().destination = Some(orders());
    message.headers_mut().message_id = Some(MessageId { producer: "p".into(), sequence });
    message
}

fn send(message: Message) -> Command {
    let message = Arc::new(message);
    Command::Send(SendMessage { producer: ProducerId(1), message, transaction: None, deadline: None })
}

fn acknowledge(number: u64, kind: AckKind) -> Command {
    let subscription = SubscriptionId(1);
    Command::Acknowledge(Ack { subscription, first: number, last: number, kind, transaction: None })
}

fn options(client_id: Option<&str>) -> ConnectOptions {
    ConnectOptions {
        connection: ConnectionId::unique(),
        client_id: client_id.map(Into::into),
        user: None,
        password: None,
    }
}

/// A connection with session 1 and producer 1.
async fn connect_sender(name: &str) -> (Arc<dyn ProviderConnection>, Arc<Sink>) {
    let sink = Arc::new(Sink::default());
    let provider = provider_for("vm", &format!("//{name}")).unwrap();
    let dyn_sink = Arc::clone(&sink) as Arc<dyn DeliverySink>;
    let connection = provider.connect(options(None), dyn_sink).await.unwrap();
    open_sender(&*connection).await;
    (connection, sink)
}

/// The same with subscription 1 on `orders`.
async fn connect(name: &str) -> (Arc<dyn ProviderConnection>, Arc<Sink>) {
    let (connection, sink) = connect_sender(name).await;
    open_reader(&*connection).await;
    (connection, sink)
}

async fn open_sender(connection: &dyn ProviderConnection) {
    let session = SessionId(1);
    let open_session = Command::OpenSession { session, mode: SessionMode::Auto };
    assert_eq!(within(connection.submit(open_session)).await, DONE);
    let producer = ProducerId(1);
    let open_producer = Command::OpenProducer { producer, session, identity: "p".into(), destination: None };
    assert_eq!(within(connection.submit(open_producer)).await, DONE);
}

async fn open_reader(connection: &dyn ProviderConnection) {
    let subscribe = Subscribe {
        subscription: SubscriptionId(1),
        session: SessionId(1),
        destination: orders(),
        credit: Credit::Window { prefetch: 10, extension: None },
        selector: None,
        no_local: false,
        durable_name: None,
        redelivery: None,
    };
    assert_eq!(within(connection.submit(Command::OpenSubscription(Box::new(subscribe)))).await, DONE);
}

#[tokio::test]
async fn a_message_is_sent_delivered_and_settled() {
    let broker = start("whole_way");
    let (connection, sink) = connect("whole_way").await;
    assert_eq!(connection.submit(send(message(1))).await, DONE);
    assert_eq!(sink.sequences(), [1]);
    assert_eq!(connection.submit(acknowledge(1, AckKind::Standard)).await, DONE);
    let counts = broker.counts(&orders()).unwrap();
    assert_eq!((counts.enqueued, counts.acknowledged, counts.pending), (1, 1, 0));
    assert_eq!((broker.destinations(), broker.memory_used()), (vec![orders()], 0));
}

#[tokio::test]
async fn an_outcome_that_is_known_needs_no_waiting() {
    let _broker = start("known");
    let (connection, _sink) = connect("known").await;
    for command in [send(message(1)), acknowledge(1, AckKind::Standard)] {
        let receipt = pin!(connection.submit(command));
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(receipt.poll(&mut context), Poll::Ready(DONE));
    }
}

#[tokio::test]
async fn a_name_is_taken_until_its_broker_is_gone() {
    let broker = start("taken");
    let again = || Broker::start("taken", Settings::default(), Arc::new(MemoryStore), Clock::system());
    assert_eq!(again().unwrap_err(), StartError::NameInUse { name: "taken".to_owned() });
    let (connection, _sink) = connect("taken").await;
    drop(broker);
    assert!(again().is_err(), "the connection keeps it");
    drop(connection);
    again().unwrap().stop();
    let next = again().unwrap();
    assert_eq!(next.name(), "taken");
}

#[tokio::test]
async fn an_unknown_name_is_refused_with_those_that_run() {
    let _broker = start("running");
    let error = provider_for("vm", "//runing").unwrap_err();
    let text = error.to_string();
    assert!(text.contains("vm://runing") && text.contains("`running`"), "{text}");
}

#[test]
fn a_broker_outside_a_runtime_is_refused() {
    let started = Broker::start("nowhere", Settings::default(), Arc::new(MemoryStore), Clock::system());
    assert_eq!(started.unwrap_err(), StartError::NoRuntime { name: "nowhere".to_owned() });
}

#[tokio::test]
async fn a_client_id_has_one_connection_at_a_time() {
    let broker = start("client_ids");
    let open = || broker.connect(options(Some("billing")), Arc::new(Sink::default()));
    let first = open().await.unwrap();
    assert!(matches!(open().await, Err(ProviderError::ClientIdInUse { .. })));
    drop(first);
    let second = open().await.unwrap();
    assert_eq!(second.submit(Command::Close).await, DONE);
    open().await.unwrap();
}

#[tokio::test]
async fn a_user_or_a_password_is_refused_and_not_ignored() {
    let broker = start("users");
    for url in ["vm://users?jms.userName=ann", "vm://users?jms.password=secret"] {
        let error = ConnectionFactory::from_url(url).unwrap().create_connection().await.unwrap_err();
        assert_eq!(error, Error::Unsupported(Capability::Authentication), "{url}");
    }
    broker.connect(options(Some("billing")), Arc::new(Sink::default())).await.unwrap();
}

#[tokio::test]
async fn a_stopped_broker_tells_everyone() {
    let store = Arc::new(SlowStore::default());
    let dyn_store = Arc::clone(&store) as Arc<dyn MessageStore>;
    let broker = Broker::start("stopped", Settings::default(), dyn_store, Clock::system()).unwrap();
    let (connection, sink) = connect("stopped").await;
    let unconfirmed = connection.submit(send(message(1)));
    broker.stop();
    assert_eq!(within(unconfirmed).await, Err(ProviderError::Lost));
    assert!(sink.is_lost());
    let stopped =
        ProviderError::Stopped { broker: "stopped".to_owned(), reason: "it was told to".to_owned() };
    assert_eq!(connection.submit(send(message(2))).await, Err(stopped.clone()));
    assert_eq!(connection.submit(Command::Close).await, Err(stopped.clone()));
    let refused = broker.connect(options(None), Arc::new(Sink::default())).await.unwrap_err();
    assert_eq!(refused, stopped);
    store.complete(&Ok(()));
    assert!(sink.sequences().is_empty());
    start("stopped").stop();
}

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

/// As many effects as one call may perform.
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

#[tokio::test]
async fn a_redelivery_comes_when_the_clock_says_so_and_not_before() {
    let clock = Clock::manual(Timestamp(1_000));
    let _broker =
        Broker::start("on_time", Settings::default(), Arc::new(MemoryStore), clock.clone()).unwrap();
    let (connection, sink) = connect("on_time").await;
    assert_eq!(connection.submit(send(message(1))).await, DONE);
    for count in 2..=4 {
        let failed = AckKind::Redelivered { delay: None, cause: Cause::failure("E1") };
        assert_eq!(connection.submit(acknowledge(count - 1, failed)).await, DONE);
        clock.advance(Duration::from_millis(999));
        tokio::task::yield_now().await;
        assert_eq!(sink.sequences().len() as u64, count - 1);
        clock.advance(Duration::from_millis(1));
        sink.wait_for(count as usize).await;
    }
}

#[tokio::test]
async fn an_earlier_moment_rearms_the_timekeeper() {
    let clock = Clock::manual(Timestamp(1_000));
    let broker = Broker::start("earlier", Settings::default(), Arc::new(MemoryStore), clock.clone()).unwrap();
    let (connection, sink) = connect("earlier").await;
    let mut late = message(1);
    late.headers_mut().expiration = Some(Timestamp(1_000_000));
    assert_eq!(connection.submit(send(late)).await, DONE);
    tokio::task::yield_now().await;
    let failed = AckKind::Redelivered { delay: Some(Duration::from_secs(2)), cause: Cause::failure("E1") };
    assert_eq!(connection.submit(acknowledge(1, failed)).await, DONE);
    clock.advance(Duration::from_secs(2));
    sink.wait_for(2).await;
    assert_eq!(broker.counts(&orders()).unwrap().redelivered, 1);
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
