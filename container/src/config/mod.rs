//! The configuration of an application: a TOML file, the environment, and what the program sets.

mod destinations;
mod document;
mod environment;
mod error;
mod key_path;
mod lines;
mod origin;
mod placeholder;
mod reading;
mod schema;
mod tables;
mod value;

pub use destinations::{Destinations, UnknownDestination};
pub use document::Document;
pub use error::{ConfigError, Origin, Place};
pub(crate) use error::{Problems, known_names, unknown_name};
pub(crate) use origin::hidden_within;
pub use reading::{Setting, WithoutEffect};
pub use schema::json_schema;
#[cfg(test)]
pub(crate) use schema::{KeySchema, Kind, Shape, TABLES, TableSchema, samples};
pub(crate) use tables::contradiction;
pub use tables::{
    ApplicationTable, BeanTable, BrokerTable, Configuration, ConnectionFactoryTable, DeadLetterKind,
    ListenerContainerTable, ListenerTable, MessageConverterTable, Named, Preset, StoreTable, TemplateTable,
};
pub(crate) use value::boolean;
