//! Durable subscriptions: under whose name they are kept, and the end of one.

use std::sync::Arc;

use corriere_core::provider::{Confirmation, ProviderError, Receipt};

use super::error::About;
use super::state::{State, Then};
use crate::codec::structures::RemoveSubscriptionInfo;

impl State {
    /// The client id under which the durable subscription `name` is kept. That a connection has one of its own for the peer's sake
    /// does not count: it would be another one next time.
    pub(super) fn client_id_for(&self, name: &str) -> Result<Arc<str>, ProviderError> {
        self.peer.client_id.clone().ok_or_else(|| ProviderError::NoClientId { name: name.to_owned() })
    }

    pub(super) fn unsubscribe(&mut self, name: Arc<str>) -> Result<Receipt, ProviderError> {
        let client_id = self.client_id_for(&name)?;
        let info = RemoveSubscriptionInfo {
            response_required: true,
            connection_id: Some(self.peer.connection.clone()),
            subscription_name: Some(Arc::clone(&name)),
            client_id: Some(Arc::clone(&client_id)),
            ..RemoveSubscriptionInfo::default()
        };
        let about = About::Durable { name, client_id, destination: None };
        Ok(self.ask(info, about, Then::Confirm(Confirmation::Done)))
    }
}

#[cfg(test)]
mod tests {
    use corriere_core::Destination;
    use corriere_core::id::{SessionId, SubscriptionId};
    use corriere_core::provider::{Command, Credit, Subscribe};

    use super::*;
    use crate::client::scripted::Door;
    use crate::codec::Structure;
    use crate::codec::negotiation::Preferences;
    use crate::codec::structures::JavaException;

    fn subscribe() -> Command {
        Command::OpenSubscription(Box::new(Subscribe {
            subscription: SubscriptionId(2),
            session: SessionId(1),
            destination: Destination::topic("prices").unwrap(),
            credit: Credit::Window { prefetch: 10, extension: None },
            is_default_credit: false,
            selector: None,
            no_local: true,
            durable_name: Some("audit".into()),
            redelivery: None,
        }))
    }

    #[tokio::test]
    async fn a_durable_subscription_is_asked_for_and_ended_by_its_name_and_client() {
        let door = Door::open().await;
        let (client, mut peer) = door.take_in_as(Some("billing"), &Preferences::default()).await;
        client.open_session(&mut peer).await;
        let Structure::ConsumerInfo(info) = client.told(&mut peer, subscribe()).await else {
            panic!("no consumer")
        };
        assert_eq!(info.subscription_name.as_deref(), Some("audit"));
        assert_eq!((info.client_id.as_deref(), info.no_local), (Some("billing"), true));
        let unsubscribe = Command::Unsubscribe { name: "audit".into() };
        let Structure::RemoveSubscriptionInfo(info) = client.told(&mut peer, unsubscribe).await else {
            panic!("it is not removed")
        };
        assert_eq!(info.subscription_name.as_deref(), Some("audit"));
        assert_eq!(info.client_id.as_deref(), Some("billing"));
    }

    #[tokio::test]
    async fn what_the_peer_refuses_is_told_by_name() {
        let door = Door::open().await;
        let (client, mut peer) = door.take_in_as(Some("billing"), &Preferences::default()).await;
        client.open_session(&mut peer).await;
        let in_use = "Durable consumer is in use";
        let unknown = "No durable subscription exists for: audit";
        let other = "the topic has no such thing";
        for (command, exception, words) in [
            (subscribe(), JavaException::Jms, in_use),
            (Command::Unsubscribe { name: "audit".into() }, JavaException::Jms, in_use),
            (Command::Unsubscribe { name: "audit".into() }, JavaException::InvalidDestination, unknown),
            (subscribe(), JavaException::InvalidDestination, other),
        ] {
            let receipt = client.connection.submit(command);
            let asked = peer.next().await;
            peer.refused(&asked, exception, words).await;
            let error = receipt.await.unwrap_err();
            let is_expected = match words {
                _ if words == in_use => matches!(error, ProviderError::SubscriptionInUse { .. }),
                _ if words == unknown => matches!(error, ProviderError::UnknownSubscription { .. }),
                _ => matches!(error, ProviderError::InvalidDestination { .. }),
            };
            assert!(is_expected, "{words}: {error}");
        }
    }

    #[tokio::test]
    async fn without_a_client_id_nothing_is_kept_under_one_that_the_next_connection_has_not() {
        let door = Door::open().await;
        let (client, mut peer) = door.take_in(&Preferences::default()).await;
        client.open_session(&mut peer).await;
        for command in [subscribe(), Command::Unsubscribe { name: "audit".into() }] {
            let error = client.connection.submit(command).await.unwrap_err();
            assert_eq!(error, ProviderError::NoClientId { name: "audit".to_owned() });
        }
    }
}
