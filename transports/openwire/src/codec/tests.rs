//! Round trips of every structure in every version. What is made here has only what the version has.

use bytes::Bytes;
use proptest::prelude::*;

use crate::codec::error::{DecodeFault, EncodeFault};
use crate::codec::loose::Nested;
use crate::codec::sample::Source;
use crate::codec::structures::{
    BrokerInfo, BrokerSubscriptionInfo, ConnectionId, ConsumerInfo, DataResponse, KeepAliveInfo, Message,
    MessageDispatch, MessageId, RemoveInfo, SessionId, Throwable,
};
use crate::codec::{Structure, Version, WireFormat};

fn formats() -> impl Iterator<Item = WireFormat> {
    Version::all().flat_map(|version| {
        [false, true].map(|stack_traces| WireFormat { version, stack_traces, ..WireFormat::default() })
    })
}

fn encoded(format: WireFormat, structure: &Structure) -> Bytes {
    let mut bytes = Vec::new();
    format.encode(structure, &mut bytes).unwrap();
    assert_eq!(bytes[..4], u32::try_from(bytes.len() - 4).unwrap().to_be_bytes());
    Bytes::from(bytes).slice(4..)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn every_structure_comes_back_in_every_version(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for format in formats() {
            let sample = Structure::sample_any(&mut Source::new(bytes.clone(), format));
            let frame = encoded(format, &sample);
            prop_assert_eq!(format.decode(&frame), Ok(Some(sample)));
        }
    }

    #[test]
    fn no_part_of_a_frame_is_a_frame(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for format in formats() {
            let sample = Structure::sample_any(&mut Source::new(bytes.clone(), format));
            let frame = encoded(format, &sample);
            for length in 0..frame.len() {
                let error = format.decode(&frame.slice(..length)).unwrap_err();
                prop_assert!(error.offset <= length, "{error}");
            }
        }
    }

    #[test]
    fn any_bytes_are_a_structure_or_an_error(bytes: Vec<u8>) {
        for format in formats() {
            let _ = format.decode(&Bytes::from(bytes.clone()));
        }
    }
}

/// Every type is tried, whatever chance picks above.
#[test]
fn every_type_comes_back_in_every_version() {
    for format in formats() {
        for picked in 0..=255_u8 {
            for filling in [0, 1, 3, 77, 255] {
                let bytes = [vec![picked], vec![filling; 300]].concat();
                let sample = Structure::sample_any(&mut Source::new(bytes, format));
                assert_eq!(format.decode(&encoded(format, &sample)), Ok(Some(sample)));
            }
        }
    }
}

/// The bytes are put together by hand from section 5 of the specification.
#[test]
fn known_bytes_are_what_the_specification_says() {
    let session = |response_required| {
        let session_id = SessionId { connection_id: "ID:h-1:1".into(), value: -1 };
        Structure::from(crate::structures::SessionInfo { command_id: 258, response_required, session_id })
    };
    let bytes = b"\x04\0\0\x01\x02\x01\x01\x79\x01\0\x08ID:h-1:1\xff\xff\xff\xff\xff\xff\xff\xff";
    for format in formats() {
        assert_eq!(encoded(format, &session(true)), &bytes[..]);
        assert_eq!(format.decode(&Bytes::from_static(bytes)), Ok(Some(session(true))));
    }
    assert_eq!(WireFormat::default().decode(&Bytes::from_static(b"\0")), Ok(None), "the null command");
}

#[test]
fn an_error_says_where_and_in_which_field() {
    let id = MessageId { producer_id: Some("ID:h-1:1:1:1".parse().unwrap()), ..MessageId::default() };
    let message = Message { message_id: Some(id), ..Message::default() };
    let dispatch = MessageDispatch { message: Some(Box::new(message)), ..MessageDispatch::default() };
    let format = WireFormat::default();
    let frame = encoded(format, &dispatch.into());
    let at = frame.windows(4).position(|window| window == b"ID:h").unwrap();
    let mut damaged = frame.to_vec();
    damaged[at] = 0xff;
    let error = format.decode(&damaged.into()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "MessageDispatch.message.message_id.producer_id.connection_id, byte {at}: a text is not modified UTF-8, \
             or has half of a character in it"
        )
    );
    let error = format.decode(&Bytes::new()).unwrap_err();
    assert_eq!(error.to_string(), "frame, byte 0: 1 bytes are needed and 0 are left");
}

#[test]
fn what_does_not_belong_there_is_named() {
    let format = WireFormat::default();
    let fault = |bytes: &'static [u8]| format.decode(&Bytes::from_static(bytes)).unwrap_err().fault;
    assert_eq!(fault(b"\x0d"), DecodeFault::UnknownType { data_type: 13 });
    assert_eq!(fault(b"\xff"), DecodeFault::UnknownType { data_type: 255 });
    assert_eq!(
        fault(b"\x04\0\0\0\0\0\x01\x78"),
        DecodeFault::UnexpectedType { found: 0x78, expected: "SessionId" }
    );
    assert_eq!(fault(b"\x04\0\0\0\0\0\0"), DecodeFault::Null);
    assert_eq!(fault(b"\x04\0\0\0\0\x02"), DecodeFault::Flag { byte: 2 });
    assert_eq!(fault(b"\x0a\0\0\0\0\0\0"), DecodeFault::Trailing { left: 1 });
    assert_eq!(fault(b"\0\0"), DecodeFault::Trailing { left: 1 });
    assert_eq!(
        fault(b"\x07\0\0\0\0\0\0\0\x08"),
        DecodeFault::Code { code: 8, of: "operation on a transaction" }
    );
    assert_eq!(fault(b"\x01ActiveXX\0\0\0\x0c\0"), DecodeFault::Magic);
}

#[test]
fn what_only_a_newer_version_knows_is_refused_in_an_older_one() {
    let info = Structure::from(BrokerSubscriptionInfo::default());
    let newest = WireFormat::default();
    let frame = encoded(newest, &info);
    let older = WireFormat { version: Version::agreed(11).unwrap(), ..newest };
    let fault = older.encode(&info, &mut Vec::new()).unwrap_err().fault;
    assert_eq!(fault, EncodeFault::Version { version: older.version });
    assert_eq!(older.decode(&frame).unwrap_err().fault, DecodeFault::UnknownType { data_type: 92 });
}

#[test]
fn structures_and_causes_within_each_other_have_a_bound() {
    let format = WireFormat { stack_traces: true, ..WireFormat::default() };
    let mut nested = Structure::from(KeepAliveInfo::default());
    for depth in 0..=16 {
        assert_eq!(format.decode(&encoded(format, &nested)), Ok(Some(nested.clone())), "{depth} deep");
        nested = DataResponse { data: Some(nested), ..DataResponse::default() }.into();
    }
    let fault = format.encode(&nested, &mut Vec::new()).unwrap_err().fault;
    assert_eq!(fault, EncodeFault::TooDeep { maximum: 16 });
    // What nobody can write can still be sent.
    // A DataResponse in a DataResponse in ...
    let forged = Bytes::from(b"\x20\0\0\0\0\0\0\0\0\0\x01".repeat(100_000));
    assert_eq!(format.decode(&forged).unwrap_err().fault, DecodeFault::TooDeep { maximum: 16 });
    // A BrokerInfo whose one peer is a BrokerInfo whose one peer ...
    let peers = b"\x02\0\0\0\0\0\0\0\x01\0\x01\x01".repeat(100_000);
    assert_eq!(format.decode(&Bytes::from(peers)).unwrap_err().fault, DecodeFault::TooDeep { maximum: 16 });
    // A ConnectionError whose exception, of no name and no message, has a cause that has a cause ...
    let causes = [b"\x10\0\0\0\0\0".to_vec(), b"\x01\x01\0\0\0\0\0".repeat(100_000)].concat();
    assert_eq!(format.decode(&causes.into()).unwrap_err().fault, DecodeFault::TooDeep { maximum: 64 });
    let chain = |length| {
        let cause =
            (0..length).fold(None, |cause, _| Some(Box::new(Throwable { cause, ..Throwable::default() })));
        let exception = Some(Throwable { cause, ..Throwable::default() });
        Structure::from(crate::structures::ConnectionError { exception, ..Default::default() })
    };
    assert_eq!(format.decode(&encoded(format, &chain(64))), Ok(Some(chain(64))));
    assert!(format.encode(&chain(65), &mut Vec::new()).is_err());
}

#[test]
fn what_cannot_be_written_leaves_the_target_as_it_was() {
    let format = WireFormat { maximum_frame_size: 70_000, ..WireFormat::default() };
    let mut target = b"before".to_vec();
    let mut fault = |structure: Structure| {
        let error = format.encode(&structure, &mut target).unwrap_err();
        assert_eq!(target, b"before");
        (error.place(), error.fault)
    };
    let long = ConsumerInfo { selector: Some("a".repeat(65_536).into()), ..ConsumerInfo::default() };
    assert_eq!(
        fault(long.into()),
        ("ConsumerInfo.selector".to_owned(), EncodeFault::Text { length: 65_536 })
    );
    let many =
        BrokerInfo { peer_broker_infos: Some(vec![BrokerInfo::default(); 32_768]), ..Default::default() };
    let length = EncodeFault::Length { length: 32_768, maximum: 32_767 };
    assert_eq!(fault(many.into()), ("BrokerInfo.peer_broker_infos".to_owned(), length));
    let large = Message { content: Some(vec![0; 70_000].into()), ..Message::default() };
    let (place, size) = fault(large.into());
    assert!(matches!(size, EncodeFault::Frame { maximum: 70_000, .. }) && place == "Message", "{place}");
}

#[test]
fn a_long_text_and_an_odd_one_come_back() {
    let format = WireFormat::default();
    for text in ["a".repeat(65_535), "\0".repeat(32_767), "😀".repeat(10_922), String::new()] {
        let id = Structure::from(ConnectionId { value: text.into() });
        assert_eq!(format.decode(&encoded(format, &id)), Ok(Some(id)));
    }
}

#[test]
fn commands_are_numbered_and_ask_for_answers_and_what_is_no_command_does_not() {
    let object_id = Some(ConnectionId { value: "ID:1".into() }.into());
    let mut remove = Structure::from(RemoveInfo { object_id, response_required: true, ..Default::default() });
    remove.set_command_id(9);
    assert_eq!(
        (remove.command_id(), remove.response_required(), remove.name()),
        (Some(9), true, "RemoveInfo")
    );
    let mut message = Structure::from(Message::default());
    message.set_command_id(3);
    assert_eq!((message.command_id(), message.response_required()), (Some(3), false));
    let mut id = Structure::from(ConnectionId { value: "ID:1".into() });
    id.set_command_id(3);
    assert_eq!((id.command_id(), id.response_required()), (None, false));
}
