//! Each structure in each version.

use corriere_openwire::conversion::ConversionLimits;
use corriere_openwire::structures::Message;
use corriere_openwire::{Structure, WireFormat};

use crate::{expected, expected_messages, files};

#[test]
fn every_recorded_structure_is_read_as_what_java_meant() {
    for (file, format) in files::all().into_iter().filter(|(file, _)| file.starts_with("structures")) {
        let mut expected = expected::all(format);
        expected.extend(expected_messages::all(format));
        let recorded = files::frames(&file);
        for one in &recorded {
            let found = expected.iter().position(|(label, _)| *label == one.label);
            let (label, structure) = expected.swap_remove(found.unwrap_or_else(|| panic!("{}", one.label)));
            assert_eq!(format.decode(&one.frame), Ok(Some(structure)), "{file}, {label}");
        }
        let left: Vec<_> = expected.iter().map(|(label, _)| label).collect();
        assert!(left.is_empty(), "{file} has no {left:?}");
    }
}

#[test]
fn every_recorded_frame_is_written_again_byte_by_byte() {
    for (file, format) in files::all() {
        for one in files::frames(&file) {
            let structure = format.decode(&one.frame).unwrap_or_else(|error| panic!("{file}: {error}"));
            let mut bytes = Vec::new();
            format.encode(&structure.expect("it is no null command"), &mut bytes).unwrap();
            assert_eq!(bytes[4..], one.frame, "{file}, {}", one.label);
        }
    }
}

/// The bodies and properties of what Java wrote, in core and back. Java's maps have no order, so values are compared.
#[test]
fn recorded_messages_become_core_s_and_go_out_as_what_they_were() {
    let format = WireFormat::default();
    for (label, body) in expected_messages::bodies() {
        for suffix in ["", "-compressed"] {
            let message = recorded(format, &format!("{label}{suffix}"));
            let converted = message.to_core(ConversionLimits::default()).unwrap();
            assert_eq!(converted.body(), &body, "{label}{suffix}");
            let again = Message::from_core(&converted).unwrap();
            assert!(!again.compressed && again.kind == message.kind);
            assert_eq!(again.content, recorded(format, label).content, "{label}{suffix}");
        }
    }
    let values = recorded(format, "MapMessage-values");
    let converted = values.to_core(ConversionLimits::default()).unwrap();
    expected_messages::check_values(&converted);
    let again = Message::from_core(&converted).unwrap().to_core(ConversionLimits::default());
    assert_eq!(again, Ok(converted));
}

fn recorded(format: WireFormat, label: &str) -> Message {
    let frames = files::frames("structures-v12.txt");
    let frame = &frames.iter().find(|one| one.label == label).expect("it is recorded").frame;
    match format.decode(frame) {
        Ok(Some(Structure::Message(message))) => *message,
        other => panic!("{label}: {other:?}"),
    }
}
