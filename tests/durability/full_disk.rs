//! A disk that many small messages filled to the last segment is drained to the last message, and takes more after that
//! (C-46).

use std::collections::BTreeSet;
use std::time::Duration;

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::{AcknowledgeMode, Destination, Error, Message, SendOptions};
use tokio::task::JoinSet;

use crate::support::{End, Home, Running, queue, size, text, within};

const MIB: u64 = 1 << 20;

/// As many as send at the same time.
const PRODUCERS: usize = 8;

fn small(name: &str) -> Message {
    Message::text(format!("{name:.<50}"))
}

fn name(message: &Message) -> String {
    text(message).trim_end_matches('.').to_owned()
}

/// Sends from all producers until each is told that the store is full; what was confirmed.
async fn fill(home: &Home, broker: &Running, to: &Destination, round: usize) -> BTreeSet<String> {
    let mut producers = JoinSet::new();
    for producer in 0..PRODUCERS {
        let (session, to) = (broker.session(Auto).await, to.clone());
        producers.spawn(async move {
            let options = SendOptions { deadline: Some(Duration::from_secs(2)), ..SendOptions::default() };
            let mut confirmed = Vec::new();
            for number in 1.. {
                let name = format!("r{round}p{producer}n{number}");
                match within(session.send(&to, &small(&name), &options)).await {
                    Ok(_) => confirmed.push(name),
                    Err(Error::Provider(error)) if error.lacks_room() => break,
                    Err(error) => panic!("{error:?}"),
                }
            }
            confirmed
        });
    }
    let producers = home.passing_time(producers.join_all()).await;
    producers.into_iter().flatten().collect()
}

/// Takes up to so many; none of their acknowledgements may be refused.
async fn take(broker: &Running, mode: AcknowledgeMode, from: &Destination, most: usize) -> BTreeSet<String> {
    let session = broker.session(mode).await;
    let consumer = session.create_consumer(from).await.unwrap();
    let mut taken = BTreeSet::new();
    while taken.len() < most
        && let Some(delivery) = within(consumer.receive_no_wait()).await.unwrap()
    {
        assert!(taken.insert(name(&delivery)), "{} came twice", name(&delivery));
        if mode == Client {
            within(delivery.acknowledge()).await.unwrap();
        } else if mode == Transacted && taken.len().is_multiple_of(100) {
            within(session.commit()).await.unwrap();
        }
    }
    if mode == Transacted {
        within(session.commit()).await.unwrap();
    }
    within(session.close()).await.unwrap();
    taken
}

/// Fills and drains it, and fills it again; each time the broker may come to an end in between.
async fn fill_and_drain(mut home: Home, ends: &[Option<End>]) {
    home.options.cleanup_interval = Duration::from_millis(100);
    home.settings.memory_limit = 256 << 20;
    let q = queue("q");
    let mut broker = home.start();
    let mut counts = Vec::new();
    for (round, end) in ends.iter().enumerate() {
        let mut confirmed = fill(&home, &broker, &q, round).await;
        counts.push(confirmed.len());
        if let Some(end) = end {
            broker = home.restart(broker, *end);
        }
        let some = confirmed.len() / 4;
        for (mode, most) in [(Client, some), (Transacted, some), (Auto, usize::MAX)] {
            for taken in take(&broker, mode, &q, most).await {
                assert!(confirmed.remove(&taken), "{taken} was not confirmed, or was taken before");
            }
        }
        assert_eq!(confirmed, BTreeSet::new(), "confirmed and lost in round {round}");
        // By itself, once there is room.
        let session = broker.session(Auto).await;
        within(session.send(&q, &small("again"), &SendOptions::default())).await.unwrap();
        assert_eq!(take(&broker, Client, &q, usize::MAX).await, BTreeSet::from(["again".to_owned()]));
        if let Some(end) = end {
            broker = home.restart(broker, *end);
            assert_eq!(
                take(&broker, Client, &q, usize::MAX).await,
                BTreeSet::new(),
                "acknowledged, and there again"
            );
        }
    }
    eprintln!("confirmed: {counts:?}");
    broker.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_disk_full_of_small_messages_is_drained_while_it_is_full() {
    let mut home = Home::on_small_disk(size("CORRIERE_DISK", 12) as u64 * MIB);
    home.options.max_file_length = size("CORRIERE_SEGMENT", 1) as u64 * MIB;
    fill_and_drain(home, &[None, Some(End::Stop)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_full_of_small_messages_is_drained_whatever_ended_before() {
    for (disk, segment) in [(2 * MIB, 64 << 10), (4 * MIB, 512 << 10)] {
        let mut home = Home::recorded();
        home.options.max_file_length = segment;
        home.memory().limit(Some(disk));
        fill_and_drain(home, &[None, Some(End::Kill), Some(End::Stop)]).await;
    }
}
