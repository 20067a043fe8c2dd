//! The client's side: a provider for `tcp:` that speaks to ActiveMQ and to Corriere's own acceptor.
//!
//! [`ProviderConnection::submit`] takes a lock, notes what an answer will mean, and puts commands into the outbox. One task writes
//! them, reads what the peer sends, and alone calls the sink.
//!
//! | command | on the wire | confirmed |
//! | --- | --- | --- |
//! | open and close session, producer | `SessionInfo`, `ProducerInfo`, `RemoveInfo` | when answered |
//! | open subscription | `ConsumerInfo` | when answered; with a window at a peer of Corriere, when that has delivered what waited |
//! | change window | `ConsumerControl`; to a peer of Corriere `ConsumerInfo` again, with the extension | when answered |
//! | unsubscribe | `RemoveSubscriptionInfo` | when answered |
//! | close subscription | `RemoveInfo` with the last delivery that was handed over | when answered; where ActiveMQ would take back what the session may still settle, `RemoveInfo` follows that, and this is confirmed at once |
//! | send, persistent, outside a transaction | a message that asks for an answer | when answered |
//! | send, other | a message; now and then one that asks for an answer | when it is written, or answered |
//! | acknowledge | `MessageAck`, one for each run of messages that are neighbours at the peer | when answered; in a transaction at once |
//! | handed over | a DELIVERED `MessageAck` when the window needs it; to a peer of Corriere for each | at once |
//! | begin, commit, rollback | `TransactionInfo` | begin at once, the others when answered |
//! | grant | `MessagePull`, for one message at a time; to a peer of Corriere for as many | at once |
//! | drain | `MessagePull` without waiting; for a window at ActiveMQ `FlushCommand` | when the peer has said that there is nothing more; `FlushCommand` when answered, while ActiveMQ may have messages on their way |
//! | browse | `ConsumerInfo`; at ActiveMQ with a window of its own, and what it brings is held until it is granted | when answered |
//! | temporary destinations | `DestinationInfo` | when answered |
//! | watch events | a consumer of the advisory topics | when those that are there are told of |
//! | close | `RemoveInfo` for each consumer and the connection, `ShutdownInfo` | when answered, when the peer closes, or after 15 s |
//!
//! Redelivery is the broker's where it is one of Corriere ([`redelivery`](crate::redelivery)). ActiveMQ leaves it to its clients: there a
//! message that is given back stays with its subscription, which counts, delays, delivers again in the old order, and says
//! POISON when the policy is exhausted ([`subscription`]), also of a message that comes with more failures than the policy has.
//! What a crash of this process then forgets: how often it failed here, its delay, and for whom it was reserved. The peer
//! counts one delivery when the subscription is closed with it.
//!
//! What ActiveMQ does otherwise than the seam says: browsing a queue that is not there makes it, and a browser shows as many as
//! its policy allows (400); what was buffered counts as delivered when the connection is lost without a close; a poison message of
//! a topic is gone. How long a send waits for memory is the peer's to say, whoever it is.

mod address;
mod answers;
mod commands;
mod connecting;
mod connection;
mod delivering;
mod durable;
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
mod windows;

use std::sync::Arc;

use async_trait::async_trait;
use corriere_core::provider::{
    ConnectOptions, DeliverySink, Provider, ProviderConnection, ProviderError, ProviderScheme,
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
    async fn connect(
        &self,
        options: ConnectOptions,
        sink: Arc<dyn DeliverySink>,
    ) -> Result<Arc<dyn ProviderConnection>, ProviderError> {
        Ok(Arc::new(connecting::connect(&self.address, options, sink).await?))
    }
}
