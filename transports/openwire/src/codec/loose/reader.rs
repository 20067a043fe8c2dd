//! Reads a frame from its beginning.

use std::sync::Arc;

use bytes::Bytes;
use corriere_core::message::modified_utf8;

use super::MAXIMUM_DEPTH;
use crate::codec::error::{DecodeError, DecodeFault};
use crate::codec::format::WireFormat;
use crate::codec::version::Version;

/// Bytes that are read from their beginning. A read that fails leaves it anywhere.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a Bytes,
    offset: usize,
    format: WireFormat,
    depth: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a Bytes, format: WireFormat) -> Self {
        Self { bytes, offset: 0, format, depth: 0 }
    }

    pub(crate) fn version(&self) -> Version {
        self.format.version
    }

    pub(crate) fn stack_traces(&self) -> bool {
        self.format.stack_traces
    }

    pub(crate) fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.offset)
    }

    /// Nothing may be left.
    pub(crate) fn finish(&self) -> Result<(), DecodeError> {
        match self.left() {
            0 => Ok(()),
            left => Err(self.fault(0, DecodeFault::Trailing { left })),
        }
    }

    /// An error of what was read last, which began `back` bytes ago.
    pub(crate) fn fault(&self, back: usize, fault: DecodeFault) -> DecodeError {
        DecodeError::new(self.offset.saturating_sub(back), fault)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let rest = self.bytes.get(self.offset..).unwrap_or_default();
        let taken = rest.get(..length);
        let taken = taken
            .ok_or_else(|| self.fault(0, DecodeFault::Truncated { needed: length, left: rest.len() }))?;
        self.offset += length;
        Ok(taken)
    }

    /// Bytes that share the memory of all.
    pub(crate) fn shared(&mut self, length: usize) -> Result<Bytes, DecodeError> {
        let start = self.offset;
        self.take(length)?;
        Ok(self.bytes.slice(start..self.offset))
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn i8(&mut self) -> Result<i8, DecodeError> {
        self.array().map(i8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn i16(&mut self) -> Result<i16, DecodeError> {
        self.array().map(i16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, DecodeError> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, DecodeError> {
        self.array().map(i64::from_be_bytes)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, DecodeError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            byte => Err(self.fault(1, DecodeFault::Flag { byte })),
        }
    }

    /// A length or a count in 32 bits, of things that take `each` bytes at least.
    pub(crate) fn length(&mut self, each: usize) -> Result<usize, DecodeError> {
        let length = self.i32()?;
        self.checked(i64::from(length), each, 4)
    }

    /// As [`Reader::length`], where -1 says that there is nothing at all.
    pub(crate) fn nullable_length(&mut self, each: usize) -> Result<Option<usize>, DecodeError> {
        match self.i32()? {
            -1 => Ok(None),
            length => self.checked(i64::from(length), each, 4).map(Some),
        }
    }

    /// A count in 16 bits, of things that take `each` bytes at least.
    pub(crate) fn short_length(&mut self, each: usize) -> Result<usize, DecodeError> {
        let length = self.i16()?;
        self.checked(i64::from(length), each, 2)
    }

    /// A text of so many bytes.
    pub(crate) fn text(&mut self, length: usize) -> Result<Arc<str>, DecodeError> {
        let bytes = self.take(length)?;
        modified_utf8::decode(bytes).map(Into::into).map_err(|_| self.fault(length, DecodeFault::Text))
    }

    /// A text behind its length in 16 bits.
    pub(crate) fn short_text(&mut self) -> Result<Arc<str>, DecodeError> {
        let length = self.u16()?;
        self.text(length.into())
    }

    /// Reads what stands one level deeper.
    pub(crate) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        if self.depth == MAXIMUM_DEPTH {
            return Err(self.fault(0, DecodeFault::TooDeep { maximum: MAXIMUM_DEPTH }));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn checked(&self, length: i64, each: usize, back: usize) -> Result<usize, DecodeError> {
        let left = self.left();
        let fits = usize::try_from(length).ok().filter(|length| length.saturating_mul(each) <= left);
        fits.ok_or_else(|| self.fault(back, DecodeFault::Length { length, left }))
    }
}
