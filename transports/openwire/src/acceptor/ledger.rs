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

    /// The numbers from one message to another; without a first one, from the oldest. `None` when the last is not known,
    /// as it is settled already or was sent before a reconnect; where only the first is not known, it is the last alone.
    pub(super) fn range(
        &self,
        first: Option<&wire::MessageId>,
        last: Option<&wire::MessageId>,
    ) -> Option<(u64, u64)> {
        let first = match first {
            Some(first) => self.number_of(first),
            None => self.deliveries.keys().next().copied(),
        };
        let last = self.find(last?, first.unwrap_or(0))?;
        Some((first.unwrap_or(last).min(last), last))
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
mod tests {
    use std::sync::Arc;

    use corriere_core::{Message, SubscriptionId};

    use super::*;

    const PRODUCER: &str = "ID:host-1:1:1:1";

    fn dispatch(number: u64, sequence: u64, epoch: u32) -> Dispatch {
        let mut message = Message::text("");
        message.headers_mut().message_id = Some(MessageId { producer: PRODUCER.into(), sequence });
        Dispatch {
            subscription: SubscriptionId(1),
            number,
            epoch,
            message: Arc::new(message),
            delivery_count: 1,
            mark: None,
        }
    }

    fn id(sequence: u64) -> wire::MessageId {
        format!("{PRODUCER}:{sequence}").parse().unwrap()
    }

    /// Five messages under the sequences 101 to 105.
    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        for number in 1..=5 {
            ledger.note(&dispatch(number, number, 0), 100 + i64::try_from(number).unwrap());
        }
        ledger
    }

    #[test]
    fn a_range_goes_from_the_first_message_or_the_oldest_to_the_last() {
        let mut ledger = ledger();
        assert_eq!(ledger.range(Some(&id(2)), Some(&id(4))), Some((2, 4)));
        assert_eq!(ledger.range(None, Some(&id(4))), Some((1, 4)));
        assert_eq!(ledger.settle(2, 4), 3);
        assert_eq!(
            ledger.range(Some(&id(2)), Some(&id(5))),
            Some((5, 5)),
            "what is settled is not named again"
        );
        assert_eq!(ledger.range(None, Some(&id(4))), None);
        assert_eq!(ledger.range(Some(&id(1)), None), None);
    }

    #[test]
    fn what_a_transaction_acknowledged_is_there_again_when_it_is_rolled_back_only() {
        let mut ledger = ledger();
        let transaction = TransactionId::Local(1);
        ledger.lock(1, 2, &transaction);
        assert_eq!(ledger.oldest(), Some(3));
        assert_eq!(ledger.settle(1, 2), 0);
        ledger.end(1, 2, &transaction, false);
        assert_eq!((ledger.oldest(), ledger.range(None, Some(&id(2)))), (Some(1), Some((1, 2))));
        ledger.lock(1, 2, &transaction);
        ledger.end(1, 2, &transaction, true);
        assert_eq!((ledger.oldest(), ledger.number_of(&id(2))), (Some(3), None));
    }

    #[test]
    fn what_one_transaction_acknowledged_no_other_takes_over() {
        let mut ledger = ledger();
        let (one, other) = (TransactionId::Local(1), TransactionId::Local(2));
        ledger.lock(1, 2, &one);
        ledger.lock(1, 3, &other);
        ledger.end(1, 2, &one, true);
        ledger.end(1, 3, &other, false);
        assert_eq!((ledger.oldest(), ledger.number_of(&id(2))), (Some(3), None));
    }

    #[test]
    fn a_sequence_of_the_broker_names_the_last_delivery() {
        let mut ledger = ledger();
        assert_eq!((ledger.up_to(103), ledger.at(103)), (Some(3), Some(3)));
        ledger.settle(3, 3);
        assert_eq!((ledger.up_to(103), ledger.at(103)), (Some(2), None));
        assert_eq!((ledger.up_to(0), ledger.at(0), ledger.up_to(-2)), (None, None, None));
    }

    #[test]
    fn what_was_taken_back_is_known_by_its_new_number() {
        let mut ledger = ledger();
        ledger.hand_over(2);
        ledger.note(&dispatch(6, 3, 1), 106);
        assert_eq!(ledger.number_of(&id(3)), Some(6));
        assert_eq!(ledger.number_of(&id(4)), None);
        assert_eq!(ledger.number_of(&id(2)), Some(2), "it was handed over");
    }

    /// The message id 1 under the numbers 1 and 3, and 2 between them.
    fn twice() -> Ledger {
        let mut ledger = Ledger::default();
        for (number, sequence) in [(1, 1), (2, 2), (3, 1)] {
            ledger.note(&dispatch(number, sequence, 0), 100 + i64::try_from(number).unwrap());
        }
        ledger
    }

    #[test]
    fn of_two_deliveries_of_one_id_each_is_acknowledged_by_itself() {
        let with_sequence = |sequence| wire::MessageId { broker_sequence_id: sequence, ..id(1) };
        let mut ledger = twice();
        assert_eq!(ledger.number_of(&with_sequence(103)), Some(3));
        assert_eq!(ledger.range(Some(&with_sequence(101)), Some(&with_sequence(103))), Some((1, 3)));
        ledger.settle(3, 3);
        assert_eq!(ledger.number_of(&id(1)), Some(1), "the other one is there still");
        let mut ledger = twice();
        ledger.settle(1, 1);
        assert_eq!(ledger.number_of(&id(1)), Some(3));
        assert_eq!(ledger.settle(2, 3), 2);
        assert_eq!((ledger.number_of(&id(1)), ledger.names.len()), (None, 0));
    }

    #[test]
    fn of_two_deliveries_of_one_id_a_peer_that_gives_no_sequence_means_the_oldest() {
        let mut ledger = twice();
        assert_eq!(ledger.range(Some(&id(1)), Some(&id(1))), Some((1, 1)));
        assert_eq!(ledger.range(Some(&id(2)), Some(&id(1))), Some((2, 3)));
        assert_eq!(ledger.range(None, Some(&id(1))), Some((1, 1)));
        ledger.lock(1, 1, &TransactionId::Local(1));
        assert_eq!(ledger.number_of(&id(1)), Some(3), "the other one is acknowledged");
        ledger.lock(3, 3, &TransactionId::Local(1));
        assert_eq!(ledger.number_of(&id(1)), Some(1));
    }

    /// So many that it would be minutes if each acknowledgement looked at all of them.
    #[test]
    fn of_many_deliveries_of_one_id_each_is_found_at_once() {
        const MANY: u64 = 50_000;
        let ledger = || {
            let mut ledger = Ledger::default();
            for number in 1..=MANY {
                ledger.note(&dispatch(number, 1, 0), 100 + i64::try_from(number).unwrap());
            }
            ledger
        };
        // The newest first, by what the peer gives back.
        let mut by_sequence = ledger();
        for number in (1..=MANY).rev() {
            let broker_sequence_id = 100 + i64::try_from(number).unwrap();
            assert_eq!(by_sequence.number_of(&wire::MessageId { broker_sequence_id, ..id(1) }), Some(number));
            assert_eq!(by_sequence.settle(number, number), 1);
        }
        assert_eq!(by_sequence.names.len(), 0);
        // The oldest first, without, and each stays with a transaction.
        let mut in_transaction = ledger();
        let transaction = TransactionId::Local(1);
        for number in 1..=MANY {
            assert_eq!(in_transaction.number_of(&id(1)), Some(number));
            in_transaction.lock(number, number, &transaction);
        }
        in_transaction.end(1, MANY, &transaction, false);
        for number in 1..=MANY {
            assert_eq!(in_transaction.range(Some(&id(1)), Some(&id(1))), Some((number, number)));
            assert_eq!(in_transaction.settle(number, number), 1);
        }
        assert_eq!(in_transaction.names.len(), 0);
    }

    #[test]
    fn what_one_transaction_has_of_one_id_is_free_again_in_its_order() {
        let mut ledger = twice();
        ledger.note(&dispatch(4, 1, 0), 104);
        let transaction = TransactionId::Local(1);
        ledger.lock(1, 3, &transaction);
        assert_eq!(ledger.number_of(&id(1)), Some(4));
        ledger.end(1, 1, &transaction, true);
        assert_eq!(
            ledger.number_of(&id(1)),
            Some(4),
            "the third is with the transaction, and the oldest now"
        );
        ledger.end(2, 3, &transaction, false);
        assert_eq!(ledger.number_of(&id(1)), Some(3));
        assert_eq!(ledger.settle(3, 3), 1);
        assert_eq!((ledger.number_of(&id(1)), ledger.settle(4, 4)), (Some(4), 1));
        // All at once.
        let mut ledger = twice();
        ledger.note(&dispatch(4, 1, 0), 104);
        ledger.close(0);
        assert_eq!((ledger.is_done(), ledger.names.len()), (true, 0));
    }

    #[test]
    fn of_a_peer_that_acknowledges_nothing_nothing_is_kept() {
        let mut ledger = Ledger::of_nothing();
        for number in 1..=1_000 {
            ledger.note(&dispatch(number, number, 0), i64::try_from(number).unwrap());
        }
        assert_eq!((ledger.deliveries.len(), ledger.names.len()), (0, 0));
        assert!(!ledger.is_done(), "its consumer is open");
    }

    #[test]
    fn a_closed_consumer_keeps_what_it_may_settle_until_that_is_settled() {
        let mut ledger = ledger();
        ledger.close(3);
        assert_eq!((ledger.deliveries.len(), ledger.names.len()), (3, 3));
        // It was on its way when the consumer was closed.
        ledger.note(&dispatch(6, 6, 0), 106);
        let transaction = TransactionId::Local(1);
        ledger.lock(1, 2, &transaction);
        ledger.settle(3, 3);
        assert!(!ledger.is_done());
        ledger.end(1, 2, &transaction, true);
        assert_eq!((ledger.is_done(), ledger.names.len()), (true, 0));
    }

    #[test]
    fn a_foreign_producer_is_known_without_its_text() {
        let mut ledger = Ledger::default();
        let mut foreign = Message::text("");
        foreign.headers_mut().message_id = Some(MessageId { producer: "ID:4711-18c2".into(), sequence: 7 });
        ledger.note(&Dispatch { message: Arc::new(foreign.clone()), ..dispatch(1, 1, 0) }, 1);
        let named = wire::MessageId::from_core(foreign.headers().message_id.as_ref().unwrap()).unwrap();
        assert_eq!(ledger.number_of(&named), Some(1));
        assert_eq!(ledger.number_of(&wire::MessageId { text_view: None, ..named }), Some(1));
    }
}
