//! Bean types that `[beans.NAME] type = "…"` can name.

use std::error::Error as StdError;

use thiserror::Error;

use super::{Bean, BeanError, BeanName, BeanSettings, Beans};

/// A type name for `[beans.NAME] type = "…"` and how a bean of it is made. `#[corriere::bean]` registers it.
#[derive(Debug)]
pub struct BeanType {
    /// What stands in the configuration.
    pub name: &'static str,
    /// The Rust type, for messages.
    pub rust_type: fn() -> &'static str,
    /// Makes one and adds it to the beans under the given name.
    pub build: fn(&mut Beans, BeanName, BeanSettings) -> Result<(), BeanBuildError>,
}

inventory::collect!(BeanType);

/// Why a bean could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BeanBuildError {
    /// Its settings are not what its type expects.
    #[error("{0}")]
    Settings(String),
    /// It takes no settings.
    #[error("the key `{key}` is not known: this bean type takes no settings")]
    NoSettings {
        /// The first one that was given.
        key: String,
    },
    /// Its constructor failed.
    #[error("{0}")]
    Constructor(#[source] Box<dyn StdError + Send + Sync>),
    /// The registry refused it.
    #[error(transparent)]
    Bean(#[from] BeanError),
}

/// What the constructor of a bean may return: the bean, or a `Result` of it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what the constructor of a `#[corriere::bean]` returns",
    label = "expected `Self` or `Result<Self, E>` with an error `E: std::error::Error + Send + Sync + 'static`"
)]
pub trait IntoBean<T> {
    /// The bean, or why there is none.
    ///
    /// # Errors
    /// [`BeanBuildError::Constructor`].
    fn into_bean(self) -> Result<Bean<T>, BeanBuildError>;
}

impl<T> IntoBean<T> for T {
    fn into_bean(self) -> Result<Bean<T>, BeanBuildError> {
        Ok(Bean::new(self))
    }
}

impl<T, E> IntoBean<T> for Result<T, E>
where
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    fn into_bean(self) -> Result<Bean<T>, BeanBuildError> {
        self.map(Bean::new).map_err(|error| BeanBuildError::Constructor(error.into()))
    }
}
