//! Acknowledgements: word on a range of deliveries.

use corriere_broker::machine::ConnectionKey;
use corriere_core::provider::{Ack, AckKind, Cause, CauseKind};
use std::time::Duration;

use super::entry::{Death, Lock, SubscriptionKey, Verdict};
use super::fate::Return;
use super::{Answer, Model};

impl Model {
    pub(super) fn acknowledge(&mut self, connection: ConnectionKey, ack: &Ack) -> Answer {
        let key = (connection, ack.subscription);
        let transaction = ack.transaction.as_ref().map(|id| (connection, id.clone()));
        if let Some(transaction) = &transaction
            && self.transaction_mut(transaction).is_none_or(|transaction| transaction.commit.is_some())
        {
            return Answer::Refused;
        }
        let Some(subscription) = self.subscription_mut(&key) else {
            // Any failed acknowledgement of a transaction makes it rollback-only.
            transaction.iter().for_each(|transaction| self.condemn(transaction));
            return Answer::Unknown;
        };
        // Expired messages were not handed over, and unmatched ones are none of the application's business.
        if !matches!(ack.kind, AckKind::Expired | AckKind::Unmatched) {
            subscription.hand_over(ack.last);
        }
        match (&ack.kind, transaction) {
            (AckKind::Delivered, _) => {}
            (AckKind::Standard | AckKind::Individual, transaction) => {
                self.judge(&key, ack, &Verdict::Acknowledged, transaction);
            }
            (AckKind::Poison { cause }, transaction) => {
                self.judge(&key, ack, &Verdict::Poison(cause.clone()), transaction);
            }
            (AckKind::Expired, transaction) => self.judge(&key, ack, &Verdict::Expired, transaction),
            (AckKind::Redelivered { delay, cause }, _) => self.redeliver(&key, ack, *delay, cause),
            (AckKind::Retained, _) => {
                for entry in &mut self.entries {
                    if entry.is_plainly_with(&key)
                        && entry.holder.as_ref().is_some_and(|holder| is_in_range(ack, holder.number))
                    {
                        entry.failed += 1;
                    }
                }
            }
            (AckKind::Unmatched, _) => return Answer::Whatever,
        }
        Answer::Done
    }

    /// Settles a range, now or with its transaction. Numbers that are settled already are passed over.
    fn judge(
        &mut self,
        key: &SubscriptionKey,
        ack: &Ack,
        verdict: &Verdict,
        transaction: Option<super::TransactionKey>,
    ) {
        while let Some(index) = self.position_in_range(key, ack) {
            if let (Some(transaction), Some(holder)) = (&transaction, &mut self.entries[index].holder) {
                let lock = Lock { transaction: transaction.clone(), verdict: verdict.clone(), copy: None };
                holder.lock = Some(lock);
            } else {
                self.execute(index, verdict);
            }
        }
    }

    /// A verdict takes effect.
    pub(super) fn execute(&mut self, index: usize, verdict: &Verdict) {
        let failed = self.entries[index].failed;
        match verdict {
            Verdict::Acknowledged => self.settle(index),
            Verdict::Expired => self.bury(index, Death::Expired, failed),
            Verdict::Poison(cause) if self.entries[index].place.holds_dead_letters() => {
                let policy = self.policy_of_holder(index);
                let not_before = Some(policy.next_delivery(self.now, failed + 1));
                let death = Death::Failure(cause.clone());
                self.give_back(
                    index,
                    Return { is_counted: true, death, policy, not_before, reserved_for: None },
                );
            }
            // The delivery that it is condemned in was made.
            Verdict::Poison(cause) => self.bury(index, Death::Failure(cause.clone()), failed + 1),
        }
    }

    fn redeliver(&mut self, key: &SubscriptionKey, ack: &Ack, delay: Option<Duration>, cause: &Cause) {
        let Some(subscription) = self.subscription(key) else { return };
        let policy = subscription.policy.clone();
        let is_blocking = !policy.non_blocking && subscription.is_open;
        while let Some(index) = self.position_in_range(key, ack) {
            let entry = &mut self.entries[index];
            // The first failed conversion is noted, but neither counted nor delayed.
            let is_counted = cause.kind != CauseKind::Conversion || entry.conversion_failed;
            entry.conversion_failed |= cause.kind == CauseKind::Conversion;
            let not_before = is_counted.then(|| {
                let delay = delay.unwrap_or_else(|| policy.delay_after(entry.failed + 1));
                self.now.saturating_add(delay)
            });
            let how = Return {
                is_counted,
                death: Death::Failure(cause.clone()),
                policy: policy.clone(),
                not_before,
                // Blocking: it stays with the consumer that failed it.
                reserved_for: is_blocking.then_some(*key),
            };
            self.give_back(index, how);
        }
        if is_blocking {
            self.recall(key);
            if let Some(subscription) = self.subscription_mut(key) {
                subscription.epoch += 1;
            }
        }
    }

    fn position_in_range(&self, key: &SubscriptionKey, ack: &Ack) -> Option<usize> {
        self.entries.iter().position(|entry| {
            entry.is_plainly_with(key)
                && entry.holder.as_ref().is_some_and(|holder| is_in_range(ack, holder.number))
        })
    }

    /// The policy of the subscription that has the message.
    pub(super) fn policy_of_holder(&self, index: usize) -> corriere_core::RedeliveryPolicy {
        self.entries[index]
            .holder
            .as_ref()
            .and_then(|holder| self.subscription(&holder.subscription))
            .map_or_else(|| self.settings.redelivery.clone(), |subscription| subscription.policy.clone())
    }
}

fn is_in_range(ack: &Ack, number: u64) -> bool {
    (ack.first..=ack.last).contains(&number)
}
