//! Credit, what it brings, and what the peer is told of it.

use corriere_core::id::SubscriptionId;
use corriere_core::provider::{Confirmation, Event, ProviderError, Receipt};
use tokio::time::Instant;

use super::commands::done;
use super::error::About;
use super::settling::Word;
use super::state::{State, Then};
use super::subscription::{Flow, Run};
use crate::codec::structures::{AckType, FlushCommand, MessagePull};

impl State {
    pub(super) fn handed_over(&mut self, id: SubscriptionId, number: u64) -> Result<Receipt, ProviderError> {
        let subscription = self.subscription(id)?;
        let count = subscription.hand_over(number);
        let is_counted_there = subscription.peer_redelivers() && count > 0;
        if let Some((last, missing)) = subscription.widen(is_counted_there) {
            let count = if is_counted_there { count } else { missing };
            let run = Run { first: last.clone(), last, count };
            drop(self.say(id, &[run], &Word::of(AckType::Delivered), false));
        }
        Ok(done())
    }

    pub(super) fn grant(&mut self, id: SubscriptionId, granted: u32) -> Result<Receipt, ProviderError> {
        match &mut self.subscription(id)?.flow {
            Flow::Pull(pull) => pull.grant(granted),
            Flow::Browser { credit, .. } => *credit = credit.saturating_add(granted),
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
        if let Some((last, count)) = self.subscriptions.get_mut(&id).and_then(|one| one.widen(false)) {
            let run = Run { first: last.clone(), last, count };
            drop(self.say(id, &[run], &Word::of(AckType::Delivered), false));
        }
    }

    /// Confirmed when the peer can deliver nothing more at this moment, as far as it can be asked that.
    pub(super) fn drain(&mut self, id: SubscriptionId) -> Result<Receipt, ProviderError> {
        match &mut self.subscription(id)?.flow {
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
            Flow::Browser { .. } => Ok(done()),
        }
    }

    /// Delivers what a subscription may have, and asks the peer for what it may have beyond that.
    pub(super) fn deliver(&mut self, id: SubscriptionId) {
        let now = Instant::now();
        while let Some(dispatch) = self.subscriptions.get_mut(&id).and_then(|one| one.next(now)) {
            let is_browsed = self.subscriptions.get_mut(&id).filter(|one| one.is_browser());
            let browsed = is_browsed.map(|one| one.settle(dispatch.number, dispatch.number));
            self.effects.deliveries.push(dispatch);
            for run in browsed.into_iter().flatten() {
                // So that the next one comes.
                drop(self.say(id, &[run], &Word::of(AckType::Standard), false));
            }
        }
        let Some(subscription) = self.subscriptions.get_mut(&id) else { return };
        let has_delivered_all = subscription.has_delivered_all();
        let is_held_up = subscription.is_held_up();
        match &mut subscription.flow {
            Flow::Window { .. } => {}
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
                    consumer_id: subscription.consumer.clone(),
                    destination: Some(subscription.destination.clone()),
                    timeout: request.timeout(),
                    ..MessagePull::default()
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
