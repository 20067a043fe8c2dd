//! Connection factories.

use std::sync::Arc;
use std::time::Duration;

use super::Connection;
use super::url::FactoryUrl;
use crate::destination::Destination;
use crate::error::Error;
use crate::id::ConnectionId;
use crate::provider::{ConnectOptions, Provider, provider_for};
use crate::redelivery::RedeliveryOverrides;
use crate::time::Clock;

/// Makes connections to the broker behind a URL. Cheap to clone; clones are the same factory.
///
/// ```no_run
/// # async fn example() -> Result<(), corriere_core::Error> {
/// use corriere_core::ConnectionFactory;
///
/// let factory = ConnectionFactory::from_url("vm://local?jms.redeliveryPolicy.maximumRedeliveries=6")?;
/// let connection = factory.create_connection().await?;
/// connection.start()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct ConnectionFactory {
    /// Shared by all clones and variants: what tells one factory from another.
    url: Arc<FactoryUrl>,
    clock: Option<Clock>,
}

/// Prefetch of a queue's consumer where nothing else is said.
const QUEUE_PREFETCH: u32 = 100;
/// Prefetch of a topic's subscription where nothing else is said.
const TOPIC_PREFETCH: u32 = 1_000;
/// How long a consumer may wait on a connection that nobody started before a warning says so.
const UNSTARTED_WARNING: Duration = Duration::from_millis(500);

impl ConnectionFactory {
    /// A factory for `vm://local?jms.redeliveryPolicy.maximumRedeliveries=6` and the like. The broker need not be there
    /// before the first connection is made.
    ///
    /// # Errors
    /// [`Error::Url`] for an unknown option or a value that cannot be read.
    pub fn from_url(url: &str) -> Result<Self, Error> {
        Ok(Self { url: Arc::new(FactoryUrl::parse(url)?), clock: None })
    }

    /// The same factory, its connections reading the time from `clock` instead of the provider's.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// Whether `other` is the same factory, so that a session made with one can serve sends meant for the other.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.url, &other.url)
    }

    /// The URL without its options, which may hold a password.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url.address
    }

    /// How many messages may be sent ahead to a consumer where neither it nor its destination says so.
    #[must_use]
    pub fn prefetch(&self, destination: &Destination) -> u32 {
        let options = &self.url.options;
        if destination.is_topic() {
            options.topic_prefetch.unwrap_or(TOPIC_PREFETCH)
        } else {
            options.queue_prefetch.unwrap_or(QUEUE_PREFETCH)
        }
    }

    /// Whether messages that were handed over and wait for their acknowledgement in a session that acknowledges later
    /// widen a consumer's window by at most half of its prefetch, rounded up; without that bound, each of them makes room
    /// for another.
    #[must_use]
    pub fn has_bounded_extension(&self) -> bool {
        self.url.options.bounded_extension.unwrap_or(true)
    }

    /// Makes a connection, not started yet. Dropping the future leaves none behind.
    ///
    /// # Errors
    /// When the broker cannot be reached.
    pub async fn create_connection(&self) -> Result<Connection, Error> {
        let provider: Arc<dyn Provider> = provider_for(&self.url.scheme, &self.url.target)?;
        let options = ConnectOptions {
            connection: ConnectionId::unique(),
            client_id: self.url.options.client_id.clone(),
            user: self.url.options.user.clone(),
            password: self.url.options.password.clone(),
        };
        let clock = self.clock.clone().unwrap_or_else(|| provider.clock());
        Connection::connect(self.clone(), &*provider, options, clock).await
    }

    pub(super) fn redelivery(&self) -> Option<&RedeliveryOverrides> {
        self.url.options.redelivery.as_ref()
    }

    pub(super) fn send_timeout(&self) -> Option<Duration> {
        self.url.options.send_timeout
    }

    pub(super) fn unstarted_warning(&self) -> Duration {
        self.url.options.unstarted_warning.unwrap_or(UNSTARTED_WARNING)
    }
}
