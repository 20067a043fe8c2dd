//! What the ledger must say when everything has come to rest.

use std::collections::BTreeMap;

use super::{End, Entry, Fate, Ledger, Name, Sent, State, Transaction, TransactionNumber};

/// What is certain of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Certainty {
    Sent,
    Perhaps,
    NotSent,
}

/// What a storm came to.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// Messages by what is known of their sends.
    pub(crate) sent: u64,
    pub(crate) in_doubt: u64,
    pub(crate) not_sent: u64,
    /// Transactions whose commit was not answered, and how many of those were carried out.
    pub(crate) commits_in_doubt: u64,
    pub(crate) of_those_carried_out: u64,
    pub(crate) dead_letters: u64,
    pub(crate) handed_over: u64,
    /// How often what was handed over ended with confirmation.
    pub(crate) settled: u64,
}

impl Ledger {
    /// All that cannot be, each with the history of its message.
    pub(crate) fn judge(&self) -> Vec<String> {
        let mut state = self.state();
        let names: Vec<Name> = state.names().collect();
        for name in names {
            let entry = &state.messages[name.producer][name.number];
            if let Some(fault) = self.fault_at_rest(&state, entry) {
                self.note(&mut state, name, fault);
            }
        }
        for number in 0..state.transactions.len() {
            self.judge_doubt(&mut state, number);
        }
        self.judge_order(&mut state);
        std::mem::take(&mut state.violations)
    }

    /// The messages that are not handled as far as the ledger knows, for the report of a storm that does not come to rest.
    pub(crate) fn unhandled(&self, most: usize) -> Vec<String> {
        let state = self.state();
        let open = state.names().filter(|name| {
            let entry = &state.messages[name.producer][name.number];
            state.certainty(entry) == Certainty::Sent && !entry.may_be_handled()
        });
        open.take(most).map(|name| format!("{name}:\n{}", self.history(&state, name))).collect()
    }

    pub(crate) fn summary(&self) -> Summary {
        let state = self.state();
        let mut summary = Summary::default();
        for name in state.names() {
            let entry = &state.messages[name.producer][name.number];
            *match state.certainty(entry) {
                Certainty::Sent => &mut summary.sent,
                Certainty::Perhaps => &mut summary.in_doubt,
                Certainty::NotSent => &mut summary.not_sent,
            } += 1;
            summary.dead_letters += u64::from(entry.dead_letters);
            summary.handed_over += entry.taken.len() as u64;
            summary.settled += entry.taken.iter().filter(|taken| taken.end == End::Settled).count() as u64;
        }
        let in_doubt = state.transactions.iter().filter(|transaction| transaction.fate == Fate::InDoubt);
        for transaction in in_doubt {
            summary.commits_in_doubt += 1;
            summary.of_those_carried_out += u64::from(!state.signs(transaction).carried_out.is_empty());
        }
        summary
    }

    fn fault_at_rest(&self, state: &State, entry: &Entry) -> Option<&'static str> {
        let was_there = !entry.taken.is_empty() || entry.dead_letters > 0;
        match state.certainty(entry) {
            Certainty::NotSent if was_there => return Some("is there, although its send did not take place"),
            Certainty::NotSent => return None,
            Certainty::Perhaps if !was_there => return None,
            Certainty::Perhaps | Certainty::Sent => {}
        }
        if entry.dead_letters > 1 {
            return Some("is more than once among the dead letters");
        }
        let has_end = |end| entry.taken.iter().any(|taken| taken.end == end);
        if entry.dead_letters == 1 && !has_end(End::DeadLettered) && !has_end(End::DeadLettering) {
            return Some("is among the dead letters although nobody sent it there");
        }
        // Without a store it lives as long as the broker, and on the wire as long as the connection.
        let may_vanish = self.life() != Some(entry.sender.life) || entry.sender.is_lost();
        if may_vanish && !entry.is_persistent {
            return None;
        }
        if entry.dead_letters == 0 && has_end(End::DeadLettered) && entry.is_persistent {
            return Some("is missing among the dead letters");
        }
        (!entry.may_be_handled()).then_some("is lost: nobody handled it, and it is nowhere")
    }

    /// A commit that was not answered was carried out whole or not at all.
    fn judge_doubt(&self, state: &mut State, number: usize) {
        let transaction = &state.transactions[number];
        if transaction.fate != Fate::InDoubt {
            return;
        }
        let signs = state.signs(transaction);
        if signs.carried_out.is_empty() || signs.not_carried_out.is_empty() {
            return;
        }
        let histories = |names: &[Name]| {
            let all = names.iter().map(|name| format!("  {name}\n{}", self.history(state, *name)));
            all.collect::<Vec<_>>().join("\n")
        };
        let text = format!(
            "transaction {number} was carried out in part.\n It was, by what happened to\n{}\n and it was not, by\n{}",
            histories(&signs.carried_out),
            histories(&signs.not_carried_out)
        );
        state.violations.push(text);
    }

    /// Decision 5: a queue with one consumer gives it each producer's messages in the order of their sends, each at its
    /// first delivery; what comes again is elsewhere.
    fn judge_order(&self, state: &mut State) {
        let mut last = BTreeMap::<(usize, usize), (u64, Name)>::new();
        let mut faults = Vec::new();
        for name in state.names() {
            let entry = &state.messages[name.producer][name.number];
            // A send that was not answered has no place that anybody could know, and what a client took that was parted from the
            // broker by then is no delivery of the broker's that others could be held against.
            let Some(first) = entry.taken.first().filter(|first| !first.is_void) else { continue };
            if !self.queues[entry.queue].is_lone || !state.has_place(name) {
                continue;
            }
            match last.get(&(entry.queue, name.producer)) {
                Some((before, earlier)) if first.at < *before => faults.push((*earlier, name)),
                _ => drop(last.insert((entry.queue, name.producer), (first.at, name))),
            }
        }
        for (earlier, later) in faults {
            let text = format!(
                "{later} overtook {earlier} on a queue with one consumer:\n{}\n{}",
                self.history(state, later),
                self.history(state, earlier)
            );
            state.violations.push(text);
        }
    }
}

/// What shows that a transaction was carried out, and what that it was not.
#[derive(Debug, Default)]
struct Signs {
    carried_out: Vec<Name>,
    not_carried_out: Vec<Name>,
}

impl State {
    fn names(&self) -> impl Iterator<Item = Name> {
        let each = self.messages.iter().enumerate();
        each.flat_map(|(producer, messages)| (0..messages.len()).map(move |number| Name { producer, number }))
    }

    fn certainty(&self, entry: &Entry) -> Certainty {
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

    /// Only by persistent messages, as the others vanish by themselves.
    fn signs(&self, transaction: &Transaction) -> Signs {
        let mut signs = Signs::default();
        for name in &transaction.sends {
            let entry = &self.messages[name.producer][name.number];
            let is_there = !entry.taken.is_empty() || entry.dead_letters > 0;
            if is_there { &mut signs.carried_out } else { &mut signs.not_carried_out }.push(*name);
        }
        for taken in &transaction.taken {
            let name = taken.name;
            let entry = &self.messages[name.producer][name.number];
            if taken.is_void || !entry.is_persistent {
                continue;
            }
            let later = &entry.taken[taken.index + 1..];
            if later.iter().any(|later| !later.is_void) {
                signs.not_carried_out.push(name);
            } else if later.is_empty() && entry.dead_letters == 0 {
                signs.carried_out.push(name);
            }
        }
        signs
    }
}

impl Entry {
    /// Whether somebody handled it, for all that is known.
    fn may_be_handled(&self) -> bool {
        let last = self.taken.iter().rposition(|taken| !taken.is_void).unwrap_or_default();
        let may_be = |end| matches!(end, End::Settled | End::Settling | End::Returned);
        self.dead_letters > 0 || self.taken.iter().skip(last).any(|taken| may_be(taken.end))
    }
}
