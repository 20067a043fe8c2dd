//! Connection factories.

use std::sync::Arc;
use std::time::Duration;

use super::url::FactoryUrl;
use super::{Connection, name_fault};
use crate::destination::Destination;
use crate::error::Error;
use crate::id::ConnectionId;
use crate::provider::{ConnectOptions, Provider, provider_for};
use crate::redelivery::RedeliveryOverrides;
use crate::text::shown;
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
    /// Instead of that of the URL.
    client_id: Option<Arc<str>>,
}

/// How acknowledgements are put off, as `jms.optimizeAcknowledge` and what stands beside it say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OptimizeAcknowledge {
    /// At the first message after so long without one, they are told of.
    pub(super) timeout: Option<Duration>,
    /// They are told of so often, whether messages come or not.
    pub(super) interval: Option<Duration>,
}

/// Prefetch of a queue's consumer where nothing else is said.
const QUEUE_PREFETCH: u32 = 100;
/// Prefetch of a topic's subscription where nothing else is said.
const TOPIC_PREFETCH: u32 = 1_000;
/// Prefetch of a durable subscription's consumer where nothing else is said.
const DURABLE_PREFETCH: u32 = 100;
/// How many messages a browser is shown ahead where nothing else is said.
const BROWSER_PREFETCH: u32 = 500;
/// How long an acknowledgement is put off while messages come, where that is asked for and nothing else is said.
const OPTIMIZE_TIMEOUT: Duration = Duration::from_millis(300);
/// How long a consumer may wait on a connection that nobody started before a warning says so.
const UNSTARTED_WARNING: Duration = Duration::from_millis(500);

impl ConnectionFactory {
    /// A factory for `vm://local?jms.redeliveryPolicy.maximumRedeliveries=6` and the like. The broker need not be there
    /// before the first connection is made.
    ///
    /// # Errors
    /// [`Error::Url`] for an unknown option or a value that cannot be read.
    pub fn from_url(url: &str) -> Result<Self, Error> {
        Ok(Self { url: Arc::new(FactoryUrl::parse(url)?), clock: None, client_id: None })
    }

    /// The same factory, its connections reading the time from `clock` instead of the provider's.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// The same factory, its connections having this client id instead of the URL's. Under it durable subscriptions are kept,
    /// and only one connection can have it at a time.
    #[must_use]
    pub fn with_client_id(self, client_id: &str) -> Self {
        Self { client_id: Some(client_id.into()), ..self }
    }

    /// The client id that its connections have, if any.
    #[must_use]
    pub fn client_id(&self) -> Option<&str> {
        self.client_id.as_ref().or(self.url.options.client_id.as_ref()).map(|id| &**id)
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

    /// How many messages may be sent ahead to a consumer where neither it nor its destination says so. For the consumer of
    /// a durable subscription see [`ConnectionFactory::durable_prefetch`].
    #[must_use]
    pub fn prefetch(&self, destination: &Destination) -> u32 {
        let default = if destination.is_topic() { TOPIC_PREFETCH } else { QUEUE_PREFETCH };
        self.chosen_prefetch(destination, false).unwrap_or(default)
    }

    /// How many messages may be sent ahead to the consumer of a durable subscription where neither it nor its topic says so.
    #[must_use]
    pub fn durable_prefetch(&self) -> u32 {
        self.url.options.durable_prefetch.unwrap_or(DURABLE_PREFETCH)
    }

    /// How many messages a browser is shown ahead where its queue does not say so. One cannot be without any.
    #[must_use]
    pub fn browser_prefetch(&self) -> u32 {
        self.url.options.browser_prefetch.filter(|prefetch| *prefetch > 0).unwrap_or(BROWSER_PREFETCH)
    }

    /// What the URL says of the prefetch of such a consumer, if anything.
    pub(super) fn chosen_prefetch(&self, destination: &Destination, is_durable: bool) -> Option<u32> {
        let options = &self.url.options;
        match (destination.is_topic(), is_durable) {
            (true, true) => options.durable_prefetch,
            (true, false) => options.topic_prefetch,
            (false, _) => options.queue_prefetch,
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
    /// [`Error::IllegalState`] for a client id that is empty, longer than 1,024 bytes or holds a control character; when the broker
    /// cannot be reached or refuses.
    pub async fn create_connection(&self) -> Result<Connection, Error> {
        if let Some((id, fault)) = self.client_id().and_then(|id| Some((id, name_fault(id)?))) {
            let reason = format!("`{}` cannot be a client id: {fault}", shown(id));
            return Err(Error::IllegalState { operation: "create_connection", reason });
        }
        let provider: Arc<dyn Provider> = provider_for(&self.url.scheme, &self.url.target)?;
        let options = ConnectOptions {
            connection: ConnectionId::unique(),
            client_id: self.client_id().map(Into::into),
            user: self.url.options.user.clone(),
            password: self.url.options.password.clone(),
        };
        let clock = self.clock.clone().unwrap_or_else(|| provider.clock());
        Connection::connect(self.clone(), &*provider, options, clock).await
    }

    /// Whether acknowledgements are put off in sessions that acknowledge by themselves (`jms.optimizeAcknowledge`).
    #[must_use]
    pub fn optimizes_acknowledge(&self) -> bool {
        self.url.options.optimize_acknowledge
    }

    /// How acknowledgements are put off in sessions that acknowledge by themselves, if the URL asks for that.
    pub(super) fn optimize_acknowledge(&self) -> Option<OptimizeAcknowledge> {
        let options = &self.url.options;
        options.optimize_acknowledge.then(|| OptimizeAcknowledge {
            timeout: Some(options.optimize_timeout.unwrap_or(OPTIMIZE_TIMEOUT))
                .filter(|time| !time.is_zero()),
            interval: options.optimize_interval.filter(|time| !time.is_zero()),
        })
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
