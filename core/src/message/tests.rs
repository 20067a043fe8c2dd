//! The message as a whole.

use super::*;

fn kinds() -> [Message; 6] {
    let mut map = MapBody::new();
    map.set("null", None::<i32>).unwrap();
    let mut stream = StreamBody::new();
    stream.push(1);
    [
        Message::new(Body::Empty),
        Message::text("text"),
        Message::bytes(&b"bytes"[..]),
        Message::map(map),
        Message::stream(stream),
        Message::object(&b"{}"[..], "application/json", "Order"),
    ]
}

/// C-56: which accessors answer, in the order text, bytes, map, stream, object.
#[test]
fn a_body_is_read_as_its_own_kind_only_and_no_body_as_none() {
    for (message, expected) in
        kinds().iter().zip(["....." /* no body */, "x....", ".x...", "..x..", "...x.", "....x"])
    {
        let answers: String = [
            message.as_text().is_ok(),
            message.as_bytes().is_ok(),
            message.as_map().is_ok(),
            message.as_stream().is_ok(),
            message.as_object().is_ok(),
        ]
        .map(|answers| if answers { 'x' } else { '.' })
        .iter()
        .collect();
        assert_eq!(answers, expected, "{}", message.body().kind());
    }
    assert_eq!(
        Message::text("text").as_bytes().unwrap_err().to_string(),
        "the body is of type text and cannot be read as bytes"
    );
    let no_body = Message::new(Body::Empty);
    assert!(matches!(
        no_body.as_text(),
        Err(MessageError::Format { found: "no body", expected: "text", .. })
    ));
}

/// C-56.
#[test]
fn absent_and_empty_bodies_stay_apart() {
    assert_eq!(Message::new(Body::Text(None)).as_text(), Ok(None));
    assert_eq!(Message::text("").as_text(), Ok(Some("")));
    assert_ne!(Message::new(Body::Text(None)), Message::text(""));
    assert!(Message::bytes(Bytes::new()).as_bytes().unwrap().is_empty());
    assert!(Message::map(MapBody::new()).as_map().unwrap().is_empty());
}

/// C-30.
#[test]
fn a_received_message_is_read_only_part_by_part_until_it_is_cleared() {
    let mut message = Message::text("one");
    message.set_property("a", 1).unwrap();
    let mut received = message.received(1);
    assert_eq!(received.body_mut().unwrap_err(), MessageError::NotWriteable { part: "body" });
    assert_eq!(received.set_property("a", 2).unwrap_err(), MessageError::NotWriteable { part: "properties" });

    received.clear_body();
    assert_eq!(received.as_text(), Ok(None), "a cleared text message is one without a text");
    *received.body_mut().unwrap() = Body::text("two");
    assert!(received.set_property("a", 2).is_err(), "clearing the body clears no properties");
    assert_eq!(received.property::<i32>("a"), Ok(Some(1)));

    received.clear_properties();
    assert_eq!(received.property::<i32>("a"), Ok(None));
    received.set_property("a", 3).unwrap();
    assert_eq!(received.property::<i64>("a"), Ok(Some(3)));
    assert_eq!(received.as_text(), Ok(Some("two")));
}

#[test]
fn a_cleared_body_keeps_its_kind_and_everything_else() {
    for mut message in kinds() {
        let kind = message.body().kind();
        message.set_property("kept", true).unwrap();
        message.clear_body();
        assert_eq!(message.body().kind(), kind);
        assert_eq!(message.body().size(), 0);
        assert_eq!(message.property("kept"), Ok(Some(true)));
    }
}

/// C-30.
#[test]
fn a_missing_property_is_none_as_every_type_and_no_invented_value() {
    let message = Message::text("");
    assert_eq!(message.property::<bool>("missing"), Ok(None));
    assert_eq!(message.property::<i32>("missing"), Ok(None));
    assert_eq!(message.property::<f64>("missing"), Ok(None));
    assert_eq!(message.property::<String>("missing"), Ok(None));
    assert_eq!(message.property::<Value>("missing"), Ok(None));
}

#[test]
fn a_refused_property_changes_nothing() {
    let mut message = Message::text("");
    message.set_property("a", 1).unwrap();
    assert!(message.set_property("sentry-trace", "x").is_err());
    assert!(message.set_property("a", vec![1]).is_err());
    assert_eq!(message.properties().iter().collect::<Vec<_>>(), [("a", &Value::Int(1))]);
}

#[test]
fn properties_come_in_the_order_of_their_names() {
    let mut message = Message::text("");
    message
        .set_property("b", 1)
        .unwrap()
        .set_property("a", 2)
        .unwrap()
        .set_property("JMSXGroupID", "g")
        .unwrap();
    assert_eq!(message.properties().names().collect::<Vec<_>>(), ["JMSXGroupID", "a", "b"]);
}

#[test]
fn the_delivery_count_is_a_property_that_nobody_can_set() {
    let mut message = Message::text("");
    assert_eq!(message.property::<i32>("JMSXDeliveryCount"), Ok(None), "it was never delivered");
    assert!(message.set_property("JMSXDeliveryCount", 1).is_err());
    let received = message.received(3);
    assert_eq!(received.property::<i64>("JMSXDeliveryCount"), Ok(Some(3)));
    assert!(received.headers().redelivered());
    assert!(received.property::<bool>("JMSXDeliveryCount").is_err());
}

#[test]
fn a_broker_adds_properties_to_a_received_message_without_a_trace_in_other_copies() {
    let received = Message::text("poison").received(7);
    let mut dead_letter = received.clone();
    dead_letter.properties_mut_unchecked().set_unchecked("JMSXDeliveryCount", Value::Int(7));
    dead_letter.properties_mut_unchecked().set_unchecked("dlqDeliveryFailureCause", "no stock".into());
    assert!(received.properties().is_empty());

    let read = dead_letter.received(1);
    assert_eq!(read.headers().delivery_count, 1);
    assert_eq!(read.property("JMSXDeliveryCount"), Ok(Some(7)), "the deliveries that failed");
}

#[test]
fn a_clone_is_not_changed_with_the_original() {
    let mut message = kinds()[3].clone();
    let copy = message.clone();
    if let Body::Map(map) = message.body_mut().unwrap() {
        map.set("more", 1).unwrap();
    }
    message.set_property("more", 1).unwrap();
    assert!(!copy.as_map().unwrap().contains("more"));
    assert!(copy.properties().is_empty());
    assert_ne!(message, copy);
}

#[test]
fn equality_asks_for_the_content_and_not_for_the_right_to_change_it() {
    let mut sent = Message::text("x");
    sent.headers_mut().delivery_count = 1;
    assert_eq!(sent.clone().received(1), sent);
    assert_ne!(sent.clone().received(2), sent);
}

#[test]
fn the_size_counts_what_grows() {
    let empty = Message::text("").size();
    assert_eq!(Message::text("x".repeat(1_000)).size(), empty + 1_000);
    assert_eq!(Message::bytes(vec![0; 1_000]).size(), empty + 1_000);
    let mut message = Message::text("");
    message.headers_mut().correlation_id = Some("x".repeat(100).into());
    assert_eq!(message.size(), empty + 100);
    message.set_property("a", "x".repeat(1_000)).unwrap();
    assert!(message.size() > empty + 1_100);
    let mut stream = StreamBody::new();
    stream.push("x".repeat(1_000)).push(1);
    assert!(Message::stream(stream).size() > empty + 1_000);
}

#[test]
fn an_object_says_what_its_bytes_are() {
    let message = Message::object(&b"{}"[..], "application/json", "Order");
    assert_eq!(message.property::<String>(Properties::CONTENT_TYPE), Ok(Some("application/json".to_owned())));
    assert_eq!(message.properties().get(Properties::TYPE_NAME).and_then(Value::as_str), Some("Order"));
    assert_eq!(message.as_object().unwrap().as_bytes(), "{}");
}
