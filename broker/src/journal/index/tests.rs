use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use corriere_core::ConnectionId;
use corriere_core::id::Xid;
use proptest::prelude::*;

use super::*;
use crate::journal::change::Recipients;
use crate::store::{Recipient, Totals};

const SEGMENT: u64 = 1_000;
const RECORD: u64 = 100;

/// A step of a history over few messages, queues, producers and transactions, so that they meet.
#[derive(Clone, Debug)]
enum Step {
    Append {
        queue: u8,
        moved: bool,
        producer: Option<(u8, u8)>,
        transaction: Option<u8>,
        large: bool,
    },
    /// To those of three subscriptions whose bits are set.
    Publish {
        to: u8,
        moved: bool,
        producer: Option<(u8, u8)>,
        transaction: Option<u8>,
        large: bool,
    },
    Create {
        subscription: u8,
        no_local: bool,
    },
    Unsubscribe {
        subscription: u8,
    },
    Remove {
        stored: u8,
        reason: Removal,
        transaction: Option<u8>,
    },
    State {
        stored: u8,
        failed: u32,
    },
    Prepare {
        transaction: u8,
    },
    Commit {
        transaction: u8,
    },
    Rollback {
        transaction: u8,
    },
    /// A checkpoint is written.
    Checkpoint,
    /// A checkpoint is written, and the next process begins with it.
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let reason = prop_oneof![
        Just(Removal::Acknowledged),
        Just(Removal::DeadLettered),
        Just(Removal::Expired),
        Just(Removal::Discarded),
        Just(Removal::Purged),
        Just(Removal::MovedOut)
    ];
    let transaction = || prop::option::of(0_u8..4);
    let step = prop_oneof![
        6 => (0_u8..3, any::<bool>(), prop::option::of((0_u8..3, any::<u8>())), transaction(), any::<bool>())
            .prop_map(|(queue, moved, producer, transaction, large)| {
                Step::Append { queue, moved, producer, transaction, large }
            }),
        4 => (0_u8..8, any::<bool>(), prop::option::of((0_u8..3, any::<u8>())), transaction(), any::<bool>())
            .prop_map(|(to, moved, producer, transaction, large)| {
                Step::Publish { to, moved, producer, transaction, large }
            }),
        2 => (0_u8..3, any::<bool>())
            .prop_map(|(subscription, no_local)| Step::Create { subscription, no_local }),
        1 => (0_u8..3).prop_map(|subscription| Step::Unsubscribe { subscription }),
        4 => (any::<u8>(), reason, transaction())
            .prop_map(|(stored, reason, transaction)| Step::Remove { stored, reason, transaction }),
        2 => (any::<u8>(), 0_u32..5).prop_map(|(stored, failed)| Step::State { stored, failed }),
        1 => (0_u8..4).prop_map(|transaction| Step::Prepare { transaction }),
        2 => (0_u8..4).prop_map(|transaction| Step::Commit { transaction }),
        1 => (0_u8..4).prop_map(|transaction| Step::Rollback { transaction }),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 0..120)
}

fn transaction(number: u8) -> StoreTransaction {
    if number < 2 {
        StoreTransaction::Local(ConnectionId::foreign("ID:c"), u64::from(number))
    } else {
        StoreTransaction::Distributed(xid(number))
    }
}

fn xid(number: u8) -> Xid {
    Xid { format: 1, global: Bytes::from(vec![number]), branch: Bytes::new() }
}

fn queue(number: u8) -> Destination {
    Destination::queue(&format!("q{number}")).unwrap()
}

fn topic() -> Destination {
    Destination::topic("t").unwrap()
}

fn subscription(number: u8) -> SubscriptionName {
    SubscriptionName { client_id: "c".into(), name: format!("s{number}").into() }
}

/// A message where it is: on a queue, or with a subscription, of the life with this number.
#[derive(Clone, Debug)]
struct One {
    stored: StoredId,
    at: (Recipient, u64),
    appended: Appended,
}

/// What a transaction is to do.
#[derive(Clone, Debug)]
enum Staged {
    Send(Box<One>),
    Remove { stored: StoredId, reason: Removal },
}

/// A subscription that is there.
#[derive(Clone, Debug)]
struct Subscribed {
    name: SubscriptionName,
    life: u64,
    no_local: bool,
    totals: Totals,
}

/// Keeps everything in plain lists and looks for what it needs.
#[derive(Clone, Debug, Default)]
struct Model {
    visible: Vec<One>,
    states: BTreeMap<u64, DeliveryState>,
    lsns: BTreeMap<u64, u64>,
    totals: BTreeMap<Destination, Totals>,
    producers: Vec<(String, u64)>,
    subscriptions: Vec<Subscribed>,
    lives: u64,
    open: Vec<(StoreTransaction, bool, Vec<Staged>)>,
    last_id: u64,
}

impl Model {
    fn apply(&mut self, lsn: u64, change: Change) {
        match change {
            Change::Append(appended) => {
                for one in self.ones(lsn, &appended) {
                    match &appended.transaction {
                        Some(id) => self.open(id).2.push(Staged::Send(Box::new(one))),
                        None => self.show(one),
                    }
                }
                if appended.transaction.is_none() {
                    self.note(&appended);
                }
            }
            Change::Remove { stored, reason, transaction: Some(id) } => {
                self.open(&id).2.push(Staged::Remove { stored, reason });
            }
            Change::Remove { stored, reason, transaction: None } => self.remove(stored, reason),
            Change::CreateSubscription { subscription: name, no_local, .. } => {
                self.unsubscribe(&name);
                self.lives += 1;
                let (life, totals) = (self.lives, Totals::default());
                self.subscriptions.push(Subscribed { name, life, no_local, totals });
            }
            Change::RemoveSubscription(name) => self.unsubscribe(&name),
            Change::DeliveryState { stored, state } => {
                if self.visible.iter().any(|one| one.stored == stored) {
                    self.states.insert(stored.0, state);
                }
            }
            Change::Prepare(xid) => {
                let id = StoreTransaction::Distributed(xid);
                self.open(&id).1 = true;
                // Those that are prepared stand in the order of their preparation.
                let at = self.open.iter().position(|(open, _, _)| *open == id).unwrap();
                let moved = self.open.remove(at);
                self.open.push(moved);
            }
            Change::Commit(id) => {
                let (_, _, operations) = self.open(&id).clone();
                self.open.retain(|(open, _, _)| *open != id);
                for operation in operations {
                    match operation {
                        Staged::Send(one) => {
                            self.note(&one.appended);
                            self.show(*one);
                        }
                        Staged::Remove { stored, reason } => self.remove(stored, reason),
                    }
                }
            }
            Change::Rollback(id) => self.open.retain(|(open, _, _)| *open != id),
        }
    }

    /// What a message is with each of those that it goes to and that are there.
    fn ones(&mut self, lsn: u64, appended: &Appended) -> Vec<One> {
        let to: Vec<Option<(Recipient, u64)>> = match &appended.to {
            Recipients::Queue(queue) => {
                self.totals.entry(queue.clone()).or_default();
                vec![Some((Recipient::Queue(queue.clone()), 0))]
            }
            Recipients::Subscriptions(_, names) => {
                let at = |name: &SubscriptionName| {
                    let there = self.subscriptions.iter().find(|there| there.name == *name)?;
                    Some((Recipient::Subscription(name.clone()), there.life))
                };
                names.iter().map(at).collect()
            }
        };
        self.last_id = appended.stored.0 + (to.len() as u64).max(1) - 1;
        let one = |(stored, at): (u64, Option<(Recipient, u64)>)| {
            self.lsns.insert(stored, lsn);
            Some(One { stored: StoredId(stored), at: at?, appended: appended.clone() })
        };
        (appended.stored.0..).zip(to).filter_map(one).collect()
    }

    fn totals_at(&mut self, (recipient, life): &(Recipient, u64)) -> Option<&mut Totals> {
        match recipient {
            Recipient::Queue(queue) => self.totals.get_mut(queue),
            Recipient::Subscription(_) => {
                let there = self.subscriptions.iter_mut().find(|there| there.life == *life)?;
                Some(&mut there.totals)
            }
        }
    }

    fn is_there(&self, (recipient, life): &(Recipient, u64)) -> bool {
        matches!(recipient, Recipient::Queue(_)) || self.subscriptions.iter().any(|there| there.life == *life)
    }

    fn unsubscribe(&mut self, name: &SubscriptionName) {
        let Some(at) = self.subscriptions.iter().position(|there| there.name == *name) else { return };
        let Subscribed { life, .. } = self.subscriptions.remove(at);
        self.visible.retain(|one| one.at.1 != life);
    }

    fn open(&mut self, id: &StoreTransaction) -> &mut (StoreTransaction, bool, Vec<Staged>) {
        let at = self.open.iter().position(|(open, _, _)| open == id).unwrap_or_else(|| {
            self.open.push((id.clone(), false, Vec::new()));
            self.open.len() - 1
        });
        &mut self.open[at]
    }

    fn note(&mut self, appended: &Appended) {
        let sent = appended.arrival == Arrival::Sent;
        if let Some((name, sequence)) = appended.producer.clone().filter(|_| sent) {
            let at = self.producers.iter().position(|(known, _)| **known == *name);
            let last = at.map_or(0, |at| self.producers.remove(at).1);
            self.producers.push((name.to_string(), last.max(sequence)));
        }
    }

    fn show(&mut self, one: One) {
        if let Some(totals) = self.totals_at(&one.at) {
            totals.enqueued += u64::from(one.appended.arrival == Arrival::Sent);
            self.visible.push(one);
        }
    }

    fn remove(&mut self, stored: StoredId, reason: Removal) {
        let Some(at) = self.visible.iter().position(|one| one.stored == stored) else { return };
        let at = self.visible.remove(at).at;
        let totals = self.totals_at(&at).unwrap();
        totals.acknowledged += u64::from(reason == Removal::Acknowledged);
        totals.dead_lettered += u64::from(reason == Removal::DeadLettered);
        self.states.remove(&stored.0);
    }

    fn recovered(&self, One { stored, appended, .. }: &One) -> RecoveredMessage {
        RecoveredMessage {
            stored: *stored,
            priority: appended.priority,
            expiration: appended.expiration,
            size: appended.size,
            state: self.states.get(&stored.0).copied().unwrap_or_default(),
        }
    }

    /// What open transactions send.
    fn sent(&self) -> impl Iterator<Item = &One> {
        let operations = self.open.iter().flat_map(|(_, _, operations)| operations);
        operations.filter_map(|operation| match operation {
            Staged::Send(one) => Some(&**one),
            Staged::Remove { .. } => None,
        })
    }

    fn live_by_segment(&self) -> BTreeMap<u64, u64> {
        let mut live = BTreeMap::new();
        for one in self.visible.iter().chain(self.sent()) {
            *live.entry(self.lsns[&one.stored.0] / SEGMENT * SEGMENT).or_insert(0) += 1;
        }
        live
    }
}

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

    let live: BTreeMap<_, _> =
        index.segments().iter().filter(|(_, live)| **live > 0).map(|(b, l)| (*b, *l)).collect();
    assert_eq!(live, model.live_by_segment());
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
