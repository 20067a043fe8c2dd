//! The error of an application.

use std::error::Error as StdError;
use std::fmt;

use corriere_core::client::UrlError;
use corriere_core::provider::ProviderError;
use corriere_core::{DestinationError, MessageError};
#[cfg(all(feature = "embedded", feature = "openwire"))]
use corriere_openwire::acceptor::BindError;
use corriere_templates::{ConversionError, TemplateError};

use crate::beans::BeanError;
#[cfg(feature = "embedded")]
use crate::config::Place;
#[cfg(all(feature = "embedded", feature = "openwire"))]
use crate::config::why_not_listened_on;
use crate::config::{ConfigError, UnknownDestination};
use crate::containers::ContainerError;
use crate::listener::{AcknowledgeError, ConcurrencyError};

/// Everything of Corriere's that an application may come to handle, so that `?` works on all of it.
///
/// As the error of `main` it is shown to people, so its `Debug` form is its text.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration, or what it asks for.
    #[error(transparent)]
    Config(Box<ConfigError>),
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
    /// The application has no broker of its own.
    #[cfg(feature = "embedded")]
    #[error("this application has no embedded broker; expected a table `[broker]` in its configuration")]
    NoBroker,
    /// What an operator asks of a queue of the embedded broker.
    #[cfg(feature = "embedded")]
    #[error(transparent)]
    Queue(#[from] corriere_broker::QueueError),
    /// The directory in which the embedded broker keeps messages.
    #[cfg(feature = "embedded")]
    #[error("{place}: messages cannot be kept there: {source}")]
    Store {
        /// The key that names it.
        place: Place,
        /// Why not.
        source: Box<corriere_broker::journal::OpenError>,
    },
    /// The embedded broker failed while the application ran, and confirms nothing more.
    #[cfg(feature = "embedded")]
    #[error("the embedded broker failed: {0}")]
    BrokerFailed(#[source] ProviderError),
    /// The embedded broker cannot listen where it should.
    #[cfg(all(feature = "embedded", feature = "openwire"))]
    #[error("{place}{}", why_not_listened_on(place, error))]
    Listen {
        /// The key that has the address.
        place: Place,
        /// The address, and why not. No `source`, as that would be shown whatever the environment holds.
        error: Box<BindError>,
    },
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
    /// A name that stands for no destination.
    #[error(transparent)]
    Destination(Box<UnknownDestination>),
    /// A text that is no concurrency.
    #[error(transparent)]
    Concurrency(#[from] ConcurrencyError),
    /// A text that is no acknowledge mode.
    #[error(transparent)]
    Acknowledge(#[from] AcknowledgeError),
    /// The client, and what its messages and destinations refuse.
    #[error(transparent)]
    Client(#[from] corriere_core::Error),
    /// The start was only a check, which the variable `CORRIERE_CHECK` asks for, and nothing was wrong.
    #[error(
        "the configuration is right; the variable `CORRIERE_CHECK` asked for a check and not for a start"
    )]
    OnlyChecked,
    /// The operating system's signals cannot be listened to.
    #[error("cannot listen to the signals that end the program: {0}")]
    Signals(#[source] std::io::Error),
    /// A second signal came while the application was stopping.
    #[error("stopped by a second signal before everything had ended")]
    Interrupted,
}

// Boxed, as an error should not make every `Result` large.
impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::Config(Box::new(error))
    }
}

impl From<UnknownDestination> for Error {
    fn from(error: UnknownDestination) -> Self {
        Self::Destination(Box::new(error))
    }
}

impl From<MessageError> for Error {
    fn from(error: MessageError) -> Self {
        Self::Client(error.into())
    }
}

impl From<DestinationError> for Error {
    fn from(error: DestinationError) -> Self {
        Self::Client(error.into())
    }
}

impl From<UrlError> for Error {
    fn from(error: UrlError) -> Self {
        Self::Client(error.into())
    }
}

impl From<ProviderError> for Error {
    fn from(error: ProviderError) -> Self {
        Self::Client(error.into())
    }
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
