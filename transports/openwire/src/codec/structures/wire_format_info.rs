//! What both sides send first (OpenWire, section 2).

use bytes::Bytes;

use crate::codec::error::{DecodeError, DecodeFault, EncodeError};
use crate::codec::loose::{Field, Reader, Writer, describe};
use crate::codec::primitive::{PrimitiveLimits, PrimitiveMap};

describe! {
    /// How a side can encode. What a version is, is agreed on with this, so it is encoded in the same way in all of them.
    structure 1 WireFormatInfo {
        /// The word that shows that the peer speaks OpenWire.
        magic: Magic,
        /// The newest version that it speaks.
        version: i32,
        /// What it can and wants, as a primitive map (OpenWire, section 6).
        marshalled_properties: Option<Bytes>,
    }
}

impl WireFormatInfo {
    /// How large the frame of this structure may be, its size not counted: as much as its properties may take.
    pub const MAXIMUM_FRAME_SIZE: usize = 128 * 1024;

    const LIMITS: PrimitiveLimits =
        PrimitiveLimits { entries: 64, bytes: 512, depth: 1, memory: Self::MAXIMUM_FRAME_SIZE };

    /// This version, with these properties.
    ///
    /// # Errors
    /// A property that cannot be written.
    pub fn new(version: i32, properties: &PrimitiveMap) -> Result<Self, EncodeError> {
        Ok(Self { magic: Magic, version, marshalled_properties: Some(properties.encode()?) })
    }

    /// The properties. Of a stranger's there are 64 at most, of 512 bytes each, and none is a map or a list.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn properties(&self) -> Result<PrimitiveMap, DecodeError> {
        let Some(bytes) = &self.marshalled_properties else {
            return Ok(PrimitiveMap::default());
        };
        PrimitiveMap::decode(bytes, Self::LIMITS)
            .map(Option::unwrap_or_default)
            .map_err(|error| error.within("marshalled_properties").within("WireFormatInfo"))
    }
}

/// The eight bytes `ActiveMQ`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Magic;

impl Magic {
    /// The bytes.
    pub const BYTES: &'static [u8; 8] = b"ActiveMQ";
}

impl Field for Magic {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if reader.array()? == *Self::BYTES {
            return Ok(Self);
        }
        Err(reader.fault(Self::BYTES.len(), DecodeFault::Magic))
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.bytes(Self::BYTES);
        Ok(())
    }

    #[cfg(test)]
    fn sample(_source: &mut crate::codec::sample::Source) -> Self {
        Self
    }
}
