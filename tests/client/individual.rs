//! INDIVIDUAL sessions, and the three scopes of an acknowledgement.

use corriere_core::AcknowledgeMode::{self, Auto, Client, DupsOk, Individual, Transacted};
use corriere_core::{Consumer, Delivery, Error};

use crate::overheard::{connect, said};
use crate::support::{TestBroker, first, firsts, next, nth, queue, see, text, within};

/// The next messages of a consumer, kept.
async fn take(consumer: &Consumer, count: usize) -> Vec<Delivery> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(next(consumer).await);
    }
    all
}

/// C-08 (c).
#[tokio::test]
async fn individual_acknowledgements_settle_these_messages_and_a_close_brings_back_the_others_in_order() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 10).await;
    let session = broker.session(Individual).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let all = take(&consumer, 10).await;
    for number in [7, 3, 9] {
        all[number - 1].acknowledge().await.unwrap();
        assert!(all[number - 1].is_settled());
    }
    assert_eq!(broker.counts(&q).acknowledged, 3);
    session.close().await.unwrap();
    let expected: Vec<_> = [1, 2, 4, 5, 6, 8, 10].map(|number| nth(&format!("m{number}"), 2)).into();
    assert_eq!(broker.drain(&q).await, expected);
}

/// C-07 (a), one by one.
#[tokio::test]
async fn a_second_individual_acknowledgement_says_nothing() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 2).await;
    let (_connection, session) = connect(&broker, Individual).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let m1 = next(&consumer).await;
    for _ in 0..2 {
        within(m1.acknowledge()).await.unwrap();
    }
    within(next(&consumer).await.acknowledge()).await.unwrap();
    assert_eq!(said(&broker), ["DELIVERED 1", "INDIVIDUAL 1", "DELIVERED 2", "INDIVIDUAL 2"]);
    assert_eq!((broker.counts(&q).acknowledged, broker.counts(&q).pending), (2, 0));
}

/// C-07 (d), with a broker that stops in place of a connection that drops.
#[tokio::test]
async fn an_individual_acknowledgement_after_the_connection_was_lost_is_an_error_and_does_not_hang() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 1).await;
    let session = broker.session(Individual).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let m1 = next(&consumer).await;
    broker.broker.stop();
    let late = tokio::spawn(async move { m1.acknowledge().await });
    within(late).await.unwrap().unwrap_err();
}

/// What two consumers of one session received, of which the first one's second message is acknowledged by `scope`.
async fn settled_by(mode: AcknowledgeMode, scope: &str) -> Vec<String> {
    let broker = TestBroker::start();
    let (q, other) = (queue("q"), queue("other"));
    broker.send_numbered(&q, 3).await;
    broker.send_numbered(&other, 1).await;
    let session = broker.session(mode).await;
    let (one, two) =
        (session.create_consumer(&q).await.unwrap(), session.create_consumer(&other).await.unwrap());
    let (received, beside) = (take(&one, 3).await, next(&two).await);
    match scope {
        "message" => received[1].acknowledge().await.unwrap(),
        "consumer" => one.acknowledge().await.unwrap(),
        "session" => session.acknowledge().await.unwrap(),
        other => panic!("{other}"),
    }
    let settled =
        received.iter().filter(|delivery| delivery.is_settled()).map(|delivery| text(delivery).to_owned());
    let settled: Vec<String> = settled.chain(beside.is_settled().then(|| "beside".to_owned())).collect();
    let acknowledged = broker.counts(&q).acknowledged + broker.counts(&other).acknowledged;
    let settled_at_the_broker = if mode == Transacted { 0 } else { settled.len() as u64 };
    assert_eq!(acknowledged, settled_at_the_broker, "{mode:?} {scope}");
    settled
}

#[tokio::test]
async fn message_consumer_and_session_acknowledge_what_is_theirs() {
    const ALL: &[&str] = &["m1", "m2", "m3", "beside"];
    for (mode, scope, expected) in [
        (Individual, "message", &["m2"][..]),
        (Individual, "consumer", &ALL[..3]),
        (Individual, "session", ALL),
        (Client, "message", ALL),
        (Client, "consumer", &ALL[..3]),
        (Client, "session", ALL),
        (Transacted, "message", &[]),
        (Transacted, "consumer", &[]),
        (Transacted, "session", &[]),
        // These are settled as they are received.
        (Auto, "consumer", ALL),
        (DupsOk, "consumer", ALL),
    ] {
        assert_eq!(settled_by(mode, scope).await, expected, "{mode:?} {scope}");
    }
}

#[tokio::test]
async fn a_consumer_that_is_closed_acknowledges_nothing_and_its_session_does() {
    for mode in [Client, Individual] {
        let broker = TestBroker::start();
        let q = queue("q");
        broker.send_numbered(&q, 2).await;
        let session = broker.session(mode).await;
        let consumer = session.create_consumer(&q).await.unwrap();
        see(&consumer, 1).await;
        consumer.close().await.unwrap();
        let error = consumer.acknowledge().await.unwrap_err();
        assert!(matches!(error, Error::IllegalState { .. }), "{error:?}");
        assert_eq!(broker.counts(&q).acknowledged, 0);
        session.acknowledge().await.unwrap();
        session.close().await.unwrap();
        assert_eq!(broker.drain(&q).await, [first("m2")]);
    }
}

#[tokio::test]
async fn recover_gives_back_what_was_not_acknowledged_one_by_one() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 5).await;
    let session = broker.session(Individual).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let all = take(&consumer, 4).await;
    all[1].acknowledge().await.unwrap();
    session.recover().await.unwrap();
    let expected = [nth("m1", 2), nth("m3", 2), nth("m4", 2), first("m5")];
    assert_eq!(see(&consumer, 4).await, expected);
    session.acknowledge().await.unwrap();
    assert_eq!((broker.counts(&q).acknowledged, broker.counts(&q).pending), (5, 0));
}

/// Where ActiveMQ gives back all that the consumer has not acknowledged.
#[tokio::test]
async fn a_listener_that_fails_in_individual_gives_back_that_message_and_no_other() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 3).await;
    let session = broker.session(Individual).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let (told, mut seen) = tokio::sync::mpsc::unbounded_channel();
    consumer
        .set_message_listener(move |delivery| {
            told.send(delivery.clone()).unwrap();
            async move {
                match (text(&delivery), delivery.count()) {
                    ("m2", 1) => Err("not now".into()),
                    _ => Ok(()),
                }
            }
        })
        .unwrap();
    let mut all = Vec::new();
    for expected in [first("m1"), first("m2"), nth("m2", 2), first("m3")] {
        let delivery = within(seen.recv()).await.unwrap();
        assert_eq!(crate::support::Seen::of(&delivery), expected);
        all.push(delivery);
    }
    assert!(!all[0].is_settled(), "what the listener left before stays with it");
    assert!(all[1].is_settled());
    assert_eq!(broker.counts(&q).in_flight, 3);
    session.acknowledge().await.unwrap();
    broker.until(&q, |counts| counts.acknowledged == 3).await;
}

/// C-08 (b).
#[tokio::test]
async fn a_listener_that_acknowledges_a_message_and_fails_with_it_does_not_get_it_again() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 2).await;
    let session = broker.session(Individual).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    consumer
        .set_message_listener(|delivery| async move {
            delivery.acknowledge().await?;
            Err("after the acknowledgement".into())
        })
        .unwrap();
    broker.until(&q, |counts| counts.acknowledged == 2).await;
    session.close().await.unwrap();
    assert_eq!(broker.drain(&q).await, firsts(1..=0));
    assert_eq!(broker.counts(&queue("DLQ.q")).enqueued, 0);
}
