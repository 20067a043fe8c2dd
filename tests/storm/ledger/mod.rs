//! What the test did with each message and what it was told of it, as it happened. [`judging`] says at the end what of that
//! cannot be; what contradicts a promise at the moment it happens is noted here at once.

mod describing;
mod holder;
mod judging;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corriere::core::{Error, Message};

pub(crate) use holder::Holder;

use crate::plan::Queue;

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
    /// Which of the times.
    index: usize,
    /// Whether client and broker had been parted by then, so that it says nothing of the broker.
    pub(crate) is_void: bool,
}

/// What became of a message that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Nothing yet.
    Held,
    /// A receive that acknowledges by itself has returned it. Of that acknowledgement nothing is heard.
    Returned,
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

/// What is known of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// The broker did not answer, so the message may be there.
    Unanswered,
    Confirmed,
    Refused,
    /// As the transaction.
    Within(TransactionNumber),
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

#[derive(Debug)]
struct Transaction {
    fate: Fate,
    sends: Vec<Name>,
    taken: Vec<Taken>,
}

#[derive(Debug)]
struct HandOver {
    holder: Arc<Holder>,
    count: u32,
    is_void: bool,
    end: End,
    transaction: Option<TransactionNumber>,
    /// Which event of the ledger it was, and which its end.
    at: u64,
    ended_at: u64,
}

#[derive(Debug)]
struct Entry {
    queue: usize,
    is_persistent: bool,
    is_in_line: bool,
    sent: Sent,
    sender: Arc<Holder>,
    at: u64,
    taken: Vec<HandOver>,
    /// How often it was among the dead letters.
    dead_letters: u32,
}

/// What will be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub(crate) queue: usize,
    pub(crate) is_persistent: bool,
    pub(crate) transaction: Option<TransactionNumber>,
    /// Whether its producer sends one message after the other, so that they have an order.
    pub(crate) is_in_line: bool,
}

#[derive(Debug, Default)]
struct State {
    /// By producer and number.
    messages: Vec<Vec<Entry>>,
    transactions: Vec<Transaction>,
    violations: Vec<String>,
    events: u64,
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
        let state = State { messages: (0..producers).map(|_| Vec::new()).collect(), ..State::default() };
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

    /// A message of this producer's is about to be sent.
    pub(crate) fn sending(&self, producer: usize, sender: &Arc<Holder>, sending: Sending) -> Name {
        let Sending { queue, is_persistent, transaction, is_in_line } = sending;
        let mut state = self.state();
        let at = state.next_event();
        let sent = transaction.map_or(Sent::Unanswered, Sent::Within);
        let messages = &mut state.messages[producer];
        let name = Name { producer, number: messages.len() };
        let sender = Arc::clone(sender);
        messages.push(Entry {
            queue,
            is_persistent,
            is_in_line,
            sent,
            sender,
            at,
            taken: Vec::new(),
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
        state.entry(name).sent = match outcome {
            Ok(()) => Sent::Confirmed,
            Err(error) if lacks_room(error) => Sent::Refused,
            Err(_) => Sent::Unanswered,
        };
    }

    /// A message was handed to a client.
    pub(crate) fn handed_over(
        &self,
        holder: &Arc<Holder>,
        message: &Message,
        end: End,
        transaction: Option<TransactionNumber>,
    ) -> Taken {
        let name = Name::of(message);
        let mut state = self.state();
        let at = state.next_event();
        let is_void = !self.is_connected(holder);
        let count = message.headers().delivery_count;
        let entry = state.entry(name);
        let fault = if is_void { None } else { entry.fault_of_coming(holder, count) };
        let index = entry.taken.len();
        let holder = Arc::clone(holder);
        entry.taken.push(HandOver { holder, count, is_void, end, transaction, at, ended_at: at });
        let taken = Taken { name, index, is_void };
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

    fn end_one(&self, state: &mut State, Taken { name, index, .. }: Taken, end: End) {
        let now = state.next_event();
        let entry = state.entry(name);
        (entry.taken[index].end, entry.taken[index].ended_at) = (end, now);
        // What comes later is noted when it comes.
        if end.is_final() && entry.taken[index + 1..].iter().any(|later| !later.is_void) {
            self.note(state, name, "was handed over again before its end was confirmed");
        }
    }

    /// A transaction begins.
    pub(crate) fn begin(&self) -> TransactionNumber {
        let mut state = self.state();
        state.transactions.push(Transaction { fate: Fate::Open, sends: Vec::new(), taken: Vec::new() });
        TransactionNumber(state.transactions.len() - 1)
    }

    /// What becomes of a transaction, and with it of all that was received in it.
    pub(crate) fn end_transaction(&self, TransactionNumber(number): TransactionNumber, fate: Fate) {
        let mut state = self.state();
        state.transactions[number].fate = fate;
        let end = match fate {
            Fate::Open => End::Held,
            Fate::InDoubt => End::Settling,
            Fate::Committed => End::Settled,
            Fate::RolledBack => End::GivenBack,
        };
        for taken in state.transactions[number].taken.clone() {
            self.end_one(&mut state, taken, end);
        }
    }

    /// A message was found among the dead letters.
    pub(crate) fn found_dead(&self, message: &Message) {
        self.state().entry(Name::of(message)).dead_letters += 1;
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

impl State {
    fn next_event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    /// Over `tcp:` the send of a message that is not persistent is confirmed when it is written, so that it may arrive when its
    /// client is gone and there again.
    fn has_place(&self, Name { producer, number }: Name) -> bool {
        let entry = &self.messages[producer][number];
        let is_certain = match entry.sent {
            Sent::Within(TransactionNumber(number)) => self.transactions[number].fate == Fate::Committed,
            sent => sent == Sent::Confirmed && (entry.is_persistent || !entry.sender.is_lost()),
        };
        entry.is_in_line && is_certain
    }

    fn entry(&mut self, Name { producer, number }: Name) -> &mut Entry {
        &mut self.messages[producer][number]
    }
}

impl Entry {
    /// What is wrong with its coming to this client now.
    fn fault_of_coming(&self, holder: &Arc<Holder>, count: u32) -> Option<&'static str> {
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
            End::Held if same_life && last.holder.is_good() => Some(if Arc::ptr_eq(&last.holder, holder) {
                "came to its client a second time although it was not given back"
            } else {
                "is with two clients at once"
            }),
            _ => None,
        }
    }
}

/// Whether the broker had no room for what was sent, so that it is certainly not there.
pub(crate) fn lacks_room(error: &Error) -> bool {
    matches!(error, Error::Provider(error) if error.lacks_room())
}
