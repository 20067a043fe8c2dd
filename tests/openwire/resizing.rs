//! Windows that change at run time, and consumers that stand still.

use corriere_core::Destination;
use corriere_core::provider::{Command, Credit, Event};
use corriere_openwire::Structure;
use corriere_openwire::negotiation::Preferences;
use corriere_openwire::redelivery::{self, ConsumerTerms};
use corriere_openwire::structures::{AckType, ConsumerControl, ConsumerId, ConsumerInfo};

use crate::log::{log, logged_of};
use crate::peer::{Peer, queue, topic};
use crate::scripted::Scripted;
use crate::server::Server;

fn control(consumer: &ConsumerId, prefetch: i32) -> ConsumerControl {
    let destination = Some(queue("orders"));
    ConsumerControl { destination, consumer_id: Some(consumer.clone()), prefetch, ..Default::default() }
}

async fn next_control(peer: &mut Peer) -> ConsumerControl {
    match peer.next().await {
        Structure::ConsumerControl(control) => *control,
        other => panic!("it is told of its window: {other:?}"),
    }
}

#[tokio::test]
async fn a_wider_window_brings_what_waits_and_a_smaller_one_takes_nothing_back() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = server.client().await;
    peer.send_first(&orders, &["one", "two", "three", "four", "five"]).await;
    let consumer = peer.consumer((1, 1), &orders, 1).await;
    peer.dispatches(&["one"]).await;
    assert!(peer.is_silent().await);
    peer.tell(control(&consumer, 3)).await;
    let dispatches = peer.dispatches(&["two", "three"]).await;
    assert!(peer.is_silent().await);
    peer.request(control(&consumer, 1)).await;
    peer.settle(&dispatches[0]).await;
    assert!(peer.is_silent().await, "one is under way still");
    peer.settle(&dispatches[1]).await;
    peer.request(Peer::ack(AckType::Standard, &dispatches[1], &dispatches[1], None)).await;
    peer.tell(control(&consumer, 4)).await;
    peer.dispatches(&["four", "five"]).await;
}

/// ActiveMQ's client opens so, after a failover, what it still has messages of.
#[tokio::test]
async fn a_consumer_that_is_opened_without_a_window_may_be_given_one_and_waits_for_ever_no_more() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = server.client().await;
    peer.send_first(&orders, &["one", "two", "three"]).await;
    let consumer = peer.consumer((1, 1), &orders, 0).await;
    assert!(peer.is_silent().await);
    peer.tell(control(&consumer, 2)).await;
    let dispatches = peer.dispatches(&["one", "two"]).await;
    assert_eq!(dispatches[0].consumer_id, consumer);
    assert!(peer.is_silent().await, "no more than its window");
    peer.settle(&dispatches[0]).await;
    peer.dispatches(&["three"]).await;
    peer.request(Peer::removal(consumer.clone(), -1)).await;
    assert_eq!(peer.refused(Peer::removal(consumer, -1)).await.0, "javax.jms.IllegalStateException");
}

#[tokio::test]
async fn what_cannot_become_of_a_consumer_is_refused_and_it_goes_on() {
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = server.client().await;
    peer.send_first(&orders, &["one", "two"]).await;
    let consumer = peer.consumer((1, 1), &orders, 1).await;
    let one = peer.dispatches(&["one"]).await.remove(0);
    for prefetch in [0, -1] {
        let (class, words) = peer.refused(control(&consumer, prefetch)).await;
        assert_eq!(class, "javax.jms.IllegalStateException");
        assert!(words.contains("cannot be made one that pulls"), "{words}");
    }
    peer.settle(&one).await;
    peer.dispatches(&["two"]).await;
    // What a peer may say of a consumer that is not there, or may not be obeyed.
    let nobody = ConsumerId { value: 77, ..consumer.clone() };
    peer.request(control(&nobody, 5)).await;
    peer.request(ConsumerControl { stop: true, ..control(&consumer, 0) }).await;
    peer.request(ConsumerControl { close: true, ..control(&consumer, 0) }).await;
}

#[tokio::test]
async fn that_a_client_left_the_window_to_the_broker_is_known_by_its_defaults() {
    let (scripted, _acceptor, mut peer) = Scripted::served().await;
    peer.session(1).await;
    for (value, prefetch, expected) in [(1, 1_000, true), (2, 10, false)] {
        peer.consumer((1, value), &queue("orders"), prefetch).await;
        assert_eq!(scripted.last_opened().is_default_credit, expected);
    }
    peer.consumer((1, 3), &topic("prices"), 32_767).await;
    assert!(scripted.last_opened().is_default_credit);
}

#[tokio::test]
async fn what_the_broker_makes_of_a_window_is_told() {
    let (scripted, _acceptor, mut peer) = Scripted::served().await;
    peer.session(1).await;
    let orders = queue("orders");
    let consumer = peer.consumer((1, 1), &orders, 1_000).await;
    let subscription = scripted.last_opened().subscription;
    scripted.notify(Event::WindowChanged { subscription, prefetch: 5 });
    let told = next_control(&mut peer).await;
    assert_eq!((told.consumer_id, told.prefetch), (Some(consumer), 5));
    assert_eq!((told.destination, told.close, told.stop), (Some(orders), false, false));
}

#[tokio::test]
async fn that_a_consumer_stands_still_is_said_in_the_log() {
    log();
    let (scripted, _acceptor, mut peer) = Scripted::served().await;
    let address = peer.stream.local_addr().unwrap();
    peer.session(1).await;
    let consumer = peer.consumer((1, 1), &queue("orders"), 10).await;
    let subscription = scripted.last_opened().subscription;
    let destination = Destination::queue("orders").unwrap();
    scripted.notify(Event::SlowConsumer { subscription, destination, unacknowledged: 15 });
    assert!(peer.is_silent().await, "it has no word for it");
    let logged = logged_of(address);
    let [line] = logged.as_slice() else { panic!("{logged:?}") };
    for part in [format!("consumer={consumer}"), "queue://orders".into(), "unacknowledged=15".into()] {
        assert!(line.contains(&part), "{part}: {line}");
    }
}

/// A peer of Corriere at a provider that does what it is told.
async fn ours(acceptor: &corriere_openwire::acceptor::Acceptor) -> Peer {
    let mut preferences = Preferences::default();
    redelivery::announce(&mut preferences.others);
    let (mut peer, _) = Peer::greet_with(acceptor.local_address(), &preferences).await;
    peer.introduce().await;
    peer.session(1).await;
    peer
}

#[tokio::test]
async fn a_peer_of_corriere_says_who_chose_its_window_and_changes_it_with_its_extension() {
    let (scripted, acceptor) = Scripted::listening(&[]).await;
    let mut peer = ours(&acceptor).await;
    let orders = queue("orders");
    let info = |peer: &Peer, prefetch, extension, is_default_credit| {
        let terms = ConsumerTerms { extension, is_default_credit, ..Default::default() };
        let predicate = Some(terms.to_structure());
        ConsumerInfo { additional_predicate: predicate, ..peer.consumer_info((1, 1), &orders, prefetch) }
    };
    peer.request(info(&peer, 1_000, Some(5), true)).await;
    let subscribe = scripted.last_opened();
    assert!(subscribe.is_default_credit);
    assert_eq!(subscribe.credit, Credit::Window { prefetch: 1_000, extension: Some(5) });
    scripted.asked();
    peer.request(info(&peer, 4, Some(2), false)).await;
    let asked = std::mem::take(&mut *scripted.asked.lock().unwrap());
    let [Command::ChangeWindow { subscription, prefetch: 4, extension: Some(2) }] = asked.as_slice() else {
        panic!("{asked:?}")
    };
    assert_eq!(*subscription, subscribe.subscription);
    let destination = Destination::queue("orders").unwrap();
    let subscription = subscribe.subscription;
    scripted.notify(Event::SlowConsumer { subscription, destination, unacknowledged: 15 });
    let told = next_control(&mut peer).await;
    assert_eq!((told.stop, told.prefetch, told.close), (true, 15, false));
}
