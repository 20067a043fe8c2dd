//! INDIVIDUAL sessions: messages that are finished in another order than they came.

use std::sync::{Arc, Mutex};

use corriere_core::AcknowledgeMode::Individual;
use corriere_core::Error;
use tokio::sync::Notify;

use crate::support::{TestBroker, nth, others_run, queue, text, within};

/// C-07 (d).
#[tokio::test]
async fn an_acknowledgement_from_another_thread_after_the_connection_closed_is_an_error_and_hangs_nobody() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send(&q, ["m5"]).await;
    let session = broker.session(Individual).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let m5 = within(consumer.take()).await.unwrap().unwrap();
    session.connection().close().await.unwrap();
    let acknowledged = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move { within(m5.acknowledge()).await })
    });
    let error = acknowledged.join().unwrap().unwrap_err();
    assert!(matches!(error, Error::IllegalState { .. }), "{error:?}");
    assert_eq!(broker.drain(&q).await, [nth("m5", 2)]);
}

/// C-08 (b).
#[tokio::test]
async fn listeners_that_finish_out_of_order_acknowledge_each_its_own_without_error() {
    let broker = TestBroker::start();
    let q = queue("q");
    let connection = broker.connect().await;
    let second_done = Arc::new(Notify::new());
    let finished = Arc::new(Mutex::new(Vec::new()));
    let mut consumers = Vec::new();
    for _ in 0..2 {
        let session = connection.create_session(Individual).await.unwrap();
        let consumer = session.create_consumer_with_prefetch(&q, 1).await.unwrap();
        let (second_done, finished) = (Arc::clone(&second_done), Arc::clone(&finished));
        consumer
            .set_message_listener(move |delivery| {
                let (second_done, finished) = (Arc::clone(&second_done), Arc::clone(&finished));
                async move {
                    let is_first = text(&delivery) == "m1";
                    if is_first {
                        second_done.notified().await;
                    }
                    let outcome = delivery.acknowledge().await;
                    finished.lock().unwrap().push((text(&delivery).to_owned(), outcome));
                    if !is_first {
                        second_done.notify_one();
                    }
                    Ok(())
                }
            })
            .unwrap();
        consumers.push(consumer);
    }
    broker.send_numbered(&q, 2).await;
    broker.until(&q, |counts| counts.acknowledged == 2 && counts.pending == 0).await;
    others_run().await;
    assert_eq!(*finished.lock().unwrap(), [("m2".to_owned(), Ok(())), ("m1".to_owned(), Ok(()))]);
    assert!(connection.is_open());
}
