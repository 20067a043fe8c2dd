//! A peer that speaks for Corriere: the broker counts, delays and ends its redelivery.

use std::time::Duration;

use corriere_core::RedeliveryOverrides;
use corriere_core::provider::{Cause, CauseKind};
use corriere_openwire::Structure;
use corriere_openwire::negotiation::Preferences;
use corriere_openwire::redelivery::{self, ConsumerTerms, Return};
use corriere_openwire::structures::{
    AckType, ConsumerInfo, JournalTrace, MessageAck, MessageDispatch, MessagePull, TransactionOperation,
};

use crate::peer::{Peer, queue, sequence_of};
use crate::server::Server;

/// A peer of Corriere that has introduced itself.
pub(crate) async fn corriere(server: &Server) -> Peer {
    let mut preferences = Preferences::default();
    redelivery::announce(&mut preferences.others);
    let (mut peer, agreement) = Peer::greet_with(server.acceptor.local_address(), &preferences).await;
    assert!(redelivery::is_spoken_by(&agreement.properties));
    peer.introduce().await;
    peer
}

fn give_back(dispatch: &MessageDispatch, delay: Option<Duration>) -> MessageAck {
    let cause = Cause { kind: CauseKind::Failure, text: "no luck".into(), listener: Some("on_order".into()) };
    MessageAck {
        poison_cause: Some(Return { delay, cause }.to_throwable()),
        ..Peer::ack(AckType::Redelivered, dispatch, dispatch, None)
    }
}

#[tokio::test]
async fn what_is_given_back_comes_again_counted_and_ends_in_the_dead_letters_with_its_listener() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = corriere(&server).await;
    peer.send_first(&orders, &["one", "two"]).await;
    peer.consumer((1, 1), &orders, 10).await;
    // The broker's limit is two redeliveries.
    for round in 0..3 {
        let dispatches = peer.dispatches(&["one", "two"]).await;
        assert_eq!((dispatches[0].redelivery_counter, dispatches[1].redelivery_counter), (round, 0));
        // What was taken back meanwhile is told apart by its epoch.
        assert!(dispatches.iter().all(|dispatch| dispatch.command_id == round));
        peer.tell(give_back(&dispatches[0], None)).await;
    }
    peer.dispatches(&["two"]).await;
    peer.consumer((1, 2), &queue("DLQ.orders"), 10).await;
    let dead =
        peer.dispatches(&["one"]).await.remove(0).message.unwrap().to_core(Default::default()).unwrap();
    assert_eq!(dead.property::<String>("dlqDeliveryFailureCause").unwrap().as_deref(), Some("no luck"));
    assert_eq!(dead.property::<String>("dlqListener").unwrap().as_deref(), Some("on_order"));
}

#[tokio::test]
async fn a_delay_is_the_brokers_to_keep() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = corriere(&server).await;
    peer.send_first(&orders, &["one"]).await;
    peer.consumer((1, 1), &orders, 10).await;
    let one = peer.dispatches(&["one"]).await.remove(0);
    peer.request(give_back(&one, Some(Duration::from_secs(5)))).await;
    server.clock.advance(Duration::from_millis(4_999));
    assert!(peer.is_silent().await);
    server.clock.advance(Duration::from_millis(1));
    peer.dispatches(&["one"]).await;
}

#[tokio::test]
async fn the_terms_of_a_consumer_bound_its_window_and_its_redelivery() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = corriere(&server).await;
    peer.send_first(&orders, &["one", "two", "three", "four"]).await;
    let redelivery = RedeliveryOverrides { maximum_redeliveries: Some(Some(0)), ..Default::default() };
    let terms = ConsumerTerms { extension: Some(1), redelivery, ..Default::default() };
    let info = peer.consumer_info((1, 1), &orders, 1);
    peer.request(ConsumerInfo { additional_predicate: Some(terms.to_structure()), ..info.clone() }).await;
    let one = peer.dispatches(&["one"]).await.remove(0);
    peer.tell(Peer::ack(AckType::Delivered, &one, &one, None)).await;
    let two = peer.dispatches(&["two"]).await.remove(0);
    peer.tell(Peer::ack(AckType::Delivered, &two, &two, None)).await;
    // One may be in its hands beyond its window. It is told that it stands still with both, as more waits.
    let Structure::ConsumerControl(slow) = peer.next().await else { panic!("it stands still") };
    assert_eq!((slow.stop, slow.prefetch), (true, 2));
    assert!(peer.is_silent().await);
    peer.request(give_back(&one, None)).await;
    assert_eq!(server.counts(&queue("DLQ.orders")).pending, 1, "no redelivery is one too many");

    let unknown = JournalTrace { message: Some("extention=1".into()) };
    let info =
        ConsumerInfo { additional_predicate: Some(unknown.into()), ..peer.consumer_info((1, 2), &orders, 1) };
    let (_, message) = peer.refused(info).await;
    assert!(message.starts_with("`extention=1` is no term of a consumer"), "{message}");
}

#[tokio::test]
async fn a_pull_grants_as_many_as_it_says_and_a_drain_is_always_answered() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = corriere(&server).await;
    peer.send_first(&orders, &["one", "two", "three"]).await;
    let consumer_id = peer.consumer((1, 1), &orders, 0).await;
    let pull = |timeout| MessagePull { consumer_id: consumer_id.clone(), timeout, ..Default::default() };
    peer.tell(pull(2)).await;
    peer.dispatches(&["one", "two"]).await;
    assert!(peer.is_silent().await);
    peer.tell(pull(-1)).await;
    assert_eq!(peer.dispatch().await.message, None, "also when all came");
    peer.tell(pull(2)).await;
    peer.dispatches(&["three"]).await;
    peer.tell(pull(-1)).await;
    assert_eq!(peer.dispatch().await.message, None);
    peer.send(&orders, &["four"]).await;
    assert!(peer.is_silent().await, "the credit is taken back");
}

#[tokio::test]
async fn what_a_closed_consumer_was_handed_may_still_be_settled_and_ends_with_the_session() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = corriere(&server).await;
    peer.send_first(&orders, &["one", "two", "three"]).await;
    let consumer = peer.consumer((1, 1), &orders, 10).await;
    let dispatches = peer.dispatches(&["one", "two", "three"]).await;
    peer.request(Peer::removal(consumer, sequence_of(&dispatches[1]))).await;
    let mut other = server.client().await;
    other.session(1).await;
    other.consumer((1, 1), &orders, 10).await;
    other.dispatches(&["three"]).await;
    peer.settle(&dispatches[0]).await;
    assert_eq!(server.counts(&orders).acknowledged, 1);
    assert!(other.is_silent().await);
    peer.request(Peer::removal(peer.session_id(1), -1)).await;
    assert_eq!(other.dispatches(&["two"]).await[0].redelivery_counter, 1);
}

#[tokio::test]
async fn of_a_closed_consumer_that_settled_all_nothing_is_kept_in_its_session() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = corriere(&server).await;
    peer.send_first(&orders, &["one"]).await;
    for text in ["one", "two"] {
        // Kept, it would be taken for one that is there, and not be opened.
        let consumer = peer.consumer((1, 1), &orders, 10).await;
        let dispatches = peer.dispatches(&[text]).await;
        peer.settle(&dispatches[0]).await;
        peer.request(Peer::removal(consumer, sequence_of(&dispatches[0]))).await;
        peer.send(&orders, &["two"]).await;
    }
}

#[tokio::test]
async fn of_a_peer_that_vanishes_what_it_was_told_to_have_handed_over_counts_and_no_more() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = corriere(&server).await;
    peer.send_first(&orders, &["one", "two"]).await;
    let consumer = peer.consumer((1, 1), &orders, 10).await;
    peer.dispatches(&["one", "two"]).await;
    drop((peer, consumer));
    let mut other = corriere(&server).await;
    other.session(1).await;
    other.consumer((1, 1), &orders, 10).await;
    let dispatches = other.dispatches(&["one", "two"]).await;
    assert_eq!((dispatches[0].redelivery_counter, dispatches[1].redelivery_counter), (0, 0));
    other.request(Peer::ack(AckType::Delivered, &dispatches[0], &dispatches[0], None)).await;
    drop(other);
    let mut last = corriere(&server).await;
    last.session(1).await;
    last.consumer((1, 1), &orders, 10).await;
    let dispatches = last.dispatches(&["one", "two"]).await;
    assert_eq!((dispatches[0].redelivery_counter, dispatches[1].redelivery_counter), (1, 0));
}

#[tokio::test]
async fn what_a_consumer_cannot_read_dies_uncounted_and_hands_nothing_over() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = corriere(&server).await;
    peer.send_first(&orders, &["one", "two", "three", "four"]).await;
    peer.consumer((1, 1), &orders, 10).await;
    let dispatches = peer.dispatches(&["one", "two", "three", "four"]).await;
    let cause = Some(redelivery::undeliverable("not a number"));
    let unreadable = Peer::ack(AckType::Poison, &dispatches[2], &dispatches[2], None);
    peer.tell(MessageAck { poison_cause: cause, ..unreadable }).await;
    // The application has the first only, and gives it back with all that is behind it.
    peer.tell(give_back(&dispatches[0], None)).await;
    let again = peer.dispatches(&["one", "two", "four"]).await;
    let counters: Vec<i32> = again.iter().map(|dispatch| dispatch.redelivery_counter).collect();
    assert_eq!(counters, [1, 0, 0]);
    peer.consumer((1, 2), &queue("DLQ.orders"), 10).await;
    let dead =
        peer.dispatches(&["three"]).await.remove(0).message.unwrap().to_core(Default::default()).unwrap();
    assert_eq!(dead.property::<String>("dlqDeliveryFailureCause").unwrap().as_deref(), Some("not a number"));
}

#[tokio::test]
async fn a_give_back_of_what_is_not_known_begins_an_epoch_all_the_same() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = corriere(&server).await;
    peer.send_first(&orders, &["one", "two"]).await;
    peer.consumer((1, 1), &orders, 10).await;
    let dispatches = peer.dispatches(&["one", "two"]).await;
    peer.settle(&dispatches[0]).await;
    peer.request(give_back(&dispatches[0], None)).await;
    // The peer has dropped it, and waits for it in the next epoch.
    let again = peer.dispatches(&["two"]).await.remove(0);
    assert_eq!((again.command_id, again.redelivery_counter), (1, 0));
    peer.settle(&again).await;
    assert_eq!(server.counts(&orders).acknowledged, 2);
}

#[tokio::test]
async fn of_a_closed_consumer_that_settles_the_rest_later_nothing_is_kept_in_its_session() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = corriere(&server).await;
    peer.send_first(&orders, &["one", "two"]).await;
    let consumer = peer.consumer((1, 1), &orders, 10).await;
    let dispatches = peer.dispatches(&["one", "two"]).await;
    peer.request(Peer::removal(consumer, sequence_of(&dispatches[1]))).await;
    peer.settle(&dispatches[0]).await;
    let transaction = peer.transaction_id(1);
    peer.request(peer.transaction(1, TransactionOperation::Begin)).await;
    peer.request(Peer::ack(AckType::Standard, &dispatches[1], &dispatches[1], Some(&transaction))).await;
    peer.request(peer.transaction(1, TransactionOperation::CommitOnePhase)).await;
    // Kept, it would be taken for one that is there, and not be opened.
    peer.consumer((1, 1), &orders, 10).await;
    peer.send(&orders, &["three"]).await;
    peer.dispatches(&["three"]).await;
}
