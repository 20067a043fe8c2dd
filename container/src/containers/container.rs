//! A listener container as its owner holds it.

use super::{ContainerError, ContainerSettings, ContainerStatus, StopReport};
use crate::listener::{Concurrency, ListenerDef};

/// The running container of one listener. Clones are the same container; dropping them all stops it as
/// [`ListenerContainer::stop`] would, unobserved.
#[derive(Clone, Debug)]
pub struct ListenerContainer;

impl ListenerContainer {
    /// Starts to receive for `listener`. Connecting goes on in the background and is retried for as long as it takes; see
    /// [`ListenerContainer::ready`].
    ///
    /// # Errors
    /// [`ContainerError::ConcurrentTopic`], [`ContainerError::NoRuntime`].
    pub fn start(_listener: ListenerDef, _settings: ContainerSettings) -> Result<Self, ContainerError> {
        todo!()
    }

    /// The listener.
    #[must_use]
    pub fn listener(&self) -> &ListenerDef {
        todo!()
    }

    /// Completes when the lower bound of workers have their consumers at the broker, or the container is stopped. Dropping
    /// it has no effect.
    pub async fn ready(&self) {
        todo!()
    }

    /// Stops: takes nothing more, waits for the runs that are under way up to the shutdown timeout, and gives back what
    /// they have not settled by then. A second call waits for the same end.
    ///
    /// From inside the container's own listener it returns at once and takes effect after that run. Dropping the future
    /// does not undo the stop.
    pub async fn stop(&self) -> StopReport {
        todo!()
    }

    /// Receives nothing more until resumed; runs that are under way go on. On a queue what was not handed over returns to
    /// others; on a topic the subscription stays, so that nothing is missed.
    ///
    /// # Errors
    /// [`ContainerError::Stopped`].
    pub fn pause(&self) -> Result<(), ContainerError> {
        todo!()
    }

    /// Receives again.
    ///
    /// # Errors
    /// [`ContainerError::Stopped`].
    pub fn resume(&self) -> Result<(), ContainerError> {
        todo!()
    }

    /// Changes the bounds of its workers. Workers beyond the new upper bound retire when their run has ended.
    ///
    /// # Errors
    /// [`ContainerError::Stopped`], [`ContainerError::ConcurrentTopic`].
    pub fn resize(&self, _concurrency: Concurrency) -> Result<(), ContainerError> {
        todo!()
    }

    /// What it is doing at this moment.
    #[must_use]
    pub fn status(&self) -> ContainerStatus {
        todo!()
    }
}
