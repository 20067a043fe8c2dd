//! What a session opens to receive, or to look: consumers, browsers, temporary destinations.

use std::sync::Arc;

use super::super::buffer::{Buffer, lock};
use super::super::{Consumer, QueueBrowser, TemporaryDestination};
use super::settlement::HandedOver;
use super::{AcknowledgeMode, Session};
use crate::destination::{Destination, DestinationKind};
use crate::error::Error;
use crate::id::SubscriptionId;
use crate::provider::{Capability, Command, Confirmation, Credit, Subscribe};

/// How many messages a browser is shown ahead where the destination does not say so.
const BROWSER_PREFETCH: u32 = 500;

/// How a consumer receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsumerOptions {
    /// How many messages may be under way to it; 0 pulls each message when it is asked for. `None` for the destination's
    /// option `consumer.prefetchSize`, else the factory's, else 100 for a queue and 1000 for a topic.
    pub prefetch: Option<u32>,
    /// Whether it leaves out what is sent over its own connection (`noLocal`). For topics; a consumer of a queue gets
    /// those messages whatever this says.
    pub no_local: bool,
}

impl Session {
    /// Makes a consumer. The prefetch is the destination's option `consumer.prefetchSize`, else the factory's, else 100
    /// for a queue and 1000 for a topic. When this returns, what waited at the destination is in the consumer's
    /// buffer. Dropping the future leaves none behind.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed, or what the provider refuses: the temporary destination of another connection,
    /// or one that is gone.
    pub async fn create_consumer(&self, destination: &Destination) -> Result<Consumer, Error> {
        self.create_consumer_with(destination, &ConsumerOptions::default()).await
    }

    /// Makes a consumer with this prefetch instead; 0 pulls each message when it is asked for.
    ///
    /// # Errors
    /// As [`Session::create_consumer`].
    pub async fn create_consumer_with_prefetch(
        &self,
        destination: &Destination,
        prefetch: u32,
    ) -> Result<Consumer, Error> {
        let options = ConsumerOptions { prefetch: Some(prefetch), ..ConsumerOptions::default() };
        self.create_consumer_with(destination, &options).await
    }

    /// Makes a consumer with these options. Otherwise as [`Session::create_consumer`].
    ///
    /// # Errors
    /// As [`Session::create_consumer`].
    pub async fn create_consumer_with(
        &self,
        destination: &Destination,
        options: &ConsumerOptions,
    ) -> Result<Consumer, Error> {
        self.inner.check_open("create_consumer")?;
        let inner = &self.inner;
        let factory = inner.connection.factory();
        let prefetch = options.prefetch.or(destination.consumer_prefetch());
        let prefetch = prefetch.unwrap_or_else(|| factory.prefetch(destination));
        let report_after = match inner.mode {
            AcknowledgeMode::Auto | AcknowledgeMode::DupsOk => None,
            AcknowledgeMode::Client | AcknowledgeMode::Individual | AcknowledgeMode::Transacted => {
                (prefetch > 0).then(|| u64::from(prefetch.div_ceil(2)))
            }
        };
        let (id, buffer) = self.new_subscription(report_after);
        let consumer = Consumer::new(self.clone(), id, buffer, prefetch == 0);
        let subscribe = Subscribe {
            subscription: id,
            session: inner.id,
            destination: destination.clone(),
            credit: credit(inner.mode, prefetch, factory.has_bounded_extension()),
            selector: None,
            no_local: options.no_local,
            is_default_credit: false,
            durable_name: None,
            redelivery: factory.redelivery().cloned(),
        };
        inner.connection.submit(Command::OpenSubscription(Box::new(subscribe))).await?;
        Ok(consumer)
    }

    /// Looks at what is pending in a queue at this moment, without consuming it. A queue that is not there is empty. Dropping
    /// the future leaves no browser behind.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed, [`Error::Unsupported`] where the provider cannot browse, or what it refuses: a
    /// topic, the temporary queue of another connection, or one that is gone.
    pub async fn create_browser(&self, queue: &Destination) -> Result<QueueBrowser, Error> {
        self.inner.check_open("create_browser")?;
        self.check_offered(Capability::Browse)?;
        let connection = &self.inner.connection;
        let (subscription, buffer) = self.new_subscription(None);
        let credit = queue.consumer_prefetch().filter(|prefetch| *prefetch > 0).unwrap_or(BROWSER_PREFETCH);
        let browser = QueueBrowser::new(self.clone(), subscription, buffer, credit);
        let session = self.inner.id;
        let browse = Command::Browse { subscription, session, destination: queue.clone(), selector: None };
        let opened = connection.submit(browse);
        // Where the browser is refused, so is its credit.
        drop(connection.submit(Command::Grant { subscription, credit }));
        opened.await?;
        Ok(browser)
    }

    /// Makes a queue for this connection alone to consume from, as for the replies to its requests. It ends with its connection,
    /// or by [`TemporaryDestination::delete`]. Dropping the future may leave one behind until the connection ends.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed, [`Error::Unsupported`] where the provider has no temporary destinations.
    pub async fn create_temporary_queue(&self) -> Result<TemporaryDestination, Error> {
        self.create_temporary("create_temporary_queue", DestinationKind::TemporaryQueue).await
    }

    /// Makes a topic for this connection alone to consume from. Otherwise as [`Session::create_temporary_queue`].
    ///
    /// # Errors
    /// As [`Session::create_temporary_queue`].
    pub async fn create_temporary_topic(&self) -> Result<TemporaryDestination, Error> {
        self.create_temporary("create_temporary_topic", DestinationKind::TemporaryTopic).await
    }

    async fn create_temporary(
        &self,
        operation: &'static str,
        kind: DestinationKind,
    ) -> Result<TemporaryDestination, Error> {
        self.inner.check_open(operation)?;
        self.check_offered(Capability::TemporaryDestinations)?;
        let connection = &self.inner.connection;
        let name = format!("{}:{}", connection.id(), connection.next_number());
        let destination = Destination::temporary(kind, &name)?;
        let created =
            connection.submit(Command::CreateTemporary { destination: destination.clone() }).await?;
        let destination = match created {
            Confirmation::Created(named) => named,
            _ => destination,
        };
        Ok(TemporaryDestination::new(self.connection(), destination))
    }

    fn check_offered(&self, capability: Capability) -> Result<(), Error> {
        if self.connection().capabilities().has(capability) {
            Ok(())
        } else {
            Err(Error::Unsupported(capability))
        }
    }

    /// A number for a subscription, under which deliveries come into a buffer from now on.
    fn new_subscription(&self, report_after: Option<u64>) -> (SubscriptionId, Arc<Buffer>) {
        let inner = &self.inner;
        let id = SubscriptionId(inner.connection.next_number());
        let buffer = Arc::new(Buffer::default());
        let handed_over = HandedOver::nothing(Arc::clone(&buffer), report_after);
        lock(&inner.state).subscriptions.insert(id, handed_over);
        inner.connection.sink().add(id, Arc::clone(&buffer));
        (id, buffer)
    }
}

fn credit(mode: AcknowledgeMode, prefetch: u32, is_bounded: bool) -> Credit {
    if prefetch == 0 {
        return Credit::Explicit;
    }
    let extension = match mode {
        // Acknowledged one by one as they are handed over, so that nothing is ever both handed over and unsettled.
        AcknowledgeMode::Auto | AcknowledgeMode::DupsOk => Some(0),
        AcknowledgeMode::Client | AcknowledgeMode::Individual => is_bounded.then(|| prefetch.div_ceil(2)),
        // A transaction larger than the window must not wait for itself.
        AcknowledgeMode::Transacted => None,
    };
    Credit::Window { prefetch, extension }
}
