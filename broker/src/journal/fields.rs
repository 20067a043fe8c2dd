//! Numbers and texts as bytes, and back.

use std::sync::Arc;

use bytes::Bytes;

/// Why bytes are not what was expected, as a part of a sentence: `it ends within a number`.
pub(crate) type Fault = &'static str;

/// A text or byte array is longer than its length can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Appends a length and so many bytes.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), TooLong> {
    put_count(out, bytes.len())?;
    out.extend_from_slice(bytes);
    Ok(())
}

/// Appends a number of things.
pub(super) fn put_count(out: &mut Vec<u8>, count: usize) -> Result<(), TooLong> {
    put_u32(out, u32::try_from(count).map_err(|_| TooLong)?);
    Ok(())
}

pub(super) fn put_u32(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_le_bytes());
}

pub(super) fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

/// Appends 0, or 1 and what `put` appends of the value.
pub(super) fn put_option<T>(
    out: &mut Vec<u8>,
    value: Option<T>,
    put: impl FnOnce(&mut Vec<u8>, T) -> Result<(), TooLong>,
) -> Result<(), TooLong> {
    out.push(value.is_some().into());
    value.map_or(Ok(()), |value| put(out, value))
}

/// Bytes that are read from their beginning. A read that fails leaves it anywhere.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Nothing may be left.
    pub(super) fn finish(&self) -> Result<(), Fault> {
        if self.rest.is_empty() { Ok(()) } else { Err("there are bytes left behind its fields") }
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (array, rest) = self.rest.split_first_chunk().ok_or("it ends within a number")?;
        self.rest = rest;
        Ok(*array)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Fault> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn bool(&mut self) -> Result<bool, Fault> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err("a flag is neither 0 nor 1"),
        }
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Fault> {
        let length = usize::try_from(self.u32()?).map_err(|_| TOO_SHORT)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(TOO_SHORT)?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Fault> {
        str::from_utf8(self.bytes()?).map_err(|_| "a text is not UTF-8")
    }

    pub(super) fn shared_text(&mut self) -> Result<Arc<str>, Fault> {
        self.text().map(Arc::from)
    }

    /// Bytes that share the memory of `whole`, in which these fields stand.
    pub(super) fn shared_bytes(&mut self, whole: &Bytes) -> Result<Bytes, Fault> {
        self.bytes().map(|bytes| whole.slice_ref(bytes))
    }

    pub(super) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        if self.bool()? { read(self).map(Some) } else { Ok(None) }
    }
}

const TOO_SHORT: Fault = "a text or an array of bytes is said to be longer than all that is there";
