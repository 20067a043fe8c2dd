//! Connections.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::runtime::Handle;

use super::buffer::{Sink, lock};
use super::session::SessionInner;
use super::{AcknowledgeMode, ConnectionFactory, Session, SlowConsumer};
use crate::error::Error;
use crate::id::{ConnectionId, SessionId, TransactionId};
use crate::provider::{
    Capabilities, Capability, Command, ConnectOptions, Provider, ProviderConnection, Receipt,
};
use crate::time::Clock;

/// A connection to a broker. Nothing is received before [`Connection::start`]. Cheap to clone; dropping the last
/// clone of it, with all that it made, closes it and returns what is not settled.
#[derive(Clone, Debug)]
pub struct Connection {
    inner: Arc<ConnectionInner>,
}

#[derive(Debug)]
pub(super) struct ConnectionInner {
    factory: ConnectionFactory,
    id: ConnectionId,
    provider: Arc<dyn ProviderConnection>,
    sink: Arc<Sink>,
    clock: Clock,
    sessions: Mutex<BTreeMap<SessionId, Weak<SessionInner>>>,
    /// From here on no session is made.
    closing: AtomicBool,
    closed: AtomicBool,
    next_number: AtomicU64,
    unstarted_warning_given: AtomicBool,
}

impl Connection {
    pub(super) async fn connect(
        factory: ConnectionFactory,
        provider: &dyn Provider,
        options: ConnectOptions,
        clock: Clock,
    ) -> Result<Self, Error> {
        let sink = Arc::new(Sink::default());
        let id = options.connection.clone();
        let connection = provider.connect(options, sink.clone()).await?;
        Ok(Self {
            inner: Arc::new(ConnectionInner {
                factory,
                id,
                provider: connection,
                sink,
                clock,
                sessions: Mutex::default(),
                closing: AtomicBool::new(false),
                closed: AtomicBool::new(false),
                next_number: AtomicU64::new(1),
                unstarted_warning_given: AtomicBool::new(false),
            }),
        })
    }

    pub(super) fn of(inner: &Arc<ConnectionInner>) -> Self {
        Self { inner: Arc::clone(inner) }
    }

    pub(super) fn inner(&self) -> &ConnectionInner {
        &self.inner
    }

    /// Its identity, the first part of the ids of the messages that are sent over it.
    #[must_use]
    pub fn id(&self) -> &ConnectionId {
        &self.inner.id
    }

    /// The factory that made it.
    #[must_use]
    pub fn factory(&self) -> &ConnectionFactory {
        &self.inner.factory
    }

    /// The clock that it goes by.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// What its provider can do, which depends on who is at the other end.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.inner.provider.capabilities()
    }

    /// Whether it is neither closed nor lost.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.inner.check_open("").is_ok()
    }

    /// Begins to hand over messages. Cheap.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed.
    pub fn start(&self) -> Result<(), Error> {
        self.inner.check_open("start")?;
        self.inner.sink.set_started(true);
        Ok(())
    }

    /// Hands over nothing more until started again; what is buffered stays, and acknowledgements that were put off are told.
    /// Cheap. A listener that is at work is not waited for, so this may be called from inside one.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed.
    pub fn stop(&self) -> Result<(), Error> {
        self.inner.check_open("stop")?;
        self.inner.sink.set_started(false);
        for session in self.inner.sessions() {
            session.tell_acknowledged();
        }
        Ok(())
    }

    /// Calls `hook` for each consumer of this connection that stands still by its own doing: all that its window lets through
    /// was handed to it, it has acknowledged none of that, and more waits. Once, until the consumer has had room again. It
    /// is called on a task of its own, for one consumer after the other; while it is at work 64 wait, and more are only in the
    /// log. Another hook takes its place.
    ///
    /// # Errors
    /// [`Error::IllegalState`] outside a tokio runtime.
    pub fn on_slow_consumer(
        &self,
        hook: impl Fn(&SlowConsumer) + Send + Sync + 'static,
    ) -> Result<(), Error> {
        let runtime = Handle::try_current().map_err(|_| Error::IllegalState {
            operation: "on_slow_consumer",
            reason: "there is no tokio runtime here to call it in".to_owned(),
        })?;
        self.inner.sink.slow_consumers().set(&runtime, hook);
        Ok(())
    }

    /// Makes a session. Dropping the future leaves none behind.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed, [`Error::Unsupported`] for a mode that the provider does not offer.
    pub async fn create_session(&self, mode: AcknowledgeMode) -> Result<Session, Error> {
        self.inner.check_open("create_session")?;
        let needed = match mode {
            AcknowledgeMode::Individual => Some(Capability::IndividualAcknowledge),
            AcknowledgeMode::DupsOk => Some(Capability::DupsOkAcknowledge),
            AcknowledgeMode::Auto | AcknowledgeMode::Client | AcknowledgeMode::Transacted => None,
        };
        if let Some(capability) = needed.filter(|capability| !self.capabilities().has(*capability)) {
            return Err(Error::Unsupported(capability));
        }
        let id = SessionId(self.inner.next_number());
        let session = Session::open(&self.inner, id, mode);
        {
            let mut sessions = lock(&self.inner.sessions);
            if self.inner.closing.load(Ordering::Acquire) {
                return Err(Error::closed("create_session", "connection"));
            }
            sessions.insert(id, session.downgrade());
        }
        self.inner.submit(Command::OpenSession { session: id, mode }).await?;
        Ok(session)
    }

    /// Closes the connection and all it made, waiting for listeners that are at work. From inside one of its listeners
    /// it returns at once and takes effect after it. A second close is silent. Dropping the future leaves the closing
    /// under way at the point that it had reached; the rest happens when the handles are dropped.
    ///
    /// # Errors
    /// When the broker does not confirm.
    pub async fn close(&self) -> Result<(), Error> {
        let sessions = self.inner.begin_close();
        if sessions.iter().any(SessionInner::is_current_handler) {
            // Waiting here would be waiting for oneself: the handler that runs is one that the close waits for.
            let inner = Arc::clone(&self.inner);
            tokio::spawn(async move { inner.close(sessions).await });
            return Ok(());
        }
        self.inner.close(sessions).await
    }
}

impl ConnectionInner {
    /// From here on nothing is handed over any more, and no session made. Returns the sessions that are there.
    fn begin_close(&self) -> Vec<Arc<SessionInner>> {
        let sessions: Vec<Arc<SessionInner>> = {
            let sessions = lock(&self.sessions);
            self.closing.store(true, Ordering::Release);
            sessions.values().filter_map(Weak::upgrade).collect()
        };
        for session in &sessions {
            session.begin_close();
        }
        sessions
    }

    async fn close(&self, sessions: Vec<Arc<SessionInner>>) -> Result<(), Error> {
        for session in sessions {
            // What the broker has to say of one session is no reason to keep the others open.
            if let Err(error) = session.close().await {
                tracing::warn!(connection = %self.id, %error, "a session could not be closed by itself");
            }
        }
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        match self.submit(Command::Close).await {
            Err(error) if !error.ends_connection() => Err(error.into()),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn sessions(&self) -> Vec<Arc<SessionInner>> {
        lock(&self.sessions).values().filter_map(Weak::upgrade).collect()
    }

    pub(super) fn forget_session(&self, session: SessionId) {
        lock(&self.sessions).remove(&session);
    }

    pub(super) fn check_open(&self, operation: &'static str) -> Result<(), Error> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::closed(operation, "connection"));
        }
        self.sink.lost().map_or(Ok(()), |error| Err(error.into()))
    }

    pub(super) fn submit(&self, command: Command) -> Receipt {
        self.provider.submit(command)
    }

    pub(super) fn tell(&self, command: Command) {
        self.provider.tell(command);
    }

    pub(super) fn next_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn next_transaction(&self) -> TransactionId {
        TransactionId::Local(self.next_number())
    }

    pub(super) fn id(&self) -> &ConnectionId {
        &self.id
    }

    pub(super) fn factory(&self) -> &ConnectionFactory {
        &self.factory
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn sink(&self) -> &Sink {
        &self.sink
    }

    /// Says once that somebody waits on a connection that was never started.
    pub(super) fn warn_unstarted(&self, waited: Duration) {
        if !self.unstarted_warning_given.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                connection = %self.id,
                "a consumer has waited {waited:?} for messages, but its connection is not started; call `connection.start()`"
            );
        }
    }
}

impl Drop for ConnectionInner {
    fn drop(&mut self) {
        if !*self.closed.get_mut() {
            // Nobody is left who could wait for the confirmation.
            drop(self.provider.submit(Command::Close));
        }
    }
}
