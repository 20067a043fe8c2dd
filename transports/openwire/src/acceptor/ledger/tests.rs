//! Which deliveries a message id names.

use std::sync::Arc;

use corriere_core::{Message, SubscriptionId};

use super::*;

impl Ledger {
    /// What a range names, which is one in itself.
    fn range(&self, first: Option<&wire::MessageId>, last: Option<&wire::MessageId>) -> Option<(u64, u64)> {
        let [range, other] = self.ranges(first, last, None);
        assert_eq!(other, None);
        range
    }
}

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
    assert_eq!(ledger.range(Some(&id(2)), Some(&id(5))), Some((5, 5)), "what is settled is not named again");
    assert_eq!(ledger.range(None, Some(&id(4))), None);
    assert_eq!(ledger.range(Some(&id(1)), None), None);
}

#[test]
fn of_a_range_with_more_in_it_than_the_peer_means_only_its_ends_are_named() {
    let mut ledger = ledger();
    let ranges =
        |ledger: &Ledger, first, last, count| ledger.ranges(Some(&id(first)), Some(&id(last)), Some(count));
    assert_eq!(ranges(&ledger, 1, 4, 4), [Some((1, 4)), None]);
    assert_eq!(ranges(&ledger, 1, 4, 3), [Some((1, 1)), Some((4, 4))]);
    assert_eq!(ranges(&ledger, 4, 4, 0), [Some((4, 4)), None]);
    // What was settled meanwhile the peer may have counted.
    ledger.settle(2, 2);
    assert_eq!(ranges(&ledger, 1, 4, 3), [Some((1, 4)), None]);
    assert_eq!(ranges(&ledger, 1, 4, 4), [Some((1, 4)), None]);
    ledger.lock(3, 3, &TransactionId::Local(1));
    assert_eq!(ranges(&ledger, 1, 4, 2), [Some((1, 4)), None]);
}

#[test]
fn a_range_against_the_order_of_dispatch_has_its_ends_and_what_the_peer_counts_between() {
    let ledger = ledger();
    let ranges = |count| ledger.ranges(Some(&id(4)), Some(&id(2)), count);
    assert_eq!(ranges(Some(3)), [Some((2, 4)), None]);
    assert_eq!(ranges(Some(2)), [Some((4, 4)), Some((2, 2))]);
    assert_eq!(ranges(None), [Some((4, 4)), Some((2, 2))]);
}

#[test]
fn of_a_range_of_which_one_end_is_known_that_is_named_and_nothing_else() {
    let ledger = ledger();
    let unknown = id(77);
    for count in [None, Some(1), Some(9)] {
        assert_eq!(ledger.ranges(Some(&id(2)), Some(&unknown), count), [Some((2, 2)), None]);
        assert_eq!(ledger.ranges(Some(&unknown), Some(&id(4)), count), [Some((4, 4)), None]);
        assert_eq!(ledger.ranges(Some(&unknown), Some(&unknown), count), [None, None]);
        assert_eq!(ledger.ranges(None, Some(&unknown), count), [None, None]);
    }
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
    assert_eq!(ledger.number_of(&id(1)), Some(4), "the third is with the transaction, and the oldest now");
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
