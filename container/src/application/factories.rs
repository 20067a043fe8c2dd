//! The connection factories of an application.

use corriere_core::ConnectionFactory;

use super::plan::Parts;
use crate::config::{ConfigError, Configuration, Problems};

/// Those that the program brings, and those of the configuration.
pub(super) fn factories(
    configuration: &Configuration,
    parts: &Parts<'_>,
    problems: &mut Problems,
) -> Vec<(String, ConnectionFactory)> {
    let mut factories = parts.factories.to_vec();
    for (name, table) in configuration.connection_factories.iter() {
        let url = &table.url.value;
        let made = match parts.url {
            Some(instead) => {
                let options = url.find('?').map_or("", |options| &url[options..]);
                ConnectionFactory::from_url(&format!("{instead}{options}"))
            }
            None => ConnectionFactory::from_url(url),
        };
        match made {
            Ok(factory) => factories.push((name.to_owned(), factory)),
            Err(source) => {
                let (place, source) = (table.url.place.clone(), Box::new(source));
                problems.push(ConfigError::ConnectionFactory { place, source });
            }
        }
    }
    if parts.factories.is_empty() && configuration.connection_factories.names().next().is_none() {
        // Whoever has an embedded broker and no connection factory means that broker.
        let broker = configuration.broker.as_ref().map(|broker| format!("vm://{}", broker.name));
        let url = parts.url.map(str::to_owned).or(broker);
        if let Some(Ok(factory)) = url.map(|url| ConnectionFactory::from_url(&url)) {
            factories.push(("default".to_owned(), factory));
        }
    }
    factories
}
