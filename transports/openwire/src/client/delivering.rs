//! Credit, what it brings, and what the peer is told of it.

use corriere_core::id::SubscriptionId;
use corriere_core::provider::{Confirmation, Event, ProviderError, Receipt};
use tokio::time::Instant;

use super::commands::done;
use super::error::About;
use super::settling::Word;
use super::state::{State, Then};
use super::subscription::{Flow, Run, Subscription};
use crate::codec::structures::{AckType, FlushCommand, MessageId, MessagePull};

impl State {
    pub(super) fn handed_over(&mut self, id: SubscriptionId, number: u64) -> Result<Receipt, ProviderError> {
        let subscription = self.subscription(id)?;
        let count = subscription.hand_over(number);
        // A peer that counts deliveries is told of each.
        let last = subscription.last_in_hands().filter(|_| count > 0 && subscription.peer_redelivers());
        match last {
            Some(last) => self.say_delivered(id, last, count),
            None => self.widen(id),
        }
        Ok(done())
    }

    pub(super) fn grant(&mut self, id: SubscriptionId, granted: u32) -> Result<Receipt, ProviderError> {
        let subscription = self.subscription(id)?;
        match &mut subscription.flow {
            Flow::Pull(pull) => pull.grant(granted),
            Flow::Browser { credit, .. } => *credit = credit.saturating_add(granted),
            Flow::AsGranted { .. } => {
                let pull = pull_of(subscription, i64::from(granted));
                self.tell(pull);
            }
            Flow::Window { .. } => {}
        }
        self.attend(id);
        Ok(done())
    }

    /// Tells the peer what was not worth it before, and delivers what may be.
    pub(super) fn attend(&mut self, id: SubscriptionId) {
        self.widen(id);
        self.deliver(id);
    }

    fn widen(&mut self, id: SubscriptionId) {
        if let Some((last, count)) = self.subscriptions.get_mut(&id).and_then(Subscription::widen) {
            self.say_delivered(id, last, count);
        }
    }

    fn say_delivered(&mut self, id: SubscriptionId, last: MessageId, count: usize) {
        let run = Run { first: last.clone(), last, count };
        drop(self.say(id, &[run], &Word::of(AckType::Delivered), false));
    }

    /// Confirmed when the peer can deliver nothing more at this moment, as far as it can be asked that.
    pub(super) fn drain(&mut self, id: SubscriptionId) -> Result<Receipt, ProviderError> {
        let subscription = self.subscription(id)?;
        match &mut subscription.flow {
            Flow::Pull(pull) => {
                let (confirmer, receipt) = Receipt::pending();
                pull.drain(confirmer);
                self.deliver(id);
                Ok(receipt)
            }
            Flow::Window { .. } => {
                let flush = FlushCommand { response_required: true, ..FlushCommand::default() };
                Ok(self.ask(flush, About::Other, Then::Confirm(Confirmation::Done)))
            }
            Flow::AsGranted { is_browser: false, drains } => {
                let (confirmer, receipt) = Receipt::pending();
                drains.push_back(confirmer);
                let pull = pull_of(subscription, DRAIN);
                self.tell(pull);
                Ok(receipt)
            }
            Flow::Browser { .. } | Flow::AsGranted { .. } => Ok(done()),
        }
    }

    /// Delivers what a subscription may have, and asks the peer for what it may have beyond that.
    pub(super) fn deliver(&mut self, id: SubscriptionId) {
        let now = Instant::now();
        while let Some(dispatch) = self.subscriptions.get_mut(&id).and_then(|one| one.next(now)) {
            // What was browsed is never settled, so it would be kept as long as the browser is open.
            let browser = self.subscriptions.get_mut(&id).filter(|one| one.is_browser());
            let browsed = browser.map(|one| one.settle(dispatch.number, dispatch.number)).unwrap_or_default();
            self.effects.deliveries.push(dispatch);
            if !self.peer.redelivers {
                // So that the next one comes; a peer of Corriere goes by what is granted.
                drop(self.say(id, &browsed, &Word::of(AckType::Standard), false));
            }
        }
        let Some(subscription) = self.subscriptions.get_mut(&id) else { return };
        let has_delivered_all = subscription.has_delivered_all();
        let is_held_up = subscription.is_held_up();
        match &mut subscription.flow {
            Flow::Window { .. } | Flow::AsGranted { .. } => {}
            Flow::Browser { is_over, is_told, .. } => {
                if *is_over && has_delivered_all && !std::mem::replace(is_told, true) {
                    self.effects.events.push(Event::BrowseEnded { subscription: id });
                }
            }
            Flow::Pull(pull) => {
                let mut drained = Vec::new();
                let request = pull.next_request(is_held_up, &mut drained);
                let pull = request.map(|request| MessagePull {
                    response_required: true,
                    ..pull_of(subscription, request.timeout())
                });
                let drained = drained.into_iter().map(|confirmer| (confirmer, Ok(Confirmation::Done)));
                self.effects.confirmed.extend(drained);
                if let Some(pull) = pull {
                    self.expect(pull, None, About::Other, Then::Pulled(id));
                }
            }
        }
    }
}

/// The timeout of a pull that is a drain, to a peer of Corriere.
pub(super) const DRAIN: i64 = -1;

/// A pull of a consumer.
pub(super) fn pull_of(subscription: &Subscription, timeout: i64) -> MessagePull {
    MessagePull {
        consumer_id: subscription.consumer.clone(),
        destination: Some(subscription.destination.clone()),
        timeout,
        ..MessagePull::default()
    }
}
