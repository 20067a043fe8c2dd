//! What the test did with each message and what it was told of it, as it happened. [`judging`] and [`order`] say at the end what of
//! that cannot be; what contradicts a promise at the moment it happens is noted here at once.

mod describing;
mod holder;
mod judging;
mod order;
mod state;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corriere::core::{Error, Message};

pub(crate) use holder::Holder;

use crate::plan::{Queue, Target};
use state::{Enqueued, Entry, HandOver, Sent, State, Subscribed, Transaction};

/// A message: who sent it and its number there. Its text begins with both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name {
    pub(crate) producer: usize,
    pub(crate) number: usize,
}

impl Name {
    /// The name of a message of the storm.
    pub(crate) fn of(message: &Message) -> Self {
        let text = message.as_text().unwrap().unwrap();
        let mut words = text.split(' ').map(|word| word.parse().unwrap());
        Self { producer: words.next().unwrap(), number: words.next().unwrap() }
    }
}

/// A transaction of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransactionNumber(usize);

/// One time that a message was handed to a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) name: Name,
    /// From which of the queues that it went to, and which of the times.
    enqueued: usize,
    index: usize,
    /// Whether client and broker had been parted by then, so that it says nothing of the broker.
    pub(crate) is_void: bool,
    /// Whether its queue redelivers it no more if this fails.
    pub(crate) is_last: bool,
}

/// What became of a message that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Nothing yet.
    Held,
    /// A receive that acknowledges by itself has returned it. Of that acknowledgement nothing is heard, and it may have been put off.
    Returned,
    /// As before, and the broker has heard of it in this life.
    Heard,
    /// Its client wants it delivered again.
    GivenBack,
    /// The broker was told that it is handled, and did not confirm that yet.
    Settling,
    /// The broker has confirmed that it is handled.
    Settled,
    /// It is to go to the dead letters, which the broker did not confirm yet.
    DeadLettering,
    /// The broker has confirmed that it is among the dead letters.
    DeadLettered,
}

impl End {
    /// Whether the message must not be seen again.
    fn is_final(self) -> bool {
        matches!(self, Self::Settled | Self::DeadLettered)
    }
}

/// How a transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nobody has asked for its commit.
    Open,
    /// A commit that was asked for and not answered.
    InDoubt,
    Committed,
    RolledBack,
}

/// What will be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub(crate) to: Target,
    pub(crate) is_persistent: bool,
    pub(crate) transaction: Option<TransactionNumber>,
    /// Whether its producer sends one message after the other, so that they have an order.
    pub(crate) is_in_line: bool,
}

/// All messages of a storm.
#[derive(Debug)]
pub(crate) struct Ledger {
    queues: Vec<Queue>,
    /// Twice the number of the broker's life, and one more between two of them.
    life: AtomicU64,
    state: Mutex<State>,
}

impl Ledger {
    pub(crate) fn new(queues: Vec<Queue>, producers: usize) -> Self {
        let state = State::new(&queues, producers);
        Self { queues, life: AtomicU64::new(2), state: Mutex::new(state) }
    }

    /// The number of the broker's life; `None` between two of them.
    pub(crate) fn life(&self) -> Option<u64> {
        let life = self.life.load(Ordering::SeqCst);
        life.is_multiple_of(2).then_some(life / 2)
    }

    /// To be called before a life of the broker ends, however it does, and once the next has begun.
    pub(crate) fn turn(&self) {
        self.life.fetch_add(1, Ordering::SeqCst);
    }

    /// To be called instead before a life ends in order, so that all is kept that the broker has heard of.
    pub(crate) fn turn_in_order(&self) {
        self.state().orderly.extend(self.life());
        self.turn();
    }

    /// Whether its client and the broker have to do with each other still.
    pub(crate) fn is_connected(&self, holder: &Holder) -> bool {
        self.life() == Some(holder.life) && holder.is_good()
    }

    pub(crate) fn violation(&self, text: String) {
        self.state().violations.push(text);
    }

    /// Notes what is wrong with a message, with its history and those of others that it has to do with.
    pub(crate) fn fault(&self, name: Name, fault: &str, others: &[Name]) {
        let mut state = self.state();
        let others = others.iter().map(|other| format!("\n  {other}\n{}", self.history(&state, *other)));
        let text = format!("{name} {fault}:\n{}{}", self.history(&state, name), others.collect::<String>());
        state.violations.push(text);
    }

    /// The broker has confirmed that a durable subscription is there: it gets all that is sent from now on.
    pub(crate) fn subscribed(&self, queue: usize) {
        let mut state = self.state();
        let now = state.next_event();
        state.subscribed[queue].owed_from.get_or_insert(now);
    }

    /// A durable subscription is about to be removed with all that waits in it.
    pub(crate) fn unsubscribing(&self, queue: usize) {
        let mut state = self.state();
        let now = state.next_event();
        state.subscribed[queue] = Subscribed { owed_from: None, removing_at: now, ..state.subscribed[queue] };
    }

    /// The broker has confirmed that a durable subscription is removed.
    pub(crate) fn unsubscribed(&self, queue: usize) {
        let subscribed = &mut self.state().subscribed[queue];
        subscribed.removed_at = subscribed.removing_at;
        subscribed.removals += 1;
    }

    /// A message of this producer's is about to be sent.
    pub(crate) fn sending(&self, producer: usize, sender: &Arc<Holder>, sending: Sending) -> Name {
        let Sending { to, is_persistent, transaction, is_in_line } = sending;
        let each = self.queues.iter().enumerate();
        let reached = each.filter(|(number, queue)| queue.is_reached(*number, to));
        let enqueued = reached.map(|(queue, _)| Enqueued { queue, taken: Vec::new() }).collect();
        let mut state = self.state();
        let at = state.next_event();
        let sent = transaction.map_or(Sent::Unanswered, Sent::Within);
        let messages = &mut state.messages[producer];
        let name = Name { producer, number: messages.len() };
        let sender = Arc::clone(sender);
        messages.push(Entry {
            to,
            is_persistent,
            is_in_line,
            sent,
            sender,
            at,
            answered_at: at,
            enqueued,
            dead_letters: 0,
        });
        if let Some(TransactionNumber(number)) = transaction {
            state.transactions[number].sends.push(name);
        }
        name
    }

    /// What a send outside of a transaction came to.
    pub(crate) fn sent(&self, name: Name, outcome: Result<(), &Error>) {
        let mut state = self.state();
        let now = state.next_event();
        let entry = state.entry_mut(name);
        entry.answered_at = now;
        entry.sent = match outcome {
            Ok(()) => Sent::Confirmed,
            Err(error) if lacks_room(error) => Sent::Refused,
            Err(_) => Sent::Unanswered,
        };
    }

    /// A message was handed to a client from this queue.
    pub(crate) fn handed_over(
        &self,
        holder: &Arc<Holder>,
        queue: usize,
        message: &Message,
        end: End,
        transaction: Option<TransactionNumber>,
    ) -> Taken {
        let (name, count) = (Name::of(message), message.headers().delivery_count);
        let limit = self.queues[queue].maximum_redeliveries;
        let mut state = self.state();
        let at = state.next_event();
        let is_void = !self.is_connected(holder);
        let all = &state.entry(name).enqueued;
        let Some(number) = all.iter().position(|enqueued| enqueued.queue == queue) else {
            let text = format!("{name} came from {}, where it was not sent", self.queues[queue].name);
            state.violations.push(text);
            return Taken { name, enqueued: 0, index: 0, is_void: true, is_last: false };
        };
        let fault = match limit {
            _ if is_void => None,
            _ if state.is_removed(name, queue) => {
                Some("came back from a subscription that was removed with it")
            }
            Some(limit) if count > limit + 1 => Some("was redelivered more often than its queue allows"),
            _ => all[number].fault_of_coming(holder, count, &state.orderly),
        };
        let enqueued = &mut state.entry_mut(name).enqueued[number];
        let index = enqueued.taken.len();
        let holder = Arc::clone(holder);
        enqueued.taken.push(HandOver { holder, count, is_void, end, transaction, at, ended_at: at });
        let is_last = limit.is_some_and(|limit| count > limit);
        let taken = Taken { name, enqueued: number, index, is_void, is_last };
        if let Some(TransactionNumber(number)) = transaction {
            state.transactions[number].taken.push(taken);
        }
        if let Some(fault) = fault {
            self.note(&mut state, name, fault);
        }
        taken
    }

    /// What becomes of messages that were handed over.
    pub(crate) fn end(&self, all: &[Taken], end: End) {
        let mut state = self.state();
        for taken in all {
            self.end_one(&mut state, *taken, end);
        }
    }

    /// The broker has confirmed that messages were given back, and counts that: those that it redelivers no more are dead letters.
    pub(crate) fn given_back(&self, all: &[Taken]) {
        let mut state = self.state();
        for taken in all.iter().filter(|taken| taken.is_last) {
            self.end_one(&mut state, *taken, End::DeadLettered);
        }
    }

    fn end_one(&self, state: &mut State, Taken { name, enqueued, index, .. }: Taken, end: End) {
        let now = state.next_event();
        let Some(enqueued) = state.entry_mut(name).enqueued.get_mut(enqueued) else { return };
        let Some(taken) = enqueued.taken.get_mut(index) else { return };
        (taken.end, taken.ended_at) = (end, now);
        // What comes later is noted when it comes.
        if end.is_final() && enqueued.taken[index + 1..].iter().any(|later| !later.is_void) {
            self.note(state, name, "was handed over again before its end was confirmed");
        }
    }

    /// A transaction begins.
    pub(crate) fn begin(&self) -> TransactionNumber {
        let mut state = self.state();
        let (sends, taken) = (Vec::new(), Vec::new());
        state.transactions.push(Transaction { fate: Fate::Open, sends, taken, ended_at: 0 });
        TransactionNumber(state.transactions.len() - 1)
    }

    /// What becomes of a transaction, and with it of all that was received in it.
    pub(crate) fn end_transaction(&self, TransactionNumber(number): TransactionNumber, fate: Fate) {
        let mut state = self.state();
        let now = state.next_event();
        let transaction = &mut state.transactions[number];
        (transaction.fate, transaction.ended_at) = (fate, now);
        let end = match fate {
            Fate::Open => End::Held,
            Fate::InDoubt => End::Settling,
            Fate::Committed => End::Settled,
            Fate::RolledBack => End::GivenBack,
        };
        for taken in transaction.taken.clone() {
            self.end_one(&mut state, taken, end);
        }
    }

    /// A message was found among the dead letters.
    pub(crate) fn found_dead(&self, message: &Message) {
        self.state().entry_mut(Name::of(message)).dead_letters += 1;
    }

    /// Whether a message has its place among those of its producer for certain.
    pub(crate) fn has_place(&self, name: Name) -> bool {
        self.state().has_place(name)
    }

    fn note(&self, state: &mut State, name: Name, fault: &str) {
        let text = format!("{name} {fault}:\n{}", self.history(state, name));
        state.violations.push(text);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the broker had no room for what was sent, so that it is certainly not there.
pub(crate) fn lacks_room(error: &Error) -> bool {
    matches!(error, Error::Provider(error) if error.lacks_room())
}
