//! What a container's handle, its workers and its end have in common.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::watch;

use super::connector::Connector;
use super::pool::{Pool, Summary};
use super::worker;
use super::{ContainerSettings, ContainerState, StopReport};
use crate::beans::Beans;
use crate::listener::ListenerDef;
use crate::listener::current::ContainerId;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) id: ContainerId,
    pub(super) listener: ListenerDef,
    pub(super) settings: ContainerSettings,
    pub(super) connector: Connector,
    pub(super) counts: Counts,
    /// Changes of the state, and of the bounds, which are told by sending the same state again.
    pub(super) state: watch::Sender<ContainerState>,
    /// Follows the pool.
    pub(super) summary: watch::Sender<Summary>,
    pub(super) report: watch::Sender<Option<StopReport>>,
    pub(super) reply_warning_given: AtomicBool,
    runtime: Handle,
    pool: Mutex<Pool>,
    /// Until the container has stopped: who keeps a handle to it keeps no beans.
    beans: Mutex<Arc<Beans>>,
}

/// Runs since the start.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) handled: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) panicked: AtomicU64,
}

impl Shared {
    pub(super) fn new(listener: ListenerDef, mut settings: ContainerSettings, runtime: Handle) -> Self {
        let beans = Mutex::new(std::mem::take(&mut settings.beans));
        let ContainerSettings { factory, back_off, maximum_back_off, concurrency, observer, .. } = &settings;
        let connector =
            Connector::new(listener.id, factory.clone(), observer.clone(), *back_off, *maximum_back_off);
        Self {
            id: ContainerId::unique(),
            listener,
            connector,
            counts: Counts::default(),
            state: watch::Sender::new(ContainerState::Running),
            summary: watch::Sender::new(Summary::default()),
            report: watch::Sender::new(None),
            reply_warning_given: AtomicBool::new(false),
            runtime,
            pool: Mutex::new(Pool::new(*concurrency)),
            beans,
            settings,
        }
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// What `Bean<T>` arguments are found in.
    pub(super) fn beans(&self) -> Arc<Beans> {
        Arc::clone(&self.beans.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets go of the beans, as no listener runs any more.
    pub(super) fn drop_beans(&self) {
        let beans = std::mem::take(&mut *self.beans.lock().unwrap_or_else(PoisonError::into_inner));
        // Outside of the lock, as these may be the last ones, and it is the user's code that drops them.
        drop(beans);
    }

    pub(super) fn state(&self) -> ContainerState {
        *self.state.borrow()
    }

    pub(super) fn is_ending(&self) -> bool {
        matches!(self.state(), ContainerState::Stopping | ContainerState::Stopped)
    }

    /// Completes when the container is being stopped.
    pub(super) async fn ending(&self) {
        let mut state = self.state.subscribe();
        // The sender lives in `self`, so this cannot fail.
        let _ =
            state.wait_for(|state| matches!(state, ContainerState::Stopping | ContainerState::Stopped)).await;
    }

    /// Looks at the pool without changing it.
    pub(super) fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the pool and tells those who wait for that.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Pool) -> R) -> R {
        let mut pool = self.pool();
        let result = change(&mut pool);
        // Under the pool's lock, so that an older summary never replaces a newer one.
        self.summary.send_replace(pool.summary());
        result
    }

    /// Starts as many workers as the lower bound asks for.
    pub(super) fn fill(self: &Arc<Self>) {
        while let Some(number) = self.change(Pool::add_missing) {
            self.spawn(number);
        }
    }

    /// Starts a worker if all are busy and there may be one more.
    pub(super) fn grow(self: &Arc<Self>) -> bool {
        if self.is_ending() {
            return false;
        }
        let added = self.change(Pool::add_if_all_busy);
        if let Some(number) = added {
            self.spawn(number);
        }
        added.is_some()
    }

    fn spawn(self: &Arc<Self>, number: u64) {
        let task = self.runtime.spawn(worker::work(Arc::clone(self), number));
        self.pool().set_task(number, task.abort_handle());
    }
}

impl Counts {
    pub(super) fn add(count: &AtomicU64) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}
