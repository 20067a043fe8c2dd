//! Listeners that block.

use corriere_templates::MessageConverter;
use tokio::task::spawn_blocking;
use tracing::Span;

use super::current::ContainerId;
use super::{Invocation, Outcome};

/// Runs a blocking listener on a thread of its own. The thread is part of the listener's session, so a template in it
/// joins the transaction. A panic goes on in who awaits this.
///
/// Dropping the future leaves the thread running; nothing can end it.
pub async fn call_blocking(
    invocation: &Invocation,
    function: impl FnOnce(&dyn MessageConverter) -> Outcome + Send + 'static,
) -> Outcome {
    let session = invocation.session().clone();
    let converter = invocation.converter().clone();
    let (span, container) = (Span::current(), ContainerId::current());
    let call = move || session.run_blocking_handler(|| span.in_scope(|| function(&*converter)));
    let call = move || match container {
        Some(container) => container.sync_scope(call),
        None => call(),
    };
    match spawn_blocking(call).await {
        Ok(outcome) => outcome,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is going down and has not begun the call.
            Err(error) => Outcome::Failed(error.into()),
        },
    }
}
