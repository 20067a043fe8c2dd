//! The history of a message in words.

use std::fmt;

use super::{Ledger, Name, Sent, State, TransactionNumber};

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {} of producer {}", self.number, self.producer)
    }
}

impl Ledger {
    /// All that the ledger has of a message, a line for each event, by the events' numbers.
    pub(super) fn history(&self, state: &State, name: Name) -> String {
        let entry = &state.messages[name.producer][name.number];
        let transaction = |TransactionNumber(number): TransactionNumber| {
            format!("transaction {number} ({:?})", state.transactions[number].fate)
        };
        let kind = if entry.is_persistent { "persistent" } else { "non-persistent" };
        let sent = match entry.sent {
            Sent::Within(number) => transaction(number),
            sent => format!("{sent:?}"),
        };
        let queue = &self.queues[entry.queue].name;
        let mut lines = vec![format!("    {:>8} {kind}, to {queue} by {}: {sent}", entry.at, entry.sender)];
        for taken in &entry.taken {
            let within = taken.transaction.map(|number| format!(" in {}", transaction(number)));
            lines.push(format!(
                "    {:>8} to {}, count {}{}{}; {:?} at {}",
                taken.at,
                taken.holder,
                taken.count,
                if taken.is_void { ", parted from the broker" } else { "" },
                within.unwrap_or_default(),
                taken.end,
                taken.ended_at,
            ));
        }
        if entry.dead_letters > 0 {
            lines.push(format!("             among the dead letters: {} times", entry.dead_letters));
        }
        lines.join("\n")
    }
}
