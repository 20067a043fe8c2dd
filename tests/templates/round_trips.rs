//! Whatever a converter writes it reads back the same.

use std::sync::Arc;

use bytes::Bytes;
use corriere_templates::MessageConverter;
use corriere_templates::{BytesConverter, JsonConverter, MapConverter, ObjectConverter, TextConverter};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Flat {
    flag: bool,
    byte: i8,
    short: u8,
    int: i32,
    long: u32,
    number: i64,
    ratio: f64,
    letter: char,
    text: String,
    octets: Vec<u8>,
    note: Option<String>,
}

prop_compose! {
    fn flat()(
        (flag, byte, short, int, long, number) in any::<(bool, i8, u8, i32, u32, i64)>(),
        ratio in proptest::num::f64::NORMAL,
        letter in any::<char>(),
        text in any::<String>(),
        octets in any::<Vec<u8>>(),
        note in any::<Option<String>>(),
    ) -> Flat {
        Flat { flag, byte, short, int, long, number, ratio, letter, text, octets, note }
    }
}

proptest! {
    #[test]
    fn of_a_struct(value in flat()) {
        let converters: [Arc<dyn MessageConverter>; 3] =
            [Arc::new(JsonConverter::new()), Arc::new(MapConverter), Arc::new(ObjectConverter::new())];
        for converter in converters {
            let message = converter.encode(&value).unwrap();
            prop_assert_eq!(&converter.decode::<Flat>(&message).unwrap(), &value);
        }
    }

    #[test]
    fn of_a_list_of_structs(values in proptest::collection::vec(proptest::option::of(flat()), 0..4)) {
        let json: Arc<dyn MessageConverter> = Arc::new(JsonConverter::new());
        let message = json.encode(&values).unwrap();
        prop_assert_eq!(json.decode::<Vec<Option<Flat>>>(&message).unwrap(), values);
    }

    #[test]
    fn of_text(text in any::<Option<String>>(), letter in any::<char>(), number in any::<i64>()) {
        let converter: Arc<dyn MessageConverter> = Arc::new(TextConverter);
        prop_assert_eq!(converter.decode::<Option<String>>(&converter.encode(&text).unwrap()).unwrap(), text);
        prop_assert_eq!(converter.decode::<char>(&converter.encode(&letter).unwrap()).unwrap(), letter);
        prop_assert_eq!(converter.decode::<i64>(&converter.encode(&number).unwrap()).unwrap(), number);
    }

    #[test]
    fn of_bytes(octets in any::<Vec<u8>>()) {
        let converter: Arc<dyn MessageConverter> = Arc::new(BytesConverter);
        let message = converter.encode(&octets).unwrap();
        prop_assert_eq!(&converter.decode::<Vec<u8>>(&message).unwrap(), &octets);
        prop_assert_eq!(converter.decode::<Bytes>(&message).unwrap(), Bytes::from(octets));
    }

    #[test]
    fn no_text_makes_json_panic(text in any::<String>()) {
        let json: Arc<dyn MessageConverter> = Arc::new(JsonConverter::new());
        let message = corriere_core::Message::text(text);
        let _ = json.decode::<Flat>(&message);
        let _ = json.decode::<Option<Vec<u8>>>(&message);
        let _ = json.decode::<char>(&message);
    }
}
