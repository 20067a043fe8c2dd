//! What the peer sends, as structures.

use std::time::Duration;

use bytes::BufMut;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout_at};

use super::LinkError;
use super::frame_room::{FramePlace, FrameRoom, SMALL};
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
    /// When something came last.
    heard: Instant,
    /// Where large frames need a place.
    place: Option<FramePlace>,
}

impl<R: AsyncRead + Unpin> CommandReader<R> {
    /// Reads in the format of the first frame, of at most so many bytes.
    pub(crate) fn new(stream: R, maximum: usize) -> Self {
        Self {
            stream,
            frames: Frames::new(maximum),
            format: WireFormat::default(),
            silence: None,
            heard: Instant::now(),
            place: None,
        }
    }

    /// Has its large frames take room that others share. While there is none it does not read.
    pub(crate) fn sharing(self, room: FrameRoom) -> Self {
        Self { place: Some(FramePlace::in_room(room)), ..self }
    }

    /// What follows is in this format, and the peer may be silent for so long.
    pub(crate) fn agree(&mut self, format: WireFormat, silence: Option<Duration>) {
        self.frames.set_maximum(format.maximum_frame_size);
        self.format = format;
        self.silence = silence;
        self.heard = Instant::now();
    }

    /// Takes frames of at most so many bytes from now on, and never larger ones than were agreed on.
    pub(crate) fn limit(&mut self, maximum: usize) {
        self.frames.set_maximum(maximum.min(self.format.maximum_frame_size));
    }

    /// Whether a part of a large frame is there, which holds room that others may wait for: what is to be read next is the
    /// rest of it.
    pub(crate) fn is_within_a_large_frame(&self) -> bool {
        self.place.as_ref().is_some_and(FramePlace::is_taken)
    }

    /// The next structure. Dropping the future loses nothing, and silence counts from what came last, whichever call read it.
    ///
    /// # Errors
    /// After one there is nothing more to read, [`LinkError::Closed`] included.
    pub(crate) async fn next(&mut self) -> Result<Structure, LinkError> {
        loop {
            if let Some(structure) = self.next_here()? {
                return Ok(structure);
            }
            if let Some(place) = &mut self.place
                && let Some((size, received)) = self.frames.unfinished()
                && received >= SMALL
                && place.enter(size, received).await
            {
                // The silence before was ours.
                self.heard = Instant::now();
            }
            let deadline = self.deadline();
            let received = self.frames.unfinished().map_or(0, |(_, received)| received);
            let most = self.place.as_ref().map_or(usize::MAX, |place| place.room(received));
            self.frames.reserve(READ);
            let mut buffer = self.frames.buffer_mut().limit(most);
            let read = self.stream.read_buf(&mut buffer);
            let count = match deadline {
                Some((at, error)) => timeout_at(at, read).await.map_err(|_| error)??,
                None => read.await?,
            };
            if count == 0 {
                let is_cut = self.frames.is_within_a_frame();
                return Err(if is_cut { LinkError::Truncated } else { LinkError::Closed });
            }
            self.heard = Instant::now();
        }
    }

    /// When something has to come, and what it means if nothing does.
    fn deadline(&self) -> Option<(Instant, LinkError)> {
        let silent = self
            .silence
            .and_then(|limit| Some((self.heard.checked_add(limit)?, LinkError::Silent { limit })));
        let slow = self.place.as_ref().and_then(|place| {
            let (size, received) = self.frames.unfinished()?;
            Some((place.deadline(received)?, LinkError::Slow { received, size }))
        });
        silent.into_iter().chain(slow).min_by_key(|(at, _)| *at)
    }

    /// Reads what still comes, and forgets it, until the peer has closed its side. For a peer that is sent away: bytes
    /// that were not read when a socket is closed may take with them what was written last.
    pub(crate) async fn discard(&mut self) {
        self.place = None;
        let mut nowhere = [0; 4_096];
        while matches!(self.stream.read(&mut nowhere).await, Ok(1..)) {}
    }

    /// What has come and is no whole frame.
    pub(crate) fn received(&mut self) -> &[u8] {
        self.frames.buffer_mut()
    }

    /// The memory that it has for what is not a whole frame yet.
    #[cfg(test)]
    pub(super) fn held(&mut self) -> usize {
        self.frames.buffer_mut().capacity()
    }

    /// The next structure of what was read already; `None` where more has to be read.
    ///
    /// # Errors
    /// As [`CommandReader::next`].
    pub(crate) fn next_here(&mut self) -> Result<Option<Structure>, LinkError> {
        while let Some(frame) = self.frames.next_frame()? {
            if let Some(place) = &mut self.place {
                place.leave();
            }
            // The null command says nothing.
            if let Some(structure) = self.format.decode(&frame)? {
                return Ok(Some(structure));
            }
        }
        Ok(None)
    }
}
