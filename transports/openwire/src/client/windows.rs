//! Windows that change at run time, and what the peer says of them.

use corriere_core::Destination;
use corriere_core::id::SubscriptionId;
use corriere_core::provider::{Confirmation, Event, ProviderError, Receipt};

use super::commands::done;
use super::error::About;
use super::state::{State, Then};
use super::subscription::Flow;
use crate::codec::structures::{ConsumerControl, ConsumerInfo};
use crate::redelivery::ConsumerTerms;

impl State {
    /// Asks the peer for another window. One of Corriere is told of it by the consumer's own words, with the extension.
    pub(super) fn change_window(
        &mut self,
        id: SubscriptionId,
        prefetch: u32,
        extension: Option<u32>,
    ) -> Result<Receipt, ProviderError> {
        let redelivers = self.peer.redelivers;
        let subscription = self.subscription(id)?;
        let size = i32::try_from(prefetch).unwrap_or(i32::MAX);
        let (consumer_id, destination) =
            (subscription.consumer.clone(), Some(subscription.destination.clone()));
        let change = Then::Confirm(Confirmation::Done);
        if !subscription.has_window {
            return Ok(done());
        }
        if redelivers {
            let terms = ConsumerTerms { extension, ..ConsumerTerms::default() };
            let info = ConsumerInfo {
                response_required: true,
                consumer_id,
                destination,
                prefetch_size: size,
                additional_predicate: Some(terms.to_structure()),
                ..ConsumerInfo::default()
            };
            return Ok(self.ask(info, About::Other, change));
        }
        subscription.flow = Flow::Window { prefetch, extension };
        let control = ConsumerControl {
            response_required: true,
            destination,
            consumer_id: Some(consumer_id),
            prefetch: size,
            ..ConsumerControl::default()
        };
        let receipt = self.ask(control, About::Other, change);
        // Half of a smaller window is less.
        self.attend(id);
        Ok(receipt)
    }

    /// What the peer says of a consumer: that it is closed, has another window, or stands still.
    pub(super) fn control(&mut self, control: &ConsumerControl) {
        let Some(consumer) = control.consumer_id.as_ref() else { return };
        let id = SubscriptionId(consumer.value.cast_unsigned());
        let known = self.subscriptions.get_mut(&id).filter(|subscription| subscription.consumer == *consumer);
        let Some(subscription) = known else { return };
        let redelivers = self.peer.redelivers;
        match u32::try_from(control.prefetch) {
            _ if control.close => self.end_subscription(id, "the broker has closed the consumer"),
            Ok(unacknowledged) if control.stop && redelivers => {
                if let Ok(destination) = subscription.destination.to_core() {
                    self.is_slow(id, destination, unacknowledged);
                }
            }
            _ if control.stop || control.start || control.flush || !subscription.has_window => {}
            Ok(prefetch) if prefetch > 0 => {
                if let Flow::Window { prefetch: known, extension } = &mut subscription.flow {
                    *known = prefetch;
                    // What is bounded is so by half of the prefetch; 0 is no extension at all.
                    *extension = extension.map(|old| old.min(1) * prefetch.div_ceil(2));
                }
                self.effects.events.push(Event::WindowChanged { subscription: id, prefetch });
                self.attend(id);
            }
            // It would wait for ever.
            _ => self.end_subscription(
                id,
                "the broker's policy gives it a prefetch of 0, so that it would have to pull; expected a consumer that asks for a \
                 prefetch of 0 by itself",
            ),
        }
    }

    fn is_slow(&mut self, subscription: SubscriptionId, destination: Destination, unacknowledged: u32) {
        let unacknowledged = unacknowledged.into();
        self.effects.events.push(Event::SlowConsumer { subscription, destination, unacknowledged });
    }

    fn end_subscription(&mut self, id: SubscriptionId, reason: &str) {
        self.remove_subscription(id, false);
        let error =
            ProviderError::Refused { exception: "ConsumerControl".to_owned(), reason: reason.to_owned() };
        self.effects.events.push(Event::SubscriptionEnded { subscription: id, error });
    }
}

#[cfg(test)]
mod tests {
    use corriere_core::id::SessionId;
    use corriere_core::provider::{Command, Credit, Subscribe};

    use super::*;
    use crate::client::scripted::{Client, Door, Scripted};
    use crate::codec::Structure;
    use crate::codec::negotiation::Preferences;
    use crate::codec::structures::{ConsumerId, FlushCommand};
    use crate::redelivery;

    const SUBSCRIPTION: SubscriptionId = SubscriptionId(2);

    /// A consumer with a window of 10 at a peer.
    async fn consumer(is_corriere: bool) -> (Client, Scripted, ConsumerId) {
        let mut preferences = Preferences::default();
        if is_corriere {
            redelivery::announce(&mut preferences.others);
        }
        let (client, mut peer) = Door::open().await.take_in(&preferences).await;
        client.open_session(&mut peer).await;
        let opened = client.connection.submit(Command::OpenSubscription(Box::new(Subscribe {
            subscription: SUBSCRIPTION,
            session: SessionId(1),
            destination: Destination::queue("q").unwrap(),
            credit: Credit::Window { prefetch: 10, extension: Some(5) },
            is_default_credit: true,
            selector: None,
            no_local: false,
            durable_name: None,
            redelivery: None,
        })));
        let Structure::ConsumerInfo(info) = peer.next().await else { panic!("no consumer") };
        let terms = ConsumerTerms::from_structure(info.additional_predicate.as_ref()).unwrap();
        assert_eq!(terms.is_default_credit, is_corriere, "ActiveMQ knows its own defaults only");
        let consumer = info.consumer_id.clone();
        peer.done(&Structure::ConsumerInfo(info)).await;
        if is_corriere {
            assert_eq!(peer.next().await.name(), "MessagePull");
        } else {
            opened.await.unwrap();
        }
        (client, peer, consumer)
    }

    /// Waits until the client has read all that the peer said.
    async fn read(client: &Client, peer: &mut Scripted) {
        let asked = client.connection.submit(Command::OpenSession {
            session: SessionId(77),
            mode: corriere_core::provider::SessionMode::Auto,
        });
        let info = peer.next().await;
        peer.done(&info).await;
        asked.await.unwrap();
    }

    #[tokio::test]
    async fn activemq_is_told_of_the_prefetch_and_a_peer_of_corriere_of_the_extension_too() {
        let change = || Command::ChangeWindow { subscription: SUBSCRIPTION, prefetch: 4, extension: Some(2) };
        let (client, mut peer, consumer) = consumer(false).await;
        let Structure::ConsumerControl(control) = client.told(&mut peer, change()).await else {
            panic!("it is not told")
        };
        assert_eq!((control.consumer_id, control.prefetch), (Some(consumer), 4));
        assert!(control.destination.is_some(), "ActiveMQ wakes it by that");
        let (client, mut peer, consumer) = self::consumer(true).await;
        let Structure::ConsumerInfo(info) = client.told(&mut peer, change()).await else {
            panic!("it is not told")
        };
        assert_eq!((&info.consumer_id, info.prefetch_size), (&consumer, 4));
        let terms = ConsumerTerms::from_structure(info.additional_predicate.as_ref()).unwrap();
        assert_eq!(terms.extension, Some(2));
    }

    #[tokio::test]
    async fn what_the_peer_makes_of_a_window_is_told() {
        for is_corriere in [false, true] {
            let (client, mut peer, consumer) = consumer(is_corriere).await;
            let control = ConsumerControl { consumer_id: Some(consumer), prefetch: 3, ..Default::default() };
            peer.say(control).await;
            read(&client, &mut peer).await;
            let events = client.came.events.lock().unwrap();
            let [Event::WindowChanged { subscription: SUBSCRIPTION, prefetch: 3 }] = events.as_slice() else {
                panic!("{events:?}")
            };
        }
    }

    #[tokio::test]
    async fn that_a_consumer_stands_still_is_told_by_a_peer_of_corriere_only() {
        for is_corriere in [false, true] {
            let (client, mut peer, consumer) = consumer(is_corriere).await;
            peer.say(redelivery::slow(consumer, &Destination::queue("q").unwrap(), 15)).await;
            read(&client, &mut peer).await;
            let events = client.came.events.lock().unwrap();
            let is_told = matches!(
                events.as_slice(),
                [Event::SlowConsumer { subscription: SUBSCRIPTION, unacknowledged: 15, .. }]
            );
            assert_eq!(is_told, is_corriere, "{events:?}");
            assert!(is_told || events.is_empty());
        }
    }

    #[tokio::test]
    async fn a_consumer_that_the_peer_would_have_pull_ends_and_does_not_wait_for_ever() {
        let (client, mut peer, consumer) = consumer(false).await;
        peer.say(ConsumerControl { consumer_id: Some(consumer.clone()), ..Default::default() }).await;
        let Structure::RemoveInfo(info) = peer.next().await else { panic!("it is not removed") };
        assert_eq!(info.object_id, Some(consumer.into()));
        peer.say(FlushCommand::default()).await;
        read(&client, &mut peer).await;
        let events = client.came.events.lock().unwrap();
        let [Event::SubscriptionEnded { error, .. }] = events.as_slice() else { panic!("{events:?}") };
        assert!(error.to_string().contains("a prefetch of 0"), "{error}");
    }
}
