//! Why a bean is not to be had.

use std::error::Error as StdError;

use thiserror::Error;

/// Why the application's beans do not answer a request.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BeanError {
    /// No bean has the type.
    #[error("there is no bean of type `{type_name}`; {}", beans(known))]
    NoSuchType {
        /// The type that was asked for.
        type_name: &'static str,
        /// The beans that exist, as `name: type`.
        known: Vec<String>,
    },
    /// More than one bean has the type, so the type alone names none.
    #[error(
        "{} beans have the type `{type_name}`: {}; ask for one by name",
        names.len(),
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    )]
    Ambiguous {
        /// The type that was asked for.
        type_name: &'static str,
        /// The beans of that type.
        names: Vec<String>,
    },
    /// No bean has the name.
    #[error(
        "there is no bean named `{name}`{}; {}",
        nearest.as_ref().map(|nearest| format!(", did you mean `{nearest}`?")).unwrap_or_default(),
        beans(known)
    )]
    NoSuchName {
        /// The name that was asked for.
        name: String,
        /// The bean whose name is nearest to it.
        nearest: Option<String>,
        /// The beans that exist, as `name: type`.
        known: Vec<String>,
    },
    /// The bean of that name is of another type.
    #[error("the bean `{name}` is a `{found}`, not a `{expected}`")]
    OtherType {
        /// The bean.
        name: String,
        /// The type that was asked for.
        expected: &'static str,
        /// The type that it has.
        found: &'static str,
    },
    /// The name is taken.
    #[error("there is a bean named `{name}` already, a `{type_name}`")]
    NameInUse {
        /// The name.
        name: String,
        /// The type of the bean that has it.
        type_name: &'static str,
    },
}

/// Why a bean could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BeanBuildError {
    /// Its settings are not what its type expects.
    #[error("{reason}")]
    Settings {
        /// The key within the table, with the tables around it.
        path: Vec<String>,
        /// What is wrong, with the key.
        reason: String,
    },
    /// One of its settings must be there.
    #[error("{reason}")]
    MissingSetting {
        /// The table in which it is missing, within the bean's.
        path: Vec<String>,
        /// The key.
        field: &'static str,
        /// What is wrong, with the key.
        reason: String,
    },
    /// It does not know one of its settings.
    #[error("{reason}")]
    UnknownSetting {
        /// The key within the table, with the tables around it.
        path: Vec<String>,
        /// What is wrong, with the key.
        reason: String,
    },
    /// It takes no settings.
    #[error("the key `{key}` is not known: this type takes no settings")]
    NoSettings {
        /// The first one that was given.
        key: String,
    },
    /// Its constructor failed.
    #[error("{0}")]
    Constructor(#[source] Box<dyn StdError + Send + Sync>),
    /// Its constructor, or what reads its settings, panicked.
    #[error("the constructor panicked: {0}")]
    Panic(String),
    /// A bean that it needs is not there.
    #[error(transparent)]
    Bean(#[from] BeanError),
}

fn beans(known: &[String]) -> String {
    if known.is_empty() { "there are no beans".to_owned() } else { format!("there are {}", known.join(", ")) }
}
