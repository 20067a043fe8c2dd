//! What an application consists of once every name in its configuration is resolved.

use std::fmt;
use std::sync::Arc;

use corriere_core::{Clock, ConnectionFactory, Destination, SendOptions};
use corriere_templates::{ConverterType, JmsTemplate, JsonConverter, MessageConverter};

use super::factories::factories;
use crate::beans::Beans;
use crate::config::{
    ConfigError, Configuration, ListenerContainerTable, ListenerTable, Place, Problems, Setting,
    TemplateTable, UnknownDestination, contradiction, known_names, unknown_name,
};
use crate::containers::ContainerSettings;
use crate::listener::{Acknowledge, Concurrency, ListenerDef, ListenerDestination};
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
    /// Everything else.
    pub settings: ContainerSettings,
}

impl fmt::Display for PlannedListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { listener, container, connection_factory, settings } = self;
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
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) factories: Vec<(String, ConnectionFactory)>,
    pub(super) templates: Vec<(String, JmsTemplate)>,
    pub(super) listeners: Vec<PlannedListener>,
    pub(super) remarks: Vec<Remark>,
}

/// What is no mistake and worth a line in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Remark {
    /// A listener that is not started.
    NotEnabled { listener: &'static str, place: Place },
    /// An acknowledge mode that has no effect, as the listener is transacted.
    TransactedWins { listener: &'static str, transacted: Place, acknowledge: Place },
}

impl Remark {
    pub(super) fn log(&self) {
        match self {
            Self::NotEnabled { .. } => tracing::info!("{self}"),
            Self::TransactedWins { .. } => tracing::warn!("{self}"),
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEnabled { listener, place } => {
                write!(f, "listener `{listener}` is not started, as {place} says")
            }
            Self::TransactedWins { listener, transacted, acknowledge } => write!(
                f,
                "listener `{listener}` is transacted, as {transacted} says; {acknowledge} has no effect"
            ),
        }
    }
}

/// What a plan is made of besides the configuration.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    /// Connection factories that the program brings.
    pub(super) factories: &'a [(String, ConnectionFactory)],
    /// Another URL for every connection factory of the configuration.
    pub(super) url: Option<&'a str>,
    pub(super) listeners: &'a [ListenerDef],
    pub(super) clock: &'a Clock,
}

impl Plan {
    /// Resolves every name.
    pub(super) fn new(configuration: &Configuration, parts: &Parts<'_>, problems: &mut Problems) -> Self {
        let factories = factories(configuration, parts, problems);
        let remarks = Vec::new();
        let mut planner = Planner { configuration, parts, factories, problems, remarks };
        planner.check_converters();
        planner.check_listener_ids();
        let templates = planner.templates();
        let listeners = planner.listeners();
        Self { factories: planner.factories, templates, listeners, remarks: planner.remarks }
    }
}

/// Checks that every bean that a listener asks for is there.
///
/// Beans of the types `failed` could not be made, which is said already.
pub(super) fn check_beans(
    listeners: &[PlannedListener],
    beans: &Beans,
    failed: &[&'static str],
    problems: &mut Problems,
) {
    for planned in listeners {
        for request in planned.listener.bean_requests() {
            if let Err(source) = beans.check(request)
                && !failed.contains(&(request.type_name)())
            {
                problems.push(ConfigError::ListenerBean { listener: planned.listener.id.to_owned(), source });
            }
        }
    }
}

/// Checks that a type name in the configuration is that of exactly one type; `registered` are all, by name and Rust type.
pub(super) fn check_type_name(
    what: &'static str,
    named: &Setting<String>,
    registered: impl Iterator<Item = (&'static str, &'static str)>,
) -> Result<(), ConfigError> {
    let registered: Vec<_> = registered.collect();
    let mut rust_types: Vec<_> = registered
        .iter()
        .filter(|(name, _)| *name == named.value)
        .map(|(_, rust_type)| format!("`{rust_type}`"))
        .collect();
    // The linker's order means nothing.
    rust_types.sort();
    match rust_types.len() {
        1 => Ok(()),
        0 => {
            let mut known: Vec<_> = registered.iter().map(|(name, _)| (*name).to_owned()).collect();
            known.sort();
            known.dedup();
            Err(unknown_name(what, named, known))
        }
        _ => {
            let expected = || format!("the name of one {what}; it is that of {}", rust_types.join(" and "));
            Err(named.place.error(expected, |place| ConfigError::SameTypeName {
                place,
                what,
                name: named.value.clone(),
                rust_types: rust_types.clone(),
            }))
        }
    }
}

struct Planner<'a> {
    configuration: &'a Configuration,
    parts: &'a Parts<'a>,
    factories: Vec<(String, ConnectionFactory)>,
    problems: &'a mut Problems,
    remarks: Vec<Remark>,
}

impl Planner<'_> {
    fn check_converters(&mut self) {
        for (_, table) in self.configuration.message_converters.iter() {
            let checked = check_type_name("message converter type", &table.converter_type, converter_types());
            if let Err(error) = checked {
                self.problems.push(error);
            }
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
                let place = expect.place.within(id);
                self.problems.push(place.error(expected, |place| ConfigError::MissingListener {
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

    fn templates(&mut self) -> Vec<(String, JmsTemplate)> {
        let tables = self.configuration.templates.iter();
        tables.filter_map(|(name, table)| Some((name.to_owned(), self.template(name, table)?))).collect()
    }

    fn template(&mut self, name: &str, table: &TemplateTable) -> Option<JmsTemplate> {
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
            .message_converter(converter?)
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
        if let Some(transacted) = table.transacted {
            builder = builder.transacted(transacted);
        }
        if let Some(sessions) = table.sessions {
            builder = builder.sessions(sessions);
        }
        // The default destination, which alone could fail here, is resolved already.
        builder.build().ok()
    }

    fn listeners(&mut self) -> Vec<PlannedListener> {
        let listeners = self.parts.listeners;
        listeners.iter().filter_map(|listener| self.listener(*listener)).collect()
    }

    fn listener(&mut self, listener: ListenerDef) -> Option<PlannedListener> {
        let own = self.configuration.listeners.get(listener.id);
        let said = own.and_then(|own| own.enabled.as_ref());
        if said.is_some_and(|enabled| !enabled.value) {
            return self.not_enabled(listener.id, said);
        }
        let (container, table) = self.container(&listener, own)?;
        if said.is_none() && table.enabled.as_ref().is_some_and(|enabled| !enabled.value) {
            return self.not_enabled(listener.id, table.enabled.as_ref());
        }
        let factory = self.factory(
            table.connection_factory.as_ref(),
            &format!("listener `{}`", listener.id),
            &format!("listener_containers.{container}.connection_factory"),
        );
        let converter =
            own.and_then(|own| own.message_converter.as_ref()).or(table.message_converter.as_ref());
        let converter = self.converter(converter);
        let source = self.source(&listener, own);
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
        let (destination, place) = source?;
        let acknowledge = self.acknowledge(&listener, own, &table);
        let concurrency = self.concurrency(&listener, own, &table, &destination)?;

        let mut settings = ContainerSettings::new(factory, destination, converter?);
        settings.concurrency = concurrency;
        settings.send_to = match send_to {
            Some(send_to) => Some(send_to?),
            None => None,
        };
        settings.clock = self.parts.clock.clone();
        settings.acknowledge = acknowledge.unwrap_or(settings.acknowledge);
        settings.prefetch = match (own.and_then(|own| own.prefetch), settings.destination.consumer_prefetch())
        {
            (Some(own), _) => own,
            (None, Some(0)) => {
                self.problems.push(ConfigError::Value {
                    place,
                    found: "a destination with `consumer.prefetchSize=0`".to_owned(),
                    expected: "1 or more for a listener, which does not pull".to_owned(),
                });
                return None;
            }
            (None, Some(of_destination)) => of_destination,
            (None, None) => table.prefetch.unwrap_or(settings.prefetch),
        };
        settings.shutdown_timeout = table.shutdown_timeout.unwrap_or(settings.shutdown_timeout);
        settings.idle_timeout = table.idle_timeout.unwrap_or(settings.idle_timeout);
        settings.back_off = table.recovery_interval.unwrap_or(settings.back_off);
        settings.maximum_back_off = table.maximum_recovery_interval.unwrap_or(settings.maximum_back_off);
        Some(PlannedListener { listener, container, connection_factory, settings })
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

    /// Notes a listener that is not to be started, and plans none.
    fn not_enabled(
        &mut self,
        listener: &'static str,
        said: Option<&Setting<bool>>,
    ) -> Option<PlannedListener> {
        self.remarks.extend(said.map(|said| Remark::NotEnabled { listener, place: said.place.clone() }));
        None
    }

    /// When messages are settled. `transacted` stands above every acknowledge mode, wherever that was said.
    fn acknowledge(
        &mut self,
        listener: &ListenerDef,
        own: Option<&ListenerTable>,
        table: &ListenerContainerTable,
    ) -> Option<Acknowledge> {
        let transacted = own.and_then(|own| own.transacted.as_ref()).or(table.transacted.as_ref());
        let said = own
            .and_then(|own| own.acknowledge.clone())
            .or_else(|| listener.acknowledge.map(|mode| in_attribute(listener, "ack", mode)))
            .or_else(|| table.acknowledge.clone());
        let (transacted, said) = match (transacted, said) {
            (None, said) => return said.map(|said| said.value),
            (Some(transacted), None) => return transacted.value.then_some(Acknowledge::Transacted),
            (Some(transacted), Some(said)) => (transacted, said),
        };
        if let Some(error) = contradiction(transacted, &said) {
            self.problems.push(error);
        }
        if !transacted.value {
            return Some(said.value);
        }
        if said.value != Acknowledge::Transacted {
            self.remarks.push(Remark::TransactedWins {
                listener: listener.id,
                transacted: transacted.place.clone(),
                acknowledge: said.place,
            });
        }
        Some(Acknowledge::Transacted)
    }

    /// Where a listener's messages come from, and what says so.
    fn source(
        &mut self,
        listener: &ListenerDef,
        own: Option<&ListenerTable>,
    ) -> Option<(Destination, Place)> {
        let destinations = &self.configuration.destinations;
        let queue = own.and_then(|own| own.queue.as_ref());
        let topic = own.and_then(|own| own.topic.as_ref());
        let (place, found) = match (queue, topic, listener.destination) {
            (Some(queue), ..) => (queue.place.clone(), destinations.queue(&queue.value)),
            (None, Some(topic), _) => (topic.place.clone(), destinations.topic(&topic.value)),
            (None, None, ListenerDestination::Queue(name)) => {
                (in_attribute(listener, "queue", ()).place, destinations.queue(name))
            }
            (None, None, ListenerDestination::Topic(name)) => {
                (in_attribute(listener, "topic", ()).place, destinations.topic(name))
            }
        };
        Some((self.found(&place, found)?, place))
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

    /// A converter by its name in `[message_converters]`, or by its type.
    fn converter(&mut self, named: Option<&Setting<String>>) -> Option<Arc<dyn MessageConverter>> {
        let Some(named) = named else { return Some(Arc::new(JsonConverter::new())) };
        let tables = &self.configuration.message_converters;
        let table = tables.get(&named.value);
        let type_name = table.map_or(&named.value, |table| &table.converter_type.value);
        let mut found = ConverterType::named(type_name);
        match (found.next(), found.next(), table) {
            (Some(only), None, _) => return Some((only.build)()),
            // What is wrong with the type name of a table is said already.
            (_, _, Some(_)) => {}
            (None, ..) => {
                let types = converter_types().map(|(name, _)| name.to_owned());
                let mut known: Vec<_> = tables.names().map(str::to_owned).chain(types).collect();
                known.sort();
                known.dedup();
                self.unknown("message converter", named, known);
            }
            (Some(_), Some(_), None) => {
                let refused = check_type_name("message converter type", named, converter_types());
                if let Err(error) = refused {
                    self.problems.push(error);
                }
            }
        }
        None
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

/// The names of all converter types, with their Rust types.
fn converter_types() -> impl Iterator<Item = (&'static str, &'static str)> {
    ConverterType::all().map(|converter| (converter.name, (converter.rust_type)()))
}

#[cfg(all(test, feature = "embedded"))]
mod tests;
