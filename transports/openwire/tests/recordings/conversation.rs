//! What a client and a broker said to each other.

use std::collections::BTreeSet;

use corriere_core::{Body, DeliveryMode, Destination};
use corriere_openwire::conversion::ConversionLimits;
use corriere_openwire::negotiation::Preferences;
use corriere_openwire::structures::{JavaException, Message, MessageKind, Throwable};
use corriere_openwire::{Frames, Structure, WireFormat};

use crate::files;

fn conversation() -> Vec<(bool, Structure)> {
    let format = WireFormat { stack_traces: true, ..WireFormat::default() };
    let frames = files::frames("conversation-v12.txt");
    let read = frames.iter().map(|one| {
        let structure = format.decode(&one.frame).unwrap().expect("nobody says nothing");
        (one.label == ">", structure)
    });
    read.collect()
}

fn messages(structures: Vec<(bool, Structure)>) -> impl Iterator<Item = Message> {
    structures.into_iter().filter_map(|(_, structure)| match structure {
        Structure::Message(message) => Some(*message),
        Structure::MessageDispatch(dispatch) => dispatch.message.map(|message| *message),
        _ => None,
    })
}

#[test]
fn the_wire_format_of_the_client_can_be_agreed_on() {
    let mut clients = 0;
    for (from_client, structure) in conversation() {
        let Structure::WireFormatInfo(info) = structure else { continue };
        let agreement = Preferences::default().negotiate(&info).unwrap();
        assert_eq!(agreement.format.version.number(), 12);
        assert!(agreement.maximum_inactivity.is_some());
        if from_client {
            clients += 1;
            assert_eq!(agreement.host(), Some("127.0.0.1"));
        }
    }
    assert!(clients > 0);
}

#[test]
fn every_message_has_its_body_and_what_it_carries_goes_out_again() {
    let mut seen = BTreeSet::new();
    for message in messages(conversation()) {
        let converted = message.to_core(ConversionLimits::default()).unwrap();
        seen.insert((converted.body().kind(), message.compressed));
        let again = Message::from_core(&converted).unwrap();
        assert_eq!(
            (again.kind, &again.message_id.as_ref().unwrap().producer_id),
            (message.kind, &message.message_id.as_ref().unwrap().producer_id)
        );
        let back = again.to_core(ConversionLimits::default());
        assert_eq!(back, Ok(converted));
    }
    for kind in ["text", "bytes", "map", "stream", "object"] {
        assert!(seen.contains(&(kind, false)) && seen.contains(&(kind, true)), "{kind}: {seen:?}");
    }
    assert!(seen.contains(&("no body", false)));
}

#[test]
fn headers_and_properties_of_a_sent_message_are_those_that_java_set() {
    let message = messages(conversation())
        .find(|message| message.kind == MessageKind::Text && message.correlation_id.is_some())
        .expect("it is recorded");
    let message = message.to_core(ConversionLimits::default()).unwrap();
    assert_eq!(message.as_text(), Ok(Some("text")));
    assert_eq!(message.property("boolean"), Ok(Some(true)));
    assert_eq!(message.property("byte"), Ok(Some(1_i8)));
    assert_eq!(message.property("short"), Ok(Some(2_i16)));
    assert_eq!(message.property("int"), Ok(Some(3)));
    assert_eq!(message.property("long"), Ok(Some(4_i64)));
    assert_eq!(message.property("float"), Ok(Some(5.5_f32)));
    assert_eq!(message.property("double"), Ok(Some(6.5)));
    assert_eq!(message.property("string"), Ok(Some("é".to_owned())));
    assert_eq!(message.property("JMSXGroupID"), Ok(Some("group".to_owned())));
    assert_eq!(message.properties().len(), 9);
    let headers = message.headers();
    assert_eq!(headers.destination.as_ref().unwrap().to_string(), "queue://orders");
    assert_eq!(headers.delivery_mode, DeliveryMode::Persistent);
    assert_eq!((headers.priority.level(), headers.expiration), (8, None));
    assert_eq!(headers.correlation_id.as_deref(), Some("correlation"));
    assert_eq!(headers.message_type.as_deref(), Some("type"));
    assert!(headers.reply_to.as_ref().is_some_and(Destination::is_temporary));
    assert!(headers.message_id.as_ref().unwrap().to_string().starts_with("ID:host-"));
    assert!(headers.timestamp.0 > 1_600_000_000_000);
}

#[test]
fn a_dead_message_is_recognised() {
    let mut counts = BTreeSet::new();
    let mut dead = None;
    for (_, structure) in conversation() {
        let Structure::MessageDispatch(dispatch) = structure else { continue };
        let Some(message) = dispatch.to_core(ConversionLimits::default()).unwrap() else { continue };
        counts.insert(message.headers().delivery_count);
        if let Some(cause) = message.property::<String>("dlqDeliveryFailureCause").unwrap() {
            let beyond = dispatch.message.as_ref().unwrap().beyond_core();
            assert!(beyond.contains(&"original_destination"), "{beyond:?}");
            dead = Some((cause, message));
        }
    }
    // What is rolled back Java's client delivers again by itself, so the broker sends nothing twice.
    assert_eq!(counts, BTreeSet::from([1]));
    let (cause, message) = dead.expect("it is recorded");
    assert_eq!(message.body(), &Body::text("poison"));
    assert!(cause.contains("redelivery"), "{cause}");
}

#[test]
fn what_the_broker_refused_has_its_class() {
    let exceptions: Vec<_> = conversation()
        .into_iter()
        .filter_map(|(_, structure)| match structure {
            Structure::ExceptionResponse(response) => response.exception,
            _ => None,
        })
        .collect();
    let found: Vec<_> = exceptions.iter().filter_map(Throwable::exception).collect();
    assert_eq!(found, [JavaException::InvalidClientId, JavaException::Xa]);
    assert_eq!(exceptions[1].xa_error_code(), Some(-4));
    assert!(exceptions.iter().all(|exception| !exception.stack_trace.is_empty()));
}

#[test]
fn a_conversation_comes_out_of_a_stream_as_it_went_in() {
    let mut stream = Vec::new();
    let recorded = files::frames("conversation-v12.txt");
    for one in &recorded {
        stream.extend_from_slice(&u32::try_from(one.frame.len()).unwrap().to_be_bytes());
        stream.extend_from_slice(&one.frame);
    }
    let mut frames = Frames::new(1 << 20);
    let mut found = Vec::new();
    for part in stream.chunks(1_000) {
        frames.reserve(1_000);
        frames.buffer_mut().extend_from_slice(part);
        while let Some(frame) = frames.next_frame().unwrap() {
            found.push(frame);
        }
    }
    assert!(!frames.is_within_a_frame());
    assert!(recorded.iter().map(|one| &one.frame).eq(&found));
}
