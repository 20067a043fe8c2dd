//! What the peer sends by itself.

use corriere_core::id::SubscriptionId;
use corriere_core::provider::{Confirmation, Event};

use super::answers::Answer;
use super::error::{About, refusal};
use super::state::State;
use super::subscription::Flow;
use super::temporary::advisories;
use crate::codec::Structure;
use crate::codec::conversion::ConversionLimits;
use crate::codec::structures::{
    Destination as WireDestination, DestinationInfo, DestinationOperation, KeepAliveInfo, Message,
    MessageAck, MessageDispatch,
};

impl State {
    /// Takes what came.
    pub(super) fn receive(&mut self, structure: Structure) {
        match structure {
            Structure::MessageDispatch(dispatch) => self.dispatched(&dispatch),
            Structure::Response(response) => self.answer(response.correlation_id, Answer::Done),
            Structure::DataResponse(response) => self.answer(response.correlation_id, Answer::Done),
            Structure::DataArrayResponse(response) => self.answer(response.correlation_id, Answer::Done),
            Structure::IntegerResponse(response) => self.answer(response.correlation_id, Answer::Done),
            Structure::ExceptionResponse(response) => {
                self.answer(response.correlation_id, Answer::Failed(response.exception));
            }
            Structure::ConnectionError(failed) => {
                let error = refusal(failed.exception, &About::Other, &self.peer.url);
                tracing::warn!(peer = self.peer.url, %error, "the peer reports a failure that nobody waits for");
                if error.ends_connection() {
                    // The peer closes the socket soon, and this says why.
                    self.end(error);
                }
            }
            Structure::ConsumerControl(control) => self.control(&control),
            Structure::KeepAliveInfo(alive) if alive.response_required => self.tell(KeepAliveInfo::default()),
            // What a broker says of itself and of its cluster changes nothing here.
            other => tracing::trace!(peer = self.peer.url, command = other.name(), "passed over"),
        }
    }

    fn dispatched(&mut self, dispatch: &MessageDispatch) {
        if dispatch.consumer_id == self.advisory_consumer() {
            self.advised(dispatch);
            return;
        }
        let id = SubscriptionId(dispatch.consumer_id.value.cast_unsigned());
        let Some(subscription) = self.subscriptions.get_mut(&id) else {
            // It was closed meanwhile, and the peer takes this back by itself.
            return;
        };
        let Some(message) = &dispatch.message else {
            match &mut subscription.flow {
                Flow::Browser { is_over, .. } => *is_over = true,
                Flow::Pull(pull) => pull.found_nothing(),
                Flow::AsGranted { is_browser: true, .. } => {
                    self.effects.events.push(Event::BrowseEnded { subscription: id });
                }
                Flow::AsGranted { drains, .. } => {
                    let drained = drains.pop_front().map(|confirmer| (confirmer, Ok(Confirmation::Done)));
                    self.effects.confirmed.extend(drained);
                }
                Flow::Window { .. } => {}
            }
            self.deliver(id);
            return;
        };
        if let Flow::Pull(pull) = &mut subscription.flow {
            pull.arrived();
        }
        if subscription.is_outdated(dispatch.command_id) {
            self.deliver(id);
            return;
        }
        let failed = u32::try_from(dispatch.redelivery_counter).unwrap_or(0);
        match message.to_core(ConversionLimits::default()) {
            Ok(_) if !subscription.is_browser() && subscription.is_exhausted(failed) => {
                let ack = ack_of(dispatch, message);
                self.refuse(ack, &format!("{failed} deliveries failed, more than the redelivery policy has"));
            }
            Ok(converted) => {
                subscription.arrive(message.message_id.clone().unwrap_or_default(), converted, failed);
            }
            Err(error) => {
                tracing::error!(
                    peer = self.peer.url,
                    message_id = ?message.message_id.as_ref().map(ToString::to_string),
                    %error,
                    "a message cannot be read, and goes to the dead letters"
                );
                let ack = ack_of(dispatch, message);
                if subscription.is_browser() {
                    self.acknowledge_unheld(ack);
                } else {
                    self.refuse(ack, &error.to_string());
                }
            }
        }
        self.deliver(id);
    }

    /// A temporary destination came or went.
    fn advised(&mut self, dispatch: &MessageDispatch) {
        let Some(message) = &dispatch.message else { return };
        self.acknowledge_unheld(MessageAck { destination: Some(advisories()), ..ack_of(dispatch, message) });
        let Some(Structure::DestinationInfo(info)) = &message.data_structure else { return };
        let DestinationInfo { destination, operation_type, .. } = &**info;
        if let Some(Ok(destination)) = destination.as_ref().map(WireDestination::to_core) {
            let exists = *operation_type == DestinationOperation::Add;
            self.effects.events.push(Event::DestinationChanged { destination, exists });
        }
    }
}

/// An acknowledgement of this one message, but for what it says.
fn ack_of(dispatch: &MessageDispatch, message: &Message) -> MessageAck {
    MessageAck {
        destination: dispatch.destination.clone(),
        consumer_id: dispatch.consumer_id.clone(),
        first_message_id: message.message_id.clone(),
        last_message_id: message.message_id.clone(),
        message_count: 1,
        ..MessageAck::default()
    }
}
