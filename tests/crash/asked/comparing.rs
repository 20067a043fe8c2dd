//! What a store brought back, held against what it was asked to keep.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use corriere_broker::store::{
    DeliveryState, Recipient, Recovered, RecoveredMessage, StoreOperation, StoreTransaction, StoredId, Totals,
};

use super::{Kept, KeptMessage, KeptQueue, Staged};

impl Kept {
    /// What `recovered` differs in; `allowed` says which failed deliveries a message may have, given those that the
    /// batches say.
    pub(crate) fn difference(
        &self,
        recovered: &Recovered,
        allowed: impl Fn(StoredId, u32, u32) -> bool,
    ) -> Option<String> {
        let none = KeptQueue::default();
        let mut told = String::new();
        let names = self.queues.keys().chain(recovered.queues.iter().map(|queue| &queue.destination));
        for name in names.collect::<BTreeSet<_>>() {
            let mine = self.queues.get(name).unwrap_or(&none);
            let found = recovered.queues.iter().find(|queue| queue.destination == *name);
            let totals = found.map_or_else(Totals::default, |queue| queue.totals);
            if totals != mine.totals {
                let _ = writeln!(told, "{name}: totals are {totals:?}, not {:?}", mine.totals);
            }
            let messages = found.map_or(&[][..], |queue| &queue.messages[..]);
            compare_messages(&name.to_string(), messages, &mine.messages, &allowed, &mut told);
        }
        self.compare_subscriptions(recovered, &allowed, &mut told);
        self.compare_prepared(recovered, &mut told);
        if recovered.last_id < self.last_id {
            let _ = writeln!(told, "the last id is {:?}, not {:?}", recovered.last_id, self.last_id);
        }
        for (producer, last) in &self.producers {
            let found = recovered.producers.iter().find(|(name, _)| **name == **producer);
            if found.is_none_or(|(_, found)| found < last) {
                let _ = writeln!(told, "{producer} sent {last} last, not {found:?}");
            }
        }
        (!told.is_empty()).then_some(told)
    }

    fn compare_subscriptions(
        &self,
        recovered: &Recovered,
        allowed: &impl Fn(StoredId, u32, u32) -> bool,
        told: &mut String,
    ) {
        let found = recovered.subscriptions.iter();
        let found: Vec<_> =
            found.map(|one| (&one.subscription, &one.topic, one.no_local, one.totals)).collect();
        let mine = self.subscriptions.iter();
        let mine: Vec<_> = mine.map(|one| (&one.name, &one.topic, one.no_local, one.kept.totals)).collect();
        if found != mine {
            let _ = writeln!(told, "durable subscriptions are {found:?}, not {mine:?}");
            return;
        }
        for (found, mine) in recovered.subscriptions.iter().zip(&self.subscriptions) {
            compare_messages(&mine.name.to_string(), &found.messages, &mine.kept.messages, allowed, told);
        }
    }

    fn compare_prepared(&self, recovered: &Recovered, told: &mut String) {
        let found: Vec<_> = recovered.prepared.iter().map(|prepared| prepared.xid.clone()).collect();
        if found != self.prepared {
            let _ = writeln!(told, "prepared are {found:?}, not {:?}", self.prepared);
            return;
        }
        for prepared in &recovered.prepared {
            let name = StoreTransaction::Distributed(prepared.xid.clone());
            let (mut sends, mut acknowledged) = (Vec::new(), Vec::new());
            for operation in self.transactions.get(&name).into_iter().flatten() {
                match operation {
                    Staged::Operation(StoreOperation::Append { stored, queue, .. }) => {
                        sends.push((Recipient::from(queue.clone()), *stored));
                    }
                    Staged::Operation(StoreOperation::Remove { stored, .. }) => acknowledged.push(*stored),
                    Staged::Copy { stored, name, life, .. } if self.is_there(*life) => {
                        sends.push((Recipient::Subscription(name.clone()), *stored));
                    }
                    _ => {}
                }
            }
            let found: Vec<_> =
                prepared.sends.iter().map(|(queue, message)| (queue.clone(), message.stored)).collect();
            if found != sends || prepared.acknowledged != acknowledged {
                let _ = writeln!(
                    told,
                    "{:?} sends {found:?} and acknowledges {:?}, not {sends:?} and {acknowledged:?}",
                    prepared.xid, prepared.acknowledged
                );
            }
        }
    }
}

fn compare_messages(
    place: &str,
    messages: &[RecoveredMessage],
    mine: &[KeptMessage],
    allowed: &impl Fn(StoredId, u32, u32) -> bool,
    told: &mut String,
) {
    let (ids, wanted): (Vec<_>, Vec<_>) = (
        messages.iter().map(|message| message.stored.0).collect(),
        mine.iter().map(|message| message.stored.0).collect(),
    );
    if ids != wanted {
        let _ = writeln!(told, "{place}: holds {ids:?}, not {wanted:?}");
        return;
    }
    for (message, kept) in messages.iter().zip(mine) {
        let is_counted = allowed(kept.stored, kept.state.failed_deliveries, message.state.failed_deliveries);
        let state = DeliveryState { failed_deliveries: kept.state.failed_deliveries, ..message.state };
        let same = message.priority.level() == kept.priority
            && message.expiration == kept.expiration
            && message.size == kept.size;
        if !is_counted || state != kept.state || !same {
            let _ = writeln!(told, "{place}: {message:?}, not {kept:?}");
        }
    }
}
