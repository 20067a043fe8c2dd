//! The other ends of receipts that were handed out unfulfilled.

use std::collections::{BTreeMap, BTreeSet};

use corriere_core::provider::Confirmer;

use crate::machine::{ConnectionKey, Ticket};

/// Confirmers by their tickets, and those of a connection without a walk over all others.
///
/// Whoever takes one out fulfils or drops it outside the broker's lock: both wake a task, by code that is not ours.
#[derive(Debug, Default)]
pub(crate) struct Confirmers {
    by_ticket: BTreeMap<Ticket, (ConnectionKey, Confirmer)>,
    by_connection: BTreeSet<(ConnectionKey, Ticket)>,
}

impl Confirmers {
    pub(crate) fn insert(&mut self, connection: ConnectionKey, ticket: Ticket, confirmer: Confirmer) {
        self.by_ticket.insert(ticket, (connection, confirmer));
        self.by_connection.insert((connection, ticket));
    }

    pub(crate) fn take(&mut self, ticket: Ticket) -> Option<Confirmer> {
        let (connection, confirmer) = self.by_ticket.remove(&ticket)?;
        self.by_connection.remove(&(connection, ticket));
        Some(confirmer)
    }

    /// All of a connection.
    pub(crate) fn take_of(&mut self, connection: ConnectionKey) -> Vec<Confirmer> {
        let range = (connection, Ticket(0))..=(connection, Ticket(u64::MAX));
        let tickets: Vec<_> = self.by_connection.range(range).map(|(_, ticket)| *ticket).collect();
        tickets.into_iter().filter_map(|ticket| self.take(ticket)).collect()
    }

    pub(crate) fn take_all(&mut self) -> Vec<Confirmer> {
        self.by_connection.clear();
        std::mem::take(&mut self.by_ticket).into_values().map(|(_, confirmer)| confirmer).collect()
    }
}

#[cfg(test)]
mod tests {
    use corriere_core::provider::Receipt;

    use super::*;

    #[test]
    fn a_connection_that_ends_takes_its_own_and_leaves_those_of_others() {
        let mut confirmers = Confirmers::default();
        for ticket in 1..=6 {
            let (confirmer, _receipt) = Receipt::pending();
            confirmers.insert(ConnectionKey(1 + ticket % 3), Ticket(ticket), confirmer);
        }
        assert!(confirmers.take(Ticket(4)).is_some());
        assert!(confirmers.take(Ticket(4)).is_none());
        assert_eq!(confirmers.take_of(ConnectionKey(2)).len(), 1, "of 1 and 4");
        assert_eq!(confirmers.take_all().len(), 4);
        assert!(confirmers.by_connection.is_empty());
    }
}
