//! Which container's listener the running code belongs to.

use std::sync::atomic::{AtomicU64, Ordering};

tokio::task_local! {
    static CURRENT: ContainerId;
}

/// A container within this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContainerId(u64);

impl ContainerId {
    pub(crate) fn unique() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The container in whose listener the calling code runs.
    pub(crate) fn current() -> Option<Self> {
        CURRENT.try_with(|current| *current).ok()
    }

    pub(crate) async fn scope<F: Future>(self, future: F) -> F::Output {
        CURRENT.scope(self, future).await
    }

    pub(crate) fn sync_scope<R>(self, run: impl FnOnce() -> R) -> R {
        CURRENT.sync_scope(self, run)
    }
}
