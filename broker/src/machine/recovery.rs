//! The start on what a store brought back.

use std::collections::{BTreeMap, BTreeSet};

use corriere_core::{Timestamp, TransactionId};

use super::Machine;
use super::memory::Held;
use super::producers::Producers;
use super::queue::{Entry, Place, Position, QueueKey};
use super::sending::{Sending, Target};
use super::time_index::Timer;
use super::transaction::{Transaction, key_of_distributed};
use crate::settings::Settings;
use crate::store::{
    PreparedTransaction, Recipient, Recovered, RecoveredMessage, RecoveredSubscription, StoredId, Totals,
};

/// Where messages are that prepared transactions have acknowledged.
type Found = BTreeMap<StoredId, (QueueKey, Position)>;

impl Machine {
    /// A broker that goes on where an earlier one ended. All messages are without their bodies; what expired meanwhile does so
    /// at the first step. Where it `can_load`, the store may be asked for any body that was stored, so that bodies need not
    /// stay in memory.
    #[must_use]
    pub fn recovered(settings: Settings, recovered: Recovered, can_load: bool, now: Timestamp) -> Self {
        let mut machine = Self::new(settings);
        machine.now = now;
        machine.bodies.can_load = can_load;
        machine.memory.resume_names(recovered.last_id);
        machine.producers = Producers::recovered(recovered.producers);
        let wanted = recovered.prepared.iter().flat_map(|prepared| prepared.acknowledged.iter().copied());
        let wanted: BTreeSet<StoredId> = wanted.collect();
        let mut found = Found::new();
        for queue in &recovered.queues {
            if let Some(key) = machine.queue_named(queue.destination.name()) {
                machine.recover_queue(key, queue.totals, &queue.messages, &wanted, &mut found);
            }
        }
        for RecoveredSubscription { subscription, topic, no_local, totals, messages } in
            recovered.subscriptions
        {
            if let Some(key) = machine.recover_durable(subscription, &topic, no_local) {
                machine.recover_queue(key, totals, &messages, &wanted, &mut found);
            }
        }
        for prepared in recovered.prepared {
            machine.recover_prepared(prepared, &found);
        }
        machine
    }

    fn recover_queue(
        &mut self,
        key: QueueKey,
        totals: Totals,
        messages: &[RecoveredMessage],
        wanted: &BTreeSet<StoredId>,
        found: &mut Found,
    ) {
        let now = self.now;
        let Some(queue) = self.queues.get_mut(&key) else { return };
        queue.totals = totals;
        queue.counts.recovered = messages.len() as u64;
        let entry = |message: &RecoveredMessage| {
            let mut entry = Entry::new(Held::recovered(message, Target::Queue(key)));
            entry.not_before = message.state.not_before_from(now).unwrap_or(Timestamp(0));
            entry.failed_deliveries = message.state.failed_deliveries;
            entry.conversion_failed = message.state.conversion_failed;
            entry.is_recovered = true;
            entry
        };
        let positions = queue.push_all(messages.iter().map(entry));
        for (message, position) in messages.iter().zip(positions) {
            let RecoveredMessage { stored, expiration, state, .. } = message;
            if wanted.contains(stored) {
                queue.put(position, Place::InFlight);
                found.insert(*stored, (key, position));
            }
            if let Some(not_before) = state.not_before_from(now) {
                if !wanted.contains(stored) {
                    queue.put(position, Place::Delayed);
                }
                self.timers.insert(not_before, Timer::Redelivery(key, position));
            }
            if let Some(expiration) = *expiration {
                self.timers.insert(expiration, Timer::Expiry(key, position));
            }
        }
    }

    fn recover_prepared(&mut self, prepared: PreparedTransaction, found: &Found) {
        let mut transaction = Transaction::recovered(prepared.xid.clone(), self.next_prepared);
        self.next_prepared += 1;
        for ((recipient, message), id) in prepared.sends.iter().zip(prepared.ids) {
            let target = match recipient {
                Recipient::Queue(queue) => self.target(queue),
                Recipient::Subscription(name) => self.durable.get(name).map(|it| Target::Queue(it.queue)),
            };
            if let Some(target) = target {
                self.producers.doubt(id.as_ref());
                transaction.add_send(Sending::plain(target, Held::recovered(message, target)), id);
            }
        }
        for stored in &prepared.acknowledged {
            if let Some((queue, position)) = found.get(stored) {
                transaction.add_recovered_acknowledgement(*queue, *position);
            }
        }
        self.transactions.insert(key_of_distributed(TransactionId::Distributed(prepared.xid)), transaction);
    }
}
