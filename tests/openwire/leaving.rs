//! Peers that go: what was in their hands counts, and what only lay with them does not.

use corriere_openwire::structures::{
    AckType, ConnectionInfo, ConsumerId, MessageDispatch, TransactionOperation,
};

use crate::log::{log, logged_of};
use crate::peer::{Peer, queue, sequence_of};
use crate::server::Server;

/// Three messages with the consumer 1 of session 1.
async fn three(server: &Server) -> (Peer, ConsumerId, Vec<MessageDispatch>) {
    let orders = queue("orders");
    let mut peer = server.client().await;
    peer.send_first(&orders, &["one", "two", "three"]).await;
    let consumer = peer.consumer((1, 1), &orders, 10).await;
    let dispatches = peer.dispatches(&["one", "two", "three"]).await;
    (peer, consumer, dispatches)
}

/// How often each of the texts was delivered before, by the eyes of a new consumer.
async fn counts(server: &Server, texts: &[&str]) -> Vec<i32> {
    let mut other = server.client().await;
    other.session(1).await;
    other.consumer((1, 1), &queue("orders"), 10).await;
    let dispatches = other.dispatches(texts).await;
    dispatches.iter().map(|dispatch| dispatch.redelivery_counter).collect()
}

#[tokio::test]
async fn of_a_peer_that_vanishes_only_the_oldest_message_counts() {
    let server = Server::start().await;
    let (mut peer, _, dispatches) = three(&server).await;
    peer.settle(&dispatches[0]).await;
    drop(peer);
    assert_eq!(counts(&server, &["two", "three"]).await, [1, 0]);
}

#[tokio::test]
async fn that_a_peer_vanishes_is_said_with_its_client_id_and_how_many_messages_went_back() {
    log();
    let server = Server::start().await;
    let mut peer = server.peer().await;
    let address = peer.stream.local_addr().unwrap();
    let client_id = Some("billing".into());
    peer.request(ConnectionInfo { client_id, ..peer.introduction() }).await;
    let orders = queue("orders");
    peer.send_first(&orders, &["one", "two", "three", "four"]).await;
    peer.consumer((1, 1), &orders, 10).await;
    let dispatches = peer.dispatches(&["one", "two", "three", "four"]).await;
    peer.settle(&dispatches[0]).await;
    // What a transaction acknowledged that never ended goes back too.
    peer.request(peer.transaction(1, TransactionOperation::Begin)).await;
    let transaction = Some(peer.transaction_id(1));
    peer.request(Peer::ack(AckType::Standard, &dispatches[1], &dispatches[1], transaction.as_ref())).await;
    drop(peer);
    server.until_waiting(&orders, 3).await;
    let is_said = || logged_of(address).iter().any(|line| line.contains("gone without closing"));
    server.until("it is said", |_| is_said()).await;
    let logged = logged_of(address);
    let [line] = logged.as_slice() else { panic!("{logged:?}") };
    assert!(line.contains("client_id=\"billing\" returned=3"), "{line}");
}

#[tokio::test]
async fn the_oldest_counts_for_each_consumer_of_a_peer_that_vanishes() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = server.client().await;
    peer.send_first(&orders, &[]).await;
    peer.consumer((1, 1), &orders, 2).await;
    peer.consumer((1, 2), &orders, 2).await;
    peer.send(&orders, &["one", "two", "three", "four"]).await;
    for _ in 0..4 {
        peer.dispatch().await;
    }
    // Each has every second one.
    drop(peer);
    assert_eq!(counts(&server, &["one", "two", "three", "four"]).await, [1, 1, 0, 0]);
}

#[tokio::test]
async fn a_goodbye_without_closing_is_none() {
    let server = Server::start().await;
    let (mut peer, ..) = three(&server).await;
    peer.tell(corriere_openwire::structures::ShutdownInfo::default()).await;
    assert_eq!(counts(&server, &["one", "two", "three"]).await, [1, 0, 0]);
}

#[tokio::test]
async fn a_consumer_that_is_closed_says_which_message_was_the_last() {
    type Last = fn(&[MessageDispatch]) -> i64;
    let cases: [(&str, Last, [i32; 3]); 5] = [
        ("the second", |dispatches| sequence_of(&dispatches[1]), [1, 1, 0]),
        ("none", |_| -1, [0, 0, 0]),
        ("a client that does not set it", |_| 0, [0, 0, 0]),
        ("one that is not known", |_| -2, [1, 0, 0]),
        ("all of them", |_| i64::MAX, [1, 1, 1]),
    ];
    for (what, last, expected) in cases {
        let server = Server::start().await;
        let (mut peer, consumer, dispatches) = three(&server).await;
        peer.request(Peer::removal(consumer, last(&dispatches))).await;
        // They do not wait until the session is closed.
        assert_eq!(counts(&server, &["one", "two", "three"]).await, expected, "{what}");
        drop(peer);
    }
}

#[tokio::test]
async fn the_last_message_of_a_session_or_a_connection_is_that_of_one_consumer() {
    for is_connection in [false, true] {
        let server = Server::start().await;
        let orders = queue("orders");
        let mut peer = server.client().await;
        peer.send_first(&orders, &[]).await;
        let first = peer.consumer((1, 1), &orders, 2).await;
        peer.consumer((1, 2), &orders, 2).await;
        peer.send(&orders, &["one", "two", "three", "four"]).await;
        let mut last = 0;
        for _ in 0..4 {
            let dispatch = peer.dispatch().await;
            if dispatch.consumer_id == first {
                last = sequence_of(&dispatch);
            }
        }
        let removal = if is_connection {
            Peer::removal(peer.connection.clone(), last)
        } else {
            Peer::removal(peer.session_id(1), last)
        };
        peer.request(removal).await;
        // One consumer had the first and the third, the other the second and the fourth.
        let seen = counts(&server, &["one", "two", "three", "four"]).await;
        assert!(seen == [1, 0, 1, 0] || seen == [0, 1, 0, 1], "{seen:?}");
    }
}

#[tokio::test]
async fn what_a_client_said_to_have_delivered_counts_however_it_goes() {
    let server = Server::start().await;
    let (mut peer, consumer, dispatches) = three(&server).await;
    peer.tell(Peer::ack(AckType::Delivered, &dispatches[0], &dispatches[1], None)).await;
    peer.request(Peer::removal(consumer, -1)).await;
    assert_eq!(counts(&server, &["one", "two", "three"]).await, [1, 1, 0]);
}

#[tokio::test]
async fn a_consumer_with_no_limit_never_loses_a_message_to_the_dead_letters_by_going() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut sender = server.client().await;
    sender.send_first(&orders, &["poison"]).await;
    // The broker's own limit is two.
    for round in 0..5 {
        let mut peer = server.client().await;
        peer.session(1).await;
        peer.consumer((1, 1), &orders, 10).await;
        let dispatch = peer.dispatches(&["poison"]).await.remove(0);
        assert_eq!(dispatch.redelivery_counter, round);
    }
    server.until_waiting(&orders, 1).await;
}

#[tokio::test]
async fn what_is_not_there_cannot_be_removed() {
    let server = Server::start().await;
    let mut peer = server.client().await;
    peer.session(1).await;
    let consumer = ConsumerId { connection_id: peer.connection.value.clone(), session_id: 1, value: 1 };
    for removal in [
        Peer::removal(consumer, -1),
        Peer::removal(peer.producer_id(1, 1), -1),
        Peer::removal(peer.session_id(2), -1),
        Peer::removal(queue("orders"), -1),
        corriere_openwire::structures::RemoveInfo::default(),
    ] {
        let (class, _) = peer.refused(removal).await;
        assert_eq!(class, "javax.jms.IllegalStateException");
    }
    let producer = peer.producer(1, 1).await;
    peer.request(Peer::removal(producer.clone(), -1)).await;
    let message = peer.text(&queue("orders"), "x", true);
    let (_, reason) = peer.refused(message).await;
    assert!(reason.ends_with("expected ProducerInfo before"), "{reason}");
}
