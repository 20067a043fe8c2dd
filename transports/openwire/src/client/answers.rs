//! What the peer answers.

use corriere_core::id::SubscriptionId;
use corriere_core::provider::{Confirmation, Confirmer, ProviderError};

use super::error::{About, refusal};
use super::state::{Acknowledged, State, Then, Waiting};
use super::subscription::Flow;
use crate::codec::structures::{FlushCommand, Throwable};

/// What an answer says.
#[derive(Debug)]
pub(super) enum Answer {
    Done,
    Failed(Option<Throwable>),
}

impl State {
    /// Takes the answer to a command. One that nobody waits for is passed over.
    pub(super) fn answer(&mut self, command: i32, answer: Answer) {
        let Some(Waiting { confirmer, about, then }) = self.answered(command) else { return };
        let outcome = match answer {
            Answer::Done => Ok(()),
            Answer::Failed(exception) => Err(refusal(exception, &about, &self.peer.url)),
        };
        self.conclude(confirmer, then, outcome);
    }

    /// A command could not be written, which is an answer as well.
    pub(super) fn not_written(&mut self, command: i32, error: ProviderError) {
        let Some(Waiting { confirmer, then, .. }) = self.answered(command) else {
            tracing::error!(peer = self.peer.url, %error, "a command could not be written");
            return;
        };
        self.conclude(confirmer, then, Err(error));
    }

    fn conclude(&mut self, confirmer: Option<Confirmer>, then: Then, outcome: Result<(), ProviderError>) {
        let confirmation = match then {
            Then::Confirm(confirmation) => confirmation,
            Then::Opened(subscription) => {
                self.opened(subscription, confirmer, outcome);
                return;
            }
            Then::Watching if outcome.is_ok() => {
                // What there was before is told of before this is answered.
                let flush = FlushCommand { response_required: true, ..FlushCommand::default() };
                self.expect(flush, confirmer, About::Other, Then::Confirm(Confirmation::Done));
                return;
            }
            Then::Watching | Then::Closed => Confirmation::Done,
            Then::Ended { acknowledged, commits } => {
                self.end_acknowledged(acknowledged, commits && outcome.is_ok());
                Confirmation::Done
            }
            Then::Pulled(subscription) => {
                if let Some(Flow::Pull(pull)) = self.flow(subscription) {
                    pull.answered();
                    if outcome.is_err() {
                        // Nothing comes of it, and asking again would be no better.
                        pull.found_nothing();
                    }
                }
                self.deliver(subscription);
                Confirmation::Done
            }
        };
        match confirmer {
            Some(confirmer) => self.effects.confirmed.push((confirmer, outcome.map(|()| confirmation))),
            None => {
                if let Err(error) = outcome {
                    tracing::warn!(peer = self.peer.url, %error, "the peer refuses what nobody waits for");
                }
            }
        }
    }

    /// A subscription is there, or is not.
    fn opened(
        &mut self,
        id: SubscriptionId,
        confirmer: Option<Confirmer>,
        outcome: Result<(), ProviderError>,
    ) {
        let Err(error) = outcome else {
            let opened = confirmer.map(|confirmer| (confirmer, Ok(Confirmation::Done)));
            self.effects.confirmed.extend(opened);
            return;
        };
        let drains = self.subscriptions.remove(&id).map(|mut refused| refused.take_drains());
        let told = confirmer.into_iter().chain(drains.into_iter().flatten());
        self.effects.confirmed.extend(told.map(|confirmer| (confirmer, Err(error.clone()))));
    }

    /// A transaction is over, and with it what was acknowledged in it, or as it was.
    fn end_acknowledged(&mut self, acknowledged: Vec<Acknowledged>, is_committed: bool) {
        for Acknowledged { subscription: id, arrivals } in acknowledged {
            let Some(subscription) = self.subscriptions.get_mut(&id) else { continue };
            if is_committed {
                subscription.committed(&arrivals);
            } else {
                subscription.rolled_back(&arrivals);
            }
            self.attend(id);
            self.remove_if_done(id);
        }
    }

    fn flow(&mut self, subscription: SubscriptionId) -> Option<&mut Flow> {
        self.subscriptions.get_mut(&subscription).map(|subscription| &mut subscription.flow)
    }
}
