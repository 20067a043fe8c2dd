//! How often a message was delivered, as a broker knows it that was started again (C-02, C-09).

use corriere_core::AcknowledgeMode::{Client, Transacted};
use corriere_core::Consumer;

use crate::support::{End, Home, Seen, firsts, noted, nth, property, queue, see, within};

/// C-09.
#[tokio::test]
async fn a_stop_in_order_loses_no_count_and_no_flag() {
    for mut home in [Home::on_disk(), Home::recorded()] {
        let q = queue("q");
        let broker = home.start();
        broker.send(&q, 1..=10).await;
        for (handed, expected) in [(5, firsts(1..=5)), (10, counted(2, 1))] {
            let session = broker.session(Client).await;
            let consumer = session.create_consumer_with_prefetch(&q, 0).await.unwrap();
            assert_eq!(see(&consumer, handed).await, expected);
            session.close().await.unwrap();
        }
        let broker = home.restart(broker, End::Stop);
        assert_eq!(broker.counts(&q).recovered, 10);
        assert_eq!(broker.drain(&q).await, counted(3, 2));
        broker.stop();
    }
}

/// C-09: what the application has while the broker stops has been delivered.
#[tokio::test]
async fn what_is_in_hand_while_the_broker_stops_is_counted() {
    for mut home in [Home::on_disk(), Home::recorded()] {
        let q = queue("q");
        let broker = home.start();
        broker.send(&q, 1..=10).await;
        let consumer = broker.consumer(Client, &q).await;
        see(&consumer, 5).await;
        let broker = home.restart(broker, End::Stop);
        assert_eq!(broker.drain(&q).await, counted(2, 1));
        broker.stop();
    }
}

/// C-09: of several in the same hands the last one counts for certain, and none more than it was delivered.
#[tokio::test]
async fn after_a_crash_no_count_is_lost_that_was_settled_and_none_is_too_high() {
    for end in [End::Kill, End::PowerCut(1), End::PowerCut(2), End::PowerCut(3)] {
        let mut home = Home::recorded();
        let q = queue("q");
        let broker = home.start();
        broker.send(&q, 1..=10).await;
        let session = broker.session(Client).await;
        let consumer = session.create_consumer_with_prefetch(&q, 0).await.unwrap();
        assert_eq!(see(&consumer, 5).await, firsts(1..=5));
        within(session.close()).await.unwrap();
        // So that a power cut does not take what the close has written.
        broker.send(&queue("other"), 1..=1).await;
        let session = broker.session(Client).await;
        let consumer = session.create_consumer_with_prefetch(&q, 0).await.unwrap();
        assert_eq!(see(&consumer, 10).await, counted(2, 1));
        noted(&session).await;
        let broker = home.restart(broker, end);
        let seen = broker.drain(&q).await;
        assert_eq!(seen.len(), 10, "{end:?}");
        for (seen, most) in seen.iter().zip(counted(3, 2)) {
            assert_eq!(seen.text, most.text);
            let least = most.count - 1;
            assert!((least..=most.count).contains(&seen.count), "{end:?}: {seen:?}, at most {most:?}");
            assert_eq!(seen.redelivered, seen.count > 1, "{end:?}: {seen:?}");
        }
        if matches!(end, End::Kill) {
            assert_eq!(seen[9], nth("m10", 2), "it was the last that went into the application's hands");
        }
        broker.stop();
    }
}

/// Decision 4.
#[tokio::test]
async fn a_handler_that_kills_its_process_makes_its_message_a_dead_letter() {
    let mut home = Home::recorded();
    let q = queue("q");
    let mut broker = home.start();
    broker.send(&q, 1..=3).await;
    for count in 1..=3 {
        let consumer = broker.consumer(Transacted, &q).await;
        assert_eq!(see(&consumer, 1).await, [nth("m1", count)]);
        noted(consumer.session()).await;
        broker = home.restart(broker, End::Kill);
    }
    assert_eq!(broker.drain(&q).await, firsts(2..=3));
    let dead = broker.session(Client).await.create_consumer(&queue("DLQ.q")).await.unwrap();
    let dead = crate::support::next(&dead).await;
    assert_eq!(crate::support::text(&dead), "m1");
    assert_eq!(property(&dead, "JMSXDeliveryCount").as_deref(), Some("3"));
    assert_eq!(property(&dead, "dlqOriginalDestination").as_deref(), Some("queue://q"));
    assert!(property(&dead, "dlqDeliveryFailureCause").is_some_and(|cause| !cause.is_empty()));
    broker.stop();
}

#[tokio::test]
async fn what_was_settled_before_a_kill_is_not_counted_against_the_next_message() {
    let mut home = Home::recorded();
    let q = queue("q");
    let broker = home.start();
    broker.send(&q, 1..=4).await;
    let session = broker.session(Client).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    see(&consumer, 2).await;
    within(session.acknowledge()).await.unwrap();
    let broker = home.restart(broker, End::Kill);
    assert_eq!(broker.drain(&q).await, firsts(3..=4));
    broker.stop();
}

/// C-02, over restarts.
#[tokio::test]
async fn what_only_sat_in_a_buffer_is_not_counted_by_a_restart() {
    for end in [End::Stop, End::Kill] {
        let mut home = Home::recorded();
        let q = queue("q");
        let mut broker = home.start();
        broker.send(&q, 1..=20).await;
        let mut seen = Vec::new();
        for _ in 0..5 {
            let session = broker.session(Transacted).await;
            let consumer = session.create_consumer_with_prefetch(&q, 20).await.unwrap();
            seen.extend(see(&consumer, 1).await);
            within(session.rollback()).await.unwrap();
            close(&consumer).await;
            broker = home.restart(broker, end);
        }
        assert_eq!(seen, [nth("m1", 1), nth("m1", 2), nth("m1", 3), nth("m2", 1), nth("m2", 2)], "{end:?}");
        let session = broker.session(Transacted).await;
        let consumer = session.create_consumer_with_prefetch(&q, 20).await.unwrap();
        let mut expected = vec![nth("m2", 3)];
        expected.extend(firsts(3..=20));
        assert_eq!(see(&consumer, 19).await, expected, "{end:?}");
        within(session.commit()).await.unwrap();
        let broker = home.restart(broker, end);
        assert_eq!(broker.drain(&q).await, [], "{end:?}");
        assert_eq!(broker.drain(&queue("DLQ.q")).await, firsts(1..=1), "{end:?}");
        broker.stop();
    }
}

/// `m1` to `m5` and `m6` to `m10`, delivered so many times.
fn counted(first: u32, second: u32) -> Vec<Seen> {
    (1..=10).map(|number| nth(&format!("m{number}"), if number <= 5 { first } else { second })).collect()
}

async fn close(consumer: &Consumer) {
    within(consumer.close()).await.unwrap();
}
