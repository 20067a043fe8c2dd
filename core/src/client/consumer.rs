//! Consumers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use tokio::runtime::Handle;

use super::buffer::{Buffer, End};
use super::listener::{self, ListenerFailure};
use super::receiver::{Receiver, Wait};
use super::session::confirm_all;
use super::{AcknowledgeMode, Delivery, Session};
use crate::error::Error;
use crate::id::SubscriptionId;

/// Receives messages. Dropping it closes it; what it had not handed over returns to its destination, uncounted.
#[derive(Debug)]
pub struct Consumer {
    session: Session,
    receiver: Receiver,
    has_listener: AtomicBool,
}

impl Consumer {
    pub(super) fn new(
        session: Session,
        subscription: SubscriptionId,
        buffer: Arc<Buffer>,
        pulls: bool,
    ) -> Self {
        let receiver = Receiver::new(subscription, buffer, pulls);
        Self { session, receiver, has_listener: AtomicBool::new(false) }
    }

    /// The session that it belongs to.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Waits for a message as long as it takes; `None` when the consumer is closed meanwhile. In AUTO and `DUPS_OK` the message is
    /// acknowledged as it is returned: what the caller does with it then is the caller's risk (Jakarta Messaging 3.1,
    /// section 6.2.10). Where acknowledgements are put off, by `DUPS_OK` on a topic or `jms.optimizeAcknowledge`, it may come
    /// again if the process dies before the provider was told of them. Dropping the future neither loses nor counts a message.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed or when a message listener is set; the connection's end.
    pub async fn receive(&self) -> Result<Option<Delivery>, Error> {
        self.next("receive", self.acknowledges(), Wait::Forever).await
    }

    /// Waits for a message up to `timeout`; zero does not wait. Dropping the future neither loses nor counts a message.
    ///
    /// # Errors
    /// As [`Consumer::receive`].
    pub async fn receive_timeout(&self, timeout: Duration) -> Result<Option<Delivery>, Error> {
        let wait = Wait::up_to(timeout, self.session.inner().connection().clock().now());
        self.next("receive_timeout", self.acknowledges(), wait).await
    }

    /// Takes a message if one is there, also when it has to be fetched from the broker. Dropping the future neither
    /// loses nor counts a message.
    ///
    /// # Errors
    /// As [`Consumer::receive`].
    pub async fn receive_no_wait(&self) -> Result<Option<Delivery>, Error> {
        self.next("receive_no_wait", self.acknowledges(), Wait::No).await
    }

    /// As [`Consumer::receive`], but nothing is acknowledged: the caller settles with [`Delivery::acknowledge`] or
    /// [`Delivery::release`]. Listener containers and converting receives are made of this.
    ///
    /// # Errors
    /// As [`Consumer::receive`].
    pub async fn take(&self) -> Result<Option<Delivery>, Error> {
        self.next("take", false, Wait::Forever).await
    }

    /// [`Consumer::take`] up to `timeout`; zero does not wait.
    ///
    /// # Errors
    /// As [`Consumer::receive`].
    pub async fn take_timeout(&self, timeout: Duration) -> Result<Option<Delivery>, Error> {
        let wait = Wait::up_to(timeout, self.session.inner().connection().clock().now());
        self.next("take_timeout", false, wait).await
    }

    /// The messages as a stream of [`Consumer::receive`]; it ends when the consumer is closed, and after an error. Dropping it between two
    /// items neither loses nor counts a message.
    #[must_use]
    pub fn stream(&self) -> Messages<'_> {
        Messages { consumer: self, next: None, is_over: false }
    }

    /// Calls `listener` for each message from now on, one at a time over all listeners of the session; receive is an
    /// error after that.
    ///
    /// When it returned `Ok`, AUTO and `DUPS_OK` acknowledge the message; in the other modes that is the application's to do. On
    /// `Err` or a panic, AUTO, `DUPS_OK` and INDIVIDUAL give the message back, and no other: what the listener had acknowledged
    /// stays so, and so does what it left unacknowledged before (ActiveMQ gives back all of that in INDIVIDUAL). In
    /// CLIENT and TRANSACTED an unsuccessful message stays unsettled until the session is recovered, rolled back or closed.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed, when a listener is set already, when the prefetch is 0, or outside a tokio
    /// runtime.
    pub fn set_message_listener<F, R>(&self, listener: F) -> Result<(), Error>
    where
        F: Fn(Delivery) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), ListenerFailure>> + Send + 'static,
    {
        const OPERATION: &str = "set_message_listener";
        self.session.inner().check_open(OPERATION)?;
        self.check_open(OPERATION)?;
        let refuse =
            |reason: &str| Err(Error::IllegalState { operation: OPERATION, reason: reason.to_owned() });
        if self.receiver.pulls() {
            return refuse("the consumer's prefetch is 0, so nothing comes by itself; give it a prefetch");
        }
        let Ok(runtime) = Handle::try_current() else {
            return refuse("there is no tokio runtime here to call it in");
        };
        if self.has_listener.swap(true, Ordering::AcqRel) {
            return refuse("the consumer has a message listener already");
        }
        runtime.spawn(listener::run(self.session.downgrade(), self.receiver.clone(), listener));
        Ok(())
    }

    /// Acknowledges everything that this consumer received and nothing that others of its session did.
    ///
    /// So in CLIENT and INDIVIDUAL. In AUTO and `DUPS_OK`, where a message is acknowledged without the application's doing, it
    /// tells the provider of acknowledgements that were put off. In a transacted session it does nothing, as the commit
    /// acknowledges. In CLIENT and INDIVIDUAL it has taken effect when this returns; dropping the future, once it was polled,
    /// does not withdraw it.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed; what a closed consumer received is [`Session::acknowledge`]'s.
    pub async fn acknowledge(&self) -> Result<(), Error> {
        const OPERATION: &str = "acknowledge";
        let session = self.session.inner();
        session.check_usable(OPERATION)?;
        self.check_open(OPERATION)?;
        let subscription = self.receiver.subscription;
        confirm_all(match session.mode() {
            AcknowledgeMode::Client | AcknowledgeMode::Individual => session.settle_received(subscription),
            AcknowledgeMode::Auto | AcknowledgeMode::DupsOk => session.tell_acknowledged_of(subscription),
            AcknowledgeMode::Transacted => Vec::new(),
        })
        .await
    }

    /// How many messages may be sent ahead to it; 0 when each is fetched as it is asked for. A policy of the broker may have
    /// changed it where nobody chose it.
    #[must_use]
    pub fn prefetch(&self) -> u32 {
        self.receiver.buffer.prefetch()
    }

    /// Changes how many messages may be sent ahead to it. What is under way beyond a smaller window stays with it. What the
    /// window lets through at this moment is in the buffer when this returns; dropping the future does not withdraw it.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed, for 0, and for a consumer that was made with a prefetch of 0: one of them has a
    /// window and the other fetches each message, and neither becomes the other.
    pub async fn set_prefetch(&self, prefetch: u32) -> Result<(), Error> {
        const OPERATION: &str = "set_prefetch";
        let session = self.session.inner();
        session.check_open(OPERATION)?;
        self.check_open(OPERATION)?;
        let refuse = |reason: String| Err(Error::IllegalState { operation: OPERATION, reason });
        if self.receiver.pulls() {
            return refuse(format!(
                "the consumer was made with the prefetch 0, so it fetches each message when it is asked for; close it and make \
                 one with the prefetch {prefetch}"
            ));
        }
        if prefetch == 0 {
            return refuse(
                "with the prefetch 0 a consumer fetches each message when it is asked for, which is for its whole life; close \
                 this one and make one with the prefetch 0, or expect 1 or more"
                    .to_owned(),
            );
        }
        session.change_window(self.receiver.subscription, prefetch).await?;
        Ok(())
    }

    fn check_open(&self, operation: &'static str) -> Result<(), Error> {
        match self.receiver.buffer.ended() {
            Some(End::Closed) => Err(Error::closed(operation, "consumer")),
            _ => Ok(()),
        }
    }

    /// Whether it, its session or its connection was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.receiver.buffer.ended(), Some(End::Closed))
    }

    /// Whether messages wait in the buffer.
    #[must_use]
    pub fn has_backlog(&self) -> bool {
        self.receiver.buffer.len() > 0
    }

    /// Closes the consumer, waiting for a listener that is at work; from inside that listener it returns at once, and
    /// the message at hand is still settled. What was handed over and is not settled stays with the session. A second
    /// close is silent.
    ///
    /// # Errors
    /// When the broker does not confirm.
    pub async fn close(&self) -> Result<(), Error> {
        let session = self.session.inner();
        let Some(receipt) = session.close_subscription(self.receiver.subscription) else {
            return Ok(());
        };
        if self.has_listener.load(Ordering::Acquire) && !session.handlers().is_current() {
            // Turns are given in the order of asking, so busy listeners of the session's other consumers hold up nothing.
            drop(session.listener_turn().take().await);
        }
        super::confirm_close(receipt).await
    }

    fn acknowledges(&self) -> bool {
        matches!(self.session.mode(), AcknowledgeMode::Auto | AcknowledgeMode::DupsOk)
    }

    async fn next(
        &self,
        operation: &'static str,
        settles: bool,
        wait: Wait,
    ) -> Result<Option<Delivery>, Error> {
        self.session.inner().check_open(operation)?;
        if self.has_listener.load(Ordering::Acquire) {
            return Err(Error::IllegalState {
                operation,
                reason: "the consumer has a message listener, which gets its messages".to_owned(),
            });
        }
        self.check_open(operation)?;
        match self.receiver.next(self.session.inner(), settles, wait).await {
            Ok(delivery) => Ok(delivery),
            Err(End::Closed) => Ok(None),
            Err(End::Failed(error)) => Err(error.into()),
        }
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        // Nobody is left who could wait for the confirmation.
        drop(self.session.inner().close_subscription(self.receiver.subscription));
    }
}

/// The messages of a consumer, as [`Consumer::stream`] gives them.
pub struct Messages<'a> {
    consumer: &'a Consumer,
    next: Option<NextMessage<'a>>,
    is_over: bool,
}

type NextMessage<'a> = Pin<Box<dyn Future<Output = Result<Option<Delivery>, Error>> + Send + 'a>>;

impl std::fmt::Debug for Messages<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messages").field("consumer", self.consumer).finish_non_exhaustive()
    }
}

impl Stream for Messages<'_> {
    type Item = Result<Delivery, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let consumer = self.consumer;
        if self.is_over || (self.next.is_none() && consumer.is_closed()) {
            self.is_over = true;
            return Poll::Ready(None);
        }
        let next = self.next.get_or_insert_with(|| Box::pin(consumer.receive()));
        let outcome = next.as_mut().poll(cx);
        if let Poll::Ready(outcome) = &outcome {
            self.next = None;
            // What failed once fails again: a loop over the items must come to its end.
            self.is_over = !matches!(outcome, Ok(Some(_)));
        }
        outcome.map(Result::transpose)
    }
}
