//! Who is not spoken to, and what they are told.

use corriere_openwire::acceptor::AcceptorOptions;
use corriere_openwire::negotiation::Preferences;
use corriere_openwire::primitive::PrimitiveMap;
use corriere_openwire::structures::{SessionInfo, WireFormatInfo};
use corriere_openwire::{Structure, redelivery};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::log::{log, logged, logged_of};
use crate::peer::{Peer, queue, words};
use crate::server::{Server, settings};

/// What a peer is told that says this instead of what is expected, and that it is closed then.
async fn told(server: &Server, said: &[u8]) -> (String, String) {
    let mut peer = Peer::connect(server.acceptor.local_address()).await;
    peer.stream.write_all(said).await.unwrap();
    assert!(matches!(peer.next().await, Structure::WireFormatInfo(_)), "ours comes first in any case");
    let error = peer.error().await;
    assert!(peer.rest().await.is_empty());
    error
}

fn frame(structure: &Structure) -> Vec<u8> {
    let mut bytes = Vec::new();
    corriere_openwire::WireFormat::default().encode(structure, &mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn a_peer_that_is_too_old_or_no_peer_at_all_is_told_so_and_closed() {
    let server = Server::start().await;
    let old = WireFormatInfo::new(8, &PrimitiveMap::default()).unwrap();
    let (class, message) = told(&server, &frame(&old.into())).await;
    assert_eq!(class, "java.io.IOException");
    assert_eq!(message, "the peer speaks version 8 of OpenWire; expected at least 9");

    let mut bad_magic = frame(&Preferences::default().info().unwrap().into());
    bad_magic[5] = b'B';
    let (_, message) = told(&server, &bad_magic).await;
    assert_eq!(message, "WireFormatInfo.magic, byte 1: it does not begin with the word `ActiveMQ`");

    let (_, message) = told(&server, &frame(&SessionInfo::default().into())).await;
    assert_eq!(message, "the peer began with SessionInfo; expected its wire format (WireFormatInfo)");

    let (_, message) = told(&server, b"SSH-2.0-OpenSSH_9.2\r\n").await;
    assert!(message.starts_with("the peer announces a frame of 1397966893 bytes"), "{message}");
}

#[tokio::test]
async fn a_peer_that_speaks_another_protocol_is_told_which_that_looks_like() {
    let server = Server::start().await;
    for (first, protocol) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS (`ssl://`)"),
        (b"CONNECT\naccept-version:1.2\n\n\0", "STOMP"),
        (b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00", "MQTT"),
        (b"AMQP\x00\x01\x00\x00", "AMQP"),
    ] {
        let (class, message) = told(&server, first).await;
        assert_eq!(class, "java.io.IOException");
        assert_eq!(message, format!("the peer does not speak OpenWire; this looks like {protocol}"));
    }
}

#[tokio::test]
async fn a_peer_that_encodes_tightly_although_that_was_declined_is_told_where() {
    let server = Server::start().await;
    let mut peer = server.peer().await;
    // SessionInfo 1 with an answer, tight: its flags stand behind a length, which is no flag of the loose form.
    peer.stream.write_all(&[0, 0, 0, 8, 4, 1, 0b111, 0, 0, 0, 1, 121]).await.unwrap();
    let (class, message) = peer.error().await;
    assert_eq!(class, "java.io.IOException");
    assert!(message.starts_with("SessionInfo."), "{message}");
    assert!(message.ends_with("expected the loose encoding without a cache, as was agreed on"), "{message}");
    assert!(peer.rest().await.is_empty());
}

#[tokio::test]
async fn a_peer_that_says_nothing_is_told_what_was_expected() {
    let options = "?wireFormat.maxInactivityDurationInitalDelay=20";
    let server = Server::with(options, settings(), AcceptorOptions::default()).await;
    let (_, message) = told(&server, b"").await;
    assert_eq!(message, "the peer did not send its wire format (WireFormatInfo) within 20ms");
}

#[tokio::test]
async fn a_newer_peer_is_spoken_to_in_twelve_and_an_older_one_in_its_own_version() {
    let server = Server::start().await;
    for (version, spoken) in [(13, 12), (12, 12), (9, 9)] {
        let mut peer = Peer::connect(server.acceptor.local_address()).await;
        let ours = Preferences::default().info().unwrap();
        let info = WireFormatInfo { version, ..ours };
        peer.put(&info.clone().into()).await;
        let Structure::WireFormatInfo(theirs) = peer.next().await else { panic!("it comes first") };
        assert_eq!(theirs.version, 12);
        assert!(redelivery::is_spoken_by(&theirs.properties().unwrap()));
        peer.format = Preferences::default().negotiate(&info).unwrap().format;
        assert_eq!(peer.format.version.number(), spoken);
        assert!(matches!(peer.next().await, Structure::BrokerInfo(_)));
        peer.introduce().await;
        peer.send_first(&queue("orders"), &["x"]).await;
        let consumer = peer.consumer((1, 1), &queue("orders"), 1).await;
        let dispatch = peer.dispatches(&["x"]).await.remove(0);
        assert_eq!(dispatch.consumer_id, consumer);
        peer.settle(&dispatch).await;
        peer.request(Peer::removal(consumer, -1)).await;
    }
}

#[tokio::test]
async fn a_silent_peer_is_closed_and_one_that_keeps_its_word_is_not() {
    let options = "?wireFormat.maxInactivityDuration=200&wireFormat.maxInactivityDurationInitalDelay=2000";
    let server = Server::with(options, settings(), AcceptorOptions::default()).await;
    let silent = async {
        let mut silent = server.peer().await;
        let last = silent.rest().await.pop();
        let Some(Structure::ConnectionError(error)) = last else { panic!("it is told: {last:?}") };
        assert_eq!(words(error.exception).1, "the peer was silent for 2.2s, longer than was agreed on");
    };
    let speaking = async {
        let mut speaking = server.client().await;
        // Each takes a third of the duration at least, so all of them take longer than a silence may.
        for _ in 0..40 {
            // Ours comes when nothing else is written, and is answered by theirs.
            let ours = speaking.read().await;
            assert!(matches!(ours, Some(Structure::KeepAliveInfo(_))), "{ours:?}");
            speaking.put(&Structure::KeepAliveInfo(Box::default())).await;
        }
        let asks =
            corriere_openwire::structures::KeepAliveInfo { response_required: true, ..Default::default() };
        speaking.put(&asks.into()).await;
        let answer = speaking.read().await;
        assert_eq!(answer, Some(Structure::KeepAliveInfo(Box::default())), "it is answered by another one");
    };
    tokio::join!(silent, speaking);
}

#[tokio::test]
async fn a_refused_peer_is_named_in_the_log() {
    log();
    let server = Server::start().await;
    let mut peer = Peer::connect(server.acceptor.local_address()).await;
    let address = peer.stream.local_addr().unwrap();
    peer.stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    peer.rest().await;
    let logged = logged_of(address);
    assert!(
        logged.iter().any(|line| line.contains("WARN")
            && line.contains("a connection is refused")
            && line.contains("does not speak OpenWire; this looks like HTTP")),
        "{logged:?}"
    );
}

/// A health check, of which there may be one each second.
#[tokio::test]
async fn who_only_looks_whether_somebody_listens_is_not_warned_of() {
    log();
    let server = Server::with("?maximumConnections=1", settings(), AcceptorOptions::default()).await;
    let look = TcpStream::connect(server.acceptor.local_address()).await.unwrap();
    let address = look.local_addr().unwrap();
    look.readable().await.unwrap();
    // Our first word is there and unread, so that this is a reset.
    drop(look);
    // Its place is free only when all was said of it.
    for _ in 0..10_000 {
        let mut next = Peer::connect(server.acceptor.local_address()).await;
        next.put(&Preferences::default().info().unwrap().into()).await;
        assert!(matches!(next.read().await, Some(Structure::WireFormatInfo(_))));
        if let Some(Structure::BrokerInfo(_)) = next.read().await {
            // Its port may be that of one of those meanwhile that were too many.
            let is_its_own = |line: &String| !line.contains("maximumConnections");
            let logged: Vec<_> = logged_of(address).into_iter().filter(is_its_own).collect();
            assert_eq!(logged, Vec::<String>::new());
            return;
        }
        next.rest().await;
    }
    panic!("its place never became free");
}

/// The test below, in a process of its own that may have few files open.
#[cfg(unix)]
#[test]
fn a_lack_of_file_descriptors_is_said_once_and_passes() {
    let test = "negotiation::within_few_file_descriptors";
    let ended = std::process::Command::new("sh")
        .args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(
        ended.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&ended.stderr)
    );
}

#[cfg(unix)]
#[tokio::test]
#[ignore = "takes all file descriptors of its process; another test runs it in one of its own"]
async fn within_few_file_descriptors() {
    crate::log::log_to(tracing::Level::DEBUG);
    let server = Server::start().await;
    let address = server.acceptor.local_address();
    let mut peers = Vec::new();
    while let Ok(peer) = std::net::TcpStream::connect(address) {
        peers.push(peer);
        assert!(peers.len() < 1_000, "there is no limit");
    }
    let has_tried_again = || logged().matches("still no connection can be accepted").count() >= 3;
    server.until("it tries again and again", |_| has_tried_again()).await;
    let log = logged();
    let warnings = log.lines().filter(|line| line.contains("WARN") && line.contains("no connection can be"));
    assert_eq!(warnings.count(), 1, "{log}");
    drop(peers);
    server.client().await;
}
