//! Appends what a frame is made of.

use corriere_core::message::modified_utf8;

use super::MAXIMUM_DEPTH;
use crate::codec::error::{EncodeError, EncodeFault};
use crate::codec::format::WireFormat;
use crate::codec::version::Version;

/// Appends to bytes. A write that fails leaves a part of what was to be written.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    target: &'a mut Vec<u8>,
    format: WireFormat,
    depth: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(target: &'a mut Vec<u8>, format: WireFormat) -> Self {
        Self { target, format, depth: 0 }
    }

    pub(crate) fn version(&self) -> Version {
        self.format.version
    }

    pub(crate) fn stack_traces(&self) -> bool {
        self.format.stack_traces
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.target.extend_from_slice(bytes);
    }

    pub(crate) fn u8(&mut self, number: u8) {
        self.bytes(&[number]);
    }

    pub(crate) fn i8(&mut self, number: i8) {
        self.bytes(&number.to_be_bytes());
    }

    pub(crate) fn u16(&mut self, number: u16) {
        self.bytes(&number.to_be_bytes());
    }

    pub(crate) fn i16(&mut self, number: i16) {
        self.bytes(&number.to_be_bytes());
    }

    pub(crate) fn i32(&mut self, number: i32) {
        self.bytes(&number.to_be_bytes());
    }

    pub(crate) fn i64(&mut self, number: i64) {
        self.bytes(&number.to_be_bytes());
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.u8(flag.into());
    }

    /// A length or a count in 32 bits.
    pub(crate) fn length(&mut self, length: usize) -> Result<(), EncodeError> {
        let fault = EncodeFault::Length { length, maximum: i32::MAX as usize };
        self.i32(i32::try_from(length).map_err(|_| EncodeError::new(fault))?);
        Ok(())
    }

    /// A count in 16 bits.
    pub(crate) fn short_length(&mut self, length: usize) -> Result<(), EncodeError> {
        let fault = EncodeFault::Length { length, maximum: i16::MAX as usize };
        self.i16(i16::try_from(length).map_err(|_| EncodeError::new(fault))?);
        Ok(())
    }

    /// A text behind its length in 16 bits.
    pub(crate) fn short_text(&mut self, text: &str) -> Result<(), EncodeError> {
        let length = modified_utf8::encoded_len(text);
        self.u16(u16::try_from(length).map_err(|_| EncodeError::new(EncodeFault::Text { length }))?);
        modified_utf8::encode(text, self.target);
        Ok(())
    }

    /// A text behind its length in 32 bits.
    pub(crate) fn long_text(&mut self, text: &str) -> Result<(), EncodeError> {
        self.length(modified_utf8::encoded_len(text))?;
        modified_utf8::encode(text, self.target);
        Ok(())
    }

    /// Writes what stands one level deeper.
    pub(crate) fn deeper(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        if self.depth == MAXIMUM_DEPTH {
            return Err(EncodeError::new(EncodeFault::TooDeep { maximum: MAXIMUM_DEPTH }));
        }
        self.depth += 1;
        let result = write(self);
        self.depth -= 1;
        result
    }
}
