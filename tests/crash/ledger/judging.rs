//! What was found after a restart, held against what the clients were told.

use std::collections::BTreeMap;
use std::sync::Arc;

use corriere_broker::store::{SubscriptionName, Totals};
use corriere_core::id::Xid;
use corriere_core::{Destination, Message, MessageId, Timestamp};

use super::durable::{Copy, Kind};
use super::letter::Event;
use super::{Certainty, Heard, Judgement, Ledger, Name, Outcome, Spot, Violation};

/// What a store brought back, read in full.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The messages of each queue, in their order.
    pub(crate) queues: BTreeMap<Destination, Vec<Found>>,
    pub(crate) totals: BTreeMap<Destination, Totals>,
    /// What each durable subscription is to.
    pub(crate) kinds: BTreeMap<SubscriptionName, Kind>,
    /// The messages of each durable subscription, in their order.
    pub(crate) subscriptions: BTreeMap<SubscriptionName, Vec<Found>>,
    pub(crate) prepared: Vec<Branch>,
}

#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) message: Arc<Message>,
    pub(crate) failed: u32,
}

/// A transaction that waits for its outcome.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) xid: Xid,
    pub(crate) sends: Vec<Arc<Message>>,
    /// What it sends to durable subscriptions.
    pub(crate) copies: Vec<(SubscriptionName, Arc<Message>)>,
    pub(crate) settled: Vec<MessageId>,
}

impl Found {
    pub(super) fn id(&self) -> MessageId {
        id_of(&self.message)
    }
}

fn id_of(message: &Message) -> MessageId {
    message.headers().message_id.clone().expect("a message with an id")
}

impl Ledger {
    /// Whether all that was found may be there, and all that must be is; from then on it goes on from what was found.
    pub(crate) fn judge(&mut self, findings: &Findings, now: Timestamp, certainty: &Certainty) -> Judgement {
        let found = self.places(findings)?;
        self.judge_subscriptions(findings)?;
        let copies = self.places_of_copies(findings)?;
        let decided = self.decide(findings, &found, &copies, now, certainty)?;
        for (id, letter) in &self.letters {
            let spot = found.get(id).copied();
            if !letter.is_persistent() || letter.queue.is_topic() {
                continue;
            }
            let spots = self.spots(letter, now, certainty, &decided);
            if !is_among(spot, spots) {
                return Err(Violation(format!(
                    "{id} is {}, and can only be {:?}; what happened to it: {:?} from {:?}{}",
                    spot.map_or_else(|| "nowhere".to_owned(), |spot| format!("{spot:?}")),
                    spots.names(),
                    letter.events,
                    letter.base,
                    self.told_of(&letter.events)
                )));
            }
        }
        self.judge_copies(findings, &copies, now, certainty, &decided)?;
        self.check_counts(findings, certainty)?;
        check_order(findings)?;
        self.check_topic_dead(findings)?;
        self.collapse(&found, &decided);
        self.check_totals(findings)?;
        self.go_on(findings, &copies);
        Ok(())
    }

    pub(super) fn told_of(&self, events: &[Event]) -> String {
        let tickets = events.iter().filter_map(|event| match event {
            Event::Sent { ticket } | Event::Settled { ticket, .. } | Event::Condemned { ticket } => {
                Some(*ticket)
            }
            Event::SentIn(_) | Event::SettledIn(_) | Event::Seen(_) => None,
        });
        let told: Vec<_> =
            tickets.map(|ticket| format!("{ticket:?} {:?}", self.heard.0.get(&ticket))).collect();
        let transactions = events.iter().filter_map(|event| match event {
            Event::SentIn(name) | Event::SettledIn(name) => Some((name, self.transactions.get(name))),
            _ => None,
        });
        format!("\n    told: {told:?}\n    in: {:?}", transactions.collect::<Vec<_>>())
    }

    /// Where each message was found. None is there twice, and none that was never sent.
    fn places(&mut self, findings: &Findings) -> Result<BTreeMap<MessageId, Spot>, Violation> {
        let mut places = BTreeMap::new();
        let on_queues = findings
            .queues
            .iter()
            .flat_map(|(place, found)| found.iter().map(move |found| (place.clone(), &found.message, false)));
        let waiting =
            findings.prepared.iter().flat_map(|branch| &branch.sends).map(|message| {
                (message.headers().destination.clone().expect("a destination"), message, true)
            });
        for (place, message, waits) in on_queues.chain(waiting) {
            let id = id_of(message);
            let letter = self
                .letters
                .get_mut(&id)
                .ok_or_else(|| Violation(format!("{id} is on {place} and was never sent")))?;
            let spot = letter.spot(&place).ok_or_else(|| Violation(format!("{id} is on {place}")))?;
            letter.check(spot, message)?;
            if !letter.is_persistent() {
                return Err(Violation(format!("{id} is on {place} and is not persistent")));
            }
            if letter.queue.is_topic() {
                continue;
            }
            let spot = if waits { Spot::Prepared } else { spot };
            if let Some(other) = places.insert(id.clone(), spot) {
                return Err(Violation(format!("{id} is there twice: {other:?} and {spot:?}")));
            }
        }
        Ok(places)
    }

    /// What became of each transaction: the same for all of it.
    fn decide(
        &self,
        findings: &Findings,
        found: &BTreeMap<MessageId, Spot>,
        copies: &BTreeMap<Copy, Spot>,
        now: Timestamp,
        certainty: &Certainty,
    ) -> Result<BTreeMap<Name, Outcome>, Violation> {
        let mut decided = BTreeMap::new();
        for (name, transaction) in &self.transactions {
            let branch = findings
                .prepared
                .iter()
                .find(|branch| matches!(name, Name::Branch(xid) if *xid == branch.xid));
            let members: Vec<_> = transaction.sends.iter().chain(&transaction.settled).collect();
            let possible = transaction.outcomes(&self.heard, certainty);
            let fits = |outcome: &Outcome| {
                (*outcome == Outcome::Prepared) == branch.is_some()
                    && members.iter().all(|id| {
                        let letter = &self.letters[*id];
                        let assumed = BTreeMap::from([(name.clone(), *outcome)]);
                        let spot = found.get(*id).copied();
                        !letter.is_persistent()
                            || letter.queue.is_topic()
                            || is_among(spot, self.spots(letter, now, certainty, &assumed))
                    })
                    && transaction.copies.iter().chain(&transaction.settled_copies).all(|copy| {
                        let assumed = BTreeMap::from([(name.clone(), *outcome)]);
                        self.may_be(copy, copies.get(copy).copied(), now, certainty, &assumed)
                    })
            };
            let Some(outcome) = possible.iter().find(|outcome| fits(outcome)) else {
                let places: Vec<_> = members.iter().map(|id| format!("{id}: {:?}", found.get(*id))).collect();
                return Err(Violation(format!(
                    "{name:?} can only be {possible:?}; found are {places:?} and {branch:?}; {transaction:?}"
                )));
            };
            if let Some(branch) = branch {
                let mut settled = branch.settled.clone();
                settled.sort();
                let mut wanted = transaction.settled.clone();
                wanted.extend(transaction.settled_copies.iter().map(|(id, ..)| id.clone()));
                wanted.sort();
                if settled != wanted {
                    return Err(Violation(format!("{name:?} settles {settled:?}, not {wanted:?}")));
                }
            }
            decided.insert(name.clone(), *outcome);
        }
        for branch in &findings.prepared {
            if !self.transactions.contains_key(&Name::Branch(branch.xid.clone())) {
                return Err(Violation(format!("{branch:?} is prepared and was never there")));
            }
        }
        Ok(decided)
    }

    /// Delivery counts are never above the truth, nor below what is known to be counted.
    fn check_counts(&mut self, findings: &Findings, certainty: &Certainty) -> Judgement {
        for (place, found) in
            findings.queues.iter().flat_map(|(place, found)| found.iter().map(move |one| (place, one)))
        {
            let id = found.id();
            let Some(letter) = self.letters.get_mut(&id) else { continue };
            if letter.queue.is_topic() {
                continue;
            }
            let Some(spot) = letter.spot(place) else { continue };
            let deliveries = letter.deliveries(spot);
            let least = deliveries.least(|stamp| certainty.is_kept(stamp));
            if found.failed < least || found.failed > deliveries.handed_over {
                return Err(Violation(format!(
                    "{id} on {place} has {} failed deliveries; at least {least} are known, and it was handed over \
                     {} times",
                    found.failed, deliveries.handed_over
                )));
            }
        }
        Ok(())
    }

    fn check_topic_dead(&mut self, findings: &Findings) -> Judgement {
        let mut copies: BTreeMap<MessageId, u64> = BTreeMap::new();
        for found in findings
            .queues
            .iter()
            .filter(|(place, _)| place.name().starts_with("DLQ.topic."))
            .flat_map(|(_, found)| found)
        {
            *copies.entry(found.id()).or_default() += 1;
        }
        for (id, (known, tickets)) in &mut self.topic_dead {
            let confirmed = tickets.iter().filter(|ticket| self.heard.is_confirmed(**ticket)).count() as u64;
            let there = copies.get(id).copied().unwrap_or_default();
            if there < *known + confirmed || there > self.topic_subscriptions {
                return Err(Violation(format!(
                    "{there} dead letters came of {id}; {known} were there and {confirmed} are confirmed since"
                )));
            }
            (*known, *tickets) = (there, Vec::new());
        }
        for (id, there) in copies {
            self.topic_dead.entry(id).or_default().0 = there;
        }
        Ok(())
    }

    /// Goes on from what was found.
    fn collapse(&mut self, found: &BTreeMap<MessageId, Spot>, decided: &BTreeMap<Name, Outcome>) {
        for (id, letter) in &mut self.letters {
            if !letter.is_persistent() || letter.queue.is_topic() {
                continue;
            }
            let arrived_before = !matches!(letter.base, Spot::Never | Spot::Prepared);
            let was_seen = letter.events.iter().any(|event| matches!(event, Event::Seen(_)));
            let sent_and_applied = matches!(letter.events.first(), Some(Event::SentIn(name)) if decided.get(name) == Some(&Outcome::Applied));
            let spot = found.get(id).copied().unwrap_or(if arrived_before || was_seen || sent_and_applied {
                Spot::Gone
            } else {
                Spot::Never
            });
            let died = letter.base != Spot::Dead
                && (spot == Spot::Dead
                    || (spot == Spot::Gone
                        && letter.events.iter().any(|event| matches!(event, Event::Seen(Spot::Dead)))));
            let arrives = !arrived_before && !matches!(spot, Spot::Never | Spot::Prepared);
            let (arrived, acknowledged, dead_lettered) = self.totals.entry(letter.queue.clone()).or_default();
            *arrived += u64::from(arrives);
            *dead_lettered +=
                u64::from(died && !letter.cause.as_ref().is_some_and(|cause| cause.starts_with("expired")));
            let gone = spot == Spot::Gone && letter.base != Spot::Gone;
            let from_dead = died || letter.base == Spot::Dead;
            *acknowledged += u64::from(gone && !from_dead);
            self.totals.entry(letter.dead.clone()).or_default().1 += u64::from(gone && from_dead);
            letter.base = spot;
        }
    }

    /// The totals of each queue are what became of its messages.
    fn check_totals(&self, findings: &Findings) -> Judgement {
        let none = (0, 0, 0);
        for (place, totals) in &findings.totals {
            if place.name().starts_with("DLQ.topic.") {
                continue;
            }
            let known = self.totals.get(place).unwrap_or(&none);
            if (totals.enqueued, totals.acknowledged, totals.dead_lettered) != *known {
                return Err(Violation(format!("{place} has {totals:?}; known are {known:?}")));
            }
        }
        Ok(())
    }

    /// A new process begins.
    fn go_on(&mut self, findings: &Findings, copies: &BTreeMap<Copy, Spot>) {
        for letter in self.letters.values_mut() {
            letter.events.clear();
            letter.counts.recorded.clear();
            letter.dead_counts.recorded.clear();
        }
        for (place, found) in &findings.queues {
            for found in found {
                let Some(letter) = self.letters.get_mut(&found.id()) else { continue };
                if let Some(spot) = letter.spot(place) {
                    letter.deliveries(spot).floor = found.failed;
                }
            }
        }
        self.transactions.retain(|name, transaction| {
            let is_prepared = findings
                .prepared
                .iter()
                .any(|branch| matches!(name, Name::Branch(xid) if *xid == branch.xid));
            (transaction.was_prepared, transaction.prepare) = (is_prepared, None);
            (transaction.commit, transaction.rollback) = (None, None);
            is_prepared
        });
        for (name, transaction) in &self.transactions {
            for id in &transaction.sends {
                if let Some(letter) = self.letters.get_mut(id) {
                    // Its base says that it waits, and the event what it waits for.
                    letter.events.push(Event::SentIn(name.clone()));
                }
            }
            for id in &transaction.settled {
                if let Some(letter) = self.letters.get_mut(id) {
                    letter.events.push(Event::SettledIn(name.clone()));
                }
            }
        }
        self.go_on_with_copies(findings, copies);
        self.heard = Heard::default();
        self.seen.clear();
        self.patience.clear();
    }
}

/// Nowhere is never there, or no more.
fn is_among(spot: Option<Spot>, spots: super::tally::Spots) -> bool {
    match spot {
        Some(spot) => spots.has(spot),
        None => spots.has(Spot::Never) || spots.has(Spot::Gone),
    }
}

/// Within a queue and a priority, what a producer sent first stands first.
fn check_order(findings: &Findings) -> Judgement {
    let queues = findings.queues.iter().filter(|(place, _)| !place.name().starts_with("DLQ."));
    let queues = queues.map(|(place, found)| (place.to_string(), found));
    let subscriptions = findings.subscriptions.iter().map(|(name, found)| (name.to_string(), found));
    for (place, found) in queues.chain(subscriptions) {
        let mut last: BTreeMap<(u8, Arc<str>), u64> = BTreeMap::new();
        for found in found {
            let (id, band) = (found.id(), found.message.headers().priority.level());
            let before = last.insert((band, Arc::clone(&id.producer)), id.sequence);
            if before.is_some_and(|before| before >= id.sequence) {
                return Err(Violation(format!("{id} stands behind {before:?} of its producer on {place}")));
            }
        }
    }
    Ok(())
}
