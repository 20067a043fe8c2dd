//! The client against peers that misbehave, and what it writes to one that does not.

use std::time::Duration;

use corriere_core::id::{SessionId, SubscriptionId};
use corriere_core::provider::{Ack, AckKind, Command, Credit, ProviderError, Subscribe};
use corriere_core::{Destination, Message as CoreMessage, MessageId as CoreMessageId};
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep};

use super::scripted::{Client, Door, Scripted};
use crate::codec::Structure;
use crate::codec::negotiation::Preferences;
use crate::codec::structures::{
    AckType, ConnectionError, ExceptionResponse, JavaException, KeepAliveInfo, Message, MessageDispatch,
    MessageKind, Throwable, WireFormatInfo,
};

const SUBSCRIPTION: SubscriptionId = SubscriptionId(2);

async fn refusal(door: &Door) -> String {
    match door.connect().await {
        Err(ProviderError::Unreachable { reason, .. }) => reason,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was taken in"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_says_nothing_is_given_up_by_name_at_each_step() {
    let door = Door::open().await;
    let silent = async {
        let stream = door.accept().await;
        sleep(Duration::from_secs(60)).await;
        drop(stream);
    };
    let (reason, ()) = tokio::join!(refusal(&door), silent);
    assert!(reason.contains("did not send its wire format") && reason.contains("10s"), "{reason}");

    let speechless = async {
        let peer = door.greet(&Preferences::default()).await;
        sleep(Duration::from_secs(60)).await;
        drop(peer);
    };
    let (reason, ()) = tokio::join!(refusal(&door), speechless);
    assert_eq!(reason, "waited 10s for the broker to accept the connection");
}

#[tokio::test]
async fn a_peer_that_is_too_old_is_named() {
    let door = Door::open().await;
    let old = async {
        let mut stream = door.accept().await;
        let info = WireFormatInfo { version: 5, ..Preferences::default().info().unwrap() };
        let mut bytes = Vec::new();
        crate::codec::WireFormat::default().encode(&info.into(), &mut bytes).unwrap();
        stream.write_all(&bytes).await.unwrap();
        stream
    };
    let (reason, _stream) = tokio::join!(refusal(&door), old);
    assert!(reason.contains("version 5"), "{reason}");
}

#[tokio::test]
async fn a_refusal_is_told_with_its_class_and_words() {
    let door = Door::open().await;
    let refusing = async {
        let mut peer = door.greet(&Preferences::default()).await;
        let info = peer.next().await;
        let exception = Some(Throwable::new(JavaException::Security, "wrong password"));
        let correlation_id = info.command_id().unwrap();
        peer.say(ExceptionResponse { correlation_id, exception, ..Default::default() }).await;
        peer
    };
    let (refused, _peer) = tokio::join!(door.connect(), refusing);
    let refused = refused.err().unwrap();
    assert_eq!(refused.to_string(), "the broker refuses it: wrong password (java.lang.SecurityException)");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_falls_silent_ends_the_connection_and_one_that_speaks_does_not() {
    let door = Door::open().await;
    let limit = Some(Duration::from_secs(3));
    let preferences = Preferences { maximum_inactivity: limit, ..Preferences::default() };
    let (client, mut peer) = door.take_in(&preferences).await;
    for _ in 0..5 {
        sleep(Duration::from_secs(2)).await;
        peer.say(KeepAliveInfo { response_required: true, ..KeepAliveInfo::default() }).await;
        assert_eq!(peer.next_alive().await, KeepAliveInfo::default());
    }
    assert_eq!(client.lost(), None);
    let waiting = client.connection.submit(Command::OpenSession {
        session: SessionId(1),
        mode: corriere_core::provider::SessionMode::Auto,
    });
    assert_eq!(waiting.await, Err(ProviderError::Lost));
    assert_eq!(client.lost(), Some(ProviderError::Lost));
    let later = client.connection.submit(Command::WatchEvents).await;
    assert_eq!(later, Err(ProviderError::Lost));
}

#[tokio::test]
async fn a_broker_that_stops_says_so_to_whoever_waits() {
    let door = Door::open().await;
    let (client, mut peer) = door.take_in(&Preferences::default()).await;
    let waiting = client.connection.submit(Command::WatchEvents);
    peer.next().await;
    let class = "org.apache.activemq.broker.BrokerStoppedException".into();
    let exception =
        Some(Throwable { class, message: Some("it is being stopped".into()), ..Throwable::default() });
    peer.say(ConnectionError { exception, ..ConnectionError::default() }).await;
    let error = waiting.await.unwrap_err();
    assert!(
        matches!(&error, ProviderError::Stopped { reason, .. } if reason == "it is being stopped"),
        "{error}"
    );
    assert!(client.lost().unwrap().ends_connection());
}

#[tokio::test]
async fn a_dropped_connection_closes_its_socket_without_a_word_and_a_closed_one_takes_leave() {
    let door = Door::open().await;
    let (client, mut peer) = door.take_in(&Preferences::default()).await;
    drop(client);
    assert!(peer.try_next().await.is_err());

    let (client, mut peer) = door.take_in(&Preferences::default()).await;
    let closed = client.connection.submit(Command::Close);
    drop(client);
    let info = peer.next().await;
    assert_eq!(info.name(), "RemoveInfo");
    assert_eq!(peer.next().await.name(), "ShutdownInfo");
    peer.done(&info).await;
    closed.await.unwrap();
    assert!(peer.try_next().await.is_err());
}

async fn consume(client: &Client, peer: &mut Scripted, credit: Credit) {
    let subscribe = Subscribe {
        subscription: SUBSCRIPTION,
        session: SessionId(1),
        destination: Destination::queue("q").unwrap(),
        credit,
        selector: None,
        no_local: false,
        is_default_credit: false,
        durable_name: None,
        redelivery: None,
    };
    let opened = client.connection.submit(Command::OpenSubscription(Box::new(subscribe)));
    let info = peer.next().await;
    peer.done(&info).await;
    opened.await.unwrap();
}

fn dispatch(sequence: u64) -> MessageDispatch {
    let mut message = CoreMessage::text("m");
    message.headers_mut().destination = Some(Destination::queue("q").unwrap());
    message.headers_mut().message_id = Some(CoreMessageId { producer: "ID:p:1:1".into(), sequence });
    let message = Message::from_core(&message).unwrap();
    MessageDispatch {
        consumer_id: crate::codec::structures::ConsumerId {
            connection_id: "ID:test-1".into(),
            session_id: 1,
            value: 2,
        },
        destination: message.destination.clone(),
        message: Some(Box::new(message)),
        ..MessageDispatch::default()
    }
}

#[tokio::test]
async fn a_message_that_cannot_be_read_goes_to_the_dead_letters_and_holds_up_nothing() {
    let door = Door::open().await;
    let (client, mut peer) = door.take_in(&Preferences::default()).await;
    client.open_session(&mut peer).await;
    consume(&client, &mut peer, Credit::Window { prefetch: 10, extension: None }).await;
    let mut unreadable = dispatch(1);
    unreadable.message.as_mut().unwrap().kind = MessageKind::Blob;
    peer.say(unreadable).await;
    peer.say(dispatch(2)).await;
    let Structure::MessageAck(ack) = peer.next().await else { panic!("no acknowledgement") };
    assert_eq!((ack.ack_type, ack.message_count), (AckType::Poison, 1));
    let cause = ack.poison_cause.unwrap().message.unwrap();
    assert!(cause.contains("at another place"), "{cause}");
    let settled = client.connection.submit(Command::Drain { subscription: SUBSCRIPTION });
    let flush = peer.next().await;
    peer.done(&flush).await;
    settled.await.unwrap();
    let numbers: Vec<u64> = client.came.deliveries.lock().unwrap().iter().map(|one| one.number).collect();
    assert_eq!(numbers, [1]);
}

#[tokio::test]
async fn of_what_cannot_be_delivered_a_peer_of_our_own_is_told_that_nothing_was_handed_over() {
    let door = Door::open().await;
    let mut preferences = Preferences::default();
    crate::redelivery::announce(&mut preferences.others);
    let (client, mut peer) = door.take_in(&preferences).await;
    client.open_session(&mut peer).await;
    consume(&client, &mut peer, Credit::Explicit).await;
    peer.say(dispatch(1)).await;
    let mut unreadable = dispatch(2);
    unreadable.message.as_mut().unwrap().kind = MessageKind::Blob;
    peer.say(unreadable).await;
    let condemned = |ack: Structure| match ack {
        Structure::MessageAck(ack) => {
            assert_eq!((ack.ack_type, ack.message_count), (AckType::Poison, 1));
            let sequence = ack.first_message_id.unwrap().producer_sequence_id;
            (sequence, crate::redelivery::condemnation(ack.poison_cause.as_ref()))
        }
        other => panic!("no acknowledgement: {other:?}"),
    };
    let (sequence, kind) = condemned(peer.next().await);
    assert!(sequence == 2 && matches!(kind, AckKind::Undeliverable { .. }), "{sequence}: {kind:?}");
    // And what who uses the client cannot give on.
    let kind = AckKind::Undeliverable { reason: "too large".into() };
    let ack = Ack { subscription: SUBSCRIPTION, first: 1, last: 1, kind: kind.clone(), transaction: None };
    client.connection.tell(Command::Acknowledge(ack));
    assert_eq!(condemned(peer.next().await), (1, kind));
}

#[tokio::test]
async fn what_a_browser_was_shown_by_a_peer_of_our_own_is_kept_nowhere() {
    let door = Door::open().await;
    let mut preferences = Preferences::default();
    crate::redelivery::announce(&mut preferences.others);
    let (client, mut peer) = door.take_in(&preferences).await;
    client.open_session(&mut peer).await;
    let opened = client.connection.submit(Command::Browse {
        subscription: SUBSCRIPTION,
        session: SessionId(1),
        destination: Destination::queue("q").unwrap(),
        selector: None,
    });
    peer.say(dispatch(1)).await;
    let info = peer.next().await;
    peer.done(&info).await;
    opened.await.unwrap();
    assert_eq!(client.came.deliveries.lock().unwrap().len(), 1);
    let shown = std::sync::Arc::downgrade(&client.came.deliveries.lock().unwrap()[0].message);
    client.came.deliveries.lock().unwrap().clear();
    assert_eq!(shown.strong_count(), 0);
    let closing = Command::CloseSubscription { subscription: SUBSCRIPTION, last_handed_over: 1 };
    let closed = client.connection.submit(closing);
    let info = peer.next().await;
    assert_eq!(info.name(), "RemoveInfo", "there is nothing that it should have acknowledged");
    peer.done(&info).await;
    closed.await.unwrap();
}

#[tokio::test]
async fn what_nobody_asked_for_is_passed_over() {
    let door = Door::open().await;
    let (client, mut peer) = door.take_in(&Preferences::default()).await;
    peer.say(dispatch(1)).await;
    peer.say(crate::codec::structures::Response { correlation_id: 77, ..Default::default() }).await;
    peer.say(crate::codec::structures::ShutdownInfo::default()).await;
    client.open_session(&mut peer).await;
    assert!(client.came.deliveries.lock().unwrap().is_empty());
    assert_eq!(client.lost(), None);
}

#[tokio::test(start_paused = true)]
async fn waking_up_for_a_redelivery_does_not_make_silence_shorter() {
    let door = Door::open().await;
    let limit = Some(Duration::from_secs(5));
    let preferences = Preferences { maximum_inactivity: limit, ..Preferences::default() };
    let (client, mut peer) = door.take_in(&preferences).await;
    client.open_session(&mut peer).await;
    consume(&client, &mut peer, Credit::Window { prefetch: 10, extension: None }).await;
    peer.say(dispatch(1)).await;
    let begun = Instant::now();
    let mut failed = 0;
    // Each second it is given back again, until the peer was silent for too long.
    while client.lost().is_none() {
        let last = client.came.deliveries.lock().unwrap().last().map(|one| one.number);
        if let Some(number) = last.filter(|number| *number > failed) {
            failed = number;
            let cause = corriere_core::provider::Cause::failure("no");
            let kind = AckKind::Redelivered { delay: None, cause };
            client.connection.tell(Command::Acknowledge(Ack {
                subscription: SUBSCRIPTION,
                first: number,
                last: number,
                kind,
                transaction: None,
            }));
        }
        sleep(Duration::from_millis(100)).await;
        assert!(begun.elapsed() < Duration::from_secs(60), "the silence is not seen");
    }
    assert!(failed > 2, "it came again meanwhile");
}

#[tokio::test]
async fn who_sends_stops_when_the_peer_agrees_to_nothing() {
    let door = Door::open().await;
    let (client, mut peer) = door.take_in(&Preferences::default()).await;
    client.open_session(&mut peer).await;
    let producer = corriere_core::ProducerId(3);
    let identity: std::sync::Arc<str> = "ID:test-1:1:3".into();
    let open = Command::OpenProducer {
        producer,
        session: SessionId(1),
        identity: std::sync::Arc::clone(&identity),
        destination: None,
    };
    let opened = client.connection.submit(open);
    let info = peer.next().await;
    peer.done(&info).await;
    opened.await.unwrap();
    for (confirmed, sequence) in (1..=1_000).enumerate() {
        let mut message = CoreMessage::bytes(vec![0; 1_000]);
        message.headers_mut().destination = Some(Destination::queue("q").unwrap());
        message.headers_mut().message_id = Some(CoreMessageId { producer: identity.clone(), sequence });
        message.headers_mut().delivery_mode = corriere_core::DeliveryMode::NonPersistent;
        let send = corriere_core::provider::SendMessage {
            producer,
            message: message.into(),
            transaction: None,
            deadline: None,
        };
        let sent = client.connection.submit(Command::Send(send));
        let Structure::Message(on_the_wire) = peer.next().await else { panic!("no message") };
        if on_the_wire.response_required {
            peer.done(&Structure::Message(on_the_wire)).await;
            sent.await.unwrap();
            assert!((40..=64).contains(&confirmed), "{confirmed} were confirmed before");
            return;
        }
        sent.await.unwrap();
    }
    panic!("no answer was asked for");
}

#[tokio::test]
async fn a_send_that_waits_to_be_written_is_told_that_the_connection_is_lost() {
    let door = Door::open().await;
    let (client, mut peer) = door.take_in(&Preferences::default()).await;
    client.open_session(&mut peer).await;
    let producer = corriere_core::ProducerId(3);
    let opened = client.connection.submit(Command::OpenProducer {
        producer,
        session: SessionId(1),
        identity: "p".into(),
        destination: None,
    });
    let info = peer.next().await;
    peer.done(&info).await;
    opened.await.unwrap();
    let send = |sequence, bytes: usize| {
        let mut message = CoreMessage::bytes(vec![0; bytes]);
        let headers = message.headers_mut();
        headers.destination = Some(Destination::queue("q").unwrap());
        headers.message_id = Some(CoreMessageId { producer: "p".into(), sequence });
        headers.delivery_mode = corriere_core::DeliveryMode::NonPersistent;
        let send = corriere_core::provider::SendMessage {
            producer,
            message: message.into(),
            transaction: None,
            deadline: None,
        };
        client.connection.submit(Command::Send(send))
    };
    // More than sockets take from a peer that reads no more than its beginning, so what comes behind it is not written.
    let blocking = send(1, 32 << 20);
    peer.sees_a_large_frame_begin().await;
    let waiting = send(2, 1);
    drop(peer);
    let told = tokio::time::timeout(Duration::from_secs(120), async { (blocking.await, waiting.await) });
    let (blocking, waiting) = told.await.expect("both are told");
    assert_eq!((blocking.unwrap_err(), waiting.unwrap_err()), (ProviderError::Lost, ProviderError::Lost));
    assert!(client.lost().is_some());
}

#[tokio::test]
async fn a_consumer_that_a_peer_of_our_own_refuses_is_refused_and_not_waited_for() {
    let door = Door::open().await;
    let mut preferences = Preferences::default();
    crate::redelivery::announce(&mut preferences.others);
    let (client, mut peer) = door.take_in(&preferences).await;
    client.open_session(&mut peer).await;
    let subscribe = Subscribe {
        subscription: SUBSCRIPTION,
        session: SessionId(1),
        destination: Destination::queue("q").unwrap(),
        credit: Credit::Window { prefetch: 1, extension: Some(0) },
        selector: None,
        no_local: false,
        is_default_credit: false,
        durable_name: None,
        redelivery: None,
    };
    let opened = client.connection.submit(Command::OpenSubscription(Box::new(subscribe)));
    let Structure::ConsumerInfo(info) = peer.next().await else { panic!("no consumer") };
    let terms = crate::redelivery::ConsumerTerms::from_structure(info.additional_predicate.as_ref()).unwrap();
    assert_eq!(terms.extension, Some(0));
    assert_eq!(peer.next().await.name(), "MessagePull");
    let exception = Some(Throwable::new(JavaException::InvalidDestination, "no such queue"));
    let correlation_id = info.command_id;
    peer.say(ExceptionResponse { correlation_id, exception, ..Default::default() }).await;
    let error = opened.await.unwrap_err();
    assert!(matches!(error, ProviderError::InvalidDestination { .. }), "{error}");
    let drained = client.connection.submit(Command::Drain { subscription: SUBSCRIPTION }).await;
    assert!(matches!(drained, Err(ProviderError::Unknown { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_close_does_not_wait_for_a_peer_that_says_nothing_and_confirms_nothing_else() {
    let door = Door::open().await;
    let preferences = Preferences { maximum_inactivity: None, ..Preferences::default() };
    let (client, peer) = door.take_in(&preferences).await;
    let watching = client.connection.submit(Command::WatchEvents);
    let closed = client.connection.submit(Command::Close);
    closed.await.unwrap();
    assert_eq!(watching.await, Err(ProviderError::Lost));
    drop(peer);
}
