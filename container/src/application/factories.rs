//! The connection factories of an application.

use std::borrow::Cow;

use corriere_core::client::UrlError;
use corriere_core::provider::{ProviderScheme, provider_for};
use corriere_core::url_option::UrlOptionError;
use corriere_core::{ConnectionFactory, Error};

use super::PlannedFactory;
use super::plan::Parts;
use crate::config::{
    ConfigError, Configuration, ConnectionFactoryTable, Listing, MASK, Place, Preset, Problems, Setting,
    unknown_name, without_passwords,
};

/// A connection factory of an application.
#[derive(Clone, Debug)]
pub(super) struct NamedFactory {
    pub(super) name: String,
    pub(super) factory: ConnectionFactory,
    /// Where the configuration has its URL; `None` for one that the program brings, whatever the configuration has under
    /// its name.
    pub(super) place: Option<Place>,
}

impl NamedFactory {
    /// What a check shows of it.
    pub(super) fn described(&self) -> PlannedFactory {
        let url = match &self.place {
            Some(place) if place.hidden().is_some() => MASK.to_owned(),
            _ => without_passwords(self.factory.url()).into_owned(),
        };
        PlannedFactory { name: self.name.clone(), url }
    }

    /// Tells a listing what really holds for its consumers, which depends on where its URL leads and what that says.
    pub(super) fn correct(&self, listing: &mut Listing, configuration: &Configuration) {
        let table = configuration.connection_factories.get(&self.name);
        let Some(table) = table.filter(|_| self.place.is_some()) else { return };
        let (address, options) = table.url.value.split_once('?').unwrap_or((&table.url.value, ""));
        let preset = preset_of(address, configuration);
        let prefetch = |scheme: &str| {
            let any = format!("{scheme}://any").parse().ok();
            any.map(|any| self.factory.prefetch(&any).to_string())
        };
        let durable = Some(self.factory.durable_prefetch().to_string());
        let browser = Some(self.factory.browser_prefetch().to_string());
        let bounded = Some(self.factory.has_bounded_extension().to_string());
        let optimizes = Some(self.factory.optimizes_acknowledge().to_string());
        let keys: [(&[&str], _, _); 6] = [
            (&["prefetch", "queue"], "jms.prefetchPolicy.queuePrefetch", prefetch("queue")),
            (&["prefetch", "topic"], "jms.prefetchPolicy.topicPrefetch", prefetch("topic")),
            (&["prefetch", "durable"], "jms.prefetchPolicy.durableTopicPrefetch", durable),
            (&["prefetch", "browser"], "jms.prefetchPolicy.queueBrowserPrefetch", browser),
            (&["prefetch", "bounded_extension"], "jms.prefetchPolicy.boundedExtension", bounded),
            (&["optimize_acknowledge"], "jms.optimizeAcknowledge", optimizes),
        ];
        for (key, option, value) in keys {
            let preset = preset.filter(|preset| preset.prefetch().iter().any(|(name, _)| *name == option));
            let origin = match (saying(options, option), preset) {
                (Some(said), _) => format!("the option `{said}` of `url`"),
                (None, Some(preset)) => format!("default of the preset `{}`", preset.name()),
                (None, None) => "default".to_owned(),
            };
            if let Some(value) = value {
                listing.set_default(&["connection_factories", &self.name], key, &value, &origin);
            }
        }
    }
}

/// Those that the program brings, and those of the configuration.
pub(super) fn factories(
    configuration: &Configuration,
    parts: &Parts<'_>,
    problems: &mut Problems,
) -> Vec<NamedFactory> {
    let given = parts.factories.iter().cloned();
    let mut factories: Vec<_> =
        given.map(|(name, factory)| NamedFactory { name, factory, place: None }).collect();
    for (name, table) in configuration.connection_factories.iter() {
        if table.url.value.trim().is_empty() {
            problems.push(ConfigError::Value {
                place: table.url.place.clone(),
                found: "empty".to_owned(),
                expected: "the URL of a broker, such as \"vm://local\"".to_owned(),
            });
            continue;
        }
        let url = &table.url_with_options();
        let made = match parts.url {
            Some(instead) => {
                let options = url.find('?').map_or("", |options| &url[options..]);
                ConnectionFactory::from_url(&format!("{instead}{options}"))
            }
            None => ConnectionFactory::from_url(&with_preset(url, configuration)),
        };
        match made {
            Ok(factory) => {
                let checked = if parts.url.is_some() { Ok(()) } else { check_address(&factory, table) };
                match checked {
                    Ok(()) => factories.push(NamedFactory {
                        name: name.to_owned(),
                        factory,
                        place: Some(table.url.place.clone()),
                    }),
                    Err(error) => problems.push(error),
                }
            }
            Err(source) => refuse(table, url, source, problems),
        }
    }
    if parts.factories.is_empty() && configuration.connection_factories.names().next().is_none() {
        // Whoever has an embedded broker and no connection factory means that broker.
        let broker = configuration.broker.as_ref().map(|broker| format!("vm://{}", broker.name));
        let url = parts.url.map(str::to_owned).or(broker);
        match url.map(|url| ConnectionFactory::from_url(&with_preset(&url, configuration))) {
            Some(Ok(factory)) => {
                let place = Some(Place::in_code("connection_factories.default"));
                factories.push(NamedFactory { name: "default".to_owned(), factory, place });
            }
            Some(Err(source)) => {
                let place = Place::in_code("broker.name");
                problems.push(ConfigError::ConnectionFactory { place, source: Box::new(source) });
            }
            None => {}
        }
    }
    factories
}

/// Says what is wrong with the URL of a table, all of its options included.
fn refuse(table: &ConnectionFactoryTable, url: &str, source: Error, problems: &mut Problems) {
    let mut rest = url.to_owned();
    let mut source = source;
    loop {
        let expected = || format!("the URL of a broker, such as \"vm://local\"{}", fault(&source));
        let name = option(&source).map(str::to_owned);
        let place =
            name.as_ref().map_or_else(|| table.url.place.clone(), |name| table.url.place.within(name));
        problems.push(place.error(expected, |place| ConfigError::ConnectionFactory {
            place,
            source: Box::new(source.clone()),
        }));
        // An address that is none says nothing of its options.
        let Some(shorter) = name.and_then(|name| without_option(&rest, &name)) else { return };
        rest = shorter;
        match ConnectionFactory::from_url(&rest) {
            Ok(_) => return,
            Err(next) => source = next,
        }
    }
}

/// A URL without an option; `None` where it has no such option.
fn without_option(url: &str, name: &str) -> Option<String> {
    let (address, options) = url.split_once('?')?;
    let all: Vec<_> = options.split('&').collect();
    let others: Vec<_> =
        all.iter().filter(|option| option.split('=').next() != Some(name)).copied().collect();
    (others.len() < all.len()).then(|| format!("{address}?{}", others.join("&")))
}

/// Refuses a scheme that nobody serves, and an address that is none of its scheme. Whether a broker of this process runs is
/// another matter: its application may be about to start it.
fn check_address(factory: &ConnectionFactory, table: &ConnectionFactoryTable) -> Result<(), ConfigError> {
    let Some((scheme, target)) = factory.url().split_once(':') else { return Ok(()) };
    let scheme = scheme.to_lowercase();
    let schemes: Vec<_> =
        inventory::iter::<ProviderScheme>().map(|provider| provider.scheme.to_owned()).collect();
    if !schemes.contains(&scheme) {
        let named = Setting { place: table.url.place.within(&scheme), value: scheme };
        return Err(unknown_name("scheme of a URL", &named, schemes));
    }
    if scheme == "vm" {
        return Ok(());
    }
    provider_for(&scheme, target).map(drop).map_err(|source| {
        let expected = || "the URL of a broker, such as \"tcp://127.0.0.1:61616\"".to_owned();
        table.url.place.error(expected, |place| ConfigError::ConnectionFactory {
            place,
            source: Box::new(source.into()),
        })
    })
}

/// The option of a URL that an error is about.
fn option(error: &Error) -> Option<&str> {
    match error {
        Error::Url(UrlError::Options(UrlOptionError::Unknown { option, .. })) => Some(option),
        Error::Url(UrlError::Options(
            UrlOptionError::Twice { option, .. } | UrlOptionError::Value { option, .. },
        )) => Some(option),
        _ => None,
    }
}

/// A URL with what the preset of the application's own broker says of its consumers, where the URL leads to that broker
/// and does not say it itself.
fn with_preset<'a>(url: &'a str, configuration: &Configuration) -> Cow<'a, str> {
    let (address, options) = url.split_once('?').unwrap_or((url, ""));
    let Some(preset) = preset_of(address, configuration) else { return url.into() };
    let mut all: Vec<String> =
        options.split('&').filter(|option| !option.is_empty()).map(str::to_owned).collect();
    let missing = preset.prefetch().into_iter().filter(|(name, _)| saying(options, name).is_none());
    all.extend(missing.map(|(name, value)| format!("{name}={value}")));
    format!("{address}?{}", all.join("&")).into()
}

/// The preset of the application's own broker, where an address leads to that.
fn preset_of(address: &str, configuration: &Configuration) -> Option<Preset> {
    let own = configuration.broker.as_ref().filter(|broker| vm_name(address) == Some(broker.name.as_str()));
    own.and_then(|broker| broker.preset)
}

/// Which of the options of a URL says what this one means: itself, or that for all prefetches.
fn saying<'a>(options: &str, option: &'a str) -> Option<&'a str> {
    let says = |name: &str| options.split('&').any(|option| option.split('=').next() == Some(name));
    let all = option.ends_with("Prefetch").then_some("jms.prefetchPolicy.all");
    std::iter::once(option).chain(all).find(|name| says(name))
}

/// The name of the broker of this process that a URL means, if it means one.
pub(super) fn vm_name(url: &str) -> Option<&str> {
    let (scheme, name) = url.split_once(':')?;
    scheme.eq_ignore_ascii_case("vm").then(|| name.trim_matches('/'))
}

/// Refuses a URL that names a broker of this process which neither runs nor is the application's own: the listeners behind
/// it would wait for ever.
#[cfg(feature = "embedded")]
pub(super) fn check_reachable(
    configuration: &Configuration,
    factories: &[NamedFactory],
    problems: &mut Problems,
) {
    let mut running = corriere_broker::Broker::running();
    running.extend(configuration.broker.as_ref().map(|broker| broker.name.clone()));
    for NamedFactory { name, factory, place } in factories {
        if let Some(broker) = vm_name(factory.url())
            && !running.iter().any(|running| running == broker)
        {
            let key = || Place::in_code(format!("connection_factories.{name}"));
            let place = place.clone().unwrap_or_else(key);
            let named = Setting { value: broker.to_owned(), place };
            problems.push(unknown_name("broker in this process", &named, running.clone()));
        }
    }
}

/// Without brokers of this process none can be named wrongly.
#[cfg(not(feature = "embedded"))]
pub(super) fn check_reachable(
    _configuration: &Configuration,
    _factories: &[NamedFactory],
    _problems: &mut Problems,
) {
}

/// What is wrong with a URL, without anything that stands in it.
fn fault(error: &Error) -> String {
    match error {
        Error::Url(UrlError::Options(UrlOptionError::Unknown { nearest: Some(nearest), .. })) => {
            format!(", whose options are known; for one that is not, did you mean `{nearest}`?")
        }
        Error::Url(UrlError::Options(UrlOptionError::Unknown { .. })) => {
            ", whose options are known; one is not".to_owned()
        }
        Error::Url(UrlError::Options(UrlOptionError::Value { option, expected, .. })) => {
            format!(", whose option `{option}` is {expected}")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Document;

    fn read(text: &str) -> Configuration {
        Document::from_text("config.toml", text).expect("it is TOML").read(&[]).expect("it is right")
    }

    #[test]
    fn a_preset_is_for_the_own_brokers_clients_and_below_what_their_urls_say() {
        let preset = read("[broker]\nname = \"shop\"\npreset = \"activemq\"");
        for (url, expected) in [
            (
                "vm://shop",
                "vm://shop?jms.prefetchPolicy.queuePrefetch=1000&jms.prefetchPolicy.topicPrefetch=32766\
                 &jms.prefetchPolicy.boundedExtension=false",
            ),
            (
                "vm://shop?jms.clientID=a&jms.prefetchPolicy.queuePrefetch=5",
                "vm://shop?jms.clientID=a&jms.prefetchPolicy.queuePrefetch=5&jms.prefetchPolicy.topicPrefetch=32766\
                 &jms.prefetchPolicy.boundedExtension=false",
            ),
            (
                "vm://shop?jms.prefetchPolicy.all=3",
                "vm://shop?jms.prefetchPolicy.all=3&jms.prefetchPolicy.boundedExtension=false",
            ),
            (
                "vm://shop?jms.prefetchPolicy.all=3&jms.prefetchPolicy.boundedExtension=true",
                "vm://shop?jms.prefetchPolicy.all=3&jms.prefetchPolicy.boundedExtension=true",
            ),
            ("vm://another", "vm://another"),
            ("tcp://shop:61616", "tcp://shop:61616"),
        ] {
            assert_eq!(with_preset(url, &preset), expected);
            ConnectionFactory::from_url(&with_preset(url, &preset)).expect("it is a URL");
        }
        assert_eq!(with_preset("vm://local", &read("[broker]")), "vm://local");
    }
}
