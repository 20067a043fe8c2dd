//! Why a connection cannot go on.

use std::io;
use std::time::Duration;

use thiserror::Error;

use crate::codec::negotiation::NegotiationError;
use crate::codec::{DecodeError, EncodeError, FrameError};

/// Why nothing more can be read or written.
#[derive(Debug, Error)]
pub(crate) enum LinkError {
    /// The peer has closed its side between two frames.
    #[error("the peer has closed the connection")]
    Closed,
    /// The peer has closed its side within a frame.
    #[error("the peer has closed the connection within a frame")]
    Truncated,
    /// Nothing came for too long.
    #[error("the peer was silent for {limit:?}, longer than was agreed on")]
    Silent {
        /// How long it may be silent.
        limit: Duration,
    },
    /// A large frame came too slowly, where others may wait for its place.
    #[error(
        "the peer took too long over a frame: {received} of its {size} bytes have come; expected at least 8192 a second"
    )]
    Slow {
        /// What has come of it.
        received: usize,
        /// What it has.
        size: usize,
    },
    /// No wire format came in time.
    #[error("the peer did not send its wire format (WireFormatInfo) within {limit:?}")]
    NoWireFormat {
        /// How long it had.
        limit: Duration,
    },
    /// Something else came first.
    #[error("the peer began with {found}; expected its wire format (WireFormatInfo)")]
    NotWireFormat {
        /// The structure that came.
        found: &'static str,
    },
    /// What came first is of another protocol.
    #[error("the peer does not speak OpenWire; this looks like {protocol}")]
    OtherProtocol {
        /// Its name.
        protocol: &'static str,
    },
    /// The peer cannot be talked to.
    #[error("{0}")]
    Negotiation(#[from] NegotiationError),
    /// What came cannot be cut into frames.
    #[error("{0}")]
    Frame(#[from] FrameError),
    /// A frame cannot be read.
    #[error("{0}")]
    Decode(#[from] DecodeError),
    /// Something cannot be written.
    #[error("{0}")]
    Encode(#[from] EncodeError),
    /// The socket failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}
