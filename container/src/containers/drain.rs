//! The end of a container.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use corriere_core::Release;
use corriere_core::provider::CauseKind;

use super::pool::Run;
use super::run::{cause, tell};
use super::shared::Shared;
use super::{Abandoned, ContainerState, DeliveryEnd, EndKind, StopReport};

/// How long each step after the deadline may take: ending a task, telling the broker, closing. They take no time, unless
/// the broker does not answer.
const STEP: Duration = Duration::from_secs(2);

/// Begins the end, once: nothing more is taken, and a task sees to the rest.
pub(super) fn begin(shared: &Arc<Shared>) {
    let began = shared.state.send_if_modified(|state| match state {
        ContainerState::Running | ContainerState::Paused => {
            *state = ContainerState::Stopping;
            true
        }
        ContainerState::Stopping | ContainerState::Stopped => false,
    });
    if began {
        shared.runtime().spawn(drain(Arc::clone(shared)));
    }
}

/// Ends it as the end of the process would: runs end where they stand, nothing is given back, and nobody is told. What
/// is left of it is gone when the returned future is.
#[cfg(feature = "embedded")]
pub(super) fn kill(shared: &Arc<Shared>) -> impl Future<Output = ()> + use<> {
    shared.state.send_replace(ContainerState::Stopping);
    for task in shared.pool().tasks() {
        task.abort();
    }
    let shared = Arc::clone(shared);
    async move {
        // A blocking listener, or one that never awaits, cannot be ended.
        let _ = tokio::time::timeout(STEP, wait_for_workers(&shared)).await;
        drop(shared.connector.take());
        shared.drop_beans();
        shared.state.send_replace(ContainerState::Stopped);
        shared.report.send_replace(Some(StopReport::default()));
    }
}

async fn drain(shared: Arc<Shared>) {
    let idle = wait_for_workers(&shared);
    // In real time, also where a test moves the clock: a stop must end although nobody moves it.
    let in_time = tokio::time::timeout(shared.settings.shutdown_timeout, idle).await.is_ok();
    let abandoned = if in_time { Vec::new() } else { abandon(&shared).await };
    for abandoned in &abandoned {
        tracing::warn!("{abandoned}");
    }
    close_connection(&shared).await;
    shared.drop_beans();
    shared.state.send_replace(ContainerState::Stopped);
    shared.report.send_replace(Some(StopReport { deferred: false, abandoned }));
}

async fn wait_for_workers(shared: &Shared) {
    let mut summary = shared.summary.subscribe();
    // The sender lives in `shared`, so this cannot fail.
    let _ = summary.wait_for(|summary| summary.workers == 0).await;
}

/// Ends what is still running and gives its messages back, all at the same time.
async fn abandon(shared: &Arc<Shared>) -> Vec<Abandoned> {
    let runs = shared.pool().runs();
    for task in shared.pool().tasks() {
        task.abort();
    }
    let ended = tokio::time::timeout(STEP, wait_for_workers(shared));
    // Those that do not end are found below.
    let _ = ended.await;
    let unended = runs.into_iter().filter(|(_, run)| !run.ended.load(Ordering::Acquire));
    let ends: Vec<_> = unended
        .map(|(worker, run)| {
            let shared = Arc::clone(shared);
            tokio::spawn(async move { end(&shared, worker, &run).await })
        })
        .collect();
    let mut abandoned = Vec::with_capacity(ends.len());
    for end in ends {
        // Nothing in it panics, and nobody aborts it.
        abandoned.extend(end.await.ok());
    }
    abandoned
}

/// Gives the message of one run back. Where the listener had settled it by itself nothing is given back.
async fn end(shared: &Shared, worker: u64, run: &Run) -> Abandoned {
    const TEXT: &str = "the listener had not ended when its container was stopped";
    let still_running = run.thread.is_at_work() || shared.pool().contains(worker);
    let running_for = run.since.elapsed();
    let was_settled = run.delivery.is_settled();
    let release =
        Release::Redeliver { delay: None, cause: cause(shared.listener.id, CauseKind::Failure, TEXT) };
    let released = tokio::time::timeout(STEP, run.delivery.release(release)).await;
    let kind = match released {
        // Where a commit is on its way and hangs, nobody knows.
        Ok(Ok(())) if was_settled => EndKind::FailedAfterSettling,
        Ok(Ok(())) => EndKind::Redelivered,
        Ok(Err(_)) | Err(_) => EndKind::Unsettled,
    };
    let message_id = run.delivery.headers().message_id.clone();
    let name = message_id.as_ref().map_or_else(|| "a message without an id".to_owned(), ToString::to_string);
    tell(
        shared,
        &DeliveryEnd {
            listener: shared.listener.id,
            message_id,
            delivery_count: run.delivery.count(),
            kind,
            failure: Some(TEXT.to_owned()),
            panicked: false,
            took: run.since.elapsed(),
        },
    );
    Abandoned {
        listener: shared.listener.id.to_owned(),
        message_id: name,
        running_for,
        still_running,
        end: kind,
    }
}

/// Closes the connection. A blocking listener that runs on would hold that up, so it is not awaited for ever; the closing
/// goes on by itself.
async fn close_connection(shared: &Shared) {
    let Some(connection) = shared.connector.take() else { return };
    let closing = tokio::spawn(async move { connection.close().await });
    if let Ok(Ok(Err(error))) = tokio::time::timeout(STEP, closing).await {
        tracing::warn!(listener = shared.listener.id, %error, "the connection was not closed in order");
    }
}
