//! The edge: a broker with a clock, a store and connections.

use std::sync::Arc;

use async_trait::async_trait;
use corriere_core::nearest::nearest;
use corriere_core::provider::{
    Capability, ConnectOptions, DeliverySink, Provider, ProviderConnection, ProviderError,
};
use corriere_core::{Clock, Destination, DestinationKind};
use tokio::runtime::Handle;

use crate::browse::Browse;
use crate::connection::VmConnection;
use crate::counts::Counts;
use crate::edge::Edge;
use crate::queue_handle::{QueueError, QueueHandle};
use crate::registry;
use crate::settings::Settings;
use crate::store::{MessageStore, Totals};
use crate::subscriptions::DurableSubscription;

/// A running broker, reachable in this process as `vm://<name>`. Clones are the same broker; it stops when
/// [`Broker::stop`] is called or the last clone and connection are gone.
#[derive(Clone, Debug)]
pub struct Broker(Arc<Edge>);

impl Broker {
    /// Starts a broker on what its store brings back. To be called within a tokio runtime, which runs the task that wakes the broker when something
    /// is due.
    ///
    /// # Errors
    /// When a broker of this name runs in this process already, or outside a runtime.
    pub fn start(
        name: &str,
        settings: Settings,
        store: Arc<dyn MessageStore>,
        clock: Clock,
    ) -> Result<Self, StartError> {
        let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime { name: name.to_owned() })?;
        check_policies(name, &settings)?;
        registry::check_free(name)?;
        let edge = Edge::new(name, settings, store, clock);
        registry::enter(&edge)?;
        runtime.spawn(Edge::keep_time(Arc::downgrade(&edge)));
        Ok(Self(edge))
    }

    pub(crate) fn from_edge(edge: Arc<Edge>) -> Self {
        Self(edge)
    }

    /// The names of all brokers that run in this process, in their order.
    #[must_use]
    pub fn running() -> Vec<String> {
        registry::names()
    }

    /// The name under which `vm:` finds it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// What became of the messages of a destination; `None` when there is none of that name.
    #[must_use]
    pub fn counts(&self, destination: &Destination) -> Option<Counts> {
        self.0.query(|machine| machine.counts(destination))
    }

    /// Of the pending messages of a destination: those that are not to be delivered before a later moment.
    #[must_use]
    pub fn delayed(&self, destination: &Destination) -> u64 {
        let now = self.0.now();
        self.0.query(|machine| machine.delayed(destination, now))
    }

    /// How many batches of changes the store has that are not as safe yet as they are to be. With none, everything that
    /// the counts tell of survives the end of the process.
    #[must_use]
    pub fn batches_at_store(&self) -> usize {
        self.0.query(crate::machine::Machine::batches_at_store)
    }

    /// All destinations that exist, queues first, in the order of their names.
    #[must_use]
    pub fn destinations(&self) -> Vec<Destination> {
        self.0.query(crate::machine::Machine::destinations)
    }

    /// All durable subscriptions, in the order of their client ids and names.
    #[must_use]
    pub fn durable_subscriptions(&self) -> Vec<DurableSubscription> {
        self.0.query(crate::machine::Machine::durable_subscriptions)
    }

    /// Bytes of messages in memory.
    #[must_use]
    pub fn memory_used(&self) -> u64 {
        self.0.query(crate::machine::Machine::memory_used)
    }

    /// What became of the persistent messages of a queue since its store was made; `None` when there is none of that name.
    #[must_use]
    pub fn totals(&self, destination: &Destination) -> Option<Totals> {
        self.0.query(|machine| machine.totals(destination))
    }

    /// Looks at what is pending in a queue now, without consuming or counting anything. Bodies that are with the store only are
    /// read back for it.
    #[must_use]
    pub fn browse(&self, queue: &Destination) -> Browse {
        Browse::new(Arc::clone(&self.0), queue.clone())
    }

    /// A queue of this physical name, for its operator.
    ///
    /// # Errors
    /// [`QueueError::Unknown`], with the nearest name, when there is none.
    pub fn queue(&self, name: &str) -> Result<QueueHandle, QueueError> {
        let named = [Destination::queue(name), Destination::temporary(DestinationKind::Queue, name)];
        let is_there = |queue: &Destination| self.counts(queue).is_some();
        if let Some(found) = named.into_iter().flatten().find(is_there) {
            return Ok(QueueHandle::new(Arc::clone(&self.0), found));
        }
        let all = self.destinations();
        let names = all.iter().filter(|other| !other.is_topic()).map(Destination::name);
        Err(QueueError::Unknown {
            broker: self.name().to_owned(),
            queue: name.to_owned(),
            nearest: nearest(name, names).map(str::to_owned),
        })
    }

    /// Ends when the broker has stopped because it failed, as after a failed write of its store; never when it was told to
    /// stop. It does not keep the broker alive.
    pub fn failed(&self) -> impl Future<Output = ProviderError> + Send + 'static {
        let mut failure = self.0.failure();
        async move {
            let failed = match failure.wait_for(Option::is_some).await {
                Ok(failure) => failure.clone(),
                Err(_) => None,
            };
            match failed {
                Some(error) => error,
                None => std::future::pending().await,
            }
        }
    }

    /// Ends all connections, as lost, frees the name, and closes the store: all that was confirmed is safe when this
    /// returns, which may block for a moment. What comes later is refused with [`ProviderError::Stopped`]. Called from
    /// within a delivery it returns at once, and the store is closed soon after.
    pub fn stop(&self) {
        self.0.stop();
    }
}

#[async_trait]
impl Provider for Broker {
    fn clock(&self) -> Clock {
        self.0.clock()
    }

    async fn connect(
        &self,
        options: ConnectOptions,
        sink: Arc<dyn DeliverySink>,
    ) -> Result<Arc<dyn ProviderConnection>, ProviderError> {
        // There are no users yet. Whoever gives a password must not believe that it was checked.
        if options.user.is_some() || options.password.is_some() {
            return Err(ProviderError::Unsupported(Capability::Authentication));
        }
        let key = self.0.connect(options, sink)?;
        Ok(Arc::new(VmConnection::new(Arc::clone(&self.0), key)))
    }
}

/// Refuses two policies of which none is more specific than the other.
fn check_policies(broker: &str, settings: &Settings) -> Result<(), StartError> {
    for (place, policy) in settings.policies.iter().enumerate() {
        if settings.policies.iter().take(place).any(|other| other.pattern == policy.pattern) {
            return Err(StartError::SamePattern {
                name: broker.to_owned(),
                pattern: policy.pattern.to_string(),
            });
        }
    }
    Ok(())
}

/// Why a broker did not start.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// The name is taken.
    #[error("a broker named `{name}` runs in this process already")]
    NameInUse {
        /// The name.
        name: String,
    },
    /// Two policies are for the same destinations.
    #[error("broker `{name}` has two policies for `{pattern}`; expected one for each pattern")]
    SamePattern {
        /// The name.
        name: String,
        /// The pattern of both.
        pattern: String,
    },
    /// There is no runtime.
    #[error("broker `{name}` was started outside a tokio runtime, which it needs to keep time")]
    NoRuntime {
        /// The name.
        name: String,
    },
}
