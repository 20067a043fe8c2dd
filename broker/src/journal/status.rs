//! How the store is: well, full or failed, and who is to be told.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};

use crate::store::{StoreError, StoreEvent, StoreWatcher};

/// How the store is. It goes from full to well again, and from failed to nothing. What happens to it is noted first, and told
/// by [`Status::tell`].
#[derive(Default)]
pub(crate) struct Status {
    failed: OnceLock<StoreError>,
    /// The same as `full` being there, for those who only want to know that it is not.
    is_full: AtomicBool,
    full: Mutex<Option<Arc<str>>>,
    /// The same as `refusing` being there.
    is_refusing: AtomicBool,
    /// What was full when a send was refused, until sends are taken again.
    refusing: Mutex<Option<StoreError>>,
    watchers: Mutex<Vec<Arc<StoreWatcher>>>,
    /// Taken behind `full`.
    events: Mutex<Events>,
}

/// What is to be told, by one thread at a time: it is told in the order in which it happened.
#[derive(Default)]
struct Events {
    untold: VecDeque<StoreEvent>,
    /// Whether somebody tells.
    is_told: bool,
}

impl Status {
    /// What everybody is told since the first failure.
    pub(crate) fn failed(&self) -> Option<StoreError> {
        let reason = self.failed.get()?.to_string();
        Some(StoreError::Failed { reason: reason.into() })
    }

    /// Whether it works no more.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.get().is_some()
    }

    /// It failed (decision 16). Only the first failure is kept and told of.
    pub(crate) fn fail(&self, error: &StoreError) {
        if self.failed.set(error.clone()).is_ok() {
            tracing::error!(%error, "the store has failed; nothing more is confirmed");
            self.note(StoreEvent::Failed(error.clone()));
        }
    }

    /// What senders are told while there is no room.
    pub(crate) fn full(&self) -> Option<StoreError> {
        if !self.is_full.load(Ordering::Acquire) {
            return None;
        }
        lock(&self.full).clone().map(|reason| StoreError::Full { reason })
    }

    /// What is sent is refused from now on, with this.
    pub(crate) fn refuse_sends(&self, error: &StoreError) {
        let mut refusing = lock(&self.refusing);
        *refusing = Some(error.clone());
        self.is_refusing.store(true, Ordering::Release);
    }

    /// What is sent is taken again, if there is room.
    pub(crate) fn take_sends(&self) {
        let mut refusing = lock(&self.refusing);
        *refusing = None;
        self.is_refusing.store(false, Ordering::Release);
    }

    /// What senders are told: there is no room, or there was none for an earlier one.
    pub(crate) fn refusing(&self) -> Option<StoreError> {
        let refusing =
            if self.is_refusing.load(Ordering::Acquire) { lock(&self.refusing).clone() } else { None };
        refusing.or_else(|| self.full())
    }

    /// There is no room for what is sent.
    pub(crate) fn set_full(&self, reason: &str) {
        let reason: Arc<str> = reason.into();
        let mut full = lock(&self.full);
        self.is_full.store(true, Ordering::Release);
        if full.replace(Arc::clone(&reason)).is_none() {
            tracing::warn!(%reason, "the store is full; sends wait until there is room");
            self.note(StoreEvent::Full { reason });
        }
    }

    /// There is room again.
    pub(crate) fn set_room(&self) {
        let mut full = lock(&self.full);
        self.is_full.store(false, Ordering::Release);
        if full.take().is_some() {
            tracing::info!("the store has room again");
            self.note(StoreEvent::Room);
        }
    }

    /// Tells `watcher` from now on, and of how it is now unless it is well.
    pub(crate) fn watch(&self, watcher: StoreWatcher) {
        let watcher = Arc::new(watcher);
        lock(&self.watchers).push(Arc::clone(&watcher));
        if let Some(StoreError::Full { reason }) = self.full() {
            watcher(StoreEvent::Full { reason });
        }
        if let Some(error) = self.failed.get() {
            watcher(StoreEvent::Failed(error.clone()));
        }
    }

    fn note(&self, event: StoreEvent) {
        lock(&self.events).untold.push_back(event);
    }

    /// Tells what is untold, unless somebody is at it, who then tells this too. To be called where no lock is held: whoever
    /// is told may submit, and lead.
    pub(crate) fn tell(&self) {
        let mut events = lock(&self.events);
        while !events.is_told
            && let Some(event) = events.untold.pop_front()
        {
            events.is_told = true;
            drop(events);
            let watchers = lock(&self.watchers).clone();
            watchers.iter().for_each(|watcher| watcher(event.clone()));
            events = lock(&self.events);
            events.is_told = false;
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Status")
            .field("failed", &self.failed)
            .field("full", &self.full)
            .finish_non_exhaustive()
    }
}

/// As [`lock`]; `None` while somebody has it.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<std::sync::MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// No one panics while holding one of these locks, and every change is complete in itself.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_while_it_is_told_of_something_is_told_behind_it() {
        let status = Arc::new(Status::default());
        let told = Arc::new(Mutex::new(Vec::new()));
        let of = Arc::downgrade(&status);
        status.watch(Box::new(move |event| {
            if let (StoreEvent::Full { .. }, Some(status)) = (event, of.upgrade()) {
                status.set_room();
                status.tell();
            }
        }));
        let events = Arc::clone(&told);
        status.watch(Box::new(move |event| lock(&events).push(event)));
        status.set_full("no room");
        status.tell();
        assert_eq!(*lock(&told), [StoreEvent::Full { reason: "no room".into() }, StoreEvent::Room]);
    }
}
