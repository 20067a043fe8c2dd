//! A connection, as its client has it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corriere_core::provider::{Capabilities, Command, DeliverySink, ProviderConnection, Receipt};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::connecting::{FIRST_COMMAND, Link};
use super::running::run;
use super::state::{Peer, State};
use crate::link::Outbox;

/// What the client and the task of a connection share.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// The task has something to tell the client, or something is due at another time.
    pub(super) changed: Notify,
    /// The client has closed the connection.
    pub(super) closing: Notify,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // Every section leaves its state whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection to a broker behind a socket.
#[derive(Debug)]
pub(super) struct TcpConnection {
    shared: Arc<Shared>,
    capabilities: Capabilities,
    task: JoinHandle<()>,
}

impl TcpConnection {
    /// Has a connection that was accepted read and written.
    pub(super) fn start(peer: Peer, link: Link, sink: Arc<dyn DeliverySink>) -> Self {
        let capabilities = peer.capabilities();
        let outbox = Arc::new(Outbox::default());
        let state = Mutex::new(State::new(peer, Arc::clone(&outbox), FIRST_COMMAND));
        let shared = Arc::new(Shared { state, changed: Notify::new(), closing: Notify::new() });
        let task = tokio::spawn(run(Arc::clone(&shared), outbox, link, sink));
        Self { shared, capabilities, task }
    }

    fn take(&self, command: Command, answer: bool) -> Receipt {
        let mut state = self.shared.state();
        let due = state.next_due();
        let receipt = state.submit(command, answer);
        if state.is_closing {
            self.shared.closing.notify_one();
        }
        let is_changed = !state.effects.is_empty() || state.next_due() != due;
        drop(state);
        if is_changed {
            self.shared.changed.notify_one();
        }
        receipt
    }
}

impl ProviderConnection for TcpConnection {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn submit(&self, command: Command) -> Receipt {
        self.take(command, true)
    }

    fn tell(&self, command: Command) {
        drop(self.take(command, false));
    }
}

impl Drop for TcpConnection {
    fn drop(&mut self) {
        // One that was closed says its goodbyes first, and then ends by itself.
        if !self.shared.state().is_closing {
            self.task.abort();
        }
    }
}
