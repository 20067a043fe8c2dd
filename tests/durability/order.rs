//! Order and priorities over restarts.

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::message::Priority;
use corriere_core::{Message, SendOptions};

use crate::support::{End, Home, firsts, next, nth, queue, see, send_text, text, within};

const ENDS: [End; 3] = [End::Stop, End::Kill, End::PowerCut(7)];

#[tokio::test]
async fn messages_come_in_the_order_of_their_sends_over_several_starts() {
    for end in ENDS {
        let mut home = Home::recorded();
        let q = queue("q");
        let mut broker = home.start();
        for start in 0..4 {
            broker.send(&q, start * 25 + 1..=(start + 1) * 25).await;
            broker = home.restart(broker, end);
        }
        assert_eq!(broker.drain(&q).await, firsts(1..=100), "{end:?}");
        broker.stop();
    }
}

/// C-54, the restart in the middle.
#[tokio::test]
async fn the_more_urgent_goes_first_and_the_rest_keeps_its_order() {
    for end in ENDS {
        let mut home = Home::recorded();
        let q = queue("q");
        let broker = home.start();
        let session = broker.session(Auto).await;
        let priority_of = |number: usize| (number * 7) % 10;
        let mut expected = Vec::new();
        for number in 0..60 {
            let priority = u8::try_from(priority_of(number)).unwrap();
            let options =
                SendOptions { priority: Some(Priority::new(priority).unwrap()), ..SendOptions::default() };
            within(session.send(&q, &Message::text(format!("m{number}")), &options)).await.unwrap();
            expected.push(number);
        }
        expected.sort_by_key(|number| (9 - priority_of(*number), *number));
        let mut seen = Vec::new();
        let broker = home.restart(broker, end);
        let session = broker.session(Client).await;
        let consumer = session.create_consumer_with_prefetch(&q, 1).await.unwrap();
        for _ in 0..30 {
            let delivery = next(&consumer).await;
            seen.push(text(&delivery).to_owned());
            within(delivery.acknowledge()).await.unwrap();
        }
        send_text(&broker.session(Auto).await, &queue("other"), "makes the acknowledgements durable").await;
        let broker = home.restart(broker, end);
        seen.extend(broker.drain(&q).await.into_iter().map(|seen| seen.text));
        let expected: Vec<_> = expected.iter().map(|number| format!("m{number}")).collect();
        assert_eq!(seen, expected, "{end:?}");
        broker.stop();
    }
}

#[tokio::test]
async fn what_was_given_back_keeps_its_place() {
    for end in ENDS {
        let mut home = Home::recorded();
        let q = queue("q");
        let broker = home.start();
        broker.send(&q, 1..=6).await;
        let session = broker.session(Transacted).await;
        let consumer = session.create_consumer(&q).await.unwrap();
        see(&consumer, 3).await;
        within(session.rollback()).await.unwrap();
        broker.send(&q, 7..=8).await;
        let broker = home.restart(broker, end);
        let mut expected: Vec<_> = (1..=3).map(|number| nth(&format!("m{number}"), 2)).collect();
        expected.extend(firsts(4..=8));
        assert_eq!(broker.drain(&q).await, expected, "{end:?}");
        broker.stop();
    }
}

#[tokio::test]
async fn what_a_transaction_sends_stands_where_it_was_committed() {
    for end in ENDS {
        let mut home = Home::recorded();
        let q = queue("q");
        let broker = home.start();
        let (early, late) = (broker.session(Transacted).await, broker.session(Transacted).await);
        send_text(&late, &q, "m4").await;
        send_text(&early, &q, "m2").await;
        send_text(&late, &q, "m5").await;
        broker.send(&q, 1..=1).await;
        send_text(&early, &q, "m3").await;
        within(early.commit()).await.unwrap();
        within(late.commit()).await.unwrap();
        let lost = broker.session(Transacted).await;
        send_text(&lost, &q, "never committed").await;
        let broker = home.restart(broker, end);
        assert_eq!(broker.drain(&q).await, firsts(1..=5), "{end:?}");
        broker.stop();
    }
}

#[tokio::test]
async fn messages_that_are_not_kept_are_gone_and_leave_the_others_as_they_were() {
    let mut home = Home::recorded();
    let q = queue("q");
    let broker = home.start();
    let session = broker.session(Auto).await;
    let unkept = SendOptions {
        delivery_mode: Some(corriere_core::DeliveryMode::NonPersistent),
        ..SendOptions::default()
    };
    for number in 1..=4 {
        send_text(&session, &q, &format!("m{number}")).await;
        within(session.send(&q, &Message::text("not kept"), &unkept)).await.unwrap();
    }
    let broker = home.restart(broker, End::Stop);
    assert_eq!(broker.drain(&q).await, firsts(1..=4));
    broker.stop();
}
