//! What the ledger keeps of each message, and what can be said of it at any time.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{End, Fate, Holder, Name, Taken, TransactionNumber};
use crate::plan::{Queue, Target};

/// What is known of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// The broker did not answer, so the message may be there.
    Unanswered,
    Confirmed,
    Refused,
    /// As the transaction.
    Within(TransactionNumber),
}

/// What is certain of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Certainty {
    Sent,
    Perhaps,
    NotSent,
}

#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) fate: Fate,
    pub(super) sends: Vec<Name>,
    pub(super) taken: Vec<Taken>,
    pub(super) ended_at: u64,
}

#[derive(Debug)]
pub(super) struct HandOver {
    pub(super) holder: Arc<Holder>,
    pub(super) count: u32,
    pub(super) is_void: bool,
    pub(super) end: End,
    pub(super) transaction: Option<TransactionNumber>,
    /// Which event of the ledger it was, and which its end.
    pub(super) at: u64,
    pub(super) ended_at: u64,
}

/// A message in one of the queues that it went to: of a topic each durable subscription is one, and has a history of its own.
#[derive(Debug)]
pub(super) struct Enqueued {
    pub(super) queue: usize,
    pub(super) taken: Vec<HandOver>,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) to: Target,
    pub(super) is_persistent: bool,
    pub(super) is_in_line: bool,
    pub(super) sent: Sent,
    pub(super) sender: Arc<Holder>,
    /// Which event of the ledger its send was, and which the answer to it.
    pub(super) at: u64,
    pub(super) answered_at: u64,
    pub(super) enqueued: Vec<Enqueued>,
    /// How often it was among the dead letters. Those of a topic do not say of which subscription they are.
    pub(super) dead_letters: usize,
}

/// Since when a queue gets what is sent to it. One that is no subscription always does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subscribed {
    /// What was sent later than this event has to be in it; `None` while it may be that it is not there.
    pub(super) owed_from: Option<u64>,
    /// When it was last asked for its removal, and that of the last removal which was confirmed.
    pub(super) removing_at: u64,
    pub(super) removed_at: u64,
    pub(super) removals: u64,
}

#[derive(Debug)]
pub(super) struct State {
    /// By producer and number.
    pub(super) messages: Vec<Vec<Entry>>,
    pub(super) transactions: Vec<Transaction>,
    /// By queue.
    pub(super) subscribed: Vec<Subscribed>,
    /// The broker's lives that ended in order.
    pub(super) orderly: BTreeSet<u64>,
    pub(super) violations: Vec<String>,
    events: u64,
}

impl State {
    pub(super) fn new(queues: &[Queue], producers: usize) -> Self {
        let subscribed = |queue: &Queue| Subscribed {
            owed_from: queue.topic.is_none().then_some(0),
            removing_at: 0,
            removed_at: 0,
            removals: 0,
        };
        Self {
            messages: (0..producers).map(|_| Vec::new()).collect(),
            transactions: Vec::new(),
            subscribed: queues.iter().map(subscribed).collect(),
            orderly: BTreeSet::new(),
            violations: Vec::new(),
            events: 0,
        }
    }

    pub(super) fn next_event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    pub(super) fn names(&self) -> impl Iterator<Item = Name> {
        let each = self.messages.iter().enumerate();
        each.flat_map(|(producer, messages)| (0..messages.len()).map(move |number| Name { producer, number }))
    }

    pub(super) fn entry(&self, Name { producer, number }: Name) -> &Entry {
        &self.messages[producer][number]
    }

    pub(super) fn entry_mut(&mut self, Name { producer, number }: Name) -> &mut Entry {
        &mut self.messages[producer][number]
    }

    pub(super) fn certainty(&self, entry: &Entry) -> Certainty {
        match entry.sent {
            Sent::Confirmed => Certainty::Sent,
            Sent::Unanswered => Certainty::Perhaps,
            Sent::Refused => Certainty::NotSent,
            Sent::Within(TransactionNumber(number)) => match self.transactions[number].fate {
                Fate::Committed => Certainty::Sent,
                Fate::InDoubt => Certainty::Perhaps,
                Fate::Open | Fate::RolledBack => Certainty::NotSent,
            },
        }
    }

    /// Over `tcp:` the send of a message that is not persistent is confirmed when it is written, so that it may arrive when its
    /// client is gone and there again.
    pub(super) fn has_place(&self, name: Name) -> bool {
        let entry = self.entry(name);
        let is_certain = match entry.sent {
            Sent::Within(_) => self.certainty(entry) == Certainty::Sent,
            sent => sent == Sent::Confirmed && (entry.is_persistent || !entry.sender.is_lost()),
        };
        entry.is_in_line && is_certain
    }

    /// Whether a message has to be in this queue once it was sent: of the subscriptions to a topic in those that were there before.
    pub(super) fn is_owed(&self, entry: &Entry, queue: usize) -> bool {
        self.subscribed[queue].owed_from.is_some_and(|from| entry.at > from)
    }

    /// Whether a message was certainly in this subscription when that was removed.
    pub(super) fn is_removed(&self, name: Name, queue: usize) -> bool {
        let entry = self.entry(name);
        let answered_at = match entry.sent {
            Sent::Within(TransactionNumber(number)) => self.transactions[number].ended_at,
            _ => entry.answered_at,
        };
        let is_sent = self.certainty(entry) == Certainty::Sent;
        // What is not persistent is confirmed when it is written, and may arrive later.
        is_sent && entry.is_persistent && answered_at < self.subscribed[queue].removed_at
    }
}

impl Entry {
    /// Whether it is certain that it was there: somebody who was not parted from the broker had it, or it was among the dead letters.
    pub(super) fn is_there(&self) -> bool {
        self.dead_letters > 0 || self.enqueued.iter().any(Enqueued::is_there)
    }
}

impl Enqueued {
    pub(super) fn is_there(&self) -> bool {
        self.taken.iter().any(|taken| !taken.is_void)
    }

    /// What is wrong with its coming to this client now, after these lives of the broker that ended in order.
    pub(super) fn fault_of_coming(
        &self,
        holder: &Arc<Holder>,
        count: u32,
        orderly: &BTreeSet<u64>,
    ) -> Option<&'static str> {
        if self.taken.iter().any(|taken| taken.end.is_final()) {
            return Some("came back after its end was confirmed");
        }
        if count as usize > 1 + self.taken.len() {
            return Some("counts more deliveries than there were");
        }
        let last = self.taken.iter().rfind(|taken| !taken.is_void)?;
        let same_life = last.holder.life == holder.life;
        match last.end {
            End::Returned if same_life && !last.holder.is_lost() => {
                Some("came back although the client that received it was not lost")
            }
            End::Heard if same_life || orderly.contains(&last.holder.life) => {
                Some("came back although the broker had heard that it was handled")
            }
            End::Held if same_life && last.holder.is_good() => Some(if Arc::ptr_eq(&last.holder, holder) {
                "came to its client a second time although it was not given back"
            } else {
                "is with two clients at once"
            }),
            _ => None,
        }
    }

    /// Whether somebody handled it, for all that is known.
    pub(super) fn may_be_handled(&self) -> bool {
        let last = self.taken.iter().rposition(|taken| !taken.is_void).unwrap_or_default();
        let may_be = |end| matches!(end, End::Settled | End::Settling | End::Returned | End::Heard);
        self.taken.iter().skip(last).any(|taken| may_be(taken.end))
    }

    /// Whether it may be among the dead letters, where its queue redelivers it so often.
    pub(super) fn may_be_dead(&self, limit: Option<u32>) -> bool {
        self.taken.iter().any(|taken| match taken.end {
            End::DeadLettering | End::DeadLettered => true,
            End::Settled => false,
            _ => limit.is_some_and(|limit| taken.count > limit),
        })
    }

    /// Whether the broker has confirmed that it is among the dead letters.
    pub(super) fn is_dead(&self) -> bool {
        self.taken.iter().any(|taken| taken.end == End::DeadLettered)
    }
}
