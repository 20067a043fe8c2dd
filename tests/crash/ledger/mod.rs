//! What the clients were told, and what may be there by that.
//!
//! It knows nothing of how a broker works: of every message it notes what was asked for it and what was confirmed, and
//! says from that where it may be after a crash. What is found there then is what it goes on from.

mod durable;
mod judging;
mod letter;
mod tally;
mod transaction;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use corriere_broker::machine::Ticket;
use corriere_core::provider::{Confirmation, Dispatch, ProviderError};
use corriere_core::{Destination, Message, MessageId, Timestamp};

pub(crate) use durable::{Kind, Origin};
pub(crate) use judging::{Branch, Findings, Found};
pub(crate) use letter::{Letter, Spot};
pub(crate) use transaction::{Name, Outcome};

use letter::Event;
use transaction::Transaction;

/// A rule that was broken.
#[derive(Clone, Debug)]
pub(crate) struct Violation(pub(crate) String);

pub(crate) type Judgement = Result<(), Violation>;

/// How the process ended, and how far the store had got by then, in steps of the broker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Certainty {
    /// Whether all that was written is there: the process was killed.
    pub(crate) process_only: bool,
    /// The store had confirmed that all up to this step was written.
    pub(crate) written: u64,
    /// The store had confirmed that all up to this step was synced.
    pub(crate) durable: u64,
}

impl Certainty {
    fn written_is_kept(&self) -> bool {
        self.process_only
    }

    /// Whether what the broker did in a step is still there.
    fn is_kept(&self, stamp: u64) -> bool {
        stamp <= self.durable || (self.process_only && stamp <= self.written)
    }
}

/// What came of the commands so far.
#[derive(Debug, Default)]
pub(crate) struct Heard(BTreeMap<Ticket, Result<Confirmation, ProviderError>>);

impl Heard {
    fn is_confirmed(&self, ticket: Ticket) -> bool {
        matches!(self.0.get(&ticket), Some(Ok(_)))
    }

    /// Whether what was asked was done; `None` when nobody can know.
    fn certainty_of(&self, ticket: Ticket) -> Option<bool> {
        match self.0.get(&ticket)? {
            Ok(Confirmation::Prepared { must_commit: false }) => Some(false),
            Ok(_) => Some(true),
            // What failed on the disk may be there.
            Err(ProviderError::Store { .. } | ProviderError::Lost | ProviderError::Stopped { .. }) => None,
            Err(ProviderError::RolledBack { reason, .. }) if reason.contains("store") => None,
            Err(_) => Some(false),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    letters: BTreeMap<MessageId, Letter>,
    transactions: BTreeMap<Name, Transaction>,
    heard: Heard,
    /// Messages that reached a queue: (arrived, acknowledged, dead-lettered for a failure).
    totals: BTreeMap<Destination, (u64, u64, u64)>,
    /// Copies of a message of a topic among its dead letters: those that are there for sure, and those that may be.
    topic_dead: BTreeMap<MessageId, (u64, Vec<Ticket>)>,
    /// The fewest redeliveries that a consumer of a queue allows; what was handed over more often may have died.
    patience: BTreeMap<Destination, u32>,
    /// Subscriptions that a topic ever had, each of which may have let a message die.
    topic_subscriptions: u64,
    durable: durable::Durable,
    /// Deliveries of the present step, whose sends have to be confirmed when it is over.
    seen: BTreeSet<MessageId>,
}

impl Ledger {
    pub(crate) fn letter(&self, id: &MessageId) -> Option<&Letter> {
        self.letters.get(id)
    }

    /// A client of this id sends a message.
    pub(crate) fn sent(
        &mut self,
        ticket: Ticket,
        message: &Arc<Message>,
        within: Option<&Name>,
        sender: Option<&'static str>,
    ) {
        let headers = message.headers();
        let (id, queue) = (
            headers.message_id.clone().expect("a message with an id"),
            headers.destination.clone().expect("a message with a destination"),
        );
        let prefix = if queue.is_topic() { "DLQ.topic." } else { "DLQ." };
        let dead = Destination::queue(&format!("{prefix}{}", queue.name())).expect("a name");
        let mut letter = Letter::new(Arc::clone(message), queue, dead);
        match within {
            Some(name) => {
                letter.events.push(Event::SentIn(name.clone()));
                let transaction = self.transactions.entry(name.clone()).or_default();
                transaction.sends.push(id.clone());
                transaction.is_persistent |= letter.is_persistent() && !letter.queue.is_topic();
                transaction.may_be_persistent |= letter.is_persistent();
            }
            None => letter.events.push(Event::Sent { ticket }),
        }
        if letter.queue.is_topic() && letter.is_persistent() {
            self.publish(&id, &letter, ticket, within, sender);
        }
        self.letters.insert(id, letter);
    }

    pub(crate) fn subscribed(&mut self, to: &Destination, patience: u32) {
        self.topic_subscriptions += u64::from(to.is_topic());
        let least = self.patience.entry(to.clone()).or_insert(patience);
        *least = patience.min(*least);
    }

    /// A consumer was given a message.
    pub(crate) fn delivered(&mut self, origin: &Origin, dispatch: &Dispatch) -> Judgement {
        let from = &origin.destination;
        let id = dispatch.message.headers().message_id.clone().expect("a message with an id");
        let Some(letter) = self.letters.get_mut(&id) else {
            return Err(Violation(format!("{id} was delivered and never sent")));
        };
        if letter.queue.is_topic() && from.is_topic() {
            return self.delivered_durably(origin, &id, dispatch);
        }
        if letter.queue.is_topic() {
            return Ok(());
        }
        let spot = letter.spot(from).ok_or_else(|| Violation(format!("{id} was delivered from {from}")))?;
        letter.check(spot, &dispatch.message)?;
        if letter.is_persistent() {
            let handed_over = letter.deliveries(spot).handed_over;
            if dispatch.delivery_count > handed_over + 1 {
                return Err(Violation(format!(
                    "{id} on {from} has delivery count {} and was handed over {handed_over} times before",
                    dispatch.delivery_count
                )));
            }
            if let Some(Event::SentIn(name)) = letter.events.first()
                && let Some(transaction) = self.transactions.get_mut(name)
            {
                transaction.was_seen = true;
            }
            letter.events.push(Event::Seen(spot));
            if spot == Spot::Queue {
                self.seen.insert(id);
            }
        }
        Ok(())
    }

    /// A step is over, with all its confirmations: nothing is delivered before it is durable.
    pub(crate) fn step_is_over(&mut self) -> Judgement {
        for id in std::mem::take(&mut self.seen) {
            let letter = &self.letters[&id];
            if let Some(Event::Sent { ticket }) = letter.events.first()
                && !self.heard.is_confirmed(*ticket)
            {
                return Err(Violation(format!("{id} was delivered before its send was confirmed")));
            }
        }
        Ok(())
    }

    /// The application was given a message.
    pub(crate) fn handed_over(&mut self, from: &Origin, id: &MessageId) {
        let Some((letter, spot)) = self.at(from, id) else { return };
        letter.deliveries(spot).handed_over += 1;
    }

    /// The broker was told in a step that a delivery failed, or saw it by itself.
    pub(crate) fn failed(&mut self, from: &Origin, id: &MessageId, stamp: u64, count: u32) {
        let Some((letter, spot)) = self.at(from, id) else { return };
        letter.deliveries(spot).recorded.push((stamp, count));
    }

    /// The attempts of a dead process say that this many deliveries failed.
    pub(crate) fn attempted(&mut self, from: &Origin, id: &MessageId, count: u32) {
        let Some((letter, spot)) = self.at(from, id) else { return };
        let deliveries = letter.deliveries(spot);
        deliveries.floor = deliveries.floor.max(count);
    }

    pub(crate) fn settled(
        &mut self,
        from: &Origin,
        ids: &[MessageId],
        ticket: Ticket,
        stamp: u64,
        within: Option<&Name>,
    ) {
        for id in ids {
            if from.durable.is_some() {
                self.settled_durably(from, id, ticket, stamp, within);
                continue;
            }
            let Some(letter) = self.letters.get_mut(id).filter(|letter| letter.is_persistent()) else {
                continue;
            };
            if letter.queue.is_topic() {
                // Only the last consumers of all take these.
                let known = &mut self.topic_dead.entry(id.clone()).or_default().0;
                *known = known.saturating_sub(1);
                continue;
            }
            match within {
                Some(name) => {
                    letter.events.push(Event::SettledIn(name.clone()));
                    let transaction = self.transactions.entry(name.clone()).or_default();
                    transaction.settled.push(id.clone());
                    transaction.is_persistent = true;
                }
                None => letter.events.push(Event::Settled { ticket, stamp }),
            }
        }
    }

    pub(crate) fn condemned(&mut self, origin: &Origin, id: &MessageId, ticket: Ticket) {
        self.condemned_durably(origin, id, ticket);
        let from = &origin.destination;
        let Some(letter) = self.letters.get_mut(id).filter(|letter| letter.is_persistent()) else { return };
        if letter.queue.is_topic() && from.is_topic() {
            self.topic_dead.entry(id.clone()).or_default().1.push(ticket);
        } else if letter.queue == *from {
            letter.events.push(Event::Condemned { ticket });
        }
    }

    pub(crate) fn prepared(&mut self, name: &Name, ticket: Ticket) {
        self.transactions.entry(name.clone()).or_default().prepare = Some(ticket);
    }

    pub(crate) fn committed(&mut self, name: &Name, ticket: Ticket) {
        self.transactions.entry(name.clone()).or_default().commit = Some(ticket);
    }

    pub(crate) fn rolled_back(&mut self, name: &Name, ticket: Ticket) {
        self.transactions.entry(name.clone()).or_default().rollback = Some(ticket);
    }

    pub(crate) fn heard(
        &mut self,
        ticket: Ticket,
        outcome: Result<Confirmation, ProviderError>,
    ) -> Judgement {
        match self.heard.0.insert(ticket, outcome) {
            None => Ok(()),
            Some(before) => Err(Violation(format!("{ticket:?} was answered twice, first with {before:?}"))),
        }
    }

    pub(crate) fn outcome(&self, ticket: Ticket) -> Option<&Result<Confirmation, ProviderError>> {
        self.heard.0.get(&ticket)
    }

    /// What a message may be found at, for the last check of all.
    pub(crate) fn settled_spots(&self) -> impl Iterator<Item = (&MessageId, &Letter, Spot)> {
        self.letters.iter().map(|(id, letter)| (id, letter, letter.base))
    }

    fn outcome_of(&self, name: &Name, certainty: &Certainty) -> Vec<Outcome> {
        self.transactions.get(name).map_or_else(
            || vec![Outcome::Nothing],
            |transaction| transaction.outcomes(&self.heard, certainty),
        )
    }

    /// Where a message may be, given what became of some transactions.
    fn spots(
        &self,
        letter: &Letter,
        now: Timestamp,
        certainty: &Certainty,
        decided: &BTreeMap<Name, Outcome>,
    ) -> tally::Spots {
        if let Some(name) = letter.transactions().find(|name| !decided.contains_key(*name)) {
            let any = self.outcome_of(name, certainty).into_iter().map(|outcome| {
                let mut decided = decided.clone();
                decided.insert(name.clone(), outcome);
                self.spots(letter, now, certainty, &decided)
            });
            return any.fold(tally::Spots::none(), tally::Spots::or);
        }
        let patience = self.patience.get(&letter.queue).copied();
        letter.spots(now, patience, &self.heard, certainty, |name| decided[name])
    }
}

impl Letter {
    /// Which of its places a destination is.
    fn spot(&self, place: &Destination) -> Option<Spot> {
        if *place == self.queue {
            Some(Spot::Queue)
        } else if *place == self.dead {
            Some(Spot::Dead)
        } else {
            None
        }
    }

    /// Whether what was found there is what was sent.
    fn check(&mut self, spot: Spot, found: &Message) -> Judgement {
        let sent = &*self.message;
        let id = sent.headers().message_id.as_ref().expect("a message with an id");
        if spot == Spot::Queue {
            return if found == sent {
                Ok(())
            } else {
                Err(Violation(format!("{id} came back as {found:?}, not as {sent:?}")))
            };
        }
        let same = found.body() == sent.body()
            && sent.properties().iter().all(|(name, value)| found.properties().get(name) == Some(value));
        if !same {
            return Err(Violation(format!("{id} became the dead letter {found:?}; it was {sent:?}")));
        }
        let text = |name: &str| found.property::<String>(name).ok().flatten().unwrap_or_default();
        let (cause, source) = (text("dlqDeliveryFailureCause"), text("dlqOriginalDestination"));
        if cause.is_empty() || source != self.queue.to_string() {
            return Err(Violation(format!("{id} died of `{cause}` on `{source}`: {found:?}")));
        }
        self.cause = Some(cause.into());
        Ok(())
    }
}
