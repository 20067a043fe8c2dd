//! What is known of one transaction.

use corriere_broker::machine::Ticket;
use corriere_core::id::Xid;
use corriere_core::{ConnectionId, MessageId};

use super::{Certainty, Heard};

/// A transaction as its clients know it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    Local(ConnectionId, u64),
    Branch(Xid),
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Nothing,
    Prepared,
    Applied,
}

/// A transaction since it began or since the process did.
#[derive(Clone, Debug, Default)]
pub(super) struct Transaction {
    pub(super) sends: Vec<MessageId>,
    pub(super) settled: Vec<MessageId>,
    /// Whether it was found prepared when the process began.
    pub(super) was_prepared: bool,
    pub(super) prepare: Option<Ticket>,
    pub(super) commit: Option<Ticket>,
    pub(super) rollback: Option<Ticket>,
    /// Whether any of it is persistent; a branch of which nothing is, ends with the process.
    pub(super) is_persistent: bool,
    /// What it sends to durable subscriptions, and what of theirs it settles.
    pub(super) copies: Vec<super::durable::Copy>,
    pub(super) settled_copies: Vec<super::durable::Copy>,
    /// Whether it sends what is persistent where a durable subscription may be.
    pub(super) may_be_persistent: bool,
    /// Whether something that it sent was delivered.
    pub(super) was_seen: bool,
}

impl Transaction {
    /// What may have become of it.
    pub(super) fn outcomes(&self, heard: &Heard, certainty: &Certainty) -> Vec<Outcome> {
        let certain = |ticket: Option<Ticket>| ticket.map(|ticket| heard.certainty_of(ticket));
        let is_prepared = if self.was_prepared { Some(Some(true)) } else { certain(self.prepare) };
        let before = match is_prepared {
            Some(Some(true)) if self.is_persistent => vec![Outcome::Prepared],
            Some(Some(true)) if self.may_be_persistent => vec![Outcome::Nothing, Outcome::Prepared],
            Some(Some(true)) => vec![Outcome::Nothing],
            Some(None) => vec![Outcome::Nothing, Outcome::Prepared],
            Some(Some(false)) | None => vec![Outcome::Nothing],
        };
        if self.was_seen {
            return vec![Outcome::Applied];
        }
        match (certain(self.commit), certain(self.rollback)) {
            (Some(Some(true)), _) => vec![Outcome::Applied],
            (Some(None), _) => [vec![Outcome::Applied], before].concat(),
            // A rollback is written, not synced: a power cut takes it back, and the manager finds the branch again.
            (_, Some(told)) if told.is_none() || !certainty.written_is_kept() => {
                let mut outcomes = before;
                if !outcomes.contains(&Outcome::Nothing) {
                    outcomes.push(Outcome::Nothing);
                }
                outcomes
            }
            (_, Some(_)) => vec![Outcome::Nothing],
            (Some(Some(false)), None) if !before.contains(&Outcome::Nothing) => {
                vec![Outcome::Nothing, Outcome::Prepared]
            }
            (_, None) => before,
        }
    }
}
