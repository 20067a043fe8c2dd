//! Bodies beyond a segment and beyond memory (C-55).

use std::path::PathBuf;
use std::time::Duration;

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::{Message, SendOptions, Session};

use crate::support::{End, Home, Running, next, property, queue, within};

const MIB: usize = 1 << 20;
const MEMORY: u64 = 32 * MIB as u64;

/// Bytes that show where they were cut or swapped, with their checksum in a property.
fn body(size: usize) -> Message {
    let pattern: Vec<u8> = (0..65_521_u32).map(|index| (index ^ (index >> 8)) as u8).collect();
    let mut bytes = pattern.repeat(size / pattern.len() + 1);
    bytes.truncate(size);
    for (index, block) in bytes.chunks_mut(65_521).enumerate() {
        block[0] = block[0].wrapping_add(index as u8);
    }
    let checksum = checksum(&bytes);
    let mut message = Message::bytes(bytes);
    message.set_property("checksum", checksum).unwrap();
    message
}

fn checksum(bytes: &[u8]) -> String {
    format!("{} bytes, {:08x}", bytes.len(), crc32c::crc32c(bytes))
}

/// What is wrong with a message by its own word.
fn assert_whole(message: &Message, station: &str) {
    let found = checksum(message.as_bytes().unwrap().as_bytes());
    assert_eq!(property(message, "checksum"), Some(found), "{station}");
}

/// Disk, with the files of the default size.
fn on_disk() -> Home {
    let mut home = Home::on_disk();
    home.options.max_file_length = 32 * MIB as u64;
    home.settings.memory_limit = MEMORY;
    home
}

async fn send(session: &Session, message: &Message, options: &SendOptions) {
    within(session.send(&queue("q"), message, options)).await.unwrap();
}

/// One that may be larger than all of the memory is let in when nothing else is there.
fn assert_bounded(broker: &Running, size: usize, station: &str) {
    let used = broker.broker.memory_used();
    let bound = MEMORY.max(size as u64 + 4_096);
    assert!(used <= bound, "{used} bytes are used {station}; expected at most {bound}");
}

/// C-55.
#[tokio::test]
async fn they_are_whole_at_every_station_from_nothing_to_twice_the_memory() {
    for size in [0, 1, 10_000_000, 64 * MIB] {
        let mut home = on_disk();
        let q = queue("q");
        let message = body(size);
        let broker = home.start();
        send(&broker.session(Auto).await, &message, &SendOptions::default()).await;
        assert_bounded(&broker, size, "after the send");
        let mut broker = home.restart(broker, End::Stop);
        for count in 1..=3 {
            let session = broker.session(Transacted).await;
            let consumer = session.create_consumer(&q).await.unwrap();
            let delivery = next(&consumer).await;
            assert_eq!(delivery.count(), count);
            assert_whole(&delivery, "at its delivery");
            assert_bounded(&broker, size, "at its delivery");
            drop(delivery);
            within(session.rollback()).await.unwrap();
            drop(consumer);
            if count == 2 {
                broker = home.restart(broker, End::Stop);
            }
        }
        let dead = queue("DLQ.q");
        broker.until(&dead, |counts| counts.pending == 1).await;
        let broker = home.restart(broker, End::Stop);
        let delivery = next(&broker.consumer(Client, &dead).await).await;
        assert_whole(&delivery, "among the dead letters");
        within(delivery.acknowledge()).await.unwrap();
        broker.stop();
        let broker = home.start();
        broker.stop();
        assert_eq!(home.large_files(), Vec::<PathBuf>::new(), "what is dead leaves no file");
    }
}

/// C-55.
#[tokio::test]
async fn an_expired_one_is_whole_among_the_dead_letters() {
    for size in [1, 10_000_000] {
        let mut home = on_disk();
        let broker = home.start();
        let options = SendOptions { time_to_live: Some(Duration::from_secs(1)), ..SendOptions::default() };
        send(&broker.session(Auto).await, &body(size), &options).await;
        let broker = home.restart(broker, End::Stop);
        home.clock.advance(Duration::from_secs(2));
        broker.until(&queue("DLQ.q"), |counts| counts.pending == 1).await;
        let broker = home.restart(broker, End::Stop);
        assert_whole(next(&broker.consumer(Auto, &queue("DLQ.q")).await).await.message(), "after its expiry");
        broker.stop();
    }
}

/// C-55.
#[tokio::test]
async fn many_of_them_need_no_more_memory_than_there_is() {
    let mut home = on_disk();
    let broker = home.start();
    let session = broker.session(Auto).await;
    let message = body(10_000_000);
    for number in 1..=10 {
        send(&session, &message, &SendOptions::default()).await;
        assert_bounded(&broker, 0, &format!("after {number} sends"));
    }
    let broker = home.restart(broker, End::Stop);
    // What consumers have been sent is in memory whatever the limit, so their windows are of one.
    let (one, other) = (broker.session(Auto).await, broker.session(Auto).await);
    let one = one.create_consumer_with_prefetch(&queue("q"), 1).await.unwrap();
    let other = other.create_consumer_with_prefetch(&queue("q"), 1).await.unwrap();
    for _ in 0..10 {
        // Whichever has one; a receive that is dropped loses nothing.
        let delivery = tokio::select! {
            delivery = next(&one) => delivery,
            delivery = next(&other) => delivery,
        };
        assert_whole(delivery.message(), "at one of two consumers");
        assert_bounded(&broker, 0, "while two consume");
    }
    assert_eq!(broker.counts(&queue("q")).pending, 0);
    broker.stop();
}

/// C-55. The sender's process ends at every point of the way of a large body to the disk.
#[tokio::test]
async fn a_sender_that_dies_half_way_leaves_all_of_it_or_nothing() {
    let message = body(MIB);
    for step in 1..=400 {
        let mut home = Home::recorded();
        let broker = home.start();
        // The spares, which are made in the background, are on the way of nothing here.
        let files = home.memory().clone();
        files.crash_at(files.operations() + step, step);
        let session = broker.session(Auto).await;
        let sent = within(session.send(&queue("q"), &message, &SendOptions::default())).await;
        let end = if step % 2 == 0 { End::Kill } else { End::PowerCut(step) };
        let broker = home.restart(broker, end);
        let pending = broker.counts(&queue("q")).pending;
        assert!(pending == 1 || sent.is_err(), "a confirmed one is gone; {:?}", files.log());
        assert_eq!(home.large_files().len() as u64, pending, "step {step}: {:?}", home.large_files());
        if pending == 1 {
            assert_whole(next(&broker.consumer(Auto, &queue("q")).await).await.message(), "after a crash");
        }
        broker.stop();
        if sent.is_ok() {
            assert!(step > 3, "the crash came too late");
            return;
        }
    }
    panic!("the send was never confirmed");
}
