//! Asking for a body as the wrong type must neither lose the message, nor loop on it for ever, nor flag it at
//! once (jms-spec#150, activemq#1543).

use std::sync::Arc;

use corriere_core::message::{MapBody, StreamBody};
use corriere_core::{Body, Message, Value};
use corriere_templates::converter::MessageConverter;
use corriere_templates::{
    BytesConverter, ConversionError, JmsTemplate, JsonConverter, MapConverter, TemplateError, TextConverter,
};

use crate::support::{Bench, within};

async fn fails_to_convert(template: &JmsTemplate) -> ConversionError {
    match within(template.receive_and_convert::<u32>()).await {
        Err(TemplateError::Conversion(error)) => error,
        other => panic!("expected a failed conversion: {other:?}"),
    }
}

/// C-56, Spring 6.
#[tokio::test]
async fn the_first_failed_conversion_leaves_no_trace() {
    let bench = Bench::start();
    let template = bench.template();
    let id = template.send(&Message::text("many")).await.unwrap();
    template.send(&Message::text("behind")).await.unwrap();
    let error = fails_to_convert(&template).await.to_string();
    assert!(error.contains(&id.to_string()) && error.contains("queue://orders"), "{error}");

    let message = template.receive().await.unwrap().unwrap();
    assert_eq!(message.headers().message_id, Some(id));
    assert_eq!(message.headers().delivery_count, 1);
    assert!(!message.headers().redelivered());
    assert_eq!(message.as_text().unwrap(), Some("many"));
}

/// C-56, Spring 6.
#[tokio::test]
async fn further_failed_conversions_count_until_the_message_is_a_dead_letter() {
    let bench = Bench::start();
    let template = bench.template();
    let sent = template.send(&Message::text("many")).await.unwrap();
    // One that is not counted, and the three deliveries that two redeliveries allow.
    for _ in 0..4 {
        fails_to_convert(&template).await;
    }
    assert!(template.receive().await.unwrap().is_none());
    let dead = template.receive_from("DLQ.orders").await.unwrap().unwrap();
    assert_eq!(dead.headers().message_id, Some(sent));
    let cause: String = dead.property("dlqDeliveryFailureCause").unwrap().unwrap();
    assert!(cause.contains("u32"), "{cause}");
}

/// C-56, Spring 6.
#[tokio::test]
async fn in_a_transaction_a_failed_conversion_is_a_delivery_like_any_other() {
    let bench = Bench::start();
    let template = bench.builder().transacted(true).build().unwrap();
    template.send(&Message::text("many")).await.unwrap();
    fails_to_convert(&template).await;
    let message = template.receive().await.unwrap().unwrap();
    assert_eq!(message.headers().delivery_count, 2);
    assert!(message.headers().redelivered());
}

#[tokio::test]
async fn a_message_is_acknowledged_once_it_is_converted() {
    let bench = Bench::start();
    let template = bench.template();
    template.convert_and_send(&7_u32).await.unwrap();
    assert_eq!(template.receive_and_convert::<u32>().await.unwrap(), Some(7));
    assert_eq!(bench.counts("orders").acknowledged, 1);
    assert_eq!(bench.counts("orders").pending, 0);
}

/// C-56, Spring 6.
#[tokio::test]
async fn every_kind_of_body_is_read_or_refused_and_none_is_lost() {
    let mut null_entry = MapBody::new();
    null_entry.set("note", Value::Null).unwrap();
    let json: Arc<dyn MessageConverter> = Arc::new(JsonConverter::new());
    let text: Arc<dyn MessageConverter> = Arc::new(TextConverter);
    let bytes: Arc<dyn MessageConverter> = Arc::new(BytesConverter);
    let map: Arc<dyn MessageConverter> = Arc::new(MapConverter);
    let cases = [
        (&text, Message::new(Body::Empty), false),
        (&text, Message::new(Body::Text(None)), false),
        (&text, Message::text(""), true),
        (&text, Message::bytes("abc"), false),
        (&text, Message::map(MapBody::new()), false),
        (&text, Message::stream(StreamBody::default()), false),
        (&json, Message::new(Body::Empty), false),
        (&json, Message::stream(StreamBody::default()), false),
        (&json, Message::map(null_entry), false),
        (&bytes, Message::bytes(""), false),
        (&bytes, Message::text("abc"), false),
        (&map, Message::map(MapBody::new()), false),
    ];
    for (converter, message, is_a_string) in cases {
        let bench = Bench::start();
        let template = bench.builder().message_converter(Arc::clone(converter)).build().unwrap();
        template.send(&message).await.unwrap();
        let received = within(template.receive_and_convert::<String>()).await;
        assert_eq!(received.is_ok(), is_a_string, "{:?}: {received:?}", message.body());
        let left = template.receive().await.unwrap();
        assert_eq!(left.is_none(), is_a_string, "{:?}", message.body());
        assert!(left.is_none_or(|left| left.body() == message.body()));
    }
}

/// C-56.
#[tokio::test]
async fn an_absent_text_stays_absent_and_an_empty_one_empty() {
    let bench = Bench::start();
    let template = bench.builder().message_converter(Arc::new(TextConverter)).build().unwrap();
    template.convert_and_send(&None::<String>).await.unwrap();
    template.convert_and_send("").await.unwrap();
    assert_eq!(template.receive_and_convert::<Option<String>>().await.unwrap(), Some(None));
    assert_eq!(template.receive_and_convert::<Option<String>>().await.unwrap(), Some(Some(String::new())));
}

#[tokio::test]
async fn what_cannot_be_converted_is_not_sent() {
    let bench = Bench::start();
    let template = bench.builder().message_converter(Arc::new(MapConverter)).build().unwrap();
    let error = template.convert_and_send("no map").await.unwrap_err();
    assert!(matches!(error, TemplateError::Conversion(ConversionError::Write { .. })), "{error}");
    assert_eq!(bench.counts("orders").enqueued, 0);
}
