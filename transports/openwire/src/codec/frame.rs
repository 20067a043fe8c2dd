//! Frames: a size in four bytes, and as many bytes (OpenWire, section 1).

use bytes::{Buf, Bytes, BytesMut};
use thiserror::Error;

/// How many bytes a frame's size takes.
const PREFIX: usize = 4;

/// How large a frame may be whatever was agreed on: Java reads the size as a number that may be negative.
pub(crate) const LARGEST: usize = i32::MAX as usize;

/// Cuts what was read from a peer into frames.
///
/// Whoever reads appends to [`Frames::buffer_mut`] and takes frames until there is none. A frame that is announced takes
/// no memory before its bytes arrive.
#[derive(Debug)]
pub struct Frames {
    buffer: BytesMut,
    maximum: usize,
}

impl Frames {
    /// Frames of at most `maximum` bytes, their size not counted.
    #[must_use]
    pub fn new(maximum: usize) -> Self {
        Self { buffer: BytesMut::new(), maximum: maximum.min(LARGEST) }
    }

    /// Accepts frames of another size from now on: until the wire format is agreed on, a peer should have no more than
    /// [`WireFormatInfo::MAXIMUM_FRAME_SIZE`](crate::structures::WireFormatInfo::MAXIMUM_FRAME_SIZE).
    pub fn set_maximum(&mut self, maximum: usize) {
        self.maximum = maximum.min(LARGEST);
    }

    /// Where what is read has to be appended.
    pub fn buffer_mut(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Makes room for the next read: what is missing of the present frame, but no more than has already arrived of it, and
    /// `least` in any case.
    pub fn reserve(&mut self, least: usize) {
        let missing = self.announced().map_or(0, |size| (size + PREFIX).saturating_sub(self.buffer.len()));
        self.buffer.reserve(missing.min(self.buffer.len()).max(least));
    }

    /// The next frame without its size; `None` when it is not complete yet.
    ///
    /// It shares the memory of the buffer that it was read into, which lives as long as any part of it does.
    ///
    /// # Errors
    /// [`FrameError`]; nothing that follows can be read then.
    pub fn next_frame(&mut self) -> Result<Option<Bytes>, FrameError> {
        let Some(size) = self.announced() else {
            return Ok(None);
        };
        if size > self.maximum || size == 0 {
            return Err(FrameError { size, maximum: self.maximum });
        }
        if self.buffer.len() < PREFIX + size {
            return Ok(None);
        }
        self.buffer.advance(PREFIX);
        Ok(Some(self.buffer.split_to(size).freeze()))
    }

    /// Whether the peer stopped within a frame, should nothing follow.
    #[must_use]
    pub fn is_within_a_frame(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// The size of the frame that is not complete, and how much of it has come, its size not counted.
    pub(crate) fn unfinished(&self) -> Option<(usize, usize)> {
        let size = self.announced()?;
        Some((size, self.buffer.len().saturating_sub(PREFIX))).filter(|(size, received)| received < size)
    }

    fn announced(&self) -> Option<usize> {
        let prefix = self.buffer.first_chunk::<PREFIX>()?;
        // A negative size is one above `LARGEST`.
        Some(usize::try_from(u32::from_be_bytes(*prefix)).unwrap_or(usize::MAX - PREFIX))
    }
}

/// A frame is empty or too large.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the peer announces a frame of {size} bytes; expected 1 to {maximum}")]
#[non_exhaustive]
pub struct FrameError {
    /// The size that is announced.
    pub size: usize,
    /// The size that is accepted.
    pub maximum: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_whole_however_their_bytes_arrive() {
        let bytes = b"\0\0\0\x02ab\0\0\0\x01c\0\0\0\x03de";
        for step in 1..bytes.len() {
            let mut frames = Frames::new(3);
            let mut found = Vec::new();
            for part in bytes.chunks(step) {
                frames.reserve(0);
                frames.buffer_mut().extend_from_slice(part);
                while let Some(frame) = frames.next_frame().unwrap() {
                    found.push(frame);
                }
            }
            assert_eq!(found, [&b"ab"[..], b"c"], "in steps of {step}");
            assert!(frames.is_within_a_frame());
        }
    }

    #[test]
    fn a_size_that_is_not_accepted_is_an_error_before_anything_arrives() {
        for size in [4_u32, 0, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff] {
            let mut frames = Frames::new(3);
            frames.buffer_mut().extend_from_slice(&size.to_be_bytes());
            let error = frames.next_frame().unwrap_err();
            assert_eq!((error.size, error.maximum), (size as usize, 3));
        }
        // A negative one is refused by who would take anything.
        let mut frames = Frames::new(usize::MAX);
        frames.set_maximum(usize::MAX);
        frames.buffer_mut().extend_from_slice(&0x8000_0000_u32.to_be_bytes());
        assert_eq!(frames.next_frame().unwrap_err().maximum, 0x7fff_ffff);
    }

    #[test]
    fn room_grows_with_what_arrives_and_not_with_what_is_announced() {
        let mut frames = Frames::new(usize::MAX);
        frames.buffer_mut().extend_from_slice(&0x4000_0000_u32.to_be_bytes());
        frames.reserve(16);
        assert!(frames.buffer_mut().capacity() < 1_024);
        frames.buffer_mut().extend_from_slice(&[0; 10_000]);
        frames.reserve(16);
        assert!((20_000..50_000).contains(&frames.buffer_mut().capacity()));
    }
}
