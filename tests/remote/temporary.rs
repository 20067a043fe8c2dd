//! Temporary destinations: who may do what with them, and who is told.

use std::sync::Arc;

use corriere_core::id::ProducerId;
use corriere_core::provider::{Capability, Command, Confirmation, Event, ProviderError, SendMessage};
use corriere_core::{Destination, DestinationKind, Message, MessageId};

use crate::peer::{Peer, send_text, within};
use crate::seam::{Client, SESSION, assert_not_offered};

over_each_peer! {
    a_reply_comes_to_the_temporary_queue_that_the_request_names,
    only_its_connection_consumes_from_a_temporary_queue,
    a_temporary_queue_with_a_consumer_is_not_deleted_and_a_deleted_one_takes_nothing,
    who_watches_is_told_of_what_is_there_and_of_what_comes_and_goes,
    a_temporary_topic_reaches_its_consumers,
    many_requests_are_answered_over_one_queue_of_replies,
}

/// A temporary destination of this client, unless the peer has none.
async fn temporary(client: &Client, kind: DestinationKind) -> Option<Destination> {
    let destination = Destination::temporary(kind, &format!("{}:1", client.id)).unwrap();
    let created = client.ask(Command::CreateTemporary { destination }).await;
    if !client.offers(Capability::TemporaryDestinations) {
        assert_not_offered(created);
        return None;
    }
    match created.unwrap() {
        Confirmation::Created(destination) => Some(destination),
        other => panic!("{other:?}"),
    }
}

async fn a_reply_comes_to_the_temporary_queue_that_the_request_names(peer: &Peer) {
    let q = peer.queue("q");
    let client = Client::connect(peer).await;
    let Some(replies) = temporary(&client, DestinationKind::TemporaryQueue).await else { return };
    client.consume(1, &replies).await.unwrap();
    let session = peer.session(corriere_core::AcknowledgeMode::Auto).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    let mut request = Message::text("what is it?");
    request.headers_mut().reply_to = Some(replies);
    within(session.send(&q, &request, &corriere_core::SendOptions::default())).await.unwrap();
    let request = crate::peer::next(&consumer).await;
    let reply_to = request.headers().reply_to.clone().unwrap();
    send_text(&session, &reply_to, "a crab").await;
    assert_eq!(client.texts(1).await, ["a crab"]);
}

async fn only_its_connection_consumes_from_a_temporary_queue(peer: &Peer) {
    let (owner, other) = (Client::connect(peer).await, Client::connect(peer).await);
    let Some(queue) = temporary(&owner, DestinationKind::TemporaryQueue).await else { return };
    let error = other.consume(1, &queue).await.unwrap_err();
    assert!(matches!(error, ProviderError::InvalidDestination { .. }), "{error}");
    owner.consume(1, &queue).await.unwrap();
}

async fn send(client: &Client, destination: &Destination) -> Result<Confirmation, ProviderError> {
    let producer = ProducerId(7);
    let identity: Arc<str> = format!("{}:{SESSION}:{producer}", client.id).into();
    let open = Command::OpenProducer {
        producer,
        session: SESSION,
        identity: Arc::clone(&identity),
        destination: None,
    };
    client.ask(open).await.unwrap();
    let mut message = Message::text("m");
    message.headers_mut().destination = Some(destination.clone());
    message.headers_mut().message_id = Some(MessageId { producer: identity, sequence: 1 });
    let send = SendMessage { producer, message: Arc::new(message), transaction: None, deadline: None };
    client.ask(Command::Send(send)).await
}

async fn a_temporary_queue_with_a_consumer_is_not_deleted_and_a_deleted_one_takes_nothing(peer: &Peer) {
    let client = Client::connect(peer).await;
    let Some(queue) = temporary(&client, DestinationKind::TemporaryQueue).await else { return };
    client.consume(1, &queue).await.unwrap();
    let delete = || Command::DeleteTemporary { destination: queue.clone() };
    let error = client.ask(delete()).await.unwrap_err();
    assert!(matches!(error, ProviderError::InvalidDestination { .. }), "{error}");
    let subscription = corriere_core::id::SubscriptionId(1);
    client.ask(Command::CloseSubscription { subscription, last_handed_over: 0 }).await.unwrap();
    client.ask(delete()).await.unwrap();
    let error = send(&client, &queue).await.unwrap_err();
    assert!(matches!(error, ProviderError::InvalidDestination { .. }), "{error}");
}

async fn who_watches_is_told_of_what_is_there_and_of_what_comes_and_goes(peer: &Peer) {
    let (owner, watcher) = (Client::connect(peer).await, Client::connect(peer).await);
    let Some(queue) = temporary(&owner, DestinationKind::TemporaryQueue).await else { return };
    watcher.ask(Command::WatchEvents).await.unwrap();
    let told = |of: &Destination, is_there: bool| {
        let of = of.clone();
        move |event: &Event| matches!(event, Event::DestinationChanged { destination, exists } if *destination == of && *exists == is_there)
    };
    let events = watcher.came.events.lock().unwrap().clone();
    assert!(events.iter().any(told(&queue, true)), "it was there before: {events:?}");
    let topic = Destination::temporary(DestinationKind::TemporaryTopic, &format!("{}:2", owner.id)).unwrap();
    owner.ask(Command::CreateTemporary { destination: topic.clone() }).await.unwrap();
    watcher.event("word of the topic", told(&topic, true)).await;
    owner.ask(Command::DeleteTemporary { destination: queue.clone() }).await.unwrap();
    watcher.event("word that the queue is gone", told(&queue, false)).await;
    // With its connection the topic goes.
    owner.ask(Command::Close).await.unwrap();
    watcher.event("word that the topic is gone", told(&topic, false)).await;
}

async fn a_temporary_topic_reaches_its_consumers(peer: &Peer) {
    let client = Client::connect(peer).await;
    let Some(topic) = temporary(&client, DestinationKind::TemporaryTopic).await else { return };
    client.consume(1, &topic).await.unwrap();
    client.consume(2, &topic).await.unwrap();
    let session = peer.session(corriere_core::AcknowledgeMode::Auto).await;
    send_text(&session, &topic, "m1").await;
    assert_eq!(client.texts(2).await, ["m1", "m1"]);
}

async fn many_requests_are_answered_over_one_queue_of_replies(peer: &Peer) {
    let q = peer.queue("q");
    let asking = peer.session(corriere_core::AcknowledgeMode::Auto).await;
    let replies = within(asking.create_temporary_queue()).await.unwrap();
    let answers = within(asking.create_consumer(&replies)).await.unwrap();
    let answering = peer.session(corriere_core::AcknowledgeMode::Transacted).await;
    let requests = within(answering.create_consumer(&q)).await.unwrap();
    let options = corriere_core::SendOptions::default();
    let ask = async {
        for number in 1..=30 {
            let mut request = Message::text(format!("m{number}"));
            request.headers_mut().reply_to = Some(replies.destination().clone());
            within(asking.send(&q, &request, &options)).await.unwrap();
            let answer = crate::peer::next(&answers).await;
            assert_eq!(crate::peer::text(&answer), format!("re: m{number}"));
        }
    };
    let answer = async {
        for _ in 1..=30 {
            let request = crate::peer::next(&requests).await;
            let reply = Message::text(format!("re: {}", crate::peer::text(&request)));
            let reply_to = request.headers().reply_to.clone().unwrap();
            within(answering.send(&reply_to, &reply, &options)).await.unwrap();
            within(answering.commit()).await.unwrap();
        }
    };
    tokio::join!(ask, answer);
    within(answers.close()).await.unwrap();
    within(replies.delete()).await.unwrap();
}
