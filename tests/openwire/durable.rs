//! Durable subscriptions, as a peer of another make asks for them and as it is refused.

use std::sync::Arc;

use corriere_core::provider::{Capability, Dispatch, ProviderError};
use corriere_core::{Message, MessageId};
use corriere_openwire::acceptor::Acceptor;
use corriere_openwire::structures::{ConnectionInfo, ConsumerInfo, RemoveSubscriptionInfo};

use crate::peer::{Peer, sequence_of, topic};
use crate::scripted::Scripted;

/// A client of this name with session 1.
async fn client(acceptor: &Acceptor, client_id: Option<&str>) -> Peer {
    let mut peer = Peer::greet(acceptor.local_address()).await;
    let client_id = client_id.map(Into::into);
    peer.request(ConnectionInfo { client_id, ..peer.introduction() }).await;
    peer.session(1).await;
    peer
}

fn durable(peer: &Peer, value: i64, name: &str) -> ConsumerInfo {
    let plain = peer.consumer_info((1, value), &topic("prices"), 100);
    ConsumerInfo { subscription_name: Some(name.into()), ..plain }
}

fn removal(name: &str, client_id: Option<&str>) -> RemoveSubscriptionInfo {
    RemoveSubscriptionInfo {
        subscription_name: Some(name.into()),
        client_id: client_id.map(Into::into),
        ..Default::default()
    }
}

#[tokio::test]
async fn the_name_and_what_is_left_out_reach_the_provider_and_so_does_the_end() {
    let (scripted, acceptor) = Scripted::listening(&[Capability::DurableSubscriptions]).await;
    let mut peer = client(&acceptor, Some("billing")).await;
    peer.request(ConsumerInfo { no_local: true, ..durable(&peer, 1, "audit") }).await;
    let subscribe = scripted.last_opened();
    assert_eq!((subscribe.durable_name.as_deref(), subscribe.no_local), (Some("audit"), true));
    // Some clients write none so.
    peer.request(durable(&peer, 2, "")).await;
    assert_eq!(scripted.last_opened().durable_name, None);
    scripted.asked();
    for client_id in [Some("billing"), Some(""), None] {
        peer.request(removal("audit", client_id)).await;
        assert_eq!(scripted.asked(), ["Unsubscribe { name: \"audit\" }"]);
    }
}

#[tokio::test]
async fn what_the_provider_refuses_has_the_class_and_the_words_that_clients_know() {
    let (scripted, acceptor) = Scripted::listening(&[Capability::DurableSubscriptions]).await;
    let mut peer = client(&acceptor, Some("billing")).await;
    let (name, client_id) = ("audit".to_owned(), "billing".to_owned());
    let in_use = ProviderError::SubscriptionInUse {
        name: name.clone(),
        client_id: client_id.clone(),
        holder: "connection ID:a".to_owned(),
    };
    let in_use_words = "Durable consumer is in use for client: billing and subscriptionName: audit; it is used by connection ID:a";
    scripted.refuse(in_use.clone());
    let (class, words) = peer.refused(durable(&peer, 1, "audit")).await;
    assert_eq!((class.as_str(), words.as_str()), ("javax.jms.JMSException", in_use_words));
    scripted.refuse(in_use);
    let (class, words) = peer.refused(removal("audit", None)).await;
    assert_eq!((class.as_str(), words.as_str()), ("javax.jms.JMSException", in_use_words));
    scripted.refuse(ProviderError::UnknownSubscription { name, client_id, nearest: None });
    let (class, words) = peer.refused(removal("audit", None)).await;
    assert_eq!(
        (class.as_str(), words.as_str()),
        ("javax.jms.InvalidDestinationException", "No durable subscription exists for: audit")
    );
    scripted.refuse(ProviderError::NoClientId { name: "audit".to_owned() });
    assert_eq!(peer.refused(durable(&peer, 1, "audit")).await.0, "javax.jms.IllegalStateException");
    // What was refused is not there, and the connection goes on.
    peer.request(durable(&peer, 1, "audit")).await;
}

#[tokio::test]
async fn the_subscription_of_another_client_is_not_removed() {
    let (scripted, acceptor) = Scripted::listening(&[Capability::DurableSubscriptions]).await;
    for client_id in [Some("billing"), None] {
        let mut peer = client(&acceptor, client_id).await;
        let (class, words) = peer.refused(removal("audit", Some("shipping"))).await;
        assert_eq!(class, "javax.jms.InvalidDestinationException");
        assert!(words.contains("of client `shipping` is not removed by"), "{words}");
    }
    assert!(scripted.asked().iter().all(|command| !command.contains("Unsubscribe")));
}

#[tokio::test]
async fn where_the_provider_keeps_none_they_are_refused_by_name() {
    let (scripted, acceptor) = Scripted::listening(&[]).await;
    let mut peer = client(&acceptor, Some("billing")).await;
    let (class, words) = peer.refused(durable(&peer, 1, "audit")).await;
    assert_eq!(class, "javax.jms.JMSException");
    assert_eq!(words, "durable subscriptions are not offered; the consumer is for `audit`");
    let (class, words) = peer.refused(removal("audit", None)).await;
    assert_eq!(class, "javax.jms.InvalidDestinationException");
    assert_eq!(words, "there is no subscription `audit`: durable subscriptions are not offered");
    assert_eq!(scripted.asked(), [""; 0]);
}

#[tokio::test]
async fn a_durable_consumer_says_which_message_was_the_last_when_its_session_is_closed() {
    let (scripted, acceptor) = Scripted::listening(&[Capability::DurableSubscriptions]).await;
    let mut peer = client(&acceptor, Some("billing")).await;
    peer.request(durable(&peer, 1, "audit")).await;
    let audit = scripted.last_opened().subscription;
    peer.consumer((1, 2), &topic("prices"), 10).await;
    let plain = scripted.last_opened().subscription;
    let dispatch = |subscription, number| {
        let mut message = Message::text("x");
        message.headers_mut().message_id = Some(MessageId { producer: "ID:p:1:1".into(), sequence: number });
        let message = Arc::new(message);
        Dispatch { subscription, number, epoch: 0, message, delivery_count: 1, mark: None }
    };
    for (subscription, number) in [(audit, 1), (audit, 2), (plain, 1), (audit, 3)] {
        scripted.deliver(dispatch(subscription, number));
    }
    let dispatches = peer.dispatches(&["x", "x", "x", "x"]).await;
    scripted.asked();
    peer.request(Peer::removal(peer.session_id(1), sequence_of(&dispatches[2]))).await;
    let closed = scripted.asked();
    for expected in [
        format!("CloseSubscription {{ subscription: {audit:?}, last_handed_over: 2 }}"),
        format!("CloseSubscription {{ subscription: {plain:?}, last_handed_over: 1 }}"),
    ] {
        assert!(closed.contains(&expected), "{expected}: {closed:?}");
    }
}
