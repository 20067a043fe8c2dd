//! What an application consists of once every name in its configuration is resolved.

use std::fmt;
use std::sync::Arc;

use corriere_core::{Clock, ConnectionFactory, Destination, SendOptions};
use corriere_templates::{ConverterType, JmsTemplate, JsonConverter, MessageConverter};

use super::bean_plan::{BeanPlan, GivenBean, PlannedConverter, PlannedTemplate, WiredBeans, converter_need};
use super::factories::factories;
use super::type_names::{check_type_name, converter_types};
use super::unmade::UnmadeConverter;
use crate::beans::{BeanOwner, BeanType, Need, User};
use crate::config::{
    ConfigError, Configuration, ListenerContainerTable, ListenerTable, Place, Problems, Setting,
    TemplateTable, UnknownDestination, known_names, unknown_name,
};
use crate::containers::ContainerSettings;
use crate::listener::{Concurrency, ListenerDef, ListenerDestination};
use crate::nearest::nearest;

const DEFAULT_CONTAINER: &str = "default";

/// A listener with what holds for it: the built-in defaults under its container's table, its attribute, and its own
/// table `[listeners.ID]`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlannedListener {
    /// The listener.
    pub listener: ListenerDef,
    /// The name of its container.
    pub container: String,
    /// The name of its connection factory.
    pub connection_factory: String,
    /// The name of its message converter where that is a bean, which the settings have only once the beans are made.
    pub message_converter: Option<String>,
    /// Everything else.
    pub settings: ContainerSettings,
}

impl fmt::Display for PlannedListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { listener, container, connection_factory, settings, .. } = self;
        let ContainerSettings { destination, acknowledge, concurrency, prefetch, .. } = settings;
        write!(f, "listener `{}` in `{}`: {destination}, ack {acknowledge}", listener.id, listener.module)?;
        write!(f, ", concurrency {concurrency}, prefetch {prefetch}")?;
        if let Some(destination) = &settings.send_to {
            write!(f, ", replies to {destination}")?;
        }
        write!(f, ", container `{container}`, connection factory `{connection_factory}`")
    }
}

/// The parts of an application, none of them at work yet.
pub(super) struct Plan {
    pub(super) factories: Vec<(String, ConnectionFactory)>,
    /// Nothing, where anything is wrong with one of them.
    pub(super) beans: WiredBeans,
    pub(super) listeners: Vec<PlannedListener>,
}

/// What a plan is made of besides the configuration.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    /// Connection factories that the program brings.
    pub(super) factories: &'a [(String, ConnectionFactory)],
    /// Beans that it brings.
    pub(super) beans: &'a [GivenBean],
    /// Another URL for every connection factory of the configuration.
    pub(super) url: Option<&'a str>,
    pub(super) listeners: &'a [ListenerDef],
    pub(super) clock: &'a Clock,
}

impl Plan {
    /// Resolves every name.
    pub(super) fn new(configuration: &Configuration, parts: &Parts<'_>, problems: &mut Problems) -> Self {
        let factories = factories(configuration, parts, problems);
        let beans = BeanPlan::default();
        let mut planner = Planner { configuration, parts, factories, beans, problems };
        planner.check_listener_ids();
        planner.beans();
        planner.templates();
        let listeners = planner.listeners();
        let Planner { factories, beans, problems, .. } = planner;
        let beans = beans.wire(&users(parts.listeners, &listeners), problems).unwrap_or_default();
        Self { factories, beans, listeners }
    }
}

/// What the listeners need, also those that could not be planned.
fn users(listeners: &[ListenerDef], planned: &[PlannedListener]) -> Vec<User> {
    let user = |listener: &ListenerDef| {
        let mut needs = Need::of_arguments(listener.beans);
        let planned = planned.iter().find(|planned| planned.listener.id == listener.id);
        needs.extend(planned.and_then(|planned| planned.message_converter.as_deref()).map(converter_need));
        User { owner: BeanOwner::Listener { id: listener.id.to_owned() }, needs }
    };
    listeners.iter().map(user).collect()
}

struct Planner<'a> {
    configuration: &'a Configuration,
    parts: &'a Parts<'a>,
    factories: Vec<(String, ConnectionFactory)>,
    beans: BeanPlan,
    problems: &'a mut Problems,
}

impl Planner<'_> {
    /// All beans but the templates, some of which need one of these as their converter.
    fn beans(&mut self) {
        for given in self.parts.beans {
            self.beans.add_given(given);
        }
        let tables = &self.configuration.connection_factories;
        for (name, factory) in &self.factories {
            let place = tables.get(name).map(|table| table.url.place.clone());
            self.beans.add_factory(name, place, Some(factory));
        }
        for (name, table) in tables.iter() {
            if !self.factories.iter().any(|(made, _)| made == name) {
                self.beans.add_factory(name, Some(table.url.place.clone()), None);
            }
        }
        for (name, table) in self.configuration.message_converters.iter() {
            self.beans.add_converter(name, table, self.problems);
        }
        for (name, table) in self.configuration.beans.iter() {
            self.beans.add_bean(name, table, self.problems);
        }
    }

    fn check_listener_ids(&mut self) {
        let listeners = self.parts.listeners;
        let mut known: Vec<String> = listeners.iter().map(|listener| listener.id.to_owned()).collect();
        for (index, id) in known.iter().enumerate() {
            if known[..index].contains(id) {
                let same = listeners.iter().filter(|listener| listener.id == id);
                let modules = same.map(|listener| format!("`{}`", listener.module)).collect();
                self.problems.push(ConfigError::SameListener { id: id.clone(), modules });
            }
        }
        if let Some(expect) = &self.configuration.application.expect {
            for id in expect.value.iter().filter(|id| !known.contains(id)) {
                let expected =
                    || format!("the ids of listeners in this program; {}", known_names("there is", &known));
                self.problems.push(expect.place.error(expected, |place| ConfigError::MissingListener {
                    place,
                    id: id.clone(),
                    known: known.clone(),
                    nearest: nearest(id, known.iter().map(String::as_str)),
                }));
            }
        }
        // A table for a listener that is linked in and not started this time is no mistake.
        known.extend(ListenerDef::all().into_iter().map(|listener| listener.id.to_owned()));
        known.sort();
        known.dedup();
        for (id, table) in self.configuration.listeners.iter() {
            if !known.iter().any(|known| known == id) {
                let named = Setting { value: id.to_owned(), place: table.place.clone() };
                self.unknown("listener", &named, known.clone());
            }
        }
    }

    fn templates(&mut self) {
        for (name, table) in self.configuration.templates.iter() {
            let template = self.template(name, table);
            self.beans.add_template(name, table.place.clone(), template);
        }
    }

    fn template(&mut self, name: &str, table: &TemplateTable) -> Option<PlannedTemplate> {
        let user = format!("template `{name}`");
        let factory = self.factory(
            table.connection_factory.as_ref(),
            &user,
            &format!("templates.{name}.connection_factory"),
        );
        let converter = self.converter(table.message_converter.as_ref());
        let destination = table.default_destination.as_ref().map(|name| self.address(name));
        let (_, factory) = factory?;
        let mut builder = JmsTemplate::builder(factory)
            .destination_resolver(Arc::new(self.configuration.destinations.clone()))
            .send_options(SendOptions {
                delivery_mode: table.delivery_mode,
                priority: table.priority,
                time_to_live: table.time_to_live,
                ..SendOptions::default()
            });
        if let Some(destination) = destination {
            builder = builder.default_destination(destination?);
        }
        if let Some(timeout) = table.receive_timeout {
            builder = builder.receive_timeout(timeout);
        }
        Some(PlannedTemplate { builder, converter: converter? })
    }

    fn listeners(&mut self) -> Vec<PlannedListener> {
        let listeners = self.parts.listeners;
        listeners.iter().filter_map(|listener| self.listener(*listener)).collect()
    }

    fn listener(&mut self, listener: ListenerDef) -> Option<PlannedListener> {
        let own = self.configuration.listeners.get(listener.id);
        let (container, table) = self.container(&listener, own)?;
        let factory = self.factory(
            table.connection_factory.as_ref(),
            &format!("listener `{}`", listener.id),
            &format!("listener_containers.{container}.connection_factory"),
        );
        let converter =
            own.and_then(|own| own.message_converter.as_ref()).or(table.message_converter.as_ref());
        let converter = self.converter(converter);
        let destination = self.source(&listener, own);
        let send_to = own
            .and_then(|own| own.send_to.clone())
            .or_else(|| listener.send_to.map(|name| in_attribute(&listener, "send_to", name.to_owned())));
        if let Some(send_to) = send_to.as_ref().filter(|_| !listener.replies) {
            let expected =
                || "nothing: the listener's function returns nothing that could be sent".to_owned();
            self.problems.push(send_to.place.error(expected, |place| ConfigError::Value {
                place,
                found: format!("\"{}\"", send_to.value),
                expected: expected(),
            }));
        }
        let send_to = send_to.filter(|_| listener.replies).map(|name| self.address(&name));
        let (connection_factory, factory) = factory?;
        let destination = destination?;
        let concurrency = self.concurrency(&listener, own, &table, &destination)?;

        let (message_converter, converter): (_, Arc<dyn MessageConverter>) = match converter? {
            PlannedConverter::Made(converter) => (None, converter),
            PlannedConverter::Bean(name) => (Some(name.clone()), Arc::new(UnmadeConverter { name })),
        };
        let mut settings = ContainerSettings::new(factory, destination, converter);
        settings.concurrency = concurrency;
        settings.send_to = match send_to {
            Some(send_to) => Some(send_to?),
            None => None,
        };
        settings.clock = self.parts.clock.clone();
        let acknowledge = own.and_then(|own| own.acknowledge).or(listener.acknowledge).or(table.acknowledge);
        settings.acknowledge = acknowledge.unwrap_or(settings.acknowledge);
        let prefetch = own
            .and_then(|own| own.prefetch)
            .or_else(|| settings.destination.consumer_prefetch())
            .or(table.prefetch);
        settings.prefetch = prefetch.unwrap_or(settings.prefetch);
        settings.shutdown_timeout = table.shutdown_timeout.unwrap_or(settings.shutdown_timeout);
        Some(PlannedListener { listener, container, connection_factory, message_converter, settings })
    }

    /// The container of a listener. Without a table of its own, `default` has the built-in defaults only.
    fn container(
        &mut self,
        listener: &ListenerDef,
        own: Option<&ListenerTable>,
    ) -> Option<(String, ListenerContainerTable)> {
        let named = own
            .and_then(|own| own.container.clone())
            .or_else(|| listener.container.map(|name| in_attribute(listener, "container", name.to_owned())));
        let tables = &self.configuration.listener_containers;
        let name = named.as_ref().map_or(DEFAULT_CONTAINER, |named| &named.value);
        match (tables.get(name), &named) {
            (Some(table), _) => Some((name.to_owned(), table.clone())),
            (None, Some(named)) if name != DEFAULT_CONTAINER => {
                self.unknown("listener container", named, tables.names().map(str::to_owned).collect());
                None
            }
            (None, _) => Some((name.to_owned(), ListenerContainerTable::default())),
        }
    }

    /// Where a listener's messages come from.
    fn source(&mut self, listener: &ListenerDef, own: Option<&ListenerTable>) -> Option<Destination> {
        let destinations = &self.configuration.destinations;
        if let Some(queue) = own.and_then(|own| own.queue.as_ref()) {
            return self.found(&queue.place, destinations.queue(&queue.value));
        }
        if let Some(topic) = own.and_then(|own| own.topic.as_ref()) {
            return self.found(&topic.place, destinations.topic(&topic.value));
        }
        let (key, found) = match listener.destination {
            ListenerDestination::Queue(name) => ("queue", destinations.queue(name)),
            ListenerDestination::Topic(name) => ("topic", destinations.topic(name)),
        };
        self.found(&in_attribute(listener, key, ()).place, found)
    }

    /// On a topic, more than one worker is a mistake where it was said of this listener, and cut to one where it was said
    /// of its container, which others share.
    fn concurrency(
        &mut self,
        listener: &ListenerDef,
        own: Option<&ListenerTable>,
        table: &ListenerContainerTable,
        destination: &Destination,
    ) -> Option<Concurrency> {
        let said = own.and_then(|own| own.concurrency.clone()).or_else(|| {
            listener.concurrency.map(|concurrency| in_attribute(listener, "concurrency", concurrency))
        });
        match said {
            Some(said) if destination.is_topic() && said.value.upper() > 1 => {
                let topic = destination.name();
                self.problems.push(ConfigError::Value {
                    found: said.place.hidden().map_or_else(|| format!("\"{}\"", said.value), str::to_owned),
                    place: said.place,
                    expected: format!(
                        "\"1\", as each worker of a listener to the topic `{topic}` would get every message"
                    ),
                });
                None
            }
            Some(said) => Some(said.value),
            None if destination.is_topic() => Some(Concurrency::ONE),
            None => Some(table.concurrency.unwrap_or_default()),
        }
    }

    fn factory(
        &mut self,
        named: Option<&Setting<String>>,
        user: &str,
        key: &str,
    ) -> Option<(String, ConnectionFactory)> {
        if let (None, [only]) = (named, &*self.factories) {
            return Some(only.clone());
        }
        let known: Vec<_> = self.factories.iter().map(|(name, _)| name.clone()).collect();
        let tables = &self.configuration.connection_factories;
        match named {
            Some(named) => {
                let found = self.factories.iter().find(|(name, _)| *name == named.value).cloned();
                // A factory whose URL is wrong is none that is unknown; its own error is said already.
                if found.is_none() && tables.get(&named.value).is_none() {
                    self.unknown("connection factory", named, known);
                }
                found
            }
            None => {
                if tables.names().count() != 1 {
                    let place = Place::in_code(key);
                    self.problems.push(ConfigError::NoConnectionFactory {
                        user: user.to_owned(),
                        place,
                        known,
                    });
                }
                None
            }
        }
    }

    /// A converter by the name of its bean, or else by its type.
    fn converter(&mut self, named: Option<&Setting<String>>) -> Option<PlannedConverter> {
        let Some(named) = named else { return Some(PlannedConverter::Made(Arc::new(JsonConverter::new()))) };
        let name = &named.value;
        if self.beans.has_converter(name) {
            return Some(PlannedConverter::Bean(name.clone()));
        }
        let mut registered = converter_types().filter(|(registered, _)| registered == name);
        if registered.next().is_none() {
            let types = converter_types().map(|(name, _)| name);
            let mut known: Vec<_> = self.beans.converters().chain(types).map(str::to_owned).collect();
            known.sort();
            known.dedup();
            self.unknown("message converter", named, known);
            return None;
        }
        if let Err(error) = check_type_name("message converter type", named, converter_types()) {
            self.problems.push(error);
            return None;
        }
        if let Some(plain) = ConverterType::named(name).next() {
            return Some(PlannedConverter::Made((plain.build)()));
        }
        let found = BeanType::all().find(|found| found.is_converter && found.name == name)?;
        self.beans.add_converter_of_type(found, &named.place, self.problems);
        Some(PlannedConverter::Bean(name.clone()))
    }

    /// Where messages are sent to, a queue or a topic.
    fn address(&mut self, name: &Setting<String>) -> Option<Destination> {
        self.found(&name.place, self.configuration.destinations.resolve(&name.value))
    }

    fn found(
        &mut self,
        place: &Place,
        found: Result<Destination, UnknownDestination>,
    ) -> Option<Destination> {
        let expected = |source: &UnknownDestination| match source {
            UnknownDestination::NotListed { known, .. } => format!(
                "a key of `[destinations]`, `queue://NAME` or `topic://NAME`; {}",
                known_names("there is", known)
            ),
            UnknownDestination::OtherKind { wanted, .. } => format!("the name of a {wanted}"),
            UnknownDestination::Name(_) => "the name of a destination".to_owned(),
        };
        found
            .map_err(|source| {
                let expected = || expected(&source);
                let error = place.error(expected, |place| ConfigError::UnknownDestination {
                    place,
                    source: source.clone(),
                });
                self.problems.push(error);
            })
            .ok()
    }

    fn unknown(&mut self, what: &'static str, named: &Setting<String>, known: Vec<String>) {
        self.problems.push(unknown_name(what, named, known));
    }
}

fn in_attribute<T>(listener: &ListenerDef, key: &str, value: T) -> Setting<T> {
    Setting { value, place: Place::in_code(format!("#[jms_listener] {}: {key}", listener.id)) }
}
