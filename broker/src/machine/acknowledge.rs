//! Acknowledgements of every kind.
//!
//! [`AckKind::Standard`], [`AckKind::Individual`] and [`AckKind::Unmatched`] take part in the transaction that they
//! name. The other kinds state what has happened already, which no rollback undoes: they take effect at once.

use std::sync::Arc;

use corriere_core::TransactionId;
use corriere_core::provider::{Ack, AckKind, Cause, Confirmation, ProviderError};

use super::Machine;
use super::delivery::{Delay, Failure};
use super::effects::{ConnectionKey, Ticket};
use super::queue::{Position, QueueKey};
use super::recording::OnStored;
use super::subscription::{Subscription, SubscriptionKey};
use super::transaction::key_of;

impl Machine {
    pub(super) fn acknowledge(&mut self, connection: ConnectionKey, ticket: Ticket, ack: &Ack) {
        let recorded = self.recorded();
        match self.take_ack(connection, ack) {
            // What takes effect with its transaction is accepted now; the commit is what must be stored.
            Ok(()) if ack.transaction.is_some() && is_transactional(&ack.kind) => {
                self.confirm(ticket, Ok(Confirmation::Done));
            }
            Ok(()) => self.confirm_when_stored(ticket, recorded),
            Err(error) => {
                self.spoil(connection, ack.transaction.as_ref(), &error);
                self.confirm(ticket, Err(error));
            }
        }
    }

    fn take_ack(&mut self, connection: ConnectionKey, ack: &Ack) -> Result<(), ProviderError> {
        if let Some(transaction) = &ack.transaction {
            self.check_open(connection, transaction)?;
        }
        let key = (connection, ack.subscription);
        if self.browsers.contains_key(&key) {
            // It has nothing to settle, and clients of other makes say so all the same.
            return Ok(());
        }
        let subscription = self.subscription(key)?;
        if matches!(
            ack.kind,
            AckKind::Delivered
                | AckKind::Poison { .. }
                | AckKind::Standard
                | AckKind::Redelivered { .. }
                | AckKind::Retained
        ) {
            subscription.hand_over(ack.last);
        }
        if matches!(ack.kind, AckKind::Individual) {
            subscription.hand_over_alone(ack.first, ack.last);
        }
        match &ack.kind {
            AckKind::Delivered => {}
            AckKind::Standard | AckKind::Individual | AckKind::Unmatched => {
                self.settle_range(key, ack, ack.transaction.as_ref());
            }
            AckKind::Poison { cause } => self.condemn_range(key, ack, cause),
            AckKind::Undeliverable { reason } => {
                self.end_undeliverable(key, ack, &Cause::failure(Arc::clone(reason)));
            }
            AckKind::Redelivered { delay, cause } => {
                let delay = delay.map_or(Delay::Policy, Delay::Exactly);
                self.give_back_range(key, ack, delay, cause);
            }
            AckKind::Expired => self.end_each(key, ack, |machine, queue, position| {
                machine.clear_slot_of(key, position);
                machine.believe_expired(queue, position);
            }),
            AckKind::Retained => self.retain_range(key, ack),
        }
        self.attend(key);
        self.look_at_slot(key);
        self.forget_if_done(key);
        Ok(())
    }

    /// The subscription of this name.
    pub(super) fn subscription(&mut self, key: SubscriptionKey) -> Result<&mut Subscription, ProviderError> {
        self.subscriptions
            .get_mut(&key)
            .ok_or_else(|| ProviderError::Unknown { what: format!("subscription {}", key.1) })
    }

    /// Changes the window or the credit of a subscription, and delivers what it may have by that.
    pub(super) fn change_subscription(
        &mut self,
        key: SubscriptionKey,
        change: impl FnOnce(&mut Subscription),
    ) -> Result<(), ProviderError> {
        self.subscription(key).map(change)?;
        self.attend(key);
        Ok(())
    }

    fn settle_range(&mut self, key: SubscriptionKey, ack: &Ack, transaction: Option<&TransactionId>) {
        let Some(transaction) = transaction else {
            self.end_each(key, ack, Self::settle);
            return;
        };
        let transaction = key_of(key.0, transaction);
        let mut is_stored = false;
        self.for_each(key, ack, |machine, _, number, position| {
            is_stored |= machine.settle_in_transaction(&transaction, key, number, position);
        });
        if is_stored {
            self.on_stored.push(OnStored::Staged { transaction });
        }
    }

    fn condemn_range(&mut self, key: SubscriptionKey, ack: &Ack, cause: &Cause) {
        let Some(policy) = self.subscriptions.get(&key).map(|subscription| Arc::clone(&subscription.policy))
        else {
            return;
        };
        self.end_each(key, ack, |machine, queue, position| machine.condemn(queue, position, cause, &policy));
    }

    fn end_undeliverable(&mut self, key: SubscriptionKey, ack: &Ack, cause: &Cause) {
        self.for_each(key, ack, |machine, queue, number, position| {
            let Some(subscription) = machine.subscriptions.get_mut(&key) else { return };
            subscription.take_back(number);
            let policy = Arc::clone(&subscription.policy);
            machine.clear_slot_of(key, position);
            machine.cannot_deliver(queue, position, cause, &policy);
        });
    }

    fn give_back_range(&mut self, key: SubscriptionKey, ack: &Ack, delay: Delay, cause: &Cause) {
        let Some(subscription) = self.subscriptions.get_mut(&key) else { return };
        let policy = Arc::clone(&subscription.policy);
        let reserved_for = (!policy.non_blocking && !subscription.is_closed).then_some(key);
        // Whatever the policy says, and also when nothing of the range is left: the client, which may not know the policy,
        // has counted this one too.
        subscription.epoch = subscription.epoch.wrapping_add(1);
        let failure = Failure { cause, policy: &policy, delay, reserved_for };
        self.end_each(key, ack, |machine, queue, position| {
            machine.give_back_failed(queue, position, &failure);
        });
        self.take_back_unseen(key);
    }

    fn retain_range(&mut self, key: SubscriptionKey, ack: &Ack) {
        self.for_each(key, ack, |machine, queue, _, position| machine.count_retained(queue, position));
    }

    /// Ends each delivery of a range that nothing was said of yet, and says what becomes of its message.
    fn end_each(
        &mut self,
        key: SubscriptionKey,
        ack: &Ack,
        mut act: impl FnMut(&mut Self, QueueKey, Position),
    ) {
        self.for_each(key, ack, |machine, queue, number, position| {
            if let Some(subscription) = machine.subscriptions.get_mut(&key) {
                subscription.settle(number);
            }
            act(machine, queue, position);
        });
    }

    /// Looks each time anew for the next delivery of the range, as what is done with one may end others.
    fn for_each(
        &mut self,
        key: SubscriptionKey,
        ack: &Ack,
        mut act: impl FnMut(&mut Self, QueueKey, u64, Position),
    ) {
        let mut first = ack.first;
        while let Some(subscription) = self.subscriptions.get(&key)
            && let Some((number, position)) = subscription.next_unsettled(first, ack.last)
        {
            first = number + 1;
            let queue = subscription.queue;
            act(self, queue, number, position);
        }
    }

    /// Takes back all deliveries of a subscription that did not reach the application. What was reserved for it is so again.
    pub(super) fn take_back_unseen(&mut self, key: SubscriptionKey) {
        while let Some(subscription) = self.subscriptions.get_mut(&key)
            && let Some((number, position)) = subscription.next_unseen()
        {
            let reserved_for = subscription.take_back(number).then_some(key);
            let queue = subscription.queue;
            self.give_back_unseen(queue, position, reserved_for);
        }
    }
}

/// Whether an acknowledgement takes part in the transaction that it names.
fn is_transactional(kind: &AckKind) -> bool {
    matches!(kind, AckKind::Standard | AckKind::Individual | AckKind::Unmatched)
}
