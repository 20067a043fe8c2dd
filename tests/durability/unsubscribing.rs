//! Durable subscriptions that were removed, over restarts.

use corriere_core::AcknowledgeMode::Auto;
use corriere_core::{ConnectionFactory, Destination, Message, SendOptions, Session};

use crate::support::{End, Home, Running, eventually, first, see, send_text, within};

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
