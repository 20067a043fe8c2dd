//! Structures as frames, and frames as structures.

use bytes::Bytes;

use crate::codec::error::{DecodeError, EncodeError, EncodeFault};
use crate::codec::frame::LARGEST;
use crate::codec::loose::{Nested, Reader, Writer};
use crate::codec::structure::Structure;
use crate::codec::version::Version;

/// How large a frame may be where nobody says otherwise: 100 MiB.
pub const DEFAULT_MAXIMUM_FRAME_SIZE: usize = 100 * 1024 * 1024;

/// The type of the null command.
const NULL: u8 = 0;

/// How one connection encodes, in both directions.
///
/// [`WireFormat::default`] is what the first frame of each side, a
/// [`WireFormatInfo`](crate::structures::WireFormatInfo), is encoded in;
/// [`negotiation`](crate::codec::negotiation) makes what all others are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireFormat {
    /// Which fields there are.
    pub version: Version,
    /// Whether exceptions carry their stack and their cause.
    pub stack_traces: bool,
    /// How large a frame may be, its size not counted.
    pub maximum_frame_size: usize,
}

impl Default for WireFormat {
    fn default() -> Self {
        Self {
            version: Version::MAXIMUM,
            stack_traces: false,
            maximum_frame_size: DEFAULT_MAXIMUM_FRAME_SIZE,
        }
    }
}

impl WireFormat {
    /// Appends a frame with its size.
    ///
    /// # Errors
    /// What cannot be written, and where it stands; `target` is as it was then.
    pub fn encode(&self, structure: &Structure, target: &mut Vec<u8>) -> Result<(), EncodeError> {
        let start = target.len();
        let written = self.append(structure, target).map_err(|error| error.within(structure.name()));
        if written.is_err() {
            target.truncate(start);
        }
        written
    }

    /// Reads a frame without its size; `None` is the null command, which says nothing.
    ///
    /// Byte sequences of the structure share the memory of `frame`.
    ///
    /// # Errors
    /// What is wrong, where, and in which field.
    pub fn decode(&self, frame: &Bytes) -> Result<Option<Structure>, DecodeError> {
        let mut reader = Reader::new(frame, *self);
        let data_type = reader.u8().map_err(|error| error.within("frame"))?;
        let name = Structure::name_of(data_type).unwrap_or("frame");
        Self::decode_rest(data_type, &mut reader).map_err(|error| error.within(name))
    }

    fn decode_rest(data_type: u8, reader: &mut Reader<'_>) -> Result<Option<Structure>, DecodeError> {
        let structure = if data_type == NULL { None } else { Some(Structure::read_as(data_type, reader)?) };
        reader.finish()?;
        Ok(structure)
    }

    fn append(&self, structure: &Structure, target: &mut Vec<u8>) -> Result<(), EncodeError> {
        let start = target.len();
        target.extend_from_slice(&[0; 4]);
        let mut writer = Writer::new(target, *self);
        writer.u8(structure.data_type());
        structure.write_fields(&mut writer)?;
        let size = target.len() - start - 4;
        let maximum = self.maximum_frame_size.min(LARGEST);
        let prefix = u32::try_from(size).ok().filter(|_| size <= maximum);
        let prefix = prefix.ok_or_else(|| EncodeError::new(EncodeFault::Frame { size, maximum }))?;
        if let Some(place) = target.get_mut(start..start + 4) {
            place.copy_from_slice(&prefix.to_be_bytes());
        }
        Ok(())
    }
}
