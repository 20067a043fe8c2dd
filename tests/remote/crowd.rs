//! Many at work over one connection, on several threads.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::{DeliveryMode, Message, SendOptions};

use crate::peer::{ENDLESS, Peer, text, within};

const WORKERS: usize = 6;
const EACH: usize = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_of_one_connection_lose_and_double_nothing_over_our_own_acceptor() {
    crowd(&Peer::corriere().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_of_one_connection_lose_and_double_nothing_over_activemq() {
    crowd(&Peer::activemq()).await;
}

async fn crowd(peer: &Peer) {
    let q = peer.queue("q");
    let connection = peer.connect(ENDLESS).await;
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        let (connection, q) = (connection.clone(), q.clone());
        tasks.spawn(async move {
            let session = within(connection.create_session(Auto)).await.unwrap();
            for number in 0..EACH {
                let mode =
                    if number % 2 == 0 { DeliveryMode::Persistent } else { DeliveryMode::NonPersistent };
                let options = SendOptions { delivery_mode: Some(mode), ..SendOptions::default() };
                let message = Message::text(format!("{worker}/{number}"));
                within(session.send(&q, &message, &options)).await.unwrap();
            }
        });
    }
    for worker in 0..WORKERS {
        let (connection, q, seen) = (connection.clone(), q.clone(), Arc::clone(&seen));
        tasks.spawn(async move {
            let mode = [Auto, Client, Transacted][worker % 3];
            let session = within(connection.create_session(mode)).await.unwrap();
            let consumer =
                within(session.create_consumer_with_prefetch(&q, worker as u32 * 3)).await.unwrap();
            while seen.lock().unwrap().len() < WORKERS * EACH {
                let wait = std::time::Duration::from_millis(20);
                let Some(delivery) = within(consumer.receive_timeout(wait)).await.unwrap() else { continue };
                match mode {
                    Auto => {}
                    Client => within(delivery.acknowledge()).await.unwrap(),
                    _ => within(session.commit()).await.unwrap(),
                }
                assert!(
                    seen.lock().unwrap().insert(text(&delivery).to_owned()),
                    "{} came twice",
                    text(&delivery)
                );
            }
            within(session.close()).await.unwrap();
        });
    }
    while let Some(done) = within(tasks.join_next()).await {
        done.unwrap();
    }
    assert_eq!(peer.drain(&q, 0).await, []);
}
