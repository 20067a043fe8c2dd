//! Peers that send more than there is room for, or ask and do not read.

use std::time::Duration;

use corriere_broker::Settings;
use corriere_openwire::Structure;
use corriere_openwire::acceptor::{AcceptorOptions, Bounds};
use corriere_openwire::structures::{AckType, ConsumerId, FlushCommand, MessageDispatch, MessagePull};
use tokio::io::AsyncWriteExt;

use crate::corriere::corriere;
use crate::peer::{Peer, queue, words};
use crate::server::{Server, settings};

const DEADLINE: Duration = Duration::from_secs(30);

/// A broker with little memory, whose peers may park little.
async fn small() -> Server {
    let settings = Settings { memory_limit: 40_000, send_deadline: DEADLINE, ..settings() };
    let bounds = Bounds { parked: 20_000, ..Bounds::default() };
    Server::with("", settings, AcceptorOptions { bounds, ..AcceptorOptions::default() }).await
}

/// A peer that has filled the memory, and one of the messages in its hands.
async fn full(server: &Server) -> (Peer, MessageDispatch) {
    let mut peer = server.client().await;
    peer.send_first(&queue("orders"), &[]).await;
    peer.consumer((1, 1), &queue("orders"), 1).await;
    let text = "x".repeat(10_000);
    for _ in 0..3 {
        let message = peer.text(&queue("orders"), &text, false);
        peer.request(message).await;
    }
    let dispatch = peer.dispatch().await;
    (peer, dispatch)
}

/// Sends messages of more than 10,000 bytes without waiting.
async fn park(peer: &mut Peer, count: usize) {
    for _ in 0..count {
        let message = peer.text(&queue("orders"), &"y".repeat(10_000), false);
        peer.tell(message).await;
    }
}

#[tokio::test]
async fn one_way_sends_that_wait_stop_the_reading_until_there_is_room() {
    let server = small().await;
    let (mut other, dispatch) = full(&server).await;
    let mut peer = server.client().await;
    peer.send_first(&queue("orders"), &[]).await;
    park(&mut peer, 1).await;
    peer.request(FlushCommand::default()).await;
    park(&mut peer, 2).await;
    let flush = peer.begin(FlushCommand::default()).await;
    assert!(peer.is_not_read(&server).await);
    // Others are not held up, and free the memory.
    other.settle(&dispatch).await;
    for _ in 0..3 {
        let dispatch = other.dispatch().await;
        other.settle(&dispatch).await;
    }
    assert!(matches!(peer.answer(flush).await, Structure::Response(_)));
    server.until("all of it", |_| server.counts(&queue("orders")).enqueued == 6).await;
}

#[tokio::test]
async fn past_the_deadline_a_peer_that_parked_too_much_is_closed_after_its_acknowledgements() {
    let server = small().await;
    let (mut peer, dispatch) = full(&server).await;
    let large = peer.text(&queue("orders"), &"y".repeat(25_000), false);
    peer.tell(large).await;
    // It would make room, and is behind what there is no room for.
    peer.tell(Peer::ack(AckType::Standard, &dispatch, &dispatch, None)).await;
    assert!(peer.is_not_read(&server).await);
    assert_eq!(server.counts(&queue("orders")).acknowledged, 0);
    let passing = async {
        loop {
            server.clock.advance(DEADLINE);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let rest = tokio::select! {
        rest = peer.rest() => rest,
        () = passing => unreachable!("time passes for ever"),
    };
    let Some(Structure::ConnectionError(error)) = rest.first() else { panic!("it is told: {rest:?}") };
    let (class, message) = words(error.exception.clone());
    assert_eq!(class, "javax.jms.ResourceAllocationException");
    assert!(message.contains("waited 30s for memory"), "{message}");
    assert_eq!(server.counts(&queue("orders")).acknowledged, 1);
}

#[tokio::test]
async fn past_the_deadline_a_peer_that_parked_little_is_told_and_goes_on() {
    let server = small().await;
    let (mut peer, dispatch) = full(&server).await;
    park(&mut peer, 1).await;
    peer.request(FlushCommand::default()).await;
    server.clock.advance(DEADLINE);
    let (class, _) = peer.error().await;
    assert_eq!(class, "javax.jms.ResourceAllocationException");
    peer.settle(&dispatch).await;
    peer.dispatch().await;
}

#[tokio::test]
async fn a_send_that_asks_for_an_answer_has_it_at_the_deadline_and_others_meanwhile() {
    let server = small().await;
    let (mut peer, dispatch) = full(&server).await;
    let message = peer.text(&queue("orders"), &"y".repeat(10_000), true);
    let send = peer.begin(message).await;
    // Answers come as they are ready.
    peer.request(FlushCommand::default()).await;
    server.clock.advance(DEADLINE);
    let Structure::ExceptionResponse(refused) = peer.answer(send).await else { panic!("it is refused") };
    assert_eq!(words(refused.exception).0, "javax.jms.ResourceAllocationException");
    peer.settle(&dispatch).await;
}

#[tokio::test]
async fn a_peer_that_asks_and_does_not_read_is_not_read_any_more() {
    let bounds = Bounds { unwritten: 100, ..Bounds::default() };
    let server = Server::with("", settings(), AcceptorOptions { bounds, ..AcceptorOptions::default() }).await;
    let peer = server.client().await;
    let mut flush = Vec::new();
    let asks = FlushCommand { command_id: 7, response_required: true };
    peer.format.encode(&asks.into(), &mut flush).unwrap();
    let many = flush.repeat(1_000);
    let mut asked = 0;
    // Until the sockets of both sides are full, which takes some megabytes, and stay so.
    loop {
        while let Ok(written) = peer.stream.try_write(&many[asked % many.len()..]) {
            asked += written;
            assert!(asked < 300_000_000, "it is read on and on");
        }
        let before = asked;
        asked = server
            .until_still(|| {
                asked += peer.stream.try_write(&many[asked % many.len()..]).unwrap_or(0);
                asked
            })
            .await;
        if asked == before {
            break;
        }
    }
    let mut other = server.client().await;
    other.send_first(&queue("orders"), &["others are not disturbed"]).await;
}

#[tokio::test]
async fn a_peer_that_pulls_and_does_not_read_has_no_more_than_its_socket_holds() {
    const COUNT: usize = 2_000;
    let bounds = Bounds { unwritten: 50, ..Bounds::default() };
    let server = Server::with("", settings(), AcceptorOptions { bounds, ..AcceptorOptions::default() }).await;
    let orders = queue("orders");
    let mut sender = server.client().await;
    sender.send_first(&orders, &[]).await;
    let text = "x".repeat(10_000);
    for _ in 0..COUNT {
        let message = sender.text(&orders, &text, false);
        sender.tell(message).await;
    }
    sender.request(FlushCommand::default()).await;
    let mut peer = server.client().await;
    peer.session(1).await;
    let consumer_id = peer.consumer((1, 1), &orders, 0).await;
    let mut pulls = Vec::new();
    for _ in 0..COUNT {
        let pull = MessagePull { consumer_id: consumer_id.clone(), ..MessagePull::default() };
        peer.format.encode(&pull.into(), &mut pulls).unwrap();
    }
    // The sockets of both sides have room for all that is asked, and for a part of what is answered.
    peer.stream.write_all(&pulls).await.unwrap();
    let in_flight = server.until_still(|| server.counts(&orders).in_flight).await;
    assert!(in_flight < COUNT as u64, "{in_flight} are on their way to one who does not read");
    // Pulls that came before the one before them had its message are one with it, as they are in ActiveMQ.
    for _ in 0..in_flight {
        peer.dispatch().await;
    }
}

#[tokio::test]
async fn a_peer_of_corriere_that_grants_much_and_does_not_read_has_no_more_than_its_socket_holds() {
    const COUNT: u64 = 2_000;
    let bounds = Bounds { pulled: 50, ..Bounds::default() };
    let server = Server::with("", settings(), AcceptorOptions { bounds, ..AcceptorOptions::default() }).await;
    let orders = queue("orders");
    let mut sender = server.client().await;
    sender.send_first(&orders, &[]).await;
    let text = "x".repeat(10_000);
    for _ in 0..COUNT {
        let message = sender.text(&orders, &text, false);
        sender.tell(message).await;
    }
    sender.request(FlushCommand::default()).await;
    let mut peer = corriere(&server).await;
    peer.session(1).await;
    let (one, other) = (peer.consumer((1, 1), &orders, 0).await, peer.consumer((1, 2), &orders, 0).await);
    let pull = |consumer_id: &ConsumerId, timeout| MessagePull {
        consumer_id: consumer_id.clone(),
        timeout,
        ..MessagePull::default()
    };
    peer.tell(pull(&one, i64::MAX)).await;
    for _ in 0..COUNT {
        peer.tell(pull(&other, 10)).await;
    }
    peer.tell(pull(&one, -1)).await;
    let in_flight = server.until_still(|| server.counts(&orders).in_flight).await;
    assert!(in_flight < COUNT, "{in_flight} are on their way to one who does not read");
    // It is handed on as it is read, to the last message, and so are the drains.
    let (mut messages, mut nothings) = (0, 0);
    while messages < COUNT || nothings < 1 {
        let dispatch = peer.dispatch().await;
        match dispatch.message {
            Some(_) => messages += 1,
            None => {
                assert_eq!(dispatch.consumer_id, one);
                nothings += 1;
            }
        }
    }
    assert_eq!((messages, nothings), (COUNT, 1));
    // What was granted and not used is taken back from the one, and not from the other.
    sender.send(&orders, &["last"]).await;
    let last = peer.dispatches(&["last"]).await.remove(0);
    assert_eq!(last.consumer_id, other);
    assert!(peer.is_silent().await);
}
