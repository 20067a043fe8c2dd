//! Sessions: one line of work, its transaction and what it has not settled.

mod closing;
mod opening;
mod putting_off;
mod sending;
mod settlement;
mod timing;
mod transaction;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, Weak};

use self::settlement::HandedOver;
use super::connection::ConnectionInner;
use super::handler::{Handlers, ListenerTurn};
use super::producer::ProducerIdentity;
use super::{Connection, Producer, SendOptions};
use crate::destination::Destination;
use crate::error::Error;
use crate::id::{MessageId, SessionId, SubscriptionId, TransactionId};
use crate::message::Message;
use crate::provider::{AckKind, Cause, Receipt};

pub use crate::provider::SessionMode as AcknowledgeMode;
pub use opening::ConsumerOptions;

/// A session: one line of work whose calls are serialised. Clones are the same session; dropping the last clone and
/// all that it made (consumers, producers, deliveries) closes it, which rolls a transaction back.
#[derive(Clone, Debug)]
pub struct Session {
    inner: Arc<SessionInner>,
}

#[derive(Debug)]
pub(super) struct SessionInner {
    connection: Arc<ConnectionInner>,
    id: SessionId,
    mode: AcknowledgeMode,
    phase: AtomicU8,
    handlers: Handlers,
    listener_turn: Arc<ListenerTurn>,
    state: Mutex<SessionState>,
}

/// Open, then closing (nothing new is handed over, handlers at work may still settle), then closed.
const OPEN: u8 = 0;
const CLOSING: u8 = 1;
const CLOSED: u8 = 2;

#[derive(Debug, Default)]
struct SessionState {
    transaction: Option<TransactionId>,
    /// Why the transaction can only be rolled back, if so.
    rollback_only: Option<String>,
    /// What each subscription handed over; also that of closed consumers, until it is settled.
    subscriptions: BTreeMap<SubscriptionId, HandedOver>,
    /// Those of `subscriptions` that have something to settle.
    unsettled: BTreeSet<SubscriptionId>,
    anonymous_producer: Option<Arc<ProducerIdentity>>,
}

impl Session {
    pub(super) fn open(connection: &Arc<ConnectionInner>, id: SessionId, mode: AcknowledgeMode) -> Self {
        Self {
            inner: Arc::new(SessionInner {
                connection: Arc::clone(connection),
                id,
                mode,
                phase: AtomicU8::new(OPEN),
                handlers: Handlers::default(),
                listener_turn: Arc::default(),
                state: Mutex::default(),
            }),
        }
    }

    pub(super) fn of(inner: &Arc<SessionInner>) -> Self {
        Self { inner: Arc::clone(inner) }
    }

    pub(super) fn downgrade(&self) -> Weak<SessionInner> {
        Arc::downgrade(&self.inner)
    }

    pub(super) fn inner(&self) -> &Arc<SessionInner> {
        &self.inner
    }

    /// How its deliveries are acknowledged.
    #[must_use]
    pub fn mode(&self) -> AcknowledgeMode {
        self.inner.mode
    }

    /// Whether what it sends and receives takes effect with [`Session::commit`].
    #[must_use]
    pub fn is_transacted(&self) -> bool {
        self.inner.mode == AcknowledgeMode::Transacted
    }

    /// Whether `other` is the same session.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// The connection that it belongs to.
    #[must_use]
    pub fn connection(&self) -> Connection {
        Connection::of(&self.inner.connection)
    }

    /// Makes a producer; without a destination each send names one. Dropping the future leaves none behind.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed.
    pub async fn create_producer(&self, destination: Option<&Destination>) -> Result<Producer, Error> {
        self.inner.check_open("create_producer")?;
        let (identity, receipt) = self.inner.open_producer(destination);
        let producer = Producer::new(self.clone(), identity, destination.cloned());
        receipt.await?;
        Ok(producer)
    }

    /// Sends over the session's own producer. See [`Producer::send`].
    ///
    /// # Errors
    /// As [`Producer::send`].
    pub async fn send(
        &self,
        destination: &Destination,
        message: &Message,
        options: &SendOptions,
    ) -> Result<MessageId, Error> {
        self.inner.check_usable("send")?;
        let identity = self.inner.anonymous_producer();
        self.inner.send(&identity, destination, message, options).await
    }

    /// Acknowledges everything that this session's consumers have received, those that are closed by now included.
    ///
    /// So in CLIENT and INDIVIDUAL. In AUTO and `DUPS_OK`, where a message is acknowledged without the application's doing, it
    /// tells the provider of acknowledgements that were put off. In a transacted session it does nothing, as the commit
    /// acknowledges. In CLIENT and INDIVIDUAL it has taken effect when this returns; dropping the future, once it was polled,
    /// does not withdraw it.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed.
    pub async fn acknowledge(&self) -> Result<(), Error> {
        self.inner.check_usable("acknowledge")?;
        confirm_all(match self.inner.mode {
            AcknowledgeMode::Client | AcknowledgeMode::Individual => {
                self.inner.settle_all(&AckKind::Standard, None)
            }
            AcknowledgeMode::Auto | AcknowledgeMode::DupsOk => self.inner.tell_acknowledged(),
            AcknowledgeMode::Transacted => Vec::new(),
        })
        .await
    }

    /// Gives back everything received and not acknowledged, to be delivered again after the redelivery delay. What AUTO and
    /// `DUPS_OK` have acknowledged stays so, also where the provider was not told of it yet. From inside a listener it gives
    /// back the message at hand too. Dropping the future, once it was polled, does not withdraw it.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed or transacted.
    pub async fn recover(&self) -> Result<(), Error> {
        self.inner.check_usable("recover")?;
        if self.is_transacted() {
            return Err(Error::IllegalState {
                operation: "recover",
                reason: "the session is transacted; roll back instead".to_owned(),
            });
        }
        let mut receipts = self.inner.tell_acknowledged();
        let cause = Cause::failure("the session was recovered");
        receipts.extend(self.inner.settle_all(&AckKind::Redelivered { delay: None, cause }, None));
        confirm_all(receipts).await
    }

    /// Commits what was sent and received since the last commit or rollback. Dropped while it waits, the outcome is
    /// unknown to the caller, yet whole: what was received is settled or comes again.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed or not transacted, [`Error::TransactionRolledBack`]. When the connection or the broker is
    /// lost meanwhile ([`ProviderError::ends_connection`](crate::provider::ProviderError::ends_connection)), all of it has
    /// happened or nothing, and the caller cannot know which.
    pub async fn commit(&self) -> Result<(), Error> {
        self.inner.check_transacted("commit")?;
        self.inner.commit().await
    }

    /// Undoes what was sent since the last commit or rollback and gives back what was received. Dropping the future
    /// once it was polled does not withdraw it.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed or not transacted.
    pub async fn rollback(&self) -> Result<(), Error> {
        self.inner.check_transacted("rollback")?;
        let cause = Cause::failure("the transaction was rolled back");
        self.inner.rollback(cause).await
    }

    /// Closes the session and all it made, waiting for a handler that is at work; a transaction is rolled back. From
    /// inside one of its own handlers it returns at once and takes effect after it. A second close is silent.
    ///
    /// # Errors
    /// When the broker does not confirm.
    pub async fn close(&self) -> Result<(), Error> {
        if self.inner.handlers.is_current() {
            self.inner.begin_close();
            let inner = Arc::clone(&self.inner);
            tokio::spawn(async move { inner.close().await });
            return Ok(());
        }
        self.inner.close().await
    }
}

pub(super) async fn confirm_all(receipts: Vec<Receipt>) -> Result<(), Error> {
    for receipt in receipts {
        receipt.await?;
    }
    Ok(())
}

impl SessionInner {
    pub(super) fn connection(&self) -> &Arc<ConnectionInner> {
        &self.connection
    }

    pub(super) fn mode(&self) -> AcknowledgeMode {
        self.mode
    }

    pub(super) fn handlers(&self) -> &Handlers {
        &self.handlers
    }

    pub(super) fn listener_turn(&self) -> Arc<ListenerTurn> {
        Arc::clone(&self.listener_turn)
    }

    pub(super) fn is_current_handler(session: &Arc<Self>) -> bool {
        session.handlers.is_current()
    }

    pub(super) fn is_open(&self) -> bool {
        self.phase.load(Ordering::Acquire) == OPEN
    }

    /// For what begins something new.
    pub(super) fn check_open(&self, operation: &'static str) -> Result<(), Error> {
        if self.is_open() {
            self.connection.check_open(operation)
        } else {
            Err(Error::closed(operation, "session"))
        }
    }

    /// For what a handler at work may still do while its session is being closed.
    pub(super) fn check_usable(&self, operation: &'static str) -> Result<(), Error> {
        if self.phase.load(Ordering::Acquire) == CLOSED {
            return Err(Error::closed(operation, "session"));
        }
        self.connection.check_open(operation)
    }

    fn check_transacted(&self, operation: &'static str) -> Result<(), Error> {
        self.check_usable(operation)?;
        if self.mode == AcknowledgeMode::Transacted {
            return Ok(());
        }
        Err(Error::IllegalState { operation, reason: "the session is not transacted".to_owned() })
    }
}
