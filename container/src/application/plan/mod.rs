//! What an application consists of once every name in its configuration is resolved.

mod listeners;
#[cfg(all(test, feature = "embedded"))]
mod tests;

use std::fmt;
use std::sync::Arc;

use corriere_core::{Clock, ConnectionFactory, Destination, SendOptions};
use corriere_templates::{ConverterType, JmsTemplate, JsonConverter};
pub use listeners::PlannedListener;

use super::bean_plan::{BeanPlan, GivenBean, PlannedConverter, PlannedTemplate, WiredBeans, converter_need};
use super::factories::factories;
use super::type_names::{check_type_name, converter_types};
use crate::beans::{BeanOwner, BeanType, Need, User};
use crate::config::{
    ConfigError, Configuration, Place, Problems, Setting, TemplateTable, UnknownDestination, known_names,
    unknown_name,
};
use crate::listener::ListenerDef;

/// The parts of an application, none of them at work yet.
pub(super) struct Plan {
    pub(super) factories: Vec<(String, ConnectionFactory)>,
    /// Nothing, where anything is wrong with one of them.
    pub(super) beans: WiredBeans,
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
        let remarks = Vec::new();
        let mut planner = Planner { configuration, parts, factories, beans, problems, remarks };
        planner.check_listener_ids();
        planner.beans();
        planner.templates();
        let listeners = planner.listeners();
        let Planner { factories, beans, problems, remarks, .. } = planner;
        let users = users(parts.listeners, &listeners, &remarks);
        let beans = beans.wire(&users, problems).unwrap_or_default();
        Self { factories, beans, listeners, remarks }
    }
}

/// What the listeners need that are started, also those that could not be planned.
fn users(listeners: &[ListenerDef], planned: &[PlannedListener], remarks: &[Remark]) -> Vec<User> {
    let is_enabled = |id: &str| {
        !remarks.iter().any(|remark| matches!(remark, Remark::NotEnabled { listener, .. } if *listener == id))
    };
    let user = |listener: &ListenerDef| {
        let mut needs = Need::of_arguments(listener.beans);
        let planned = planned.iter().find(|planned| planned.listener.id == listener.id);
        needs.extend(planned.and_then(|planned| planned.message_converter.as_deref()).map(converter_need));
        User { owner: BeanOwner::Listener { id: listener.id.to_owned() }, needs }
    };
    listeners.iter().filter(|listener| is_enabled(listener.id)).map(user).collect()
}

struct Planner<'a> {
    configuration: &'a Configuration,
    parts: &'a Parts<'a>,
    factories: Vec<(String, ConnectionFactory)>,
    beans: BeanPlan,
    problems: &'a mut Problems,
    remarks: Vec<Remark>,
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
        if let Some(transacted) = table.transacted {
            builder = builder.transacted(transacted);
        }
        if let Some(sessions) = table.sessions {
            builder = builder.sessions(sessions);
        }
        Some(PlannedTemplate { builder, converter: converter? })
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
