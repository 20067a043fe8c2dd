//! Messages for whose answer nobody waits, and acknowledgements, when their connection ends.

use std::time::Duration;

use corriere_broker::Settings;
use corriere_core::provider::{
    Command, ConnectOptions, DeliverySink, Dispatch, Event, Provider, SendMessage, SessionMode,
};
use corriere_core::{ConnectionId, Message, MessageId, ProducerId, SessionId};
use corriere_openwire::Structure;
use corriere_openwire::acceptor::AcceptorOptions;
use corriere_openwire::structures::{
    AckType, FlushCommand, MessageDispatch, ShutdownInfo, TransactionOperation,
};

use crate::log::{log, logged_of};
use crate::peer::{Peer, queue};
use crate::server::{Server, settings};

const DEADLINE: Duration = Duration::from_secs(30);

/// A broker that is full, and a peer that holds one of the three messages that fill it.
async fn full() -> (Server, Peer, MessageDispatch) {
    full_with(AcceptorOptions::default()).await
}

async fn full_with(options: AcceptorOptions) -> (Server, Peer, MessageDispatch) {
    let settings = Settings { memory_limit: 40_000, send_deadline: DEADLINE, ..settings() };
    let server = Server::with("", settings, options).await;
    let mut peer = server.client().await;
    peer.send_first(&queue("orders"), &[]).await;
    peer.consumer((1, 1), &queue("orders"), 1).await;
    for _ in 0..3 {
        let message = peer.text(&queue("orders"), &"x".repeat(10_000), false);
        peer.request(message).await;
    }
    let dispatch = peer.dispatch().await;
    (server, peer, dispatch)
}

/// A peer of which two messages wait for room, and which has another in its hands.
async fn waiting(server: &Server) -> Peer {
    let mut peer = server.client().await;
    peer.send_first(&queue("orders"), &["in its hands"]).await;
    peer.consumer((1, 1), &queue("prices"), 1).await;
    park(&mut peer).await;
    peer
}

/// Sends two messages for which there is no room.
async fn park(peer: &mut Peer) {
    for _ in 0..2 {
        let message = peer.text(&queue("orders"), &"y".repeat(10_000), false);
        peer.tell(message).await;
    }
    peer.request(FlushCommand::default()).await;
}

/// Makes room, and waits until the two messages are there.
async fn two_more(server: &Server, other: &mut Peer, dispatch: &MessageDispatch) {
    let before = server.counts(&queue("orders")).enqueued;
    other.settle(dispatch).await;
    for _ in 0..2 {
        let dispatch = other.dispatch().await;
        other.settle(&dispatch).await;
    }
    server.until("the two", |_| server.counts(&queue("orders")).enqueued == before + 2).await;
}

#[tokio::test]
async fn an_orderly_end_waits_for_sends_that_wait_for_room() {
    for is_session in [true, false] {
        let (server, mut other, dispatch) = full().await;
        let mut peer = waiting(&server).await;
        let closed: Structure =
            if is_session { peer.session_id(1).into() } else { peer.connection.clone().into() };
        let closing = peer.begin(Peer::removal(closed, -1)).await;
        two_more(&server, &mut other, &dispatch).await;
        assert!(matches!(peer.answer(closing).await, Structure::Response(_)));
        peer.tell(ShutdownInfo::default()).await;
        assert!(peer.rest().await.is_empty());
    }
}

#[tokio::test]
async fn a_goodbye_or_none_loses_no_send_that_waits_for_room_either() {
    for is_orderly in [true, false] {
        let (server, mut other, dispatch) = full().await;
        let mut peer = waiting(&server).await;
        if is_orderly {
            peer.tell(Peer::removal(peer.connection.clone(), -1)).await;
            peer.tell(ShutdownInfo::default()).await;
        }
        drop(peer);
        server.until_still(|| ()).await;
        two_more(&server, &mut other, &dispatch).await;
    }
}

#[tokio::test]
async fn what_a_connection_holds_is_free_while_its_end_waits() {
    let (server, mut other, dispatch) = full().await;
    let prices = queue("prices");
    let mut peer = server.client().await;
    peer.send_first(&prices, &[]).await;
    let (one, two) = (peer.text(&prices, "one", false), peer.text(&prices, "two", false));
    peer.request(one).await;
    peer.request(two).await;
    peer.consumer((1, 1), &prices, 2).await;
    let dispatches = peer.dispatches(&["one", "two"]).await;
    peer.tell(peer.transaction(1, TransactionOperation::Begin)).await;
    let id = peer.transaction_id(1);
    peer.request(Peer::ack(AckType::Standard, &dispatches[0], &dispatches[0], Some(&id))).await;
    let message = peer.text(&queue("orders"), &"y".repeat(10_000), false);
    peer.tell(message).await;
    peer.request(FlushCommand::default()).await;
    let closing = peer.begin(Peer::removal(peer.connection.clone(), -1)).await;
    // Nobody committed it, and nobody has the other one.
    server.until_waiting(&prices, 2).await;
    other.settle(&dispatch).await;
    assert!(matches!(peer.answer(closing).await, Structure::Response(_)));
}

#[tokio::test]
async fn past_the_deadline_who_can_still_hear_is_told_which_messages_were_refused() {
    let (server, _other, _) = full().await;
    let mut peer = waiting(&server).await;
    let closing = peer.begin(Peer::removal(peer.connection.clone(), -1)).await;
    server.until_still(|| ()).await;
    server.clock.advance(DEADLINE);
    assert!(matches!(peer.answer(closing).await, Structure::Response(_)));
    for sequence in [2, 3] {
        let (class, reason) = peer.error().await;
        assert_eq!(class, "javax.jms.ResourceAllocationException");
        let named = format!("the send of {}:{sequence} to queue://orders waited 30s", peer.producer_id(1, 1));
        assert!(reason.starts_with(&named), "{reason}");
    }
}

#[tokio::test]
async fn past_the_deadline_the_log_names_what_a_peer_sent_that_is_gone() {
    log();
    let (server, _other, _) = full().await;
    let peer = waiting(&server).await;
    let (address, producer) = (peer.stream.local_addr().unwrap(), peer.producer_id(1, 1));
    drop(peer);
    server.until_still(|| ()).await;
    server.clock.advance(DEADLINE);
    let named = format!("an answer: {producer}:2 to queue://orders, {producer}:3 to queue://orders");
    server.until("it is said", |_| logged_of(address).iter().any(|line| line.contains(&named))).await;
    let said: Vec<_> = logged_of(address).into_iter().filter(|line| line.contains("are lost")).collect();
    assert!(said.len() == 1 && said[0].contains("count=2") && said[0].contains("waited 30s"), "{said:?}");
}

#[tokio::test]
async fn of_peers_that_are_gone_no_more_waits_than_there_is_room_for_them() {
    log();
    let (server, mut other, dispatch) =
        full_with(AcceptorOptions { outliving: 25_000, ..AcceptorOptions::default() }).await;
    let (mut one, mut another) = (server.client().await, server.client().await);
    for peer in [&mut one, &mut another] {
        peer.send_first(&queue("prices"), &[]).await;
    }
    park(&mut one).await;
    park(&mut another).await;
    let address = another.stream.local_addr().unwrap();
    drop(one);
    server.until_still(|| ()).await;
    drop(another);
    let is_said =
        || logged_of(address).iter().any(|line| line.contains("are lost") && line.contains("count=2"));
    server.until("it is said", |_| is_said()).await;
    two_more(&server, &mut other, &dispatch).await;
}

#[tokio::test]
async fn a_client_that_comes_again_does_not_wait_for_its_sends_and_the_log_names_them() {
    log();
    let (server, _other, _) = full().await;
    let peer = waiting(&server).await;
    let (address, connection) = (peer.stream.local_addr().unwrap(), peer.connection.clone());
    drop(peer);
    server.until_still(|| ()).await;
    let mut again = server.peer().await;
    again.connection = connection;
    again.introduce().await;
    server.until("it is said", |_| logged_of(address).iter().any(|line| line.contains("are lost"))).await;
}

#[tokio::test]
async fn a_stop_does_not_wait_for_sends_and_the_log_names_those_it_refuses() {
    log();
    let (server, _other, _) = full().await;
    let mut peer = waiting(&server).await;
    let (address, producer) = (peer.stream.local_addr().unwrap(), peer.producer_id(1, 1));
    let talking = async {
        let late = peer.text(&queue("late"), "z", false);
        peer.tell(late).await;
        assert!(peer.rest().await.is_empty(), "it is told nothing");
        drop(peer);
    };
    tokio::join!(server.acceptor.stop(), talking);
    let said: Vec<_> = logged_of(address).into_iter().filter(|line| line.contains("are lost")).collect();
    let late = format!("{producer}:4 to queue://late");
    assert!(said.len() == 1 && said[0].contains("count=3") && said[0].contains(&late), "{said:?}");
}

/// Takes nothing.
#[derive(Debug)]
struct Nowhere;

impl DeliverySink for Nowhere {
    fn deliver(&self, _: Vec<Dispatch>) {}

    fn notify(&self, _: Event) {}
}

#[tokio::test]
async fn what_a_peer_sent_before_its_reset_is_taken_though_nothing_can_be_written_to_it() {
    const COUNT: u64 = 150;
    let server = Server::start().await;
    let orders = queue("orders");
    let mut peer = server.client().await;
    peer.send_first(&queue("prices"), &["12"]).await;
    peer.consumer((1, 1), &queue("prices"), 10).await;
    let dispatch = peer.dispatches(&["12"]).await.remove(0);
    let mut bytes = Vec::new();
    for _ in 0..COUNT {
        let message = peer.text(&orders, "x", false);
        peer.format.encode(&message.into(), &mut bytes).unwrap();
    }
    let ack = Peer::ack(AckType::Standard, &dispatch, &dispatch, None);
    peer.format.encode(&ack.into(), &mut bytes).unwrap();

    let options =
        ConnectOptions { connection: ConnectionId::unique(), client_id: None, user: None, password: None };
    let local = server.broker.connect(options, std::sync::Arc::new(Nowhere)).await.unwrap();
    local.tell(Command::OpenSession { session: SessionId(1), mode: SessionMode::Auto });
    let producer = ProducerId(1);
    let (session, identity) = (SessionId(1), "local".into());
    local.tell(Command::OpenProducer { producer, session, identity, destination: None });
    let mut message = Message::text("13");
    message.headers_mut().destination = Some(queue("prices").to_core().unwrap());
    message.headers_mut().message_id = Some(MessageId { producer: "local".into(), sequence: 1 });
    let send = SendMessage { producer, message: message.into(), transaction: None, deadline: None };

    // From here on nobody else has this thread: the socket is reset before the acceptor looks, and has something to write.
    assert_eq!(peer.stream.try_write(&bytes).unwrap(), bytes.len());
    peer.stream.set_zero_linger().unwrap();
    drop(peer);
    let sent = local.submit(Command::Send(send));
    sent.await.unwrap();
    server.until("all of it", |_| server.counts(&orders).enqueued == COUNT).await;
    server.until("the acknowledgement", |_| server.counts(&queue("prices")).acknowledged == 1).await;
    server.until_waiting(&queue("prices"), 1).await;
}
