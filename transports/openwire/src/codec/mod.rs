//! Bytes and structures: no input or output, no task, no clock.

pub mod conversion;
mod error;
mod format;
mod frame;
mod loose;
pub mod negotiation;
pub mod primitive;
mod structure;
pub mod structures;
mod version;

pub use error::{DecodeError, DecodeFault, EncodeError, EncodeFault};
pub use format::{DEFAULT_MAXIMUM_FRAME_SIZE, WireFormat};
pub use frame::{FrameError, Frames};
pub use structure::Structure;
pub use version::Version;

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
