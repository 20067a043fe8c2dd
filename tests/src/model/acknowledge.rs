//! Acknowledgements: word on a range of deliveries.

use corriere_broker::machine::ConnectionKey;
use corriere_core::provider::{Ack, AckKind, Cause, CauseKind, Credit};
use std::sync::Arc;
use std::time::Duration;

use super::entry::{Death, SubscriptionKey, TransactionKey, key_of};
use super::fate::Return;
use super::{Answer, Model};

impl Model {
    pub(super) fn acknowledge(&mut self, connection: ConnectionKey, ack: &Ack) -> Answer {
        let key = (connection, ack.subscription);
        let transaction = ack.transaction.as_ref().map(|id| key_of(connection, id));
        if let Some(transaction) = &transaction
            && self.open_transaction(connection, transaction).is_none()
        {
            return Answer::Refused;
        }
        if self.browsers.iter().any(|browser| browser.key == key) {
            // There is nothing to settle, and it may be said all the same.
            return Answer::Done;
        }
        let Some(subscription) = self.subscription_mut(&key) else {
            // Any failed acknowledgement of a transaction makes it rollback-only.
            transaction.iter().for_each(|transaction| self.condemn(transaction));
            return Answer::Unknown;
        };
        // The other kinds say nothing of the application's hands.
        if matches!(
            ack.kind,
            AckKind::Delivered
                | AckKind::Standard
                | AckKind::Redelivered { .. }
                | AckKind::Poison { .. }
                | AckKind::Retained
        ) {
            subscription.hand_over(ack.last);
        }
        if ack.kind == AckKind::Individual {
            // Of those before it nothing is said.
            subscription.handed_over_alone.extend(ack.first..=ack.last.min(subscription.delivered));
        }
        match &ack.kind {
            AckKind::Delivered => {}
            AckKind::Standard | AckKind::Individual | AckKind::Unmatched => {
                self.settle_range(&key, ack, transaction.as_ref());
            }
            // These say what has happened already, and no rollback makes it not have happened: at once.
            AckKind::Poison { cause } => self.condemn_range(&key, ack, cause),
            AckKind::Undeliverable { reason } => {
                self.end_undeliverable(&key, ack, &Cause::failure(Arc::clone(reason)));
            }
            AckKind::Expired => {
                while let Some(index) = self.position_in_range(&key, ack) {
                    let deliveries = self.entries[index].failed;
                    if self.entries[index].message.headers().expiration.is_some() {
                        // The client is believed, whatever its clock says.
                        self.bury(index, Death::Expired, deliveries);
                    } else {
                        let (policy, death) = (self.policy_of_holder(index), Death::Returned);
                        let how =
                            Return { is_counted: false, death, policy, not_before: None, reserved_for: None };
                        self.give_back(index, how);
                    }
                }
            }
            AckKind::Redelivered { delay, cause } => self.redeliver(&key, ack, *delay, cause),
            AckKind::Retained => {
                for entry in &mut self.entries {
                    if entry.is_plainly_with(&key)
                        && entry.holder.as_ref().is_some_and(|holder| is_in_range(ack, holder.number))
                    {
                        entry.failed += 1;
                    }
                }
            }
        }
        Answer::Done
    }

    /// Settles a range, now or with its transaction. Numbers that are settled already are passed over.
    fn settle_range(&mut self, key: &SubscriptionKey, ack: &Ack, transaction: Option<&TransactionKey>) {
        while let Some(index) = self.position_in_range(key, ack) {
            if let (Some(transaction), Some(holder)) = (transaction, &mut self.entries[index].holder) {
                holder.locked_by = Some(transaction.clone());
            } else {
                self.settle(index);
            }
        }
    }

    /// A dead letter that is condemned has nowhere to go: it comes back, counted, after the delay.
    fn condemn_range(&mut self, key: &SubscriptionKey, ack: &Ack, cause: &Cause) {
        while let Some(index) = self.position_in_range(key, ack) {
            let (policy, death) = (self.policy_of_holder(index), Death::Failure(cause.clone()));
            // The delivery that it is condemned in was made.
            let failed = self.entries[index].failed + 1;
            if self.holds_dead_letters(&self.entries[index].place) {
                let not_before = Some(policy.next_delivery(self.now, failed, 0));
                self.give_back(
                    index,
                    Return { is_counted: true, death, policy, not_before, reserved_for: None },
                );
            } else {
                self.bury(index, death, failed);
            }
        }
    }

    /// No delivery was made: nothing counts, and explicit credit is as it was. A dead letter waits for a minute at least.
    fn end_undeliverable(&mut self, key: &SubscriptionKey, ack: &Ack, cause: &Cause) {
        while let Some(index) = self.position_in_range(key, ack) {
            let (policy, death) = (self.policy_of_holder(index), Death::Failure(cause.clone()));
            if let Some(subscription) = self.subscription_mut(key)
                && subscription.credit == Credit::Explicit
            {
                subscription.granted += 1;
            }
            if self.holds_dead_letters(&self.entries[index].place) {
                let delay = policy.delay_after(1).max(Duration::from_secs(60));
                let not_before = Some(self.now.saturating_add(delay));
                let how = Return { is_counted: false, death, policy, not_before, reserved_for: None };
                self.give_back(index, how);
            } else {
                let failed = self.entries[index].failed;
                self.bury(index, death, failed);
            }
        }
    }

    fn redeliver(&mut self, key: &SubscriptionKey, ack: &Ack, delay: Option<Duration>, cause: &Cause) {
        let Some(subscription) = self.subscription(key) else { return };
        let policy = subscription.policy.clone();
        let is_open = subscription.is_open;
        while let Some(index) = self.position_in_range(key, ack) {
            let entry = &mut self.entries[index];
            // The first failed conversion is noted, but neither counted nor delayed. Want of memory is never counted,
            // and delays as a first failure does.
            let (is_counted, failures) = match cause.kind {
                CauseKind::Failure => (true, Some(entry.failed + 1)),
                CauseKind::Conversion if entry.conversion_failed => (true, Some(entry.failed + 1)),
                CauseKind::Conversion => (false, None),
                CauseKind::Resource => (false, Some(1)),
            };
            entry.conversion_failed |= cause.kind == CauseKind::Conversion;
            let not_before = failures.map(|failures| {
                let delay = delay.unwrap_or_else(|| policy.delay_after(failures));
                self.now.saturating_add(delay)
            });
            let how = Return {
                is_counted,
                death: Death::Failure(cause.clone()),
                policy: policy.clone(),
                not_before,
                // Blocking: it stays with the consumer that failed it.
                reserved_for: (is_open && !policy.non_blocking).then_some(*key),
            };
            self.give_back(index, how);
        }
        // Blocking or not, and even if nothing of the range was left: the client, which cannot know, does the same.
        if is_open {
            self.recall(key);
            if let Some(subscription) = self.subscription_mut(key) {
                subscription.epoch += 1;
            }
        }
    }

    fn position_in_range(&self, key: &SubscriptionKey, ack: &Ack) -> Option<usize> {
        self.first_of(key, |number| is_in_range(ack, number))
    }

    /// The entry that the subscription plainly has under the lowest number that is wanted.
    pub(super) fn first_of(&self, key: &SubscriptionKey, is_wanted: impl Fn(u64) -> bool) -> Option<usize> {
        let numbers = self.unsettled(key.0, key.1);
        let number = numbers.into_iter().find(|number| is_wanted(*number))?;
        self.entries.iter().position(|entry| {
            entry.is_plainly_with(key) && entry.holder.as_ref().is_some_and(|holder| holder.number == number)
        })
    }

    /// The policy of the subscription that has the message.
    pub(super) fn policy_of_holder(&self, index: usize) -> corriere_core::RedeliveryPolicy {
        let entry = &self.entries[index];
        let holder = entry.holder.as_ref().and_then(|holder| self.subscription(&holder.subscription));
        holder.map_or_else(
            || self.redelivery_for(entry.place.destination()),
            |subscription| subscription.policy.clone(),
        )
    }
}

fn is_in_range(ack: &Ack, number: u64) -> bool {
    (ack.first..=ack.last).contains(&number)
}
