//! OpenWire, the wire format of ActiveMQ, as Corriere speaks it: versions 9 to 12, loose encoding, no cache.
//!
//! The codec does no input or output itself. [`Frames`] cuts what was read into frames, [`WireFormat`]
//! makes a [`Structure`] of a frame and bytes of a structure, [`negotiation`] agrees with the peer on how, and
//! [`conversion`] stands between the messages of the wire and those of `corriere-core`.
//!
//! [`acceptor`] serves any provider to peers over TCP. What two peers of Corriere agree on beyond OpenWire is in [`redelivery`].
//!
//! What each structure looks like on the wire is said once, in its description under [`structures`]: its fields in their
//! order, of what kind each is, and in which versions it is there. Reading and writing follow from that.
//!
//! Whatever a peer sends ends in a value or a typed error. Each length is compared with what is left of the frame before
//! anything is allocated for it, nesting has a bound, and names that stand on the wire are text and nothing else.
//!
//! ```
//! use corriere_openwire::structures::{ConnectionId, SessionId, SessionInfo};
//! use corriere_openwire::{Frames, Structure, WireFormat};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let format = WireFormat::default();
//! let session = SessionId { connection_id: "ID:host-1-2-3:1".into(), value: 1 };
//! let sent = Structure::from(SessionInfo { command_id: 7, session_id: session, ..SessionInfo::default() });
//!
//! let mut bytes = Vec::new();
//! format.encode(&sent, &mut bytes)?;
//!
//! let mut frames = Frames::new(format.maximum_frame_size);
//! frames.buffer_mut().extend_from_slice(&bytes);
//! let frame = frames.next_frame()?.expect("it is complete");
//! assert_eq!(format.decode(&frame)?, Some(sent));
//! # Ok(())
//! # }
//! ```

pub mod acceptor;
mod client;
mod codec;
mod durable;
mod link;
pub mod redelivery;

pub use codec::{
    DEFAULT_MAXIMUM_FRAME_SIZE, DecodeError, DecodeFault, EncodeError, EncodeFault, FrameError, Frames,
    Structure, Version, WireFormat, conversion, negotiation, primitive, structures,
};
