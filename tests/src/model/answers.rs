//! The receipts: which are owed, which may not come yet.

use corriere_broker::machine::{BatchId, ConnectionKey, Ticket};
use corriere_core::id::Xid;
use corriere_core::provider::{Confirmation, ProviderError};

use corriere_core::Destination;

use super::{Judgement, violation};

/// What a receipt must say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// That it is done.
    Done,
    /// That a name is unknown on this connection.
    Unknown,
    /// That the destination cannot be used so.
    Invalid,
    /// The name of a temporary destination.
    Created(Destination),
    /// That memory stayed full.
    MemoryFull,
    /// That the store stayed full.
    StoreFull,
    /// The vote of a prepare.
    Prepared(bool),
    /// The prepared transactions.
    Recovered(Vec<Xid>),
    /// That it is not known what becomes of the first of what was sent again.
    InDoubt,
    /// That the transaction was rolled back.
    RolledBack,
    /// That it was refused, for whatever reason.
    Refused,
    /// Anything: the rules do not say.
    Whatever,
}

impl Answer {
    fn is_said_by(&self, outcome: &Result<Confirmation, ProviderError>) -> bool {
        match self {
            Self::Done => matches!(outcome, Ok(Confirmation::Done)),
            Self::Unknown => matches!(outcome, Err(ProviderError::Unknown { .. })),
            Self::Invalid => matches!(outcome, Err(ProviderError::InvalidDestination { .. })),
            Self::Created(destination) => *outcome == Ok(Confirmation::Created(destination.clone())),
            Self::StoreFull => matches!(outcome, Err(ProviderError::StoreFull { .. })),
            Self::Prepared(must_commit) => {
                *outcome == Ok(Confirmation::Prepared { must_commit: *must_commit })
            }
            Self::Recovered(xids) => *outcome == Ok(Confirmation::Recovered(xids.clone())),
            Self::MemoryFull => matches!(outcome, Err(ProviderError::MemoryFull { .. })),
            Self::RolledBack => matches!(outcome, Err(ProviderError::RolledBack { .. })),
            Self::InDoubt => matches!(outcome, Err(ProviderError::InDoubt { .. })),
            Self::Refused => outcome.is_err(),
            Self::Whatever => true,
        }
    }
}

#[derive(Debug)]
struct Open {
    connection: ConnectionKey,
    ticket: Ticket,
    state: State,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// To be answered in this step.
    Owed(Answer),
    /// Not to be answered yet.
    Held,
    /// To be answered with success once the batches are durable that carry it.
    After(Vec<BatchId>),
    /// To be answered with success, at the latest when nothing is being read back.
    Read,
    /// Of a connection that ended: whatever is said to it, nobody hears it.
    Dropped,
}

/// The receipts that are not answered.
#[derive(Debug, Default)]
pub(super) struct Tickets(Vec<Open>);

impl Tickets {
    /// In this step `ticket` must be answered so.
    pub(super) fn owe(&mut self, connection: ConnectionKey, ticket: Ticket, answer: Answer) {
        self.set(connection, ticket, State::Owed(answer));
    }

    /// In this step `ticket` must be answered so, unless its connection has ended.
    pub(super) fn owe_if_heard(&mut self, ticket: Ticket, answer: &Answer) {
        for open in self.0.iter_mut().filter(|open| open.ticket == ticket && open.state != State::Dropped) {
            open.state = State::Owed(answer.clone());
        }
    }

    /// `ticket` must not be answered before the model says so.
    pub(super) fn hold(&mut self, connection: ConnectionKey, ticket: Ticket) {
        self.set(connection, ticket, State::Held);
    }

    /// `ticket` is to be answered with success, at the latest when the store has nothing more to do.
    pub(super) fn owe_eventually(&mut self, connection: ConnectionKey, ticket: Ticket) {
        self.set(connection, ticket, State::After(Vec::new()));
    }

    /// `ticket` is to be answered with success, at the latest when nothing is being read back.
    pub(super) fn owe_when_read(&mut self, connection: ConnectionKey, ticket: Ticket) {
        self.set(connection, ticket, State::Read);
    }

    /// An acknowledgement is confirmed when it is written: not before `batch` is complete.
    pub(super) fn wait_for(&mut self, ticket: Ticket, batch: BatchId) {
        for open in self.0.iter_mut().filter(|open| open.ticket == ticket) {
            if let State::After(batches) = &mut open.state {
                batches.push(batch);
            }
        }
    }

    /// A batch is complete.
    pub(super) fn complete(&mut self, batch: BatchId) {
        for open in &mut self.0 {
            if let State::After(batches) = &mut open.state {
                batches.retain(|waiting| *waiting != batch);
            }
        }
    }

    /// Nobody is there any more who would hear.
    pub(super) fn forget_all(&mut self) {
        self.0.clear();
    }

    /// The open receipts of a connection that ends may be fulfilled or dropped.
    pub(super) fn forget(&mut self, connection: ConnectionKey) {
        for open in self.0.iter_mut().filter(|open| open.connection == connection) {
            open.state = State::Dropped;
        }
    }

    /// A receipt is answered.
    pub(super) fn answer(
        &mut self,
        ticket: Ticket,
        outcome: &Result<Confirmation, ProviderError>,
    ) -> Judgement {
        let Some(index) = self.0.iter().position(|open| open.ticket == ticket) else {
            violation!("{ticket:?} is answered twice, or was never asked: {outcome:?}");
        };
        let open = self.0.remove(index);
        match open.state {
            State::Owed(answer) if !answer.is_said_by(outcome) => {
                violation!("{ticket:?} must be answered {answer:?}, not {outcome:?}");
            }
            State::Held => violation!("{ticket:?} is answered too early: {outcome:?}"),
            State::After(batches) if !batches.is_empty() => {
                violation!("{ticket:?} is answered before {batches:?} are complete: {outcome:?}");
            }
            State::After(_) | State::Read if outcome.is_err() => {
                violation!("{ticket:?} must succeed, not {outcome:?}");
            }
            State::Owed(_) | State::After(_) | State::Read | State::Dropped => Ok(()),
        }
    }

    /// The end of a step. When the store `is_idle`, or reads nothing back, nothing may be left that waited for that.
    pub(super) fn check(&self, is_idle: bool, reads: bool) -> Judgement {
        for open in &self.0 {
            match &open.state {
                State::Owed(answer) => violation!("{:?} is not answered {answer:?} in its step", open.ticket),
                State::After(_) if is_idle => {
                    violation!("{:?} is not answered although the store is idle", open.ticket);
                }
                State::Read if !reads => {
                    violation!("{:?} is not answered although nothing is being read back", open.ticket);
                }
                State::Held | State::After(_) | State::Read | State::Dropped => {}
            }
        }
        Ok(())
    }

    /// Whether every receipt is answered.
    pub(super) fn are_all_answered(&self) -> bool {
        self.0.iter().all(|open| open.state == State::Dropped)
    }

    fn set(&mut self, connection: ConnectionKey, ticket: Ticket, state: State) {
        self.0.retain(|open| open.ticket != ticket);
        self.0.push(Open { connection, ticket, state });
    }
}
