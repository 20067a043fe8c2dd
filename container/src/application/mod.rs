//! The application: what a configuration and a program make together, from its start to its stop.

mod bean_plan;
#[cfg_attr(not(feature = "embedded"), path = "no_broker.rs")]
mod broker;
mod builder;
mod check;
mod error;
mod factories;
#[cfg(feature = "embedded")]
#[cfg_attr(not(feature = "openwire"), path = "no_listening.rs")]
mod listening;
mod plan;
mod runtime;
mod shutdown;
mod type_names;
mod unmade;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use broker::Failure;
#[cfg(feature = "embedded")]
pub(crate) use broker::{journal_options, settings as broker_settings};
pub use builder::ApplicationBuilder;
pub use check::{Check, PlannedBean, PlannedFactory};
pub use error::Error;
pub use plan::{PlannedListener, Remark};
#[doc(hidden)]
pub use runtime::run_main;
use shutdown::Signals;

use crate::beans::Beans;
use crate::config::{Destinations, Document};
use crate::containers::{ContainerSettings, ListenerContainer, StopReport};

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
    broker: Option<broker::Embedded>,
}

impl Application {
    /// Checks an application with the configuration of a TOML file and of the environment, and all listeners that are linked in,
    /// without starting anything. The variable `CORRIERE_CHECK=1` does the same with any program whose `main` is
    /// `#[corriere::main]`, and writes what holds to standard output; the exit code tells.
    ///
    /// # Errors
    /// All that is wrong with the configuration or what it names.
    pub fn check(path: impl AsRef<Path>) -> Result<Check, Error> {
        Ok(Self::from_config(path)?.check()?)
    }

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

    /// The one bean of this type: a copy of it, or, where `T` is a `Bean<_>`, the bean itself.
    ///
    /// # Errors
    /// [`Error::Bean`] when there is none of that type, or more than one.
    pub fn bean_of<T: Clone + 'static>(&self) -> Result<T, Error> {
        Ok(self.beans.copy_of()?)
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

    /// Its embedded broker, and what an operator does there: `app.broker()?.queue("DLQ.orders")?.retry(all).await?`.
    ///
    /// # Errors
    /// [`Error::NoBroker`] when it has none.
    #[cfg(feature = "embedded")]
    pub fn broker(&self) -> Result<&corriere_broker::Broker, Error> {
        self.broker.as_ref().map(|embedded| &embedded.broker).ok_or(Error::NoBroker)
    }

    /// Where its embedded broker listens, `tcp://127.0.0.1:61616`, with the ports that were given where the configuration
    /// has 0. Empty where `broker.listen` says nothing.
    #[must_use]
    pub fn listen_urls(&self) -> Vec<String> {
        self.broker.as_ref().map(broker::Embedded::listen_urls).unwrap_or_default()
    }

    /// The containers of all its listeners.
    #[must_use]
    pub fn containers(&self) -> &[ListenerContainer] {
        &self.containers
    }

    /// Runs until Ctrl-C or SIGTERM, then stops as [`Application::stop`] does. A second signal stops at once; one of the
    /// same kind within half a second is taken for the first one, which some supervisors send to a process and then to its
    /// group. When the embedded broker fails, because it cannot write any more, it stops as well, with that error.
    ///
    /// Dropping the future drops the application.
    ///
    /// # Errors
    /// [`Error::Signals`], [`Error::Interrupted`], [`Error::BrokerFailed`].
    pub async fn run_until_shutdown(self) -> Result<(), Error> {
        let mut signals = Signals::listen()?;
        // Before this a signal ends the process at once, so whoever sends one waits for this line.
        tracing::info!("running until Ctrl-C or SIGTERM");
        let mut failure = Failure::of(self.broker.as_ref());
        tokio::select! {
            signal = signals.next() => tracing::info!("{}: stopping", signal?),
            () = failure.comes() => tracing::error!("the embedded broker failed: stopping"),
        }
        tokio::select! {
            _ = self.stop() => failure.into_result().await,
            second = signals.next() => second.and(Err(Error::Interrupted)),
        }
    }

    /// Stops: no listener takes anything more, runs that are under way are waited for up to their container's
    /// `shutdown_timeout`, beans are closed and dropped in the reverse of their order, clients of other processes are told
    /// to go, and the broker ends, with all that it keeps on the disk.
    ///
    /// A bean is closed by the method that `#[corriere::bean(close = "…")]` names, also where a run that did not end still
    /// holds it. All of them together have the longest `shutdown_timeout` of the containers, and each at least a second.
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
        self.beans.close(time_to_close(&self.planned)).await;
        let Self { containers, planned, beans, destinations: _, broker } = self;
        drop((containers, planned, beans));
        if let Some(broker) = broker {
            broker.stop().await;
        }
        tracing::info!("stopped");
        whole
    }
}

/// How long the beans may take to close: as long as the slowest listener may take to stop.
fn time_to_close(listeners: &[PlannedListener]) -> Duration {
    let longest = listeners.iter().map(|planned| planned.settings.shutdown_timeout).max();
    longest.unwrap_or(ContainerSettings::SHUTDOWN_TIMEOUT)
}

#[cfg(all(test, feature = "embedded"))]
mod tests {
    use std::io;

    use corriere_broker::files::{Fault, Operation, RecordedFiles};
    use corriere_broker::journal::{JournalOptions, JournalStore};
    use corriere_broker::{Broker, Settings};
    use corriere_core::{Clock, ConnectionFactory};
    use corriere_templates::JmsTemplate;

    use super::*;

    /// After this a test is taken to hang.
    const HANG: Duration = Duration::from_secs(120);

    /// An application with nothing but a broker, whose files can be made to fail.
    fn application(name: &str) -> (Application, JmsTemplate, RecordedFiles) {
        let files = RecordedFiles::new();
        let mut options = JournalOptions::new("/data");
        options.max_file_length = 64 << 10;
        let store = JournalStore::open(Arc::new(files.clone()), options).expect("it opens");
        let broker = Broker::start(name, Settings::default(), Arc::new(store), Clock::system());
        let broker = broker.expect("it starts");
        let factory = ConnectionFactory::from_url(&format!("vm://{name}")).expect("a URL");
        let app = Application {
            containers: Vec::new(),
            planned: Vec::new(),
            beans: Arc::default(),
            destinations: Destinations::default(),
            broker: Some(broker::Embedded::of(broker)),
        };
        (app, JmsTemplate::builder(factory).build().expect("a template"), files)
    }

    #[tokio::test]
    async fn a_program_whose_disk_fails_ends_with_that_error() {
        let (app, template, files) = application("failing-disk");
        template.convert_and_send_to("work", "kept").await.unwrap();
        let mut run = Box::pin(app.run_until_shutdown());
        assert!(
            tokio::time::timeout(Duration::from_millis(20), &mut run).await.is_err(),
            "it ended by itself"
        );
        files.fail(Fault {
            operation: Operation::SyncData,
            nth: 1,
            error: io::ErrorKind::Other,
            lasting: true,
        });
        template.convert_and_send_to("work", "lost").await.unwrap_err();
        let ended = tokio::time::timeout(HANG, run).await.unwrap();
        assert!(matches!(ended, Err(Error::BrokerFailed(_))), "{ended:?}");
        let text = ended.unwrap_err().to_string();
        assert!(
            text.starts_with("the embedded broker failed: ") && text.contains("/data/journal/"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn a_disk_that_fails_while_the_application_stops_is_an_error_as_well() {
        let (app, template, files) = application("failing-late");
        template.convert_and_send_to("work", "kept").await.unwrap();
        let failure = Failure::of(app.broker.as_ref());
        files.fail(Fault {
            operation: Operation::SyncData,
            nth: 1,
            error: io::ErrorKind::Other,
            lasting: true,
        });
        template.convert_and_send_to("work", "lost").await.unwrap_err();
        app.stop().await;
        assert!(matches!(failure.into_result().await, Err(Error::BrokerFailed(_))));
    }

    #[tokio::test]
    async fn an_application_that_stops_in_order_ends_well_and_keeps_everything() {
        let (app, template, files) = application("stopping");
        template.convert_and_send_to("work", "kept").await.unwrap();
        let failure = Failure::of(app.broker.as_ref());
        app.stop().await;
        assert!(failure.into_result().await.is_ok());
        // The lock is free, though a handle to the broker is left.
        JournalStore::open(Arc::new(files), JournalOptions::new("/data")).unwrap();
    }
}
