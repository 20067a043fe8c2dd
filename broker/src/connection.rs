//! Connections within this process.

use std::sync::Arc;

use corriere_core::provider::{Capabilities, Capability, Command, ProviderConnection, Receipt};

use crate::edge::Edge;
use crate::machine::ConnectionKey;

/// A connection to a broker in this process. It keeps the broker alive.
#[derive(Debug)]
pub(crate) struct VmConnection {
    edge: Arc<Edge>,
    key: ConnectionKey,
}

impl VmConnection {
    pub(crate) fn new(edge: Arc<Edge>, key: ConnectionKey) -> Self {
        Self { edge, key }
    }
}

impl ProviderConnection for VmConnection {
    fn capabilities(&self) -> Capabilities {
        Capabilities::of(&[
            Capability::BrokerRedelivery,
            Capability::ExplicitCredit,
            Capability::IndividualAcknowledge,
            Capability::DupsOkAcknowledge,
            Capability::DistributedTransactions,
            Capability::DurableSubscriptions,
            Capability::Browse,
            Capability::TemporaryDestinations,
            Capability::Events,
        ])
    }

    fn submit(&self, command: Command) -> Receipt {
        self.edge.submit(self.key, command)
    }

    fn tell(&self, command: Command) {
        self.edge.tell(self.key, command);
    }
}

impl Drop for VmConnection {
    fn drop(&mut self) {
        self.edge.disconnect(self.key);
    }
}
