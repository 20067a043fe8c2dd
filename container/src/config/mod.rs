//! The configuration of an application: a TOML file, the environment, and what the program sets.

mod destinations;
mod document;
mod environment;
mod error;
mod file;
mod key_path;
#[cfg(all(feature = "embedded", feature = "openwire"))]
mod listen;
mod listing;
mod origin;
mod place;
mod placeholder;
mod positions;
mod reading;
mod schema;
mod secret;
mod source;
mod tables;
mod value;

pub use destinations::{Destinations, UnknownDestination};
pub use document::Document;
pub(crate) use environment::list_of;
pub use error::ConfigError;
pub(crate) use error::{Problems, known_names, unknown_name};
#[cfg(all(feature = "embedded", feature = "openwire"))]
pub(crate) use listen::why_not_listened_on;
pub use listing::Listing;
pub use place::{Origin, Place};
pub use reading::{Setting, WithoutEffect};
pub use schema::json_schema;
#[cfg(test)]
pub(crate) use schema::{KeySchema, Kind, Shape, TABLES, TableSchema, samples};
pub(crate) use secret::{MASK, hidden_within, without_passwords};
pub(crate) use tables::contradiction;
pub use tables::{
    ApplicationTable, BeanTable, BrokerTable, Configuration, ConnectionFactoryTable, DeadLetterKind,
    ListenerContainerTable, ListenerTable, MessageConverterTable, Named, PolicyTable, Preset, StoreTable,
    TemplateTable,
};
pub(crate) use value::boolean;
