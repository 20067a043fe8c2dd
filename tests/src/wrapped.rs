//! The embedded broker behind a provider that changes what passes between it and a client.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use corriere_core::Clock;
use corriere_core::provider::{
    Capabilities, Command, ConnectOptions, DeliverySink, Provider, ProviderConnection, ProviderError,
    Receipt, provider_for,
};

/// What stands between a connection and the broker.
pub trait Between: Debug + Send + Sync {
    /// What the connection says that it can do.
    fn capabilities(&self, broker: &dyn ProviderConnection) -> Capabilities {
        broker.capabilities()
    }

    /// Hands a command on.
    fn submit(&self, broker: &dyn ProviderConnection, command: Command) -> Receipt {
        broker.submit(command)
    }
}

/// The embedded broker of this name; `between` is called for each connection.
///
/// # Errors
/// When no broker of this name runs.
pub fn wrapped<B: Between + 'static>(
    name: &str,
    between: fn() -> B,
) -> Result<Arc<dyn Provider>, ProviderError> {
    Ok(Arc::new(Wrapped { broker: provider_for("vm", name)?, between }))
}

#[derive(Debug)]
struct Wrapped<B> {
    broker: Arc<dyn Provider>,
    between: fn() -> B,
}

#[async_trait]
impl<B: Between + 'static> Provider for Wrapped<B> {
    fn clock(&self) -> Clock {
        self.broker.clock()
    }

    async fn connect(
        &self,
        options: ConnectOptions,
        sink: Arc<dyn DeliverySink>,
    ) -> Result<Arc<dyn ProviderConnection>, ProviderError> {
        let between = (self.between)();
        let broker = self.broker.connect(options, sink).await?;
        Ok(Arc::new(WrappedConnection { broker, between }))
    }
}

#[derive(Debug)]
struct WrappedConnection<B> {
    broker: Arc<dyn ProviderConnection>,
    between: B,
}

impl<B: Between> ProviderConnection for WrappedConnection<B> {
    fn capabilities(&self) -> Capabilities {
        self.between.capabilities(&*self.broker)
    }

    fn submit(&self, command: Command) -> Receipt {
        self.between.submit(&*self.broker, command)
    }
}
