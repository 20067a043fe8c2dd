//! What can be wrong with a configuration.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

use super::destinations::UnknownDestination;
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
    /// The text is not TOML.
    #[error("`{file}` is not valid TOML: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// What the parser says, with line and column.
        message: String,
    },
    /// A table or key that does not exist.
    #[error("{place} is not known{}; {}", did_you_mean(nearest.as_deref()), known_names("known here", known))]
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
        "the environment variable `{variable}` matches no key of the configuration: {reason}{}",
        did_you_mean(nearest.as_deref())
    )]
    UnknownVariable {
        /// The variable.
        variable: String,
        /// Where it leaves what is known.
        reason: String,
        /// The variable that it was most likely meant to be.
        nearest: Option<String>,
    },
    /// A value that cannot be read.
    #[error("{place} is {found}; expected {expected}")]
    Value {
        /// The key.
        place: Place,
        /// The value.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// A key that must be there.
    #[error("{place} is missing; expected {expected}")]
    Missing {
        /// The key.
        place: Place,
        /// What it should be.
        expected: String,
    },
    /// A name that refers to something that does not exist.
    #[error("{place}: there is no {what} `{name}`{}; {}", did_you_mean(nearest.as_deref()), known_names("there is", known))]
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
    #[error("{place}: the {what} `{name}` is more than one: {}; give each a name of its own", rust_types.join(" and "))]
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
        "{user} has no connection factory: {place} is missing, and it cannot be guessed; {}",
        known_names("there is", known)
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
    #[error("{place}: {source}")]
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
         of it, which `use the_crate as _;` prevents",
        did_you_mean(nearest.as_deref()),
        known_names("there is", known)
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
    #[error("{place}: the placeholder `{placeholder}` {reason}")]
    Placeholder {
        /// The key with the placeholder in its value.
        place: Place,
        /// The placeholder.
        placeholder: String,
        /// Why.
        reason: String,
    },
    /// The URL of a connection factory.
    #[error("{place}: {source}")]
    ConnectionFactory {
        /// The key.
        place: Place,
        /// What is wrong with it.
        source: Box<corriere_core::Error>,
    },
    /// A destination that is not one.
    #[error("{place}: {source}")]
    Destination {
        /// The key.
        place: Place,
        /// What is wrong with it.
        source: corriere_core::DestinationError,
    },
    /// A bean that could not be made.
    #[error("{place}: the bean could not be made: {source}")]
    Bean {
        /// The bean's table.
        place: Place,
        /// Why.
        source: BeanBuildError,
    },
    /// Several of these.
    #[error("{} things are wrong with the configuration:{}", .0.len(), .0.iter().map(|error| format!("\n  - {error}")).collect::<String>())]
    Several(Vec<ConfigError>),
    /// Beans that cannot be made for each other and for the listeners.
    #[error(transparent)]
    Wiring(Box<WiringError>),
}

impl ConfigError {
    /// The errors one by one.
    #[must_use]
    pub fn each(&self) -> &[ConfigError] {
        match self {
            Self::Several(errors) => errors,
            one => std::slice::from_ref(one),
        }
    }
}

/// Where in the configuration: a key, and what set it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place(Box<PlaceParts>);

// Boxed because nearly every error has one, and errors should be small to return.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PlaceParts {
    key: String,
    origin: Origin,
    /// What an error says instead of the value.
    hidden: Option<String>,
}

/// What set a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// A file, with the line when it is known.
    File {
        /// Its name as it was given.
        name: String,
        /// The line, from 1.
        line: Option<usize>,
    },
    /// An environment variable.
    Environment {
        /// Its name.
        variable: String,
    },
    /// A call in the program.
    Code,
}

impl Place {
    /// A key that was set, or should have been, in the program.
    #[must_use]
    pub fn in_code(key: impl Into<String>) -> Self {
        Self::new(key.into(), Origin::Code, None)
    }

    pub(super) fn new(key: String, origin: Origin, hidden: Option<String>) -> Self {
        Self(Box::new(PlaceParts { key, origin, hidden }))
    }

    /// The key with its tables, such as `templates.order_template.receive_timeout`.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.0.key
    }

    /// What set it.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// Where the value comes from the environment: what an error says instead of it, as it may be a secret.
    pub(crate) fn hidden(&self) -> Option<&str> {
        self.0.hidden.as_deref()
    }

    /// The error for a value that stands here and is not what it should be: the given one, unless that could show what
    /// the environment holds.
    pub(crate) fn error(
        &self,
        expected: impl FnOnce() -> String,
        open: impl FnOnce(Self) -> ConfigError,
    ) -> ConfigError {
        match self.hidden() {
            Some(found) => {
                ConfigError::Value { place: self.clone(), found: found.to_owned(), expected: expected() }
            }
            None => open(self.clone()),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PlaceParts { key, origin, .. } = &*self.0;
        match origin {
            Origin::File { name, line: Some(line) } => write!(f, "`{key}` ({name}, line {line})"),
            Origin::File { name, line: None } => write!(f, "`{key}` ({name})"),
            Origin::Environment { variable } => write!(f, "`{key}` (environment variable {variable})"),
            Origin::Code => write!(f, "`{key}`"),
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

    pub(crate) fn into_result<T>(mut self, value: T) -> Result<T, ConfigError> {
        match self.0.len() {
            0 => Ok(value),
            1 => Err(self.0.remove(0)),
            _ => Err(ConfigError::Several(self.0)),
        }
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
