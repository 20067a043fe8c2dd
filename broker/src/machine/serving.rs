//! Explicit credit, and confirmations that promise deliveries: of a new subscription and of a drain.
//!
//! They say that the subscription has been delivered all that it could have at that moment. What is here has been by the
//! end of the step; for a body that is being read back they wait.

use std::collections::BTreeMap;

use corriere_core::provider::{Confirmation, ProviderError};

use super::Machine;
use super::credit::ExplicitCredit;
use super::effects::Ticket;
use super::queue::Position;
use super::subscription::{Subscription, SubscriptionKey};

/// Who waits until a subscription has been delivered what it may have.
pub(super) type Unserved = BTreeMap<SubscriptionKey, Vec<Ticket>>;

impl Machine {
    /// Grants credit to a subscription or a browser.
    pub(super) fn grant(&mut self, key: SubscriptionKey, credit: u32) -> Result<(), ProviderError> {
        if self.grant_to_browser(key, credit) {
            return Ok(());
        }
        self.change_subscription(key, |subscription| subscription.grant(credit))
    }

    /// Takes back the credit that a subscription or a browser has now, once it has been delivered what it may have by it.
    pub(super) fn drain(&mut self, key: SubscriptionKey, ticket: Ticket) {
        let credit = match self.browsers.get_mut(&key) {
            Some(browser) => Ok(Some(browser.credit())),
            None => self.subscription(key).map(Subscription::explicit_credit),
        };
        match credit {
            Ok(credit) => {
                credit.into_iter().for_each(ExplicitCredit::begin_drain);
                self.confirm_when_served(key, ticket);
            }
            Err(error) => self.confirm(ticket, Err(error)),
        }
    }

    /// Confirms a command once a subscription has been delivered what it may have.
    pub(super) fn confirm_when_served(&mut self, key: SubscriptionKey, ticket: Ticket) {
        self.unserved.entry(key).or_default().push(ticket);
    }

    /// The end of a step, when all that is here has been delivered.
    pub(super) fn confirm_served(&mut self) {
        let is_served = |key: &SubscriptionKey| !self.waits_for_body(*key);
        let served: Vec<_> = self.unserved.keys().copied().filter(is_served).collect();
        for key in served {
            if let Some(browser) = self.browsers.get_mut(&key) {
                browser.credit().end_drain();
            } else if let Some(subscription) = self.subscriptions.get_mut(&key) {
                subscription.explicit_credit().into_iter().for_each(ExplicitCredit::end_drain);
                self.attend(key);
            }
            for ticket in self.unserved.remove(&key).unwrap_or_default() {
                self.confirm(ticket, Ok(Confirmation::Done));
            }
        }
    }

    /// Whether a subscription would be delivered more at this moment if a body were here that is being read back.
    fn waits_for_body(&self, key: SubscriptionKey) -> bool {
        if let Some(browser) = self.browsers.get(&key) {
            return browser.waits_for_body();
        }
        let Some(subscription) = self.subscriptions.get(&key) else { return false };
        let Some(queue) = self.queues.get(&subscription.queue) else { return false };
        if subscription.is_closed || !subscription.has_room() || subscription.is_drained() {
            return false;
        }
        let is_missing = |position: Position| {
            let entry = queue.get(position);
            entry.is_some_and(|entry| entry.not_before <= self.now && entry.held.body().is_none())
        };
        match subscription.reserved.first() {
            Some(&position) => is_missing(position),
            None => queue.ready().next().is_some_and(is_missing),
        }
    }
}
