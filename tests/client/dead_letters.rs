//! Dead letters that are received and sent again (C-22).

use std::time::Duration;

use corriere_core::AcknowledgeMode::Auto;
use corriere_core::provider::{Cause, CauseKind};
use corriere_core::{Consumer, Delivery, Message, Release, SendOptions};

use crate::support::{TestBroker, next, nth, queue, see, text, within};

fn property(message: &Message, name: &str) -> Option<String> {
    message.property::<String>(name).unwrap()
}

async fn fail_to_death(consumer: &Consumer, cause: &Cause) -> Vec<u32> {
    let mut counts = Vec::new();
    for _ in 0..3 {
        let delivery = within(consumer.take()).await.unwrap().unwrap();
        counts.push(delivery.count());
        delivery.release(Release::Redeliver { delay: None, cause: cause.clone() }).await.unwrap();
    }
    counts
}

async fn dead_letter(broker: &TestBroker, name: &str) -> Delivery {
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&queue(name)).await.unwrap();
    next(&consumer).await
}

/// C-22.
#[tokio::test]
async fn a_dead_letter_names_its_origin_and_the_last_cause() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let mut message = Message::text("m1");
    message.set_property("kept", "yes").unwrap();
    let id = session.send(&q, &message, &SendOptions::default()).await.unwrap();
    let consumer = session.create_consumer(&q).await.unwrap();
    let cause = Cause { kind: CauseKind::Failure, text: "E1".into(), listener: Some("on_order".into()) };
    assert_eq!(fail_to_death(&consumer, &cause).await, [1, 2, 3]);

    let dead = dead_letter(&broker, "DLQ.q").await;
    assert_eq!((text(&dead), dead.headers().message_id.clone()), ("m1", Some(id)));
    assert_eq!(property(&dead, "kept").as_deref(), Some("yes"));
    assert_eq!(property(&dead, "dlqDeliveryFailureCause").as_deref(), Some("E1"));
    assert_eq!(property(&dead, "dlqOriginalDestination").as_deref(), Some("queue://q"));
    assert_eq!(property(&dead, "dlqListener").as_deref(), Some("on_order"));
    assert_eq!(property(&dead, "JMSXDeliveryCount").as_deref(), Some("3"));
    assert_eq!(dead.property::<i64>("dlqTime").unwrap(), Some(1_700_000_000_000));
    assert_eq!((dead.count(), dead.headers().redelivered()), (1, false));
}

/// C-22.
#[tokio::test]
async fn a_dead_letter_that_is_sent_again_begins_anew_and_dies_of_its_own_cause() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let first_id = session.send(&q, &Message::text("m1"), &SendOptions::default()).await.unwrap();
    let consumer = session.create_consumer(&q).await.unwrap();
    let cause = Cause { kind: CauseKind::Failure, text: "E1".into(), listener: Some("on_order".into()) };
    fail_to_death(&consumer, &cause).await;

    let dead = dead_letter(&broker, "DLQ.q").await.into_message();
    let second_id = session.send(&q, &dead, &SendOptions::default()).await.unwrap();
    assert_ne!(first_id, second_id);
    let again = within(consumer.take()).await.unwrap().unwrap();
    assert_eq!((again.count(), again.headers().redelivered()), (1, false));
    assert_eq!(again.property::<i32>("JMSXDeliveryCount").unwrap(), Some(1));
    again.release(Release::Redeliver { delay: None, cause: Cause::failure("E2") }).await.unwrap();
    for _ in 0..2 {
        let again = within(consumer.take()).await.unwrap().unwrap();
        again.release(Release::Redeliver { delay: None, cause: Cause::failure("E2") }).await.unwrap();
    }
    let dead = dead_letter(&broker, "DLQ.q").await;
    assert_eq!(property(&dead, "dlqDeliveryFailureCause").as_deref(), Some("E2"));
    assert_eq!(property(&dead, "dlqListener"), None, "the first death's listener had no part in this one");
    assert_eq!(property(&dead, "JMSXDeliveryCount").as_deref(), Some("3"));
}

/// C-22.
#[tokio::test]
async fn a_dead_letter_that_expired_can_expire_again() {
    let broker = TestBroker::start();
    let (q, dlq) = (queue("q"), queue("DLQ.q"));
    let session = broker.session(Auto).await;
    let short = SendOptions { time_to_live: Some(Duration::from_secs(1)), ..SendOptions::default() };
    session.send(&q, &Message::text("m1"), &short).await.unwrap();
    broker.clock.advance(Duration::from_secs(1));
    broker.until(&dlq, |counts| counts.moved_in == 1).await;
    let dead = dead_letter(&broker, "DLQ.q").await.into_message();
    assert_eq!(dead.headers().expiration, None);
    assert_eq!(property(&dead, "dlqOriginalExpiration").as_deref(), Some("1700000001000"));
    session.send(&q, &dead, &short).await.unwrap();
    assert_eq!(broker.counts(&q).pending, 1, "its expiration is fresh");
    broker.clock.advance(Duration::from_secs(1));
    broker.until(&dlq, |counts| counts.moved_in == 2).await;
    let dead = dead_letter(&broker, "DLQ.q").await;
    assert_eq!(property(&dead, "dlqOriginalExpiration").as_deref(), Some("1700000002000"));
    assert!(property(&dead, "dlqDeliveryFailureCause").unwrap().starts_with("expired"));
}

#[tokio::test]
async fn a_dead_letter_that_fails_stays_where_it_is() {
    let broker = TestBroker::start();
    let (q, dlq) = (queue("q"), queue("DLQ.q"));
    broker.send_numbered(&q, 1).await;
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    fail_to_death(&consumer, &Cause::failure("E1")).await;
    let dead = session.create_consumer(&dlq).await.unwrap();
    assert_eq!(fail_to_death(&dead, &Cause::failure("E2")).await, [1, 2, 3]);
    assert_eq!(see(&dead, 1).await, [nth("m1", 4)]);
    assert!(broker.broker.destinations().iter().all(|destination| destination.name() != "DLQ.DLQ.q"));
}
