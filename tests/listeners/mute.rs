//! A broker that takes messages back without ever saying so, at `mute://NAME` for the embedded broker `NAME`.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use corriere::core::Clock;
use corriere_core::provider::{
    AckKind, Capabilities, Command, Confirmer, ConnectOptions, DeliverySink, Provider, ProviderConnection,
    ProviderError, ProviderScheme, Receipt, provider_for,
};

inventory::submit! {
    ProviderScheme { scheme: "mute", open: |name| Ok(Arc::new(Mute(provider_for("vm", name)?))) }
}

#[derive(Debug)]
struct Mute(Arc<dyn Provider>);

#[async_trait]
impl Provider for Mute {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn clock(&self) -> Clock {
        self.0.clock()
    }

    async fn connect(
        &self,
        options: ConnectOptions,
        sink: Arc<dyn DeliverySink>,
    ) -> Result<Arc<dyn ProviderConnection>, ProviderError> {
        let connection = self.0.connect(options, sink).await?;
        Ok(Arc::new(MuteConnection { connection, kept: Mutex::default() }))
    }
}

#[derive(Debug)]
struct MuteConnection {
    connection: Arc<dyn ProviderConnection>,
    /// What would say something if it were dropped.
    kept: Mutex<Vec<Confirmer>>,
}

impl ProviderConnection for MuteConnection {
    fn submit(&self, command: Command) -> Receipt {
        let is_given_back =
            matches!(&command, Command::Acknowledge(ack) if matches!(ack.kind, AckKind::Redelivered { .. }));
        let receipt = self.connection.submit(command);
        if !is_given_back {
            return receipt;
        }
        let (confirmer, never) = Receipt::pending();
        self.kept.lock().unwrap().push(confirmer);
        never
    }
}
