//! A listener container as its owner holds it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::runtime::Handle;

use super::shared::Shared;
use super::{ContainerError, ContainerSettings, ContainerState, ContainerStatus, StopReport, drain};
use crate::listener::current::ContainerId;
use crate::listener::{Concurrency, ListenerDef};

/// The running container of one listener. Clones are the same container; dropping them all stops it as
/// [`ListenerContainer::stop`] would, unobserved.
#[derive(Clone, Debug)]
pub struct ListenerContainer {
    owner: Arc<Owner>,
}

/// What the handles have in common and the workers have not, so that dropping the handles is seen.
#[derive(Debug)]
struct Owner(Arc<Shared>);

impl ListenerContainer {
    /// Starts to receive for `listener`. Connecting goes on in the background and is retried for as long as it takes; see
    /// [`ListenerContainer::ready`].
    ///
    /// # Errors
    /// [`ContainerError::ConcurrentTopic`], [`ContainerError::SubscriptionWithoutTopic`], [`ContainerError::NoClientId`],
    /// [`ContainerError::Bean`], [`ContainerError::NoRuntime`].
    pub fn start(listener: ListenerDef, settings: ContainerSettings) -> Result<Self, ContainerError> {
        let id = || listener.id.to_owned();
        check_bounds(&listener, &settings, settings.concurrency)?;
        check_subscription(&listener, &settings)?;
        for argument in listener.beans {
            let checked = settings.beans.check(argument);
            checked.map_err(|source| ContainerError::Bean { listener: id(), source })?;
        }
        let runtime = Handle::try_current().map_err(|_| ContainerError::NoRuntime { listener: id() })?;
        if listener.replies && settings.send_to.is_none() {
            tracing::warn!(
                listener = listener.id,
                "the listener returns replies and has no `send_to`: a request without JMSReplyTo gets none"
            );
        }
        tracing::info!(
            listener = listener.id,
            module = listener.module,
            destination = %settings.destination,
            subscription = settings.subscription.as_deref(),
            acknowledge = %settings.acknowledge,
            concurrency = %settings.concurrency,
            prefetch = settings.prefetch,
            send_to = settings.send_to.as_ref().map(tracing::field::display),
            "listener started"
        );
        let shared = Arc::new(Shared::new(listener, settings, runtime));
        shared.fill();
        Ok(Self { owner: Arc::new(Owner(shared)) })
    }

    /// The listener.
    #[must_use]
    pub fn listener(&self) -> &ListenerDef {
        &self.shared().listener
    }

    /// Completes when the lower bound of workers have their consumers at the broker, or when the container does not
    /// receive. Dropping it has no effect.
    pub async fn ready(&self) {
        let shared = self.shared();
        let mut summary = shared.summary.subscribe();
        let mut state = shared.state.subscribe();
        let lower = shared.pool().concurrency().lower();
        tokio::select! {
            // The senders live in `shared`, so neither can fail.
            _ = summary.wait_for(|summary| summary.subscribed >= lower) => {}
            _ = state.wait_for(|state| *state != ContainerState::Running) => {}
        }
    }

    /// Stops: takes nothing more, waits for the runs that are under way up to the shutdown timeout, and gives back what
    /// they have not settled by then. A second call waits for the same end.
    ///
    /// From inside the container's own listener it returns at once and takes effect after that run. Dropping the future
    /// does not undo the stop.
    pub async fn stop(&self) -> StopReport {
        let shared = self.shared();
        self.begin_stop();
        let mut report = shared.report.subscribe();
        if self.is_current() {
            // Waiting here would be waiting for oneself.
            let ended = report.borrow().clone();
            return ended.unwrap_or(StopReport { deferred: true, abandoned: Vec::new() });
        }
        // The sender lives in `shared`, so this cannot fail.
        let ended = report.wait_for(Option::is_some).await.ok().and_then(|report| report.clone());
        ended.unwrap_or_default()
    }

    /// Takes nothing more from here on.
    pub(crate) fn begin_stop(&self) {
        drain::begin(self.shared());
    }

    /// Ends it as the end of the process would; see [`drain::kill`].
    #[cfg(feature = "embedded")]
    pub(crate) fn kill(&self) -> impl Future<Output = ()> + use<> {
        drain::kill(self.shared())
    }

    /// Whether the calling code is its listener.
    pub(crate) fn is_current(&self) -> bool {
        ContainerId::current() == Some(self.shared().id)
    }

    /// Completes when something keeps it from receiving, with the reason. It goes on trying.
    pub(crate) async fn failing(&self) -> String {
        self.shared().connector.failing().await
    }

    /// Receives nothing more until resumed; runs that are under way go on. On a queue what was not handed over returns to
    /// others; on a topic the subscription stays, so that nothing is missed.
    ///
    /// # Errors
    /// [`ContainerError::Stopped`].
    pub fn pause(&self) -> Result<(), ContainerError> {
        self.set_state("pause", ContainerState::Paused)
    }

    /// Receives again.
    ///
    /// # Errors
    /// [`ContainerError::Stopped`].
    pub fn resume(&self) -> Result<(), ContainerError> {
        self.set_state("resume", ContainerState::Running)
    }

    /// Changes the bounds of its workers. Workers beyond the new upper bound retire when their run has ended.
    ///
    /// # Errors
    /// [`ContainerError::Stopped`], [`ContainerError::ConcurrentTopic`].
    pub fn resize(&self, concurrency: Concurrency) -> Result<(), ContainerError> {
        let shared = self.shared();
        check_bounds(&shared.listener, &shared.settings, concurrency)?;
        self.check_not_stopped("resize")?;
        shared.change(|pool| pool.set_concurrency(concurrency));
        shared.fill();
        // Idle workers look at the bounds when they are told of a change.
        shared.state.send_modify(|_| {});
        Ok(())
    }

    /// What it is doing at this moment.
    #[must_use]
    pub fn status(&self) -> ContainerStatus {
        let shared = self.shared();
        let summary = shared.pool().summary();
        ContainerStatus {
            state: shared.state(),
            workers: summary.workers,
            busy: summary.busy,
            subscribed: summary.subscribed,
            handled: shared.counts.handled.load(Ordering::Relaxed),
            failed: shared.counts.failed.load(Ordering::Relaxed),
            panicked: shared.counts.panicked.load(Ordering::Relaxed),
            connection_error: shared.connector.failure(),
        }
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.owner.0
    }

    fn set_state(&self, operation: &'static str, new: ContainerState) -> Result<(), ContainerError> {
        // A stop that comes between the check and the change must not be undone.
        let mut stopped = false;
        self.shared().state.send_if_modified(|state| match state {
            ContainerState::Stopping | ContainerState::Stopped => {
                stopped = true;
                false
            }
            ContainerState::Running | ContainerState::Paused => std::mem::replace(state, new) != new,
        });
        if stopped { self.check_not_stopped(operation) } else { Ok(()) }
    }

    fn check_not_stopped(&self, operation: &'static str) -> Result<(), ContainerError> {
        if self.shared().is_ending() {
            return Err(ContainerError::Stopped { listener: self.listener().id.to_owned(), operation });
        }
        Ok(())
    }
}

fn check_bounds(
    listener: &ListenerDef,
    settings: &ContainerSettings,
    concurrency: Concurrency,
) -> Result<(), ContainerError> {
    if settings.destination.is_topic() && concurrency.upper() > 1 {
        return Err(ContainerError::ConcurrentTopic {
            listener: listener.id.to_owned(),
            destination: settings.destination.clone(),
            upper: concurrency.upper(),
        });
    }
    Ok(())
}

fn check_subscription(listener: &ListenerDef, settings: &ContainerSettings) -> Result<(), ContainerError> {
    let Some(subscription) = &settings.subscription else { return Ok(()) };
    let (listener, subscription) = (listener.id.to_owned(), subscription.to_string());
    if !settings.destination.is_topic() {
        let destination = settings.destination.clone();
        return Err(ContainerError::SubscriptionWithoutTopic { listener, subscription, destination });
    }
    match settings.factory.client_id() {
        Some(_) => Ok(()),
        None => Err(ContainerError::NoClientId { listener, subscription }),
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        drain::begin(&self.0);
    }
}
