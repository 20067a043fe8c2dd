//! One queue: its messages by position, which of them anyone may have, and whose turn it is.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use corriere_core::message::Priority;
use corriere_core::{Destination, Timestamp};

use super::memory::Held;
use super::policies::Policy;
use super::subscription::SubscriptionKey;
use super::topic::TopicKey;
use crate::counts::Counts;
use crate::store::{StoredId, SubscriptionName, Totals};

/// A queue, numbered in the order of their making and never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct QueueKey(pub(super) u64);

/// Where a message stands in its queue, from the moment it became visible until it leaves: more urgent bands first,
/// then in the order of their arrival. The band, 9 minus the priority, is in the four highest bits: there are as many of
/// these in memory as there are messages, several times over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Position(u64);

/// A message in a queue.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) held: Arc<Held>,
    /// Not to be delivered before this moment.
    pub(super) not_before: Timestamp,
    /// Deliveries that reached the application and were not settled.
    pub(super) failed_deliveries: u32,
    /// Whether a failed conversion was noted that did not count.
    pub(super) conversion_failed: bool,
    /// Whether recovery brought it back and it was not delivered since.
    pub(super) is_recovered: bool,
    /// Whether its body is being read back.
    pub(super) is_loading: bool,
    /// Whether it was to become a dead letter already, and there was no room for that.
    pub(super) is_put_off: bool,
    place: Place,
}

/// Who has a message, or may have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Anyone may have it.
    Ready,
    /// Anyone may have it once its delay is over.
    Delayed,
    /// Its subscription gets it, once its delay is over; see [`Queue::reserved_by`].
    Reserved,
    /// A subscription has it, or a transaction that acknowledged it.
    InFlight,
    /// It ends as soon as its body is read back, which its dead letter needs, and there is room for that.
    Doomed,
    /// Its body cannot be read back: nobody gets it in this run.
    Aside,
}

/// A queue of its own, or the private one of a subscription to a topic.
#[derive(Debug)]
pub(super) struct Queue {
    /// The queue itself, or the topic.
    pub(super) destination: Destination,
    /// The topic whose private queue it is; what is in such a queue is not stored, unless the subscription is durable.
    pub(super) topic: Option<TopicKey>,
    /// The durable subscription that it is.
    pub(super) durable: Option<SubscriptionName>,
    /// Whether it holds dead letters: a message on it never becomes one again.
    pub(super) holds_dead_letters: bool,
    /// Whether the only subscription that it was for is closed: what comes back is discarded.
    pub(super) is_closing: bool,
    /// Whether its more urgent messages go first.
    pub(super) by_priority: bool,
    /// What holds for its destination.
    pub(super) policy: Policy,
    /// Whether it is among the queues to be looked at before the step ends.
    pub(super) is_due: bool,
    pub(super) counts: Counts,
    /// What became of its stored messages over all runs.
    pub(super) totals: Totals,
    /// How many of its messages have no body here, and how many of these are being read back, with how many bytes.
    pub(super) bodiless: u64,
    pub(super) loading: usize,
    pub(super) loading_bytes: u64,
    /// Subscriptions that are stalled and were not told of it.
    pub(super) stalled: BTreeSet<SubscriptionKey>,
    /// What ends once its body is here and is not being read back yet.
    pub(super) doomed: VecDeque<Position>,
    entries: BTreeMap<Position, Entry>,
    ready: BTreeSet<Position>,
    /// Who gets what is reserved.
    reserved: BTreeMap<Position, SubscriptionKey>,
    /// What waits for its next delivery, reserved or not, by when that may be.
    later: BTreeSet<(Timestamp, Position)>,
    /// Subscriptions with room, those longest without a message first.
    ring: BTreeSet<(u64, SubscriptionKey)>,
    next_sequence: u64,
    next_turn: u64,
}

impl Position {
    const FIRST: Self = Self(0);
    const BITS_OF_SEQUENCE: u32 = 60;
    const SEQUENCE: u64 = (1 << Self::BITS_OF_SEQUENCE) - 1;

    fn new(priority: Priority, sequence: u64) -> Self {
        let band = 9 - u64::from(priority.level().min(9));
        Self(band << Self::BITS_OF_SEQUENCE | sequence)
    }

    /// The order of arrival, whatever the band.
    pub(super) fn sequence(self) -> u64 {
        self.0 & Self::SEQUENCE
    }

    /// The last position that its band can have.
    pub(super) fn end_of_band(self) -> Self {
        Self(self.0 | Self::SEQUENCE)
    }
}

impl Queue {
    pub(super) fn new(destination: Destination, topic: Option<TopicKey>, holds_dead_letters: bool) -> Self {
        Self {
            destination,
            topic,
            durable: None,
            holds_dead_letters,
            is_closing: false,
            by_priority: true,
            policy: Policy::default(),
            is_due: false,
            counts: Counts::default(),
            totals: Totals::default(),
            bodiless: 0,
            loading: 0,
            loading_bytes: 0,
            stalled: BTreeSet::new(),
            doomed: VecDeque::new(),
            entries: BTreeMap::new(),
            ready: BTreeSet::new(),
            reserved: BTreeMap::new(),
            later: BTreeSet::new(),
            ring: BTreeSet::new(),
            next_sequence: 0,
            next_turn: 0,
        }
    }

    /// Whether the store knows of persistent messages in this queue: what ends with a connection is not stored.
    pub(super) fn is_lasting(&self) -> bool {
        (self.topic.is_none() || self.durable.is_some()) && !self.destination.is_temporary()
    }

    /// The topic of a private queue that ends with its one subscription.
    pub(super) fn private_topic(&self) -> Option<TopicKey> {
        self.topic.filter(|_| self.durable.is_none())
    }

    /// Whether the store knows of a message in this queue.
    pub(super) fn stores(&self, held: &Held) -> bool {
        self.is_lasting() && held.is_persistent
    }

    /// Puts a message behind all others of its priority, or behind all, ready for anyone.
    pub(super) fn push(&mut self, held: Arc<Held>) -> Position {
        let entry = Entry::new(held);
        let position = self.enter(&entry);
        self.entries.insert(position, entry);
        self.ready.insert(position);
        position
    }

    /// Puts messages behind each other, as [`Queue::push`] would one by one, and says where each stands. Of a million of
    /// them the trees are built at once.
    pub(super) fn push_all(&mut self, entries: impl ExactSizeIterator<Item = Entry>) -> Vec<Position> {
        let mut positions = Vec::with_capacity(entries.len());
        let mut placed = Vec::with_capacity(entries.len());
        for entry in entries {
            let position = self.enter(&entry);
            positions.push(position);
            placed.push((position, entry));
        }
        self.entries.append(&mut placed.into_iter().collect());
        self.ready.append(&mut positions.iter().copied().collect());
        positions
    }

    /// Counts a message that comes in, and gives it its position.
    fn enter(&mut self, entry: &Entry) -> Position {
        let priority = if self.by_priority { entry.held.priority } else { Priority::default() };
        let position = Position::new(priority, self.next_sequence);
        self.next_sequence += 1;
        self.bodiless += u64::from(entry.held.body().is_none());
        self.counts.pending += 1;
        position
    }

    pub(super) fn get(&self, position: Position) -> Option<&Entry> {
        self.entries.get(&position)
    }

    pub(super) fn get_mut(&mut self, position: Position) -> Option<&mut Entry> {
        self.entries.get_mut(&position)
    }

    /// The message at a position, if it is there under this name.
    pub(super) fn find(&self, position: Position, stored: StoredId) -> Option<&Entry> {
        self.get(position).filter(|entry| entry.held.id == stored)
    }

    /// Takes a message out for good. What became of it is for the caller to count.
    pub(super) fn remove(&mut self, position: Position) -> Option<Entry> {
        let entry = self.entries.remove(&position)?;
        self.leave(position, entry.place, entry.not_before);
        self.counts.pending -= 1;
        self.bodiless -= u64::from(entry.held.body().is_none());
        Some(entry)
    }

    /// Takes all out that is not with its consumer, who has what is `delivered`, and counts it as discarded.
    pub(super) fn split_off_waiting(&mut self, delivered: impl Iterator<Item = Position>) -> Self {
        let mut waiting = Self::new(self.destination.clone(), self.topic, self.holds_dead_letters);
        std::mem::swap(&mut self.entries, &mut waiting.entries);
        std::mem::swap(&mut self.ready, &mut waiting.ready);
        std::mem::swap(&mut self.reserved, &mut waiting.reserved);
        std::mem::swap(&mut self.later, &mut waiting.later);
        self.entries
            .extend(delivered.filter_map(|position| Some((position, waiting.entries.remove(&position)?))));
        let count = waiting.entries.len() as u64;
        self.counts.discarded += count;
        self.counts.pending -= count;
        waiting
    }

    /// Takes a message out of a queue that is gone. Its counts were taken before, and stay what they are.
    pub(super) fn pop(&mut self) -> Option<(Position, Entry)> {
        let (position, entry) = self.entries.pop_first()?;
        self.ready.remove(&position);
        self.reserved.remove(&position);
        self.later.remove(&(entry.not_before, position));
        Some((position, entry))
    }

    /// Puts a message back that left, to end later.
    pub(super) fn put_back(&mut self, position: Position, entry: Entry) {
        self.bodiless += u64::from(entry.held.body().is_none());
        self.counts.pending += 1;
        self.entries.insert(position, Entry { place: Place::Doomed, ..entry });
    }

    /// Changes who has a message. While nobody has it, its `not_before` stays.
    pub(super) fn put(&mut self, position: Position, place: Place) {
        let Some(entry) = self.entries.get_mut(&position) else { return };
        let (left, not_before) = (std::mem::replace(&mut entry.place, place), entry.not_before);
        self.leave(position, left, not_before);
        match place {
            Place::Ready => {
                self.ready.insert(position);
            }
            Place::InFlight => self.counts.in_flight += 1,
            Place::Delayed | Place::Reserved => {
                self.later.insert((not_before, position));
            }
            Place::Doomed | Place::Aside => {}
        }
    }

    /// Keeps a message for a subscription.
    pub(super) fn reserve(&mut self, position: Position, subscription: SubscriptionKey) {
        self.put(position, Place::Reserved);
        self.reserved.insert(position, subscription);
    }

    /// For whom a message is kept.
    pub(super) fn reserved_by(&self, position: Position) -> Option<SubscriptionKey> {
        self.reserved.get(&position).copied()
    }

    fn leave(&mut self, position: Position, place: Place, not_before: Timestamp) {
        match place {
            Place::Ready => {
                self.ready.remove(&position);
            }
            Place::InFlight => self.counts.in_flight -= 1,
            Place::Delayed | Place::Reserved => {
                self.later.remove(&(not_before, position));
                if place == Place::Reserved {
                    self.reserved.remove(&position);
                }
            }
            Place::Doomed | Place::Aside => {}
        }
    }

    /// The first message that anyone may have, if there is also someone with room; with whose turn it is.
    pub(super) fn next_dispatch(&self) -> Option<(Position, SubscriptionKey)> {
        let position = *self.ready.first()?;
        let (_, subscription) = *self.ring.first()?;
        Some((position, subscription))
    }

    /// Whether there is anything that anyone may have.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// What anyone may have, the first first.
    pub(super) fn ready(&self) -> impl Iterator<Item = Position> {
        self.ready.iter().copied()
    }

    /// The subscriptions that have room, in the order of turns.
    pub(super) fn takers(&self) -> impl Iterator<Item = SubscriptionKey> {
        self.ring.iter().map(|(_, subscription)| *subscription)
    }

    /// What a message gets that is pushed now.
    pub(super) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// The first message behind a position, and where it stands.
    pub(super) fn first_behind(&self, position: Option<Position>) -> Option<(Position, &Entry)> {
        let start = position.map_or(Bound::Unbounded, Bound::Excluded);
        self.entries.range((start, Bound::Unbounded)).next().map(|(position, entry)| (*position, entry))
    }

    /// Lets a subscription have what is ready, in the order of turns.
    pub(super) fn join_ring(&mut self, turn: u64, subscription: SubscriptionKey) {
        self.ring.insert((turn, subscription));
    }

    pub(super) fn leave_ring(&mut self, turn: u64, subscription: SubscriptionKey) {
        self.ring.remove(&(turn, subscription));
    }

    /// A turn behind all others.
    pub(super) fn last_turn(&mut self) -> u64 {
        self.next_turn += 1;
        self.next_turn
    }

    /// How many messages are not to be delivered before a moment after `now`.
    pub(super) fn delayed(&self, now: Timestamp) -> u64 {
        let after = now.saturating_add(Duration::from_millis(1));
        self.later.range((after, Position::FIRST)..).count() as u64
    }

    /// All positions, in order.
    pub(super) fn positions(&self) -> impl Iterator<Item = (Position, &Entry)> {
        self.entries.iter().map(|(position, entry)| (*position, entry))
    }
}

impl Entry {
    /// A message that anyone may have.
    pub(super) fn new(held: Arc<Held>) -> Self {
        Self {
            held,
            not_before: Timestamp(0),
            failed_deliveries: 0,
            conversion_failed: false,
            is_recovered: false,
            is_loading: false,
            is_put_off: false,
            place: Place::Ready,
        }
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }
}
