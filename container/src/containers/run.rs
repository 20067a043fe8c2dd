//! One delivery: the listener is called, its reply sent, the message settled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use corriere_core::provider::{Cause, CauseKind};
use corriere_core::{Delivery, Destination, Error, Message, Release, SendOptions, Session};
use corriere_templates::TemplateError;
use tracing::field::Empty;
use tracing::{Instrument, Span, info_span};

use super::pool::Run;
use super::shared::{Counts, Shared};
use super::{DeliveryEnd, EndKind};
use crate::listener::{Acknowledge, Disposition, Invocation, ListenerError, ListenerThread, Outcome};
use corriere_core::panic::{catch_panic, caught};

/// Whether a session can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionAfter {
    Usable,
    Broken,
}

/// A failure of the listener, or of the reply that it wanted to be sent. Nothing of the listener's own is left in it.
struct Failure {
    kind: CauseKind,
    text: String,
    disposition: Disposition,
    panicked: bool,
}

impl Failure {
    /// Showing and dropping the error run code of the listener's, which may panic like any other.
    fn of(error: ListenerError) -> Self {
        let disposition = error.disposition();
        let kind = caught(|| kind(error.source())).unwrap_or(CauseKind::Failure);
        let text = caught(|| error.chain()).map_err(|panic| {
            format!("the listener failed, and its error panicked while it was shown: {panic}")
        });
        let dropped = caught(|| drop(error)).map_err(|panic| {
            format!("the listener failed, and its error panicked while it was dropped: {panic}")
        });
        let panicked = text.is_err() || dropped.is_err();
        // Where the error can be shown it says more than how its drop went.
        Self { kind, text: text.unwrap_or_else(|panic| panic), disposition, panicked }
    }

    fn of_reply(error: &Error) -> Self {
        let disposition = Disposition::Redeliver { delay: None };
        Self {
            kind: kind(error),
            text: format!("its reply could not be sent: {error}"),
            disposition,
            panicked: false,
        }
    }

    fn panic(panic: &str) -> Self {
        let text = format!("the listener panicked: {panic}");
        let disposition = Disposition::Redeliver { delay: None };
        Self { kind: CauseKind::Failure, text, disposition, panicked: true }
    }
}

/// The class of a failure. That the broker had no room for what the listener sent says nothing about the message.
fn kind(error: &(dyn std::error::Error + 'static)) -> CauseKind {
    let has_no_room = |error: &Error| matches!(error, Error::Provider(error) if error.lacks_room());
    let mut next = Some(error);
    while let Some(error) = next {
        let of_template = || match error.downcast_ref() {
            Some(TemplateError::Client(error)) => Some(error),
            _ => None,
        };
        if error.downcast_ref().or_else(of_template).is_some_and(has_no_room) {
            return CauseKind::Resource;
        }
        next = error.source();
    }
    CauseKind::Failure
}

/// How a delivery ended, the failure in words, and what that means for the session.
struct Ending {
    kind: EndKind,
    failure: Option<String>,
    panicked: bool,
    after: SessionAfter,
}

/// Notes that a worker is busy, until the returned value is dropped.
pub(super) fn begin(shared: &Arc<Shared>, worker: u64, delivery: &Delivery) -> Busy {
    let (ended, thread) = (Arc::new(AtomicBool::new(false)), Arc::<ListenerThread>::default());
    let run = Run {
        delivery: delivery.clone(),
        since: Instant::now(),
        ended: Arc::clone(&ended),
        thread: Arc::clone(&thread),
    };
    shared.change(|pool| pool.set_run(worker, Some(run)));
    Busy { shared: Arc::clone(shared), worker, ended, thread }
}

/// A worker that is busy.
pub(super) struct Busy {
    shared: Arc<Shared>,
    worker: u64,
    ended: Arc<AtomicBool>,
    thread: Arc<ListenerThread>,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.shared.change(|pool| pool.set_run(self.worker, None));
    }
}

/// Runs the listener with `delivery` and ends the delivery by what came of it.
pub(super) async fn handle(
    shared: &Shared,
    session: &Session,
    delivery: Delivery,
    busy: Busy,
) -> SessionAfter {
    let span = span(shared, &delivery);
    let handled = call_and_settle(shared, session, &delivery, &busy.thread);
    let handled = shared.id.scope(session.run_handler(handled));
    let (end, after) = handled.instrument(span.clone()).await;
    busy.ended.store(true, Ordering::Release);
    record(&span, &end);
    drop(delivery);
    // Before the worker is free: who finds none busy finds all that was done in the counts, and with the observer.
    tell(shared, &end);
    drop(busy);
    after
}

/// Tells counts and observer of the end of a delivery.
pub(super) fn tell(shared: &Shared, end: &DeliveryEnd) {
    let counts = &shared.counts;
    Counts::add(if end.failure.is_none() { &counts.handled } else { &counts.failed });
    if end.panicked {
        Counts::add(&counts.panicked);
    }
    if let Some(observer) = &shared.settings.observer
        && let Err(panic) = caught(|| observer.ended(end))
    {
        tracing::error!(
            listener = shared.listener.id,
            panic,
            "the observer of a listener's deliveries panicked"
        );
    }
}

/// What the broker is told of a failed delivery.
pub(super) fn cause(listener: &str, kind: CauseKind, text: &str) -> Cause {
    Cause { kind, text: text.into(), listener: Some(listener.into()) }
}

/// All of it counts as the session's handler: who closes the session from inside finds the message settled still.
async fn call_and_settle(
    shared: &Shared,
    session: &Session,
    delivery: &Delivery,
    thread: &Arc<ListenerThread>,
) -> (DeliveryEnd, SessionAfter) {
    let since = Instant::now();
    let returned = match call(shared, delivery, thread).await {
        Ok(Some(reply)) => {
            send_reply(shared, session, delivery, reply).await.map_err(|error| Failure::of_reply(&error))
        }
        Ok(None) => Ok(()),
        Err(failure) => Err(failure),
    };
    let ending = match returned {
        Ok(()) => succeed(shared, session, delivery).await,
        Err(failure) => fail(shared, session, delivery, failure).await,
    };
    let end = DeliveryEnd {
        listener: shared.listener.id,
        message_id: delivery.headers().message_id.clone(),
        delivery_count: delivery.count(),
        kind: ending.kind,
        panicked: ending.panicked,
        failure: ending.failure,
        took: since.elapsed(),
    };
    (end, ending.after)
}

/// Calls the listener; its reply, if it returned well.
async fn call(
    shared: &Shared,
    delivery: &Delivery,
    thread: &Arc<ListenerThread>,
) -> Result<Option<Message>, Failure> {
    let converter = Arc::clone(&shared.settings.converter);
    let mut invocation = Invocation::new(shared.listener.id, delivery.clone(), converter, shared.beans())
        .on_thread(Arc::clone(thread));
    delivery.tell_provider().await;
    match catch_panic(|| (shared.listener.invoke)(&mut invocation)).await {
        Ok(Outcome::Handled { reply }) => Ok(reply),
        Ok(Outcome::Failed(error)) => Err(Failure::of(error)),
        Err(panic) => Err(Failure::panic(&panic)),
    }
}

/// Settles what the listener returned `Ok` for. The reply is sent by now: in a transaction both are one; else a crash
/// between the two repeats the reply instead of losing it.
async fn succeed(shared: &Shared, session: &Session, delivery: &Delivery) -> Ending {
    let (settled, kind) = match shared.settings.acknowledge {
        Acknowledge::Manual => (Ok(()), EndKind::LeftToListener),
        Acknowledge::Transacted => (session.commit().await, EndKind::Settled),
        Acknowledge::Auto | Acknowledge::Client | Acknowledge::DupsOk | Acknowledge::Individual => {
            // By the listener itself, unless it left that to its container.
            let settled = if delivery.is_settled() { Ok(()) } else { delivery.acknowledge().await };
            (settled, EndKind::Settled)
        }
    };
    let Err(error) = settled else {
        return Ending { kind, failure: None, panicked: false, after: SessionAfter::Usable };
    };
    // What the transaction received was given back with it.
    let rolled_back = matches!(error, Error::TransactionRolledBack { .. });
    Ending {
        kind: if rolled_back { EndKind::Redelivered } else { EndKind::Unsettled },
        failure: Some(format!("the listener returned Ok, but the message could not be settled: {error}")),
        panicked: false,
        after: if rolled_back { SessionAfter::Usable } else { SessionAfter::Broken },
    }
}

/// Ends a delivery that failed, by the error's own disposition.
async fn fail(shared: &Shared, session: &Session, delivery: &Delivery, failure: Failure) -> Ending {
    let cause = cause(shared.listener.id, failure.kind, &failure.text);
    let (release, kind) = match failure.disposition {
        Disposition::Redeliver { delay } => (Release::Redeliver { delay, cause }, EndKind::Redelivered),
        Disposition::DeadLetter => (Release::DeadLetter { cause }, EndKind::DeadLettered),
        Disposition::Discard => (Release::Discard, EndKind::Discarded),
    };
    let (released, kind) = if !delivery.is_settled() {
        (delivery.release(release).await, kind)
    } else if session.is_transacted() {
        // What was sent after the listener's own commit.
        (session.rollback().await, EndKind::FailedAfterSettling)
    } else {
        (Ok(()), EndKind::FailedAfterSettling)
    };
    let (kind, after) = match released {
        Ok(()) => (kind, SessionAfter::Usable),
        Err(error) => {
            tracing::warn!(%error, "the failure could not be told to the broker; the message comes again");
            (EndKind::Unsettled, SessionAfter::Broken)
        }
    };
    Ending { kind, failure: Some(failure.text), panicked: failure.panicked, after }
}

async fn send_reply(
    shared: &Shared,
    session: &Session,
    delivery: &Delivery,
    mut reply: Message,
) -> Result<(), Error> {
    let request = delivery.headers();
    let Some(destination) = request.reply_to.as_ref().or(shared.settings.send_to.as_ref()) else {
        // Once is enough: it is how the listener is configured, not what happened to this request.
        if !shared.reply_warning_given.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "replies are dropped: the request has no JMSReplyTo and the listener no `send_to`; the request is settled"
            );
        }
        return Ok(());
    };
    let request_id = || request.message_id.as_ref().map(|id| id.to_string().into());
    let headers = reply.headers_mut();
    headers.correlation_id =
        headers.correlation_id.take().or_else(|| request.correlation_id.clone()).or_else(request_id);
    match session.send(destination, &reply, &SendOptions::default()).await {
        // The requester no longer waits, which is no reason to do its work again. A transaction cannot be told to forget
        // a failed send, so there the request does fail.
        Err(error)
            if destination.is_temporary() && !session.is_transacted() && session.connection().is_open() =>
        {
            tracing::warn!(%destination, %error, "a reply is dropped: its requester is gone");
            Ok(())
        }
        sent => sent.map(drop),
    }
}

/// A span per delivery, with OpenTelemetry's names for messaging.
fn span(shared: &Shared, delivery: &Delivery) -> Span {
    let destination: &Destination = &shared.settings.destination;
    let headers = delivery.headers();
    let span = info_span!(
        "process",
        otel.name = format!("process {}", destination.name()),
        otel.kind = "consumer",
        otel.status_code = Empty,
        otel.status_description = Empty,
        error.r#type = Empty,
        messaging.system = "corriere",
        messaging.operation.name = "process",
        messaging.operation.r#type = "process",
        messaging.destination.name = destination.name(),
        messaging.consumer.group.name = shared.listener.id,
        messaging.message.id = Empty,
        messaging.message.conversation_id = headers.correlation_id.as_deref(),
        messaging.message.delivery_count = delivery.count(),
        messaging.outcome = Empty,
        traceparent = Empty,
    );
    if let Some(id) = &headers.message_id {
        span.record("messaging.message.id", tracing::field::display(id));
    }
    if let Ok(Some(parent)) = delivery.property::<String>("traceparent") {
        span.record("traceparent", parent);
    }
    span
}

fn record(span: &Span, end: &DeliveryEnd) {
    span.record("messaging.outcome", tracing::field::debug(end.kind));
    let Some(failure) = &end.failure else { return };
    span.record("otel.status_code", "ERROR");
    span.record("otel.status_description", failure.as_str());
    span.record("error.type", if end.panicked { "panic" } else { "listener_error" });
    span.in_scope(|| {
        let message_id = end.message_id.as_ref().map(tracing::field::display);
        tracing::warn!(listener = end.listener, message_id, failure, outcome = ?end.kind, "a listener failed");
    });
}
