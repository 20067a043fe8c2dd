//! Listeners of an application.

use std::sync::Mutex;

use corriere::prelude::*;

use crate::application;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    id: u64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Email {
    subject: String,
}

#[derive(Debug, Default)]
struct Outbox(Mutex<Vec<String>>);

#[jms_listener(queue = "orders", ack = "transacted", concurrency = "2-8", send_to = "emails")]
async fn on_order(order: Order) -> Result<Email, ListenerError> {
    Ok(Email { subject: format!("Order {}", order.id) })
}

#[jms_listener(queue = "emails", ack = "client")]
async fn on_email(email: Email, outbox: Bean<Outbox>, delivery: Delivery) -> Result<(), ListenerError> {
    outbox.0.lock().unwrap().push(email.subject);
    delivery.acknowledge().await?;
    Ok(())
}

#[corriere::test]
async fn an_order_becomes_an_email(app: TestApp) {
    let app = app
        .config("[destinations]\norders = { queue = \"shop.orders\" }\nemails = { queue = \"shop.emails\" }")
        .listeners([on_order::DEF, on_email::DEF])
        .bean(Outbox::default())
        .start()
        .await;
    for id in 1..=3 {
        app.send("orders", &Order { id }).await;
    }
    app.settled(on_order::DEF).await.acked().times(3).failed().times(0);
    app.settled(on_email::DEF).await.acked().times(3);
    let outbox = app.application().beans().get::<Outbox>().unwrap();
    let mut subjects = outbox.0.lock().unwrap().clone();
    subjects.sort();
    assert_eq!(subjects, ["Order 1", "Order 2", "Order 3"]);
    app.is_empty("orders").is_empty("emails");
}

#[corriere::test]
async fn a_listener_that_is_not_enabled_leaves_its_messages_where_they_are(app: TestApp) {
    let app = app
        .config("[listeners.on_email]\nenabled = false\n[application]\nexpect = [\"on_email\"]")
        .listeners([on_order::DEF, on_email::DEF])
        .start()
        .await;
    app.send("orders", &Order { id: 1 }).await;
    app.settled(on_order::DEF).await.acked().times(1);
    assert!(app.application().container("on_email").is_none(), "nor is its bean asked for");
    assert_eq!(app.take_one::<Email>("emails").await.subject, "Order 1");
}

type Done = Result<(), ListenerError>;

#[jms_listener(queue = "aliased")]
async fn fails_by_an_alias(_order: Order) -> Done {
    Err(ListenerError::dead_letter("no"))
}

/// An alias of `Result` has no `Result` in its name, and could be sent as a reply like any value.
#[corriere::test]
async fn an_error_behind_an_alias_is_a_failure(app: TestApp) {
    let app = app.listeners([fails_by_an_alias::DEF]).start().await;
    app.send("aliased", &Order { id: 1 }).await;
    app.settled(fails_by_an_alias::DEF).await.acked().times(0).failed().times(1).dead_lettered().times(1);
}

/// The plan's number reaches the broker: of three messages, one is with the worker and the next within its prefetch.
#[tokio::test]
async fn the_prefetch_of_the_plan_is_what_the_broker_sends_ahead() {
    for (table, ahead) in [("", 5), ("prefetch = 2\n", 2)] {
        let text = format!(
            "[broker]\nname = \"ahead{ahead}\"\n[listeners.holds]\nqueue = \"held?consumer.prefetchSize=5\"\n{table}"
        );
        let app = application(&text).listeners([holds::DEF]).start().await.unwrap();
        assert_eq!(app.planned()[0].settings.prefetch, ahead);
        let factory = app.planned()[0].settings.factory.clone();
        let template = JmsTemplate::builder(factory).build().unwrap();
        for number in 0..9 {
            template.convert_and_send_to("held", &number).await.unwrap();
        }
        let destination = corriere::core::Destination::queue("held").unwrap();
        let in_flight = || app.broker().unwrap().counts(&destination).unwrap_or_default().in_flight;
        let sent_ahead = async {
            while in_flight() < u64::from(ahead) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(secs(30), sent_ahead).await.unwrap();
        assert_eq!(in_flight(), u64::from(ahead));
    }
}

/// Never returns, so that what the broker sends ahead stays with the worker.
#[jms_listener(queue = "held")]
async fn holds(_number: u32) {
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_container_is_found_by_its_listener() {
    let app = application("[broker]\nname = \"containers\"\n[listeners.on_order]\nconcurrency = \"1-2\"")
        .listeners([on_order::DEF])
        .start()
        .await
        .unwrap();
    assert_eq!(app.container("on_order").unwrap().listener().id, "on_order");
    assert!(app.container("on_email").is_none());
    assert_eq!(app.planned()[0].settings.concurrency.to_string(), "1-2");
    let shown = app.planned()[0].to_string();
    assert_eq!(
        shown,
        "listener `on_order` in `application::listeners`: queue://orders, ack transacted, concurrency 1-2, prefetch 10, \
         replies to queue://emails, container `default`, connection factory `default`"
    );
    assert!(app.stop().await.is_clean());
}
