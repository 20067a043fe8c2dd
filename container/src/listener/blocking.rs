//! Listeners that block.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use corriere_templates::MessageConverter;
use tokio::task::spawn_blocking;
use tracing::Span;

use super::current::ContainerId;
use super::{Invocation, ListenerError, Outcome};

/// Runs a blocking listener on a thread of its own. The thread is part of the listener's session, so a template in it
/// joins the transaction. A panic goes on in who awaits this.
///
/// Dropping the future leaves a call running that has begun, as nothing can end it. One that still waits for a thread
/// never begins.
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
    let waiting = Waiting(Arc::new(Mutex::new(Some(call))));
    let (taken, thread) = (Arc::clone(&waiting.0), Arc::clone(invocation.thread()));
    let task = spawn_blocking(move || match thread.begin(&taken) {
        Some((call, _at_work)) => call(),
        None => Outcome::Failed(ListenerError::redeliver("the run was ended before it had begun")),
    });
    match task.await {
        Ok(outcome) => outcome,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is going down and has not begun the call.
            Err(error) => Outcome::Failed(error.into()),
        },
    }
}

/// A call that waits for a thread. Dropping this takes it away, arguments and all, unless the thread has it by then.
struct Waiting<F>(Arc<Mutex<Option<F>>>);

impl<F> Drop for Waiting<F> {
    fn drop(&mut self) {
        let call = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Outside of the lock, as it runs what the arguments do when they are dropped.
        drop(call);
    }
}

/// Whether the thread of a blocking listener is at work.
#[derive(Debug, Default)]
pub(crate) struct ListenerThread(AtomicBool);

impl ListenerThread {
    pub(crate) fn is_at_work(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Takes the call, if it is still there. Under its lock, so that who takes it away knows whether it has begun.
    fn begin<F>(&self, waiting: &Mutex<Option<F>>) -> Option<(F, AtWork<'_>)> {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let call = waiting.take()?;
        self.0.store(true, Ordering::Release);
        Some((call, AtWork(self)))
    }
}

struct AtWork<'a>(&'a ListenerThread);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}
