//! Puts an application together and starts it.

use std::any::type_name;
use std::io::Write;
use std::sync::Arc;

use corriere_core::{Clock, ConnectionFactory};
use corriere_templates::MessageConverter;

use super::bean_plan::GivenBean;
use super::factories::NamedFactory;
use super::plan::{Parts, Plan, PlannedListener};
use super::{Application, Check, Error, broker, check, factories, time_to_close};
use crate::beans::{Bean, Beans, MadeBean, name_of_type};
use crate::config::{ConfigError, Configuration, Document, Problems};
use crate::containers::{ContainerError, DeliveryObserver, ListenerContainer};
use crate::listener::ListenerDef;

/// Puts an application together: its configuration, and what the program adds to it.
///
/// Everything that has a name is a bean: what [`bean`](Self::bean) hands over, connection factories, message converters,
/// templates, and `[beans.NAME]`. No two of them have the same name. Beans can need each other, and listeners need beans, as
/// [`Bean`] says; each is made once, after those that it needs, and goes before them.
///
/// ```no_run
/// # async fn example() -> Result<(), corriere_container::application::Error> {
/// use corriere_container::application::Application;
///
/// let app = Application::from_config("config.toml")?
///     .set("listeners.on_order.concurrency", "1")
///     .named_bean("greeting", "hello".to_owned())
///     .start()
///     .await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "an application does nothing before `start`"]
pub struct ApplicationBuilder {
    document: Document,
    factories: Vec<(String, ConnectionFactory)>,
    beans: Vec<GivenBean>,
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
            beans: Vec::new(),
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

    /// Adds a bean under the name of its type in snake case: a `SmtpMailer` is `smtp_mailer`.
    pub fn bean<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.shared_bean(Bean::new(value))
    }

    /// Adds a bean under a name of its own.
    pub fn named_bean<T: Send + Sync + 'static>(self, name: &str, value: T) -> Self {
        self.named_shared_bean(name, Bean::new(value))
    }

    /// As [`ApplicationBuilder::bean`], with a bean that others hold as well.
    pub(crate) fn shared_bean<T: Send + Sync + 'static>(mut self, bean: Bean<T>) -> Self {
        let bean = GivenBean::named(&name_of_type(type_name::<T>()), MadeBean::new(bean));
        self.beans.push(GivenBean { is_named_after_type: true, ..bean });
        self
    }

    /// As [`ApplicationBuilder::named_bean`], with a bean that others hold as well.
    pub(crate) fn named_shared_bean<T: Send + Sync + 'static>(mut self, name: &str, bean: Bean<T>) -> Self {
        self.beans.push(GivenBean::named(name, MadeBean::new(bean)));
        self
    }

    /// Adds a message converter, which is also a bean, under a name that templates, containers and listeners can use.
    pub fn message_converter<C: MessageConverter>(mut self, name: &str, converter: C) -> Self {
        let bean = Bean::new(converter);
        let converter = Bean::from(bean.clone().into_arc() as Arc<dyn MessageConverter>);
        self.beans.push(GivenBean::named(name, MadeBean::new(bean).and_converter(converter)));
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

    /// Checks all that can be checked without making a bean or a connection, and answers with the merged configuration,
    /// the listeners with what holds for each, and the beans.
    ///
    /// # Errors
    /// All that is wrong with the configuration or what it names.
    pub fn check(&self) -> Result<Check, ConfigError> {
        let (read, Plan { factories, beans, listeners, remarks }) = self.plan()?;
        let mut configuration = self.document.list(&self.listener_ids())?;
        for factory in &factories {
            factory.correct(&mut configuration, &read);
        }
        let connection_factories = factories.iter().map(NamedFactory::described).collect();
        Ok(Check { configuration, listeners, connection_factories, beans: beans.described(), remarks })
    }

    /// Starts the broker, if there is one, then makes the beans, then starts the listeners.
    ///
    /// A bean is made after those that it needs, which may use the broker as they are made, and once. When this fails,
    /// beans that were made are closed, and go in the reverse order, and then the broker stops; when its future is
    /// dropped, the same happens, but that nothing is closed.
    ///
    /// With the environment variable `CORRIERE_CHECK=1` nothing is started: what [`ApplicationBuilder::check`] answers is
    /// written to standard output.
    ///
    /// # Errors
    /// All that is wrong with the configuration or what it names, a broker that does not start; then the constructors of
    /// beans that fail, all of them but those that need one that has failed; a listener that the application's broker refuses;
    /// [`Error::OnlyChecked`].
    pub async fn start(mut self) -> Result<Application, Error> {
        if self.document.asks_for_a_check()? {
            let checked = self.check();
            check::note(&checked);
            // Whoever closes the pipe has read enough.
            _ = writeln!(std::io::stdout(), "{}", checked?);
            return Err(Error::OnlyChecked);
        }
        let (configuration, plan) = self.plan()?;
        // From here on the plan has them, so that they go in their order.
        self.beans.clear();
        for remark in &plan.remarks {
            remark.log();
        }
        let broker = match &configuration.broker {
            Some(table) if self.url.is_none() => {
                Some(broker::Embedded::start(table, self.clock.clone()).await?)
            }
            _ => None,
        };
        // With the application's own broker it is a matter of a moment until its listeners listen. One elsewhere may be
        // down for long, and then the application comes up before it.
        let embedded = configuration.broker.as_ref().filter(|_| broker.is_some()).map(|table| &*table.name);
        let own = self.url.as_deref().and_then(factories::vm_name).or(embedded);

        let Plan { beans, mut listeners, .. } = plan;
        let time_to_close = time_to_close(&listeners);
        let beans = Arc::new(beans.make(time_to_close).await?);
        let containers = match self.start_listeners(&mut listeners, &beans, own).await {
            Ok(containers) => containers,
            Err(error) => {
                beans.close(time_to_close).await;
                return Err(error);
            }
        };
        Ok(Application {
            containers,
            planned: listeners,
            beans,
            destinations: configuration.destinations,
            broker,
        })
    }

    /// The containers of the listeners, those on the application's own broker listening.
    async fn start_listeners(
        &self,
        listeners: &mut [PlannedListener],
        beans: &Arc<Beans>,
        own: Option<&str>,
    ) -> Result<Vec<ListenerContainer>, Error> {
        if listeners.is_empty() {
            tracing::info!("no listeners");
        }
        let mut containers = Vec::new();
        for planned in &mut *listeners {
            let settings = &mut planned.settings;
            settings.beans = Arc::clone(beans);
            settings.observer.clone_from(&self.observer);
            if let Some(name) = &planned.message_converter {
                settings.converter = beans.named::<dyn MessageConverter>(name)?.into_arc();
            }
            containers.push(ListenerContainer::start(planned.listener, settings.clone())?);
        }
        for (container, planned) in containers.iter().zip(listeners) {
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
        Ok(containers)
    }

    /// The ids under which `[listeners.ID]` can stand.
    fn listener_ids(&self) -> Vec<&'static str> {
        let given = self.listeners.iter().flatten().map(|listener| listener.id);
        ListenerDef::all().iter().map(|listener| listener.id).chain(given).collect()
    }

    fn plan(&self) -> Result<(Configuration, Plan), ConfigError> {
        let linked = ListenerDef::all();
        let listeners = self.listeners.as_ref().unwrap_or(&linked);
        let (configuration, mut all_problems) = self.document.read_partly(&self.listener_ids());
        let mut problems = Problems::default();
        let parts = Parts {
            factories: &self.factories,
            beans: &self.beans,
            url: self.url.as_deref(),
            listeners,
            clock: &self.clock,
        };
        let plan = Plan::new(&configuration, &parts, &mut problems);
        if self.url.is_none() {
            factories::check_reachable(&configuration, &plan.factories, &mut problems);
        }
        if let Some(table) = &configuration.broker {
            broker::Embedded::check(table, &mut problems);
        }
        all_problems.add_later(problems);
        all_problems.into_result((configuration, plan))
    }
}
