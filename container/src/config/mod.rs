//! The configuration of an application: a TOML file, the environment, and what the program sets.

mod destinations;
mod document;
mod environment;
mod error;
mod key_path;
mod lines;
#[cfg(all(feature = "embedded", feature = "openwire"))]
mod listen;
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
#[cfg(all(feature = "embedded", feature = "openwire"))]
pub(crate) use listen::why_not_listened_on;
pub(crate) use origin::hidden_within;
pub use reading::{Setting, WithoutEffect};
pub use tables::{
    ApplicationTable, BeanTable, BrokerTable, Configuration, ConnectionFactoryTable, DeadLetterKind,
    ListenerContainerTable, ListenerTable, MessageConverterTable, Named, Preset, StoreTable, TemplateTable,
};
pub(crate) use value::boolean;
