//! The end of the process, and the start on what was stored.

use corriere_broker::machine::ConnectionKey;
use corriere_broker::store::{Attempt, Recipient, Recovered};
use corriere_core::{SubscriptionId, Timestamp, TransactionId};

use super::entry::{Entry, Holder, Place, TransactionKey, key_of};
use super::session::{End, TransactedSend, Transaction};
use super::{Judgement, Model, Violation, violation};

impl Model {
    /// Ends the process, and begins one at `now`, which may be earlier than the end. Of the batches that the store has not answered it has written the first `survive`; `attempts` is
    /// what it has noted of deliveries. Answers what the next process starts from.
    ///
    /// # Errors
    /// Attempts that say more than was, or leave out what was.
    pub fn restart(
        &mut self,
        survive: usize,
        attempts: &[Attempt],
        now: Timestamp,
    ) -> Result<Recovered, Violation> {
        self.check_attempts(attempts)?;
        let batches = std::mem::take(&mut self.batches);
        for batch in batches.iter().take(survive) {
            self.durable.apply(&batch.operations);
        }
        let recovered = self.durable.recover(attempts, now);
        self.now = now;
        self.connections.iter_mut().for_each(|connection| connection.is_open = false);
        self.sessions.clear();
        self.producers.clear();
        self.subscriptions.clear();
        self.browsers.clear();
        self.browser_drains.clear();
        self.temporaries.clear();
        self.lasting.clear();
        self.replaced.clear();
        self.watchers.clear();
        self.prefetches.clear();
        self.counts.retain(|(counted, _)| !counted.is_temporary());
        self.transactions.clear();
        self.entries.clear();
        self.entering.clear();
        self.parked.clear();
        self.tickets.forget_all();
        self.orders.clear();
        self.unserved.clear();
        self.runs.clear();
        self.loading.clear();
        self.store_is_full = false;
        self.room_is_back = false;
        self.last_sequences = recovered.producers.clone();
        for (_, counts) in &mut self.counts {
            *counts = corriere_broker::Counts::default();
        }
        for queue in &recovered.queues {
            self.count(&queue.destination).recovered = queue.messages.len() as u64;
            for message in &queue.messages {
                let place = Place::Queue(queue.destination.clone());
                self.bring_back(place, message);
            }
        }
        for found in &recovered.subscriptions {
            let (name, topic) = (found.subscription.clone(), found.topic.clone());
            self.bring_back_lasting(name.clone(), topic.clone(), found.no_local);
            self.count(&topic).recovered += found.messages.len() as u64;
            self.lasted[3] += u64::from(!found.messages.is_empty());
            for message in &found.messages {
                let place = self.place_of(&Recipient::Subscription(name.clone()));
                self.bring_back(place, message);
            }
        }
        for prepared in &recovered.prepared {
            self.bring_back_prepared(prepared);
        }
        self.restarts += 1;
        Ok(recovered)
    }

    fn bring_back(&mut self, place: Place, recovered: &corriere_broker::store::RecoveredMessage) {
        let message = self.durable.message(recovered.stored).expect("it was stored").clone();
        let position = self.position(&message);
        let instance = self.next_instance();
        self.entries.push(Entry {
            place,
            message,
            instance,
            position,
            failed: recovered.state.failed_deliveries,
            conversion_failed: recovered.state.conversion_failed,
            not_before: self.durable.held_until(recovered.stored),
            reserved_for: None,
            holder: None,
            dead_letter: None,
            stored: Some(recovered.stored),
            is_recovered: true,
            doomed: None,
            is_aside: false,
        });
    }

    fn bring_back_prepared(&mut self, prepared: &corriere_broker::store::PreparedTransaction) {
        self.prepared_over_restarts += 1;
        let nobody = ConnectionKey(0);
        let key = key_of(nobody, &TransactionId::Distributed(prepared.xid.clone()));
        for entry in &mut self.entries {
            if entry.stored.is_some_and(|stored| prepared.acknowledged.contains(&stored)) {
                entry.holder = Some(Holder {
                    subscription: (nobody, SubscriptionId(0)),
                    number: 0,
                    was_reserved: false,
                    locked_by: Some(key.clone()),
                });
            }
        }
        let mut sends = Vec::new();
        for (recipient, send) in &prepared.sends {
            let is_for_these_only = matches!(recipient, Recipient::Subscription(_));
            let copies = if is_for_these_only { vec![self.place_of(recipient)] } else { Vec::new() };
            let message = self.durable.message(send.stored).expect("it was stored").clone();
            let instance = self.next_instance();
            sends.push(TransactedSend {
                message,
                copies,
                is_for_these_only,
                instance,
                stored: Some(send.stored),
                is_written: true,
            });
        }
        let order = self.next_instance();
        self.transactions.push(Transaction {
            key,
            owner: None,
            origin: nobody,
            is_done: false,
            sends,
            is_rollback_only: false,
            end: None,
            end_batch: None,
            is_recovered: true,
            prepared: Some(order),
        });
    }

    /// What is noted of deliveries never says more than was, and says of each consumer what it was handed last.
    fn check_attempts(&self, attempts: &[Attempt]) -> Judgement {
        for attempt in attempts {
            let entry = self.entries.iter().find(|entry| entry.stored == Some(attempt.stored));
            let Some(entry) = entry else { continue };
            let in_hands = entry.holder.as_ref().is_some_and(|holder| {
                self.subscription(&holder.subscription)
                    .is_some_and(|subscription| subscription.has_in_hands(holder.number))
                    // Whatever becomes of a prepared transaction, that counts what it has acknowledged.
                    && !holder.locked_by.as_ref().is_some_and(|key| self.is_prepared(key))
            });
            if attempt.delivery > entry.failed + u32::from(in_hands) {
                violation!("{attempt:?} says more than was: {entry:?}");
            }
        }
        for entry in self.entries.iter().filter(|entry| entry.is_stored()) {
            let Some(holder) = &entry.holder else { continue };
            let is_last = self
                .subscription(&holder.subscription)
                .is_some_and(|subscription| subscription.handed_over == holder.number);
            let is_ending = holder.locked_by.as_ref().is_some_and(|key| {
                self.transactions.iter().any(|transaction| {
                    transaction.key == *key
                        && (transaction.prepared.is_some() || transaction.end_batch.is_some())
                })
            });
            let is_noted = attempts
                .iter()
                .any(|attempt| Some(attempt.stored) == entry.stored && attempt.delivery == entry.failed + 1);
            if is_last && !is_ending && !is_noted {
                violation!("nothing is noted of the delivery of {entry:?}");
            }
        }
        Ok(())
    }

    /// Whether a transaction is prepared, or the store is asked to prepare it.
    fn is_prepared(&self, key: &TransactionKey) -> bool {
        self.transactions.iter().filter(|transaction| transaction.key == *key).any(|transaction| {
            let is_preparing = matches!(transaction.end, Some((_, End::Prepare)));
            transaction.prepared.is_some() || (is_preparing && transaction.end_batch.is_some())
        })
    }

    /// How often the process ended.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// How many prepared transactions outlived the process.
    #[must_use]
    pub fn prepared_over_restarts(&self) -> u64 {
        self.prepared_over_restarts
    }

    /// The durable state.
    #[must_use]
    pub fn durable(&self) -> &super::Durable {
        &self.durable
    }
}
