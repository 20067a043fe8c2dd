//! Puts an application together and starts it.

use std::io::Write;
use std::sync::Arc;

use corriere_core::panic::caught;
use corriere_core::{Clock, ConnectionFactory};

use super::plan::{self, Parts, Plan};
use super::{Application, Check, Error, broker, check, factories};
use crate::beans::{Bean, BeanBuildError, BeanError, BeanType, Beans};
use crate::config::{ConfigError, Configuration, Document, Place, Problems};
use crate::containers::{ContainerError, DeliveryObserver, ListenerContainer};
use crate::listener::ListenerDef;

/// Puts an application together: its configuration, and what the program adds to it.
///
/// ```no_run
/// # async fn example() -> Result<(), corriere_container::application::Error> {
/// use corriere_container::application::Application;
///
/// let app = Application::from_config("config.toml")?
///     .set("listeners.on_order.concurrency", "1")
///     .bean("greeting", "hello".to_owned())
///     .start()
///     .await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "an application does nothing before `start`"]
pub struct ApplicationBuilder {
    document: Document,
    factories: Vec<(String, ConnectionFactory)>,
    beans: Beans,
    /// Beans that were refused as they were added, for the start to say.
    refused: Vec<ConfigError>,
    /// `None` for all that are linked in.
    listeners: Option<Vec<ListenerDef>>,
    clock: Clock,
    /// The URL that stands in for that of every connection factory.
    url: Option<String>,
    observer: Option<Arc<dyn DeliveryObserver>>,
}

impl ApplicationBuilder {
    pub(super) fn new(document: Document) -> Self {
        Self {
            document,
            factories: Vec::new(),
            beans: Beans::new(),
            refused: Vec::new(),
            listeners: None,
            clock: Clock::system(),
            url: None,
            observer: None,
        }
    }

    /// Sets a key of the configuration, over the file and the environment:
    /// `.set("templates.order_template.receive_timeout", "5s")`.
    pub fn set(mut self, key: impl Into<String>, value: impl Into<config::ValueKind>) -> Self {
        self.document.set(key, value);
        self
    }

    /// Adds a bean. A name that is taken is an error at the start.
    pub fn bean<T: Send + Sync + 'static>(self, name: &str, value: T) -> Self {
        self.shared_bean(name, Bean::new(value))
    }

    /// As [`ApplicationBuilder::bean`], with a bean that others hold as well.
    pub(crate) fn shared_bean<T: Send + Sync + 'static>(mut self, name: &str, bean: Bean<T>) -> Self {
        if let Err(source) = self.beans.add(name, bean) {
            self.refused.push(bean_error(format!("beans.{name}"), source));
        }
        self
    }

    /// Adds a connection factory under a name that templates and containers can use.
    pub fn connection_factory(mut self, name: &str, factory: ConnectionFactory) -> Self {
        self.factories.push((name.to_owned(), factory));
        self
    }

    /// Starts these listeners only, instead of all that are linked into the program.
    pub fn listeners(mut self, listeners: impl IntoIterator<Item = ListenerDef>) -> Self {
        self.listeners.get_or_insert_default().extend(listeners);
        self
    }

    /// Reads the time from this clock: the embedded broker does, and with it all its clients.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Connects every connection factory of the configuration to this URL, its own options kept.
    #[cfg(feature = "embedded")]
    pub(crate) fn connected_to(mut self, url: String) -> Self {
        self.url = Some(url);
        self
    }

    /// Has every container tell how its deliveries end.
    #[cfg(feature = "embedded")]
    pub(crate) fn observed_by(mut self, observer: Arc<dyn DeliveryObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Checks all that can be checked without making a bean or a connection, and answers with the merged configuration and
    /// the listeners, and what holds for each.
    ///
    /// # Errors
    /// All that is wrong with the configuration or what it names.
    pub fn check(&self) -> Result<Check, ConfigError> {
        let (read, plan) = self.plan()?;
        let configuration = self.document.list(&self.listener_ids())?;
        let without_effect = read.without_effect.iter().map(ToString::to_string);
        let remarks = plan.remarks.iter().map(ToString::to_string).chain(without_effect).collect();
        Ok(Check { configuration, listeners: plan.listeners, remarks })
    }

    /// Makes the beans, then starts the broker, if there is one, and the listeners.
    ///
    /// What has started is stopped again when this fails, or when its future is dropped. With the environment variable
    /// `CORRIERE_CHECK=1` nothing is started: what [`ApplicationBuilder::check`] answers is written to standard output.
    ///
    /// # Errors
    /// All that is wrong with the configuration or what it names, a constructor of a bean that fails, a broker that does
    /// not start, [`Error::OnlyChecked`], a `vm:` URL that names no broker of this process, a listener that the application's broker refuses.
    pub async fn start(mut self) -> Result<Application, Error> {
        if self.document.asks_for_a_check() {
            let check = self.check()?;
            // Whoever closes the pipe has read enough.
            _ = writeln!(std::io::stdout(), "{check}");
            check::note_right();
            return Err(Error::OnlyChecked);
        }
        let (configuration, plan) = self.plan()?;
        let beans = Arc::new(self.make_beans(&configuration, &plan)?);
        let broker = match &configuration.broker {
            Some(table) if self.url.is_none() => {
                for key in &configuration.without_effect {
                    tracing::info!("{key}");
                }
                Some(broker::Embedded::start(table, self.clock.clone()).await?)
            }
            _ => None,
        };

        if plan.listeners.is_empty() {
            tracing::info!("no listeners");
        }
        for remark in &plan.remarks {
            remark.log();
        }
        let mut containers = Vec::new();
        let mut planned_listeners = plan.listeners;
        for planned in &mut planned_listeners {
            planned.settings.beans = Arc::clone(&beans);
            planned.settings.observer.clone_from(&self.observer);
            containers.push(ListenerContainer::start(planned.listener, planned.settings.clone())?);
        }
        // With the application's own broker it is a matter of a moment. One elsewhere may be down for long, and then the
        // application comes up before it.
        let embedded = configuration.broker.as_ref().filter(|_| broker.is_some()).map(|table| &*table.name);
        let own = self.url.as_deref().and_then(factories::vm_name).or(embedded);
        for (container, planned) in containers.iter().zip(&planned_listeners) {
            if own.is_some() && own == factories::vm_name(planned.settings.factory.url()) {
                tokio::select! {
                    () = container.ready() => {}
                    reason = container.failing() => {
                        let listener = planned.listener.id.to_owned();
                        return Err(ContainerError::Refused { listener, reason }.into());
                    }
                }
            }
        }
        Ok(Application {
            containers,
            planned: planned_listeners,
            beans,
            destinations: configuration.destinations,
            broker,
        })
    }

    /// The ids under which `[listeners.ID]` can stand.
    fn listener_ids(&self) -> Vec<&'static str> {
        let given = self.listeners.iter().flatten().map(|listener| listener.id);
        ListenerDef::all().iter().map(|listener| listener.id).chain(given).collect()
    }

    fn plan(&self) -> Result<(Configuration, Plan), ConfigError> {
        let linked = ListenerDef::all();
        let listeners = self.listeners.as_ref().unwrap_or(&linked);
        let configuration = self.document.read(&self.listener_ids())?;
        let mut problems = Problems::default();
        let parts =
            Parts { factories: &self.factories, url: self.url.as_deref(), listeners, clock: &self.clock };
        let plan = Plan::new(&configuration, &parts, &mut problems);
        if self.url.is_none() {
            factories::check_reachable(&configuration, &plan.factories, &mut problems);
        }
        for (_, table) in configuration.beans.iter() {
            let registered = inventory::iter::<BeanType>().map(|found| (found.name, (found.rust_type)()));
            if let Err(error) = plan::check_type_name("bean type", &table.bean_type, registered) {
                problems.push(error);
            }
        }
        if let Some(table) = &configuration.broker {
            broker::Embedded::check(table, &mut problems);
        }
        problems.into_result((configuration, plan))
    }

    /// The program's own beans, then connection factories, templates, and the beans of the configuration, each in their
    /// order.
    fn make_beans(&mut self, configuration: &Configuration, plan: &Plan) -> Result<Beans, ConfigError> {
        let mut beans = std::mem::take(&mut self.beans);
        let mut problems = Problems::default();
        for refused in self.refused.drain(..) {
            problems.push(refused);
        }
        for (name, factory) in &plan.factories {
            if let Err(source) = beans.add(name.as_str(), Bean::new(factory.clone())) {
                problems.push(bean_error(format!("connection_factories.{name}"), source));
            }
        }
        for (name, template) in &plan.templates {
            if let Err(source) = beans.add(name.as_str(), Bean::new(template.clone())) {
                problems.push(bean_error(format!("templates.{name}"), source));
            }
        }
        let mut failed = Vec::new();
        for (name, table) in configuration.beans.iter() {
            let Some(found) = bean_type(&table.bean_type.value) else { continue };
            let built = caught(|| (found.build)(&mut beans, name.into(), table.settings.clone()));
            let built = built.unwrap_or_else(|panic| {
                Err(BeanBuildError::Constructor(format!("the constructor panicked: {panic}").into()))
            });
            if let Err(source) = built {
                failed.push((found.rust_type)());
                problems.push(ConfigError::Bean { place: table.place.clone(), source });
            }
        }
        plan::check_beans(&plan.listeners, &beans, &failed, &mut problems);
        problems.into_result(beans)
    }
}

fn bean_type(name: &str) -> Option<&'static BeanType> {
    inventory::iter::<BeanType>().find(|found| found.name == name)
}

fn bean_error(key: String, source: BeanError) -> ConfigError {
    ConfigError::Bean { place: Place::in_code(key), source: BeanBuildError::Bean(source) }
}
