//! What is known of durable subscriptions, and of the copies of messages that go to each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use corriere_broker::machine::Ticket;
use corriere_broker::store::SubscriptionName;
use corriere_core::provider::Dispatch;
use corriere_core::{Destination, MessageId, Timestamp};

use super::letter::Event;
use super::{Certainty, Findings, Heard, Judgement, Ledger, Letter, Name, Outcome, Spot, Violation};

/// Where a consumer gets its messages from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) destination: Destination,
    /// The durable subscription and its life: it may end, and another of its name be made.
    pub(crate) durable: Option<(SubscriptionName, u64)>,
}

/// What a durable subscription is to. With another one it is another subscription of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) topic: Destination,
    pub(crate) no_local: bool,
}

/// A message as one subscription has it, in one of its lives.
pub(super) type Copy = (MessageId, SubscriptionName, u64);

/// What was asked last for a subscription.
#[derive(Clone, Debug)]
enum Asked {
    Nothing,
    Made(Ticket),
    /// Another one in its place, in this life.
    MadeAnew(Ticket, u64, Kind),
    Removed(Ticket),
}

/// The subscriptions of one name.
#[derive(Clone, Debug)]
struct Life {
    number: u64,
    kind: Kind,
    /// Whether it was there for sure before what was asked last.
    is_there: bool,
    asked: Asked,
}

#[derive(Debug, Default)]
pub(super) struct Durable {
    lives: BTreeMap<SubscriptionName, Life>,
    copies: BTreeMap<Copy, Held>,
    /// Sends that may wait for room, and only then be to those that are there, by whom.
    waiting: Vec<(Ticket, MessageId, Option<Name>, Option<&'static str>)>,
    last_life: u64,
    /// Subscriptions that were made anew, and copies that were left out as the subscription's own client sent them.
    made_anew: u64,
    left_out: u64,
}

/// A copy.
#[derive(Debug)]
struct Held {
    letter: Letter,
    /// Whether its subscription was there for sure when it was sent.
    is_due: bool,
}

impl Origin {
    pub(crate) fn place(destination: Destination) -> Self {
        Self { destination, durable: None }
    }

    pub(crate) fn name(&self) -> Option<Arc<str>> {
        self.durable.as_ref().map(|(name, _)| Arc::clone(&name.name))
    }

    /// Whether what is there waits for its consumers.
    pub(crate) fn is_lasting(&self) -> bool {
        self.durable.is_some() || !self.destination.is_topic()
    }

    fn copy(&self, id: &MessageId) -> Option<Copy> {
        self.durable.clone().map(|(name, life)| (id.clone(), name, life))
    }
}

impl Life {
    /// Whether it is there, or another one in its place; `None` when nobody can know.
    fn is_there(&self, heard: &Heard) -> Option<bool> {
        let (ticket, after) = match self.asked {
            Asked::Nothing | Asked::MadeAnew(..) => return Some(self.is_there),
            Asked::Made(ticket) => (ticket, true),
            Asked::Removed(ticket) => (ticket, false),
        };
        match heard.certainty_of(ticket) {
            Some(true) => Some(after),
            Some(false) => Some(self.is_there),
            None if self.is_there == after => Some(after),
            None => None,
        }
    }

    /// The lives in which it may be there, what it is to in each, and whether it is for sure.
    fn may_be(&self, heard: &Heard) -> Vec<(u64, &Kind, bool)> {
        let Asked::MadeAnew(ticket, number, kind) = &self.asked else {
            let is_there = self.is_there(heard);
            let there = (self.number, &self.kind, is_there == Some(true));
            return if is_there == Some(false) { Vec::new() } else { vec![there] };
        };
        let is_made = heard.certainty_of(*ticket);
        let before = (self.number, &self.kind, is_made == Some(false));
        let anew = (*number, kind, is_made == Some(true));
        [before, anew].into_iter().filter(|(.., is_certain)| *is_certain || is_made.is_none()).collect()
    }
}

impl Kind {
    /// Whether it is to get what is sent there by a client of this id.
    fn gets(&self, topic: &Destination, name: &SubscriptionName, sender: Option<&str>) -> bool {
        self.topic == *topic && !(self.no_local && Some(&*name.client_id) == sender)
    }
}

impl Ledger {
    /// What a subscription is to.
    pub(crate) fn kind(&self, name: &SubscriptionName) -> Option<Kind> {
        self.durable.lives.get(name).map(|life| match &life.asked {
            Asked::MadeAnew(_, _, kind) => kind.clone(),
            Asked::Nothing | Asked::Made(_) | Asked::Removed(_) => life.kind.clone(),
        })
    }

    /// How many subscriptions were made anew, and how many copies left out as the subscription's own client sent them.
    pub(crate) fn durable_reach(&self) -> (u64, u64) {
        (self.durable.made_anew, self.durable.left_out)
    }

    /// A client asks for a subscription; says in which life it gets it, and nothing if its client has no answer yet to what it
    /// asked before.
    pub(crate) fn made(&mut self, name: &SubscriptionName, kind: &Kind, ticket: Ticket) -> Option<u64> {
        let is_there = self.settle_life(name)?;
        if let Some(life) = self.durable.lives.get_mut(name).filter(|life| is_there && life.kind == *kind) {
            life.asked = Asked::Made(ticket);
            return Some(life.number);
        }
        self.durable.last_life += 1;
        let number = self.durable.last_life;
        match self.durable.lives.get_mut(name).filter(|_| is_there) {
            Some(life) => life.asked = Asked::MadeAnew(ticket, number, kind.clone()),
            None => {
                let (kind, asked) = (kind.clone(), Asked::Made(ticket));
                self.durable.lives.insert(name.clone(), Life { number, kind, is_there: false, asked });
            }
        }
        self.share_what_waits(name, kind, number);
        Some(number)
    }

    /// A new subscription may get what was sent before and has no answer yet.
    fn share_what_waits(&mut self, name: &SubscriptionName, kind: &Kind, life: u64) {
        self.durable.waiting.retain(|(ticket, ..)| !self.heard.0.contains_key(ticket));
        for (_, id, within, sender) in &self.durable.waiting {
            let copy = (id.clone(), name.clone(), life);
            let mut letter = self.letters[id].clone();
            if !kind.gets(&letter.queue, name, *sender) {
                continue;
            }
            letter.events.truncate(1);
            if let Some(within) = within {
                self.transactions.entry(within.clone()).or_default().copies.push(copy.clone());
            }
            self.durable.copies.insert(copy, Held { letter, is_due: false });
        }
    }

    /// A client asks for its end; says whether it may, as for its making.
    pub(crate) fn removed(&mut self, name: &SubscriptionName, ticket: Ticket) -> bool {
        let is_known = self.settle_life(name).is_some();
        if let Some(life) = self.durable.lives.get_mut(name).filter(|_| is_known) {
            life.asked = Asked::Removed(ticket);
        }
        is_known
    }

    /// Goes on from what is certain about a subscription, and says whether it is there.
    fn settle_life(&mut self, name: &SubscriptionName) -> Option<bool> {
        let Some(life) = self.durable.lives.get_mut(name) else { return Some(false) };
        match life.asked.clone() {
            Asked::Nothing => {}
            Asked::Made(ticket) | Asked::Removed(ticket) => drop(self.heard.0.get(&ticket)?),
            Asked::MadeAnew(ticket, number, kind) => {
                if self.heard.certainty_of(ticket)? {
                    (life.number, life.kind) = (number, kind);
                    self.durable.made_anew += 1;
                }
            }
        }
        (life.is_there, life.asked) = (life.is_there(&self.heard)?, Asked::Nothing);
        Some(life.is_there)
    }

    /// A message is sent to all that are there, by a client of this id.
    pub(super) fn publish(
        &mut self,
        id: &MessageId,
        letter: &Letter,
        ticket: Ticket,
        within: Option<&Name>,
        sender: Option<&'static str>,
    ) {
        self.durable.waiting.push((ticket, id.clone(), within.cloned(), sender));
        for (name, life) in &self.durable.lives {
            for (number, kind, is_due) in life.may_be(&self.heard) {
                if !kind.gets(&letter.queue, name, sender) {
                    self.durable.left_out += u64::from(kind.topic == letter.queue);
                    continue;
                }
                let copy = (id.clone(), name.clone(), number);
                if let Some(within) = within {
                    self.transactions.entry(within.clone()).or_default().copies.push(copy.clone());
                }
                self.durable.copies.insert(copy, Held { letter: letter.clone(), is_due });
            }
        }
    }

    /// The message, where a consumer gets it.
    pub(super) fn at(&mut self, from: &Origin, id: &MessageId) -> Option<(&mut Letter, Spot)> {
        if let Some(copy) = from.copy(id) {
            return Some((&mut self.durable.copies.get_mut(&copy)?.letter, Spot::Queue));
        }
        let letter = self.letters.get_mut(id)?;
        let spot = letter.spot(&from.destination)?;
        Some((letter, spot))
    }

    pub(super) fn delivered_durably(
        &mut self,
        from: &Origin,
        id: &MessageId,
        dispatch: &Dispatch,
    ) -> Judgement {
        let Some(copy) = from.copy(id).filter(|_| dispatch.message.headers().is_persistent()) else {
            return Ok(());
        };
        let Some(held) = self.durable.copies.get_mut(&copy) else {
            return Err(Violation(format!("{id} was sent when there was no {}, and delivered", copy.1)));
        };
        held.letter.check(Spot::Queue, &dispatch.message)?;
        let handed_over = held.letter.counts.handed_over;
        if dispatch.delivery_count > handed_over + 1 {
            return Err(Violation(format!(
                "{id} has delivery count {} and was handed over {handed_over} times before by {}",
                dispatch.delivery_count, copy.1
            )));
        }
        held.is_due = true;
        held.letter.events.push(Event::Seen(Spot::Queue));
        if let Some(Event::SentIn(name)) = held.letter.events.first()
            && let Some(transaction) = self.transactions.get_mut(name)
        {
            transaction.was_seen = true;
        }
        self.seen.insert(id.clone());
        Ok(())
    }

    pub(super) fn settled_durably(
        &mut self,
        from: &Origin,
        id: &MessageId,
        ticket: Ticket,
        stamp: u64,
        within: Option<&Name>,
    ) {
        let Some(copy) = from.copy(id) else { return };
        let Some(held) = self.durable.copies.get_mut(&copy) else { return };
        match within {
            Some(name) => {
                held.letter.events.push(Event::SettledIn(name.clone()));
                let transaction = self.transactions.entry(name.clone()).or_default();
                transaction.settled_copies.push(copy);
                transaction.is_persistent = true;
            }
            None => held.letter.events.push(Event::Settled { ticket, stamp }),
        }
    }

    pub(super) fn condemned_durably(&mut self, from: &Origin, id: &MessageId, ticket: Ticket) {
        if let Some(held) = from.copy(id).and_then(|copy| self.durable.copies.get_mut(&copy)) {
            held.letter.events.push(Event::Condemned { ticket });
        }
    }

    /// Whether the subscriptions are there that must be, and none that must not. Of those that are gone nothing is known any
    /// more, and what is persistent in a transaction is certain.
    pub(super) fn judge_subscriptions(&mut self, findings: &Findings) -> Judgement {
        for (name, life) in &mut self.durable.lives {
            let found = findings.kinds.get(name);
            let is_found = found.is_some();
            if life.is_there(&self.heard).is_some_and(|is_there| is_there != is_found) {
                return Err(Violation(format!(
                    "there is{} {name}: {life:?}",
                    if is_found { "" } else { " no" }
                )));
            }
            if let Some(found) = found {
                let lives = life.may_be(&self.heard);
                let Some((number, ..)) = lives.iter().find(|(_, kind, _)| *kind == found) else {
                    return Err(Violation(format!("{name} is to {found:?}: {life:?}")));
                };
                self.durable.made_anew += u64::from(*number != life.number);
                (life.number, life.kind) = (*number, found.clone());
            }
            (life.is_there, life.asked) = (is_found, Asked::Nothing);
        }
        self.durable.waiting.clear();
        if let Some(name) = findings.subscriptions.keys().find(|name| !self.durable.lives.contains_key(*name))
        {
            return Err(Violation(format!("{name} is there, and was never made")));
        }
        let Durable { lives, copies, .. } = &mut self.durable;
        let lives = |copy: &Copy| lives[&copy.1].is_there && lives[&copy.1].number == copy.2;
        copies.retain(|copy, _| lives(copy));
        for transaction in self.transactions.values_mut() {
            transaction.copies.retain(lives);
            transaction.settled_copies.retain(lives);
            transaction.is_persistent |= transaction.copies.iter().any(|copy| copies[copy].is_due);
        }
        Ok(())
    }

    /// Where each copy was found. None is there twice, and none that was never sent.
    pub(super) fn places_of_copies(
        &mut self,
        findings: &Findings,
    ) -> Result<BTreeMap<Copy, Spot>, Violation> {
        let mut places = BTreeMap::new();
        let with = findings
            .subscriptions
            .iter()
            .flat_map(|(name, found)| found.iter().map(move |found| (name, &found.message, Spot::Queue)));
        let waiting = findings
            .prepared
            .iter()
            .flat_map(|branch| &branch.copies)
            .map(|(name, message)| (name, message, Spot::Prepared));
        for (name, message, spot) in with.chain(waiting) {
            let id = message.headers().message_id.clone().expect("a message with an id");
            let copy = (id, name.clone(), self.durable.lives[name].number);
            let Some(held) = self.durable.copies.get_mut(&copy) else {
                return Err(Violation(format!("{} is with {name}, where it cannot be", copy.0)));
            };
            held.letter.check(Spot::Queue, message)?;
            if let Some(other) = places.insert(copy, spot) {
                return Err(Violation(format!("a message is with {name} twice: {other:?} and {spot:?}")));
            }
        }
        Ok(places)
    }

    /// Whether a copy may be where it was found, given what became of some transactions.
    pub(super) fn may_be(
        &self,
        copy: &Copy,
        spot: Option<Spot>,
        now: Timestamp,
        certainty: &Certainty,
        decided: &BTreeMap<Name, Outcome>,
    ) -> bool {
        let held = &self.durable.copies[copy];
        let spots = self.spots(&held.letter, now, certainty, decided);
        match spot {
            Some(spot) => spots.has(spot),
            None => !held.is_due || [Spot::Never, Spot::Dead, Spot::Gone].iter().any(|spot| spots.has(*spot)),
        }
    }

    /// Whether each copy is where it may be, and the copies of one message all came or none.
    pub(super) fn judge_copies(
        &mut self,
        findings: &Findings,
        found: &BTreeMap<Copy, Spot>,
        now: Timestamp,
        certainty: &Certainty,
        decided: &BTreeMap<Name, Outcome>,
    ) -> Judgement {
        let came: BTreeSet<MessageId> = self
            .durable
            .copies
            .iter()
            .filter(|(copy, held)| {
                found.contains_key(*copy)
                    || held.letter.events.iter().any(|event| matches!(event, Event::Seen(_)))
            })
            .map(|((id, ..), _)| id.clone())
            .collect();
        for (copy, held) in &self.durable.copies {
            let spot = found.get(copy).copied();
            let spots = self.spots(&held.letter, now, certainty, decided);
            let is_whole = spot.is_some()
                || !held.is_due
                || !came.contains(&copy.0)
                || [Spot::Dead, Spot::Gone].iter().any(|spot| spots.has(*spot));
            if !is_whole || !self.may_be(copy, spot, now, certainty, decided) {
                return Err(Violation(format!(
                    "{} is {spot:?} with {} in life {}, and can only be {:?}; others have it: {}; what happened to it: \
                     {:?} from {:?}{}",
                    copy.0,
                    copy.1,
                    copy.2,
                    spots.names(),
                    came.contains(&copy.0),
                    held.letter.events,
                    held.letter.base,
                    self.told_of(&held.letter.events)
                )));
            }
        }
        for (name, found) in &findings.subscriptions {
            for one in found {
                let copy = (one.id(), name.clone(), self.durable.lives[name].number);
                let counts = &self.durable.copies[&copy].letter.counts;
                let least = counts.least(|stamp| certainty.is_kept(stamp));
                if one.failed < least || one.failed > counts.handed_over {
                    return Err(Violation(format!(
                        "{} with {name} has {} failed deliveries; at least {least} are known, and it was handed over {} \
                         times",
                        copy.0, one.failed, counts.handed_over
                    )));
                }
            }
        }
        Ok(())
    }

    /// Goes on from what was found.
    pub(super) fn go_on_with_copies(&mut self, findings: &Findings, found: &BTreeMap<Copy, Spot>) {
        self.durable.copies.retain(|copy, held| {
            let spot = found.get(copy).copied();
            held.is_due = true;
            held.letter.base = spot.unwrap_or(Spot::Gone);
            held.letter.events.clear();
            held.letter.counts.recorded.clear();
            spot.is_some()
        });
        for (name, found) in &findings.subscriptions {
            for one in found {
                let copy = (one.id(), name.clone(), self.durable.lives[name].number);
                if let Some(held) = self.durable.copies.get_mut(&copy) {
                    held.letter.counts.floor = one.failed;
                }
            }
        }
        for (name, transaction) in &mut self.transactions {
            transaction.copies.retain(|copy| self.durable.copies.contains_key(copy));
            for copy in &transaction.copies {
                if let Some(held) = self.durable.copies.get_mut(copy) {
                    held.letter.events.push(Event::SentIn(name.clone()));
                }
            }
            for copy in &transaction.settled_copies {
                if let Some(held) = self.durable.copies.get_mut(copy) {
                    held.letter.events.push(Event::SettledIn(name.clone()));
                }
            }
        }
    }

    /// The subscriptions that are there, each with what it has.
    pub(crate) fn subscriptions(&self) -> BTreeMap<SubscriptionName, BTreeSet<MessageId>> {
        let there = self.durable.lives.iter().filter(|(_, life)| life.is_there);
        let with = |name: &SubscriptionName| {
            let of = self.durable.copies.keys().filter(|copy| copy.1 == *name);
            of.map(|(id, ..)| id.clone()).collect()
        };
        there.map(|(name, _)| (name.clone(), with(name))).collect()
    }
}
