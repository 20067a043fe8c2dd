//! A recorded conversation with a running acceptor, each frame of the client cut and flipped at every byte: an error and a
//! closed connection, or another meaning, while other connections go on and memory stays as it is.
//!
//! Without `CORRIERE_CASES` it is some thousands of all the damage there can be, spread over it from a place that
//! `CORRIERE_SEED` chooses; with it, that many, and with 0 all. A binary of its own, as memory is counted for the whole process.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

#[allow(dead_code, reason = "shared with the tests of behaviour")]
#[path = "../peer.rs"]
mod peer;
#[allow(dead_code, reason = "shared with the tests of behaviour")]
#[path = "../server.rs"]
mod server;

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use corriere_openwire::acceptor::AcceptorOptions;
use corriere_openwire::{Structure, WireFormat};
use peak_alloc::PeakAlloc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use peer::queue;
use server::{Server, settings};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What all that a damaged conversation needs may take at once: buffers, tasks, and what the broker keeps of it.
const AT_ONCE: usize = 8 * 1024 * 1024;

/// What may stay when a broker has gone on which many of them were played.
const STAYS: usize = 512 * 1024;

/// How many are played on one broker, as each leaves messages in queues of strange names.
const FOR_ONE_BROKER: usize = 500;

/// How a frame is damaged.
#[derive(Clone, Copy, Debug)]
enum Damage {
    /// The peer goes within it.
    Cut,
    /// Some bits are others.
    Flip(u8),
}

const DAMAGES: [Damage; 4] = [Damage::Cut, Damage::Flip(0xff), Damage::Flip(0x01), Damage::Flip(0x80)];

#[test]
fn no_damage_to_a_recorded_conversation_harms_anybody_else() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(play());
}

async fn play() {
    let conversations = conversations();
    let places = places(&conversations);
    let all = places.len() * DAMAGES.len();
    let asked = number("CORRIERE_CASES").unwrap_or(2_000);
    let count = if asked == 0 { all } else { asked.min(all) };
    let first = number("CORRIERE_SEED").unwrap_or(0);
    let cases: Vec<(Place, Damage)> = (0..count)
        .map(|case| (first + case * (all / count)) % all)
        .map(|chosen| (places[chosen / DAMAGES.len()], DAMAGES[chosen % DAMAGES.len()]))
        .collect();
    // The first one makes what is made once.
    play_some(&conversations, &[]).await;
    let before = MEMORY.current_usage();
    for some in cases.chunks(FOR_ONE_BROKER) {
        play_some(&conversations, some).await;
        let stays = MEMORY.current_usage().saturating_sub(before);
        assert!(stays < STAYS, "{stays} bytes stay");
    }
}

/// Plays cases with an acceptor and a broker of their own.
async fn play_some(conversations: &[Vec<Vec<u8>>], cases: &[(Place, Damage)]) {
    let options = AcceptorOptions { farewell: Duration::from_millis(50), ..AcceptorOptions::default() };
    let server = Server::with("?wireFormat.maxFrameSize=1000000", settings(), options).await;
    let mut bystander = server.client().await;
    bystander.send_first(&queue("bystander"), &[]).await;
    bystander.consumer((1, 1), &queue("bystander"), 10).await;
    for conversation in conversations {
        talk(&server, conversation).await;
    }
    for (number, (place, damage)) in cases.iter().enumerate() {
        let damaged = damaged(conversations, *place, *damage);
        MEMORY.reset_peak_usage();
        let start = MEMORY.current_usage();
        talk(&server, &damaged).await;
        let taken = MEMORY.peak_usage().saturating_sub(start);
        assert!(taken < AT_ONCE, "{damage:?} at {place:?}: {taken} bytes");
        if number % 50 == 0 {
            bystander.send(&queue("bystander"), &["undisturbed"]).await;
            let dispatch = bystander.dispatches(&["undisturbed"]).await.remove(0);
            bystander.settle(&dispatch).await;
        }
    }
    server.acceptor.stop().await;
    server.broker.stop();
}

/// A byte of a frame.
#[derive(Clone, Copy, Debug)]
struct Place {
    conversation: usize,
    frame: usize,
    byte: usize,
}

/// Each byte of each frame.
fn places(conversations: &[Vec<Vec<u8>>]) -> Vec<Place> {
    let mut places = Vec::new();
    for (conversation, frames) in conversations.iter().enumerate() {
        for (frame, bytes) in frames.iter().enumerate() {
            // What a large frame has more of is the bytes of one text.
            let bytes = (0..bytes.len()).step_by(bytes.len() / 2_000 + 1);
            places.extend(bytes.map(|byte| Place { conversation, frame, byte }));
        }
    }
    places
}

/// A conversation up to the place of the damage, and, unless the peer goes there, what came behind it.
fn damaged(conversations: &[Vec<Vec<u8>>], place: Place, damage: Damage) -> Vec<Vec<u8>> {
    let mut frames = conversations[place.conversation].clone();
    match damage {
        Damage::Cut => {
            frames.truncate(place.frame + 1);
            frames[place.frame].truncate(place.byte);
        }
        Damage::Flip(mask) => frames[place.frame][place.byte] ^= mask,
    }
    frames
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok().map(|number| number.parse().unwrap())
}

/// What the clients of the recorded conversation sent, one after the other, with the sizes before the frames. They had a
/// user, whom nobody knows here.
fn conversations() -> Vec<Vec<Vec<u8>>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../transports/openwire/tests/recorded/conversation-v12.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let recorded = WireFormat { stack_traces: true, ..WireFormat::default() };
    let mut conversations: Vec<Vec<Vec<u8>>> = Vec::new();
    for digits in text.lines().filter_map(|line| line.strip_prefix("> ")) {
        let digits = digits.as_bytes().chunks(2);
        let bytes = digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap());
        let mut structure = recorded.decode(&bytes.collect::<Bytes>()).unwrap().unwrap();
        if let Structure::ConnectionInfo(info) = &mut structure {
            (info.user_name, info.password) = (None, None);
        }
        if matches!(structure, Structure::WireFormatInfo(_)) {
            conversations.push(Vec::new());
        }
        // As it is agreed on with our acceptor, which wants no stacks.
        let mut frame = Vec::new();
        WireFormat::default().encode(&structure, &mut frame).unwrap();
        conversations.last_mut().unwrap().push(frame);
    }
    assert!(conversations.iter().map(Vec::len).sum::<usize>() > 100, "{conversations:?}");
    conversations
}

/// Says all of it, says goodbye by closing its side, and reads until the socket is closed, which it has to be.
async fn talk(server: &Server, frames: &[Vec<u8>]) {
    let stream = TcpStream::connect(server.acceptor.local_address()).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let saying = async {
        for frame in frames {
            // A peer that was sent away hears of it here or there.
            if write.write_all(frame).await.is_err() {
                break;
            }
        }
        let _ = write.shutdown().await;
    };
    let hearing = async {
        let mut nowhere = vec![0; 16 * 1024];
        while matches!(read.read(&mut nowhere).await, Ok(1..)) {}
    };
    let both = async { tokio::join!(saying, hearing) };
    timeout(Duration::from_secs(120), both).await.expect("the connection is closed");
}
