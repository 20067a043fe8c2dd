//! Many producers and consumers of mixed modes on one queue, and bodies of extreme sizes among each other.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::{Connection, Consumer, DeliveryMode, Destination, Message, SendOptions};
use tokio::task::JoinSet;

use crate::support::{broker, connect, within};

const CROWD: u64 = 64;
const MESSAGES: u64 = 50;

/// Who has seen what, and how far each consumer is with each producer.
#[derive(Debug, Default)]
struct Seen {
    times: HashMap<(u64, u64), u32>,
    last: HashMap<(u64, u64), u64>,
}

impl Seen {
    fn note(&mut self, consumer: u64, message: &Message) {
        let (producer, number) = message.as_text().unwrap().unwrap().split_once(' ').unwrap();
        let (producer, number) = (producer.parse().unwrap(), number.parse().unwrap());
        *self.times.entry((producer, number)).or_default() += 1;
        let last = self.last.insert((consumer, producer), number);
        assert!(last.is_none_or(|last| last < number), "{producer} {number} after {last:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_producers_and_consumers_of_mixed_modes_lose_and_repeat_nothing() {
    let broker = broker(256 * 1024);
    let q = Destination::queue("q").unwrap();
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let handled = Arc::new(AtomicU64::new(0));
    let shared = connect(&broker).await;
    let mut tasks = JoinSet::new();
    for number in 0..CROWD {
        // Half of them share a connection.
        let connection = if number % 2 == 0 { shared.clone() } else { connect(&broker).await };
        tasks.spawn(consume(number, connection.clone(), q.clone(), Arc::clone(&seen), Arc::clone(&handled)));
        tasks.spawn(produce(number, connection, q.clone()));
    }
    within(async {
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
    })
    .await;
    let counts = broker.counts(&q).unwrap();
    assert!(counts.are_conserved(), "{counts:?}");
    assert_eq!((counts.enqueued, counts.acknowledged), (CROWD * MESSAGES, CROWD * MESSAGES));
    assert_eq!((counts.redelivered, broker.memory_used()), (0, 0));
    let seen = seen.lock().unwrap();
    assert_eq!(seen.times.len() as u64, CROWD * MESSAGES);
    assert!(seen.times.values().all(|times| *times == 1));
}

async fn produce(number: u64, connection: Connection, q: Destination) {
    let session =
        connection.create_session(if number.is_multiple_of(3) { Transacted } else { Auto }).await.unwrap();
    let delivery_mode =
        if number.is_multiple_of(4) { DeliveryMode::NonPersistent } else { DeliveryMode::Persistent };
    let options = SendOptions { delivery_mode: Some(delivery_mode), ..SendOptions::default() };
    let producer = session.create_producer(Some(&q)).await.unwrap().with_options(options);
    for message in 1..=MESSAGES {
        producer.send(&Message::text(format!("{number} {message}"))).await.unwrap();
        if session.is_transacted() && (message % 7 == 0 || message == MESSAGES) {
            session.commit().await.unwrap();
        }
    }
}

async fn consume(
    number: u64,
    connection: Connection,
    q: Destination,
    seen: Arc<Mutex<Seen>>,
    handled: Arc<AtomicU64>,
) {
    const ALL: u64 = CROWD * MESSAGES;
    let mode = [Auto, Client, Transacted][(number % 3) as usize];
    let session = connection.create_session(mode).await.unwrap();
    let prefetch = [0, 1, 10, 100][(number / 3 % 4) as usize];
    let consumer = session.create_consumer_with_prefetch(&q, prefetch).await.unwrap();
    if number.is_multiple_of(5) && prefetch > 0 && mode == Auto {
        return listen(number, &consumer, seen, handled).await;
    }
    while handled.load(Ordering::Relaxed) < ALL {
        // A few at a time, then all of them settled.
        let mut batch = 0;
        while batch < 5
            && let Some(delivery) = consumer.receive_timeout(Duration::from_millis(5)).await.unwrap()
        {
            seen.lock().unwrap().note(number, &delivery);
            batch += 1;
            if mode == Client && prefetch == 1 {
                // Half of one, rounded up, may be handed out beside it.
                break;
            }
        }
        match mode {
            Client => session.acknowledge().await.unwrap(),
            Transacted => session.commit().await.unwrap(),
            _ => {}
        }
        handled.fetch_add(batch, Ordering::Relaxed);
    }
}

async fn listen(number: u64, consumer: &Consumer, seen: Arc<Mutex<Seen>>, handled: Arc<AtomicU64>) {
    let all_handled = Arc::clone(&handled);
    consumer
        .set_message_listener(move |delivery| {
            seen.lock().unwrap().note(number, &delivery);
            let handled = Arc::clone(&handled);
            async move {
                delivery.acknowledge().await?;
                handled.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        })
        .unwrap();
    while all_handled.load(Ordering::Relaxed) < CROWD * MESSAGES {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    consumer.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_of_nothing_and_of_64_mib_among_each_other_arrive_whole_within_the_limit() {
    const LARGE: usize = 64 << 20;
    const LIMIT: u64 = 100 << 20;
    let broker = broker(LIMIT);
    let q = Destination::queue("q").unwrap();
    let mut tasks = JoinSet::new();
    for sender in 0..4_u8 {
        let session = connect(&broker).await.create_session(Auto).await.unwrap();
        let q = q.clone();
        tasks.spawn(async move {
            for size in [0, LARGE, 1, 0] {
                let message = Message::bytes(vec![sender; size]);
                session.send(&q, &message, &SendOptions::default()).await.unwrap();
            }
        });
    }
    let session = connect(&broker).await.create_session(Client).await.unwrap();
    let consumer = session.create_consumer(&q).await.unwrap();
    let mut sizes = Vec::new();
    for _ in 0..16 {
        assert!(broker.memory_used() <= LIMIT);
        let delivery = within(consumer.receive()).await.unwrap().unwrap();
        let body = delivery.as_bytes().unwrap().as_bytes().clone();
        assert!(body.windows(2).step_by(4_096).all(|pair| pair[0] == pair[1]));
        sizes.push(body.len());
        delivery.acknowledge().await.unwrap();
    }
    within(async { while tasks.join_next().await.transpose().unwrap().is_some() {} }).await;
    sizes.sort_unstable();
    assert_eq!(sizes, [vec![0; 8], vec![1; 4], vec![LARGE; 4]].concat());
    drop((session, consumer));
    assert_eq!(broker.memory_used(), 0);
}
