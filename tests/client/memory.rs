//! Sends that wait for memory at the broker.

use std::time::Duration;

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::provider::ProviderError;
use corriere_core::{Error, Message, SendOptions};

use crate::support::{
    Log, TestBroker, first, next, others_run, queue, see, send_text, settings, text, within,
};

const LIMIT: u64 = 10_000;

fn full() -> TestBroker {
    TestBroker::with(corriere_broker::Settings { memory_limit: LIMIT, ..settings() })
}

fn large(text: &str) -> Message {
    Message::text(format!("{text}{}", " ".repeat(6_000)))
}

#[tokio::test]
async fn a_send_at_the_limit_waits_and_goes_on_when_there_is_room() {
    let broker = full();
    let q = queue("q");
    let session = broker.session(Auto).await;
    session.send(&q, &large("m1"), &SendOptions::default()).await.unwrap();
    let sends: Vec<_> = (2..=4)
        .map(|number| {
            let (session, q) = (session.clone(), q.clone());
            tokio::spawn(async move {
                session.send(&q, &large(&format!("m{number}")), &SendOptions::default()).await
            })
        })
        .collect();
    others_run().await;
    assert!(sends.iter().all(|send| !send.is_finished()));
    assert!(broker.broker.memory_used() <= LIMIT);
    let consumer = session.create_consumer(&q).await.unwrap();
    for number in 1..=4 {
        let delivery = next(&consumer).await;
        assert_eq!(text(&delivery).trim_end(), format!("m{number}"), "they wait in the order of their sends");
    }
    for send in sends {
        within(send).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn at_its_deadline_a_send_fails_by_name_while_acknowledgements_go_on() {
    let broker = full();
    let q = queue("q");
    let sender = broker.session(Auto).await;
    let session = broker.session(Client).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    send_text(&sender, &q, "small").await;
    sender.send(&q, &large("m1"), &SendOptions::default()).await.unwrap();
    let options = SendOptions { deadline: Some(Duration::from_secs(5)), ..SendOptions::default() };
    let send = tokio::spawn({
        let (sender, q) = (sender.clone(), q.clone());
        async move { sender.send(&q, &large("m2"), &options).await }
    });
    others_run().await;
    broker.clock.advance(Duration::from_millis(4_999));
    others_run().await;
    assert!(!send.is_finished());
    // The small one makes too little room, and is acknowledged all the same.
    assert_eq!(see(&consumer, 1).await.remove(0).text, "small");
    within(session.acknowledge()).await.unwrap();
    assert_eq!(broker.counts(&q).acknowledged, 1);
    broker.clock.advance(Duration::from_millis(1));
    let error = within(send).await.unwrap().unwrap_err();
    let Error::Provider(ProviderError::MemoryFull { destination, waited, limit, .. }) = &error else {
        panic!("{error:?}");
    };
    assert_eq!((destination.as_str(), *waited, *limit), ("queue://q", Duration::from_secs(5), LIMIT));
    next(&consumer).await;
    session.acknowledge().await.unwrap();
    assert_eq!((broker.broker.memory_used(), broker.counts(&q).enqueued), (0, 2));
}

#[tokio::test]
async fn the_deadline_of_the_send_goes_before_that_of_the_url_and_that_before_the_brokers() {
    let broker = TestBroker::with(corriere_broker::Settings {
        memory_limit: LIMIT,
        send_deadline: Duration::from_secs(30),
        ..settings()
    });
    let q = queue("q");
    let filler = broker.session(Auto).await;
    filler.send(&q, &large("m1"), &SendOptions::default()).await.unwrap();
    for (url, own, expected) in [
        ("", None, 30),
        ("jms.sendTimeout=0", None, 30),
        ("jms.sendTimeout=10000", None, 10),
        ("jms.sendTimeout=10000", Some(Duration::from_secs(3)), 3),
    ] {
        let connection = broker.factory(url).create_connection().await.unwrap();
        let session = connection.create_session(Auto).await.unwrap();
        let options = SendOptions { deadline: own, ..SendOptions::default() };
        let to = q.clone();
        let send = tokio::spawn(async move { session.send(&to, &large("m2"), &options).await });
        others_run().await;
        broker.clock.advance(Duration::from_secs(expected) - Duration::from_millis(1));
        others_run().await;
        assert!(!send.is_finished(), "{url} {own:?}");
        broker.clock.advance(Duration::from_millis(1));
        within(send).await.unwrap().unwrap_err();
    }
    assert_eq!(broker.counts(&q).enqueued, 1);
}

#[tokio::test]
async fn a_single_message_beyond_the_limit_is_taken_when_nothing_else_is_there() {
    let broker = full();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    for _ in 0..3 {
        within(session.send(&q, &Message::bytes(vec![7; 50_000]), &SendOptions::default())).await.unwrap();
        assert_eq!(next(&consumer).await.as_bytes().unwrap().len(), 50_000);
    }
    assert_eq!(broker.broker.memory_used(), 0);
}

#[tokio::test]
async fn a_message_beyond_the_limit_that_waits_is_passed_by_other_producers() {
    let broker = full();
    let q = queue("q");
    let session = broker.session(Auto).await;
    send_text(&session, &q, "m1").await;
    let to = q.clone();
    let greedy = broker.session(Auto).await;
    let oversized = tokio::spawn(async move {
        greedy.send(&to, &Message::bytes(vec![7; 50_000]), &SendOptions::default()).await
    });
    others_run().await;
    assert!(!oversized.is_finished());
    send_text(&session, &q, "m2").await;
    let consumer = session.create_consumer(&q).await.unwrap();
    assert_eq!(see(&consumer, 2).await, [first("m1"), first("m2")]);
    within(oversized).await.unwrap().unwrap();
    assert_eq!(next(&consumer).await.as_bytes().unwrap().len(), 50_000);
}

#[tokio::test]
async fn full_memory_names_the_dead_letters_that_fill_it_and_is_logged_once() {
    let (log, _guard) = Log::capture();
    let broker = full();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let brief = SendOptions { time_to_live: Some(Duration::from_secs(1)), ..SendOptions::default() };
    session.send(&q, &large("m1"), &brief).await.unwrap();
    broker.clock.advance(Duration::from_secs(1));
    broker.until(&queue("DLQ.q"), |counts| counts.pending == 1).await;
    send_text(&session, &queue("other"), "small").await;
    let hasty = SendOptions { deadline: Some(Duration::ZERO), ..SendOptions::default() };
    for _ in 0..2 {
        let error = session.send(&q, &large("m2"), &hasty).await.unwrap_err();
        let Error::Provider(ProviderError::MemoryFull { holders, .. }) = &error else { panic!("{error:?}") };
        let names: Vec<_> = holders.iter().map(|holder| &*holder.destination).collect();
        assert_eq!(names, ["queue://DLQ.q", "queue://other"]);
        assert_eq!(holders.iter().map(|holder| holder.bytes).sum::<u64>(), broker.broker.memory_used());
        assert!(!error.to_string().contains("waited"), "{error}");
    }
    assert_eq!(log.lines_with("because memory is full"), 1);
    assert_eq!(log.lines_with("queue://DLQ.q"), 1);
}

#[tokio::test]
async fn a_send_that_waits_when_its_connection_closes_is_not_sent() {
    let broker = full();
    let q = queue("q");
    let filler = broker.session(Auto).await;
    filler.send(&q, &large("m1"), &SendOptions::default()).await.unwrap();
    let session = broker.session(Auto).await;
    let connection = session.connection();
    let to = q.clone();
    let send = tokio::spawn(async move { session.send(&to, &large("m2"), &SendOptions::default()).await });
    others_run().await;
    within(connection.close()).await.unwrap();
    within(send).await.unwrap().unwrap_err();
    assert_eq!(broker.drain(&q).await.len(), 1);
    assert_eq!((broker.counts(&q).enqueued, broker.broker.memory_used()), (1, 0));
}

#[tokio::test]
async fn a_transacted_consumer_sends_on_while_producers_fill_memory() {
    let broker = full();
    let [orders, mails] = ["orders", "mails"].map(queue);
    let producer = broker.session(Auto).await;
    let to = orders.clone();
    let crowd = tokio::spawn(async move {
        for number in 1..=50 {
            let order = large(&format!("m{number}"));
            producer.send(&to, &order, &SendOptions::default()).await.unwrap();
        }
    });
    let session = broker.session(Transacted).await;
    let consumer = session.create_consumer(&orders).await.unwrap();
    for number in 1..=50 {
        let order = next(&consumer).await;
        assert_eq!((text(&order).trim_end(), order.count()), (&*format!("m{number}"), 1));
        send_text(&session, &mails, text(&order).trim_end()).await;
        within(session.commit()).await.unwrap();
        drop(order);
        // What is sent on is taken, or it would fill memory in the end.
        assert_eq!(broker.drain(&mails).await.len(), 1);
    }
    within(crowd).await.unwrap();
    assert_eq!((broker.counts(&orders).acknowledged, broker.broker.memory_used()), (50, 0));
}
