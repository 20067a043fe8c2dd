//! Windows of consumers: what a peer left to the broker, what it changes, what it is told of them.

use corriere_core::destination::MAXIMUM_PREFETCH;
use corriere_core::provider::Command;
use corriere_core::{DestinationKind, SubscriptionId};

use super::confirmations::{Answer, Then};
use super::connection::Connection;
use super::deliveries::Slow;
use super::durable::name_of;
use super::exceptions::Refusal;
use crate::codec::structures as wire;
use crate::redelivery::{self, ConsumerTerms};

/// The prefetches that a client of ActiveMQ has where nobody chose another: of queues, of topics (its documentation and its
/// code), and of durable subscriptions (without and with optimized dispatch).
const QUEUE: i32 = 1_000;
const TOPIC: [i32; 2] = [32_766, 32_767];
const DURABLE: [i32; 2] = [100, 1_000];

impl Connection {
    /// A peer of another make gives a consumer another window. After a failover it opens some of its consumers without one, and
    /// gives it to them when it has put its memory in order.
    pub(super) fn control(&mut self, control: &wire::ConsumerControl, answer: Answer) -> Result<(), Refusal> {
        let is_of_the_window = !(control.close || control.flush || control.start || control.stop);
        let named = control.consumer_id.as_ref().filter(|_| is_of_the_window && !self.is_corriere);
        let Some(id) = named else {
            self.done(answer);
            return Ok(());
        };
        self.check_owner(&id.connection_id, "the consumer")?;
        let Some(&subscription) = self.consumers.get(&(id.session_id, id.value)) else {
            self.done(answer);
            return Ok(());
        };
        let state = self.deliveries.lock();
        let consumer = state.consumers.get(&subscription).filter(|consumer| !consumer.is_browser);
        let Some((is_idle, pulls)) =
            consumer.map(|consumer| (consumer.ledger.oldest().is_none(), consumer.pulling.clone()))
        else {
            drop(state);
            self.done(answer);
            return Ok(());
        };
        drop(state);
        match (prefetch(control.prefetch), pulls) {
            (Some(prefetch), None) => {
                let change = Command::ChangeWindow { subscription, prefetch, extension: None };
                self.submit(change, Then::Answer(answer))
            }
            (Some(_), Some(info)) if is_idle => {
                self.close_consumer(id, NONE_DELIVERED, Answer::none())?;
                self.open_consumer(wire::ConsumerInfo { prefetch_size: control.prefetch, ..*info }, answer)
            }
            (Some(_), Some(_)) => Err(Refusal::illegal_state(format_args!(
                "consumer {id} pulls, and has messages that it did not acknowledge; expected a prefetch of 0"
            ))),
            (None, Some(_)) => {
                self.done(answer);
                Ok(())
            }
            (None, None) => Err(Refusal::illegal_state(format_args!(
                "consumer {id} cannot be made one that pulls; expected a prefetch of at least 1"
            ))),
        }
    }

    /// A peer of Corriere says again of a consumer how much may be under way to it.
    pub(super) fn change_window(
        &mut self,
        subscription: SubscriptionId,
        info: &wire::ConsumerInfo,
        answer: Answer,
    ) -> Result<(), Refusal> {
        let terms = ConsumerTerms::from_structure(info.additional_predicate.as_ref())?;
        let Some(prefetch) = prefetch(info.prefetch_size) else {
            self.done(answer);
            return Ok(());
        };
        let change = Command::ChangeWindow { subscription, prefetch, extension: terms.extension };
        self.submit(change, Then::Answer(answer))
    }

    /// A consumer of the peer stands still by its own doing.
    pub(super) fn is_slow(&self, slow: &Slow) {
        let Slow { consumer, destination, unacknowledged } = slow;
        tracing::warn!(
            peer = %self.peer, client_id = self.client_id(), %consumer, %destination, unacknowledged,
            "a consumer has all that its window lets through and acknowledges none of it, while more waits"
        );
        if self.is_corriere {
            self.deliveries.word(redelivery::slow(consumer.clone(), destination, *unacknowledged));
        }
    }
}

/// `RemoveInfo.lastDeliveredSequenceId` of a consumer that handed nothing over.
const NONE_DELIVERED: i64 = -1;

/// The window of a consumer; `None` for one that pulls.
pub(super) fn prefetch(size: i32) -> Option<u32> {
    u32::try_from(size).ok().map(|prefetch| prefetch.min(MAXIMUM_PREFETCH)).filter(|prefetch| *prefetch > 0)
}

/// Whether a peer of another make has the window that its client gives to whoever asks for none. As in ActiveMQ, one that
/// asked for the same cannot be told from that.
pub(super) fn is_default(info: &wire::ConsumerInfo) -> bool {
    let is_topic = info.destination.as_ref().is_some_and(is_topic);
    match (name_of(info), is_topic) {
        (Some(_), _) => DURABLE.contains(&info.prefetch_size),
        (None, true) => TOPIC.contains(&info.prefetch_size),
        (None, false) => info.prefetch_size == QUEUE,
    }
}

pub(super) fn is_topic(destination: &wire::Destination) -> bool {
    matches!(destination.kind, DestinationKind::Topic | DestinationKind::TemporaryTopic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_of_clients_are_known_by_what_they_consume() {
        let info = |kind, name: Option<&str>, prefetch_size| wire::ConsumerInfo {
            destination: Some(wire::Destination::new(kind, "prices")),
            subscription_name: name.map(Into::into),
            prefetch_size,
            ..wire::ConsumerInfo::default()
        };
        let (queue, topic) = (DestinationKind::Queue, DestinationKind::Topic);
        for (kind, name, prefetch, expected) in [
            (queue, None, 1_000, true),
            (queue, None, 999, false),
            (DestinationKind::TemporaryQueue, None, 1_000, true),
            (topic, None, 32_767, true),
            (topic, None, 32_766, true),
            (topic, None, 1_000, false),
            (topic, Some("audit"), 100, true),
            (topic, Some("audit"), 1_000, true),
            (topic, Some("audit"), 32_767, false),
            (topic, Some(""), 32_767, true),
        ] {
            assert_eq!(is_default(&info(kind, name, prefetch)), expected, "{kind:?} {name:?} {prefetch}");
        }
    }
}
