//! Transactions take effect by their commit or not at all.

use super::*;
use crate::store::{RecoveredMessage, Totals};

#[test]
fn one_over_five_segments_is_there_as_a_whole_or_not_at_all() {
    for commit in [true, false] {
        for how in [Survival::Process, Survival::OnlySynced] {
            let store = Stepwise::new();
            store.ok(send(1));
            for stored in 2..=60 {
                let transaction = local(1);
                drop(submit(&store.store, vec![append_of(stored, 300, Some(transaction), Arrival::Sent)]));
                if stored % 10 == 0 {
                    store.store.step();
                    store.store.checkpoint().unwrap();
                }
            }
            store.ok(vec![StoreOperation::Remove {
                stored: StoredId(1),
                reason: Removal::Acknowledged,
                transaction: Some(local(1)),
            }]);
            assert!(store.segments() >= 5, "{}", store.segments());
            if commit {
                store.ok(vec![StoreOperation::Commit(local(1))]);
            }
            let mut store = store.crash(how);
            for _ in 0..2 {
                let recovered = store.store.recover();
                let expected = if commit { (2..=60).collect() } else { vec![1] };
                assert_eq!(names(&recovered), expected);
                assert_eq!(recovered.last_id, StoredId(60));
                let expected = if commit {
                    Totals { enqueued: 60, acknowledged: 1, dead_lettered: 0 }
                } else {
                    Totals { enqueued: 1, ..Totals::default() }
                };
                assert_eq!(recovered.queues[0].totals, expected);
                store = store.crash(how);
            }
            // What was dropped holds no segment.
            store.store.checkpoint().unwrap();
            assert_eq!(store.segments() >= 5, commit, "{} segments", store.segments());
        }
    }
}

#[test]
fn messages_become_visible_in_the_order_of_the_commits() {
    let store = Stepwise::new();
    store.ok(vec![append_of(1, 10, Some(local(1)), Arrival::Sent)]);
    store.ok(vec![append_of(2, 10, Some(local(2)), Arrival::Sent)]);
    store.ok(send(3));
    store.ok(vec![append_of(4, 10, Some(local(1)), Arrival::Sent)]);
    store.ok(vec![StoreOperation::Commit(local(2))]);
    store.ok(vec![StoreOperation::Commit(local(1))]);
    let store = store.crash(Survival::OnlySynced);
    assert_eq!(names(&store.store.recover()), [3, 2, 1, 4]);
}

#[test]
fn a_prepared_one_survives_many_restarts_and_pins_only_its_own_segments() {
    for outcome in [Some(true), Some(false), None] {
        let mut store = Stepwise::new();
        let distributed = || StoreTransaction::Distributed(xid());
        store.ok(send(1));
        store.ok(vec![append_of(2, 300, Some(distributed()), Arrival::Sent)]);
        store.ok(vec![StoreOperation::Remove {
            stored: StoredId(1),
            reason: Removal::Acknowledged,
            transaction: Some(distributed()),
        }]);
        store.ok(vec![StoreOperation::Prepare(xid())]);
        for round in 0..6_u64 {
            for stored in 3 + round * 20..3 + round * 20 + 20 {
                store.ok(send(stored));
                store.ok(remove(stored));
            }
            store.store.checkpoint().unwrap();
            assert!(store.segments() <= 2, "{} segments", store.segments());
            store = if round % 2 == 0 { store.restart() } else { store.crash(Survival::OnlySynced) };
            let recovered = store.store.recover();
            assert_eq!(names(&recovered), [1]);
            assert_eq!(recovered.prepared.len(), 1);
            let prepared = &recovered.prepared[0];
            assert_eq!((&prepared.xid, &*prepared.acknowledged), (&xid(), &[StoredId(1)][..]));
            let sent = RecoveredMessage {
                stored: StoredId(2),
                priority: message(2, 300).headers().priority,
                expiration: None,
                size: message(2, 300).size() as u64,
                state: DeliveryState::default(),
            };
            assert_eq!(prepared.sends, [(queue("orders").into(), sent)]);
            assert_eq!(*store.load(2).unwrap(), *message(2, 300));
        }
        let expected = match outcome {
            Some(true) => {
                store.ok(vec![StoreOperation::Commit(distributed())]);
                vec![2]
            }
            Some(false) => {
                store.ok(vec![StoreOperation::Rollback(distributed())]);
                store.store.step();
                vec![1]
            }
            None => vec![1],
        };
        let store = store.crash(Survival::OnlySynced);
        let recovered = store.store.recover();
        assert_eq!(names(&recovered), expected);
        assert_eq!(recovered.prepared.len(), usize::from(outcome.is_none()));
    }
}

#[test]
fn one_of_which_a_part_failed_cannot_be_committed_or_prepared() {
    let too_long = || {
        let long = "x".repeat(2_000);
        StoreOperation::Append {
            stored: StoredId(2),
            queue: queue(&long[..1_000]),
            arrival: Arrival::Sent,
            message: message(2, 1),
            transaction: Some(StoreTransaction::Local(ConnectionId::foreign(&long), 1)),
        }
    };
    let long = StoreTransaction::Local(ConnectionId::foreign(&"x".repeat(2_000)), 1);

    // Together in one step, and one after the other.
    for together in [true, false] {
        let store = Stepwise::new();
        let failed = submit(&store.store, vec![too_long()]);
        if !together {
            store.store.step();
        }
        let committed = submit(&store.store, vec![StoreOperation::Commit(long.clone())]);
        let other = submit(&store.store, send(9));
        store.store.step();
        assert!(failed.try_recv().unwrap().is_err());
        assert!(committed.try_recv().unwrap().is_err());
        assert_eq!(other.try_recv().unwrap(), Ok(()));
        assert_eq!(names(&store.crash(Survival::OnlySynced).store.recover()), [9]);
    }
}
