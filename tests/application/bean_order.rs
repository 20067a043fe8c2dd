//! In which order beans are made, closed and dropped, and what a failure leaves behind.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use corriere::Bean;
use corriere::listener::ListenerDef;
use corriere::prelude::*;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::{application, refused};

const HANG: Duration = Duration::from_secs(30);

/// What happened to the beans of one application.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, what: &str, name: &str) {
        self.0.lock().unwrap().push(format!("{what} {name}"));
    }

    fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

#[derive(Debug, Deserialize)]
struct Tracking {
    name: String,
    #[serde(default)]
    fails: String,
}

/// A bean that tells what happens to it.
#[derive(Debug)]
struct Tracked {
    config: Tracking,
    log: Log,
}

#[corriere::bean(type = "tracked", close = "close")]
impl Tracked {
    async fn new(log: Bean<Log>, config: Tracking) -> Result<Self, std::io::Error> {
        log.add("begin", &config.name);
        // A constructor that takes its time.
        tokio::task::yield_now().await;
        if config.fails == "to begin" {
            return Err(std::io::Error::other("not today"));
        }
        log.add("make", &config.name);
        Ok(Self { config, log: Log::clone(&log) })
    }

    async fn close(&self) -> Result<(), std::io::Error> {
        tokio::task::yield_now().await;
        self.log.add("close", &self.config.name);
        match self.config.fails.as_str() {
            "to close" => Err(std::io::Error::other("it is stuck")),
            "to end" => std::future::pending().await,
            fails => {
                assert_ne!(fails, "badly");
                Ok(())
            }
        }
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.log.add("drop", &self.config.name);
    }
}

/// Made of two others, by their names.
struct Station {
    near: Bean<Tracked>,
    log: Log,
}

#[corriere::bean(type = "station", close = "shut")]
#[expect(clippy::needless_pass_by_value, reason = "a constructor owns its arguments")]
fn station(#[bean("first")] near: Bean<Tracked>, second: Bean<Tracked>, log: Bean<Log>) -> Station {
    assert_eq!((&*near.config.name, &*second.config.name), ("first", "second"));
    log.add("make", "station");
    Station { near, log: Log::clone(&log) }
}

impl Station {
    fn shut(&self) {
        self.log.add("shut", "station");
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        self.log.add("drop", "station");
    }
}

/// Whoever needs the others stands first.
const STATION: &str = "[beans.station]\ntype = \"station\"\n[beans.second]\ntype = \"tracked\"\nname = \"second\"\n\
                       [beans.first]\ntype = \"tracked\"\nname = \"first\"\n";

#[tokio::test]
async fn beans_are_made_in_order_of_need_and_closed_and_dropped_in_the_reverse() {
    let log = Log::default();
    // Whatever constructors do, the start can be a task.
    let start = tokio::spawn(application(STATION).bean(log.clone()).listeners([]).start());
    let app = start.await.unwrap().unwrap();
    assert_eq!(
        log.told(),
        ["begin first", "make first", "begin second", "make second", "make station"],
        "each of them once"
    );
    assert_eq!(app.bean_of::<Bean<Station>>().unwrap().near.config.name, "first");
    assert!(app.stop().await.is_clean());
    assert_eq!(
        log.told(),
        ["shut station", "close second", "close first", "drop station", "drop second", "drop first"]
    );
}

#[tokio::test]
async fn a_check_calls_no_constructor() {
    let log = Log::default();
    application(STATION).bean(log.clone()).listeners([]).check().unwrap();
    assert!(log.told().is_empty());
}

#[tokio::test]
async fn an_application_that_is_dropped_closes_nothing_and_drops_in_the_reverse_order() {
    let log = Log::default();
    let app = application(STATION).bean(log.clone()).listeners([]).start().await.unwrap();
    log.told();
    drop(app);
    assert_eq!(log.told(), ["drop station", "drop second", "drop first"]);
}

#[tokio::test]
async fn a_failure_in_the_middle_leaves_nothing_behind() {
    let log = Log::default();
    let text = format!(
        "[beans.zero]\ntype = \"tracked\"\nname = \"zero\"\n{}",
        STATION.replace("name = \"second\"", "name = \"second\"\nfails = \"to begin\"")
    );
    let told = refused(application(&text).bean(log.clone()).listeners([])).await;
    assert_eq!(
        told,
        ["`beans.second` (config.toml:6:1): the bean could not be made: not today"],
        "and nothing is said of who needs it"
    );
    assert_eq!(
        log.told(),
        [
            "begin zero",
            "make zero",
            "begin first",
            "make first",
            "begin second",
            "close first",
            "close zero",
            "drop first",
            "drop zero"
        ]
    );
}

#[tokio::test]
async fn what_cannot_be_closed_keeps_no_other_from_being_closed() {
    let log = Log::default();
    let names = ["works", "to close", "badly", "works as well"];
    let text: String = names
        .iter()
        .enumerate()
        .map(|(index, name)| {
            format!("[beans.b{index}]\ntype = \"tracked\"\nname = \"{name}\"\nfails = \"{name}\"\n")
        })
        .collect();
    let app = application(&text).bean(log.clone()).listeners([]).start().await.unwrap();
    log.told();
    assert!(app.stop().await.is_clean());
    assert_eq!(log.told()[..4], ["close works as well", "close badly", "close to close", "close works"]);
}

#[jms_listener(queue = "idle")]
async fn is_idle(_text: String) {}

#[tokio::test]
async fn a_bean_that_never_closes_ends_neither_the_stop_nor_the_others() {
    let log = Log::default();
    let text = "[broker]\nname = \"never-closes\"\n[listener_containers.default]\nshutdown_timeout = \"10ms\"\n\
                [beans.one]\ntype = \"tracked\"\nname = \"one\"\n\
                [beans.two]\ntype = \"tracked\"\nname = \"two\"\nfails = \"to end\"\n";
    let app = application(text).bean(log.clone()).listeners([is_idle::DEF]).start().await.unwrap();
    log.told();
    timeout(HANG, app.stop()).await.unwrap();
    assert_eq!(log.told(), ["close two", "close one", "drop two", "drop one"]);
}

/// Closed by a method that blocks until the test lets it go on.
struct Stubborn {
    log: Bean<Log>,
    end: Bean<Mutex<std::sync::mpsc::Receiver<()>>>,
}

#[corriere::bean(type = "stubborn", close = "close")]
impl Stubborn {
    fn new(log: Bean<Log>, end: Bean<Mutex<std::sync::mpsc::Receiver<()>>>) -> Self {
        Self { log, end }
    }

    fn close(&self) {
        self.log.add("begin", "to close");
        let _ = self.end.lock().unwrap().recv_timeout(HANG);
        self.log.add("end", "to close");
    }
}

#[tokio::test]
async fn a_bean_whose_closing_blocks_ends_neither_the_stop_nor_the_others() {
    let log = Log::default();
    let text = "[broker]\nname = \"blocks-to-close\"\n[listener_containers.default]\nshutdown_timeout = \"10ms\"\n\
                [beans.one]\ntype = \"tracked\"\nname = \"one\"\n[beans.two]\ntype = \"stubborn\"\n";
    let (free, end) = std::sync::mpsc::channel::<()>();
    let app = application(text).bean(log.clone()).bean(Mutex::new(end)).listeners([is_idle::DEF]);
    let app = app.start().await.unwrap();
    log.told();
    // In a runtime of one thread nothing else would happen meanwhile, a signal included.
    timeout(HANG, app.stop()).await.unwrap();
    assert_eq!(log.told(), ["begin to close", "close one", "drop one"]);
    drop(free);
}

/// Closed by a method that panics.
struct Slams(bool);

#[corriere::bean(type = "slams", close = "close")]
impl Slams {
    fn new() -> Self {
        Self(false)
    }

    fn close(&self) {
        assert!(self.0, "badly");
    }
}

#[tokio::test]
async fn a_panic_in_a_method_that_blocks_keeps_no_other_bean_from_being_closed() {
    let log = Log::default();
    let text = "[beans.one]\ntype = \"tracked\"\nname = \"one\"\n[beans.two]\ntype = \"slams\"\n";
    let app = application(text).bean(log.clone()).listeners([]).start().await.unwrap();
    log.told();
    assert!(app.stop().await.is_clean());
    assert_eq!(log.told(), ["close one", "drop one"]);
}

/// Told when a run has begun; the run ends with the process.
#[derive(Debug, Default)]
struct Gate(Notify);

#[jms_listener(queue = "held")]
async fn holds_on(_text: String, gate: Bean<Gate>, _tracked: Bean<Tracked>, log: Bean<Log>) {
    gate.0.notify_one();
    let _told_when_it_ends = Ends(Log::clone(&log));
    std::future::pending::<()>().await;
}

struct Ends(Log);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.add("end", "run");
    }
}

/// A thread that nobody can end keeps its beans, and the application stops nevertheless.
#[jms_listener(queue = "held")]
#[expect(clippy::needless_pass_by_value, reason = "a listener owns its arguments")]
fn holds_on_blocking(
    _text: String,
    gate: Bean<Gate>,
    _tracked: Bean<Tracked>,
    end: Bean<Mutex<std::sync::mpsc::Receiver<()>>>,
) {
    gate.0.notify_one();
    let _ = end.lock().unwrap().recv();
}

async fn stop_while_it_is_at_work(listener: ListenerDef, log: &Log) {
    let text = format!(
        "[broker]\nname = \"{}\"\n[templates.any]\n[listener_containers.default]\nshutdown_timeout = \"10ms\"\n[beans.held]\n\
         type = \"tracked\"\nname = \"held\"\n",
        listener.id
    );
    let (free, end) = std::sync::mpsc::channel::<()>();
    let app = application(&text)
        .bean(log.clone())
        .bean(Gate::default())
        .bean(Mutex::new(end))
        .listeners([listener])
        .start()
        .await
        .unwrap();
    let gate: Bean<Gate> = app.bean("gate").unwrap();
    let template: JmsTemplate = app.bean_of().unwrap();
    template.convert_and_send_to("held", "x").await.unwrap();
    timeout(HANG, gate.0.notified()).await.unwrap();
    log.told();
    let report = timeout(HANG, app.stop()).await.unwrap();
    assert_eq!(report.abandoned.len(), 1);
    drop(free);
}

#[tokio::test]
async fn listeners_end_before_their_beans_are_closed() {
    let log = Log::default();
    stop_while_it_is_at_work(holds_on::DEF, &log).await;
    assert_eq!(log.told(), ["end run", "close held", "drop held"]);
}

#[tokio::test]
async fn a_bean_that_an_abandoned_run_still_holds_is_closed_and_does_not_keep_the_stop() {
    let log = Log::default();
    stop_while_it_is_at_work(holds_on_blocking::DEF, &log).await;
    assert_eq!(log.told()[0], "close held");
}

/// Sends as it is made and as it is closed.
struct Cautious(Bean<JmsTemplate>);

#[corriere::bean(type = "cautious", close = "close")]
impl Cautious {
    async fn new(template: Bean<JmsTemplate>) -> Result<Self, TemplateError> {
        template.convert_and_send_to("life", "begins").await?;
        Ok(Self(template))
    }

    async fn close(&self) -> Result<(), TemplateError> {
        self.0.convert_and_send_to("life", "ends").await.map(drop)
    }
}

#[corriere::test]
async fn the_broker_is_there_as_long_as_beans_are(app: TestApp) {
    let config = "[templates.any]\n[beans.cautious]\ntype = \"cautious\"\n";
    let app = app.config(config).start().await.restart().await;
    assert_eq!(app.take_one::<String>("life").await, "begins");
    assert_eq!(app.take_one::<String>("life").await, "ends");
    assert_eq!(app.take_one::<String>("life").await, "begins");
    app.is_empty("life");
}
