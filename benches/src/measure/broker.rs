//! A broker on a journal, and a connection to it.

use std::path::Path;
use std::sync::Arc;

use corriere::broker::files::Disk;
use corriere::broker::journal::{JournalOptions, JournalStore};
use corriere::broker::{Broker, Settings};
use corriere::core::{Clock, Connection, ConnectionFactory, Destination};

use crate::failure::Failure;

const NAME: &str = "bench";

/// The one queue.
pub(super) fn queue() -> Result<Destination, Failure> {
    Ok(Destination::queue("bench")?)
}

/// A broker with its defaults.
#[derive(Debug)]
pub(super) struct Running {
    broker: Broker,
    pub(super) connection: Connection,
}

impl Running {
    /// Starts it on the journal in this directory.
    pub(super) async fn start(directory: &Path) -> Result<Self, Failure> {
        let store = JournalStore::open(Arc::new(Disk), JournalOptions::new(directory.join(NAME)))?;
        let broker = Broker::start(NAME, Settings::default(), Arc::new(store), Clock::system())?;
        let connection = ConnectionFactory::from_url(&format!("vm://{NAME}"))?.create_connection().await?;
        connection.start()?;
        Ok(Self { broker, connection })
    }

    pub(super) fn broker(&self) -> &Broker {
        &self.broker
    }

    /// Ends it in order.
    pub(super) async fn stop(self) -> Result<(), Failure> {
        self.connection.close().await?;
        self.broker.stop();
        Ok(())
    }
}
