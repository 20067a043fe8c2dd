//! Handlers at work: which session the running code belongs to, and who must wait for whom.

use std::future::Future;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::Notify;

use super::Session;

tokio::task_local! {
    static CURRENT_SESSION: Session;
    /// The sessions whose handlers the calling code runs in, the outermost first: one may run another session's handler.
    static CURRENT_HANDLERS: Vec<u64>;
}

/// Runs `future` with `session` as the current one, so that a template on the same factory sends with it. This is how
/// a task that a handler spawned joins the handler's transaction, which by itself it does not.
///
/// A handler may wait for such a task, so closing the session from within `future` is closing it from inside a handler: it
/// returns at once and takes effect when no handler of the session is at work.
pub fn with_session<F: Future>(session: Session, future: F) -> impl Future<Output = F::Output> {
    // Not an `async fn`, which would hold `future` twice: as its argument and within the scopes.
    let handlers = session.inner().handlers().with_enclosing();
    CURRENT_HANDLERS.scope(handlers, CURRENT_SESSION.scope(session, future))
}

/// As [`with_session`], for code that blocks.
pub fn with_session_sync<R>(session: Session, run: impl FnOnce() -> R) -> R {
    let handlers = session.inner().handlers().with_enclosing();
    CURRENT_HANDLERS.sync_scope(handlers, || CURRENT_SESSION.sync_scope(session, run))
}

impl Session {
    /// The session in whose handler, or [`with_session`], the calling code runs.
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT_SESSION.try_with(Clone::clone).ok()
    }

    /// Runs `future` as a handler of this session: the session is the current one, closing it or its connection from
    /// outside waits for the future's end, and closing it from inside takes effect after it.
    pub async fn run_handler<F: Future>(&self, future: F) -> F::Output {
        let _running = self.inner().handlers().enter();
        with_session(self.clone(), future).await
    }

    /// As [`Session::run_handler`], for a handler that blocks.
    pub fn run_blocking_handler<R>(&self, run: impl FnOnce() -> R) -> R {
        let _running = self.inner().handlers().enter();
        with_session_sync(self.clone(), run)
    }
}

/// The handlers of one session that are at work.
#[derive(Debug)]
pub(super) struct Handlers {
    id: u64,
    running: AtomicUsize,
    idle: Notify,
}

impl Default for Handlers {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { id: NEXT.fetch_add(1, Ordering::Relaxed), running: AtomicUsize::new(0), idle: Notify::new() }
    }
}

impl Handlers {
    pub(super) fn enter(&self) -> Running<'_> {
        self.running.fetch_add(1, Ordering::AcqRel);
        Running(self)
    }

    /// Whether the calling code is one of these handlers.
    pub(super) fn is_current(&self) -> bool {
        CURRENT_HANDLERS.try_with(|current| current.contains(&self.id)).unwrap_or(false)
    }

    /// These, and those in which the calling code runs already.
    fn with_enclosing(&self) -> Vec<u64> {
        let mut current = CURRENT_HANDLERS.try_with(Clone::clone).unwrap_or_default();
        current.push(self.id);
        current
    }

    pub(super) async fn wait_until_idle(&self) {
        loop {
            let idle = self.idle.notified();
            tokio::pin!(idle);
            // From here on no end of the last handler is missed.
            idle.as_mut().enable();
            if self.running.load(Ordering::Acquire) == 0 {
                return;
            }
            idle.await;
        }
    }
}

/// One handler at work.
pub(super) struct Running<'a>(&'a Handlers);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}
