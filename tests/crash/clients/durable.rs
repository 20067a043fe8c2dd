//! Durable subscriptions of clients.

use corriere_broker::machine::ConnectionKey;
use corriere_broker::store::SubscriptionName;
use corriere_core::RedeliveryPolicy;
use corriere_core::provider::Command;

use super::Clients;
use crate::history::Place;
use crate::ledger::{Judgement, Kind, Origin};
use crate::play::destination;
use crate::world::World;

/// Those who have durable subscriptions.
const CLIENT_IDS: [&str; 2] = ["x", "y"];

impl Clients {
    /// A client id that no connection has.
    pub(super) fn free_client_id(&self) -> Option<&'static str> {
        let is_free = |id: &&str| self.connections.iter().all(|one| one.client_id != Some(*id));
        CLIENT_IDS.into_iter().find(is_free)
    }

    pub(super) fn client_id(&self, connection: ConnectionKey) -> Option<&'static str> {
        self.connections.iter().find(|one| one.key == connection)?.client_id
    }

    fn name(&self, connection: ConnectionKey, number: u8) -> Option<SubscriptionName> {
        let client_id = self.client_id(connection)?.into();
        Some(SubscriptionName { client_id, name: format!("d{number}").into() })
    }
}

impl World {
    /// Nothing where the client waits for an answer about this subscription.
    pub(crate) fn subscribe_durably(
        &mut self,
        session: usize,
        number: u8,
        kind: Option<Kind>,
        prefetch: u32,
        policy: &RedeliveryPolicy,
    ) -> Judgement {
        let connection = self.clients.sessions[session].connection;
        match self.clients.name(connection, number) {
            Some(name) => self.consume_from(session, name, kind, prefetch, policy),
            None => Ok(()),
        }
    }

    /// As what it is, unless another kind is wanted. The connection must be of the subscription's client.
    pub(crate) fn consume_from(
        &mut self,
        session: usize,
        name: SubscriptionName,
        kind: Option<Kind>,
        prefetch: u32,
        policy: &RedeliveryPolicy,
    ) -> Judgement {
        let ticket = self.ticket();
        let kind = kind.or_else(|| self.ledger.kind(&name));
        let kind = kind.unwrap_or_else(|| Kind { topic: destination(Place::Topic), no_local: false });
        let Some(life) = self.ledger.made(&name, &kind, ticket) else { return Ok(()) };
        let from = Origin { destination: kind.topic, durable: Some((name, life)) };
        self.consume(session, (from, kind.no_local), ticket, prefetch, policy)
    }

    pub(crate) fn unsubscribe(&mut self, connection: ConnectionKey, number: u8) -> Judgement {
        let Some(name) = self.clients.name(connection, number) else { return Ok(()) };
        let ticket = self.ticket();
        let command = Command::Unsubscribe { name: name.name.clone() };
        if self.ledger.removed(&name, ticket) {
            self.submit(connection, ticket, command)?;
        }
        Ok(())
    }

    /// The session of the client that has this durable subscription.
    pub(crate) fn session_for(&self, name: &SubscriptionName) -> Option<usize> {
        let mut connections = self.clients.connections.iter();
        let of = connections.find(|one| one.client_id == Some(&*name.client_id))?.key;
        self.clients.sessions.iter().position(|session| session.connection == of)
    }
}
