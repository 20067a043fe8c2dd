//! What cannot be seen from outside: what waits in the inbox while another thread drives.

use std::sync::{OnceLock, mpsc};

use corriere_core::provider::{Credit, Dispatch, Event, SendMessage, SessionMode, Subscribe};
use corriere_core::{
    ConnectionId, DeliveryMode, Destination, Message, MessageId, ProducerId, SessionId, SubscriptionId,
};

use super::*;
use crate::store::MemoryStore;

#[derive(Debug)]
struct Deaf;

impl DeliverySink for Deaf {
    fn deliver(&self, _: Vec<Dispatch>) {}
    fn notify(&self, _: Event) {}
}

#[test]
fn a_broker_that_failed_within_itself_says_so_to_whoever_comes() {
    let edge = Edge::new("failed", Settings::default(), Arc::new(MemoryStore), Clock::system());
    let connection = edge.connect(options(), Arc::new(Deaf)).unwrap();
    let reason = "it failed within itself, which is a bug in it: no entry found";
    edge.fail(&mut edge.lock(), reason.to_owned());
    let error = edge.connect(options(), Arc::new(Deaf)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "broker `failed` has stopped: it failed within itself, which is a bug in it: no entry found"
    );
    drop(edge.submit(connection, Command::Close));
}

/// Is at its first delivery until it is let go.
#[derive(Debug)]
struct Busy {
    gate: Mutex<Option<mpsc::Receiver<()>>>,
    entered: AtomicBool,
}

impl DeliverySink for Busy {
    fn deliver(&self, _: Vec<Dispatch>) {
        let gate = self.gate.lock().unwrap().take();
        if let Some(gate) = gate {
            self.entered.store(true, Ordering::Release);
            let _ = gate.recv();
        }
    }

    fn notify(&self, _: Event) {}
}

fn options() -> ConnectOptions {
    ConnectOptions { connection: ConnectionId::unique(), client_id: None, user: None, password: None }
}

/// Sends to a queue; `expires_in` milliseconds.
fn send(edge: &Edge, queue: &str, expires_in: Option<u64>) -> Command {
    let mut message = Message::text("body");
    let headers = message.headers_mut();
    headers.destination = Some(Destination::queue(queue).unwrap());
    headers.delivery_mode = DeliveryMode::NonPersistent;
    headers.message_id = Some(MessageId { producer: queue.into(), sequence: 1 });
    headers.timestamp = edge.now();
    headers.expiration = expires_in.map(|milliseconds| Timestamp(edge.now().0 + milliseconds));
    let message = Arc::new(message);
    Command::Send(SendMessage { producer: ProducerId(1), message, transaction: None, deadline: None })
}

/// A broker of which another thread drives, and does not get on until it is let go.
fn driven(name: &str) -> (Arc<Edge>, ConnectionKey, mpsc::Sender<()>, thread::JoinHandle<()>) {
    let edge = Edge::new(name, Settings::default(), Arc::new(MemoryStore), Clock::system());
    let (go, gate) = mpsc::channel();
    let sink = Arc::new(Busy { gate: Mutex::new(Some(gate)), entered: AtomicBool::new(false) });
    let connection = edge.connect(options(), Arc::clone(&sink) as Arc<dyn DeliverySink>).unwrap();
    let (session, producer) = (SessionId(1), ProducerId(1));
    let subscribe = Subscribe {
        subscription: SubscriptionId(1),
        session,
        destination: Destination::queue("orders").unwrap(),
        credit: Credit::Window { prefetch: 10, extension: None },
        selector: None,
        no_local: false,
        is_default_credit: false,
        durable_name: None,
        redelivery: None,
    };
    for command in [
        Command::OpenSession { session, mode: SessionMode::Auto },
        Command::OpenProducer { producer, session, identity: "p".into(), destination: None },
        Command::OpenSubscription(Box::new(subscribe)),
    ] {
        drop(edge.submit(connection, command));
    }
    drop(edge.submit(connection, send(&edge, "other", Some(10))));
    let driving = Arc::clone(&edge);
    let driver = thread::spawn(move || drop(driving.submit(connection, send(&driving, "orders", None))));
    for _ in 0..40_000 {
        if sink.entered.load(Ordering::Acquire) {
            break;
        }
        thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(sink.entered.load(Ordering::Acquire), "it is delivered to");
    (edge, connection, go, driver)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_timekeeper_does_what_is_due_once_though_another_drives() {
    let (edge, _, go, driver) = driven("timed");
    tokio::spawn(Edge::keep_time(Arc::downgrade(&edge)));
    let other = Destination::queue("other").unwrap();
    let is_expired = || edge.lock().machine.counts(&other).is_some_and(|counts| counts.expired == 1);
    for _ in 0..40_000 {
        if is_expired() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    assert!(is_expired());
    assert_eq!(edge.inbox.len(), 0, "nothing piles up");
    go.send(()).unwrap();
    driver.join().unwrap();
}

#[test]
fn who_posts_while_another_drives_takes_some_when_much_is_posted() {
    let (edge, connection, go, driver) = driven("backlog");
    let unknown = SubscriptionId(404);
    for number in 1..=20_000 {
        edge.tell(connection, Command::HandedOver { subscription: unknown, number, mark: None });
    }
    assert!(edge.inbox.len() < 2_000, "{}", edge.inbox.len());
    go.send(()).unwrap();
    driver.join().unwrap();
}

/// Submits when it is told that its connection is lost.
#[derive(Debug, Default)]
struct Late {
    of: OnceLock<(Weak<Edge>, ConnectionKey)>,
    receipts: Mutex<Vec<Receipt>>,
}

impl DeliverySink for Late {
    fn deliver(&self, _: Vec<Dispatch>) {}

    fn notify(&self, _: Event) {
        let (edge, connection) = self.of.get().unwrap();
        let edge = edge.upgrade().unwrap();
        for _ in 0..1_000 {
            let receipt = edge.submit(*connection, Command::Recover);
            self.receipts.lock().unwrap().push(receipt);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_who_come_after_a_failure_are_told() {
    let edge = Edge::new("left", Settings::default(), Arc::new(MemoryStore), Clock::system());
    tokio::spawn(Edge::keep_time(Arc::downgrade(&edge)));
    let sink = Arc::new(Late::default());
    let connection = edge.connect(options(), Arc::clone(&sink) as Arc<dyn DeliverySink>).unwrap();
    sink.of.set((Arc::downgrade(&edge), connection)).unwrap();
    edge.fail(&mut edge.lock(), "no".to_owned());
    edge.drive_if_free();
    // The timekeeper may have been woken, and tell the sink in our stead.
    let all_submitted = async {
        while sink.receipts.lock().unwrap().len() < 1_000 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(120), all_submitted).await.expect("it is told");
    let receipts = std::mem::take(&mut *sink.receipts.lock().unwrap());
    for receipt in receipts {
        let told = tokio::time::timeout(std::time::Duration::from_secs(120), receipt).await;
        told.expect("it does not hang").unwrap_err();
    }
}
