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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::buffer::Sink;
    use super::*;
    use crate::id::SubscriptionId;
    use crate::provider::{DeliverySink, Event};

    #[test]
    fn a_hook_is_told_of_slow_consumers_and_what_it_panics_with_ends_with_it() {
        let sink = Sink::default();
        let destination = Destination::queue("q").unwrap();
        let slow = |unacknowledged| Event::SlowConsumer {
            subscription: SubscriptionId(1),
            destination: destination.clone(),
            unacknowledged,
        };
        sink.notify(slow(1));
        let told: Arc<Mutex<Vec<SlowConsumer>>> = Arc::default();
        let hook = Arc::clone(&told);
        sink.slow_consumers().set(move |consumer| {
            hook.lock().unwrap().push(consumer.clone());
            assert!(consumer.unacknowledged < 3, "the hook panics");
        });
        for unacknowledged in 2..=4 {
            sink.notify(slow(unacknowledged));
        }
        let of = |unacknowledged| SlowConsumer { destination: destination.clone(), unacknowledged };
        assert_eq!(*told.lock().unwrap(), [of(2), of(3), of(4)]);
    }
}
