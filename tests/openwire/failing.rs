//! What is refused, and how that is said to one who does not wait for an answer.

use std::time::Duration;

use corriere_core::{DestinationKind, Message};
use corriere_openwire::negotiation::Preferences;
use corriere_openwire::structures::{
    self as wire, BrokerInfo, ConnectionControl, ConsumerControl, ConsumerInfo, ControlCommand,
    DestinationInfo, DestinationOperation, FlushCommand, JournalTrace, MessageKind, ProducerAck,
    ProducerInfo, Response,
};

use crate::log::{log, logged_of};
use crate::peer::{Peer, queue, topic};
use crate::server::Server;

#[tokio::test]
async fn what_fails_without_an_answer_is_an_error_and_the_connection_goes_on() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = server.client().await;
    peer.send_first(&orders, &[]).await;

    let message = peer.text(&queue("a,b"), "x", true);
    peer.tell(message).await;
    let (class, text) = peer.error().await;
    assert_eq!(class, "javax.jms.InvalidDestinationException");
    assert!(text.contains("several destinations in one are not offered yet"), "{text}");

    let mut damaged = peer.text(&orders, "x", true);
    damaged.content = Some(bytes::Bytes::from_static(&[0, 0, 0, 9]));
    peer.tell(damaged).await;
    assert_eq!(peer.error().await.0, "javax.jms.MessageFormatException");

    let blob = wire::Message { kind: MessageKind::Blob, ..peer.text(&orders, "x", true) };
    peer.tell(blob).await;
    assert_eq!(peer.error().await.0, "javax.jms.MessageFormatException");

    let nameless = wire::Message { message_id: None, ..peer.text(&orders, "x", true) };
    peer.tell(nameless).await;
    assert_eq!(peer.error().await.0, "javax.jms.InvalidDestinationException");

    peer.tell(Peer::removal(peer.session_id(9), -1)).await;
    assert_eq!(peer.error().await.0, "javax.jms.IllegalStateException");
    peer.send(&orders, &["x"]).await;
    assert_eq!(server.counts(&orders).enqueued, 1);
}

#[tokio::test]
async fn what_a_consumer_cannot_have_is_refused_by_name() {
    let server = Server::start().await;
    let mut peer = server.client().await;
    peer.session(1).await;
    let orders = queue("orders");
    let plain = peer.consumer_info((1, 1), &orders, 10);
    let cases = [
        (
            ConsumerInfo { selector: Some("a = 1".into()), ..plain.clone() },
            "javax.jms.InvalidSelectorException",
            "selectors are not offered yet; the consumer has `a = 1`",
        ),
        (
            ConsumerInfo { subscription_name: Some("s".into()), ..plain.clone() },
            "javax.jms.JMSException",
            "durable subscriptions are not offered; the consumer is for `s`",
        ),
        (
            ConsumerInfo { exclusive: true, ..plain.clone() },
            "javax.jms.JMSException",
            "exclusive consumers are not offered yet",
        ),
        (
            ConsumerInfo { destination: Some(topic("a.>")), ..plain.clone() },
            "javax.jms.InvalidDestinationException",
            "wildcards are not offered yet",
        ),
        (
            ConsumerInfo { destination: Some(queue("a,b")), ..plain.clone() },
            "javax.jms.InvalidDestinationException",
            "several destinations in one are not offered yet",
        ),
        (
            ConsumerInfo { destination: None, ..plain.clone() },
            "javax.jms.InvalidDestinationException",
            "the consumer names no destination",
        ),
        (
            peer.consumer_info((2, 1), &orders, 10),
            "javax.jms.IllegalStateException",
            "there is no session 2; expected SessionInfo before",
        ),
    ];
    for (info, expected, reason) in cases {
        let (class, message) = peer.refused(info).await;
        assert_eq!(class, expected, "{message}");
        assert!(message.ends_with(reason), "{message}");
    }
    // None of them is there.
    peer.request(ConsumerInfo { selector: Some("".into()), ..plain }).await;
    let producer = ProducerInfo {
        producer_id: peer.producer_id(1, 1),
        destination: Some(queue("a.*")),
        ..Default::default()
    };
    assert_eq!(peer.refused(producer).await.0, "javax.jms.InvalidDestinationException");
}

#[tokio::test]
async fn that_consumers_of_a_connection_are_refused_is_said_once_in_the_log() {
    log();
    let server = Server::start().await;
    let mut peer = server.peer().await;
    let address = peer.stream.local_addr().unwrap();
    let client_id = Some("billing".into());
    peer.request(wire::ConnectionInfo { client_id, ..peer.introduction() }).await;
    peer.session(1).await;
    for value in 1..=3 {
        let plain = peer.consumer_info((1, value), &queue("orders"), 10);
        peer.refused(ConsumerInfo { selector: Some("a = 1".into()), ..plain }).await;
        // What only the broker refuses, too.
        let foreign = wire::Destination::new(DestinationKind::TemporaryQueue, "ID:elsewhere:1:1");
        peer.refused(peer.consumer_info((1, value), &foreign, 10)).await;
    }
    let logged = logged_of(address);
    let [line] = logged.as_slice() else { panic!("{logged:?}") };
    let consumer = format!("consumer={}:1:1 ", peer.connection.value);
    for part in [
        "WARN",
        "client_id=\"billing\"",
        &consumer,
        "destination=queue://orders",
        "selectors are not offered yet; the consumer has `a = 1`",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[tokio::test]
async fn that_a_durable_subscription_is_refused_is_said_with_its_name() {
    log();
    let server = Server::start().await;
    let mut peer = server.client().await;
    let address = peer.stream.local_addr().unwrap();
    peer.session(1).await;
    let plain = peer.consumer_info((1, 1), &topic("prices"), 10);
    peer.refused(ConsumerInfo { subscription_name: Some("audit".into()), ..plain }).await;
    let logged = logged_of(address);
    let [line] = logged.as_slice() else { panic!("{logged:?}") };
    for part in
        ["client_id=\"none\"", "destination=topic://prices", "subscription_name=\"audit\"", "is for `audit`"]
    {
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[tokio::test]
async fn that_commands_are_refused_is_said_once_for_each_kind_in_the_log() {
    log();
    let server = Server::start().await;
    let mut peer = server.peer().await;
    let address = peer.stream.local_addr().unwrap();
    let client_id = Some("billing".into());
    peer.request(wire::ConnectionInfo { client_id, ..peer.introduction() }).await;
    let xid = wire::TransactionId::Xa(wire::XaTransactionId { format_id: 1, ..Default::default() });
    let begin = peer.transaction(1, wire::TransactionOperation::Begin);
    for _ in 0..3 {
        peer.refused(wire::TransactionInfo { transaction_id: Some(xid.clone()), ..begin.clone() }).await;
        let unsubscribe =
            wire::RemoveSubscriptionInfo { subscription_name: Some("audit".into()), ..Default::default() };
        let (_, message) = peer.refused(unsubscribe).await;
        assert_eq!(message, "there is no subscription `audit`: durable subscriptions are not offered");
    }
    let logged = logged_of(address);
    let [xa, unsubscribe] = logged.as_slice() else { panic!("{logged:?}") };
    for (line, parts) in [
        (xa, ["command=\"TransactionInfo\"", "distributed (XA) transactions are not offered yet"]),
        (unsubscribe, ["command=\"RemoveSubscriptionInfo\"", "there is no subscription `audit`"]),
    ] {
        for part in ["WARN", "client_id=\"billing\"", parts[0], parts[1]] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }
}

#[tokio::test]
async fn what_means_nothing_to_us_is_taken_and_what_is_no_command_refused() {
    let server = Server::start().await;
    let mut peer = server.client().await;
    peer.request(ControlCommand { command: Some("shutdown".into()), ..Default::default() }).await;
    peer.request(ConnectionControl { exit: true, close: true, ..Default::default() }).await;
    peer.request(ConsumerControl { close: true, ..Default::default() }).await;
    peer.request(ProducerAck::default()).await;
    peer.request(BrokerInfo::default()).await;
    peer.request(FlushCommand::default()).await;
    let create = DestinationInfo { destination: Some(queue("orders")), ..Default::default() };
    peer.request(create.clone()).await;
    let remove = DestinationInfo { operation_type: DestinationOperation::Remove, ..create };
    let (class, message) = peer.refused(remove).await;
    assert_eq!(class, "javax.jms.JMSException");
    assert!(message.starts_with("queue://orders is not removed"), "{message}");
    peer.tell(Response::default()).await;
    assert_eq!(peer.error().await.1, "Response is nothing that a broker can be asked");
    peer.tell(JournalTrace::default()).await;
    assert_eq!(peer.error().await.0, "java.io.IOException");
    peer.session(1).await;
    peer.producer(1, 1).await;
}

/// A peer whose frames may have 2,000 bytes at most.
async fn narrow(server: &Server) -> Peer {
    let preferences = Preferences { maximum_frame_size: 2_000, ..Preferences::default() };
    let (mut peer, _) = Peer::greet_with(server.acceptor.local_address(), &preferences).await;
    peer.introduce().await;
    peer.session(1).await;
    peer
}

#[tokio::test]
async fn a_message_that_cannot_be_written_for_its_consumer_becomes_a_dead_letter_and_the_next_one_comes() {
    let server = Server::start().await;
    let orders = queue("orders");
    let large = "x".repeat(5_000);
    let mut sender = server.client().await;
    sender.send_first(&orders, &["small", &large, "smaller"]).await;
    let mut peer = narrow(&server).await;
    peer.consumer((1, 1), &orders, 10).await;
    let dispatches = peer.dispatches(&["small", "smaller"]).await;
    peer.request(Peer::ack(wire::AckType::Standard, &dispatches[0], &dispatches[1], None)).await;
    // Nobody has it, and it is not lost.
    sender.consumer((1, 1), &queue("DLQ.orders"), 10).await;
    let dead = sender.dispatches(&[&large]).await.remove(0);
    let dead: Message = dead.message.unwrap().to_core(Default::default()).unwrap();
    let cause: String = dead.property("dlqDeliveryFailureCause").unwrap().unwrap();
    assert!(cause.contains("larger than the 2000 that were agreed on"), "{cause}");
}

#[tokio::test]
async fn what_cannot_be_written_counts_for_none_of_the_messages_before_it() {
    let server = Server::start().await;
    let orders = queue("orders");
    let large = "x".repeat(5_000);
    let mut sender = server.client().await;
    sender.send_first(&orders, &["one", "two", &large]).await;
    let mut peer = narrow(&server).await;
    peer.consumer((1, 1), &orders, 10).await;
    peer.dispatches(&["one", "two"]).await;
    server.until("a dead letter", |_| server.counts(&queue("DLQ.orders")).pending == 1).await;
    drop(peer);
    sender.consumer((1, 1), &orders, 10).await;
    let again = sender.dispatches(&["one", "two"]).await;
    // The oldest may have been handed over when its consumer vanished.
    assert_eq!((again[0].redelivery_counter, again[1].redelivery_counter), (1, 0));
}

#[tokio::test]
async fn a_pull_whose_message_cannot_be_written_brings_the_next_one_or_word_that_there_is_none() {
    let server = Server::start().await;
    let orders = queue("orders");
    let large = "x".repeat(5_000);
    let mut sender = server.client().await;
    sender.send_first(&orders, &[&large, "small", &large]).await;
    let mut peer = narrow(&server).await;
    let consumer_id = peer.consumer((1, 1), &orders, 0).await;
    let pull =
        |timeout| wire::MessagePull { consumer_id: consumer_id.clone(), timeout, ..Default::default() };
    peer.tell(pull(0)).await;
    let small = peer.dispatches(&["small"]).await.remove(0);
    peer.settle(&small).await;
    // Neither of them waits for ever.
    for timeout in [-1, 1] {
        peer.tell(pull(timeout)).await;
        assert_eq!(peer.dispatch().await.message, None);
    }
    assert_eq!(server.counts(&queue("DLQ.orders")).pending, 2);
}

#[tokio::test]
async fn a_header_that_the_wire_has_no_room_for_makes_a_dead_letter_too() {
    let server = Server::start().await;
    let orders = corriere_core::Destination::queue("orders").unwrap();
    let url = format!("vm://{}", server.broker.name());
    let factory = corriere_core::ConnectionFactory::from_url(&url).unwrap();
    let connection = factory.create_connection().await.unwrap();
    let session = connection.create_session(corriere_core::AcknowledgeMode::Auto).await.unwrap();
    let producer = session.create_producer(Some(&orders)).await.unwrap();
    let mut message = Message::text("x");
    message.headers_mut().correlation_id = Some("c".repeat(70_000).into());
    producer.send(&message).await.unwrap();
    let mut peer = server.client().await;
    peer.session(1).await;
    peer.consumer((1, 1), &queue("orders"), 10).await;
    server.until("a dead letter", |_| server.counts(&queue("DLQ.orders")).pending == 1).await;
    // The connection goes on.
    peer.producer(1, 1).await;
    peer.send(&queue("orders"), &["next"]).await;
    peer.dispatches(&["next"]).await;
}

#[tokio::test]
async fn a_dead_letter_that_cannot_be_written_waits_for_another_consumer() {
    log();
    let server = Server::start().await;
    let dead = queue("DLQ.orders");
    let large = "x".repeat(5_000);
    let mut sender = server.client().await;
    sender.send_first(&dead, &[&large]).await;
    let mut peer = narrow(&server).await;
    let consumer = peer.consumer((1, 1), &dead, 10).await;
    assert!(peer.is_silent().await);
    // It is not tried again and again, and said once.
    for _ in 0..3 {
        server.until_waiting(&dead, 1).await;
        server.clock.advance(Duration::from_secs(60));
        assert!(peer.is_silent().await);
    }
    server.until_waiting(&dead, 1).await;
    let logged = logged_of(peer.stream.local_addr().unwrap());
    assert!(matches!(logged.as_slice(), [line] if line.contains("cannot be written")), "{logged:?}");
    peer.request(Peer::removal(consumer, -1)).await;
    server.clock.advance(Duration::from_secs(60));
    sender.consumer((1, 1), &dead, 10).await;
    sender.dispatches(&[&large]).await;
}
