//! Any structures, for tests: made of bytes, so that what makes a test fail can be made smaller.

use std::sync::Arc;

use bytes::Bytes;

use crate::codec::format::WireFormat;
use crate::codec::version::Version;

/// How deep samples go.
const DEPTH: usize = 3;

/// Where samples take what they are made of. When nothing is left, all that follows is zero and short.
#[derive(Debug)]
pub(crate) struct Source {
    bytes: std::vec::IntoIter<u8>,
    format: WireFormat,
    depth: usize,
}

impl Source {
    pub(crate) fn new(bytes: Vec<u8>, format: WireFormat) -> Self {
        Self { bytes: bytes.into_iter(), format, depth: 0 }
    }

    pub(crate) fn version(&self) -> Version {
        self.format.version
    }

    pub(crate) fn stack_traces(&self) -> bool {
        self.format.stack_traces
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.next() % 2 == 1
    }

    pub(crate) fn i8(&mut self) -> i8 {
        self.next() as i8
    }

    pub(crate) fn i32(&mut self) -> i32 {
        // Boundaries more often than chance has them.
        match self.next() {
            0..64 => i32::from(self.i8()),
            64 => i32::MIN,
            65 => i32::MAX,
            _ => i32::from_be_bytes([self.next(), self.next(), self.next(), self.next()]),
        }
    }

    pub(crate) fn i64(&mut self) -> i64 {
        match self.next() {
            0..64 => i64::from(self.i8()),
            64 => i64::MIN,
            65 => i64::MAX,
            66 => 0xffff,
            67 => 0x1_0000,
            68 => 0xffff_ffff,
            69 => 1 << 32,
            _ => i64::from(self.i32()) << 32 | i64::from(self.i32()) & 0xffff_ffff,
        }
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::from(self.next()) % bound
    }

    pub(crate) fn text(&mut self) -> Arc<str> {
        const CHARACTERS: [char; 8] = ['a', ':', '\0', 'é', '名', '😀', '\u{ffff}', '\n'];
        (0..self.below(6)).map(|_| CHARACTERS[self.below(8)]).collect::<String>().into()
    }

    pub(crate) fn bytes(&mut self) -> Bytes {
        (0..self.below(6)).map(|_| self.next()).collect()
    }

    pub(crate) fn may_go_deeper(&self) -> bool {
        self.depth < DEPTH
    }

    pub(crate) fn deeper<T>(&mut self, sample: impl FnOnce(&mut Self) -> T) -> T {
        self.depth += 1;
        let result = sample(self);
        self.depth -= 1;
        result
    }

    fn next(&mut self) -> u8 {
        self.bytes.next().unwrap_or(0)
    }
}
