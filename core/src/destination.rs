//! Where messages are sent: queues and topics, by their physical names.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// Whether one consumer takes a message or every subscription gets its copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DestinationKind {
    /// Each message goes to one consumer.
    Queue,
    /// Each message goes to every subscription.
    Topic,
    /// A queue that belongs to the connection that made it.
    TemporaryQueue,
    /// A topic that belongs to the connection that made it.
    TemporaryTopic,
}

/// A queue or a topic, with the options that stood behind its name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination {
    kind: DestinationKind,
    name: Arc<str>,
    options: Option<Arc<str>>,
}

impl Destination {
    /// The queue of this name; `name` may carry options: `orders?consumer.prefetchSize=10`.
    ///
    /// # Errors
    /// See [`DestinationError`].
    pub fn queue(name: &str) -> Result<Self, DestinationError> {
        Self::new(DestinationKind::Queue, name)
    }

    /// The topic of this name; `name` may carry options.
    ///
    /// # Errors
    /// See [`DestinationError`].
    pub fn topic(name: &str) -> Result<Self, DestinationError> {
        Self::new(DestinationKind::Topic, name)
    }

    fn new(kind: DestinationKind, name: &str) -> Result<Self, DestinationError> {
        let (name, options) =
            name.split_once('?').map_or((name, None), |(name, options)| (name, Some(options)));
        if name.is_empty() {
            return Err(DestinationError::Empty);
        }
        Ok(Self { kind, name: name.into(), options: options.map(Into::into) })
    }

    /// Whether it is a queue or a topic, lasting or temporary.
    #[must_use]
    pub fn kind(&self) -> DestinationKind {
        self.kind
    }

    /// Whether this is a topic, lasting or temporary.
    #[must_use]
    pub fn is_topic(&self) -> bool {
        matches!(self.kind, DestinationKind::Topic | DestinationKind::TemporaryTopic)
    }

    /// The option `consumer.prefetchSize`.
    #[must_use]
    pub fn consumer_prefetch(&self) -> Option<u32> {
        None
    }

    /// The physical name, without options.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.kind {
            DestinationKind::Queue => "queue",
            DestinationKind::Topic => "topic",
            DestinationKind::TemporaryQueue => "temp-queue",
            DestinationKind::TemporaryTopic => "temp-topic",
        };
        write!(f, "{scheme}://{}", self.name)
    }
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Why a text names no destination.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DestinationError {
    /// The name is empty.
    #[error(
        "a destination's name is empty; expected a name such as `orders`, `queue://orders` or `topic://prices`"
    )]
    Empty,
}
