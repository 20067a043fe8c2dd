//! The configuration of an application: a TOML file, the environment, and what the program sets.

mod destinations;
mod document;
mod environment;
mod error;
mod lines;
mod placeholder;
mod reading;
mod schema;
mod tables;
mod value;

pub use destinations::{Destinations, UnknownDestination};
pub use document::Document;
pub(crate) use error::Problems;
pub use error::{ConfigError, Origin, Place};
pub use reading::Setting;
pub use tables::{
    ApplicationTable, BeanTable, BrokerTable, Configuration, ConnectionFactoryTable, DeadLetterKind,
    ListenerContainerTable, ListenerTable, MessageConverterTable, Named, TemplateTable,
};
