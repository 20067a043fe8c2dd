//! Where deliveries wait for their consumers: the connection's sink and one buffer per consumer.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tokio::sync::Notify;

use super::slow_consumer::{SlowConsumer, SlowConsumers};
use crate::id::SubscriptionId;
use crate::provider::{DeliverySink, Dispatch, Event, ProviderError};

/// The sink of a connection. It belongs to the provider's side of the connection and knows no session, so that
/// dropping the application's handles is seen.
#[derive(Debug, Default)]
pub(super) struct Sink {
    started: AtomicBool,
    lost: Mutex<Option<ProviderError>>,
    buffers: RwLock<HashMap<SubscriptionId, Arc<Buffer>>>,
    slow_consumers: SlowConsumers,
}

impl Sink {
    pub(super) fn is_started(&self) -> bool {
        self.started.load(Ordering::Acquire)
    }

    pub(super) fn set_started(&self, started: bool) {
        self.started.store(started, Ordering::Release);
        if started {
            self.each_buffer(Buffer::wake_all);
        }
    }

    pub(super) fn slow_consumers(&self) -> &SlowConsumers {
        &self.slow_consumers
    }

    /// Why the provider ended the connection, if it did.
    pub(super) fn lost(&self) -> Option<ProviderError> {
        lock(&self.lost).clone()
    }

    pub(super) fn add(&self, subscription: SubscriptionId, buffer: Arc<Buffer>) {
        self.buffers.write().unwrap_or_else(PoisonError::into_inner).insert(subscription, buffer);
    }

    pub(super) fn remove(&self, subscription: SubscriptionId) {
        self.buffers.write().unwrap_or_else(PoisonError::into_inner).remove(&subscription);
    }

    fn each_buffer(&self, act: impl Fn(&Buffer)) {
        for buffer in self.buffers.read().unwrap_or_else(PoisonError::into_inner).values() {
            act(buffer);
        }
    }
}

impl DeliverySink for Sink {
    fn deliver(&self, batch: Vec<Dispatch>) {
        let buffers = self.buffers.read().unwrap_or_else(PoisonError::into_inner);
        let mut filled = Vec::new();
        for dispatch in batch {
            // A subscription that is no longer here was closed, and the provider takes its deliveries back by itself.
            if let Some(buffer) = buffers.get(&dispatch.subscription)
                && buffer.push(dispatch)
            {
                filled.push(buffer);
            }
        }
        // Not before all is there: whoever is woken often takes this thread's place, and would be back for each message.
        filled.into_iter().for_each(|buffer| buffer.changed.notify_one());
    }

    fn notify(&self, event: Event) {
        match event {
            Event::Lost { error } => {
                *lock(&self.lost) = Some(error.clone());
                self.each_buffer(|buffer| buffer.end(End::Failed(error.clone())));
            }
            Event::SubscriptionEnded { subscription, error } => {
                let buffers = self.buffers.read().unwrap_or_else(PoisonError::into_inner);
                if let Some(buffer) = buffers.get(&subscription) {
                    buffer.end(End::Failed(error));
                }
            }
            Event::BrowseEnded { subscription } => {
                let buffers = self.buffers.read().unwrap_or_else(PoisonError::into_inner);
                if let Some(buffer) = buffers.get(&subscription) {
                    buffer.complete();
                }
            }
            Event::WindowChanged { subscription, prefetch } => {
                let buffers = self.buffers.read().unwrap_or_else(PoisonError::into_inner);
                if let Some(buffer) = buffers.get(&subscription) {
                    buffer.adopt_prefetch(prefetch);
                }
            }
            Event::SlowConsumer { destination, unacknowledged, .. } => {
                tracing::warn!(
                    %destination, unacknowledged,
                    "a consumer gets nothing more until messages that it has are acknowledged"
                );
                self.slow_consumers.tell(SlowConsumer { destination, unacknowledged });
            }
            Event::DestinationChanged { .. } => {}
        }
    }
}

/// What one consumer was sent and has not handed over yet.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    /// How many messages may be sent ahead to it; 0 for one that grants its credit by itself. Beside it, [`CHOSEN`].
    prefetch: AtomicU64,
    state: Mutex<BufferState>,
    changed: Notify,
}

/// Set where the application has chosen the prefetch of a consumer at run time. What the provider says of it after that is
/// older than the choice.
const CHOSEN: u64 = 1 << 32;

#[derive(Debug, Default)]
struct BufferState {
    waiting: VecDeque<Dispatch>,
    epoch: u32,
    /// Whether a browser has been sent all that there was.
    is_complete: bool,
    end: Option<End>,
}

/// Why nothing more will come.
#[derive(Clone, Debug)]
pub(super) enum End {
    Closed,
    Failed(ProviderError),
}

impl Buffer {
    pub(super) fn new(prefetch: u32) -> Self {
        Self { prefetch: AtomicU64::new(prefetch.into()), ..Self::default() }
    }

    pub(super) fn prefetch(&self) -> u32 {
        u32::try_from(self.prefetch.load(Ordering::Acquire) & !CHOSEN).unwrap_or(u32::MAX)
    }

    /// Takes the prefetch that the application has chosen. Whoever waits is woken: what was put off until so many were there may
    /// be due now.
    pub(super) fn choose_prefetch(&self, prefetch: u32) {
        self.prefetch.store(u64::from(prefetch) | CHOSEN, Ordering::Release);
        self.wake_all();
    }

    /// Takes the prefetch that the provider gives it, unless the application has chosen one, or it pulls.
    fn adopt_prefetch(&self, prefetch: u32) {
        let adopted = self.prefetch.fetch_update(Ordering::AcqRel, Ordering::Acquire, |known| {
            (known > 0 && known & CHOSEN == 0).then(|| prefetch.max(1).into())
        });
        if adopted.is_ok() {
            self.wake_all();
        }
    }

    /// Takes a delivery; true when it is the only one, of which somebody has to be told. Whoever waits beside it is told by
    /// [`Buffer::pop`].
    #[must_use]
    fn push(&self, dispatch: Dispatch) -> bool {
        let mut state = lock(&self.state);
        // What was dispatched before the provider learned that deliveries were given back is with it again.
        if dispatch.epoch != state.epoch || state.end.is_some() {
            return false;
        }
        state.waiting.push_back(dispatch);
        state.waiting.len() == 1
    }

    /// The next delivery, `Ok(None)` when there is none now, `Err` when there will be none any more.
    pub(super) fn pop(&self) -> Result<Option<Dispatch>, End> {
        let mut state = lock(&self.state);
        if let Some(end) = &state.end {
            return Err(end.clone());
        }
        let dispatch = state.waiting.pop_front();
        let more = !state.waiting.is_empty();
        drop(state);
        if more {
            // Who fills it wakes one receiver; whoever takes passes the word on to the next.
            self.changed.notify_one();
        }
        Ok(dispatch)
    }

    /// Nothing more comes; what waits here is still to be taken.
    fn complete(&self) {
        lock(&self.state).is_complete = true;
        self.wake_all();
    }

    /// Whether nothing more comes.
    pub(super) fn is_complete(&self) -> bool {
        lock(&self.state).is_complete
    }

    /// Why nothing more will come, if so.
    pub(super) fn ended(&self) -> Option<End> {
        lock(&self.state).end.clone()
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.state).waiting.len()
    }

    /// Forgets what waits here, as the provider takes it back, and expects the deliveries of the next epoch.
    pub(super) fn recall(&self) {
        let mut state = lock(&self.state);
        state.waiting.clear();
        state.epoch = state.epoch.wrapping_add(1);
    }

    /// Ends the buffer; the first end stands.
    pub(super) fn end(&self, end: End) {
        let mut state = lock(&self.state);
        state.waiting.clear();
        state.end.get_or_insert(end);
        drop(state);
        self.wake_all();
    }

    pub(super) fn wake_all(&self) {
        self.changed.notify_waiters();
    }

    pub(super) fn changed(&self) -> &Notify {
        &self.changed
    }
}

/// Locks, also when another thread panicked while it held the lock: every section leaves its state whole.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_the_broker_changes_is_the_consumers_from_then_on_and_a_pull_stays_one() {
        let (sink, window, pull) = (Sink::default(), Arc::new(Buffer::new(100)), Arc::new(Buffer::new(0)));
        sink.add(SubscriptionId(1), Arc::clone(&window));
        sink.add(SubscriptionId(2), Arc::clone(&pull));
        for subscription in [1, 2, 3].map(SubscriptionId) {
            sink.notify(Event::WindowChanged { subscription, prefetch: 7 });
        }
        assert_eq!((window.prefetch(), pull.prefetch()), (7, 0));
        sink.notify(Event::WindowChanged { subscription: SubscriptionId(1), prefetch: 0 });
        assert_eq!(window.prefetch(), 1, "a window is never none");
    }
}
