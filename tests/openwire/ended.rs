//! Consumers that the provider ends by itself.

use std::sync::Arc;

use corriere_core::provider::{Dispatch, Event, ProviderError};
use corriere_core::{Message, SubscriptionId};
use corriere_openwire::Structure;
use corriere_openwire::structures::{ConsumerId, MessagePull, RemoveInfo};

use crate::log::{log, logged};
use crate::peer::{Peer, queue};
use crate::scripted::Scripted;

/// Ends the latest consumer, of which the peer is told.
async fn end(scripted: &Scripted, peer: &mut Peer, consumer: &ConsumerId) {
    let subscription = *scripted.opened.lock().unwrap().last().unwrap();
    let reason = "its queue was removed".to_owned();
    let error = ProviderError::InvalidDestination { destination: "queue://orders".to_owned(), reason };
    scripted.notify(Event::SubscriptionEnded { subscription, error });
    let Structure::ConsumerControl(control) = peer.next().await else { panic!("it is told") };
    assert_eq!((control.consumer_id.as_ref(), control.close), (Some(consumer), true));
}

fn dispatch(subscription: SubscriptionId) -> Dispatch {
    Dispatch {
        subscription,
        number: 1,
        epoch: 0,
        message: Arc::new(Message::text("x")),
        delivery_count: 1,
        mark: None,
    }
}

#[tokio::test]
async fn one_that_was_ended_may_still_be_closed_once() {
    log();
    let (scripted, _acceptor, mut peer) = Scripted::served().await;
    peer.session(1).await;
    for _ in 0..3 {
        let consumer = peer.consumer((1, 1), &queue("orders"), 10).await;
        end(&scripted, &mut peer, &consumer).await;
        // What was on its way from the peer when it was told.
        peer.request(MessagePull { consumer_id: consumer.clone(), ..Default::default() }).await;
        peer.request(Peer::removal(consumer.clone(), -1)).await;
        let (_, reason) = peer.refused(Peer::removal(consumer, -1)).await;
        assert!(reason.starts_with("there is no consumer"), "{reason}");
    }
    assert_eq!(scripted.opened.lock().unwrap().len(), 3);
    assert!(scripted.closed.lock().unwrap().is_empty(), "the provider knows them no more");
    assert!(logged().contains("queue://orders cannot be used: its queue was removed"));
}

#[tokio::test]
async fn the_id_of_one_that_was_ended_can_be_used_again() {
    let (scripted, _acceptor, mut peer) = Scripted::served().await;
    peer.session(1).await;
    for round in 1..=2 {
        let consumer = peer.consumer((1, 1), &queue("orders"), 10).await;
        let subscription = {
            let opened = scripted.opened.lock().unwrap();
            assert_eq!(opened.len(), round, "it is opened anew");
            *opened.last().unwrap()
        };
        scripted.deliver(dispatch(subscription));
        peer.dispatches(&["x"]).await;
        end(&scripted, &mut peer, &consumer).await;
        // Nothing comes any more.
        scripted.deliver(dispatch(subscription));
        assert!(peer.is_silent().await);
    }
    peer.request(Peer::removal(peer.session_id(1), -1)).await;
    peer.request(RemoveInfo { object_id: Some(peer.connection.clone().into()), ..Default::default() }).await;
}
