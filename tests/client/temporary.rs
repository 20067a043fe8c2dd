//! Temporary destinations, and requests that are answered to them (C-35).

use std::future::{Future, poll_fn};
use std::task::Poll;

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::provider::ProviderError;
use corriere_core::{Destination, Error, Message, SendOptions, Session};

use crate::support::{TestBroker, next, now, queue, send_text, text, within};

#[track_caller]
fn assert_invalid(error: &Error, destination: &Destination, says: &str) {
    let Error::Provider(ProviderError::InvalidDestination { destination: named, reason }) = error else {
        panic!("{error:?}");
    };
    assert_eq!(*named, destination.to_string());
    assert!(reason.contains(says), "{reason}");
}

/// Sends a request whose answer goes to `replies`.
async fn request(session: &Session, to: &Destination, replies: &Destination, text: &str) {
    let mut request = Message::text(text);
    request.headers_mut().reply_to = Some(replies.clone());
    session.send(to, &request, &SendOptions::default()).await.unwrap();
}

#[tokio::test]
async fn fifty_requesters_get_their_own_answers_and_leave_nothing_behind() {
    let broker = TestBroker::start();
    let requests = queue("requests");
    let responder = broker.session(Transacted).await;
    let consumer = responder.create_consumer(&requests).await.unwrap();
    let answering = tokio::spawn(async move {
        for _ in 0..50 * 4 {
            let request = next(&consumer).await;
            let reply_to = request.headers().reply_to.clone().unwrap();
            send_text(&responder, &reply_to, &format!("{} answered", text(&request))).await;
            responder.commit().await.unwrap();
        }
    });
    let requesters = (0..50).map(|number| {
        let connection = broker.connect();
        let requests = requests.clone();
        async move {
            let session = connection.await.create_session(Auto).await.unwrap();
            for call in 0..4 {
                let replies = session.create_temporary_queue().await.unwrap();
                let consumer = session.create_consumer(&replies).await.unwrap();
                request(&session, &requests, &replies, &format!("{number}.{call}")).await;
                let reply = next(&consumer).await;
                assert_eq!(text(&reply), format!("{number}.{call} answered"));
                consumer.close().await.unwrap();
                if call % 2 == 0 {
                    replies.delete().await.unwrap();
                }
            }
        }
    });
    // All at once, each going on when its answer comes.
    let mut running: Vec<_> = requesters.map(Box::pin).collect();
    let all = poll_fn(|cx| {
        running.retain_mut(|requester| requester.as_mut().poll(cx).is_pending());
        if running.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    });
    within(all).await;
    within(answering).await.unwrap();
    assert_eq!(broker.broker.destinations(), [requests]);
    assert_eq!(broker.broker.memory_used(), 0);
}

#[tokio::test]
async fn a_late_reply_is_refused_at_once_and_the_request_is_still_settled() {
    let broker = TestBroker::start();
    let (requests, audit) = (queue("requests"), queue("audit"));
    let requester = broker.session(Auto).await;
    let replies = requester.create_temporary_queue().await.unwrap();
    request(&requester, &requests, &replies, "m1").await;
    replies.delete().await.unwrap();
    let responder = broker.session(Transacted).await;
    let consumer = responder.create_consumer(&requests).await.unwrap();
    let received = next(&consumer).await;
    send_text(&responder, &audit, "audited").await;
    let reply_to = received.headers().reply_to.clone().unwrap();
    let error = responder.send(&reply_to, &Message::text("late"), &SendOptions::default()).await.unwrap_err();
    assert_invalid(&error, &replies, "does not exist");
    responder.commit().await.unwrap();
    assert_eq!(broker.counts(&requests).acknowledged, 1);
    assert_eq!(broker.counts(&audit).pending, 1);
    assert_eq!(broker.broker.destinations(), [audit, requests], "no queue of that name is made");
}

#[tokio::test]
async fn a_reply_to_a_requester_that_died_before_the_commit_is_dropped_by_it() {
    let broker = TestBroker::start();
    let requests = queue("requests");
    let requester = broker.session(Auto).await;
    let replies = requester.create_temporary_queue().await.unwrap();
    request(&requester, &requests, &replies, "m1").await;
    let responder = broker.session(Transacted).await;
    let consumer = responder.create_consumer(&requests).await.unwrap();
    let producer = responder.create_producer(Some(&replies)).await.unwrap();
    next(&consumer).await;
    producer.send(&Message::text("reply")).await.unwrap();
    requester.connection().close().await.unwrap();
    responder.commit().await.unwrap();
    assert_eq!(broker.counts(&requests).acknowledged, 1);
    assert_invalid(&producer.send(&Message::text("next")).await.unwrap_err(), &replies, "does not exist");
    responder.commit().await.unwrap();
    assert_eq!(broker.broker.destinations(), [requests]);
    assert_eq!(broker.broker.memory_used(), 0);
}

#[tokio::test]
async fn a_third_connection_sends_to_it_and_cannot_consume_from_it() {
    let broker = TestBroker::start();
    let owner = broker.session(Auto).await;
    let other = broker.session(Auto).await;
    let replies = owner.create_temporary_queue().await.unwrap();
    let owned_by = format!("belongs to connection {}", owner.connection().id());
    assert_invalid(&other.create_consumer(&replies).await.unwrap_err(), &replies, &owned_by);
    assert_invalid(&other.create_browser(&replies).await.unwrap_err(), &replies, &owned_by);
    send_text(&other, &replies, "m1").await;
    // Every session of the owner's connection may.
    let beside = owner.connection().create_session(Client).await.unwrap();
    let consumer = beside.create_consumer(&replies).await.unwrap();
    assert_eq!(now(&consumer).await.as_deref(), Some("m1"));
}

#[tokio::test]
async fn it_is_not_deleted_under_an_open_consumer_and_only_once() {
    let broker = TestBroker::start();
    let session = broker.session(Auto).await;
    let replies = session.create_temporary_queue().await.unwrap();
    let consumer = session.create_consumer(&replies).await.unwrap();
    assert_invalid(&replies.delete().await.unwrap_err(), &replies, "still has consumers (1)");
    send_text(&session, &replies, "m1").await;
    assert_eq!(now(&consumer).await.as_deref(), Some("m1"));
    drop(consumer);
    replies.delete().await.unwrap();
    assert_invalid(&replies.delete().await.unwrap_err(), &replies, "does not exist");
    assert_invalid(&session.create_consumer(&replies).await.unwrap_err(), &replies, "does not exist");
}

#[tokio::test]
async fn dropping_the_handle_deletes_nothing_and_the_end_of_the_connection_does() {
    let broker = TestBroker::start();
    let session = broker.session(Auto).await;
    let replies = session.create_temporary_queue().await.unwrap();
    let name = replies.destination().clone();
    drop(replies);
    send_text(&session, &name, "m1").await;
    let consumer = session.create_consumer(&name).await.unwrap();
    assert_eq!(now(&consumer).await.as_deref(), Some("m1"));
    let connection = session.connection();
    let kept = session.create_temporary_topic().await.unwrap();
    connection.close().await.unwrap();
    assert!(broker.broker.destinations().is_empty());
    assert!(matches!(kept.delete().await, Err(Error::IllegalState { .. })));
    assert!(matches!(session.create_temporary_queue().await, Err(Error::IllegalState { .. })));
    assert!(matches!(consumer.receive_no_wait().await, Err(Error::IllegalState { .. })));
}

#[tokio::test]
async fn a_temporary_topic_reaches_all_consumers_of_its_connection() {
    let broker = TestBroker::start();
    let (session, other) = (broker.session(Auto).await, broker.session(Auto).await);
    let news = session.create_temporary_topic().await.unwrap();
    let consumers =
        [session.create_consumer(&news).await.unwrap(), session.create_consumer(&news).await.unwrap()];
    assert!(other.create_consumer(&news).await.is_err());
    send_text(&other, &news, "m1").await;
    for consumer in &consumers {
        assert_eq!(now(consumer).await.as_deref(), Some("m1"));
    }
}

#[tokio::test]
async fn the_requests_of_others_go_on_when_one_requester_closes() {
    let broker = TestBroker::start();
    let requests = queue("requests");
    let mut waiting = Vec::new();
    for number in 0..50 {
        let session = broker.session(Auto).await;
        let replies = session.create_temporary_queue().await.unwrap();
        let consumer = session.create_consumer(&replies).await.unwrap();
        request(&session, &requests, &replies, &format!("m{number}")).await;
        waiting.push((session, consumer));
    }
    let (gone, consumer) = waiting.swap_remove(7);
    drop(consumer);
    gone.connection().close().await.unwrap();
    let responder = broker.session(Auto).await;
    let consumer = responder.create_consumer_with_prefetch(&requests, 100).await.unwrap();
    let mut refused = 0;
    for _ in 0..50 {
        let received = next(&consumer).await;
        let reply = Message::text(text(&received));
        let reply_to = received.headers().reply_to.clone().unwrap();
        let sent = responder.send(&reply_to, &reply, &SendOptions::default()).await;
        refused += usize::from(sent.is_err());
    }
    assert_eq!(refused, 1);
    for (_, consumer) in &waiting {
        assert!(now(consumer).await.is_some());
    }
}
