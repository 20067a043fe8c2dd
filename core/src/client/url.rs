//! URLs of connection factories.

use thiserror::Error;

/// What is wrong with the URL of a connection factory.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrlError {
    /// It has no scheme.
    #[error("`{url}` has no scheme; expected something like `vm://local`")]
    NoScheme {
        /// The URL.
        url: String,
    },
    /// An option that does not exist.
    #[error("`{url}` has the unknown option `{option}`{}", .nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default())]
    UnknownOption {
        /// The URL.
        url: String,
        /// The option.
        option: String,
        /// The known option that is nearest to it.
        nearest: Option<&'static str>,
    },
    /// An option whose value cannot be read.
    #[error("`{url}`: option `{option}` is `{value}`; expected {expected}")]
    Value {
        /// The URL.
        url: String,
        /// The option.
        option: String,
        /// The value.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
}
