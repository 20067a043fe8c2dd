//! The plainest index there could be.

use std::collections::BTreeMap;

use super::SEGMENT;
use crate::journal::change::{Appended, Change, Recipients};
use crate::store::{
    Arrival, DeliveryState, Recipient, RecoveredMessage, Removal, StoreTransaction, StoredId,
    SubscriptionName, Totals,
};
use corriere_core::Destination;

/// A message where it is: on a queue, or with a subscription, of the life with this number.
#[derive(Clone, Debug)]
pub(super) struct One {
    pub(super) stored: StoredId,
    pub(super) at: (Recipient, u64),
    pub(super) appended: Appended,
}

/// What a transaction is to do.
#[derive(Clone, Debug)]
pub(super) enum Staged {
    Send(Box<One>),
    Remove { stored: StoredId, reason: Removal },
}

/// A subscription that is there.
#[derive(Clone, Debug)]
pub(super) struct Subscribed {
    pub(super) name: SubscriptionName,
    pub(super) life: u64,
    pub(super) no_local: bool,
    pub(super) totals: Totals,
}

/// Keeps everything in plain lists and looks for what it needs.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) visible: Vec<One>,
    pub(super) states: BTreeMap<u64, DeliveryState>,
    pub(super) lsns: BTreeMap<u64, u64>,
    pub(super) totals: BTreeMap<Destination, Totals>,
    pub(super) producers: Vec<(String, u64)>,
    pub(super) subscriptions: Vec<Subscribed>,
    pub(super) lives: u64,
    pub(super) open: Vec<(StoreTransaction, bool, Vec<Staged>)>,
    pub(super) last_id: u64,
}

impl Model {
    pub(super) fn apply(&mut self, lsn: u64, change: Change) {
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
    pub(super) fn ones(&mut self, lsn: u64, appended: &Appended) -> Vec<One> {
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

    pub(super) fn totals_at(&mut self, (recipient, life): &(Recipient, u64)) -> Option<&mut Totals> {
        match recipient {
            Recipient::Queue(queue) => self.totals.get_mut(queue),
            Recipient::Subscription(_) => {
                let there = self.subscriptions.iter_mut().find(|there| there.life == *life)?;
                Some(&mut there.totals)
            }
        }
    }

    pub(super) fn is_there(&self, (recipient, life): &(Recipient, u64)) -> bool {
        matches!(recipient, Recipient::Queue(_)) || self.subscriptions.iter().any(|there| there.life == *life)
    }

    pub(super) fn unsubscribe(&mut self, name: &SubscriptionName) {
        let Some(at) = self.subscriptions.iter().position(|there| there.name == *name) else { return };
        let Subscribed { life, .. } = self.subscriptions.remove(at);
        self.visible.retain(|one| one.at.1 != life);
    }

    pub(super) fn open(&mut self, id: &StoreTransaction) -> &mut (StoreTransaction, bool, Vec<Staged>) {
        let at = self.open.iter().position(|(open, _, _)| open == id).unwrap_or_else(|| {
            self.open.push((id.clone(), false, Vec::new()));
            self.open.len() - 1
        });
        &mut self.open[at]
    }

    pub(super) fn note(&mut self, appended: &Appended) {
        let sent = appended.arrival == Arrival::Sent;
        if let Some((name, sequence)) = appended.producer.clone().filter(|_| sent) {
            let at = self.producers.iter().position(|(known, _)| **known == *name);
            let last = at.map_or(0, |at| self.producers.remove(at).1);
            self.producers.push((name.to_string(), last.max(sequence)));
        }
    }

    pub(super) fn show(&mut self, one: One) {
        if let Some(totals) = self.totals_at(&one.at) {
            totals.enqueued += u64::from(one.appended.arrival == Arrival::Sent);
            self.visible.push(one);
        }
    }

    pub(super) fn remove(&mut self, stored: StoredId, reason: Removal) {
        let Some(at) = self.visible.iter().position(|one| one.stored == stored) else { return };
        let at = self.visible.remove(at).at;
        let totals = self.totals_at(&at).unwrap();
        totals.acknowledged += u64::from(reason == Removal::Acknowledged);
        totals.dead_lettered += u64::from(reason == Removal::DeadLettered);
        self.states.remove(&stored.0);
    }

    pub(super) fn recovered(&self, One { stored, appended, .. }: &One) -> RecoveredMessage {
        RecoveredMessage {
            stored: *stored,
            priority: appended.priority,
            expiration: appended.expiration,
            size: appended.size,
            state: self.states.get(&stored.0).copied().unwrap_or_default(),
        }
    }

    /// What open transactions send.
    pub(super) fn sent(&self) -> impl Iterator<Item = &One> {
        let operations = self.open.iter().flat_map(|(_, _, operations)| operations);
        operations.filter_map(|operation| match operation {
            Staged::Send(one) => Some(&**one),
            Staged::Remove { .. } => None,
        })
    }

    pub(super) fn live_by_segment(&self) -> BTreeMap<u64, u64> {
        let mut live = BTreeMap::new();
        for one in self.visible.iter().chain(self.sent()) {
            *live.entry(self.lsns[&one.stored.0] / SEGMENT * SEGMENT).or_insert(0) += 1;
        }
        live
    }
}
