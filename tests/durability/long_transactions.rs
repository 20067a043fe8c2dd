//! Transactions of many batches.

use std::time::Duration;

use corriere_core::AcknowledgeMode::Transacted;
use corriere_core::{Message, SendOptions};

use crate::support::{End, Home, eventually, next, queue, send_text, size, text, within};

/// With `CORRIERE_TRANSACTION=100000` one of so many sends.
#[tokio::test]
async fn a_long_transaction_is_whole_after_a_restart_and_so_is_its_acknowledgement() {
    for end in [End::Stop, End::Kill] {
        let count = size("CORRIERE_TRANSACTION", 10_000);
        let mut home = Home::recorded();
        let q = queue("q");
        let broker = home.start();
        let session = broker.session(Transacted).await;
        for number in 0..count {
            send_text(&session, &q, &format!("m{number}")).await;
        }
        assert_eq!(broker.counts(&q).enqueued, 0);
        within(session.commit()).await.unwrap();
        let broker = home.restart(broker, end);
        assert_eq!(broker.counts(&q).pending, count as u64);
        let session = broker.session(Transacted).await;
        let consumer = session.create_consumer(&q).await.unwrap();
        for number in 0..count {
            assert_eq!(text(next(&consumer).await.message()), format!("m{number}"));
        }
        within(session.commit()).await.unwrap();
        let broker = home.restart(broker, end);
        assert_eq!(broker.drain(&q).await, [], "{end:?}");
        broker.stop();
    }
}

#[tokio::test]
async fn without_its_commit_nothing_of_it_is_there_and_what_it_took_is() {
    for end in [End::Stop, End::Kill, End::PowerCut(3)] {
        let mut home = Home::recorded();
        home.options.max_file_length = 16 * 1024;
        let q = queue("q");
        let broker = home.start();
        broker.send(&queue("in"), 1..=5).await;
        let session = broker.session(Transacted).await;
        let consumer = session.create_consumer(&queue("in")).await.unwrap();
        for _ in 0..5 {
            next(&consumer).await;
        }
        for _ in 0..60 {
            send_text(&session, &q, &"x".repeat(2_000)).await;
        }
        // Others go on meanwhile, so that it lies over several files with others in between.
        broker.send(&queue("other"), 1..=1).await;
        assert!(home.segments().len() > 5, "{:?}", home.segments());
        let broker = home.restart(broker, end);
        assert_eq!(broker.counts(&q).pending, 0, "{end:?}");
        assert_eq!(broker.drain(&queue("in")).await.len(), 5, "{end:?}");
        assert_eq!(broker.drain(&queue("other")).await.len(), 1, "{end:?}");
        broker.stop();
    }
}

#[tokio::test]
async fn a_transaction_over_several_files_is_whole() {
    for end in [End::Stop, End::Kill, End::PowerCut(3)] {
        let mut home = Home::recorded();
        home.options.max_file_length = 16 * 1024;
        let q = queue("q");
        let broker = home.start();
        let session = broker.session(Transacted).await;
        for number in 1..=60 {
            let message = Message::text(format!("m{number}.{}", "x".repeat(2_000)));
            within(session.send(&q, &message, &SendOptions::default())).await.unwrap();
        }
        within(session.commit()).await.unwrap();
        assert!(home.segments().len() > 5, "{:?}", home.segments());
        let broker = home.restart(broker, end);
        let seen = broker.drain(&q).await;
        assert_eq!(seen.len(), 60, "{end:?}");
        assert!(seen.iter().zip(1..).all(|(seen, number)| seen.text.starts_with(&format!("m{number}."))));
        broker.stop();
    }
}

/// Ten times what memory may hold.
#[tokio::test]
async fn a_transaction_larger_than_memory_is_whole_and_its_rollback_leaves_nothing() {
    for end in [None, Some(End::Stop), Some(End::Kill)] {
        let mut home = Home::recorded();
        home.settings.memory_limit = 64 * 1024;
        home.options.cleanup_interval = Duration::from_millis(20);
        let q = queue("q");
        let count = 160;
        let body = |number: usize| format!("m{number}.{}", "x".repeat(4_000));
        let mut broker = home.start();
        let session = broker.session(Transacted).await;
        for round in 0..2 {
            for number in 0..count {
                send_text(&session, &q, &body(number)).await;
            }
            if round == 0 {
                within(session.rollback()).await.unwrap();
            }
        }
        assert_eq!(broker.counts(&q).enqueued, 0);
        within(session.commit()).await.unwrap();
        if let Some(end) = end {
            broker = home.restart(broker, end);
        }
        assert_eq!(broker.counts(&q).pending, count as u64, "{end:?}");
        let session = broker.session(Transacted).await;
        let consumer = session.create_consumer(&q).await.unwrap();
        for number in 0..count {
            assert_eq!(text(next(&consumer).await.message()), body(number), "{end:?}");
        }
        within(session.commit()).await.unwrap();
        eventually("the journal without what is gone", || {
            let left = home.segments().len();
            if left <= 2 { Ok(()) } else { Err(format!("{left} segments")) }
        })
        .await;
        broker.stop();
    }
}
