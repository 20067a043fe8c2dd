//! What the ledger must say when everything has come to rest.

use super::state::{Certainty, Enqueued, Entry, State, Transaction};
use super::{End, Fate, Ledger, Name};

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
    /// How many of those were from durable subscriptions.
    pub(crate) of_those_from_subscriptions: u64,
    /// How often what was handed over ended with confirmation, and how often with the broker's having heard of it.
    pub(crate) settled: u64,
    pub(crate) heard: u64,
    /// Hand-overs after one that had been acknowledged by itself, which was lost with its client or the broker.
    pub(crate) unheard: u64,
    pub(crate) subscriptions_removed: u64,
}

impl Ledger {
    /// All that cannot be, each with the history of its message.
    pub(crate) fn judge(&self) -> Vec<String> {
        let mut state = self.state();
        let names: Vec<Name> = state.names().collect();
        for name in names {
            if let Some(fault) = self.fault_at_rest(&state, state.entry(name)) {
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
            let entry = state.entry(*name);
            state.certainty(entry) == Certainty::Sent
                && entry.enqueued.iter().any(|enqueued| !enqueued.may_be_handled())
        });
        open.take(most).map(|name| format!("{name}:\n{}", self.history(&state, name))).collect()
    }

    pub(crate) fn summary(&self) -> Summary {
        let state = self.state();
        let mut summary = Summary::default();
        for entry in state.messages.iter().flatten() {
            *match state.certainty(entry) {
                Certainty::Sent => &mut summary.sent,
                Certainty::Perhaps => &mut summary.in_doubt,
                Certainty::NotSent => &mut summary.not_sent,
            } += 1;
            summary.dead_letters += entry.dead_letters as u64;
            for Enqueued { queue, taken } in &entry.enqueued {
                let handed_over = taken.len() as u64;
                summary.handed_over += handed_over;
                summary.of_those_from_subscriptions +=
                    if self.queues[*queue].topic.is_some() { handed_over } else { 0 };
                let ended = |end| taken.iter().filter(|taken| taken.end == end).count() as u64;
                summary.settled += ended(End::Settled);
                summary.heard += ended(End::Heard);
                let came_again = taken.windows(2).filter(|two| two[0].end == End::Returned);
                summary.unheard += came_again.count() as u64;
            }
        }
        summary.subscriptions_removed = state.subscribed.iter().map(|one| one.removals).sum();
        let in_doubt = state.transactions.iter().filter(|transaction| transaction.fate == Fate::InDoubt);
        for transaction in in_doubt {
            summary.commits_in_doubt += 1;
            summary.of_those_carried_out += u64::from(!state.signs(transaction).carried_out.is_empty());
        }
        summary
    }

    fn fault_at_rest(&self, state: &State, entry: &Entry) -> Option<&'static str> {
        let was_had = entry.enqueued.iter().any(|enqueued| !enqueued.taken.is_empty());
        match state.certainty(entry) {
            Certainty::NotSent if was_had || entry.dead_letters > 0 => {
                return Some("is there, although its send did not take place");
            }
            Certainty::NotSent => return None,
            // What was there in one subscription was in all of them.
            Certainty::Perhaps if !entry.is_there() => return None,
            Certainty::Perhaps | Certainty::Sent => {}
        }
        let may_be_dead =
            |enqueued: &Enqueued| enqueued.may_be_dead(self.queues[enqueued.queue].maximum_redeliveries);
        if entry.dead_letters > entry.enqueued.iter().filter(|enqueued| may_be_dead(enqueued)).count() {
            return Some("is among the dead letters more often than anybody sent it there");
        }
        // Without a store it lives as long as the broker, and on the wire as long as the connection.
        let may_vanish = self.life() != Some(entry.sender.life) || entry.sender.is_lost();
        if may_vanish && !entry.is_persistent {
            return None;
        }
        let dead = entry.enqueued.iter().filter(|enqueued| enqueued.is_dead()).count();
        if entry.dead_letters < dead && entry.is_persistent {
            return Some("is missing among the dead letters");
        }
        let owed = entry.enqueued.iter().filter(|enqueued| state.is_owed(entry, enqueued.queue));
        let unhandled: Vec<&Enqueued> = owed.filter(|enqueued| !enqueued.may_be_handled()).collect();
        // What is not persistent leaves no dead letter.
        let is_lost = entry.is_persistent && unhandled.len() > entry.dead_letters
            || unhandled.iter().any(|enqueued| !may_be_dead(enqueued));
        is_lost.then_some("is lost: nobody handled it, and it is nowhere")
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
}

/// What shows that a transaction was carried out, and what that it was not.
#[derive(Debug, Default)]
struct Signs {
    carried_out: Vec<Name>,
    not_carried_out: Vec<Name>,
}

impl State {
    fn signs(&self, transaction: &Transaction) -> Signs {
        let mut signs = Signs::default();
        for name in &transaction.sends {
            let entry = self.entry(*name);
            if entry.is_there() {
                signs.carried_out.push(*name);
            } else if self.is_sign_of_absence(entry) {
                signs.not_carried_out.push(*name);
            }
        }
        for taken in &transaction.taken {
            let name = taken.name;
            let entry = self.entry(name);
            let Some(enqueued) = entry.enqueued.get(taken.enqueued) else { continue };
            // What is not persistent vanishes by itself, and what is in a subscription with that.
            if taken.is_void || !entry.is_persistent || !self.is_owed(entry, enqueued.queue) {
                continue;
            }
            let later = &enqueued.taken[taken.index + 1..];
            if later.iter().any(|later| !later.is_void) {
                signs.not_carried_out.push(name);
            } else if later.is_empty() && entry.dead_letters == 0 {
                signs.carried_out.push(name);
            }
        }
        signs
    }

    /// Whether it shows something that a message was nowhere. What is not persistent vanishes by itself; and where somebody had it who
    /// was parted from the broker, it may have been handled.
    fn is_sign_of_absence(&self, entry: &Entry) -> bool {
        let is_owed = |enqueued: &Enqueued| self.is_owed(entry, enqueued.queue);
        entry.is_persistent
            && entry.enqueued.iter().all(|enqueued| enqueued.taken.is_empty())
            && entry.enqueued.iter().any(is_owed)
    }
}
