//! The error of an application.

use std::error::Error as StdError;
use std::fmt;

use corriere_templates::{ConversionError, TemplateError};

use crate::beans::BeanError;
use crate::config::ConfigError;
use crate::containers::ContainerError;

/// Everything of Corriere's that an application may come to handle, so that `?` works on all of it.
///
/// As the error of `main` it is shown to people, so its `Debug` form is its text.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration, or what it asks for.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A bean that cannot be had.
    #[error(transparent)]
    Bean(#[from] BeanError),
    /// A listener container.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// The embedded broker.
    #[cfg(feature = "embedded")]
    #[error("the embedded broker did not start: {0}")]
    Broker(#[from] corriere_broker::StartError),
    /// There is a table `[broker]`, and this program is built without a broker.
    #[cfg(not(feature = "embedded"))]
    #[error("`broker` asks for an embedded broker; this program is built without the feature `embedded`")]
    NotEmbedded,
    /// A template.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A message that could not be converted.
    #[error(transparent)]
    Conversion(#[from] ConversionError),
    /// The client.
    #[error(transparent)]
    Client(#[from] corriere_core::Error),
    /// The operating system's signals cannot be listened to.
    #[error("cannot listen to the signals that end the program: {0}")]
    Signals(#[source] std::io::Error),
    /// A second signal came while the application was stopping.
    #[error("stopped by a second signal before everything had ended")]
    Interrupted,
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        // Our own texts say what lies beneath them; what a user's constructor returned may not.
        let mut said = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !said.contains(&text) {
                write!(f, "\n  caused by: {text}")?;
            }
            said = text;
            cause = error.source();
        }
        Ok(())
    }
}
