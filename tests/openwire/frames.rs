//! Large frames, and what those that are not complete hold.

use corriere_openwire::acceptor::AcceptorOptions;
use corriere_openwire::structures::ConnectionInfo;
use tokio::io::AsyncWriteExt;

use crate::peer::{Peer, queue};
use crate::server::{Server, settings};

/// A server where one frame of a megabyte, the largest, may be on its way.
async fn narrow() -> Server {
    let options = AcceptorOptions { unfinished: 0, ..AcceptorOptions::default() };
    Server::with("?wireFormat.maxFrameSize=1000000", settings(), options).await
}

/// A message of 900,000 bytes.
fn large(peer: &mut Peer) -> Vec<u8> {
    let mut bytes = Vec::new();
    let message = peer.text(&queue("orders"), &"x".repeat(900_000), false);
    peer.format.encode(&message.into(), &mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn large_frames_of_all_peers_arrive_in_turn_and_small_ones_meanwhile() {
    let server = narrow().await;
    let orders = queue("orders");
    let (mut first, mut second) = (server.client().await, server.client().await);
    first.send_first(&orders, &[]).await;
    second.send_first(&orders, &[]).await;
    let frame = large(&mut first);
    let (some, rest) = frame.split_at(300_000);
    first.stream.write_all(some).await.unwrap();
    server.until_still(|| ()).await;
    let other = large(&mut second);
    let mut writing = Box::pin(second.stream.write_all(&other));
    tokio::select! {
        // Whatever the sockets hold of it, it is not sent.
        _ = &mut writing => {}
        enqueued = server.until_still(|| server.counts(&orders).enqueued) => assert_eq!(enqueued, 0),
    }
    // Acknowledgements come through, here and on other connections.
    let mut third = server.client().await;
    third.send_first(&queue("prices"), &["12"]).await;
    third.consumer((1, 1), &queue("prices"), 1).await;
    let dispatch = third.dispatches(&["12"]).await.remove(0);
    third.settle(&dispatch).await;
    assert_eq!(server.until_still(|| server.counts(&orders).enqueued).await, 0);

    first.stream.write_all(rest).await.unwrap();
    writing.await.unwrap();
    server.until("both", |_| server.counts(&orders).enqueued == 2).await;
}

#[tokio::test]
async fn who_goes_within_a_large_frame_makes_room_for_the_next() {
    let server = narrow().await;
    let orders = queue("orders");
    for _ in 0..3 {
        let mut peer = server.client().await;
        peer.send_first(&orders, &[]).await;
        let frame = large(&mut peer);
        peer.stream.write_all(&frame[..500_000]).await.unwrap();
        server.until_still(|| ()).await;
    }
    let mut peer = server.client().await;
    peer.send_first(&orders, &[]).await;
    let message = peer.text(&orders, &"x".repeat(900_000), false);
    peer.request(message).await;
}

#[tokio::test]
async fn a_peer_that_is_not_known_may_send_small_frames_only() {
    let server = Server::start().await;
    let mut stranger = server.peer().await;
    let introduction =
        ConnectionInfo { user_name: Some("x".repeat(30_000).into()), ..stranger.introduction() };
    assert_eq!(stranger.refused(introduction).await.0, "java.lang.SecurityException");

    let mut stranger = server.peer().await;
    // No more than its size is sent.
    stranger.stream.write_all(&100_000_u32.to_be_bytes()).await.unwrap();
    let (class, reason) = stranger.error().await;
    assert_eq!(class, "java.io.IOException");
    assert_eq!(reason, "the peer announces a frame of 100000 bytes; expected 1 to 65536");
    assert!(stranger.rest().await.is_empty());

    // Of one that introduces itself the next frame may be large, also when it comes at once.
    let mut peer = server.peer().await;
    let mut bytes = Vec::new();
    for structure in [
        peer.introduction().into(),
        corriere_openwire::structures::SessionInfo { session_id: peer.session_id(1), ..Default::default() }
            .into(),
        corriere_openwire::structures::ProducerInfo {
            producer_id: peer.producer_id(1, 1),
            ..Default::default()
        }
        .into(),
    ] {
        peer.format.encode(&structure, &mut bytes).unwrap();
    }
    bytes.extend(large(&mut peer));
    peer.stream.write_all(&bytes).await.unwrap();
    server.until("the message", |_| server.counts(&queue("orders")).enqueued == 1).await;
}
