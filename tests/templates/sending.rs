//! What a send sets on its message, and where it goes.

use std::sync::Arc;
use std::time::Duration;

use corriere_core::{DeliveryMode, Destination, Message, MessageError, SendOptions};
use corriere_templates::{DestinationResolver, JmsTemplate, TemplateError};

use crate::support::{Bench, within};

#[tokio::test]
async fn what_the_call_sets_arrives() {
    let bench = Bench::start();
    let template = bench.template();
    template
        .to("queue://shop.orders")
        .priority(7)
        .delivery_mode(DeliveryMode::NonPersistent)
        .time_to_live(Duration::from_secs(5))
        .deadline(Duration::from_secs(1))
        .property("region", "north")
        .property("attempt", 2)
        .correlation_id("c-1")
        .reply_to("topic://replies")
        .convert_and_send("an order")
        .await
        .unwrap();
    let message = template.receive_from("shop.orders").await.unwrap().unwrap();
    let headers = message.headers();
    assert_eq!(headers.priority.level(), 7);
    assert_eq!(headers.delivery_mode, DeliveryMode::NonPersistent);
    assert_eq!(headers.expiration, Some(bench.clock.now().saturating_add(Duration::from_secs(5))));
    assert_eq!(headers.correlation_id.as_deref(), Some("c-1"));
    assert_eq!(headers.reply_to, Some(Destination::topic("replies").unwrap()));
    assert_eq!(message.property::<String>("region").unwrap().as_deref(), Some("north"));
    assert_eq!(message.property::<i32>("attempt").unwrap(), Some(2));
}

#[tokio::test]
async fn a_post_processor_comes_last_and_may_replace_the_message() {
    let bench = Bench::start();
    let template = bench.template();
    let sent = template
        .sending()
        .property("region", "north")
        .post_process(|message| {
            assert_eq!(message.property::<String>("region")?.as_deref(), Some("north"));
            let mut other = Message::text("another");
            other.set_property("replaced", true)?;
            Ok(other)
        })
        .convert_and_send("one");
    within(can_be_spawned(sent)).await.unwrap();
    let message = template.receive().await.unwrap().unwrap();
    assert_eq!(message.as_text().unwrap(), Some("another"));
    assert_eq!(message.property::<bool>("replaced").unwrap(), Some(true));
    assert_eq!(message.property::<String>("region").unwrap(), None);
}

fn can_be_spawned<F: Future + Send>(future: F) -> F {
    future
}

#[tokio::test]
async fn what_cannot_be_set_fails_the_send() {
    let bench = Bench::start();
    let template = bench.template();
    let error = template.sending().priority(10).convert_and_send("x").await.unwrap_err();
    assert!(matches!(error, TemplateError::Message(MessageError::Priority { level: 10 })), "{error}");
    let error = template.sending().property("not a name", 1).convert_and_send("x").await.unwrap_err();
    assert!(matches!(error, TemplateError::Message(MessageError::Name { .. })), "{error}");
    let error = template
        .sending()
        .post_process(|_| Err(TemplateError::callback("no")))
        .convert_and_send("x")
        .await
        .unwrap_err();
    assert!(matches!(error, TemplateError::Callback(_)), "{error}");
    assert_eq!(bench.counts("orders").enqueued, 0);
}

#[tokio::test]
async fn a_creator_gets_the_session_that_sends() {
    let bench = Bench::start();
    let template = bench.template();
    let create = |session: corriere_core::Session| async move {
        let mut message = Message::text("created");
        message.set_property("transacted", session.is_transacted())?;
        Ok(message)
    };
    template.send_with(create).await.unwrap();
    template.to("others").send_with(create).await.unwrap();
    for queue in ["orders", "others"] {
        let message = template.receive_from(queue).await.unwrap().unwrap();
        assert_eq!(message.property::<bool>("transacted").unwrap(), Some(false));
    }
}

#[tokio::test]
async fn without_a_destination_the_error_says_what_is_missing() {
    let bench = Bench::start();
    let template = JmsTemplate::builder(bench.factory.clone()).build().unwrap();
    let error = template.convert_and_send("x").await.unwrap_err();
    assert!(matches!(error, TemplateError::NoDefaultDestination { operation: "send to" }), "{error}");
    let error = template.receive().await.unwrap_err();
    assert!(matches!(error, TemplateError::NoDefaultDestination { operation: "receive from" }), "{error}");
}

#[derive(Debug)]
struct Aliases;

impl DestinationResolver for Aliases {
    fn resolve(&self, name: &str) -> Result<Destination, Box<dyn std::error::Error + Send + Sync>> {
        match name {
            "orders" => Ok(Destination::queue("shop.orders")?),
            _ => Err(format!("there is only `orders`, not `{name}`").into()),
        }
    }
}

#[tokio::test]
async fn names_are_what_the_resolver_makes_of_them() {
    let bench = Bench::start();
    let template = bench.builder().destination_resolver(Arc::new(Aliases)).build().unwrap();
    assert_eq!(template.default_destination(), Some(&Destination::queue("shop.orders").unwrap()));
    template.convert_and_send_to("orders", "x").await.unwrap();
    template.convert_and_send_to(Destination::queue("as.it.is").unwrap(), "x").await.unwrap();
    assert_eq!(bench.counts("shop.orders").enqueued, 1);
    assert_eq!(bench.counts("as.it.is").enqueued, 1);
    let error = template.receive_from("ordres").await.unwrap_err().to_string();
    assert!(error.contains("`ordres`") && error.contains("only `orders`"), "{error}");

    // A misspelt default stops the start instead of the first send.
    let builder = bench.builder().default_destination("ordres").destination_resolver(Arc::new(Aliases));
    assert!(matches!(builder.build(), Err(TemplateError::Destination { .. })));
}

#[tokio::test]
async fn the_sender_keeps_its_message_and_a_received_one_is_sent_anew() {
    let bench = Bench::start();
    let template = bench.template();
    let mine = Message::text("mine");
    let first = template.send(&mine).await.unwrap();
    assert_eq!(mine, Message::text("mine"));

    let received = template.receive().await.unwrap().unwrap();
    let options = SendOptions { time_to_live: Some(Duration::from_secs(1)), ..SendOptions::default() };
    let second = template.sending().options(&options).send(&received).await.unwrap();
    assert_ne!(first, second);
    let again = template.receive().await.unwrap().unwrap();
    assert_eq!(again.headers().message_id, Some(second));
    assert_eq!(again.headers().delivery_count, 1);
    assert_eq!(again.headers().expiration, Some(bench.clock.now().saturating_add(Duration::from_secs(1))));
}

#[tokio::test]
async fn a_message_sent_again_from_the_dead_letters_can_die_again() {
    let bench = Bench::start();
    let template = bench.template();
    let short = Duration::from_secs(1);
    let mut message = Message::text("late");
    for _ in 0..2 {
        let sent = template.sending().time_to_live(short).send(&message).await.unwrap();
        bench.clock.advance(Duration::from_secs(2));
        assert!(template.receive().await.unwrap().is_none());
        message = template.receive_from("DLQ.orders").await.unwrap().unwrap();
        assert_eq!(message.headers().message_id, Some(sent));
        let origin: String = message.property("dlqOriginalDestination").unwrap().unwrap();
        assert_eq!(origin, "queue://orders");
    }
}

/// C-29: an error that names the header, never a silent drop.
#[tokio::test]
async fn a_name_that_no_property_may_have_fails_the_send_and_is_named() {
    let bench = Bench::start();
    let template = bench.template();
    let too_long = "n".repeat(70_000);
    for name in ["sentry-trace", "X.Y", "1a", "", "NULL", "true", "between", "JMSFoo", too_long.as_str()] {
        let error = template.sending().property(name, "value").convert_and_send("x").await.unwrap_err();
        assert!(matches!(error, TemplateError::Message(MessageError::Name { .. })), "{error}");
        let beginning: String = name.chars().take(20).collect();
        assert!(error.to_string().contains(&format!("`{beginning}")), "{error}");
    }
    let error = template.sending().property("JMSXGroupID", 7).convert_and_send("x").await.unwrap_err();
    assert!(error.to_string().contains("JMSXGroupID"), "{error}");
    assert_eq!(bench.counts("orders").enqueued, 0);
    for name in ["ok_1", "_a", "$b", "日本"] {
        template.sending().property(name, "value").convert_and_send("x").await.unwrap();
        let received = template.receive().await.unwrap().unwrap();
        assert_eq!(received.property::<String>(name).unwrap().as_deref(), Some("value"));
    }
}
