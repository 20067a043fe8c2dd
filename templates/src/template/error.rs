//! What can go wrong with a template.

use std::error::Error as StdError;

use corriere_core::{Error, MessageError};
use thiserror::Error;

use crate::converter::ConversionError;

/// Why a template could not be built, send or receive.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// Neither the call nor the template names a destination.
    #[error(
        "no destination to {operation}: the call names none and the template has no default; expected `default_destination` on the template or a destination in the call"
    )]
    NoDefaultDestination {
        /// `send to` or `receive from`.
        operation: &'static str,
    },
    /// No destination of that name was found.
    #[error("destination `{name}` cannot be resolved: {source}")]
    Destination {
        /// The name.
        name: String,
        /// What the resolver says.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// A value could not be written as a message, or a message not read as a value.
    #[error(transparent)]
    Conversion(#[from] ConversionError),
    /// A header or property of the message was refused.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// A message creator, a post-processor or a session callback failed.
    #[error("the callback failed: {0}")]
    Callback(#[source] Box<dyn StdError + Send + Sync>),
    /// The client or its broker.
    #[error(transparent)]
    Client(#[from] Error),
}

impl TemplateError {
    /// The error of a callback.
    pub fn callback(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Callback(error.into())
    }
}
