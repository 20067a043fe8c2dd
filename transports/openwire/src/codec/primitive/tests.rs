use corriere_core::Value;
use proptest::prelude::*;

use super::*;
use crate::codec::error::{DecodeFault, EncodeFault};

const LIMITS: PrimitiveLimits =
    PrimitiveLimits { entries: 1_000, bytes: 100_000, depth: 127, memory: 1_000_000 };

fn values() -> impl Strategy<Value = Primitive> {
    let text = prop::collection::vec(any::<char>(), 0..12).prop_map(|text| String::from_iter(text).into());
    let plain = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Boolean),
        any::<i8>().prop_map(Value::Byte),
        any::<u16>().prop_map(Value::Char),
        any::<i16>().prop_map(Value::Short),
        any::<i32>().prop_map(Value::Int),
        any::<i64>().prop_map(Value::Long),
        any::<u64>().prop_map(|bits| Value::Double(f64::from_bits(bits))),
        any::<u32>().prop_map(|bits| Value::Float(f32::from_bits(bits))),
        text.prop_map(Value::String),
        any::<Vec<u8>>().prop_map(|bytes| Value::Bytes(bytes.into())),
        (8_180_usize..8_200).prop_map(|length| Value::String("é".repeat(length).into())),
    ];
    let leaf = plain.prop_map(Primitive::Plain);
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Primitive::List),
            prop::collection::vec((any::<String>(), inner), 0..4).prop_map(|entries| {
                Primitive::Map(PrimitiveMap(
                    entries.into_iter().map(|(name, value)| (name.into(), value)).collect(),
                ))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn every_value_comes_back(values in prop::collection::vec(values(), 0..6)) {
        let bytes = Primitive::encode_all(&values).unwrap();
        prop_assert_eq!(Primitive::decode_all(&bytes, LIMITS), Ok(values));
    }

    #[test]
    fn every_map_comes_back(values in prop::collection::vec((any::<String>(), values()), 0..6)) {
        let map = PrimitiveMap(values.into_iter().map(|(name, value)| (name.into(), value)).collect());
        let bytes = map.encode().unwrap();
        prop_assert_eq!(PrimitiveMap::decode(&bytes, LIMITS), Ok(Some(map)));
    }

    #[test]
    fn no_bytes_at_all_make_it_panic(bytes: Vec<u8>) {
        let bytes = Bytes::from(bytes);
        if let Ok(values) = Primitive::decode_all(&bytes, LIMITS) {
            let again = Primitive::encode_all(&values).unwrap();
            prop_assert_eq!(Primitive::decode_all(&again, LIMITS), Ok(values));
        }
        if let Ok(Some(map)) = PrimitiveMap::decode(&bytes, LIMITS) {
            prop_assert!(map.encode().is_ok());
        }
    }
}

fn fault<T: std::fmt::Debug>(result: Result<T, DecodeError>) -> (usize, DecodeFault) {
    let error = result.unwrap_err();
    (error.offset, error.fault)
}

/// The bytes are those that section 6 of the specification gives.
#[test]
fn values_stand_on_the_wire_as_the_specification_says() {
    let known: [(&[u8], Primitive); 13] = [
        (b"\0", Value::Null.into()),
        (b"\x01\x01", Value::Boolean(true).into()),
        (b"\x02\xff", Value::Byte(-1).into()),
        (b"\x03\0A", Value::Char(0x41).into()),
        (b"\x04\xff\xfe", Value::Short(-2).into()),
        (b"\x05\0\0\0\x07", Value::Int(7).into()),
        (b"\x06\0\0\0\0\0\0\0\x08", Value::Long(8).into()),
        (b"\x07\x3f\xf8\0\0\0\0\0\0", Value::Double(1.5).into()),
        (b"\x08\x3f\xc0\0\0", Value::Float(1.5).into()),
        (b"\x09\0\x04a\xc0\x80b", Value::String("a\0b".into()).into()),
        (b"\x0a\0\0\0\x02xy", Value::Bytes(Bytes::from_static(b"xy")).into()),
        (b"\x0b\0\0\0\x01\0\x01k\0", Primitive::Map(PrimitiveMap(vec![("k".into(), Value::Null.into())]))),
        (b"\x0c\0\0\0\x02\0\x02\x05", Primitive::List(vec![Value::Null.into(), Value::Byte(5).into()])),
    ];
    for (bytes, value) in known {
        assert_eq!(Primitive::encode_all([&value]).unwrap(), bytes);
        assert_eq!(Primitive::decode_all(&Bytes::from_static(bytes), LIMITS), Ok(vec![value]));
    }
}

#[test]
fn a_text_is_big_from_the_length_on_that_java_takes_for_big() {
    let tag = |text: &str| Primitive::encode_all([&Primitive::from(text)]).unwrap()[0];
    assert_eq!((tag(&"a".repeat(8_190)), tag(&"a".repeat(8_191))), (9, 13));
    assert_eq!((tag(&"é".repeat(8_190)), tag(&"é".repeat(8_191))), (9, 13), "units are counted, not bytes");
    assert_eq!((tag(&"😀".repeat(4_095)), tag(&"😀".repeat(4_096))), (9, 13));
    let long = Primitive::from("名".repeat(70_000));
    let bytes = Primitive::encode_all([&long]).unwrap();
    assert_eq!(Primitive::decode_all(&bytes, PrimitiveLimits::of_memory(1 << 20)), Ok(vec![long]));
}

#[test]
fn a_count_or_a_length_beyond_what_is_there_is_refused_before_anything_is_taken() {
    for (bytes, length, left) in [
        (&b"\x0c\x7f\xff\xff\xff\0"[..], 0x7fff_ffff, 1),
        (b"\x0c\xff\xff\xff\xff\0", -1, 1),
        (b"\x0b\0\0\0\x02\0\0\0\0\0", 2, 5),
        (b"\x0a\0\0\0\x05abcd", 5, 4),
        (b"\x0d\xff\xff\xff\xfeabcd", -2, 4),
    ] {
        let found = fault(Primitive::decode_all(&Bytes::from_static(bytes), LIMITS));
        assert_eq!(found, (1, DecodeFault::Length { length, left }), "{bytes:x?}");
    }
    let found = fault(Primitive::decode_all(&Bytes::from_static(b"\0\x0e"), LIMITS));
    assert_eq!(found, (1, DecodeFault::UnknownTag { tag: 14 }));
    let found = fault(PrimitiveMap::decode(&Bytes::from_static(b"\0\0\0\0\0"), LIMITS));
    assert_eq!(found, (4, DecodeFault::Trailing { left: 1 }));
}

#[test]
fn nesting_has_a_bound_in_both_directions() {
    let nested =
        |depth| (0..depth).fold(Primitive::Plain(Value::Null), |value, _| Primitive::List(vec![value]));
    let bytes = Primitive::encode_all([&nested(127)]).unwrap();
    assert_eq!(Primitive::decode_all(&bytes, LIMITS), Ok(vec![nested(127)]));
    let fault = Primitive::encode_all([&nested(128)]).unwrap_err().fault;
    assert_eq!(fault, EncodeFault::TooDeep { maximum: 127 });
    let deeper = Bytes::from([&b"\x0c\0\0\0\x01"[..], &bytes].concat());
    let fault = Primitive::decode_all(&deeper, LIMITS).unwrap_err().fault;
    assert_eq!(fault, DecodeFault::TooDeep { maximum: 127 });
}

#[test]
fn many_small_values_take_no_more_memory_than_allowed() {
    let nulls = Bytes::from(vec![0; 100_000]);
    let limits = PrimitiveLimits::of_memory(50_000);
    let fault = Primitive::decode_all(&nulls, limits).unwrap_err().fault;
    assert!(matches!(fault, DecodeFault::TooMuch { what: "bytes of memory", maximum: 50_000, .. }));
}

#[test]
fn a_null_map_is_none_and_of_a_name_that_is_there_twice_the_last_counts() {
    assert_eq!(PrimitiveMap::decode(&Bytes::from_static(b"\xff\xff\xff\xff"), LIMITS), Ok(None));
    let twice = Bytes::from_static(b"\0\0\0\x02\0\x01k\x02\x01\0\x01k\x02\x02");
    let map = PrimitiveMap::decode(&twice, LIMITS).unwrap().unwrap();
    assert_eq!((map.get("k"), map.get("j")), (Some(&Primitive::from(2_i8)), None));
}
