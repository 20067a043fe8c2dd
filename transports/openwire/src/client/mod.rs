//! The client's side: a provider for `tcp:` that speaks to ActiveMQ and to Corriere's own acceptor.
//!
//! [`ProviderConnection::submit`](corriere_core::provider::ProviderConnection::submit) takes a lock, notes what an answer will
//! mean, and puts commands into the outbox. One task writes them, another reads what the peer sends and alone calls the sink.
//!
//! | command | on the wire | confirmed |
//! | --- | --- | --- |
//! | open and close session, producer | `SessionInfo`, `ProducerInfo`, `RemoveInfo` | when answered |
//! | open subscription | `ConsumerInfo` | when answered; with a window, what waits at the peer follows at once |
//! | close subscription | `RemoveInfo` with the last delivery that was handed over | when answered; while the session may still settle something of it, `RemoveInfo` follows that, and this is confirmed at once |
//! | send, persistent, outside a transaction | a message that asks for an answer | when answered |
//! | send, other | a message; now and then one that asks for an answer | when it is written, or answered |
//! | acknowledge | `MessageAck`, one for each run of messages that are neighbours at the peer | when answered; in a transaction at once |
//! | handed over | a DELIVERED `MessageAck` when the window needs it; to a peer of our own for each | at once |
//! | begin, commit, rollback | `TransactionInfo` | begin at once, the others when answered |
//! | grant, drain | `MessagePull`, one message at a time | a drain when the peer has said that there is nothing |
//! | drain with a window | `FlushCommand` | when answered; a peer may have messages on their way that it has not got to |
//! | browse | `ConsumerInfo` with a window of its own; what it brings is held until it is granted | when answered |
//! | temporary destinations | `DestinationInfo` | when answered |
//! | watch events | a consumer of the advisory topics | when answered |
//! | close | `RemoveInfo` for each consumer and the connection, `ShutdownInfo` | when answered, or when the peer closes |
//!
//! Redelivery is the broker's where it is one of Corriere ([`redelivery`](crate::redelivery)). ActiveMQ leaves it to its clients, so there a
//! message that is given back stays with its subscription, which counts, delays, delivers again in the old order, and says
//! POISON when the policy is exhausted ([`subscription`]). What a crash of this process then forgets: how often it failed
//! here, its delay, and who it was reserved for. The peer counts one delivery when the subscription is closed with it.
//!
//! What ActiveMQ does otherwise than the seam says: browsing a queue that is not there makes it, and a browser shows as many as
//! its policy allows (400); how long a send waits for memory is the broker's to say; what was buffered when the connection is
//! lost without a close counts as delivered.

mod address;
mod answers;
mod commands;
mod connecting;
mod connection;
mod delivering;
mod error;
mod incoming;
mod pulling;
mod running;
#[cfg(test)]
mod scripted;
mod sending;
mod settling;
mod state;
mod subscription;
mod temporary;
#[cfg(test)]
mod tests;
mod transactions;

use std::sync::Arc;

use async_trait::async_trait;
use corriere_core::provider::{
    Capabilities, Capability, ConnectOptions, DeliverySink, Provider, ProviderConnection, ProviderError,
    ProviderScheme,
};

use self::address::Address;

inventory::submit! {
    ProviderScheme { scheme: "tcp", open }
}

fn open(address: &str) -> Result<Arc<dyn Provider>, ProviderError> {
    Ok(Arc::new(TcpProvider { address: Address::parse(address)? }))
}

/// A broker that listens at an address.
#[derive(Debug)]
struct TcpProvider {
    address: Address,
}

#[async_trait]
impl Provider for TcpProvider {
    /// What can be had of every peer. Who is there is known once it answers: one of Corriere counts redeliveries too.
    fn capabilities(&self) -> Capabilities {
        Capabilities::of(&[
            Capability::ExplicitCredit,
            Capability::IndividualAcknowledge,
            Capability::DupsOkAcknowledge,
            Capability::Browse,
            Capability::TemporaryDestinations,
            Capability::Events,
            Capability::Authentication,
        ])
    }

    async fn connect(
        &self,
        options: ConnectOptions,
        sink: Arc<dyn DeliverySink>,
    ) -> Result<Arc<dyn ProviderConnection>, ProviderError> {
        Ok(Arc::new(connecting::connect(&self.address, options, sink).await?))
    }
}
