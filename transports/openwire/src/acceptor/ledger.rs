//! What one consumer was sent and has not settled: how a message id of the wire becomes the number of a delivery.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use corriere_core::provider::Dispatch;
use corriere_core::{MessageId, TransactionId};

use crate::codec::structures as wire;

/// The deliveries of one subscription that nothing final was said of.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    deliveries: BTreeMap<u64, Delivered>,
    names: HashMap<MessageId, Numbers>,
    epoch: u32,
    /// The highest number that the peer said to have handed to its application.
    handed_over: u64,
    /// Whether the peer acknowledges nothing, so that nothing is noted.
    is_of_nothing: bool,
    /// Whether the consumer is closed, so that nothing more is noted.
    is_closed: bool,
}

/// The deliveries of one message id, in their order. A producer that gives an id twice may have both with one consumer.
#[derive(Debug)]
struct Numbers {
    oldest: u64,
    later: Later,
}

/// The deliveries of one message id behind the oldest. There may be as many as the peer likes, and each acknowledgement looks
/// for one of them.
#[derive(Debug, Default)]
struct Later {
    /// The sequence of each.
    all: BTreeMap<u64, i64>,
    by_sequence: BTreeMap<i64, u64>,
    /// Those that no transaction has.
    free: BTreeSet<u64>,
}

#[derive(Debug)]
struct Delivered {
    id: Option<MessageId>,
    /// The number that the peer knows it by as the broker's (`brokerSequenceId`).
    sequence: i64,
    /// The transaction that acknowledged it and has not ended.
    transaction: Option<TransactionId>,
}

impl Later {
    fn add(&mut self, number: u64, sequence: i64) {
        self.all.insert(number, sequence);
        self.by_sequence.insert(sequence, number);
        self.free.insert(number);
    }

    fn remove(&mut self, number: u64) {
        if let Some(sequence) = self.all.remove(&number) {
            self.by_sequence.remove(&sequence);
        }
        self.free.remove(&number);
    }

    fn take_first(&mut self) -> Option<u64> {
        let number = *self.all.first_key_value()?.0;
        self.remove(number);
        Some(number)
    }
}

impl Ledger {
    /// That of a consumer whose peer acknowledges nothing.
    pub(super) fn of_nothing() -> Self {
        Self { is_of_nothing: true, ..Self::default() }
    }

    /// Notes a delivery, under a sequence that is higher than all before.
    pub(super) fn note(&mut self, dispatch: &Dispatch, sequence: i64) {
        if self.is_of_nothing || self.is_closed {
            return;
        }
        if dispatch.epoch != self.epoch {
            // The broker has taken back what was not handed over.
            self.epoch = dispatch.epoch;
            self.take_back(self.handed_over);
        }
        let id = dispatch.message.headers().message_id.clone();
        if let Some(id) = &id {
            let add = |numbers: &mut Numbers| numbers.later.add(dispatch.number, sequence);
            let first = || Numbers { oldest: dispatch.number, later: Later::default() };
            self.names.entry(id.clone()).and_modify(add).or_insert_with(first);
        }
        self.deliveries.insert(dispatch.number, Delivered { id, sequence, transaction: None });
    }

    /// The numbers that an acknowledgement from one message to another names; without a first one, from the oldest. What is not
    /// known, as it is settled already or was sent before a reconnect, is passed over: of a range of which only one end is
    /// known that is all that is named.
    ///
    /// `count` is how many messages the peer means, where it can be relied on. When there are more in the range, some of them
    /// were not given to the application, as a client that sorts them by priority has it, and nothing tells which: then only
    /// the two ends are named, which it has.
    pub(super) fn ranges(
        &self,
        first: Option<&wire::MessageId>,
        last: Option<&wire::MessageId>,
        count: Option<usize>,
    ) -> [Option<(u64, u64)>; 2] {
        let Some(last) = last else { return [None, None] };
        let start = match first {
            Some(first) => self.number_of(first),
            None => self.deliveries.keys().next().copied(),
        };
        let (start, end) = match (start, self.find(last, start.unwrap_or(0))) {
            (Some(start), Some(end)) => (start, end),
            // Without a first one, the oldest is nothing that the peer has named.
            (start, end) => {
                let one = end.or(start.filter(|_| first.is_some()));
                return [one.map(|one| (one, one)), None];
            }
        };
        let (lowest, highest) = (start.min(end), start.max(end));
        let is_whole = match count {
            None => start <= end,
            Some(count) => lowest == highest || self.unsettled(lowest, highest) <= count,
        };
        if is_whole { [Some((lowest, highest)), None] } else { [Some((start, start)), Some((end, end))] }
    }

    /// How many deliveries of a range nothing final was said of, with a transaction neither.
    fn unsettled(&self, first: u64, last: u64) -> usize {
        let range = self.deliveries.range(first..=last);
        range.filter(|(_, delivered)| delivered.transaction.is_none()).count()
    }

    /// The number of a message.
    pub(super) fn number_of(&self, id: &wire::MessageId) -> Option<u64> {
        self.find(id, 0)
    }

    /// The number of a message. Of several with its id it is the one whose sequence the peer gives back, as it should, or the
    /// oldest, from this number on, that no transaction has.
    fn find(&self, id: &wire::MessageId, from: u64) -> Option<u64> {
        let Numbers { oldest, later } = self.named(id)?;
        let first = self.deliveries.get(oldest);
        if first.is_some_and(|first| first.sequence == id.broker_sequence_id) {
            return Some(*oldest);
        }
        if let Some(number) = later.by_sequence.get(&id.broker_sequence_id) {
            return Some(*number);
        }
        let is_free = *oldest >= from && first.is_some_and(|first| first.transaction.is_none());
        let next_free = || later.free.range(from..).next().copied();
        Some(if is_free { *oldest } else { next_free().unwrap_or(*oldest) })
    }

    fn named(&self, id: &wire::MessageId) -> Option<&Numbers> {
        let known = id.to_core().ok().and_then(|id| self.names.get(&id));
        known.or_else(|| {
            // A peer of version 9 has no other words for a producer that has not ActiveMQ's shape.
            let producer = id.producer_id.as_ref()?;
            let sequence = u64::try_from(id.producer_sequence_id).ok()?;
            self.names.get(&MessageId { producer: producer.connection_id.clone(), sequence })
        })
    }

    /// Notes that all up to this number reached the application.
    pub(super) fn hand_over(&mut self, number: u64) {
        self.handed_over = self.handed_over.max(number);
    }

    /// Forgets what is settled, and says how many that were.
    pub(super) fn settle(&mut self, first: u64, last: u64) -> u32 {
        let numbers: Vec<u64> = self
            .deliveries
            .range(first..=last.max(first))
            .filter(|(_, delivered)| delivered.transaction.is_none())
            .map(|(number, _)| *number)
            .collect();
        let mut count = 0;
        for number in numbers {
            count += 1;
            if let Some(delivered) = self.deliveries.remove(&number) {
                self.forget_name(number, &delivered);
            }
        }
        count
    }

    /// Keeps what a transaction acknowledged until its end. What another one did before stays with that.
    pub(super) fn lock(&mut self, first: u64, last: u64, transaction: &TransactionId) {
        for (number, delivered) in self.deliveries.range_mut(first..=last.max(first)) {
            if delivered.transaction.is_none() {
                delivered.transaction = Some(transaction.clone());
                if let Some(numbers) = delivered.id.as_ref().and_then(|id| self.names.get_mut(id)) {
                    numbers.later.free.remove(number);
                }
            }
        }
    }

    /// A transaction has ended: what it acknowledged of this range is settled, or is as it was.
    pub(super) fn end(&mut self, first: u64, last: u64, transaction: &TransactionId, is_committed: bool) {
        let mut settled = Vec::new();
        for (number, delivered) in self.deliveries.range_mut(first..=last.max(first)) {
            if delivered.transaction.as_ref() == Some(transaction) {
                delivered.transaction = None;
                if is_committed {
                    settled.push(*number);
                } else if let Some(numbers) = delivered.id.as_ref().and_then(|id| self.names.get_mut(id))
                    && numbers.oldest != *number
                {
                    numbers.later.free.insert(*number);
                }
            }
        }
        for number in settled {
            self.settle(number, number);
        }
    }

    /// The oldest delivery that was not acknowledged, in a transaction or without.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.deliveries
            .iter()
            .find(|(_, delivered)| delivered.transaction.is_none())
            .map(|(number, _)| *number)
    }

    /// The consumer is closed: what is above this number goes back, and the rest may still be settled.
    pub(super) fn close(&mut self, last_handed_over: u64) {
        self.is_closed = true;
        self.take_back(last_handed_over);
    }

    /// Whether the consumer is closed, and nothing of it is left, with a transaction neither.
    pub(super) fn is_done(&self) -> bool {
        self.is_closed && self.deliveries.is_empty()
    }

    /// The last delivery that has this sequence or a lower one.
    pub(super) fn up_to(&self, sequence: i64) -> Option<u64> {
        self.deliveries
            .iter()
            .rev()
            .find(|(_, delivered)| delivered.sequence <= sequence)
            .map(|(number, _)| *number)
    }

    /// The delivery that has this very sequence.
    pub(super) fn at(&self, sequence: i64) -> Option<u64> {
        self.up_to(sequence).filter(|number| {
            self.deliveries.get(number).is_some_and(|delivered| delivered.sequence == sequence)
        })
    }

    /// The highest number that the peer said to have handed to its application; 0 for none.
    pub(super) fn handed_over(&self) -> u64 {
        self.handed_over
    }

    /// Forgets what is above a number.
    fn take_back(&mut self, number: u64) {
        for (number, delivered) in self.deliveries.split_off(&number.saturating_add(1)) {
            self.forget_name(number, &delivered);
        }
    }

    fn forget_name(&mut self, number: u64, delivered: &Delivered) {
        let Some(id) = &delivered.id else { return };
        let Some(numbers) = self.names.get_mut(id) else { return };
        if numbers.oldest != number {
            numbers.later.remove(number);
        } else if let Some(next) = numbers.later.take_first() {
            numbers.oldest = next;
        } else {
            self.names.remove(id);
        }
    }
}

#[cfg(test)]
mod tests;
