//! Dead letters and their reasons over restarts (C-22).

use std::time::Duration;

use corriere_core::AcknowledgeMode::{Auto, Client};
use corriere_core::provider::{Cause, CauseKind};
use corriere_core::{Delivery, Message, Release, SendOptions};

use crate::support::{End, Home, Running, next, property, queue, text, within};

async fn fail_to_death(broker: &Running, cause: &str) {
    let consumer = broker.consumer(Auto, &queue("q")).await;
    let cause = Cause { kind: CauseKind::Failure, text: cause.into(), listener: Some("on_order".into()) };
    for count in 1..=3 {
        let delivery = within(consumer.take()).await.unwrap().unwrap();
        assert_eq!(delivery.count(), count);
        within(delivery.release(Release::Redeliver { delay: None, cause: cause.clone() })).await.unwrap();
    }
}

/// The one dead letter, which stays there.
async fn dead_letter(broker: &Running) -> Delivery {
    broker.until(&queue("DLQ.q"), |counts| counts.pending == 1).await;
    next(&broker.consumer(Client, &queue("DLQ.q")).await).await
}

/// Sends the dead letter again, as it is, and takes it from its queue.
async fn send_again(broker: &Running, options: &SendOptions) {
    let dead = dead_letter(broker).await;
    let session = broker.session(Auto).await;
    within(session.send(&queue("q"), dead.message(), options)).await.unwrap();
    within(dead.acknowledge()).await.unwrap();
}

/// C-22.
#[tokio::test]
async fn a_dead_letter_keeps_its_origin_and_its_cause_over_restarts_and_dies_anew_of_another() {
    for end in [End::Stop, End::Kill, End::PowerCut(1)] {
        let mut home = Home::recorded();
        let mut broker = home.start();
        let mut message = Message::text("m1");
        message.set_property("kept", "yes").unwrap();
        let session = broker.session(Auto).await;
        let id = session.send(&queue("q"), &message, &SendOptions::default()).await.unwrap();
        fail_to_death(&broker, "E1").await;
        let before = dead_letter(&broker).await;
        let mut causes = Vec::new();
        for next_cause in ["E2", "E3"] {
            // What a power cut may take has been followed by something durable.
            broker.send(&queue("other"), 1..=1).await;
            broker = home.restart(broker, end);
            let dead = dead_letter(&broker).await;
            causes.push(property(&dead, "dlqDeliveryFailureCause").unwrap());
            assert_eq!((text(&dead), property(&dead, "kept").as_deref()), ("m1", Some("yes")));
            assert_eq!(property(&dead, "dlqOriginalDestination").as_deref(), Some("queue://q"));
            assert_eq!(property(&dead, "dlqListener").as_deref(), Some("on_order"));
            assert_eq!(property(&dead, "JMSXDeliveryCount").as_deref(), Some("3"));
            if next_cause == "E2" {
                assert_eq!(dead.headers().message_id, Some(id.clone()));
                assert_eq!(dead.properties(), before.properties());
            }
            drop(dead);
            send_again(&broker, &SendOptions::default()).await;
            fail_to_death(&broker, next_cause).await;
        }
        broker.send(&queue("other"), 2..=2).await;
        let broker = home.restart(broker, end);
        causes.push(property(dead_letter(&broker).await.message(), "dlqDeliveryFailureCause").unwrap());
        assert_eq!(causes, ["E1", "E2", "E3"], "{end:?}");
        broker.stop();
    }
}

/// C-22.
#[tokio::test]
async fn what_expired_goes_to_the_dead_letters_once_whether_the_broker_ran_then_or_not() {
    for end in [End::Stop, End::Kill] {
        let mut home = Home::recorded();
        let broker = home.start();
        let options = SendOptions { time_to_live: Some(Duration::from_secs(1)), ..SendOptions::default() };
        let session = broker.session(Auto).await;
        within(session.send(&queue("q"), &Message::text("m1"), &options)).await.unwrap();
        home.end(broker, end);
        home.clock.advance(Duration::from_secs(2));
        let broker = home.start();
        assert_eq!(text(dead_letter(&broker).await.message()), "m1");
        assert_eq!(broker.drain(&queue("q")).await, []);
        let broker = home.restart(broker, end);
        send_again(&broker, &options).await;
        let broker = home.restart(broker, end);
        assert_eq!(broker.counts(&queue("q")).pending, 1, "it has a second to live again");
        home.clock.advance(Duration::from_secs(2));
        let dead = dead_letter(&broker).await;
        assert_eq!((text(&dead), dead.count()), ("m1", 1));
        assert_eq!(dead.headers().expiration, None, "a dead letter does not expire");
        let broker = home.restart(broker, end);
        broker.until(&queue("DLQ.q"), |counts| counts.pending == 1).await;
        broker.stop();
    }
}
