//! The sends that wait for memory or for the store, and who of them is next.

use std::collections::{BTreeMap, BTreeSet};

use corriere_core::provider::SendMessage;
use corriere_core::{Destination, ProducerId, Timestamp};

use super::effects::{ConnectionKey, Ticket};

/// A producer of a connection.
pub(super) type ProducerKey = (ConnectionKey, ProducerId);

/// What a send waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Memory,
    /// Room in the store.
    Store,
}

/// A send as it arrived, whether it waits or is with the store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    /// Counts the sends, so that one that the store has no room for comes to stand where it was.
    pub(super) number: u64,
    pub(super) connection: ConnectionKey,
    pub(super) producer: ProducerId,
    pub(super) ticket: Ticket,
    pub(super) since: Timestamp,
    /// It may wait until then.
    pub(super) deadline: Timestamp,
}

/// A send that waits.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) arrived: Arrived,
    pub(super) send: SendMessage,
    pub(super) size: u64,
    pub(super) wants: Wanted,
}

/// Waiting sends, each under the number of its arrival.
///
/// Ordinary ones stand in line: nobody there overtakes, so that a large message is not starved by small ones. An
/// oversized one, larger than all memory, stands aside, as it may wait for long, and holds up nobody but the later sends
/// of its own producer.
#[derive(Debug, Default)]
pub(super) struct Line {
    waiting: BTreeMap<u64, (Parked, bool)>,
    producers: BTreeMap<ProducerKey, Waiting>,
    in_line: BTreeSet<u64>,
    /// The first oversized send of each producer that has one.
    aside: BTreeSet<u64>,
    /// The sends to each temporary destination, which may end before they are let in.
    temporary: BTreeMap<Destination, BTreeSet<u64>>,
}

/// The waiting sends of one producer.
#[derive(Debug, Default)]
struct Waiting {
    numbers: BTreeSet<u64>,
    /// The first oversized one; what is behind it is neither in line nor aside.
    oversized: Option<u64>,
}

impl Arrived {
    pub(super) fn producer_key(&self) -> ProducerKey {
        (self.connection, self.producer)
    }
}

impl Line {
    /// Adds a send at the place of its number, which may be before others of its producer.
    pub(super) fn add(&mut self, parked: Parked, is_oversized: bool) {
        let number = parked.arrived.number;
        let producer = self.producers.entry(parked.arrived.producer_key()).or_default();
        producer.numbers.insert(number);
        if producer.oversized.is_none_or(|oversized| number < oversized) {
            if is_oversized {
                for behind in producer.numbers.range(number..) {
                    self.in_line.remove(behind);
                }
                if let Some(behind) = producer.oversized.replace(number) {
                    self.aside.remove(&behind);
                }
                self.aside.insert(number);
            } else {
                self.in_line.insert(number);
            }
        }
        if let Some(destination) = temporary_of(&parked.send) {
            self.temporary.entry(destination.clone()).or_default().insert(number);
        }
        self.waiting.insert(number, (parked, is_oversized));
    }

    /// Takes a send out, wherever it stands. What waited behind it for no other reason takes its place in line.
    pub(super) fn remove(&mut self, number: u64) -> Option<Parked> {
        let (parked, _) = self.waiting.remove(&number)?;
        if let Some(destination) = temporary_of(&parked.send)
            && let Some(numbers) = self.temporary.get_mut(destination)
        {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.temporary.remove(destination);
            }
        }
        self.in_line.remove(&number);
        let key = parked.arrived.producer_key();
        let producer = self.producers.get_mut(&key)?;
        producer.numbers.remove(&number);
        if producer.oversized == Some(number) {
            producer.oversized = None;
            self.aside.remove(&number);
            for next in producer.numbers.range(number..) {
                if self.waiting.get(next).is_some_and(|(_, is_oversized)| *is_oversized) {
                    producer.oversized = Some(*next);
                    self.aside.insert(*next);
                    break;
                }
                self.in_line.insert(*next);
            }
        }
        if producer.numbers.is_empty() {
            self.producers.remove(&key);
        }
        Some(parked)
    }

    /// The send that may come in when so much of the memory is used.
    pub(super) fn next(&self, used: u64, limit: u64) -> Option<u64> {
        let in_line = self.in_line.first().copied();
        if used == 0 {
            let aside = self.aside.first().copied();
            return in_line.into_iter().chain(aside).min();
        }
        let size = self.waiting.get(&in_line?)?.0.size;
        in_line.filter(|_| used.saturating_add(size) <= limit)
    }

    /// The first one that stands in line.
    pub(super) fn first(&self) -> Option<u64> {
        self.in_line.first().copied()
    }

    /// How many bytes who is next in line needs.
    pub(super) fn wanted(&self) -> Option<u64> {
        let first = self.in_line.first().or(self.aside.first())?;
        self.waiting.get(first).map(|(parked, _)| parked.size)
    }

    /// Whether a send of this producer waits, which its later ones must not overtake.
    pub(super) fn has(&self, producer: ProducerKey) -> bool {
        self.producers.contains_key(&producer)
    }

    /// All sends, in the order of their arrival.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Parked> {
        self.waiting.values().map(|(parked, _)| parked)
    }

    /// Takes out all sends of a producer from a number on, in the order of their arrival.
    pub(super) fn take_from(&mut self, producer: ProducerKey, number: u64) -> Vec<Parked> {
        let Some(waiting) = self.producers.get(&producer) else { return Vec::new() };
        let numbers: Vec<u64> = waiting.numbers.range(number..).copied().collect();
        numbers.into_iter().filter_map(|number| self.remove(number)).collect()
    }

    /// The numbers of all sends to a temporary destination.
    pub(super) fn to_temporary(&self, destination: &Destination) -> impl Iterator<Item = u64> {
        self.temporary.get(destination).into_iter().flatten().copied()
    }

    /// The numbers of all sends of a connection, in the order of their arrival.
    pub(super) fn of_connection(&self, connection: ConnectionKey) -> BTreeSet<u64> {
        let producers = (connection, ProducerId(0))..=(connection, ProducerId(u64::MAX));
        self.producers.range(producers).flat_map(|(_, waiting)| waiting.numbers.iter().copied()).collect()
    }
}

/// The destination of a send, if it is temporary.
fn temporary_of(send: &SendMessage) -> Option<&Destination> {
    send.message.headers().destination.as_ref().filter(|destination| destination.is_temporary())
}
