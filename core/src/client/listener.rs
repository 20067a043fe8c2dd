//! Message listeners that are set on a consumer.

use std::future::Future;
use std::sync::Weak;

use tokio::task::yield_now;

use super::receiver::{Next, Receiver};
use super::session::SessionInner;
use super::{AcknowledgeMode, Delivery, Release, Session};
use crate::panic::catch_panic;
use crate::provider::Cause;

/// How many messages a listener handles before it lets other tasks run.
const TURN: usize = 16;

/// What a message listener may fail with.
pub type ListenerFailure = Box<dyn std::error::Error + Send + Sync>;

/// Calls `listener` for one message after the other until the consumer is closed or dropped.
pub(super) async fn run<F, R>(session: Weak<SessionInner>, receiver: Receiver, listener: F)
where
    F: Fn(Delivery) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), ListenerFailure>> + Send + 'static,
{
    while receiver.backlog(&session).await {
        let Some(turn) = session.upgrade().map(|session| session.listener_turn()) else { return };
        // One listener of the session at a time.
        let _turn = turn.take().await;
        let Some(session) = session.upgrade().map(|session| Session::of(&session)) else { return };
        // The handler is at work before it has a message, so that no close finds one without the other.
        session.run_handler(handle_some(&session, &receiver, &listener)).await;
    }
}

/// Handles what is there, one message after the other, until another listener of the session wants its turn.
async fn handle_some<F, R>(session: &Session, receiver: &Receiver, listener: &F)
where
    F: Fn(Delivery) -> R,
    R: Future<Output = Result<(), ListenerFailure>>,
{
    for _ in 0..TURN {
        // There is none any more when its session or connection is being closed or stopped.
        let Ok(Next { delivery: Some(delivery), .. }) = receiver.try_next(session.inner(), false) else {
            return;
        };
        handle(listener, delivery).await;
        if session.inner().listener_turn().is_wanted() {
            return;
        }
    }
    // A handler that never waits must not keep others from their turn.
    yield_now().await;
}

async fn handle<F, R>(listener: &F, delivery: Delivery)
where
    F: Fn(Delivery) -> R,
    R: Future<Output = Result<(), ListenerFailure>>,
{
    delivery.tell_provider().await;
    let outcome = catch_panic(|| Box::pin(listener(delivery.clone()))).await;
    let failure = match outcome {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(panic) => Some(format!("the listener panicked: {panic}")),
    };
    let (acknowledges, gives_back) = match delivery.session().mode() {
        AcknowledgeMode::Auto | AcknowledgeMode::DupsOk => (true, true),
        AcknowledgeMode::Individual => (false, true),
        AcknowledgeMode::Client | AcknowledgeMode::Transacted => (false, false),
    };
    let settled = match failure {
        // Nobody waits for it but the next message.
        None if acknowledges => delivery.acknowledge_unawaited(),
        None => Ok(()),
        Some(failure) => {
            tracing::error!(message_id = ?delivery.headers().message_id, failure, "a message listener failed");
            if gives_back {
                delivery.release(Release::Redeliver { delay: None, cause: Cause::failure(failure) }).await
            } else {
                Ok(())
            }
        }
    };
    if let Err(error) = settled {
        tracing::warn!(message_id = ?delivery.headers().message_id, %error, "a message could not be settled and comes again");
    }
}
