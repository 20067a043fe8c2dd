//! The recorded files; `tests/recorded/README.md` says what they hold.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use corriere_openwire::{Version, WireFormat};

/// A recorded frame, with what stands before it in its line.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) label: String,
    pub(crate) frame: Bytes,
}

/// All frames of a file.
pub(crate) fn frames(file: &str) -> Vec<Recorded> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .map(|line| {
            let (label, digits) = line.split_once(' ').unwrap();
            let frame = digits
                .as_bytes()
                .chunks(2)
                .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap());
            Recorded { label: label.to_owned(), frame: frame.collect() }
        })
        .collect()
}

/// Each file with the wire format that it was recorded in.
pub(crate) fn all() -> Vec<(String, WireFormat)> {
    let structures = (9..=12).filter_map(Version::agreed).map(|version| {
        (format!("structures-v{version}.txt"), WireFormat { version, ..WireFormat::default() })
    });
    let with_stacks = WireFormat { stack_traces: true, ..WireFormat::default() };
    let others = ["structures-v12-stack-traces.txt", "conversation-v12.txt"];
    structures.chain(others.map(|file| (file.to_owned(), with_stacks))).collect()
}
