//! What an application consists of once every name in its configuration is resolved.

mod listeners;
mod remark;
#[cfg(all(test, feature = "embedded"))]
mod tests;

use std::sync::Arc;

use corriere_core::{Clock, ConnectionFactory, Destination, SendOptions};
use corriere_templates::{ConverterType, JmsTemplate, JsonConverter};
use listeners::ListenerPlan;
pub use listeners::PlannedListener;
pub use remark::Remark;

use super::bean_plan::{BeanPlan, GivenBean, PlannedConverter, PlannedTemplate, WiredBeans};
use super::factories::{NamedFactory, factories};
use super::type_names::{check_type_name, converter_types};
use crate::beans::BeanType;
use crate::config::{
    ConfigError, Configuration, Place, Problems, Setting, TemplateTable, UnknownDestination, known_names,
    unknown_name,
};
use crate::listener::ListenerDef;

/// The parts of an application, none of them at work yet.
pub(super) struct Plan {
    pub(super) factories: Vec<NamedFactory>,
    /// Nothing, where anything is wrong with one of them.
    pub(super) beans: WiredBeans,
    pub(super) listeners: Vec<PlannedListener>,
    pub(super) remarks: Vec<Remark>,
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
        let (templates, remarks) = (Vec::new(), Vec::new());
        let mut planner = Planner { configuration, parts, factories, beans, templates, problems, remarks };
        planner.check_listener_ids();
        planner.beans();
        planner.templates();
        let (mut users, mut listeners) = (Vec::new(), Vec::new());
        for plan in planner.listeners() {
            match plan {
                ListenerPlan::NotEnabled => {}
                ListenerPlan::Enabled { user, planned } => {
                    users.push(user);
                    listeners.extend(planned.map(|planned| *planned));
                }
            }
        }
        planner.check_client_ids(&listeners);
        planner.check_templates(&listeners);
        let Planner { factories, beans, problems, mut remarks, .. } = planner;
        let beans = beans.wire(&users, problems).unwrap_or_default();
        remarks.extend(configuration.without_effect.iter().cloned().map(Remark::WithoutEffect));
        Self { factories, beans, listeners, remarks }
    }
}

struct Planner<'a> {
    configuration: &'a Configuration,
    parts: &'a Parts<'a>,
    factories: Vec<NamedFactory>,
    beans: BeanPlan,
    /// The connection factory of each template, and what says so.
    templates: Vec<(Place, ConnectionFactory)>,
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
        for NamedFactory { name, factory, place } in &self.factories {
            self.beans.add_factory(name, place.clone(), Some(factory));
        }
        for (name, table) in tables.iter() {
            if !self.factories.iter().any(|made| made.name == name && made.place.is_some()) {
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
        if let Some(NamedFactory { factory, .. }) = &factory {
            let place = table.connection_factory.as_ref().map_or(&table.place, |named| &named.place);
            self.templates.push((place.clone(), factory.clone()));
        }
        let converter = self.converter(table.message_converter.as_ref());
        let destination = table.default_destination.as_ref().map(|name| self.address(name));
        let mut builder = JmsTemplate::builder(factory?.factory)
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

    fn factory(&mut self, named: Option<&Setting<String>>, user: &str, key: &str) -> Option<NamedFactory> {
        if let (None, [only]) = (named, &*self.factories) {
            return Some(only.clone());
        }
        let known: Vec<_> = self.factories.iter().map(|factory| factory.name.clone()).collect();
        let tables = &self.configuration.connection_factories;
        match named {
            Some(named) => {
                let found = self.factories.iter().find(|factory| factory.name == named.value).cloned();
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
            return Some(PlannedConverter::Bean(named.clone()));
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
        Some(PlannedConverter::Bean(named.clone()))
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
