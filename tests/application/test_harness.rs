//! The harness for tests of listeners.

use corriere::prelude::*;
use corriere::templates::ConversionError;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    id: u64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    order: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("the till is closed")]
struct Closed;

#[jms_listener(queue = "orders", ack = "transacted", send_to = "receipts")]
async fn on_order(order: Order) -> Receipt {
    Receipt { order: order.id }
}

#[jms_listener(queue = "hopeless")]
async fn on_hopeless(_order: Order) -> Result<(), Closed> {
    Err(Closed)
}

#[jms_listener(queue = "slow")]
async fn on_slow(_order: Order) -> Result<(), ListenerError> {
    Err(Closed).or_retry_after(secs(3_600))
}

#[jms_listener(topic = "prices")]
async fn on_price(_price: u64) {}

#[corriere::test]
async fn a_reply_can_be_taken(app: TestApp) {
    let app = app.listeners([on_order::DEF]).start().await;
    app.send("orders", &Order { id: 7 }).await;
    app.settled(on_order::DEF).await.acked().times(1);
    assert_eq!(app.take_one::<Receipt>("receipts").await, Receipt { order: 7 });
    app.is_empty("receipts").is_empty("orders");
}

#[corriere::test]
async fn only_the_clock_brings_a_redelivery(app: TestApp) {
    let app =
        app.set("broker.redelivery.maximum_redeliveries", 1).listeners([on_hopeless::DEF]).start().await;
    app.send("hopeless", &Order { id: 1 }).await;
    let settled = app.settled(on_hopeless::DEF).await;
    settled.failed().times(1).delayed().times(1).dead_lettered().times(0);
    assert!(settled.failures()[0].contains("the till is closed"));

    app.advance(secs(1));
    app.settled(on_hopeless::DEF).await.failed().times(2).delayed().times(0).dead_lettered().times(1);
    let letters = app.dead_letters("hopeless").await;
    assert_eq!(letters.len(), 1);
    assert_eq!(
        letters[0].property::<String>("dlqOriginalDestination").unwrap().as_deref(),
        Some("queue://hopeless")
    );
    assert!(app.dead_letters("hopeless").await.is_empty());
}

#[corriere::test]
async fn hours_of_delay_pass_at_once(app: TestApp) {
    let app = app.listeners([on_slow::DEF]).start().await;
    app.send("slow", &Order { id: 1 }).await;
    for failed in 1..=7 {
        app.settled(on_slow::DEF).await.failed().times(failed);
        app.advance(secs(3_600));
    }
    app.settled(on_slow::DEF).await.dead_lettered().times(1).acked().times(0);
}

#[corriere::test]
async fn what_cannot_be_converted_is_a_dead_letter_at_once(app: TestApp) {
    let app = app.listeners([on_order::DEF]).start().await;
    app.send("orders", "not an order").await;
    app.settled(on_order::DEF).await.failed().times(1).dead_lettered().times(1);
    assert_eq!(app.dead_letters("orders").await.len(), 1);
}

#[corriere::test]
async fn a_message_behind_a_delayed_one_does_not_keep_it_from_being_settled(app: TestApp) {
    let app = app.listeners([on_slow::DEF]).start().await;
    for id in 1..=3 {
        app.send("slow", &Order { id }).await;
    }
    app.settled(on_slow::DEF).await.failed().times(1).delayed().times(1);
}

#[corriere::test]
async fn a_listener_on_a_topic_misses_nothing_that_is_sent_after_the_start(app: TestApp) {
    let app = app.listeners([on_price::DEF]).start().await;
    for price in 1..=5_u64 {
        app.send("topic://prices", &price).await;
    }
    app.settled(on_price::DEF).await.acked().times(5);
}

#[corriere::test]
async fn a_test_may_end_in_an_error(app: TestApp) -> Result<(), ConversionError> {
    let app = app.start().await;
    app.send("orders", &Order { id: 3 }).await;
    let message = app.take_message("orders").await;
    let order: Order = app.template().message_converter().decode(&message)?;
    assert_eq!(order.id, 3);
    Ok(())
}

#[corriere::test]
#[should_panic(expected = "listener `on_order`: 2 acknowledged expected, but 1 acknowledged, 0 failed")]
async fn a_number_that_is_not_met_fails_the_test(app: TestApp) {
    let app = app.listeners([on_order::DEF]).start().await;
    app.send("orders", &Order { id: 7 }).await;
    app.settled(on_order::DEF).await.acked().times(2);
}

#[corriere::test]
#[should_panic(expected = "listener `on_slow` was not started")]
async fn a_listener_that_was_not_named_fails_the_test(app: TestApp) {
    app.start().await.settled(on_slow::DEF).await;
}

#[corriere::test]
#[should_panic(expected = "`broker.nam` is not known; did you mean `name`?")]
async fn a_wrong_configuration_fails_the_test(app: TestApp) {
    app.set("broker.nam", "x").start().await;
}
