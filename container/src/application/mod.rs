//! The application: what a configuration and a program make together, from its start to its stop.

mod broker;
mod builder;
mod error;
mod factories;
mod plan;
mod runtime;
mod shutdown;

use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "embedded")]
pub(crate) use broker::settings as broker_settings;
pub use builder::ApplicationBuilder;
pub use error::Error;
pub use plan::PlannedListener;
#[doc(hidden)]
pub use runtime::run_main;
use shutdown::Signals;

use crate::beans::Beans;
use crate::config::{Destinations, Document};
use crate::containers::{ListenerContainer, StopReport};

/// A running application: a broker, if it has one of its own, beans and listeners.
///
/// Dropping it stops it without waiting for the handlers that are at work; what they have not settled comes again.
/// [`Application::run_until_shutdown`] and [`Application::stop`] wait.
#[derive(Debug)]
pub struct Application {
    // Dropped in this order: the listeners, the beans that they use, then the broker.
    containers: Vec<ListenerContainer>,
    planned: Vec<PlannedListener>,
    beans: Arc<Beans>,
    destinations: Destinations,
    #[cfg_attr(not(feature = "embedded"), expect(dead_code, reason = "there is never one"))]
    broker: Option<broker::Embedded>,
}

impl Application {
    /// An application with the configuration of a TOML file and of the environment. A relative path starts at the current
    /// directory.
    ///
    /// # Errors
    /// When the file cannot be read or is not TOML. What it says is checked by [`ApplicationBuilder::start`].
    pub fn from_config(path: impl AsRef<Path>) -> Result<ApplicationBuilder, Error> {
        Ok(ApplicationBuilder::new(Document::from_file(path)?))
    }

    /// An application with a configuration that was read elsewhere.
    pub fn from_document(document: Document) -> ApplicationBuilder {
        ApplicationBuilder::new(document)
    }

    /// An application without a configuration file and without the environment; see [`ApplicationBuilder::set`].
    pub fn builder() -> ApplicationBuilder {
        ApplicationBuilder::new(Document::new())
    }

    /// The bean of this name: a copy of it, or, where `T` is a `Bean<_>`, the bean itself.
    ///
    /// Templates and connection factories are beans too, under their names in the configuration.
    ///
    /// # Errors
    /// [`Error::Bean`] when there is none of that name, or it is of another type.
    pub fn bean<T: Clone + 'static>(&self, name: &str) -> Result<T, Error> {
        Ok(self.beans.copy(name)?)
    }

    /// All its beans.
    #[must_use]
    pub fn beans(&self) -> &Beans {
        &self.beans
    }

    /// What the names of destinations stand for.
    #[must_use]
    pub fn destinations(&self) -> &Destinations {
        &self.destinations
    }

    /// The container of a listener, by the listener's id; `None` when no such listener was started.
    #[must_use]
    pub fn container(&self, id: &str) -> Option<&ListenerContainer> {
        self.containers.iter().find(|container| container.listener().id == id)
    }

    /// Its listeners and what holds for each.
    #[must_use]
    pub fn planned(&self) -> &[PlannedListener] {
        &self.planned
    }

    /// Its embedded broker, if it has one.
    #[cfg(feature = "embedded")]
    #[must_use]
    pub fn broker(&self) -> Option<&corriere_broker::Broker> {
        self.broker.as_ref().map(|embedded| &embedded.broker)
    }

    /// The containers of all its listeners.
    #[must_use]
    pub fn containers(&self) -> &[ListenerContainer] {
        &self.containers
    }

    /// Runs until Ctrl-C or SIGTERM, then stops as [`Application::stop`] does. A second signal stops at once.
    ///
    /// Dropping the future drops the application.
    ///
    /// # Errors
    /// [`Error::Signals`], [`Error::Interrupted`].
    pub async fn run_until_shutdown(self) -> Result<(), Error> {
        let mut signals = Signals::listen()?;
        // Before this a signal ends the process at once, so whoever sends one waits for this line.
        tracing::info!("running until Ctrl-C or SIGTERM");
        let signal = signals.next().await?;
        tracing::info!("{signal}: stopping");
        tokio::select! {
            _ = self.stop() => Ok(()),
            second = signals.next() => second.and(Err(Error::Interrupted)),
        }
    }

    /// Stops: no listener takes anything more, runs that are under way are waited for up to their container's
    /// `shutdown_timeout`, beans are dropped in the reverse of their order, and the broker ends.
    ///
    /// The report has what was still running when the time was up, and what became of its message. Dropping the future
    /// stops without waiting any longer.
    ///
    /// From inside one of its own listeners it returns at once, with a report that is `deferred`, and takes effect after
    /// that run.
    pub async fn stop(self) -> StopReport {
        for container in &self.containers {
            container.begin_stop();
        }
        if self.containers.iter().any(ListenerContainer::is_current) {
            // Waiting here would be waiting for oneself. In a task of its own the stop is no part of the listener.
            tokio::spawn(self.finish_stop());
            return StopReport { deferred: true, abandoned: Vec::new() };
        }
        self.finish_stop().await
    }

    async fn finish_stop(self) -> StopReport {
        let mut whole = StopReport::default();
        // All of them are stopping by now; this only waits for one after the other.
        for container in &self.containers {
            whole.abandoned.extend(container.stop().await.abandoned);
        }
        drop(self);
        tracing::info!("stopped");
        whole
    }
}
