//! The tables of a configuration, each with its schema and how it is read.

mod application;
mod beans;
mod broker;
mod connection_factories;
mod destinations;
mod listener_containers;
mod listeners;
mod message_converters;
mod policies;
mod preset;
mod queue_or_topic;
mod redelivery;
mod store;
mod templates;

pub use application::ApplicationTable;
pub use beans::BeanTable;
pub use broker::{BrokerTable, DeadLetterKind};
pub use connection_factories::ConnectionFactoryTable;
pub use listener_containers::ListenerContainerTable;
pub(crate) use listener_containers::contradiction;
pub use listeners::ListenerTable;
pub use message_converters::MessageConverterTable;
pub use policies::PolicyTable;
pub use preset::Preset;
pub use store::StoreTable;
pub use templates::TemplateTable;

use super::destinations::Destinations;
use super::reading::{Reading, WithoutEffect};

/// A configuration that was checked and read.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Configuration {
    /// `[broker]`: the embedded broker; without this table none is started.
    pub broker: Option<BrokerTable>,
    /// `[connection_factories.NAME]`.
    pub connection_factories: Named<ConnectionFactoryTable>,
    /// `[destinations]`.
    pub destinations: Destinations,
    /// `[message_converters.NAME]`.
    pub message_converters: Named<MessageConverterTable>,
    /// `[templates.NAME]`.
    pub templates: Named<TemplateTable>,
    /// `[listener_containers.NAME]`.
    pub listener_containers: Named<ListenerContainerTable>,
    /// `[listeners.ID]`.
    pub listeners: Named<ListenerTable>,
    /// `[beans.NAME]`.
    pub beans: Named<BeanTable>,
    /// `[application]`.
    pub application: ApplicationTable,
    /// Keys that are known and do nothing.
    pub without_effect: Vec<WithoutEffect>,
}

impl Configuration {
    pub(super) fn read(reading: &Reading<'_>) -> Self {
        Self {
            broker: BrokerTable::read(reading),
            connection_factories: ConnectionFactoryTable::read(reading),
            destinations: destinations::read(reading),
            message_converters: MessageConverterTable::read(reading),
            templates: TemplateTable::read(reading),
            listener_containers: ListenerContainerTable::read(reading),
            listeners: ListenerTable::read(reading),
            beans: BeanTable::read(reading),
            application: ApplicationTable::read(reading),
            without_effect: reading.take_without_effect(),
        }
    }
}

/// The tables of one kind, by the names that the user gave them, in their order.
#[derive(Clone, Debug)]
pub struct Named<T>(Vec<(String, T)>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Named<T> {
    /// The table of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&T> {
        self.iter().find(|(key, _)| *key == name).map(|(_, table)| table)
    }

    /// All of them with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, table)| (name.as_str(), table))
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

impl<T> FromIterator<(String, T)> for Named<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(tables: I) -> Self {
        Self(tables.into_iter().collect())
    }
}
