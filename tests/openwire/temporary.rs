//! Temporary destinations, and the word of them that clients need before they send to one.

use corriere_core::DestinationKind;
use corriere_openwire::Structure;
use corriere_openwire::structures::{
    self as wire, AckType, ConsumerId, DestinationInfo, DestinationOperation, Message,
};

use crate::peer::{Peer, topic};
use crate::server::Server;

const BOTH: &str = "ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic";

/// A temporary queue of a peer.
fn temporary(peer: &Peer, kind: DestinationKind, number: u32) -> wire::Destination {
    wire::Destination::new(kind, &format!("{}:{number}", peer.connection))
}

fn change(destination: &wire::Destination, operation_type: DestinationOperation) -> DestinationInfo {
    DestinationInfo { destination: Some(destination.clone()), operation_type, ..Default::default() }
}

/// The next dispatch, which tells of a temporary destination.
async fn advisory(
    peer: &mut Peer,
    consumer: &ConsumerId,
) -> (wire::Destination, DestinationOperation, Message) {
    let dispatch = peer.dispatch().await;
    assert_eq!(&dispatch.consumer_id, consumer);
    let message = *dispatch.message.unwrap();
    assert_eq!(message.message_type.as_deref(), Some("Advisory"));
    let Some(Structure::DestinationInfo(info)) = &message.data_structure else { panic!("it has one") };
    let destination = info.destination.clone().unwrap();
    assert_eq!(info.connection_id.as_ref().map(|id| &*id.value), destination.owner());
    (destination, info.operation_type, message)
}

#[tokio::test]
async fn a_reply_goes_to_the_temporary_queue_of_who_asked() {
    let server = Server::start().await;
    let mut asking = server.client().await;
    asking.session(1).await;
    let replies = temporary(&asking, DestinationKind::TemporaryQueue, 1);
    asking.request(change(&replies, DestinationOperation::Add)).await;
    let consumer = asking.consumer((1, 1), &replies, 10).await;
    let mut answering = server.client().await;
    answering.send_first(&replies, &["yes"]).await;
    let reply = asking.dispatches(&["yes"]).await.remove(0);
    assert_eq!(reply.destination, Some(replies.clone()));
    asking.settle(&reply).await;

    let remove = change(&replies, DestinationOperation::Remove);
    let (class, _) = asking.refused(remove.clone()).await;
    assert_eq!(class, "javax.jms.InvalidDestinationException", "it has a consumer");
    asking.request(Peer::removal(consumer, -1)).await;
    asking.request(remove).await;
    let message = answering.text(&replies, "too late", true);
    assert_eq!(answering.refused(message).await.0, "javax.jms.InvalidDestinationException");
}

#[tokio::test]
async fn a_temporary_destination_is_its_owners_to_make_to_remove_and_to_consume_from() {
    let server = Server::start().await;
    let mut owner = server.client().await;
    let replies = temporary(&owner, DestinationKind::TemporaryQueue, 1);
    let mut other = server.client().await;
    other.session(1).await;
    for operation in [DestinationOperation::Add, DestinationOperation::Remove] {
        let (class, message) = other.refused(change(&replies, operation)).await;
        assert_eq!(class, "javax.jms.IllegalStateException");
        assert!(message.contains(&*owner.connection.value), "{message}");
    }
    let consumer = other.consumer_info((1, 1), &replies, 10);
    let (class, _) = other.refused(consumer.clone()).await;
    assert_eq!(class, "javax.jms.InvalidDestinationException", "it is not there");
    owner.request(change(&replies, DestinationOperation::Add)).await;
    let (class, _) = other.refused(consumer).await;
    assert_eq!(class, "javax.jms.InvalidDestinationException", "it is another's");
    let nobodys = wire::Destination::new(DestinationKind::TemporaryQueue, "nobodys");
    let (class, _) = other.refused(change(&nobodys, DestinationOperation::Add)).await;
    assert_eq!(class, "javax.jms.IllegalStateException");
}

#[tokio::test]
async fn who_asks_is_told_of_those_that_are_there_and_then_of_each_that_comes_and_goes() {
    let server = Server::start().await;
    let mut owner = server.client().await;
    let first = temporary(&owner, DestinationKind::TemporaryQueue, 1);
    owner.request(change(&first, DestinationOperation::Add)).await;

    let mut watching = server.client().await;
    // As Java's client does it: of the session that needs not be opened.
    let consumer = watching.consumer((-1, 1), &topic(BOTH), 1_000).await;
    let (destination, operation, message) = advisory(&mut watching, &consumer).await;
    assert_eq!((destination, operation), (first.clone(), DestinationOperation::Add));
    assert_eq!(message.destination, Some(topic("ActiveMQ.Advisory.TempQueue")));

    let second = temporary(&owner, DestinationKind::TemporaryTopic, 2);
    owner.request(change(&second, DestinationOperation::Add)).await;
    let (destination, operation, message) = advisory(&mut watching, &consumer).await;
    assert_eq!((destination, operation), (second.clone(), DestinationOperation::Add));
    assert_eq!(message.destination, Some(topic("ActiveMQ.Advisory.TempTopic")));
    // Acknowledgements of advisories mean nothing to anybody.
    let dispatch = wire::MessageDispatch {
        consumer_id: consumer.clone(),
        message: Some(Box::new(message)),
        ..Default::default()
    };
    watching.request(Peer::ack(AckType::Standard, &dispatch, &dispatch, None)).await;

    owner.request(change(&second, DestinationOperation::Remove)).await;
    let (destination, operation, _) = advisory(&mut watching, &consumer).await;
    assert_eq!((destination, operation), (second, DestinationOperation::Remove));
    drop(owner);
    let (destination, operation, _) = advisory(&mut watching, &consumer).await;
    assert_eq!((destination, operation), (first, DestinationOperation::Remove));
}

#[tokio::test]
async fn each_consumer_is_told_of_what_it_asked_for_and_none_once_it_is_closed() {
    let server = Server::start().await;
    let mut peer = server.client().await;
    let there = temporary(&peer, DestinationKind::TemporaryQueue, 1);
    peer.request(change(&there, DestinationOperation::Add)).await;
    let queues = peer.consumer((-1, 1), &topic("ActiveMQ.Advisory.TempQueue"), 1_000).await;
    assert_eq!(advisory(&mut peer, &queues).await.0, there);
    let topics = peer.consumer((-1, 2), &topic("ActiveMQ.Advisory.TempTopic"), 1_000).await;
    assert!(peer.is_silent().await, "there is no topic");
    // A second one is told of what is there as well.
    let again = peer.consumer((-1, 3), &topic(BOTH), 1_000).await;
    assert_eq!(advisory(&mut peer, &again).await.0, there);
    peer.request(Peer::removal(again, -1)).await;
    let added = temporary(&peer, DestinationKind::TemporaryTopic, 2);
    peer.request(change(&added, DestinationOperation::Add)).await;
    assert_eq!(advisory(&mut peer, &topics).await.0, added);
    assert!(peer.is_silent().await);
}

#[tokio::test]
async fn another_advisory_topic_can_be_consumed_from_and_nothing_comes() {
    let server = Server::start().await;
    let mut peer = server.client().await;
    let consumer = peer.consumer((-1, 1), &topic("ActiveMQ.Advisory.Connection"), 1_000).await;
    let mut other = server.client().await;
    let added = temporary(&other, DestinationKind::TemporaryQueue, 1);
    other.request(change(&added, DestinationOperation::Add)).await;
    assert!(peer.is_silent().await);
    peer.request(Peer::removal(consumer, -1)).await;
    assert!(server.broker.destinations().iter().all(|destination| !destination.name().contains("Advisory")));
}

#[tokio::test]
async fn a_consumer_of_advisories_that_is_removed_twice_is_unknown() {
    let server = Server::start().await;
    let mut peer = server.client().await;
    let consumer = peer.consumer((-1, 1), &topic(BOTH), 1_000).await;
    peer.request(Peer::removal(consumer.clone(), -1)).await;
    assert_eq!(peer.refused(Peer::removal(consumer, -1)).await.0, "javax.jms.IllegalStateException");
}
