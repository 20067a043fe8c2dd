//! The index held against a naive one, through checkpoints and restarts.

mod model;
mod steps;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use self::model::{Model, Staged};
use self::steps::{Step, queue, steps, subscription, topic, transaction, xid};
use super::*;
use crate::journal::change::Recipients;
use crate::store::Recipient;

const SEGMENT: u64 = 1_000;
const RECORD: u64 = 100;

/// What a checkpoint would hold after these changes.
fn merge(saved: &mut Saved, changes: Changes) {
    saved.counters = changes.counters;
    for (stored, reference) in changes.references {
        saved.references.retain(|(known, _)| *known != stored);
        saved.references.extend(reference.map(|reference| (stored, reference)));
    }
    for (number, holder, totals) in changes.queues {
        saved.queues.retain(|(known, _, _)| *known != number);
        saved.queues.push((number, holder, totals));
    }
    saved.queues.retain(|(known, _, _)| !changes.removed_queues.contains(known));
    for (name, producer) in changes.producers {
        saved.producers.retain(|(known, _)| *known != name);
        saved.producers.extend(producer.map(|producer| (name, producer)));
    }
    for change in changes.transactions {
        match change {
            TransactionChange::Open { number, id, prepared, from, operations } => {
                let known = saved.transactions.iter_mut().find(|known| known.number == number);
                if let Some(known) = known {
                    assert_eq!(known.operations.len(), from);
                    known.prepared = prepared;
                    known.operations.extend(operations);
                } else {
                    assert_eq!(from, 0);
                    saved.transactions.push(SavedTransaction { number, id, prepared, operations });
                }
            }
            TransactionChange::Ended { number, operations } => {
                let at = saved.transactions.iter().position(|known| known.number == number).unwrap();
                assert_eq!(saved.transactions.remove(at).operations.len(), operations);
            }
        }
    }
}

fn check(index: &Index, model: &Model) {
    let recovered = index.recovered();
    for queue in &recovered.queues {
        let at = (Recipient::Queue(queue.destination.clone()), 0);
        let expected = model.visible.iter().filter(|one| one.at == at);
        let expected: Vec<_> = expected.map(|one| model.recovered(one)).collect();
        assert_eq!(queue.messages, expected, "{}", queue.destination);
    }
    assert_eq!(recovered.subscriptions.len(), model.subscriptions.len());
    for (found, there) in recovered.subscriptions.iter().zip(&model.subscriptions) {
        let about = (&found.subscription, &found.topic, found.no_local, found.totals);
        assert_eq!(about, (&there.name, &topic(), there.no_local, there.totals));
        let expected = model.visible.iter().filter(|one| one.at.1 == there.life);
        let expected: Vec<_> = expected.map(|one| model.recovered(one)).collect();
        assert_eq!(found.messages, expected, "{}", there.name);
    }
    let totals: Vec<_> =
        recovered.queues.iter().map(|queue| (queue.destination.clone(), queue.totals)).collect();
    assert_eq!(totals, model.totals.clone().into_iter().collect::<Vec<_>>());
    let producers: Vec<_> =
        recovered.producers.iter().map(|(name, last)| (name.to_string(), *last)).collect();
    assert_eq!(producers, model.producers);
    assert_eq!(recovered.last_id.0, model.last_id);

    let prepared: Vec<_> = model.open.iter().filter(|(_, prepared, _)| *prepared).collect();
    assert_eq!(recovered.prepared.len(), prepared.len());
    for (found, (id, _, operations)) in recovered.prepared.iter().zip(prepared) {
        assert_eq!(StoreTransaction::Distributed(found.xid.clone()), *id);
        let sends: Vec<_> = operations
            .iter()
            .filter_map(|operation| match operation {
                Staged::Send(one) if model.is_there(&one.at) => Some(&**one),
                _ => None,
            })
            .collect();
        let expected: Vec<_> = sends.iter().map(|one| (one.at.0.clone(), model.recovered(one))).collect();
        assert_eq!(found.sends, expected);
        let ids: Vec<_> = sends.iter().map(|one| one.appended.producer.clone()).collect();
        let found_ids = found.ids.iter().cloned().map(|id| id.map(|id| (id.producer, id.sequence)));
        assert_eq!(found_ids.collect::<Vec<_>>(), ids);
        let acknowledged = operations.iter().filter_map(|operation| match operation {
            Staged::Remove { stored, .. } => Some(*stored),
            Staged::Send(_) => None,
        });
        let live = |stored: &StoredId| model.visible.iter().any(|one| one.stored == *stored);
        assert_eq!(found.acknowledged, acknowledged.filter(live).collect::<Vec<_>>());
    }

    let mut live: BTreeMap<_, _> =
        index.segments().iter().filter(|(_, live)| **live > 0).map(|(b, l)| (*b, *l)).collect();
    for (_, reference) in index.references.iter().filter(|(_, reference)| !index.is_held(reference)) {
        // It keeps its segment until it is taken out.
        let segment = reference.lsn.0 / SEGMENT * SEGMENT;
        *live.get_mut(&segment).unwrap() -= 1;
    }
    live.retain(|_, count| *count > 0);
    assert_eq!(live, model.live_by_segment());
    assert_eq!(index.messages(), model.visible.len());
    let live: BTreeSet<u64> = model.visible.iter().chain(model.sent()).map(|one| one.stored.0).collect();
    assert_eq!(index.live().map(|(stored, _)| stored.0).collect::<BTreeSet<_>>(), live);
    for stored in 0..=model.last_id + 1 {
        let lsn = index.find(StoredId(stored)).map(|reference| reference.lsn.0);
        let is_live = live.contains(&stored);
        assert_eq!(lsn, model.lsns.get(&stored).copied().filter(|_| is_live), "message {stored}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Checkpoints and restarts at any moment change nothing, and the state is what plain lists say.
    #[test]
    fn the_index_is_what_a_naive_model_says_through_checkpoints_and_restarts(steps in steps()) {
        let (mut index, mut model, mut saved) = (Index::default(), Model::default(), Saved::default());
        let (mut lsn, mut large, mut shared) = (0, BTreeMap::new(), BTreeMap::new());
        let mut dead_large = Vec::new();
        for step in steps {
            index.add_segment(Lsn(lsn / SEGMENT * SEGMENT));
            let change = match step {
                Step::Append { queue: to, moved, producer, transaction: of, large: is_large } => {
                    let stored = StoredId(model.last_id + 1);
                    large.insert(stored, is_large);
                    Change::Append(Appended {
                        stored,
                        to: Recipients::Queue(queue(to)),
                        arrival: if moved { Arrival::MovedIn } else { Arrival::Sent },
                        priority: Priority::default(),
                        expiration: Some(Timestamp(lsn)),
                        size: lsn,
                        producer: producer.map(|(name, last)| (format!("ID:{name}").into(), u64::from(last))),
                        transaction: of.map(transaction),
                        large: is_large.then_some(LargeFile { name: stored, length: 7 }),
                    })
                }
                Step::Publish { to, moved, producer, transaction: of, large: is_large } => {
                    let stored = StoredId(model.last_id + 1);
                    let to: Vec<_> = (0..3).filter(|bit| to & (1 << bit) != 0).map(subscription).collect();
                    large.insert(stored, is_large);
                    shared.insert(stored, to.len().max(1) as u64);
                    Change::Append(Appended {
                        stored,
                        to: Recipients::Subscriptions(topic(), to),
                        arrival: if moved { Arrival::MovedIn } else { Arrival::Sent },
                        priority: Priority::default(),
                        expiration: None,
                        size: lsn,
                        producer: producer.map(|(name, last)| (format!("ID:{name}").into(), u64::from(last))),
                        transaction: of.map(transaction),
                        large: is_large.then_some(LargeFile { name: stored, length: 7 }),
                    })
                }
                Step::Create { subscription: number, no_local } => Change::CreateSubscription {
                    subscription: subscription(number),
                    topic: topic(),
                    no_local,
                },
                Step::Unsubscribe { subscription: number } => {
                    Change::RemoveSubscription(subscription(number))
                }
                Step::Remove { stored, reason, transaction: of } => Change::Remove {
                    stored: StoredId(u64::from(stored) % (model.last_id + 1)),
                    reason,
                    transaction: of.map(transaction),
                },
                Step::State { stored, failed } => Change::DeliveryState {
                    stored: StoredId(u64::from(stored) % (model.last_id + 1)),
                    state: DeliveryState { failed_deliveries: failed, ..DeliveryState::default() },
                },
                Step::Prepare { transaction } => Change::Prepare(xid(2 + transaction % 2)),
                Step::Commit { transaction: of } => Change::Commit(transaction(of)),
                Step::Rollback { transaction: of } => Change::Rollback(transaction(of)),
                Step::TakeOut { most } => {
                    index.take_out_gone(most);
                    check(&index, &model);
                    continue;
                }
                Step::Checkpoint | Step::Restart => {
                    let changes = index.take_changes();
                    dead_large.extend(changes.dead_large.iter().copied());
                    for dead in &changes.dead_segments {
                        prop_assert!(!model.live_by_segment().contains_key(&dead.0));
                    }
                    merge(&mut saved, changes);
                    if matches!(step, Step::Restart) {
                        index = Index::restore(saved.clone(), (0..=lsn / SEGMENT).map(|base| Lsn(base * SEGMENT)));
                        index.drop_open();
                        model.open.retain(|(_, prepared, _)| *prepared);
                    }
                    check(&index, &model);
                    continue;
                }
            };
            model.apply(lsn, change.clone());
            index.apply(Entry { lsn: Lsn(lsn), length: 100, change });
            lsn += RECORD;
            check(&index, &model);
        }
        dead_large.extend(index.take_changes().dead_large);
        let live: Vec<_> = index.live().map(|(stored, _)| stored.0).collect();
        let is_live = |stored: &StoredId| {
            let names = stored.0..stored.0 + shared.get(stored).copied().unwrap_or(1);
            live.iter().any(|live| names.contains(live))
        };
        let dead = large.into_iter().filter(|(stored, large)| *large && !is_live(stored));
        dead_large.sort_unstable();
        prop_assert_eq!(dead_large, dead.map(|(stored, _)| stored).collect::<Vec<_>>());
    }
}

fn sent(stored: u64, producer: u64, sequence: u64) -> Entry {
    let change = Change::Append(Appended {
        stored: StoredId(stored),
        to: Recipients::Queue(queue(0)),
        arrival: Arrival::Sent,
        priority: Priority::default(),
        expiration: None,
        size: 1,
        producer: Some((format!("ID:{producer}").into(), sequence)),
        transaction: None,
        large: None,
    });
    Entry { lsn: Lsn(stored * RECORD), length: 100, change }
}

#[test]
fn of_many_producers_those_used_longest_ago_are_forgotten_also_by_the_checkpoint() {
    let (mut index, mut saved) = (Index::default(), Saved::default());
    for producer in 0..1_500 {
        index.apply(sent(producer, producer, 7));
        if producer % 100 == 0 {
            merge(&mut saved, index.take_changes());
        }
    }
    index.apply(sent(1_500, 600, 8));
    merge(&mut saved, index.take_changes());
    for index in [index, Index::restore(saved, [])] {
        let producers = index.recovered().producers;
        assert_eq!(producers.len(), 1_024);
        assert_eq!(producers[0], ("ID:476".into(), 7));
        assert_eq!(producers[1_023], ("ID:600".into(), 8));
    }
}

#[test]
fn a_message_that_came_and_went_between_checkpoints_is_never_written_to_one() {
    let mut index = Index::default();
    index.apply(sent(1, 1, 1));
    let remove = Change::Remove { stored: StoredId(1), reason: Removal::Acknowledged, transaction: None };
    index.apply(Entry { lsn: Lsn(200), length: 50, change: remove });
    assert_eq!(index.take_changes().references, []);
}

#[test]
fn a_message_that_is_not_there_is_not_sought_in_all_that_open_transactions_send() {
    const SENDS: u64 = 200_000;
    let mut index = Index::default();
    for stored in 1..=SENDS {
        let mut entry = sent(stored, 1, stored);
        if let Change::Append(appended) = &mut entry.change {
            appended.transaction = Some(transaction((stored % 4) as u8));
        }
        index.apply(entry);
    }
    // This would not end if each of them were compared with each of those.
    for stored in 1..=SENDS {
        assert_eq!(index.find(StoredId(SENDS + stored)), None);
    }
    assert_eq!(index.find(StoredId(7)).unwrap().lsn, Lsn(7 * RECORD));
}

#[test]
fn an_attempt_raises_the_count_of_a_live_message_and_never_lowers_it() {
    let mut index = Index::default();
    index.apply(sent(1, 1, 1));
    for (delivery, expected) in [(2, 2), (1, 2), (3, 3)] {
        index.apply_attempt(Attempt { stored: StoredId(1), delivery });
        assert_eq!(index.find(StoredId(1)).unwrap().state.failed_deliveries, expected);
    }
    index.apply_attempt(Attempt { stored: StoredId(9), delivery: 1 });
    assert_eq!(index.messages(), 1);
}

fn published(stored: u64, name: u8) -> Entry {
    let mut entry = sent(stored, 1, stored);
    if let Change::Append(appended) = &mut entry.change {
        appended.to = Recipients::Subscriptions(topic(), vec![subscription(name)]);
    }
    entry
}

fn create(name: u8) -> Entry {
    let change =
        Change::CreateSubscription { subscription: subscription(name), topic: topic(), no_local: false };
    Entry { lsn: Lsn(1), length: 50, change }
}

fn remove(name: u8) -> Entry {
    Entry { lsn: Lsn(2), length: 50, change: Change::RemoveSubscription(subscription(name)) }
}

#[test]
fn the_end_of_a_subscription_looks_at_no_message_of_others() {
    const MESSAGES: u64 = 100_000;
    let mut index = Index::default();
    index.add_segment(Lsn(0));
    index.apply(create(0));
    for stored in 1..=MESSAGES {
        index.apply(if stored % 2 == 0 { published(stored, 0) } else { sent(stored, 1, stored) });
    }
    // This would not end if each of these were compared with each of those.
    for stored in MESSAGES + 1..=2 * MESSAGES {
        index.apply(create(1));
        index.apply(published(stored, 1));
        index.apply(remove(1));
        assert!(index.take_out_gone(2));
    }
    assert_eq!(index.messages() as u64, MESSAGES);
    assert!(!index.take_out_gone(1));
    index.apply(remove(0));
    assert_eq!(index.messages() as u64, MESSAGES / 2);
}

#[test]
fn messages_of_a_subscription_that_is_gone_are_nobodys_at_once_and_keep_their_segment_until_they_are_taken_out()
 {
    let mut index = Index::default();
    index.add_segment(Lsn(0));
    index.apply(create(0));
    (1..=10).for_each(|stored| index.apply(published(stored, 0)));
    let created = index.take_changes();
    assert_eq!(created.references.len(), 10);
    index.apply(remove(0));
    assert_eq!((index.messages(), index.live().count(), index.find(StoredId(1))), (0, 0, None));
    assert!(index.recovered().subscriptions.is_empty());
    for left in [7, 4, 1] {
        assert!(index.take_out_gone(3));
        assert_eq!(index.segments()[&0], left);
    }
    // A checkpoint has nothing of it, however much was taken out before.
    let ended = index.take_changes();
    assert_eq!(
        (ended.references.len(), &*ended.removed_queues, &*ended.dead_segments),
        (10, &[0][..], &[Lsn(0)][..])
    );
    assert!(ended.references.iter().all(|(_, reference)| reference.is_none()));
    assert_eq!((ended.weight.references, ended.weight.others), (0, index.weight().others));
    assert!(!index.take_out_gone(1));
}
