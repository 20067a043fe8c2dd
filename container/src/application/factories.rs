//! The connection factories of an application.

use corriere_core::client::UrlError;
use corriere_core::{ConnectionFactory, Error};

use super::plan::Parts;
use crate::config::{ConfigError, Configuration, Place, Problems};
#[cfg(feature = "embedded")]
use {super::plan::unknown_name, crate::config::Setting};

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
                let expected = || format!("the URL of a broker, such as \"vm://local\"{}", fault(&source));
                let error = table.url.place.error(expected, |place| ConfigError::ConnectionFactory {
                    place,
                    source: Box::new(source.clone()),
                });
                problems.push(error);
            }
        }
    }
    if parts.factories.is_empty() && configuration.connection_factories.names().next().is_none() {
        // Whoever has an embedded broker and no connection factory means that broker.
        let broker = configuration.broker.as_ref().map(|broker| format!("vm://{}", broker.name));
        let url = parts.url.map(str::to_owned).or(broker);
        match url.map(|url| ConnectionFactory::from_url(&url)) {
            Some(Ok(factory)) => factories.push(("default".to_owned(), factory)),
            Some(Err(source)) => {
                let place = Place::in_code("broker.name");
                problems.push(ConfigError::ConnectionFactory { place, source: Box::new(source) });
            }
            None => {}
        }
    }
    factories
}

/// The name of the broker of this process that a URL means, if it means one.
pub(super) fn vm_name(url: &str) -> Option<&str> {
    let (scheme, name) = url.split_once(':')?;
    scheme.eq_ignore_ascii_case("vm").then(|| name.trim_matches('/'))
}

/// Refuses a URL that names a broker of this process which is not there: the listeners behind it would wait for ever. To be
/// called when the application's own broker runs.
#[cfg(feature = "embedded")]
pub(super) fn check_reachable(
    configuration: &Configuration,
    factories: &[(String, ConnectionFactory)],
) -> Result<(), ConfigError> {
    let running = corriere_broker::Broker::running();
    let mut problems = Problems::default();
    for (name, factory) in factories {
        if let Some(broker) = vm_name(factory.url())
            && !running.iter().any(|running| running == broker)
        {
            let table = configuration.connection_factories.get(name);
            let key = || Place::in_code(format!("connection_factories.{name}"));
            let place = table.map_or_else(key, |table| table.url.place.clone());
            let named = Setting { value: broker.to_owned(), place };
            problems.push(unknown_name("broker in this process", &named, running.clone()));
        }
    }
    problems.into_result(())
}

/// Without brokers of this process none can be named wrongly.
#[cfg(not(feature = "embedded"))]
pub(super) fn check_reachable(
    _configuration: &Configuration,
    _factories: &[(String, ConnectionFactory)],
) -> Result<(), ConfigError> {
    Ok(())
}

/// What is wrong with a URL, without anything that stands in it.
fn fault(error: &Error) -> String {
    match error {
        Error::Url(UrlError::UnknownOption { .. }) => ", whose options are known; one is not".to_owned(),
        Error::Url(UrlError::Value { option, expected, .. }) => {
            format!(", whose option `{option}` is {expected}")
        }
        _ => String::new(),
    }
}
