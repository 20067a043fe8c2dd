//! Unusual names of destinations, all the way through (C-43).

use corriere_core::AcknowledgeMode::Auto;
use corriere_core::provider::Cause;
use corriere_core::{Destination, DestinationKind, Release};

use crate::support::{TestBroker, first, next, queue, see, send_text, within};

const WORKING: [&str; 14] = [
    "orders/eu",
    "a b",
    "名前",
    // Composed, then decomposed: two names.
    "\u{dc}",
    "U\u{308}",
    "../../etc/x",
    "CON",
    "A",
    "a",
    "a..b",
    "a*b",
    "DLQ.a",
    "x:y",
    "-",
];

#[tokio::test]
async fn each_name_is_a_queue_of_its_own_through_send_receive_and_dead_letter() {
    let broker = TestBroker::start();
    let long = "n".repeat(Destination::MAXIMUM_NAME_BYTES);
    let names: Vec<&str> =
        WORKING.into_iter().chain([long.as_str()]).filter(|name| *name != "DLQ.a").collect();
    let session = broker.session(Auto).await;
    for name in &names {
        send_text(&session, &queue(name), name).await;
    }
    for name in &names {
        let q = queue(name);
        assert_eq!(q.name(), *name);
        assert!(broker.broker.destinations().contains(&q));
        let consumer = session.create_consumer(&q).await.unwrap();
        let delivery = within(consumer.take()).await.unwrap().unwrap();
        assert_eq!(
            (delivery.as_text().unwrap(), delivery.headers().destination.as_ref()),
            (Some(*name), Some(&q))
        );
        let cause = Cause::failure("E1");
        delivery.release(Release::DeadLetter { cause }).await.unwrap();
        assert!(within(consumer.receive_no_wait()).await.unwrap().is_none());
        consumer.close().await.unwrap();
    }
    for name in &names {
        let dead: Destination = format!("queue://DLQ.{name}").parse().unwrap_or_else(|_| {
            // The prefix is not counted, so that the longest name has one too.
            let dead = broker.broker.destinations();
            dead.into_iter().find(|dead| dead.name() == format!("DLQ.{name}")).unwrap()
        });
        let consumer = session.create_consumer(&dead).await.unwrap();
        let delivery = next(&consumer).await;
        assert_eq!(delivery.as_text().unwrap(), Some(*name));
        let origin = delivery.property::<String>("dlqOriginalDestination").unwrap();
        assert_eq!(origin, Some(format!("queue://{name}")));
    }
    assert_eq!(broker.broker.destinations().len(), 2 * names.len());
}

#[tokio::test]
async fn a_queue_and_a_topic_of_one_name_have_nothing_to_do_with_each_other() {
    let broker = TestBroker::start();
    for name in WORKING {
        let (q, t) = (queue(name), Destination::topic(name).unwrap());
        let session = broker.session(Auto).await;
        let consumers =
            (session.create_consumer(&q).await.unwrap(), session.create_consumer(&t).await.unwrap());
        send_text(&session, &q, "to the queue").await;
        send_text(&session, &t, "to the topic").await;
        assert_eq!(see(&consumers.0, 1).await, [first("to the queue")]);
        assert_eq!(see(&consumers.1, 1).await, [first("to the topic")]);
        assert!(consumers.0.receive_no_wait().await.unwrap().is_none());
    }
}

#[tokio::test]
async fn the_dead_letters_of_a_topic_have_a_queue_of_their_own() {
    let broker = TestBroker::start();
    let t = Destination::topic("t").unwrap();
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&t).await.unwrap();
    send_text(&session, &t, "m1").await;
    let delivery = within(consumer.take()).await.unwrap().unwrap();
    delivery.release(Release::DeadLetter { cause: Cause::failure("E1") }).await.unwrap();
    let dead = session.create_consumer(&queue("DLQ.topic.t")).await.unwrap();
    let dead = next(&dead).await;
    assert_eq!(dead.property::<String>("dlqOriginalDestination").unwrap().as_deref(), Some("topic://t"));
}

#[test]
fn what_cannot_work_unchanged_is_refused_at_once() {
    for name in
        ["", " lead", "trail ", "a,b", "a.*", "a.>", "*", ">", "a\u{7}b", "a://b", "q?consumer.prefetch=1"]
    {
        for kind in [DestinationKind::Queue, DestinationKind::Topic] {
            assert!(Destination::parse(name, kind).is_err(), "{name:?}");
        }
    }
    assert!(Destination::queue(&"n".repeat(Destination::MAXIMUM_NAME_BYTES + 1)).is_err());
    assert!("topic://x".parse::<Destination>().unwrap().is_topic());
    assert_eq!(queue("q?consumer.prefetchSize=1"), queue("q"));
}
