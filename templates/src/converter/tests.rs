//! What every converter has to keep: the value, the difference between absent and empty, and the place of a failure.

use std::collections::BTreeMap;

use corriere_core::{Body, Destination, Message, MessageId, Properties};
use serde::{Deserialize, Serialize};

use super::*;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    id: u64,
    lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Line {
    sku: String,
    price: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Carrier {
    Post,
    Courier,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Parcel {
    id: u64,
    weight: f32,
    pieces: u8,
    fragile: bool,
    grade: char,
    carrier: Carrier,
    label: Vec<u8>,
    note: Option<String>,
}

fn parcel() -> Parcel {
    Parcel {
        id: 17,
        weight: 2.5,
        pieces: 200,
        fragile: true,
        grade: 'ß',
        carrier: Carrier::Courier,
        label: vec![0, 255, 3],
        note: None,
    }
}

fn converter(name: &str) -> Arc<dyn MessageConverter> {
    (ConverterType::named(name).next().unwrap().build)()
}

fn text_property(message: &Message, name: &str) -> Option<String> {
    message.property(name).unwrap()
}

/// The message as it arrives, so that errors can name it.
fn sent(mut message: Message) -> Message {
    message.headers_mut().message_id = Some(MessageId { producer: "ID:1:1:1".into(), sequence: 9 });
    message.headers_mut().destination = Some(Destination::queue("orders").unwrap());
    message.received(1)
}

#[test]
fn json_reads_back_what_it_wrote_from_text_and_from_bytes() {
    let json = converter("json");
    let order = Order { id: 7, lines: vec![Line { sku: "A-17".into(), price: 0.1 }] };
    let message = json.encode(&order).unwrap();
    assert_eq!(text_property(&message, Properties::CONTENT_TYPE).as_deref(), Some("application/json"));
    assert_eq!(text_property(&message, Properties::TYPE_NAME), None);
    assert_eq!(json.decode::<Order>(&message).unwrap(), order);

    let bytes = Message::bytes(message.as_text().unwrap().unwrap().to_owned());
    assert_eq!(json.decode::<Order>(&bytes).unwrap(), order);
}

#[test]
fn json_through_the_trait_object_is_the_same_as_json_called_directly() {
    let json = JsonConverter::new().type_id("Order", "shop.order");
    let order = Order { id: 7, lines: Vec::new() };
    let message = json.to_message(&order).unwrap();
    assert_eq!(message, json.encode(&order).unwrap());
    let erased: &dyn MessageConverter = &json;
    assert_eq!(erased.decode_erased::<Order>(&message).unwrap(), order);

    let wrong = sent(Message::text(r#"{"id": 1, "lines": [{"sku": "A", "price": "dear"}]}"#));
    let direct = erased.decode::<Order>(&wrong).unwrap_err();
    let indirect = erased.decode_erased::<Order>(&wrong).unwrap_err().asked_for(type_name::<Order>());
    assert_eq!(direct, indirect);
}

#[test]
fn a_failed_read_names_the_message_the_place_and_the_type() {
    let wrong = sent(Message::text(r#"{"id": 1, "lines": [{"sku": "A", "price": "dear"}]}"#));
    let error = converter("json").decode::<Order>(&wrong).unwrap_err().to_string();
    for part in
        ["ID:1:1:1:9", "queue://orders", "a text body", "tests::Order", "lines[0].price", "\"dear\"", "f64"]
    {
        assert!(error.contains(part), "`{part}` is missing from: {error}");
    }
}

#[test]
fn what_follows_the_json_is_an_error() {
    let json = converter("json");
    assert!(json.decode::<u8>(&Message::text("1 2")).is_err());
    assert!(json.decode::<Option<u8>>(&Message::text("1 2")).is_err());
    assert_eq!(json.decode::<u8>(&Message::text(" 1 \n")).unwrap(), 1);
}

#[test]
fn text_that_does_not_claim_to_be_json_is_a_string_as_it_stands() {
    let json = converter("json");
    assert_eq!(json.decode::<String>(&Message::text("grüße")).unwrap(), "grüße");
    assert_eq!(json.decode::<Option<String>>(&Message::text("7")).unwrap().as_deref(), Some("7"));
    assert_eq!(json.decode::<u8>(&Message::text("7")).unwrap(), 7);
    assert_eq!(json.decode::<Option<Order>>(&Message::text("null")).unwrap(), None);

    let said = json.encode("grüße").unwrap();
    assert_eq!(said.as_text().unwrap(), Some("\"grüße\""));
    assert_eq!(json.decode::<String>(&said).unwrap(), "grüße");

    let mut parameters = Message::text("\"a\"");
    parameters.set_property(Properties::CONTENT_TYPE, "Application/JSON; charset=utf-8").unwrap();
    assert_eq!(json.decode::<String>(&parameters).unwrap(), "a");
}

#[test]
fn an_absent_body_is_none_and_an_empty_text_is_an_empty_string() {
    for name in ["json", "text"] {
        let converter = converter(name);
        for absent in [Message::new(Body::Empty), Message::new(Body::Text(None))] {
            assert_eq!(converter.decode::<Option<String>>(&absent).unwrap(), None, "{name}");
            converter.decode::<()>(&absent).unwrap();
            assert!(converter.decode::<String>(&absent).is_err(), "{name}");
            assert!(converter.decode::<u32>(&absent).is_err(), "{name}");
        }
        assert_eq!(converter.decode::<String>(&Message::text("")).unwrap(), "", "{name}");
        assert_eq!(
            converter.decode::<Option<String>>(&Message::text("")).unwrap().as_deref(),
            Some(""),
            "{name}"
        );
        assert!(converter.decode::<u32>(&Message::text("")).is_err(), "{name}");
    }
    for name in ["bytes", "map", "object"] {
        let absent = Message::new(Body::Empty);
        assert_eq!(converter(name).decode::<Option<Vec<u8>>>(&absent).unwrap(), None, "{name}");
        assert!(converter(name).decode::<Vec<u8>>(&absent).is_err(), "{name}");
    }
    assert_eq!(converter("bytes").decode::<Vec<u8>>(&Message::bytes(Vec::new())).unwrap(), Vec::<u8>::new());
}

#[test]
fn type_ids_are_written_and_checked_where_they_are_given() {
    let json: Arc<dyn MessageConverter> = Arc::new(JsonConverter::new().type_id("Order", "shop.order"));
    let order = Order { id: 1, lines: Vec::new() };
    let message = json.encode(&order).unwrap();
    assert_eq!(text_property(&message, Properties::TYPE_NAME).as_deref(), Some("shop.order"));
    assert_eq!(json.decode::<Order>(&message).unwrap(), order);

    let mut other = Message::text(r#"{"id": 1, "lines": []}"#);
    other.set_property(Properties::TYPE_NAME, "shop.invoice").unwrap();
    let error = json.decode::<Order>(&other).unwrap_err();
    assert!(matches!(&error, ConversionError::Type { found, .. } if found == "shop.invoice"), "{error}");
    // Without ids the property says nothing.
    assert_eq!(converter("json").decode::<Order>(&other).unwrap(), order);
}

#[test]
fn text_takes_scalars_and_refuses_the_rest() {
    let text = converter("text");
    assert_eq!(text.encode("a").unwrap().as_text().unwrap(), Some("a"));
    assert_eq!(text.encode(&'ß').unwrap().as_text().unwrap(), Some("ß"));
    assert_eq!(text.encode(&-7).unwrap().as_text().unwrap(), Some("-7"));
    assert_eq!(text.encode(&None::<String>).unwrap().as_text().unwrap(), None);
    assert_eq!(text.decode::<i8>(&Message::text("-7")).unwrap(), -7);
    assert_eq!(text.decode::<u64>(&Message::text("18446744073709551615")).unwrap(), u64::MAX);
    assert_eq!(text.decode::<f64>(&Message::text("0.1")).unwrap(), 0.1);
    assert_eq!(text.decode::<char>(&Message::text("ß")).unwrap(), 'ß');
    assert_eq!(text.decode::<Carrier>(&Message::text("Post")).unwrap(), Carrier::Post);
    assert!(text.decode::<i8>(&Message::text("300")).is_err());
    assert!(text.decode::<bool>(&Message::text("yes")).is_err());
    let error = text.encode(&parcel()).unwrap_err().to_string();
    assert!(error.contains("tests::Parcel") && error.contains("a struct"), "{error}");
    assert!(text.encode(&[1_u8]).is_err());
}

#[test]
fn bytes_and_text_are_never_taken_for_each_other() {
    let bytes = converter("bytes");
    assert_eq!(bytes.decode::<Vec<u8>>(&bytes.encode(&vec![0_u8, 255]).unwrap()).unwrap(), [0, 255]);
    let body = ::bytes::Bytes::from_static(b"abc");
    assert_eq!(bytes.decode::<::bytes::Bytes>(&bytes.encode(&body).unwrap()).unwrap(), body);
    assert_eq!(bytes.decode::<[u8; 2]>(&Message::bytes(vec![1, 2])).unwrap(), [1, 2]);
    assert!(bytes.decode::<String>(&Message::bytes("abc")).is_err());
    assert!(bytes.decode::<Vec<u8>>(&Message::text("abc")).is_err());
    assert!(bytes.encode("abc").is_err());
    assert!(bytes.encode(&[1_i32]).unwrap_err().to_string().contains("other than u8"));
    let error = converter("text").decode::<String>(&sent(Message::bytes("abc"))).unwrap_err().to_string();
    assert!(error.contains("a bytes body; expected a text body"), "{error}");
}

#[test]
fn a_map_keeps_the_types_of_its_fields() {
    let map = converter("map");
    let message = map.encode(&parcel()).unwrap();
    let body = message.as_map().unwrap();
    let kinds: BTreeMap<_, _> = body.iter().map(|(name, value)| (name, value.type_name())).collect();
    let expected = [
        ("carrier", "String"),
        ("fragile", "boolean"),
        ("grade", "char"),
        ("id", "long"),
        ("label", "byte[]"),
        ("note", "null"),
        ("pieces", "short"),
        ("weight", "float"),
    ];
    assert_eq!(kinds, BTreeMap::from(expected));
    assert_eq!(map.decode::<Parcel>(&message).unwrap(), parcel());
}

#[test]
fn a_map_names_the_field_that_does_not_fit() {
    let map = converter("map");
    let order = Order { id: 1, lines: vec![Line { sku: "A".into(), price: 1.0 }] };
    let error = map.encode(&order).unwrap_err();
    assert!(matches!(&error, ConversionError::Field { field, .. } if field == "lines"), "{error}");
    let large = BTreeMap::from([("id", u64::MAX)]);
    assert!(map.encode(&large).unwrap_err().to_string().contains("`id`"));
    assert!(map.encode(&BTreeMap::from([(1, 2)])).unwrap_err().to_string().contains("keys are not text"));
    assert!(map.encode("text").is_err());

    let mut wrong = map.encode(&parcel()).unwrap();
    let Body::Map(body) = wrong.body_mut().unwrap() else { panic!("a map") };
    body.set("pieces", "many").unwrap();
    let error = map.decode::<Parcel>(&sent(wrong)).unwrap_err().to_string();
    assert!(error.contains("at `pieces`") && error.contains("`many` is not an integer"), "{error}");
}

#[test]
fn an_object_says_what_it_is_and_a_foreign_one_is_refused() {
    let object = converter("object");
    let message = object.encode(&parcel()).unwrap();
    assert!(matches!(message.body(), Body::Object(_)));
    assert_eq!(text_property(&message, Properties::CONTENT_TYPE).as_deref(), Some("application/json"));
    assert_eq!(text_property(&message, Properties::TYPE_NAME).as_deref(), Some("Parcel"));
    assert_eq!(object.decode::<Parcel>(&message).unwrap(), parcel());

    let java = Message::new(Body::Object(corriere_core::message::ObjectBody::new(vec![0xac, 0xed, 0, 5])));
    let error = object.decode::<Parcel>(&sent(java)).unwrap_err().to_string();
    assert!(error.contains("content_type"), "{error}");
}

#[test]
fn every_converter_is_known_by_its_name() {
    for name in ["json", "text", "bytes", "map", "object"] {
        assert_eq!(ConverterType::named(name).count(), 1, "{name}");
    }
    assert!(ConverterType::named("xml").next().is_none());
}
