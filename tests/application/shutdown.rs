//! The end of an application.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use corriere::prelude::*;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::application;

const HANG: Duration = Duration::from_secs(120);

/// Told when a run has begun, and tells when it may end.
#[derive(Clone, Debug, Default)]
struct Gate {
    begun: Arc<Notify>,
    may_end: Arc<Notify>,
}

#[jms_listener(queue = "work")]
async fn on_work(_work: String, gate: Bean<Gate>) {
    gate.begun.notify_one();
    gate.may_end.notified().await;
}

async fn at_work(broker: &str, shutdown_timeout: &str) -> (Application, JmsTemplate, Gate) {
    let gate = Gate::default();
    let app = application("[broker]\n[templates.work]\n[listener_containers.default]\n")
        .set("broker.name", broker)
        .set("listener_containers.default.shutdown_timeout", shutdown_timeout)
        .named_bean("gate", gate.clone())
        .listeners([on_work::DEF])
        .start()
        .await
        .unwrap();
    let template: JmsTemplate = app.bean("work").unwrap();
    template.convert_and_send_to("work", "something").await.unwrap();
    timeout(HANG, gate.begun.notified()).await.unwrap();
    (app, template, gate)
}

#[tokio::test]
async fn a_stop_waits_for_the_run_that_is_under_way() {
    let (app, _, gate) = at_work("waiting", "60s").await;
    let mut stop = Box::pin(app.stop());
    assert!(timeout(Duration::from_millis(50), &mut stop).await.is_err(), "it did not wait");
    gate.may_end.notify_one();
    assert!(timeout(HANG, stop).await.unwrap().is_clean());
}

/// Case C-41 (c).
#[tokio::test]
async fn a_stop_ends_at_its_deadline_and_names_what_was_at_work() {
    let (app, _, _gate) = at_work("deadline", "50ms").await;
    let report = timeout(HANG, app.stop()).await.unwrap();
    assert_eq!(report.abandoned.len(), 1);
    assert_eq!(report.abandoned[0].listener, "on_work");
}

/// C-41 (f).
#[cfg(unix)]
#[tokio::test]
async fn sigterm_drains_and_ends() {
    let (app, _, gate) = at_work("signals", "60s").await;
    let mut run = Box::pin(app.run_until_shutdown());
    // Polled once, so that the signal no longer ends this process.
    assert!(timeout(Duration::ZERO, &mut run).await.is_err());
    let killed = Command::new("kill").args(["-TERM", &std::process::id().to_string()]).status().unwrap();
    assert!(killed.success());
    gate.may_end.notify_one();
    timeout(HANG, run).await.unwrap().unwrap();
}
