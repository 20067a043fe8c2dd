//! The history of a message in words.

use std::fmt;

use super::state::{Sent, State};
use super::{Ledger, Name, TransactionNumber};
use crate::plan::Target;

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {} of producer {}", self.number, self.producer)
    }
}

impl Ledger {
    /// All that the ledger has of a message, a line for each event, by the events' numbers.
    pub(super) fn history(&self, state: &State, name: Name) -> String {
        let entry = state.entry(name);
        let transaction = |TransactionNumber(number): TransactionNumber| {
            format!("transaction {number} ({:?})", state.transactions[number].fate)
        };
        let kind = if entry.is_persistent { "persistent" } else { "non-persistent" };
        let sent = match entry.sent {
            Sent::Within(number) => transaction(number),
            sent => format!("{sent:?}"),
        };
        let to = match entry.to {
            Target::Queue(queue) => self.queues[queue].name.clone(),
            Target::Topic(topic) => format!("topic {topic}"),
        };
        let mut lines = vec![format!("    {:>8} {kind}, to {to} by {}: {sent}", entry.at, entry.sender)];
        for enqueued in &entry.enqueued {
            if let (Target::Topic(_), queue) = (entry.to, enqueued.queue) {
                let owed_from = state.subscribed[queue].owed_from;
                lines.push(format!(
                    "   of {}, owed what was sent after {owed_from:?}",
                    self.queues[queue].name
                ));
            }
            for taken in &enqueued.taken {
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
        }
        if entry.dead_letters > 0 {
            lines.push(format!("             among the dead letters: {} times", entry.dead_letters));
        }
        lines.join("\n")
    }
}
