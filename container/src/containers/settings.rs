//! What a listener container needs to know.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use corriere_core::{Clock, ConnectionFactory, Destination};
use corriere_templates::MessageConverter;

use super::DeliveryObserver;
use crate::beans::Beans;
use crate::listener::{Acknowledge, Concurrency};

/// The settings of one listener's container, with every name resolved.
#[derive(Clone)]
pub struct ContainerSettings {
    /// Where its connection comes from; a template with the same factory joins the listener's transaction.
    pub factory: ConnectionFactory,
    /// Where messages come from.
    pub destination: Destination,
    /// The name of the durable subscription that is consumed from; only on a topic, and with a client id of the factory's.
    pub subscription: Option<Arc<str>>,
    /// When they are settled.
    pub acknowledge: Acknowledge,
    /// How many workers; for a topic at most one.
    pub concurrency: Concurrency,
    /// How many messages the broker may send ahead to each worker, whatever the destination's own option says; 0 fetches
    /// each when a worker is ready for it.
    pub prefetch: u32,
    /// Where replies go that the request names no address for.
    pub send_to: Option<Destination>,
    /// Reads payloads and writes replies.
    pub converter: Arc<dyn MessageConverter>,
    /// How long a stop waits for the runs that are under way.
    pub shutdown_timeout: Duration,
    /// How long a worker above the lower bound waits for a message before it retires.
    pub idle_timeout: Duration,
    /// The pause before the second attempt to connect; it doubles up to `maximum_back_off`, and starts again only after a
    /// message was received.
    pub back_off: Duration,
    /// The longest pause between two attempts to connect.
    pub maximum_back_off: Duration,
    /// What `Bean<T>` arguments are found in.
    pub beans: Arc<Beans>,
    /// Measures idleness.
    pub clock: Clock,
    /// Is told of the end of every delivery, and of a worker that stands still.
    pub observer: Option<Arc<dyn DeliveryObserver>>,
}

impl ContainerSettings {
    /// How long a stop waits where nothing says it.
    pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(20);

    /// The built-in defaults: one worker, `auto`, the prefetch that the destination's option says or 10, 20 s to stop, no
    /// beans.
    #[must_use]
    pub fn new(
        factory: ConnectionFactory,
        destination: Destination,
        converter: Arc<dyn MessageConverter>,
    ) -> Self {
        let prefetch = destination.consumer_prefetch().unwrap_or(10);
        Self {
            factory,
            destination,
            subscription: None,
            acknowledge: Acknowledge::Auto,
            concurrency: Concurrency::ONE,
            prefetch,
            send_to: None,
            converter,
            shutdown_timeout: Self::SHUTDOWN_TIMEOUT,
            idle_timeout: Duration::from_secs(10),
            back_off: Duration::from_millis(500),
            maximum_back_off: Duration::from_secs(30),
            beans: Arc::new(Beans::new()),
            clock: Clock::system(),
            observer: None,
        }
    }
}

impl fmt::Debug for ContainerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContainerSettings")
            .field("destination", &self.destination)
            .field("subscription", &self.subscription)
            .field("acknowledge", &self.acknowledge)
            .field("concurrency", &self.concurrency)
            .field("prefetch", &self.prefetch)
            .field("send_to", &self.send_to)
            .field("converter", &self.converter)
            .field("shutdown_timeout", &self.shutdown_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("back_off", &self.back_off)
            .field("maximum_back_off", &self.maximum_back_off)
            .finish_non_exhaustive()
    }
}
