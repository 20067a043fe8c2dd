//! The ends of transactions, and of what clients have open.

use corriere_broker::machine::{ConnectionKey, Input};
use corriere_core::TransactionId;
use corriere_core::provider::{Cause, Command, Confirmation};

use super::{Branch, Consumer, Session, id_of};
use crate::history::{Failing, Work};
use crate::ledger::{Judgement, Name};
use crate::world::World;

impl World {
    pub(crate) fn commit(&mut self, session: usize) -> Judgement {
        let Some((connection, transaction, name)) = self.end_transaction(session) else { return Ok(()) };
        let ticket = self.ticket();
        self.ledger.committed(&name, ticket);
        self.forget_acknowledged(session);
        self.submit(connection, ticket, Command::Commit { transaction, one_phase: true })
    }

    fn end_transaction(&mut self, session: usize) -> Option<(ConnectionKey, TransactionId, Name)> {
        let session = &mut self.clients.sessions[session];
        let (connection, transaction) = (session.connection, session.transaction.take()?);
        let name = self.name(connection, &transaction);
        Some((connection, transaction, name))
    }

    /// The consumers of a session.
    fn consumers_of(&self, session: usize) -> Vec<usize> {
        let Session { connection, id, .. } = self.clients.sessions[session];
        let consumers = self.clients.consumers.iter().enumerate();
        consumers
            .filter(|(_, consumer)| consumer.connection == connection && consumer.session == id)
            .map(|(index, _)| index)
            .collect()
    }

    fn forget_acknowledged(&mut self, session: usize) {
        for consumer in self.consumers_of(session) {
            self.clients.consumers[consumer].acknowledged.clear();
        }
    }

    /// As a client does: everything that its session had is given back.
    pub(crate) fn roll_back(&mut self, session: usize) -> Judgement {
        let Some((connection, transaction, name)) = self.end_transaction(session) else { return Ok(()) };
        let ticket = self.ticket();
        self.ledger.rolled_back(&name, ticket);
        let cause = Some(Cause::failure("rolled back by hand"));
        self.submit(connection, ticket, Command::Rollback { transaction, cause })?;
        for consumer in self.consumers_of(session) {
            let state = &mut self.clients.consumers[consumer];
            let mut given = std::mem::take(&mut state.acknowledged);
            given.extend(std::mem::take(&mut state.in_hands));
            self.give_back(consumer, None, Failing::Handler, &given)?;
        }
        Ok(())
    }

    pub(crate) fn prepare(&mut self, session: usize) -> Judgement {
        if self.clients.sessions[session].work != Work::Distributed {
            return Ok(());
        }
        let Some((connection, transaction, name)) = self.end_transaction(session) else { return Ok(()) };
        self.command(connection, Command::End { transaction: transaction.clone() })?;
        let ticket = self.ticket();
        self.ledger.prepared(&name, ticket);
        self.forget_acknowledged(session);
        if let Name::Branch(xid) = name {
            self.clients.branches.push(Branch { xid, prepare: Some(ticket) });
        }
        self.submit(connection, ticket, Command::Prepare { transaction })
    }

    /// Branches whose prepare was confirmed, or that were found.
    pub(crate) fn decidable(&self) -> Vec<usize> {
        let branches = self.clients.branches.iter().enumerate();
        let is_prepared = |branch: &Branch| {
            branch.prepare.is_none_or(|ticket| {
                matches!(self.ledger.outcome(ticket), Some(Ok(Confirmation::Prepared { must_commit: true })))
            })
        };
        branches.filter(|(_, branch)| is_prepared(branch)).map(|(index, _)| index).collect()
    }

    pub(crate) fn decide(&mut self, branch: usize, connection: ConnectionKey, commit: bool) -> Judgement {
        let Branch { xid, .. } = self.clients.branches.remove(branch);
        let (name, transaction) = (Name::Branch(xid.clone()), TransactionId::Distributed(xid));
        let ticket = self.ticket();
        if commit {
            self.ledger.committed(&name, ticket);
            self.submit(connection, ticket, Command::Commit { transaction, one_phase: false })
        } else {
            self.ledger.rolled_back(&name, ticket);
            self.submit(connection, ticket, Command::Rollback { transaction, cause: None })
        }
    }

    pub(crate) fn close_consumer(&mut self, consumer: usize) -> Judgement {
        // As the client does, which ends its transaction before; what it holds stays with the session.
        let Some(session) = self.session_of(consumer) else { return Ok(()) };
        self.roll_back(session)?;
        let state = self.clients.consumers.remove(consumer);
        let last = state.in_hands.back().map_or(0, |dispatch| dispatch.number);
        for dispatch in &state.in_hands {
            // With the session it fails, or stays with it for ever; nothing is known of when.
            self.ledger.failed(&state.from, &id_of(dispatch), u64::MAX, dispatch.delivery_count);
        }
        let close = Command::CloseSubscription { subscription: state.subscription, last_handed_over: last };
        self.command(state.connection, close).map(drop)
    }

    pub(crate) fn close_session(&mut self, session: usize) -> Judgement {
        self.roll_back(session)?;
        let Session { connection, id, .. } = self.clients.sessions.remove(session);
        self.give_up(|consumer| consumer.connection == connection && consumer.session == id);
        self.command(connection, Command::CloseSession { session: id }).map(drop)
    }

    pub(crate) fn close(&mut self, connection: ConnectionKey, vanish: bool) -> Judgement {
        for session in self.clients.sessions.clone().iter().filter(|session| session.connection == connection)
        {
            if let Some(transaction) = &session.transaction {
                let name = self.name(connection, transaction);
                let ticket = self.ticket();
                self.ledger.rolled_back(&name, ticket);
            }
        }
        self.clients.connections.retain(|other| other.key != connection);
        self.clients.sessions.retain(|session| session.connection != connection);
        self.give_up(|consumer| consumer.connection == connection);
        if vanish {
            self.input(Input::Vanished { connection })
        } else {
            self.command(connection, Command::Close).map(drop)
        }
    }

    /// Consumers end with what they have in their hands, which counts.
    fn give_up(&mut self, ends: impl Fn(&Consumer) -> bool) {
        let (ended, left) =
            std::mem::take(&mut self.clients.consumers).into_iter().partition(|one| ends(one));
        self.clients.consumers = left;
        let ended: Vec<Consumer> = ended;
        for consumer in ended {
            for dispatch in consumer.in_hands.iter().chain(&consumer.acknowledged) {
                self.ledger.failed(&consumer.from, &id_of(dispatch), self.stamp + 1, dispatch.delivery_count);
            }
        }
    }
}
