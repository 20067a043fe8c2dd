//! The table of `docs/acknowledgement.md`, row by row: what it says is done, and compared with what the broker was told and with
//! what comes again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use corriere::containers::{ContainerSettings, ListenerContainer};
use corriere::listener::{Acknowledge, ListenerDef};
use corriere::prelude::*;
use corriere_core::client::ListenerFailure;
use corriere_core::{AcknowledgeMode, Connection, Consumer, Destination, Session};
use corriere_templates::JsonConverter;
use tokio::sync::Semaphore;

use crate::overheard;
use crate::support::{TestBroker, eventually, next, now, queue, text, within};

const TABLE: &str = include_str!("../../docs/acknowledgement.md");
const CLIENT_ID: &str = "auditor";
const SUBSCRIPTION: &str = "audit";

/// A row's mode, style and destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Case {
    mode: &'static str,
    style: &'static str,
    destination: &'static str,
}

/// The rest of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Cells {
    told: String,
    asked: String,
    fails: String,
    dies: String,
    closes: String,
}

/// Every combination that there is.
fn cases() -> Vec<Case> {
    let modes = [
        "AUTO",
        "AUTO optimized",
        "DUPS_OK",
        "DUPS_OK optimized",
        "CLIENT",
        "INDIVIDUAL",
        "TRANSACTED",
        "manual",
    ];
    let mut cases = Vec::new();
    for mode in modes {
        for style in ["receive", "listener", "container"] {
            if mode == "manual" && style != "container" {
                continue;
            }
            let destinations = ["queue", "topic", "durable"];
            cases.extend(destinations.map(|destination| Case { mode, style, destination }));
        }
    }
    cases
}

/// The rows of the table, one for each combination that a row takes together.
fn rows() -> BTreeMap<Case, Cells> {
    let known = cases();
    let mut rows = BTreeMap::new();
    let lines = TABLE.lines().skip_while(|line| !line.starts_with("| mode |")).skip(2);
    for line in lines.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [mode, styles, destinations, told, asked, fails, dies, closes] = cells[..] else {
            panic!("a row of {} cells: {line}", cells.len());
        };
        let [told, asked, fails, dies, closes] = [told, asked, fails, dies, closes].map(str::to_owned);
        let cells = Cells { told, asked, fails, dies, closes };
        for style in styles.split(", ") {
            for destination in destinations.split(", ") {
                let is_this =
                    |case: &&Case| (case.mode, case.style, case.destination) == (mode, style, destination);
                let case = known.iter().find(is_this);
                let case = *case.unwrap_or_else(|| panic!("a row that nothing checks: {line}"));
                assert_eq!(rows.insert(case, cells.clone()), None, "a second row for {case:?}");
            }
        }
    }
    rows
}

#[test]
fn every_combination_has_a_row_of_the_documented_table() {
    let rows = rows();
    let missing: Vec<_> = cases().into_iter().filter(|case| !rows.contains_key(case)).collect();
    assert!(missing.is_empty(), "without a row: {missing:?}");
}

#[tokio::test]
async fn each_row_of_the_documented_table_is_true() {
    for (case, documented) in rows() {
        let (told, asked) = told_and_asked(case).await;
        let fails = fails(case).await;
        let (dies, closes) = (comes_again(case, true).await, comes_again(case, false).await);
        assert_eq!(Cells { told, asked, fails, dies, closes }, documented, "{case:?}");
    }
}

/// What a handler sees and does.
#[derive(Debug)]
struct Handling {
    seen: Mutex<Vec<Delivery>>,
    /// The handler of m10 waits here.
    gate: Semaphore,
    /// Whether the first delivery of m2 fails.
    fails: bool,
}

impl Handling {
    fn new(fails: bool) -> Bean<Self> {
        Bean::new(Self { seen: Mutex::default(), gate: Semaphore::new(0), fails })
    }

    async fn handle(&self, delivery: Delivery) -> Result<(), ListenerFailure> {
        let (is_m2, is_m10) = (text(&delivery) == "m2", text(&delivery) == "m10");
        let fails = self.fails && is_m2 && delivery.count() == 1;
        self.seen.lock().unwrap().push(delivery);
        if is_m10 {
            self.gate.acquire().await?.forget();
        }
        if fails { Err("not now".into()) } else { Ok(()) }
    }

    fn seen(&self) -> Vec<(String, u32)> {
        let seen = self.seen.lock().unwrap();
        seen.iter().map(|delivery| (text(delivery).to_owned(), delivery.count())).collect()
    }

    async fn until_seen(&self, count: usize) {
        eventually("what is handled", || match self.seen() {
            seen if seen.len() >= count => Ok(()),
            seen => Err(format!("{seen:?}")),
        })
        .await;
    }
}

#[jms_listener(queue = "documented")]
async fn documented(delivery: Delivery, handling: Bean<Handling>) -> Result<(), ListenerError> {
    handling.handle(delivery).await.or_retry_after(std::time::Duration::ZERO)
}

/// A consumer in the style of a case.
struct Scene {
    case: Case,
    broker: TestBroker,
    handling: Bean<Handling>,
    source: Source,
}

enum Source {
    Session { connection: Connection, session: Session, consumer: Consumer },
    Container(ListenerContainer),
}

impl Scene {
    async fn start(case: Case, fails: bool) -> Self {
        let broker = TestBroker::start();
        let handling = Handling::new(fails);
        let options = format!(
            "jms.prefetchPolicy.all=10&jms.clientID={CLIENT_ID}&jms.optimizeAcknowledge={}",
            case.mode.ends_with("optimized")
        );
        let source = if case.style == "container" {
            let factory = overheard::factory(&broker, &options);
            let mut beans = corriere::Beans::new();
            beans.add("handling", handling.clone()).unwrap();
            let listener: ListenerDef = documented::DEF;
            let settings = ContainerSettings {
                acknowledge: acknowledge(case),
                subscription: (case.destination == "durable").then(|| SUBSCRIPTION.into()),
                beans: Arc::new(beans),
                ..ContainerSettings::new(factory, destination(case), Arc::new(JsonConverter::new()))
            };
            let container = ListenerContainer::start(listener, settings).unwrap();
            within(container.ready()).await;
            Source::Container(container)
        } else {
            let (connection, session) = overheard::connect_with(&broker, &options, mode(case)).await;
            let consumer = consumer(&session, case).await;
            Source::Session { connection, session, consumer }
        };
        Self { case, broker, handling, source }
    }

    /// Sends messages, of which none is handled before all are there.
    async fn send(&self, count: usize) {
        let destination = destination(self.case);
        match &self.source {
            // On a topic its consumer stays.
            Source::Container(container) if destination.is_topic() => {
                container.pause().unwrap();
                self.broker.send_numbered(&destination, count).await;
                container.resume().unwrap();
            }
            Source::Container(_) => self.broker.send_numbered(&destination, count).await,
            Source::Session { consumer, .. } => {
                self.broker.send_numbered(&destination, count).await;
                if self.case.style == "listener" {
                    let handling = self.handling.clone();
                    let listener = move |delivery| {
                        let handling = handling.clone();
                        async move { handling.handle(delivery).await }
                    };
                    consumer.set_message_listener(listener).unwrap();
                }
            }
        }
    }

    /// Sends ten messages, of which nine are handled when this returns and the tenth is with a handler, if there is one.
    async fn handle_nine(&self) {
        self.send(10).await;
        match &self.source {
            Source::Session { consumer, .. } if self.case.style == "receive" => {
                for _ in 0..9 {
                    let delivery = next(consumer).await;
                    self.handling.seen.lock().unwrap().push(delivery);
                }
            }
            _ => self.handling.until_seen(10).await,
        }
    }

    async fn close(&self) {
        self.handling.gate.add_permits(1);
        match &self.source {
            Source::Session { connection, .. } => within(connection.close()).await.unwrap(),
            Source::Container(container) => drop(within(container.stop()).await),
        }
    }
}

fn destination(case: Case) -> Destination {
    match case.destination {
        "queue" => queue("documented"),
        _ => Destination::topic("documented").unwrap(),
    }
}

async fn consumer(session: &Session, case: Case) -> Consumer {
    let consumer = match case.destination {
        "durable" => session.create_durable_consumer(&destination(case), SUBSCRIPTION).await,
        _ => session.create_consumer(&destination(case)).await,
    };
    consumer.unwrap()
}

fn mode(case: Case) -> AcknowledgeMode {
    match case.mode {
        "AUTO" | "AUTO optimized" => AcknowledgeMode::Auto,
        "DUPS_OK" | "DUPS_OK optimized" => AcknowledgeMode::DupsOk,
        "INDIVIDUAL" => AcknowledgeMode::Individual,
        "TRANSACTED" => AcknowledgeMode::Transacted,
        _ => AcknowledgeMode::Client,
    }
}

fn acknowledge(case: Case) -> Acknowledge {
    match mode(case) {
        AcknowledgeMode::Auto => Acknowledge::Auto,
        AcknowledgeMode::DupsOk => Acknowledge::DupsOk,
        AcknowledgeMode::Individual => Acknowledge::Individual,
        AcknowledgeMode::Transacted => Acknowledge::Transacted,
        AcknowledgeMode::Client if case.mode == "manual" => Acknowledge::Manual,
        AcknowledgeMode::Client => Acknowledge::Client,
    }
}

/// What the broker was told when nine messages were handled, and what it is told when the application asks.
async fn told_and_asked(case: Case) -> (String, String) {
    let scene = Scene::start(case, false).await;
    scene.handle_nine().await;
    let told = in_words(&overheard::acknowledged(&scene.broker));
    let is_asked = match (&scene.source, case.mode) {
        (Source::Session { session, .. }, "TRANSACTED") => {
            session.commit().await.unwrap();
            true
        }
        (Source::Session { .. }, "CLIENT" | "INDIVIDUAL") | (Source::Container(_), "manual") => {
            let third = scene.handling.seen.lock().unwrap()[2].clone();
            third.acknowledge().await.unwrap();
            true
        }
        _ => false,
    };
    let said = overheard::acknowledged(&scene.broker);
    assert!(is_asked || said.is_empty(), "{case:?}: {said:?}");
    scene.close().await;
    (told, if is_asked { in_words(&said) } else { "–".to_owned() })
}

/// The words of nine messages, shorter where they are the same of each.
fn in_words(said: &[String]) -> String {
    let each = |words: &dyn Fn(usize) -> Vec<String>| (1..=9).flat_map(words).eq(said.iter().cloned());
    match said {
        [] => "nothing".to_owned(),
        _ if each(&|number| vec![format!("STANDARD {number}")]) => "STANDARD each".to_owned(),
        _ if each(&|number| vec![format!("INDIVIDUAL {number}")]) => "INDIVIDUAL each".to_owned(),
        _ if each(&|number| vec![format!("STANDARD {number}"), "commit".to_owned()]) => {
            "STANDARD and commit each".to_owned()
        }
        _ => said.join(", "),
    }
}

/// What becomes of a message whose handler fails once.
async fn fails(case: Case) -> String {
    if case.style == "receive" {
        return "–".to_owned();
    }
    let scene = Scene::start(case, true).await;
    scene.send(3).await;
    scene.handling.until_seen(3).await;
    let again = |text: &str| scene.handling.seen().contains(&(text.to_owned(), 2));
    let outcome = match (&scene.source, mode(case)) {
        (Source::Session { session, .. }, AcknowledgeMode::Client | AcknowledgeMode::Transacted) => {
            // All three were seen once, and nothing comes by itself.
            crate::support::others_run().await;
            assert!(!again("m2"), "{case:?}: {:?}", scene.handling.seen());
            let how = if session.is_transacted() {
                session.rollback().await.unwrap();
                "waits for `rollback`"
            } else {
                session.recover().await.unwrap();
                "waits for `recover`"
            };
            scene.handling.until_seen(6).await;
            how
        }
        _ => {
            scene.handling.until_seen(4).await;
            assert!(!again("m1") && !again("m3"), "{case:?}: {:?}", scene.handling.seen());
            "comes again"
        }
    };
    assert!(again("m2"), "{case:?}: {:?}", scene.handling.seen());
    scene.close().await;
    outcome.to_owned()
}

/// How many of the nine come again after a crash, or after a close.
async fn comes_again(case: Case, dies: bool) -> String {
    let scene = Scene::start(case, false).await;
    scene.handle_nine().await;
    if dies {
        overheard::crash(&scene.broker);
    } else {
        scene.close().await;
    }
    let connection = scene.broker.factory(&format!("jms.clientID={CLIENT_ID}"));
    let connection = within(connection.create_connection()).await.unwrap();
    connection.start().unwrap();
    let session = connection.create_session(AcknowledgeMode::Auto).await.unwrap();
    let consumer = consumer(&session, case).await;
    let mut again = 0;
    while let Some(text) = now(&consumer).await {
        again += usize::from(text != "m10");
    }
    scene.handling.gate.close();
    match again {
        0 => "none".to_owned(),
        9 => "all".to_owned(),
        some => format!("{some} of 9"),
    }
}
