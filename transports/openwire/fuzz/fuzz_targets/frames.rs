//! What a peer sends: cut into frames, read in a version that the first byte chooses, converted, and written again.

#![no_main]

use bytes::Bytes;
use corriere_openwire::conversion::ConversionLimits;
use corriere_openwire::{Frames, Structure, Version, WireFormat};
use libfuzzer_sys::fuzz_target;

const LIMITS: ConversionLimits = ConversionLimits { memory: 1 << 20 };

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, sent)) = bytes.split_first() else { return };
    let version = Version::agreed(9 + i32::from(choice % 4)).expect("9 to 12 are spoken");
    let format = WireFormat { version, stack_traces: choice & 0x80 != 0, maximum_frame_size: 1 << 20 };
    let mut frames = Frames::new(format.maximum_frame_size);
    frames.buffer_mut().extend_from_slice(sent);
    while let Ok(Some(frame)) = frames.next_frame() {
        if let Ok(Some(structure)) = format.decode(&frame) {
            convert(&structure);
            comes_back(format, structure);
        }
    }
});

fn convert(structure: &Structure) {
    match structure {
        Structure::Message(message) => drop(message.to_core(LIMITS)),
        Structure::MessageDispatch(dispatch) => drop(dispatch.to_core(LIMITS)),
        Structure::WireFormatInfo(info) => drop(info.properties()),
        _ => {}
    }
}

/// What can be read can be written, and is the same then.
fn comes_back(format: WireFormat, structure: Structure) {
    let mut written = Vec::new();
    format.encode(&structure, &mut written).expect("it was read");
    let again = format.decode(&Bytes::from(written).slice(4..));
    assert_eq!(again, Ok(Some(structure)));
}
