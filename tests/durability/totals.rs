//! Totals since the data directory was made.

use corriere_broker::store::Totals;
use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::provider::Cause;
use corriere_core::{Destination, Message, Release, SendOptions};

use crate::support::{End, Home, Running, next, queue, send_text, within};

fn totals(broker: &Running, destination: &Destination) -> (u64, u64, u64) {
    let Totals { enqueued, acknowledged, dead_lettered } =
        broker.broker.totals(destination).unwrap_or_default();
    (enqueued, acknowledged, dead_lettered)
}

/// Twelve are sent of which two are rolled back and one is not kept; three are acknowledged, one dies.
async fn work(broker: &Running, q: &Destination) {
    let sender = broker.session(Auto).await;
    for _ in 0..5 {
        send_text(&sender, q, "m").await;
    }
    let options = SendOptions {
        delivery_mode: Some(corriere_core::DeliveryMode::NonPersistent),
        ..SendOptions::default()
    };
    within(sender.send(&queue("other"), &Message::text("not kept"), &options)).await.unwrap();
    let session = broker.session(Transacted).await;
    for _ in 0..2 {
        send_text(&session, q, "m").await;
    }
    within(session.rollback()).await.unwrap();
    for _ in 0..4 {
        send_text(&session, q, "m").await;
    }
    within(session.commit()).await.unwrap();
    let consumer = session.create_consumer(q).await.unwrap();
    next(&consumer).await;
    within(session.rollback()).await.unwrap();
    for _ in 0..2 {
        next(&consumer).await;
    }
    within(session.commit()).await.unwrap();
    within(session.close()).await.unwrap();
    let session = broker.session(Client).await;
    let consumer = session.create_consumer(q).await.unwrap();
    let delivery = next(&consumer).await;
    let cause = Cause::failure("no");
    within(delivery.release(Release::DeadLetter { cause })).await.unwrap();
    within(next(&consumer).await.acknowledge()).await.unwrap();
}

#[tokio::test]
async fn they_count_each_message_once_whatever_ended_the_broker() {
    for end in [End::Stop, End::Kill] {
        let mut home = Home::recorded();
        let q = queue("q");
        let mut broker = home.start();
        for round in 1..=4 {
            work(&broker, &q).await;
            assert_eq!(totals(&broker, &q), (9 * round, 3 * round, round), "{end:?} before it");
            broker = home.restart(broker, end);
            assert_eq!(totals(&broker, &q), (9 * round, 3 * round, round), "{end:?} after it");
            let counts = broker.counts(&q);
            assert_eq!((counts.recovered, counts.pending), (5 * round, 5 * round), "{end:?}");
            assert_eq!(totals(&broker, &queue("DLQ.q")), (0, 0, 0), "what is moved there was not sent there");
            assert_eq!(totals(&broker, &queue("other")), (0, 0, 0), "only what is kept is counted");
        }
        broker.stop();
    }
}

#[tokio::test]
async fn a_queue_that_is_empty_keeps_its_totals() {
    for mut home in [Home::on_disk(), Home::recorded()] {
        let q = queue("q");
        let mut broker = home.start();
        broker.send(&q, 1..=7).await;
        assert_eq!(broker.drain(&q).await.len(), 7);
        for _ in 0..3 {
            broker = home.restart(broker, End::Stop);
            assert_eq!(totals(&broker, &q), (7, 7, 0));
        }
        assert!(broker.broker.destinations().contains(&q));
        broker.stop();
    }
}
