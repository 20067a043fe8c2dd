//! Stops that are asked for from inside, and what is left of an application afterwards.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use corriere::containers::StopReport;
use corriere::listener::ListenerDef;
use corriere::prelude::*;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::application;

const HANG: Duration = Duration::from_secs(120);

/// Tells when it is dropped.
struct Noted(Arc<AtomicBool>);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The application that a listener stops, and how that went.
#[derive(Clone, Default)]
struct Own {
    application: Arc<Mutex<Option<Application>>>,
    report: Arc<Mutex<Option<StopReport>>>,
    may_end: Arc<Notify>,
}

impl Own {
    async fn stop(&self) {
        let application = self.application.lock().unwrap().take().unwrap();
        let report = application.stop().await;
        *self.report.lock().unwrap() = Some(report);
        self.may_end.notified().await;
    }
}

#[jms_listener(queue = "stops")]
async fn stops_its_application(_text: String, own: Bean<Own>, _noted: Bean<Noted>) {
    own.stop().await;
}

#[jms_listener(queue = "stops")]
#[expect(clippy::needless_pass_by_value, reason = "a listener owns its arguments")]
fn stops_its_application_blocking(_text: String, own: Bean<Own>, _noted: Bean<Noted>) {
    tokio::runtime::Handle::current().block_on(own.stop());
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let waited = timeout(HANG, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    assert!(waited.await.is_ok(), "waited in vain until {what}");
}

async fn start(broker: &str, listener: ListenerDef, own: &Own) -> (Application, Arc<AtomicBool>) {
    let dropped = Arc::new(AtomicBool::new(false));
    let app = application("[broker]\n[templates.any]")
        .set("broker.name", broker)
        .named_bean("own", own.clone())
        .named_bean("noted", Noted(Arc::clone(&dropped)))
        .listeners([listener])
        .start()
        .await
        .unwrap();
    (app, dropped)
}

/// Decision 11.
#[tokio::test]
async fn an_application_that_is_stopped_by_its_own_listener_stops_after_that_run() {
    for listener in [stops_its_application::DEF, stops_its_application_blocking::DEF] {
        let own = Own::default();
        let (app, dropped) = start(listener.id, listener, &own).await;
        let template: JmsTemplate = app.bean("any").unwrap();
        let broker = app.broker().unwrap().clone();
        let queue = app.destinations().resolve("stops").unwrap();
        *own.application.lock().unwrap() = Some(app);
        template.convert_and_send_to("stops", "x").await.unwrap();

        until("the stop has returned", || own.report.lock().unwrap().is_some()).await;
        assert!(own.report.lock().unwrap().as_ref().unwrap().deferred, "{}", listener.id);
        assert!(!dropped.load(Ordering::SeqCst), "{}: the run may still use its beans", listener.id);
        assert_eq!(broker.counts(&queue).unwrap().acknowledged, 0);
        own.may_end.notify_one();
        until("the beans are gone", || dropped.load(Ordering::SeqCst)).await;
        assert_eq!(broker.counts(&queue).unwrap().acknowledged, 1, "{}: its message is settled", listener.id);
    }
}

#[jms_listener(queue = "noted")]
async fn on_noted(_text: String, _noted: Bean<Noted>) {}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_beans_are_gone_when_a_stop_has_returned() {
    for round in 0..100 {
        let (app, dropped) = start("noted", on_noted::DEF, &Own::default()).await;
        let template: JmsTemplate = app.bean("any").unwrap();
        // Who keeps a handle to a container keeps no beans.
        let container = app.container("on_noted").unwrap().clone();
        template.convert_and_send_to("noted", "x").await.unwrap();
        timeout(HANG, app.stop()).await.unwrap();
        assert!(dropped.load(Ordering::SeqCst), "round {round}");
        drop(container);
    }
}

#[jms_listener(queue = "blocked")]
#[expect(clippy::needless_pass_by_value, reason = "a listener owns its arguments")]
fn on_blocked(_text: String, gate: Bean<Mutex<mpsc::Receiver<()>>>) {
    let _ = gate.lock().unwrap().recv();
}

#[tokio::test]
async fn a_blocking_run_is_waited_for_by_the_stop_of_its_application() {
    let (free, gate) = mpsc::channel();
    let app = application("[broker]\nname = \"blocked\"\n[templates.any]")
        .named_bean("gate", Mutex::new(gate))
        .listeners([on_blocked::DEF])
        .start()
        .await
        .unwrap();
    let template: JmsTemplate = app.bean("any").unwrap();
    template.convert_and_send_to("blocked", "x").await.unwrap();
    until("it is at work", || app.containers()[0].status().busy == 1).await;
    let mut stop = Box::pin(app.stop());
    assert!(timeout(Duration::from_millis(50), &mut stop).await.is_err(), "it did not wait");
    free.send(()).unwrap();
    assert!(timeout(HANG, stop).await.unwrap().is_clean());
}
