//! Durable subscriptions: what they keep while nobody consumes, who may have them, and what is left when they go.

mod keeping;
mod making;
mod transactions;
mod unsubscribing;

use corriere_broker::DurableSubscription;
use corriere_broker::machine::{ConnectionKey, Ticket};
use corriere_core::provider::{Command, Confirmation, Subscribe};
use corriere_core::{Destination, Message, SessionId, SubscriptionId};

use super::world::*;

pub(crate) fn prices() -> Destination {
    Destination::topic("prices").unwrap()
}

pub(crate) fn unsubscribe(name: &str) -> Command {
    Command::Unsubscribe { name: name.into() }
}

impl World {
    /// What would be a consumer of a durable subscription, and what it was told.
    pub(crate) fn try_durable(
        &mut self,
        connection: ConnectionKey,
        name: &str,
        change: impl FnOnce(&mut Subscribe),
    ) -> (Consumer, Outcome) {
        let session = self.session(connection);
        // Sessions are numbered apart from all else here.
        let subscription = SubscriptionId(session.0 + 10_000);
        let mut wanted = subscribe(session, subscription, &prices(), window(100));
        wanted.durable_name = Some(name.into());
        change(&mut wanted);
        let outcome = self.ask(connection, Command::OpenSubscription(Box::new(wanted)));
        (Consumer { connection, session, subscription }, outcome)
    }

    /// Asks for a consumer of the durable subscription `d`, in session 1.
    fn submit_durable(
        &mut self,
        connection: ConnectionKey,
        number: u64,
        change: impl FnOnce(&mut Subscribe),
    ) -> Ticket {
        let mut wanted = subscribe(SessionId(1), SubscriptionId(number), &prices(), window(100));
        wanted.durable_name = Some("d".into());
        change(&mut wanted);
        self.submit(connection, Command::OpenSubscription(Box::new(wanted)))
    }

    #[track_caller]
    pub(crate) fn durable(&mut self, connection: ConnectionKey, name: &str) -> Consumer {
        let (consumer, outcome) = self.try_durable(connection, name, |_| {});
        assert_eq!(outcome, Ok(Confirmation::Done));
        consumer
    }

    /// A consumer for which bodies are read back.
    fn durable_loading(&mut self, connection: ConnectionKey, name: &str) -> Consumer {
        let session = self.session(connection);
        let subscription = SubscriptionId(session.0 + 10_000);
        let mut wanted = subscribe(session, subscription, &prices(), window(100));
        wanted.durable_name = Some(name.into());
        let ticket = self.submit(connection, Command::OpenSubscription(Box::new(wanted)));
        self.bring_back();
        assert_eq!(self.outcome(ticket), Some(&Ok(Confirmation::Done)));
        Consumer { connection, session, subscription }
    }

    /// Makes one that nobody consumes from.
    #[track_caller]
    pub(crate) fn leave_durable(&mut self, client_id: &str, name: &str) {
        let connection = self.connect_as(Some(client_id));
        let consumer = self.durable(connection, name);
        self.close(consumer, 0);
        self.done(connection, Command::Close);
    }

    pub(crate) fn described(&self, name: &str) -> DurableSubscription {
        let all = self.machine.durable_subscriptions();
        all.into_iter().find(|described| &*described.name == name).expect("it is there")
    }

    pub(crate) fn publish(&mut self, connection: ConnectionKey, sequences: impl IntoIterator<Item = u64>) {
        for sequence in sequences {
            let sent = self.send(connection, message(&prices(), sequence));
            assert_eq!(self.outcome(sent), Some(&Ok(Confirmation::Done)));
        }
    }
}

/// One that is not persistent.
fn fleeting(sequence: u64) -> Message {
    non_persistent(&prices(), sequence)
}
