//! What a session opens to receive, or to look: consumers, browsers, temporary destinations.

use std::sync::Arc;

use super::super::buffer::{Buffer, lock};
use super::super::{Consumer, QueueBrowser, TemporaryDestination, name_fault};
use super::Session;
use super::putting_off::Timer;
use super::settlement::HandedOver;
use super::timing::Timing;
use crate::destination::{Destination, DestinationKind};
use crate::error::Error;
use crate::id::SubscriptionId;
use crate::provider::{Capability, Command, Confirmation, ProviderError, Subscribe};
use crate::text::shown;

/// How a consumer receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsumerOptions {
    /// How many messages may be under way to it; 0 pulls each message when it is asked for. `None` for the destination's
    /// option `consumer.prefetchSize`, else the factory's, else 100 for a queue, 1000 for a topic and 100 for a durable
    /// subscription. Of these last ones a policy of the broker may make others.
    pub prefetch: Option<u32>,
    /// Whether it leaves out what is sent over its own connection (`noLocal`). For topics; a consumer of a queue gets
    /// those messages whatever this says.
    pub no_local: bool,
}

impl Session {
    /// Makes a consumer. The prefetch is the destination's option `consumer.prefetchSize`, else the factory's, else what a
    /// policy of the broker says, else 100 for a queue and 1000 for a topic. When this returns, what waited at the destination is in the consumer's
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
        self.consume("create_consumer", destination, None, options).await
    }

    /// Makes a consumer of the durable subscription `name` to a topic: what is sent to the topic is kept for it also while
    /// nobody consumes from it. It belongs to the connection's client id (`jms.clientID`). It is made when it is not there, and
    /// made anew, without what waited in it, when it is there for another topic or with another `no_local` (Jakarta
    /// Messaging 3.1, section 8.3.3). Its default prefetch is 100. Closing the consumer leaves it; see
    /// [`Session::unsubscribe`]. Dropping the future leaves no consumer behind, yet perhaps the subscription.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed, on a connection without a client id, and for a name that is empty, longer than 1,024 bytes
    /// or holds a control character; [`Error::Unsupported`] where the provider has no durable subscriptions, an invalid
    /// destination for what is no topic or a temporary one, or what the provider refuses: a subscription that another consumer
    /// has.
    pub async fn create_durable_consumer(&self, topic: &Destination, name: &str) -> Result<Consumer, Error> {
        self.create_durable_consumer_with(topic, name, &ConsumerOptions::default()).await
    }

    /// Makes a consumer of a durable subscription with these options. Otherwise as [`Session::create_durable_consumer`].
    ///
    /// # Errors
    /// As [`Session::create_durable_consumer`].
    pub async fn create_durable_consumer_with(
        &self,
        topic: &Destination,
        name: &str,
        options: &ConsumerOptions,
    ) -> Result<Consumer, Error> {
        const OPERATION: &str = "create_durable_consumer";
        self.inner.check_open(OPERATION)?;
        self.check_offered(Capability::DurableSubscriptions)?;
        let refuse = |reason: &str| {
            let (destination, reason) = (topic.to_string(), reason.to_owned());
            Err(ProviderError::InvalidDestination { destination, reason }.into())
        };
        if !topic.is_topic() {
            return refuse("a durable subscription is to a topic");
        }
        if topic.is_temporary() {
            return refuse("a temporary topic ends with its connection, so nothing of it can be durable");
        }
        check_name(OPERATION, name)?;
        self.consume(OPERATION, topic, Some(name.into()), options).await
    }

    /// Removes a durable subscription of this connection's client id with all that waits in it.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed or on a connection without a client id, [`Error::Unsupported`] where the provider
    /// has no durable subscriptions, or what it refuses: a name that is none of them
    /// ([`ProviderError::UnknownSubscription`]), and one that a consumer or an open transaction uses
    /// ([`ProviderError::SubscriptionInUse`]).
    pub async fn unsubscribe(&self, name: &str) -> Result<(), Error> {
        const OPERATION: &str = "unsubscribe";
        self.inner.check_open(OPERATION)?;
        self.check_offered(Capability::DurableSubscriptions)?;
        check_name(OPERATION, name)?;
        let unsubscribed = self.inner.connection.submit(Command::Unsubscribe { name: name.into() });
        unsubscribed.await.map_err(|error| Error::during(OPERATION, error))?;
        Ok(())
    }

    async fn consume(
        &self,
        operation: &'static str,
        destination: &Destination,
        durable_name: Option<Arc<str>>,
        options: &ConsumerOptions,
    ) -> Result<Consumer, Error> {
        let inner = &self.inner;
        inner.check_open(operation)?;
        let factory = inner.connection.factory();
        let is_durable = durable_name.is_some();
        let chosen = options.prefetch.or(destination.consumer_prefetch());
        let chosen = chosen.or_else(|| factory.chosen_prefetch(destination, is_durable));
        let default = if is_durable { factory.durable_prefetch() } else { factory.prefetch(destination) };
        let prefetch = chosen.unwrap_or(default);
        let timing = Timing {
            mode: inner.mode,
            is_topic: destination.is_topic(),
            is_bounded: factory.has_bounded_extension(),
            optimize: factory.optimize_acknowledge(),
        };
        let (id, buffer) = self.new_subscription(timing, prefetch);
        let consumer = Consumer::new(self.clone(), id, buffer, prefetch == 0);
        let subscribe = Subscribe {
            subscription: id,
            session: inner.id,
            destination: destination.clone(),
            credit: timing.credit(prefetch),
            selector: None,
            no_local: options.no_local,
            is_default_credit: chosen.is_none(),
            durable_name,
            redelivery: factory.redelivery().cloned(),
        };
        let opened = inner.connection.submit(Command::OpenSubscription(Box::new(subscribe)));
        opened.await.map_err(|error| Error::during(operation, error))?;
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
        let (subscription, buffer) = self.new_subscription(Timing::of_browser(), 0);
        let credit = queue.consumer_prefetch().filter(|prefetch| *prefetch > 0);
        let credit = credit.unwrap_or_else(|| connection.factory().browser_prefetch());
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
    fn new_subscription(&self, timing: Timing, prefetch: u32) -> (SubscriptionId, Arc<Buffer>) {
        let inner = &self.inner;
        let id = SubscriptionId(inner.connection.next_number());
        let buffer = Arc::new(Buffer::new(prefetch));
        let mut handed_over =
            HandedOver::nothing(Arc::clone(&buffer), timing, inner.connection.clock().now());
        handed_over.timer = timing.interval(prefetch).and_then(|interval| Timer::start(interval, inner, id));
        lock(&inner.state).subscriptions.insert(id, handed_over);
        inner.connection.sink().add(id, Arc::clone(&buffer));
        (id, buffer)
    }
}

fn check_name(operation: &'static str, name: &str) -> Result<(), Error> {
    name_fault(name).map_or(Ok(()), |fault| {
        let reason = format!("`{}` cannot be the name of a durable subscription: {fault}", shown(name));
        Err(Error::IllegalState { operation, reason })
    })
}
