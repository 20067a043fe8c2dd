//! Recorded frames, cut short and flipped at every byte: an error or a value, and no more memory than a frame is worth.
//!
//! All of it is one test, as memory is counted for the whole process.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

#[path = "../recordings/files.rs"]
mod files;

use std::io::Write;

use bytes::Bytes;
use corriere_openwire::conversion::ConversionLimits;
use corriere_openwire::structures::{Message, MessageKind};
use corriere_openwire::{Structure, WireFormat};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What a frame may take for each of its bytes, and what the least of them may take: the structures themselves, errors.
const PER_BYTE: usize = 40;
const LEAST: usize = 16 * 1024;

/// What a body may take when it is read into values; a little more goes where a buffer that grows is copied.
const LIMITS: ConversionLimits = ConversionLimits { memory: 64 * 1024 };

#[test]
fn no_damage_to_a_recorded_frame_does_more_than_fail() {
    let mut tried = 0_u64;
    for (file, format) in files::all() {
        for one in files::frames(&file) {
            let origin = format!("{file}, {}", one.label);
            // What a large frame has more of is the bytes of one text.
            let step = one.frame.len() / 2_000 + 1;
            for place in (0..one.frame.len()).step_by(step) {
                let whole = &one.frame;
                try_out(format, &whole.slice(..place), &origin);
                for mask in [0xff, 0x01, 0x80] {
                    let mut flipped = whole.to_vec();
                    flipped[place] ^= mask;
                    try_out(format, &flipped.into(), &origin);
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 100_000, "{tried} frames only");
    announced_lengths_take_nothing();
    small_values_and_bombs_stay_within_their_limit();
}

fn try_out(format: WireFormat, frame: &Bytes, origin: &str) {
    let (structure, taken) = measured(|| format.decode(frame));
    assert!(taken <= PER_BYTE * frame.len() + LEAST, "{origin}: {taken} bytes for {frame:x?}");
    let Ok(Some(structure)) = structure else { return };
    // What can be read can be written, and is the same then.
    let mut bytes = Vec::new();
    format.encode(&structure, &mut bytes).unwrap();
    assert_eq!(format.decode(&Bytes::from(bytes).slice(4..)), Ok(Some(structure.clone())), "{origin}");
    let (_, taken) = measured(|| convert(&structure));
    assert!(taken <= 4 * LIMITS.memory + LEAST, "{origin}: {taken} bytes for {frame:x?}");
}

fn convert(structure: &Structure) {
    match structure {
        Structure::Message(message) => drop(message.to_core(LIMITS)),
        Structure::MessageDispatch(dispatch) => drop(dispatch.to_core(LIMITS)),
        Structure::WireFormatInfo(info) => drop(info.properties()),
        _ => {}
    }
}

/// A few bytes that say that many more follow: up to two billion.
fn announced_lengths_take_nothing() {
    let format = WireFormat { stack_traces: true, ..WireFormat::default() };
    let frames: [&[u8]; 5] = [
        // WireFormatInfo: the properties.
        b"\x01ActiveMQ\0\0\0\x0c\x01\x7f\xff\xff\xff",
        // ConnectionControl: the token.
        b"\x12\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x7f\xff\xff\xff",
        // DataArrayResponse: the structures.
        b"\x21\0\0\0\0\0\0\0\0\0\x01\x7f\xff",
        // ConnectionError: the stack of an exception without a class and a message.
        b"\x10\0\0\0\0\0\x01\x01\0\0\0\x7f\xff",
        // ConnectionId: the text.
        b"\x78\x01\xff\xff",
    ];
    for frame in frames {
        let (result, taken) = measured(|| format.decode(&Bytes::from_static(frame)));
        assert!(result.is_err() && taken < 1_024, "{taken} bytes for {frame:x?}");
    }
}

fn small_values_and_bombs_stay_within_their_limit() {
    let nulls =
        Message { kind: MessageKind::Stream, content: Some(vec![0; 1 << 22].into()), ..Message::default() };
    let zeros = deflated_zeros(1 << 22);
    let behind_length = [&(1_u32 << 22).to_be_bytes()[..], &zeros].concat();
    let bomb = |kind, content: &[u8]| Message {
        kind,
        compressed: true,
        content: Some(Bytes::copy_from_slice(content)),
        ..Message::default()
    };
    let messages = [
        nulls,
        bomb(MessageKind::Stream, &zeros),
        bomb(MessageKind::Text, &zeros),
        bomb(MessageKind::Bytes, &behind_length),
    ];
    for message in messages {
        let (result, taken) = measured(|| message.to_core(LIMITS));
        assert!(result.is_err() && taken < 5 * LIMITS.memory, "{taken} bytes");
    }
}

/// So many zeros as a zlib stream of a thousandth of that.
fn deflated_zeros(length: usize) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&vec![0; length]).unwrap();
    encoder.finish().unwrap()
}

/// The result, and how much more memory was in use at some time than before.
fn measured<T>(work: impl FnOnce() -> T) -> (T, usize) {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let result = work();
    (result, MEMORY.peak_usage().saturating_sub(before))
}
