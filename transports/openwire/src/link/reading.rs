//! What the peer sends, as structures.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use super::LinkError;
use crate::codec::{Frames, Structure, WireFormat};

/// How many bytes are read at once at least. A small body that is kept keeps as many.
const READ: usize = 16 * 1024;

/// The half of a connection that is read.
#[derive(Debug)]
pub(crate) struct CommandReader<R> {
    stream: R,
    frames: Frames,
    format: WireFormat,
    /// How long the peer may be silent.
    silence: Option<Duration>,
}

impl<R: AsyncRead + Unpin> CommandReader<R> {
    /// Reads in the format of the first frame, of at most so many bytes.
    pub(crate) fn new(stream: R, maximum: usize) -> Self {
        Self { stream, frames: Frames::new(maximum), format: WireFormat::default(), silence: None }
    }

    /// What follows is in this format, and the peer may be silent for so long.
    pub(crate) fn agree(&mut self, format: WireFormat, silence: Option<Duration>) {
        self.frames.set_maximum(format.maximum_frame_size);
        self.format = format;
        self.silence = silence;
    }

    /// The next structure. Dropping the future loses nothing.
    ///
    /// # Errors
    /// After one there is nothing more to read, [`LinkError::Closed`] included.
    pub(crate) async fn next(&mut self) -> Result<Structure, LinkError> {
        loop {
            if let Some(structure) = self.next_here()? {
                return Ok(structure);
            }
            self.frames.reserve(READ);
            let read = self.stream.read_buf(self.frames.buffer_mut());
            let count = match self.silence {
                Some(limit) => timeout(limit, read).await.map_err(|_| LinkError::Silent { limit })??,
                None => read.await?,
            };
            if count == 0 {
                let is_cut = self.frames.is_within_a_frame();
                return Err(if is_cut { LinkError::Truncated } else { LinkError::Closed });
            }
        }
    }

    /// Reads what still comes, and forgets it, until the peer has closed its side. For a peer that is sent away: bytes
    /// that were not read when a socket is closed may take with them what was written last.
    pub(crate) async fn discard(&mut self) {
        let mut nowhere = [0; 4_096];
        while matches!(self.stream.read(&mut nowhere).await, Ok(1..)) {}
    }

    /// The next structure of what was read already; `None` where more has to be read.
    ///
    /// # Errors
    /// As [`CommandReader::next`].
    pub(crate) fn next_here(&mut self) -> Result<Option<Structure>, LinkError> {
        while let Some(frame) = self.frames.next_frame()? {
            // The null command says nothing.
            if let Some(structure) = self.format.decode(&frame)? {
                return Ok(Some(structure));
            }
        }
        Ok(None)
    }
}
