use std::time::Duration;

use futures_util::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};

use super::*;
use crate::codec::negotiation::Preferences;
use crate::codec::structures::{KeepAliveInfo, SessionInfo, ShutdownInfo};
use crate::codec::{Structure, WireFormat};

type Reader = CommandReader<ReadHalf<DuplexStream>>;
type Writer = CommandWriter<WriteHalf<DuplexStream>>;

fn side(stream: DuplexStream) -> (Reader, Writer) {
    let (read, write) = split(stream);
    (CommandReader::new(read, 1_000), CommandWriter::new(write))
}

fn shutdown(command_id: i32) -> Structure {
    Structure::from(ShutdownInfo { command_id, ..ShutdownInfo::default() })
}

#[tokio::test]
async fn both_sides_speak_what_was_agreed_on_after_the_first_frame() {
    let (ours, theirs) = duplex(4_096);
    let ((mut reader, mut writer), (mut their_reader, mut their_writer)) = (side(ours), side(theirs));
    let preferences = Preferences { maximum_frame_size: 5_000, ..Preferences::default() };
    let default = Preferences::default();
    let (agreed, theirs) = tokio::join!(
        handshake(&mut reader, &mut writer, &preferences),
        handshake(&mut their_reader, &mut their_writer, &default),
    );
    let (agreed, theirs) = (agreed.unwrap(), theirs.unwrap());
    assert_eq!((agreed.format, agreed.format.maximum_frame_size), (theirs.format, 5_000));

    let writing = async {
        their_writer.put(&shutdown(1)).unwrap();
        their_writer.put(&shutdown(2)).unwrap();
        their_writer.flush().await.unwrap();
        their_writer.shutdown().await.unwrap();
    };
    let reading = async {
        assert_eq!(reader.next().await.unwrap(), shutdown(1));
        assert_eq!(reader.next_here().unwrap(), Some(shutdown(2)));
        assert!(matches!(reader.next().await, Err(LinkError::Closed)));
    };
    tokio::join!(writing, reading);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_says_nothing_or_something_else_is_refused_by_name() {
    let (ours, _theirs) = duplex(4_096);
    let (mut reader, mut writer) = side(ours);
    let error = handshake(&mut reader, &mut writer, &Preferences::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "the peer did not send its wire format (WireFormatInfo) within 10s");

    let (ours, mut theirs) = duplex(4_096);
    let (mut reader, mut writer) = side(ours);
    let mut bytes = Vec::new();
    WireFormat::default().encode(&SessionInfo::default().into(), &mut bytes).unwrap();
    theirs.write_all(&bytes).await.unwrap();
    let error = handshake(&mut reader, &mut writer, &Preferences::default()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the peer began with SessionInfo; expected its wire format (WireFormatInfo)"
    );

    let (ours, mut theirs) = duplex(4_096);
    let (mut reader, mut writer) = side(ours);
    theirs.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let error = handshake(&mut reader, &mut writer, &Preferences::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "the peer does not speak OpenWire; this looks like HTTP");

    let (ours, mut theirs) = duplex(4_096);
    let (mut reader, mut writer) = side(ours);
    theirs.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await.unwrap();
    assert!(matches!(
        handshake(&mut reader, &mut writer, &Preferences::default()).await,
        Err(LinkError::Frame(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn silence_ends_a_connection_and_a_word_in_time_does_not() {
    let (ours, theirs) = duplex(4_096);
    let (mut reader, _writer) = side(ours);
    let (_their_reader, mut their_writer) = side(theirs);
    let limit = Duration::from_secs(3);
    reader.agree(WireFormat::default(), Some(limit));
    let outbox: Outbox<Structure> = Outbox::default();
    let speaking = write_out(&outbox, &mut their_writer, Some(limit / 3), |structure, writer| {
        Ok(writer.put(&structure)?)
    });
    let listening = async {
        for _ in 0..10 {
            assert_eq!(reader.next().await.unwrap(), KeepAliveInfo::default().into());
        }
    };
    tokio::select! {
        _ = speaking => panic!("the outbox is open"),
        () = listening => {}
    }
    assert!(matches!(reader.next().await, Err(LinkError::Silent { .. })));
}

/// ActiveMQ's client, which has just said something when it first looks, says the next thing a third of the time later.
#[tokio::test(start_paused = true)]
async fn a_peer_that_minds_its_silence_only_after_the_initial_delay_is_not_taken_for_dead() {
    let (ours, theirs) = duplex(4_096);
    let (mut reader, mut writer) = side(ours);
    let (mut their_reader, mut their_writer) = side(theirs);
    let silence = Duration::from_millis(300);
    let preferences =
        Preferences { maximum_inactivity: Some(silence), initial_delay: silence, ..Preferences::default() };
    let (agreed, theirs) = tokio::join!(
        handshake(&mut reader, &mut writer, &preferences),
        handshake(&mut their_reader, &mut their_writer, &preferences),
    );
    assert_eq!(agreed.unwrap().maximum_inactivity, Some(silence));
    theirs.unwrap();
    let late = async {
        tokio::time::sleep(silence + silence / 3).await;
        their_writer.put(&KeepAliveInfo::default().into()).unwrap();
        their_writer.flush().await.unwrap();
    };
    let (read, ()) = tokio::join!(reader.next(), late);
    assert_eq!(read.unwrap(), KeepAliveInfo::default().into());
    assert!(matches!(reader.next().await, Err(LinkError::Silent { .. })));
}

#[tokio::test]
async fn what_is_in_the_outbox_when_it_closes_is_still_written_and_nothing_after() {
    let (ours, mut theirs) = duplex(4_096);
    let (_reader, mut writer) = side(ours);
    let outbox = Outbox::default();
    assert!(outbox.extend([shutdown(1), shutdown(2)]));
    outbox.close();
    assert!(!outbox.push(shutdown(3)));
    write_out(&outbox, &mut writer, None, |structure, writer| Ok(writer.put(&structure)?)).await.unwrap();
    writer.shutdown().await.unwrap();
    let mut expected = Vec::new();
    WireFormat::default().encode(&shutdown(1), &mut expected).unwrap();
    WireFormat::default().encode(&shutdown(2), &mut expected).unwrap();
    drop(writer);
    drop(_reader);
    let mut written = Vec::new();
    theirs.read_to_end(&mut written).await.unwrap();
    assert_eq!(written, expected);
}

#[tokio::test]
async fn a_peer_that_goes_within_a_frame_is_told_from_one_that_closes() {
    let (ours, mut theirs) = duplex(4_096);
    let (mut reader, _writer) = side(ours);
    theirs.write_all(&[0, 0, 0, 9, 11]).await.unwrap();
    drop(theirs);
    assert!(matches!(reader.next().await, Err(LinkError::Truncated)));
}

/// A large frame of this size, its own included, that is no structure.
fn large(size: u32) -> Vec<u8> {
    let mut bytes = vec![0; size as usize];
    bytes[..4].copy_from_slice(&(size - 4).to_be_bytes());
    bytes[4] = 0xff;
    bytes
}

/// A reader whose large frames share a room, and who writes to it.
fn sharing(room: &FrameRoom) -> (CommandReader<ReadHalf<DuplexStream>>, DuplexStream) {
    let (ours, theirs) = duplex(1_000_000);
    let (read, _) = split(ours);
    (CommandReader::new(read, 1_000_000).sharing(room.clone()), theirs)
}

#[tokio::test]
async fn a_large_frame_waits_until_there_is_room_for_it_and_small_ones_do_not() {
    let room = FrameRoom::new(0);
    let ((mut first, mut to_first), (mut second, mut to_second), (mut third, mut to_third)) =
        (sharing(&room), sharing(&room), sharing(&room));
    let (one, other) = (large(300_000), large(200_000));
    to_first.write_all(&one[..100_000]).await.unwrap();
    assert!(first.next().now_or_never().is_none() && first.is_within_a_large_frame());
    to_second.write_all(&other).await.unwrap();
    to_third.write_all(&other).await.unwrap();
    // Each future is dropped, as in a loop that has other things to do; whose turn is next stays as it is.
    for _ in 0..3 {
        assert!(second.next().now_or_never().is_none());
        assert!(third.next().now_or_never().is_none());
    }
    assert!(second.held() < 200_000, "no more of it is read");
    let (mut small, mut to_small) = sharing(&room);
    let mut bytes = Vec::new();
    WireFormat::default().encode(&shutdown(1), &mut bytes).unwrap();
    to_small.write_all(&bytes).await.unwrap();
    assert_eq!(small.next().await.unwrap(), shutdown(1));

    to_first.write_all(&one[100_000..]).await.unwrap();
    // It is complete, whatever is in it, and so its place is free for who came next.
    assert!(matches!(first.next().await, Err(LinkError::Decode(_))));
    assert!(third.next().now_or_never().is_none());
    assert!(matches!(second.next().await, Err(LinkError::Decode(_))));
    assert!(matches!(third.next().await, Err(LinkError::Decode(_))));
}

#[tokio::test]
async fn large_frames_that_are_announced_and_do_not_come_are_in_nobodys_way() {
    let room = FrameRoom::new(1_000_000);
    let mut trickling: Vec<_> = (0..3).map(|_| sharing(&room)).collect();
    for (reader, writer) in &mut trickling {
        writer.write_all(&large(900_000)[..100_000]).await.unwrap();
        assert!(reader.next().now_or_never().is_none() && reader.is_within_a_large_frame());
    }
    let mut others: Vec<_> = (0..2).map(|_| sharing(&room)).collect();
    for (reader, writer) in &mut others {
        writer.write_all(&large(400_000)).await.unwrap();
        assert!(matches!(reader.next().now_or_never(), Some(Err(LinkError::Decode(_)))));
    }
}

#[tokio::test]
async fn who_goes_while_a_large_frame_waits_or_arrives_leaves_no_hole_in_the_room() {
    let room = FrameRoom::new(0);
    for _ in 0..3 {
        let ((mut holder, mut to_holder), (mut waiter, mut to_waiter)) = (sharing(&room), sharing(&room));
        for write in [&mut to_holder, &mut to_waiter] {
            write.write_all(&large(300_000)[..100_000]).await.unwrap();
        }
        assert!(holder.next().now_or_never().is_none());
        assert!(waiter.next().now_or_never().is_none());
    }
    let (mut last, mut to_last) = sharing(&room);
    to_last.write_all(&large(300_000)).await.unwrap();
    assert!(matches!(last.next().await, Err(LinkError::Decode(_))));
}

#[tokio::test(start_paused = true)]
async fn a_large_frame_that_trickles_does_not_keep_its_place() {
    let room = FrameRoom::new(0);
    let (mut reader, mut to_reader) = sharing(&room);
    let frame = large(300_000);
    to_reader.write_all(&frame[..100_000]).await.unwrap();
    let trickling = async {
        for byte in &frame[100_000..] {
            tokio::time::sleep(Duration::from_secs(1)).await;
            to_reader.write_all(&[*byte]).await.unwrap();
        }
    };
    tokio::select! {
        read = reader.next() => assert!(matches!(read, Err(LinkError::Slow { size: 299_996, .. })), "{read:?}"),
        () = trickling => panic!("it has all the time that it likes"),
    }
}

#[tokio::test(start_paused = true)]
async fn silence_counts_on_while_its_listener_has_other_things_to_do() {
    let (ours, theirs) = duplex(4_096);
    let (mut reader, _writer) = side(ours);
    let (_their_reader, mut their_writer) = side(theirs);
    let limit = Duration::from_secs(3);
    reader.agree(WireFormat::default(), Some(limit));
    for _ in 0..2 {
        assert!(tokio::time::timeout(Duration::from_secs(2), reader.next()).await.is_err());
        their_writer.put(&shutdown(1)).unwrap();
        their_writer.flush().await.unwrap();
        assert_eq!(reader.next().await.unwrap(), shutdown(1));
    }
    for _ in 0..2 {
        assert!(tokio::time::timeout(Duration::from_secs(1), reader.next()).await.is_err());
    }
    let last = tokio::time::timeout(Duration::from_secs(2), reader.next()).await;
    assert!(matches!(last, Ok(Err(LinkError::Silent { .. }))), "{last:?}");
}

#[tokio::test(start_paused = true)]
async fn what_came_while_nobody_read_is_no_silence() {
    let (ours, theirs) = duplex(4_096);
    let (mut reader, _writer) = side(ours);
    let (_their_reader, mut their_writer) = side(theirs);
    reader.agree(WireFormat::default(), Some(Duration::from_secs(3)));
    their_writer.put(&shutdown(1)).unwrap();
    their_writer.flush().await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(reader.next().await.unwrap(), shutdown(1));
}
