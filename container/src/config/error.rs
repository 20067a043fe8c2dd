//! What can be wrong with a configuration.

use std::collections::HashSet;
use std::path::PathBuf;

use thiserror::Error;

use super::destinations::UnknownDestination;
#[cfg(all(feature = "embedded", feature = "openwire"))]
use super::listen::why_not_listened_on;
use super::place::{Origin, Place};
use super::reading::Setting;
use crate::beans::{BeanBuildError, WiringError};
use crate::nearest::nearest;

/// What is wrong with a configuration, and where.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the configuration `{}` cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file holds something else than text.
    #[error("{origin}: the file is not UTF-8 from here on; expected TOML, which is written in UTF-8")]
    NotUtf8 {
        /// The first byte that is none.
        origin: Origin,
    },
    /// The text is not TOML.
    #[error("{} is not valid TOML: {message}{}", place.origin(), place.excerpt())]
    Syntax {
        /// Where; of no key.
        place: Place,
        /// What the parser says.
        message: String,
    },
    /// A profile without a file.
    #[error(
        "the profile `{profile}` of the environment variable `CORRIERE_PROFILE` has no file: expected `{}`{}; {}{}",
        path.display(), did_you_mean(nearest.as_deref()), known_names("there is", known), place.excerpt()
    )]
    MissingProfile {
        /// The variable.
        place: Place,
        /// The profile.
        profile: String,
        /// The file that it should have.
        path: PathBuf,
        /// The profiles that have one.
        known: Vec<String>,
        /// Of these, the nearest.
        nearest: Option<String>,
    },
    /// The name of a profile that can be none, as it is part of the name of a file.
    #[error(
        "the environment variable `CORRIERE_PROFILE` has `{profile}`; expected names of letters, digits, `_` and `-`, with \
         commas between them{}",
        place.excerpt()
    )]
    ProfileName {
        /// The variable.
        place: Place,
        /// The name.
        profile: String,
    },
    /// Profiles are asked for where no file of the configuration says where theirs would be.
    #[error("the environment variable `CORRIERE_PROFILE` needs a configuration that is read from a file")]
    ProfileWithoutFile,
    /// A table or key that does not exist.
    #[error(
        "{place} is not known{}; {}{}",
        did_you_mean(nearest.as_deref()), known_names("known here", known), place.excerpt()
    )]
    UnknownKey {
        /// The key.
        place: Place,
        /// What can stand there.
        known: Vec<String>,
        /// Of these, the nearest.
        nearest: Option<String>,
    },
    /// A key that the program sets and that is not written as one.
    #[error(
        "the program sets `{key}`, which is no key; expected names with dots between them, those with unusual characters in \
         quotes, such as `templates.\"order.template\".priority`"
    )]
    KeyPath {
        /// What was given.
        key: String,
    },
    /// An environment variable with our prefix that matches no key.
    #[error(
        "the environment variable `{}` matches no key of the configuration: {reason}{}{}",
        place.key(), did_you_mean(nearest.as_deref()), place.excerpt()
    )]
    UnknownVariable {
        /// The variable; its name stands for the key.
        place: Place,
        /// Where it leaves what is known.
        reason: String,
        /// The variable that it was most likely meant to be.
        nearest: Option<String>,
    },
    /// Two environment variables, of names that differ in case only say, for one key.
    #[error("the environment variables `{}` set the same key `{key}`; expected one of them", variables.join("` and `"))]
    SameVariable {
        /// The key.
        key: String,
        /// The variables.
        variables: [String; 2],
    },
    /// A value that cannot be read.
    #[error("{place} is {found}; expected {expected}{}", place.excerpt())]
    Value {
        /// The key.
        place: Place,
        /// The value.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// A key that must be there.
    #[error("{place} is missing; expected {expected}{}", place.excerpt())]
    Missing {
        /// The key.
        place: Place,
        /// What it should be.
        expected: String,
    },
    /// A name that refers to something that does not exist.
    #[error(
        "{place}: there is no {what} `{name}`{}; {}{}",
        did_you_mean(nearest.as_deref()), known_names("there is", known), place.excerpt()
    )]
    UnknownName {
        /// The key that refers to it.
        place: Place,
        /// What the name should be of.
        what: &'static str,
        /// The name.
        name: String,
        /// The names that exist.
        known: Vec<String>,
        /// Of these, the nearest.
        nearest: Option<String>,
    },
    /// A type name that more than one type is registered under.
    #[error(
        "{place}: the {what} `{name}` is more than one: {}; give each a name of its own{}",
        rust_types.join(" and "), place.excerpt()
    )]
    SameTypeName {
        /// The key that refers to it.
        place: Place,
        /// What the name is of.
        what: &'static str,
        /// The name.
        name: String,
        /// The Rust types that have it.
        rust_types: Vec<String>,
    },
    /// Something names no connection factory, and there is not exactly one.
    #[error(
        "{user} has no connection factory: {place} is missing, and it cannot be guessed; {}{}",
        known_names("there is", known), place.excerpt()
    )]
    NoConnectionFactory {
        /// What needs it.
        user: String,
        /// The key that could name it.
        place: Place,
        /// What there is to choose from.
        known: Vec<String>,
    },
    /// A name that stands for no destination.
    #[error("{place}: {source}{}", place.excerpt())]
    UnknownDestination {
        /// The key that holds the name.
        place: Place,
        /// What is wrong with it.
        source: UnknownDestination,
    },
    /// More than one listener has the same id.
    #[error("the listeners in {} have the same id `{id}`; give one of them another with `id = \"…\"`", modules.join(" and "))]
    SameListener {
        /// The id.
        id: String,
        /// Where they are.
        modules: Vec<String>,
    },
    /// A listener that must be there is not linked in.
    #[error(
        "{place}: the listener `{id}` is not in this program{}; {}; a crate that nothing in the program names is left out \
         of it, which `use the_crate as _;` prevents{}",
        did_you_mean(nearest.as_deref()), known_names("there is", known), place.excerpt()
    )]
    MissingListener {
        /// The key that expects it.
        place: Place,
        /// The id.
        id: String,
        /// The listeners that are there.
        known: Vec<String>,
        /// Of these, the nearest.
        nearest: Option<String>,
    },
    /// A placeholder that cannot be filled.
    #[error(
        "{place}: the placeholder `{placeholder}` {reason}{}{}",
        place.excerpt(), definition.as_ref().map(should_be_defined).unwrap_or_default()
    )]
    Placeholder {
        /// The key with the placeholder in its value.
        place: Place,
        /// Where the key that it names should stand, if it names one.
        definition: Option<Place>,
        /// The placeholder.
        placeholder: String,
        /// Why.
        reason: String,
    },
    /// The URL of a connection factory.
    #[error("{place}: {source}{}", place.excerpt())]
    ConnectionFactory {
        /// The key.
        place: Place,
        /// What is wrong with it.
        source: Box<corriere_core::Error>,
    },
    /// An address that the embedded broker cannot listen on.
    #[cfg(all(feature = "embedded", feature = "openwire"))]
    #[error("{place}{}{}", why_not_listened_on(place, error), place.excerpt())]
    Listen {
        /// The key that has the address.
        place: Place,
        /// What is wrong with it. No `source`, as that would be shown whatever the environment holds.
        error: Box<corriere_openwire::acceptor::BindError>,
    },
    /// The embedded broker should listen, and this program is built without what clients would speak.
    #[cfg(all(feature = "embedded", not(feature = "openwire")))]
    #[error("{place} asks the broker to listen; this program is built without the feature `openwire`{}", place.excerpt())]
    NoOpenWire {
        /// The key that has the addresses.
        place: Place,
    },
    /// A destination that is not one.
    #[error("{place}: {source}{}", place.excerpt())]
    Destination {
        /// The key.
        place: Place,
        /// What is wrong with it.
        source: corriere_core::DestinationError,
    },
    /// A pattern of destinations that is not one, or that another policy has.
    #[error("{place}: {reason}{}", place.excerpt())]
    Pattern {
        /// The key.
        place: Place,
        /// What is wrong with it.
        reason: String,
    },
    /// A bean that could not be made.
    #[error("{place}: the bean could not be made: {source}{}", place.excerpt())]
    Bean {
        /// The bean's table.
        place: Place,
        /// Why.
        source: BeanBuildError,
    },
    /// Several of these.
    #[error("{} things are wrong with the configuration:{}", .0.len(), .0.iter().map(|error| format!("\n- {error}")).collect::<String>())]
    Several(Vec<ConfigError>),
    /// Beans that cannot be made for each other and for the listeners.
    #[error("{}{}", .0, .0.excerpts())]
    Wiring(Box<WiringError>),
}

/// Tables whose names others refer to.
const REFERRED_TO: [&str; 6] =
    ["beans", "broker", "connection_factories", "listener_containers", "message_converters", "templates"];

impl ConfigError {
    /// The key that is wrong; `None` where names may be missing from any table.
    fn key(&self) -> Option<&str> {
        let place = match self {
            Self::Value { place, .. }
            | Self::Missing { place, .. }
            | Self::Placeholder { place, .. }
            | Self::Destination { place, .. }
            | Self::Pattern { place, .. } => place,
            // Not the name of a table, but what stands in one.
            Self::UnknownKey { place, .. } if place.key().contains('.') => place,
            _ => return None,
        };
        Some(place.key())
    }

    /// Whether it may only follow from what is wrong with this key, or, without one, from names that are missing.
    fn may_follow_from(&self, wrong: Option<&str>) -> bool {
        let tables: &[&str] = match self {
            Self::UnknownName { .. } | Self::NoConnectionFactory { .. } | Self::Wiring(_) => &REFERRED_TO,
            Self::UnknownDestination { .. } => &["destinations"],
            Self::ConnectionFactory { place, .. } => {
                let table = |key: &str| key.rsplit_once('.').map(|(table, _)| table.to_owned());
                return wrong.is_some_and(|wrong| table(wrong) == table(place.key()));
            }
            _ => return false,
        };
        wrong.is_none_or(|wrong| tables.iter().any(|table| wrong.split('.').next() == Some(table)))
    }

    /// The errors one by one.
    #[must_use]
    pub fn each(&self) -> &[ConfigError] {
        match self {
            Self::Several(errors) => errors,
            one => std::slice::from_ref(one),
        }
    }
}

/// Errors found on one pass.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<ConfigError>);

impl Problems {
    pub(crate) fn push(&mut self, error: ConfigError) {
        match error {
            ConfigError::Several(errors) => self.0.extend(errors),
            one => self.0.push(one),
        }
    }

    /// Adds what was found later, but for what may only follow from what is wrong already.
    pub(crate) fn add_later(&mut self, later: Self) {
        let wrong: Vec<Option<&str>> = self.0.iter().map(ConfigError::key).collect();
        let follows = |error: &ConfigError| wrong.iter().any(|wrong| error.may_follow_from(*wrong));
        let later: Vec<_> = later.0.into_iter().filter(|error| !follows(error)).collect();
        self.0.extend(later);
    }

    pub(crate) fn into_result<T>(self, value: T) -> Result<T, ConfigError> {
        if self.0.is_empty() { Ok(value) } else { Err(self.into_error()) }
    }

    /// All of them as one.
    pub(super) fn into_error(mut self) -> ConfigError {
        // What is said of a container is found with each of its listeners.
        let mut said = HashSet::new();
        self.0.retain(|error| said.insert(error.to_string()));
        if self.0.len() == 1 { self.0.remove(0) } else { ConfigError::Several(self.0) }
    }
}

/// The error for a name that is not among the known ones.
pub(crate) fn unknown_name(what: &'static str, named: &Setting<String>, known: Vec<String>) -> ConfigError {
    let expected = format!("the name of a {what}; {}", known_names("there is", &known));
    named.place.error(
        || expected,
        |place| ConfigError::UnknownName {
            place,
            what,
            name: named.value.clone(),
            nearest: nearest(&named.value, known.iter().map(String::as_str)),
            known,
        },
    )
}

fn should_be_defined(place: &Place) -> String {
    format!("\n  it should be defined as {place}{}", place.excerpt())
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default()
}

pub(crate) fn known_names(verb: &str, known: &[String]) -> String {
    if known.is_empty() {
        return format!("{verb}: nothing");
    }
    let names: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
    format!("{verb}: {}", names.join(", "))
}
