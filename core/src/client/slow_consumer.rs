//! Word of consumers that stand still by their own doing.

use std::fmt;
use std::sync::Mutex;

use tokio::runtime::Handle;
use tokio::sync::mpsc::{Sender, channel};

use super::buffer::lock;
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

/// How many are told of later while the hook is at work; more are in the log only.
const WAITING: usize = 64;

/// Who wants to know of them.
#[derive(Default)]
pub(super) struct SlowConsumers(Mutex<Option<Sender<SlowConsumer>>>);

impl SlowConsumers {
    /// Calls `hook` on a task of its own, which ends when this is dropped or another hook is set: whoever brings the word may
    /// hold locks that the hook would want.
    pub(super) fn set(&self, runtime: &Handle, hook: impl Fn(&SlowConsumer) + Send + Sync + 'static) {
        let (sender, mut told) = channel(WAITING);
        runtime.spawn(async move {
            while let Some(consumer) = told.recv().await {
                if let Err(panic) = caught(|| hook(&consumer)) {
                    tracing::error!(panic, "what is told of slow consumers panicked");
                }
            }
        });
        *lock(&self.0) = Some(sender);
    }

    pub(super) fn tell(&self, consumer: SlowConsumer) {
        if let Some(hook) = &*lock(&self.0) {
            // Neither a hook that is behind nor one whose runtime is gone is waited for.
            drop(hook.try_send(consumer));
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
    use super::super::buffer::Sink;
    use super::*;
    use crate::id::SubscriptionId;
    use crate::provider::{DeliverySink, Event};

    #[tokio::test]
    async fn a_hook_is_told_of_slow_consumers_beside_who_brings_the_word_and_may_panic() {
        let sink = Sink::default();
        let destination = Destination::queue("q").unwrap();
        let slow = |unacknowledged| Event::SlowConsumer {
            subscription: SubscriptionId(1),
            destination: destination.clone(),
            unacknowledged,
        };
        sink.notify(slow(1));
        let (hook, mut told) = channel(WAITING);
        sink.slow_consumers().set(&Handle::current(), move |consumer| {
            hook.try_send(consumer.clone()).unwrap();
            assert!(consumer.unacknowledged < 3, "the hook panics");
        });
        for unacknowledged in 2..=4 {
            sink.notify(slow(unacknowledged));
        }
        assert!(told.try_recv().is_err(), "it runs on a task of its own");
        for unacknowledged in 2..=4 {
            let of = SlowConsumer { destination: destination.clone(), unacknowledged };
            assert_eq!(told.recv().await, Some(of));
        }
        drop(sink);
        assert_eq!(told.recv().await, None, "the task ends with the connection");
    }
}
