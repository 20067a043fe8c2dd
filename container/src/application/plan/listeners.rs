//! What holds for each listener.

use std::fmt;
use std::sync::Arc;

use corriere_core::Destination;
use corriere_core::client::name_fault;
use corriere_templates::MessageConverter;

use super::super::bean_plan::{PlannedConverter, converter_need};
use super::super::factories::NamedFactory;
use super::super::unmade::UnmadeConverter;
use super::{Planner, Remark};
use crate::beans::{BeanOwner, Need, User};
use crate::config::{
    ConfigError, ListenerContainerTable, ListenerTable, Place, Setting, contradiction, known_names,
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
        if let (Some(name), Some(client_id)) = (&settings.subscription, settings.factory.client_id()) {
            write!(f, ", subscription `{name}` of client `{client_id}`")?;
        }
        if let Some(destination) = &settings.send_to {
            write!(f, ", replies to {destination}")?;
        }
        write!(f, ", container `{container}`, connection factory `{connection_factory}`")
    }
}

/// A durable subscription, and whose it is.
struct Durable {
    name: String,
    client_id: String,
}

/// What becomes of a listener.
pub(super) enum ListenerPlan {
    /// It is not started.
    NotEnabled,
    /// It is started.
    Enabled {
        /// What it needs.
        user: User,
        /// What holds for it; `None` where anything is wrong with it, which is said.
        planned: Option<Box<PlannedListener>>,
    },
}

impl Planner<'_> {
    pub(super) fn check_listener_ids(&mut self) {
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

    pub(super) fn listeners(&mut self) -> Vec<ListenerPlan> {
        let listeners = self.parts.listeners;
        listeners.iter().map(|listener| self.listener(*listener)).collect()
    }

    fn listener(&mut self, listener: ListenerDef) -> ListenerPlan {
        let own = self.configuration.listeners.get(listener.id);
        let said = own.and_then(|own| own.enabled.as_ref());
        if let Some(said) = said.filter(|enabled| !enabled.value) {
            return self.not_enabled(listener.id, said);
        }
        let container = self.container(&listener, own);
        let of_container = container.as_ref().and_then(|(_, table)| table.enabled.as_ref());
        if let Some(of_container) = of_container.filter(|enabled| said.is_none() && !enabled.value) {
            return self.not_enabled(listener.id, of_container);
        }
        let table = container.as_ref().map(|(_, table)| table.clone()).unwrap_or_default();
        let converter = own.and_then(|own| own.message_converter.as_ref());
        let converter = self.converter(converter.or(table.message_converter.as_ref()));

        let mut needs = Need::of_arguments(listener.beans);
        if let Some(PlannedConverter::Bean(named)) = &converter {
            needs.push(converter_need(named));
        }
        let user = User { owner: BeanOwner::Listener { id: listener.id.to_owned() }, needs };
        let planned = self.enabled_listener(listener, own, container, &table, converter);
        ListenerPlan::Enabled { user, planned: planned.map(Box::new) }
    }

    /// A listener that is started; `None` when anything is wrong with it. All of that is said before anything of it ends
    /// the plan.
    fn enabled_listener(
        &mut self,
        listener: ListenerDef,
        own: Option<&ListenerTable>,
        container: Option<(String, ListenerContainerTable)>,
        table: &ListenerContainerTable,
        converter: Option<PlannedConverter>,
    ) -> Option<PlannedListener> {
        // A container that is not known may well name one.
        let factory = container.as_ref().and_then(|(container, table)| {
            self.factory(
                table.connection_factory.as_ref(),
                &format!("listener `{}`", listener.id),
                &format!("listener_containers.{container}.connection_factory"),
            )
        });
        let source = self.source(&listener, own);
        let send_to = self.send_to(&listener, own);
        let acknowledge = self.acknowledge(&listener, own, table);
        let concurrency =
            source.as_ref().and_then(|(destination, _)| self.concurrency(&listener, own, table, destination));
        let prefetch =
            source.as_ref().and_then(|(destination, place)| self.prefetch(own, table, destination, place));
        let subscription = source.as_ref().zip(factory.as_ref());
        let subscription = subscription
            .and_then(|((destination, _), factory)| self.subscription(&listener, own, destination, factory));

        let (container, _) = container?;
        let NamedFactory { name: connection_factory, factory, .. } = factory?;
        let (subscription, factory) = match subscription? {
            Some(Durable { name, client_id }) => {
                (Some(name.as_str().into()), factory.with_client_id(&client_id))
            }
            None => (None, factory),
        };
        let (message_converter, converter): (_, Arc<dyn MessageConverter>) = match converter? {
            PlannedConverter::Made(converter) => (None, converter),
            PlannedConverter::Bean(Setting { value: name, .. }) => {
                (Some(name.clone()), Arc::new(UnmadeConverter { name }))
            }
        };
        let (destination, _) = source?;
        let mut settings = ContainerSettings::new(factory, destination, converter);
        settings.subscription = subscription;
        settings.concurrency = concurrency?;
        settings.send_to = send_to?;
        settings.clock = self.parts.clock.clone();
        settings.acknowledge = acknowledge.unwrap_or(settings.acknowledge);
        settings.prefetch = prefetch?.unwrap_or(settings.prefetch);
        settings.shutdown_timeout = table.shutdown_timeout.unwrap_or(settings.shutdown_timeout);
        settings.idle_timeout = table.idle_timeout.unwrap_or(settings.idle_timeout);
        settings.back_off = table.recovery_interval.unwrap_or(settings.back_off);
        settings.maximum_back_off = table.maximum_recovery_interval.unwrap_or(settings.maximum_back_off);
        Some(PlannedListener { listener, container, connection_factory, message_converter, settings })
    }

    /// Where replies go, if it is said; `None` when what is said is wrong.
    fn send_to(
        &mut self,
        listener: &ListenerDef,
        own: Option<&ListenerTable>,
    ) -> Option<Option<Destination>> {
        let send_to = own
            .and_then(|own| own.send_to.clone())
            .or_else(|| listener.send_to.map(|name| in_attribute(listener, "send_to", name.to_owned())));
        let Some(send_to) = send_to else { return Some(None) };
        if listener.replies {
            return self.address(&send_to).map(Some);
        }
        let expected = || "nothing: the listener's function returns nothing that could be sent".to_owned();
        self.problems.push(send_to.place.error(expected, |place| ConfigError::Value {
            place,
            found: format!("\"{}\"", send_to.value),
            expected: expected(),
        }));
        None
    }

    /// The durable subscription of a listener, if it has one; `None` when what is said of it is wrong.
    fn subscription(
        &mut self,
        listener: &ListenerDef,
        own: Option<&ListenerTable>,
        destination: &Destination,
        factory: &NamedFactory,
    ) -> Option<Option<Durable>> {
        let said = |key, in_table: Option<&Setting<String>>, attribute: Option<&'static str>| {
            let attribute = || attribute.map(|value| in_attribute(listener, key, value.to_owned()));
            in_table.cloned().or_else(attribute)
        };
        let name = said("subscription", own.and_then(|own| own.subscription.as_ref()), listener.subscription);
        let client_id = said("client_id", own.and_then(|own| own.client_id.as_ref()), listener.client_id);
        let mut is_right = true;
        let named = [&name, &client_id].into_iter().flatten();
        for setting in named.filter(|said| name_fault(&said.value).is_some()) {
            self.refuse(setting, "a name of at most 1,024 bytes, without control characters");
            is_right = false;
        }
        let Some(name) = name else {
            if let Some(client_id) = client_id {
                self.refuse(&client_id, "a `subscription` beside it, which alone needs one");
                return None;
            }
            return is_right.then_some(None);
        };
        if !destination.is_topic() {
            let expected =
                format!("a listener to a topic; the queue `{}` has no subscriptions", destination.name());
            self.refuse(&name, &expected);
            return None;
        }
        let of_factory = || factory.factory.client_id().map(str::to_owned);
        let Some(client_id) = client_id.map(|said| said.value).or_else(of_factory) else {
            let (id, factory) = (listener.id, &factory.name);
            let expected = format!(
                "a client id for it: `client_id` beside it or in `[listeners.{id}]`; the one of `[connection_factories.{factory}]` is for a factory with a single connection"
            );
            self.refuse(&name, &expected);
            return None;
        };
        is_right.then_some(Some(Durable { name: name.value, client_id }))
    }

    /// Refuses a listener with a durable subscription that would have to share its client id with another listener: each has a
    /// connection of its own, and only one connection can have a client id.
    pub(super) fn check_client_ids(&mut self, listeners: &[PlannedListener]) {
        let client_of = |listener: &PlannedListener| {
            let factory = &listener.settings.factory;
            factory.client_id().map(|id| (factory.url().to_owned(), id.to_owned()))
        };
        for (index, listener) in listeners.iter().enumerate() {
            let Some(client) = client_of(listener).filter(|_| listener.settings.subscription.is_some())
            else {
                continue;
            };
            // Of two durable ones the second is told.
            let others = listeners.iter().enumerate().filter(|(place, other)| {
                *place < index || (*place > index && other.settings.subscription.is_none())
            });
            let mut others = others.map(|(_, other)| other);
            let Some(other) = others.find(|other| client_of(other).as_ref() == Some(&client)) else {
                continue;
            };
            let id = listener.listener.id;
            let own = self.configuration.listeners.get(id).and_then(|own| own.subscription.as_ref());
            let place = own.map_or_else(
                || in_attribute(&listener.listener, "subscription", ()).place,
                |own| own.place.clone(),
            );
            self.problems.push(ConfigError::Value {
                place,
                found: format!("with the client id `{}`, which listener `{}` has", client.1, other.listener.id),
                expected: format!(
                    "a `client_id` of its own, in `[listeners.{id}]`, as each listener has a connection of its own"
                ),
            });
        }
    }

    /// Refuses a template whose connection would need the client id that a listener with a durable subscription keeps. Where that
    /// listener is transacted and of the template's own connection factory, the template may be for its runs alone, in which
    /// it has no connection of its own.
    pub(super) fn check_templates(&mut self, listeners: &[PlannedListener]) {
        for (place, factory) in std::mem::take(&mut self.templates) {
            let Some(client_id) = factory.client_id() else { continue };
            let keeps = |PlannedListener { settings, .. }: &&PlannedListener| {
                let joins =
                    settings.acknowledge == Acknowledge::Transacted && settings.factory.is_same(&factory);
                settings.subscription.is_some()
                    && settings.factory.url() == factory.url()
                    && settings.factory.client_id() == Some(client_id)
                    && !joins
            };
            let Some(PlannedListener { listener, .. }) = listeners.iter().find(keeps) else { continue };
            let id = listener.id;
            self.problems.push(ConfigError::Value {
                place,
                found: format!("with the client id `{client_id}`, which listener `{id}` has"),
                expected: format!(
                    "a connection factory without it, or another `client_id` in `[listeners.{id}]`, as only one connection can have it"
                ),
            });
        }
    }

    fn refuse(&mut self, said: &Setting<String>, expected: &str) {
        self.problems.push(said.place.error(
            || expected.to_owned(),
            |place| ConfigError::Value {
                place,
                found: format!("\"{}\"", said.value),
                expected: expected.to_owned(),
            },
        ));
    }

    /// How far the broker may send ahead, if it is said; `None` when what is said is wrong.
    fn prefetch(
        &mut self,
        own: Option<&ListenerTable>,
        table: &ListenerContainerTable,
        destination: &Destination,
        place: &Place,
    ) -> Option<Option<u32>> {
        match (own.and_then(|own| own.prefetch), destination.consumer_prefetch()) {
            (Some(own), _) => Some(Some(own)),
            (None, Some(0)) => {
                self.problems.push(ConfigError::Value {
                    place: place.clone(),
                    found: "a destination with `consumer.prefetchSize=0`".to_owned(),
                    expected: "1 or more for a listener, which does not pull".to_owned(),
                });
                None
            }
            (None, Some(of_destination)) => Some(Some(of_destination)),
            (None, None) => Some(table.prefetch),
        }
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

    /// Remarks a listener that is not to be started.
    fn not_enabled(&mut self, listener: &'static str, said: &Setting<bool>) -> ListenerPlan {
        self.remarks.push(Remark::NotEnabled { listener, place: said.place.clone() });
        ListenerPlan::NotEnabled
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
}

fn in_attribute<T>(listener: &ListenerDef, key: &str, value: T) -> Setting<T> {
    Setting {
        value,
        place: Place::in_attribute(format!("#[jms_listener] {}: {key}", listener.id), listener.location),
    }
}
