//! The connection of a template and its sessions.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corriere_core::{AcknowledgeMode, Connection, ConnectionFactory, Error, Session};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Joining;
use super::error::TemplateError;

/// One connection, made when it is needed and again when it was lost, and sessions that are used over and over.
///
/// Each call has a session for itself, so that calls overlap; a session in which anything failed is not used again,
/// which also means that what it had sent in a transaction can never be committed by a later call.
pub(super) struct Sessions {
    factory: ConnectionFactory,
    mode: AcknowledgeMode,
    limit: usize,
    sending: Arc<Semaphore>,
    connecting: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    said_independent: AtomicBool,
    said_outside: AtomicBool,
}

/// A connection and its number, which tells its sessions from those of the connections before it.
#[derive(Clone)]
struct Open {
    number: u64,
    connection: Connection,
}

#[derive(Default)]
struct State {
    connections_made: u64,
    open: Option<Open>,
    /// Sessions of `open` that nobody uses.
    idle: Vec<Session>,
}

/// What a session is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To send one message: one of a bounded number, as it is soon over.
    Send,
    /// To wait for a message or to run a callback. That may take for ever, and the callback may itself send through the
    /// template, so such calls must not use up what the sends wait for.
    Wait,
}

/// A session for one call. Dropped without [`Lease::settle`] its own session is closed, and what it did in a
/// transaction undone; a joined one is left to whoever it belongs to.
pub(super) struct Lease {
    session: Session,
    own: Option<Own>,
}

/// Who decides about what a call did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settlement {
    /// The handler whose session the call has joined.
    Joined,
    /// The call, by the end of its own transaction.
    Transacted,
    /// The call, message by message.
    Single,
}

struct Own {
    sessions: Arc<Sessions>,
    connection: u64,
    lent_out: bool,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Sessions {
    pub(super) fn new(factory: ConnectionFactory, transacted: bool, limit: usize) -> Arc<Self> {
        Arc::new(Self {
            factory,
            mode: if transacted { AcknowledgeMode::Transacted } else { AcknowledgeMode::Auto },
            limit,
            sending: Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS))),
            connecting: tokio::sync::Mutex::new(()),
            state: Mutex::new(State::default()),
            said_independent: AtomicBool::new(false),
            said_outside: AtomicBool::new(false),
        })
    }

    pub(super) fn factory(&self) -> &ConnectionFactory {
        &self.factory
    }

    /// The session of the transacted handler around this call, or one of our own.
    pub(super) async fn lease(
        self: &Arc<Self>,
        purpose: Purpose,
        joining: Joining,
    ) -> Result<Lease, TemplateError> {
        let ambient = if joining == Joining::Detached { None } else { self.ambient() };
        if joining == Joining::Expected
            && !Session::current().is_some_and(|session| session.is_transacted())
            && !self.said_outside.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                template = self.factory.url(),
                "a template that a transacted listener was given is used outside of its run, by a task that it spawned \
                 say: this is not part of the listener's transaction; run the task within `with_session(session, …)`, or \
                 use `template.detached()` where that is meant"
            );
        }
        match ambient {
            Some(session) => Ok(Lease { session, own: None }),
            None => self.own_lease(purpose).await,
        }
    }

    async fn own_lease(self: &Arc<Self>, purpose: Purpose) -> Result<Lease, TemplateError> {
        let permit = match purpose {
            // The semaphore is never closed, so acquiring it cannot fail.
            Purpose::Send => Arc::clone(&self.sending).acquire_owned().await.ok(),
            Purpose::Wait => None,
        };
        let (open, idle) = self.connected().await?;
        let session = match idle {
            Some(session) => session,
            None => open
                .connection
                .create_session(self.mode)
                .await
                .inspect_err(|error| self.note_failure(open.number, error))?,
        };
        let own =
            Own { sessions: Arc::clone(self), connection: open.number, lent_out: false, _permit: permit };
        Ok(Lease { session, own: Some(own) })
    }

    /// The transacted session that the caller works in, where it is one of our factory.
    fn ambient(&self) -> Option<Session> {
        let session = Session::current().filter(Session::is_transacted)?;
        if session.connection().factory().is_same(&self.factory) {
            return Some(session);
        }
        if !self.said_independent.swap(true, Ordering::Relaxed) {
            tracing::info!(
                template = self.factory.url(),
                session = session.connection().factory().url(),
                "a template of another connection factory is used inside a transacted session: \
                 what it sends and receives is independent of that transaction"
            );
        }
        None
    }

    async fn connected(&self) -> Result<(Open, Option<Session>), Error> {
        if let Some(ready) = self.ready() {
            return Ok(ready);
        }
        // Many first calls make one connection: the others find it when it is their turn.
        let _turn = self.connecting.lock().await;
        if let Some(ready) = self.ready() {
            return Ok(ready);
        }
        let connection = self.factory.create_connection().await?;
        connection.start()?;
        let mut state = self.state();
        state.connections_made += 1;
        let open = Open { number: state.connections_made, connection };
        let lost = (state.open.replace(open.clone()), std::mem::take(&mut state.idle));
        drop(state);
        // Closing calls into the client, which must not happen under our lock.
        drop(lost);
        Ok((open, None))
    }

    /// The connection, where there is one, with a session of it that nobody uses.
    fn ready(&self) -> Option<(Open, Option<Session>)> {
        let mut state = self.state();
        let open = state.open.clone().filter(|open| open.connection.is_open())?;
        let session = state.idle.pop();
        Some((open, session))
    }

    /// Keeps a session for the next call, unless its connection is not the present one.
    fn keep(&self, session: Session, connection: u64) {
        let mut state = self.state();
        if state.idle.len() < self.limit && state.open.as_ref().is_some_and(|open| open.number == connection)
        {
            state.idle.push(session);
        }
    }

    /// Gives up the connection where `error` says that it is gone, even if it does not know it itself yet. Calls that
    /// still use it hold it by their sessions.
    fn note_failure(&self, connection: u64, error: &Error) {
        let mut state = self.state();
        if matches!(error, Error::Provider(error) if error.ends_connection())
            && state.open.as_ref().is_some_and(|open| open.number == connection)
        {
            let lost = (state.open.take(), std::mem::take(&mut state.idle));
            drop(state);
            drop(lost);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    /// Where the transaction, if any, is decided.
    pub(super) fn settlement(&self) -> Settlement {
        match &self.own {
            None => Settlement::Joined,
            Some(own) if own.sessions.mode == AcknowledgeMode::Transacted => Settlement::Transacted,
            Some(_) => Settlement::Single,
        }
    }

    /// The session, to be given to a callback. As the callback may keep it, it is not used for any other call.
    pub(super) fn lend(&mut self) -> Session {
        if let Some(own) = &mut self.own {
            own.lent_out = true;
        }
        self.session.clone()
    }

    /// Ends the call: commits where the session is our own and transacted, and keeps the session for the next call
    /// if all went well.
    pub(super) async fn settle<R>(self, outcome: Result<R, TemplateError>) -> Result<R, TemplateError> {
        let settlement = self.settlement();
        let outcome = match outcome {
            Ok(value) if settlement == Settlement::Transacted => {
                self.session.commit().await.map(|()| value).map_err(TemplateError::from)
            }
            outcome => outcome,
        };
        let Some(own) = self.own else { return outcome };
        match &outcome {
            Ok(_) if !own.lent_out => own.sessions.keep(self.session, own.connection),
            // A callback may have kept a clone, so dropping ours would not close it.
            Ok(_) => drop(self.session.close().await),
            Err(error) => {
                if let TemplateError::Client(error) = error {
                    own.sessions.note_failure(own.connection, error);
                }
                drop(self.session.close().await);
            }
        }
        outcome
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions")
            .field("factory", &self.factory)
            .field("mode", &self.mode)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
