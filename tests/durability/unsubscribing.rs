//! Durable subscriptions that were removed, over restarts.

use std::future::poll_fn;
use std::task::Poll;

use corriere_core::AcknowledgeMode::Auto;
use corriere_core::{ConnectionFactory, Destination, Message, SendOptions, Session};

use crate::subscriber::{Client, leave, prices};
use crate::support::{End, Home, Running, eventually, first, queue, see, send_text, within};

/// A session of the client `reader`.
async fn reader(broker: &Running) -> Session {
    let url = format!("vm://{}?jms.clientID=reader", broker.broker.name());
    let connection = ConnectionFactory::from_url(&url).unwrap().create_connection().await.unwrap();
    connection.start().unwrap();
    connection.create_session(Auto).await.unwrap()
}

/// C-33 (c).
#[tokio::test]
async fn a_subscription_that_was_removed_stays_gone_and_its_messages_leave_the_disk() {
    for end in [End::Stop, End::Kill] {
        let mut home = Home::recorded();
        let news = Destination::topic("news").unwrap();
        let broker = home.start();
        let session = reader(&broker).await;
        drop(session.create_durable_consumer(&news, "daily").await.unwrap());
        drop(session.create_durable_consumer(&news, "weekly").await.unwrap());
        let (body, options) = (vec![7; 50_000], SendOptions::default());
        for _ in 0..40 {
            within(session.send(&news, &Message::bytes(body.clone()), &options)).await.unwrap();
        }
        // 2 MB, in segments of 256 KiB.
        assert!(home.segments().len() >= 8, "{:?}", home.segments());
        within(session.unsubscribe("daily")).await.unwrap();
        let broker = home.restart(broker, end);
        let left: Vec<_> = broker.broker.durable_subscriptions().into_iter().map(|left| left.name).collect();
        assert_eq!(left, ["weekly".into()], "{end:?}");
        let session = reader(&broker).await;
        within(session.unsubscribe("daily")).await.unwrap_err();
        within(session.unsubscribe("weekly")).await.unwrap();
        let broker = home.restart(broker, end);
        assert!(broker.broker.durable_subscriptions().is_empty(), "{end:?}");

        // Of the same name, it is a new one.
        let session = reader(&broker).await;
        let again = session.create_durable_consumer(&news, "daily").await.unwrap();
        assert!(within(again.receive_no_wait()).await.unwrap().is_none(), "{end:?}");
        send_text(&session, &news, "m1").await;
        assert_eq!(see(&again, 1).await, [first("m1")], "{end:?}");
        eventually("the journal to be small", || {
            home.clock.advance(home.options.cleanup_interval);
            let segments = home.segments();
            if segments.len() <= 2 { Ok(()) } else { Err(format!("{segments:?}")) }
        })
        .await;
        broker.stop();
    }
}

/// More than leaves the broker's memory, and the index of its journal, in one step.
const MANY: u64 = 3_000;

/// A broker with that many messages for the subscription `d` of the client `c`.
async fn with_many(home: &Home) -> Running {
    let broker = home.start();
    leave(&broker, "c", &["d"]).await;
    let sender = Client::connect(&broker, None).await;
    for number in 1..=MANY {
        sender.publish(format!("m{number}")).await;
    }
    sender.close().await;
    assert_eq!(broker.counts(&prices()).pending, MANY);
    broker
}

/// Its time stands still, so that the rest leaves memory only when it goes on.
#[tokio::test]
async fn one_that_is_confirmed_as_removed_is_gone_whole_though_the_process_ends_while_it_is_cleared_away() {
    for end in [End::Stop, End::Kill, End::PowerCut(1), End::PowerCut(2)] {
        let mut home = Home::recorded();
        let broker = with_many(&home).await;
        let client = Client::connect(&broker, Some("c")).await;
        client.unsubscribe("d").await.unwrap();
        assert!(broker.broker.memory_used() > 0, "it is too little to be cleared away in several steps");
        assert_eq!(broker.counts(&prices()).pending, 0);
        // Others go on meanwhile.
        broker.send(&queue("orders"), 1..=1).await;
        assert_eq!(broker.drain(&queue("orders")).await, [first("m1")]);
        let again = client.subscribe("d").await;
        client.publish("new").await;
        assert_eq!(client.take(again, 1).await, ["new"]);
        drop(client);

        let broker = home.restart(broker, end);
        let found = broker.broker.durable_subscriptions();
        let [found] = &*found else { panic!("{end:?}: {found:?}") };
        assert!(found.counts.recovered <= 1, "{end:?}: {found:?}");
        let client = Client::connect(&broker, Some("c")).await;
        client.unsubscribe("d").await.unwrap();
        client.close().await;
        eventually("the journal to be small", || {
            home.clock.advance(home.options.cleanup_interval);
            let segments = home.segments();
            if segments.len() <= 2 { Ok(()) } else { Err(format!("{end:?}: {segments:?}")) }
        })
        .await;
        broker.stop();
        let broker = home.start();
        assert!(broker.broker.durable_subscriptions().is_empty(), "{end:?}");
        broker.stop();
    }
}

#[tokio::test]
async fn one_whose_removal_was_not_confirmed_is_there_whole_or_gone_whole() {
    for seed in 1..=10 {
        let mut home = Home::recorded();
        let broker = with_many(&home).await;
        let client = Client::connect(&broker, Some("c")).await;
        let files = home.memory().clone();
        files.crash_at(files.operations() + seed % 5 + 1, seed);
        let mut removal = Box::pin(client.unsubscribe("d"));
        // It is submitted by the first look at it.
        let answer = poll_fn(|context| Poll::Ready(removal.as_mut().poll(context))).await;
        let is_confirmed = matches!(answer, Poll::Ready(Ok(_)));
        drop(removal);
        drop(client);
        let broker = home.restart(broker, if seed % 2 == 0 { End::Kill } else { End::PowerCut(seed) });
        let found = broker.broker.durable_subscriptions();
        let left: Vec<u64> = found.iter().map(|found| found.counts.pending).collect();
        assert!(left.is_empty() || (left == [MANY] && !is_confirmed), "seed {seed}: {left:?} {answer:?}");
        broker.stop();
    }
}
