//! Word of consumers that stand still by their own doing.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use crate::destination::Destination;
use crate::panic::caught;

/// A consumer that gets nothing more, as it has acknowledged none of what its window lets through while more waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlowConsumer {
    /// What it consumes.
    pub destination: Destination,
    /// How many messages it has not acknowledged.
    pub unacknowledged: u64,
}

type Hook = dyn Fn(&SlowConsumer) + Send + Sync;

/// Who wants to know of them.
#[derive(Default)]
pub(super) struct SlowConsumers(RwLock<Option<Arc<Hook>>>);

impl SlowConsumers {
    pub(super) fn set(&self, hook: impl Fn(&SlowConsumer) + Send + Sync + 'static) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(hook));
    }

    pub(super) fn tell(&self, consumer: &SlowConsumer) {
        let hook = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        // It runs on the provider's thread, which a panic of the application's must not end.
        if let Some(hook) = hook
            && let Err(panic) = caught(|| hook(consumer))
        {
            tracing::error!(panic, "what is told of slow consumers panicked");
        }
    }
}

impl fmt::Debug for SlowConsumers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlowConsumers").finish_non_exhaustive()
    }
}
