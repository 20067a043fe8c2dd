//! The seam: one contract between the client and any provider. Acceptors use the same calls on the broker.
//!
//! [`Provider::connect`] is async; everything after it goes through [`ProviderConnection::submit`], which is
//! synchronous, ordered and never blocks. So the order of calls is the order of effects, `Drop` can act, and nothing is
//! boxed per message. Deliveries of a connection come in batches to its one [`DeliverySink`].

mod ack;
mod capability;
mod command;
mod error;
mod event;
mod receipt;
mod scheme;

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

pub use ack::{Ack, AckKind, Cause, CauseKind};
pub use capability::{Capabilities, Capability};
pub use command::{Command, Credit, SendMessage, SessionMode, Subscribe};
pub use error::{MemoryHolder, ProviderError};
pub use event::{Dispatch, Event, Mark};
pub use receipt::{Confirmation, Confirmer, Receipt};
pub use scheme::{ProviderScheme, provider_for};

use crate::id::ConnectionId;
use crate::time::Clock;

/// Something that connections can be made to: an embedded broker, or a broker behind a wire.
#[async_trait]
pub trait Provider: Debug + Send + Sync {
    /// The clock that its connections go by; an embedded broker gives its own, so that both sides agree on the time.
    fn clock(&self) -> Clock {
        Clock::system()
    }

    /// Makes a connection whose deliveries go to `sink`. Dropping the future leaves no connection behind.
    ///
    /// # Errors
    /// When the peer cannot be reached or refuses the options.
    async fn connect(
        &self,
        options: ConnectOptions,
        sink: Arc<dyn DeliverySink>,
    ) -> Result<Arc<dyn ProviderConnection>, ProviderError>;
}

/// Who connects.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// The identity of the new connection.
    pub connection: ConnectionId,
    /// The client id under which durable subscriptions are kept.
    pub client_id: Option<Arc<str>>,
    /// The name to log in with.
    pub user: Option<Arc<str>>,
    /// The password to log in with.
    pub password: Option<Password>,
}

/// A password, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub Arc<str>);

impl Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// One connection to a provider. Dropping the last handle closes it as if its machine had died.
pub trait ProviderConnection: Debug + Send + Sync {
    /// What the provider can do for this connection. It depends on who is at the other end, and stays as it is.
    fn capabilities(&self) -> Capabilities;

    /// Takes a command, after all that were submitted before it and before all that come later. Never blocks.
    ///
    /// The [`Receipt`] need only be awaited by who wants the confirmation; dropping it withdraws nothing.
    fn submit(&self, command: Command) -> Receipt;

    /// Takes a command of which nobody waits for the confirmation, in the same order. A provider may take its time over
    /// making it safe: if its process dies at once, it may be as if it had not been told.
    fn tell(&self, command: Command) {
        drop(self.submit(command));
    }
}

/// Where a provider puts what it has for a connection. Called in order, never from two threads at once, and it must
/// neither block nor wait for the provider.
pub trait DeliverySink: Debug + Send + Sync {
    /// Takes deliveries for any of the connection's subscriptions, those of one subscription in their order.
    fn deliver(&self, batch: Vec<Dispatch>);

    /// Takes word of something that happened to the connection.
    fn notify(&self, event: Event);
}
