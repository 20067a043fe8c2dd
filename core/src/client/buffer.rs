//! Where deliveries wait for their consumers: the connection's sink and one buffer per consumer.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
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
                // One that pulls has no window.
                if let Some(buffer) = buffers.get(&subscription).filter(|buffer| buffer.prefetch() > 0) {
                    buffer.set_prefetch(prefetch.max(1));
                }
            }
            Event::SlowConsumer { destination, unacknowledged, .. } => {
                tracing::warn!(
                    %destination, unacknowledged,
                    "a consumer gets nothing more until messages that it has are acknowledged"
                );
                self.slow_consumers.tell(&SlowConsumer { destination, unacknowledged });
            }
            Event::DestinationChanged { .. } => {}
        }
    }
}

/// What one consumer was sent and has not handed over yet.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    /// How many messages may be sent ahead to it; 0 for one that grants its credit by itself.
    prefetch: AtomicU32,
    state: Mutex<BufferState>,
    changed: Notify,
}

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
        Self { prefetch: AtomicU32::new(prefetch), ..Self::default() }
    }

    pub(super) fn prefetch(&self) -> u32 {
        self.prefetch.load(Ordering::Acquire)
    }

    /// Takes another prefetch. Whoever waits is woken: what was put off until so many were there may be due now.
    pub(super) fn set_prefetch(&self, prefetch: u32) {
        self.prefetch.store(prefetch, Ordering::Release);
        self.wake_all();
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
