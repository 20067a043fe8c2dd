//! Sessions: the order of calls, what was handed over and is not settled, and the transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::Mutex as AsyncMutex;

use super::buffer::{Buffer, End, lock};
use super::connection::ConnectionInner;
use super::handler::Handlers;
use super::producer::{ProducerIdentity, complete};
use super::{Connection, Consumer, Producer, SendOptions};
use crate::destination::Destination;
use crate::error::Error;
use crate::id::{MessageId, ProducerId, SessionId, SubscriptionId, TransactionId};
use crate::message::Message;
use crate::provider::{
    Ack, AckKind, Cause, Command, Confirmation, Credit, Dispatch, ProviderError, Receipt, Send, Subscribe,
};

pub use crate::provider::SessionMode as AcknowledgeMode;

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
    /// Taken by one message listener after the other.
    listener_turn: Arc<AsyncMutex<()>>,
    /// Serialises what ends a transaction, and keeps a commit whose caller was dropped while it waited.
    ending: AsyncMutex<Option<Ending>>,
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

/// What a subscription handed to the application.
#[derive(Debug)]
struct HandedOver {
    buffer: Arc<Buffer>,
    is_open: bool,
    /// The number of the last one; 0 before the first.
    last: u64,
    unsettled: BTreeSet<u64>,
    /// How many were handed over since the provider was told.
    unreported: u64,
    /// The provider is told after so many; `None` where that would not widen any window.
    report_after: Option<u64>,
}

/// A commit on its way, and the deliveries to give back if it fails.
#[derive(Debug)]
struct Ending {
    receipt: Receipt,
    ranges: Vec<(SubscriptionId, u64, u64)>,
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
                ending: AsyncMutex::new(None),
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

    /// Makes a consumer. The prefetch is the destination's option `consumer.prefetchSize`, else the factory's, else 100
    /// for a queue and 1000 for a topic. When this returns, what waited at the destination is in the consumer's
    /// buffer. Dropping the future leaves none behind.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed, or what the provider refuses.
    pub async fn create_consumer(&self, destination: &Destination) -> Result<Consumer, Error> {
        let prefetch = destination
            .consumer_prefetch()
            .unwrap_or_else(|| self.inner.connection.factory().prefetch_for(destination));
        self.create_consumer_with_prefetch(destination, prefetch).await
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
        self.inner.check_open("create_consumer")?;
        let inner = &self.inner;
        let id = SubscriptionId(inner.connection.next_number());
        let buffer = Arc::new(Buffer::default());
        let report_after = match inner.mode {
            AcknowledgeMode::Auto | AcknowledgeMode::DupsOk => None,
            AcknowledgeMode::Client | AcknowledgeMode::Individual | AcknowledgeMode::Transacted => {
                (prefetch > 0).then(|| u64::from(prefetch.div_ceil(2)))
            }
        };
        let handed_over = HandedOver {
            buffer: Arc::clone(&buffer),
            is_open: true,
            last: 0,
            unsettled: BTreeSet::new(),
            unreported: 0,
            report_after,
        };
        lock(&inner.state).subscriptions.insert(id, handed_over);
        inner.connection.sink().add(id, Arc::clone(&buffer));
        let consumer = Consumer::new(self.clone(), id, buffer, prefetch == 0);
        let subscribe = Subscribe {
            subscription: id,
            session: inner.id,
            destination: destination.clone(),
            credit: credit(inner.mode, prefetch),
            selector: None,
            no_local: false,
            durable_name: None,
            redelivery: inner.connection.factory().redelivery().cloned(),
        };
        inner.connection.submit(Command::OpenSubscription(Box::new(subscribe))).await?;
        Ok(consumer)
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

    /// Acknowledges everything that this session's consumers have received (CLIENT; in other modes it does nothing).
    /// The acknowledgement has taken effect when this returns; dropping the future does not withdraw it.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed.
    pub async fn acknowledge(&self) -> Result<(), Error> {
        self.inner.check_usable("acknowledge")?;
        if self.inner.mode == AcknowledgeMode::Client {
            let receipts = self.inner.settle_all(&AckKind::Standard, None);
            confirm_all(receipts).await?;
        }
        Ok(())
    }

    /// Gives back everything received and not acknowledged, to be delivered again after the redelivery delay. Dropping
    /// the future does not withdraw it.
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
        let cause = Cause::failure("the session was recovered");
        confirm_all(self.inner.settle_all(&AckKind::Redelivered { delay: None, cause }, None)).await
    }

    /// Commits what was sent and received since the last commit or rollback. Dropped while it waits, the outcome is
    /// unknown to the caller, yet whole: what was received is settled or comes again.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed or not transacted, [`Error::TransactionRolledBack`].
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
        self.inner.rollback(&AckKind::Redelivered { delay: None, cause }).await
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

fn credit(mode: AcknowledgeMode, prefetch: u32) -> Credit {
    if prefetch == 0 {
        return Credit::Explicit;
    }
    let extension = match mode {
        // Acknowledged one by one as they are handed over, so that nothing is ever both handed over and unsettled.
        AcknowledgeMode::Auto | AcknowledgeMode::DupsOk => Some(0),
        AcknowledgeMode::Client | AcknowledgeMode::Individual => Some(prefetch.div_ceil(2)),
        // A transaction larger than the window must not wait for itself.
        AcknowledgeMode::Transacted => None,
    };
    Credit::Window { prefetch, extension }
}

async fn confirm_all(receipts: Vec<Receipt>) -> Result<(), Error> {
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

    pub(super) fn listener_turn(&self) -> Arc<AsyncMutex<()>> {
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

    pub(super) fn open_producer(
        &self,
        destination: Option<&Destination>,
    ) -> (Arc<ProducerIdentity>, Receipt) {
        let producer = ProducerId(self.connection.next_number());
        let name: Arc<str> = format!("{}:{}:{producer}", self.connection.id(), self.id).into();
        let receipt = self.connection.submit(Command::OpenProducer {
            producer,
            session: self.id,
            identity: Arc::clone(&name),
            destination: destination.cloned(),
        });
        (Arc::new(ProducerIdentity::new(producer, name)), receipt)
    }

    fn anonymous_producer(&self) -> Arc<ProducerIdentity> {
        let mut state = lock(&self.state);
        // Its confirmation need not be awaited: a send that comes before it is refused would be refused as well.
        Arc::clone(state.anonymous_producer.get_or_insert_with(|| self.open_producer(None).0))
    }

    /// Sends a copy of `message`. The number is taken and the command submitted under one lock, so that the order of a
    /// producer's numbers is the order of its messages.
    pub(super) async fn send(
        &self,
        producer: &ProducerIdentity,
        destination: &Destination,
        message: &Message,
        options: &SendOptions,
    ) -> Result<MessageId, Error> {
        if self.mode != AcknowledgeMode::Transacted {
            let (id, receipt) = {
                let _order = lock(&self.state);
                self.submit_send(producer, destination, message, options, None)
            };
            receipt.await?;
            return Ok(id);
        }
        let mut unfinished = UnfinishedSend {
            session: self,
            transaction: None,
            failure: Some(format!("a send to {destination} was dropped")),
        };
        self.finish_ending(&mut *self.ending.lock().await).await.ok();
        let (id, receipt) = {
            let mut state = lock(&self.state);
            let transaction = self.transaction(&mut state);
            let sent = self.submit_send(producer, destination, message, options, Some(transaction.clone()));
            unfinished.transaction = Some(transaction);
            sent
        };
        match receipt.await {
            Ok(_) => {
                unfinished.failure = None;
                Ok(id)
            }
            Err(error) => {
                unfinished.failure = Some(error.to_string());
                Err(error.into())
            }
        }
    }

    fn submit_send(
        &self,
        producer: &ProducerIdentity,
        destination: &Destination,
        message: &Message,
        options: &SendOptions,
        transaction: Option<TransactionId>,
    ) -> (MessageId, Receipt) {
        let id = producer.next_message();
        let message = complete(message, destination, &id, options, self.connection.clock().now());
        let receipt = self.connection.submit(Command::Send(Send {
            producer: producer.id(),
            message: Arc::new(message),
            transaction,
            deadline: options.deadline.or(self.connection.factory().send_timeout()),
        }));
        (id, receipt)
    }

    fn transaction(&self, state: &mut SessionState) -> TransactionId {
        state
            .transaction
            .get_or_insert_with(|| {
                let transaction = self.connection.next_transaction();
                drop(self.connection.submit(Command::Begin { transaction: transaction.clone() }));
                transaction
            })
            .clone()
    }

    /// Takes the next delivery of a consumer for the application, and says how many before it had expired. `settles`
    /// acknowledges it in the same moment.
    pub(super) fn hand_over(
        &self,
        subscription: SubscriptionId,
        buffer: &Buffer,
        settles: bool,
    ) -> Result<(Option<Dispatch>, usize), End> {
        // Under the session's lock from the buffer to the record, so that a rollback finds a delivery in one of the two.
        let mut state = lock(&self.state);
        let SessionState { subscriptions, unsettled, .. } = &mut *state;
        let Some(handed_over) = subscriptions.get_mut(&subscription).filter(|_| self.is_open()) else {
            return Err(End::Closed);
        };
        let mut expired = 0;
        let dispatch = loop {
            let Some(dispatch) = buffer.pop()? else {
                return Ok((None, expired));
            };
            if !dispatch.message.headers().is_expired(self.connection.clock().now()) {
                break dispatch;
            }
            expired += 1;
            drop(self.acknowledge(subscription, dispatch.number, dispatch.number, AckKind::Expired, None));
        };
        let number = dispatch.number;
        handed_over.last = number;
        if settles {
            drop(self.acknowledge(subscription, number, number, AckKind::Standard, None));
            return Ok((Some(dispatch), expired));
        }
        handed_over.unsettled.insert(number);
        unsettled.insert(subscription);
        handed_over.unreported += 1;
        if handed_over.report_after.is_some_and(|after| handed_over.unreported >= after) {
            let first = number + 1 - handed_over.unreported;
            handed_over.unreported = 0;
            drop(self.acknowledge(subscription, first, number, AckKind::Delivered, None));
        }
        Ok((Some(dispatch), expired))
    }

    /// Whether a delivery was handed over and nothing was said of it yet.
    pub(super) fn is_unsettled(&self, subscription: SubscriptionId, number: u64) -> bool {
        lock(&self.state)
            .subscriptions
            .get(&subscription)
            .is_some_and(|handed_over| handed_over.unsettled.contains(&number))
    }

    /// Forgets what was not handed over, as the provider takes it back when deliveries up to `last` are given back.
    fn recall(&self, subscription: SubscriptionId, handed_over: &mut HandedOver, last: u64) {
        handed_over.unreported = 0;
        handed_over.buffer.recall();
        if handed_over.is_open && last < handed_over.last {
            // Later ones are in the application's hands. The provider must know, or it would take them back as well.
            let number = handed_over.last;
            drop(self.connection.submit(Command::HandedOver { subscription, number }));
        }
    }

    fn acknowledge(
        &self,
        subscription: SubscriptionId,
        first: u64,
        last: u64,
        kind: AckKind,
        transaction: Option<TransactionId>,
    ) -> Receipt {
        self.connection.submit(Command::Acknowledge(Ack { subscription, first, last, kind, transaction }))
    }

    /// Says `kind` of one delivery; `None` when something was said of it before.
    pub(super) fn settle_one(
        &self,
        subscription: SubscriptionId,
        number: u64,
        kind: AckKind,
    ) -> Option<Receipt> {
        let mut state = lock(&self.state);
        let handed_over = state.subscriptions.get_mut(&subscription)?;
        if !handed_over.unsettled.remove(&number) {
            return None;
        }
        if matches!(kind, AckKind::Redelivered { .. }) {
            self.recall(subscription, handed_over, number);
        }
        let receipt = self.acknowledge(subscription, number, number, kind, None);
        forget_if_settled(&mut state, subscription);
        Some(receipt)
    }

    /// Says `kind` of everything that was handed over and is not settled.
    pub(super) fn settle_all(&self, kind: &AckKind, transaction: Option<&TransactionId>) -> Vec<Receipt> {
        self.settle_ranges(&mut lock(&self.state), kind, transaction).0
    }

    fn settle_ranges(
        &self,
        state: &mut SessionState,
        kind: &AckKind,
        transaction: Option<&TransactionId>,
    ) -> (Vec<Receipt>, Vec<(SubscriptionId, u64, u64)>) {
        let mut receipts = Vec::new();
        let mut ranges = Vec::new();
        for subscription in std::mem::take(&mut state.unsettled) {
            let Some(handed_over) = state.subscriptions.get_mut(&subscription) else { continue };
            let numbers = std::mem::take(&mut handed_over.unsettled);
            if let (Some(first), Some(last)) = (numbers.first().copied(), numbers.last().copied()) {
                handed_over.unreported = 0;
                if matches!(kind, AckKind::Redelivered { .. }) {
                    self.recall(subscription, handed_over, last);
                }
                receipts.push(self.acknowledge(
                    subscription,
                    first,
                    last,
                    kind.clone(),
                    transaction.cloned(),
                ));
                ranges.push((subscription, first, last));
            }
            // A commit that fails gives these back, and finds the buffer to recall only while the record is there.
            if transaction.is_none() {
                forget_if_settled(state, subscription);
            }
        }
        (receipts, ranges)
    }

    async fn commit(&self) -> Result<(), Error> {
        let mut ending = self.ending.lock().await;
        self.finish_ending(&mut ending).await.ok();
        let failure = lock(&self.state).rollback_only.take();
        if let Some(reason) = failure {
            let cause = Cause::failure(format!("the transaction was rolled back: {reason}"));
            confirm_all(self.submit_rollback(&AckKind::Redelivered { delay: None, cause })).await?;
            return Err(Error::TransactionRolledBack { reason });
        }
        *ending = {
            let mut state = lock(&self.state);
            if state.transaction.is_none() && state.unsettled.is_empty() {
                return Ok(());
            }
            let transaction = self.transaction(&mut state);
            let (_, ranges) = self.settle_ranges(&mut state, &AckKind::Standard, Some(&transaction));
            state.transaction = None;
            Some(Ending {
                receipt: self.connection.submit(Command::Commit { transaction, one_phase: true }),
                ranges,
            })
        };
        self.finish_ending(&mut ending).await
    }

    /// Awaits the commit that is on its way, if one is, and gives back its deliveries when it failed. Dropping this
    /// leaves it for the next call.
    async fn finish_ending(&self, ending: &mut Option<Ending>) -> Result<(), Error> {
        let Some(Ending { receipt, ranges }) = ending.as_mut() else {
            return Ok(());
        };
        let outcome: Result<Confirmation, ProviderError> = receipt.await;
        if let Err(error) = &outcome {
            let cause = Cause::failure(format!("the commit failed: {error}"));
            let mut state = lock(&self.state);
            for (subscription, first, last) in ranges.iter().copied() {
                if let Some(handed_over) = state.subscriptions.get_mut(&subscription) {
                    self.recall(subscription, handed_over, last);
                }
                let kind = AckKind::Redelivered { delay: None, cause: cause.clone() };
                drop(self.acknowledge(subscription, first, last, kind, None));
            }
        }
        let mut state = lock(&self.state);
        for (subscription, ..) in ranges.drain(..) {
            forget_if_settled(&mut state, subscription);
        }
        drop(state);
        *ending = None;
        outcome.map(drop).map_err(Error::from)
    }

    /// Undoes the transaction and says `kind` of what was received in it.
    pub(super) async fn rollback(&self, kind: &AckKind) -> Result<(), Error> {
        let mut ending = self.ending.lock().await;
        self.finish_ending(&mut ending).await.ok();
        confirm_all(self.submit_rollback(kind)).await
    }

    fn submit_rollback(&self, kind: &AckKind) -> Vec<Receipt> {
        let mut state = lock(&self.state);
        state.rollback_only = None;
        let rollback = state.transaction.take().map(|transaction| {
            let cause = match kind {
                AckKind::Redelivered { cause, .. } | AckKind::Poison { cause } => Some(cause.clone()),
                _ => None,
            };
            self.connection.submit(Command::Rollback { transaction, cause })
        });
        let (mut receipts, _) = self.settle_ranges(&mut state, kind, None);
        receipts.extend(rollback);
        receipts
    }

    /// Closes one consumer. What it handed over stays the session's to settle.
    pub(super) fn close_subscription(&self, subscription: SubscriptionId) -> Option<Receipt> {
        let mut state = lock(&self.state);
        let handed_over = state.subscriptions.get_mut(&subscription)?;
        if !std::mem::take(&mut handed_over.is_open) {
            return None;
        }
        handed_over.buffer.end(End::Closed);
        self.connection.sink().remove(subscription);
        let last_handed_over = handed_over.last;
        let receipt = self.connection.submit(Command::CloseSubscription { subscription, last_handed_over });
        forget_if_settled(&mut state, subscription);
        Some(receipt)
    }

    /// From here on nothing is handed over any more.
    pub(super) fn begin_close(&self) {
        // A session that is closing or closed stays as it is.
        let _ = self.phase.compare_exchange(OPEN, CLOSING, Ordering::AcqRel, Ordering::Acquire);
        for handed_over in lock(&self.state).subscriptions.values() {
            handed_over.buffer.end(End::Closed);
        }
    }

    pub(super) async fn close(&self) -> Result<(), Error> {
        self.begin_close();
        self.handlers.wait_until_idle().await;
        if self.phase.swap(CLOSED, Ordering::AcqRel) == CLOSED {
            return Ok(());
        }
        match self.submit_close().await {
            // With the connection everything of this session is gone already.
            Err(ProviderError::Lost) | Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn submit_close(&self) -> Receipt {
        let subscriptions: Vec<SubscriptionId> = {
            let mut state = lock(&self.state);
            if let Some(transaction) = state.transaction.take() {
                drop(self.connection.submit(Command::Rollback { transaction, cause: None }));
            }
            state.subscriptions.keys().copied().collect()
        };
        for subscription in subscriptions {
            drop(self.close_subscription(subscription));
        }
        self.connection.forget_session(self.id);
        self.connection.submit(Command::CloseSession { session: self.id })
    }
}

/// Drops the record of a subscription that is closed and has nothing to settle.
fn forget_if_settled(state: &mut SessionState, subscription: SubscriptionId) {
    let Some(handed_over) = state.subscriptions.get(&subscription) else { return };
    if handed_over.unsettled.is_empty() {
        state.unsettled.remove(&subscription);
        if !handed_over.is_open {
            state.subscriptions.remove(&subscription);
        }
    }
}

/// A send within a transaction whose outcome is not known. Dropped with a failure, the transaction cannot commit.
struct UnfinishedSend<'a> {
    session: &'a SessionInner,
    /// `None` while it waits for the end of the transaction before: it belongs to the next one.
    transaction: Option<TransactionId>,
    failure: Option<String>,
}

impl Drop for UnfinishedSend<'_> {
    fn drop(&mut self) {
        if let Some(failure) = self.failure.take() {
            let mut state = lock(&self.session.state);
            if self.transaction.is_none() || state.transaction == self.transaction {
                state.rollback_only.get_or_insert(failure);
            }
        }
    }
}

impl Drop for SessionInner {
    fn drop(&mut self) {
        if *self.phase.get_mut() != CLOSED {
            // Nobody is left who could wait for the confirmation.
            drop(self.submit_close());
        }
    }
}
