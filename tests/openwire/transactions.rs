//! Local transactions.

use corriere_openwire::Structure;
use corriere_openwire::structures::{
    AckType, ConnectionInfo, ConsumerInfo, TransactionId, TransactionInfo, TransactionOperation,
    XaTransactionId,
};

use crate::peer::{Peer, queue};
use crate::server::Server;

use TransactionOperation::{Begin, CommitOnePhase, CommitTwoPhase, End, Forget, Prepare, Recover, Rollback};

#[tokio::test]
async fn what_a_transaction_sends_and_acknowledges_takes_effect_together() {
    let server = Server::start().await;
    let (orders, emails) = (queue("orders"), queue("emails"));
    let mut peer = server.client().await;
    peer.send_first(&orders, &["order"]).await;
    peer.consumer((1, 1), &orders, 10).await;
    let order = peer.dispatches(&["order"]).await.remove(0);
    let transaction = peer.transaction_id(1);
    peer.tell(peer.transaction(1, Begin)).await;
    peer.tell(peer.transaction(1, Begin)).await;
    let mut email = peer.text(&emails, "email", true);
    email.transaction_id = Some(transaction.clone());
    peer.tell(email).await;
    peer.tell(Peer::ack(AckType::Standard, &order, &order, Some(&transaction))).await;
    peer.request(peer.transaction(1, End)).await;
    assert_eq!(server.counts(&orders).acknowledged, 0);
    assert_eq!(server.counts(&emails).enqueued, 0);
    peer.request(peer.transaction(1, CommitOnePhase)).await;
    assert_eq!(server.counts(&orders).acknowledged, 1);
    assert_eq!(server.counts(&emails).enqueued, 1);
}

#[tokio::test]
async fn after_a_rollback_the_messages_are_still_the_consumers_to_acknowledge() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = server.client().await;
    peer.send_first(&orders, &["one", "two"]).await;
    peer.consumer((1, 1), &orders, 10).await;
    let dispatches = peer.dispatches(&["one", "two"]).await;
    for number in 1..=2 {
        let transaction = peer.transaction_id(number);
        peer.tell(peer.transaction(number, Begin)).await;
        let mut lost = peer.text(&queue("emails"), "lost", true);
        lost.transaction_id = Some(transaction.clone());
        peer.tell(lost).await;
        peer.tell(Peer::ack(AckType::Standard, &dispatches[0], &dispatches[1], Some(&transaction))).await;
        peer.request(peer.transaction(number, Rollback)).await;
        assert!(peer.is_silent().await, "the client delivers them again by itself");
    }
    let transaction = peer.transaction_id(3);
    peer.tell(peer.transaction(3, Begin)).await;
    peer.tell(Peer::ack(AckType::Standard, &dispatches[0], &dispatches[1], Some(&transaction))).await;
    peer.request(peer.transaction(3, CommitOnePhase)).await;
    assert_eq!((server.counts(&orders).acknowledged, server.counts(&orders).pending), (2, 0));
    assert_eq!(server.counts(&queue("emails")).enqueued, 0);
}

#[tokio::test]
async fn a_one_way_send_that_failed_makes_the_commit_fail() {
    let server = Server::start().await;
    let mut peer = server.client().await;
    peer.send_first(&queue("orders"), &[]).await;
    let transaction = peer.transaction_id(1);
    peer.tell(peer.transaction(1, Begin)).await;
    let mut good = peer.text(&queue("orders"), "good", true);
    good.transaction_id = Some(transaction.clone());
    peer.tell(good).await;
    let mut bad = peer.text(&queue("orders.*"), "bad", true);
    bad.transaction_id = Some(transaction.clone());
    peer.tell(bad).await;
    assert_eq!(peer.error().await.0, "javax.jms.InvalidDestinationException");
    let (class, message) = peer.refused(peer.transaction(1, CommitOnePhase)).await;
    assert_eq!(class, "javax.jms.TransactionRolledBackException");
    assert!(message.contains("wildcards are not offered yet"), "{message}");
    assert_eq!(server.counts(&queue("orders")).enqueued, 0);
}

/// A client that fails over says again what it acknowledged of messages that it had on another connection.
#[tokio::test]
async fn a_commit_that_acknowledges_what_the_connection_never_had_fails() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut before = server.client().await;
    before.send_first(&orders, &["one", "two"]).await;
    before.consumer((1, 1), &orders, 10).await;
    let had = before.dispatches(&["one", "two"]).await;
    drop(before);
    let mut peer = server.client().await;
    peer.session(1).await;
    peer.consumer((1, 1), &orders, 1).await;
    let again = peer.dispatches(&["one"]).await.remove(0);
    for (number, first, last) in [(1, &had[1], &had[1]), (2, &had[1], &again)] {
        let transaction = peer.transaction_id(number);
        peer.tell(peer.transaction(number, Begin)).await;
        let mut ack = Peer::ack(AckType::Standard, first, last, Some(&transaction));
        ack.consumer_id = again.consumer_id.clone();
        peer.tell(ack).await;
        let (class, message) = peer.refused(peer.transaction(number, CommitOnePhase)).await;
        assert_eq!(class, "javax.jms.TransactionRolledBackException");
        assert!(message.contains("does not have on this connection"), "{message}");
        assert_eq!((server.counts(&orders).acknowledged, server.counts(&orders).pending), (0, 2));
    }
    let transaction = peer.transaction_id(3);
    peer.tell(peer.transaction(3, Begin)).await;
    peer.tell(Peer::ack(AckType::Standard, &again, &again, Some(&transaction))).await;
    peer.request(peer.transaction(3, CommitOnePhase)).await;
    assert_eq!((server.counts(&orders).acknowledged, server.counts(&orders).pending), (1, 1));
}

/// ActiveMQ's client begins a transaction again on its new connection, but does not acknowledge again.
#[tokio::test]
async fn a_commit_of_nothing_after_a_failover_fails_and_of_what_was_sent_again_does_not() {
    let server = Server::start().await;
    for has_failed_over in [false, true] {
        let mut peer = server.peer().await;
        peer.request(ConnectionInfo { failover_reconnect: has_failed_over, ..peer.introduction() }).await;
        peer.session(1).await;
        peer.producer(1, 1).await;
        peer.tell(peer.transaction(1, Begin)).await;
        if has_failed_over {
            let (class, message) = peer.refused(peer.transaction(1, CommitOnePhase)).await;
            assert_eq!(class, "javax.jms.TransactionRolledBackException");
            assert!(message.contains("begun on a connection that is lost"), "{message}");
        } else {
            peer.request(peer.transaction(1, CommitOnePhase)).await;
        }
        peer.tell(peer.transaction(2, Begin)).await;
        let mut again = peer.text(&queue("orders"), "again", true);
        again.transaction_id = Some(peer.transaction_id(2));
        peer.tell(again).await;
        peer.request(peer.transaction(2, CommitOnePhase)).await;
    }
    assert_eq!(server.counts(&queue("orders")).enqueued, 2);
}

#[tokio::test]
async fn a_transaction_that_was_not_begun_cannot_end_nor_take_anything() {
    let server = Server::start().await;
    let mut peer = server.client().await;
    peer.send_first(&queue("orders"), &[]).await;
    for operation in [CommitOnePhase, Rollback, Prepare, CommitTwoPhase, Forget] {
        let (class, _) = peer.refused(peer.transaction(7, operation)).await;
        assert_eq!(class, "javax.jms.IllegalStateException", "{operation:?}");
    }
    let mut message = peer.text(&queue("orders"), "x", true);
    message.transaction_id = Some(peer.transaction_id(7));
    assert_eq!(peer.refused(message).await.0, "javax.jms.IllegalStateException");
    let nameless = TransactionInfo { operation: Begin, ..Default::default() };
    assert_eq!(peer.refused(nameless).await.0, "javax.jms.IllegalStateException");
    assert_eq!(server.counts(&queue("orders")).enqueued, 0);
}

#[tokio::test]
async fn a_distributed_transaction_is_refused_by_a_class_that_its_manager_knows() {
    let server = Server::start().await;
    let mut peer = server.client().await;
    peer.send_first(&queue("orders"), &[]).await;
    let xid = TransactionId::Xa(XaTransactionId { format_id: 1, ..Default::default() });
    for operation in [Begin, End, Prepare, CommitOnePhase, CommitTwoPhase, Rollback, Forget] {
        let info = TransactionInfo {
            transaction_id: Some(xid.clone()),
            operation,
            ..peer.transaction(1, operation)
        };
        let (class, message) = peer.refused(info).await;
        assert_eq!(class, "javax.transaction.xa.XAException");
        assert_eq!(message, "distributed (XA) transactions are not offered yet over OpenWire xaErrorCode:-3");
    }
    let mut message = peer.text(&queue("orders"), "x", true);
    message.transaction_id = Some(xid);
    assert_eq!(peer.refused(message).await.0, "javax.transaction.xa.XAException");
    let id = peer.begin(TransactionInfo { transaction_id: None, ..peer.transaction(1, Recover) }).await;
    let Structure::DataArrayResponse(prepared) = peer.answer(id).await else { panic!("it is a list") };
    assert_eq!(prepared.data, Some(Vec::new()));
}

#[tokio::test]
async fn what_a_lost_transaction_acknowledged_comes_back_counted() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = server.client().await;
    peer.send_first(&orders, &["one", "two"]).await;
    peer.consumer((1, 1), &orders, 1).await;
    let one = peer.dispatches(&["one"]).await.remove(0);
    let transaction = peer.transaction_id(1);
    peer.tell(peer.transaction(1, Begin)).await;
    peer.request(Peer::ack(AckType::Standard, &one, &one, Some(&transaction))).await;
    drop(peer);
    let mut other = server.client().await;
    other.session(1).await;
    let info = ConsumerInfo { prefetch_size: 10, ..other.consumer_info((1, 1), &orders, 10) };
    other.request(info).await;
    let dispatches = other.dispatches(&["one", "two"]).await;
    assert_eq!(dispatches[0].redelivery_counter, 1);
}
