//! A broker that confirms messages that are given back only when six of them wait for it, at `gathering://NAME` for the
//! embedded broker `NAME`.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use corriere::core::Clock;
use corriere_core::provider::{
    AckKind, Capabilities, Command, Confirmation, Confirmer, ConnectOptions, DeliverySink, Provider,
    ProviderConnection, ProviderError, ProviderScheme, Receipt, provider_for,
};

const TOGETHER: usize = 6;

inventory::submit! {
    ProviderScheme { scheme: "gathering", open: |name| Ok(Arc::new(Gathering(provider_for("vm", name)?))) }
}

#[derive(Debug)]
struct Gathering(Arc<dyn Provider>);

#[async_trait]
impl Provider for Gathering {
    fn clock(&self) -> Clock {
        self.0.clock()
    }

    async fn connect(
        &self,
        options: ConnectOptions,
        sink: Arc<dyn DeliverySink>,
    ) -> Result<Arc<dyn ProviderConnection>, ProviderError> {
        let connection = self.0.connect(options, sink).await?;
        Ok(Arc::new(GatheringConnection { connection, waiting: Mutex::default() }))
    }
}

#[derive(Debug)]
struct GatheringConnection {
    connection: Arc<dyn ProviderConnection>,
    waiting: Mutex<Vec<Confirmer>>,
}

impl ProviderConnection for GatheringConnection {
    fn capabilities(&self) -> Capabilities {
        self.connection.capabilities()
    }

    fn submit(&self, command: Command) -> Receipt {
        let is_given_back =
            matches!(&command, Command::Acknowledge(ack) if matches!(ack.kind, AckKind::Redelivered { .. }));
        let receipt = self.connection.submit(command);
        if !is_given_back {
            return receipt;
        }
        let (confirmer, gathered) = Receipt::pending();
        let mut waiting = self.waiting.lock().unwrap();
        waiting.push(confirmer);
        if waiting.len() == TOGETHER {
            waiting.drain(..).for_each(|confirmer| confirmer.confirm(Ok(Confirmation::Done)));
        }
        gathered
    }
}
