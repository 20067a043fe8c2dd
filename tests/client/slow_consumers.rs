//! Consumers that stand still by their own doing are told of, on their connection and nowhere else.

use std::sync::{Arc, Mutex};

use corriere_core::AcknowledgeMode::{Auto, Client};
use corriere_core::Session;
use corriere_core::SlowConsumer;

use crate::support::{TestBroker, eventually, next, queue, within};

/// What is told over the connection of a session.
fn told_over(session: &Session) -> Arc<Mutex<Vec<SlowConsumer>>> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&told);
    session.connection().on_slow_consumer(move |slow| noted.lock().unwrap().push(slow.clone())).unwrap();
    told
}

async fn until_told(told: &Mutex<Vec<SlowConsumer>>, times: usize) {
    eventually("a slow consumer", || {
        let told = told.lock().unwrap();
        if told.len() >= times { Ok(()) } else { Err(format!("{told:?}")) }
    })
    .await;
}

#[tokio::test]
async fn a_consumer_that_has_used_up_its_window_is_told_of_once_and_again_only_after_it_had_room() {
    let broker = TestBroker::start();
    let (q, session) = (queue("q"), broker.session(Client).await);
    let neighbour = broker.session(Auto).await;
    let (told, told_elsewhere) = (told_over(&session), told_over(&neighbour));
    // Four, and two more for what it was handed.
    let consumer = session.create_consumer_with_prefetch(&q, 4).await.unwrap();
    broker.send_numbered(&q, 6).await;
    for _ in 0..6 {
        next(&consumer).await;
    }
    assert!(told.lock().unwrap().is_empty(), "nothing waits for it");
    broker.send_numbered(&q, 1).await;
    until_told(&told, 1).await;
    broker.send_numbered(&q, 1).await;
    within(session.acknowledge()).await.unwrap();
    for _ in 0..2 {
        next(&consumer).await;
    }
    broker.send_numbered(&q, 4).await;
    for _ in 0..4 {
        next(&consumer).await;
    }
    assert_eq!(told.lock().unwrap().len(), 1, "once, whatever else came");
    broker.send_numbered(&q, 2).await;
    until_told(&told, 2).await;
    within(session.acknowledge()).await.unwrap();
    for _ in 0..2 {
        next(&consumer).await;
    }
    within(session.acknowledge()).await.unwrap();
    broker.until(&q, |counts| counts.pending == 0).await;
    let told: Vec<_> =
        told.lock().unwrap().iter().map(|slow| (slow.destination.clone(), slow.unacknowledged)).collect();
    assert_eq!(told, [(q.clone(), 6), (q, 6)]);
    assert!(told_elsewhere.lock().unwrap().is_empty());
}
