//! What the peer is sent.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::{LinkError, Outbox};
use crate::codec::structures::KeepAliveInfo;
use crate::codec::{EncodeError, Structure, WireFormat};

/// So many bytes are written at once, one frame of any size apart.
const WRITE: usize = 64 * 1024;

/// The half of a connection that is written.
#[derive(Debug)]
pub(crate) struct CommandWriter<W> {
    stream: W,
    format: WireFormat,
    /// Frames that are not written yet.
    bytes: Vec<u8>,
}

impl<W: AsyncWrite + Unpin> CommandWriter<W> {
    /// Writes in the format of the first frame.
    pub(crate) fn new(stream: W) -> Self {
        Self { stream, format: WireFormat::default(), bytes: Vec::new() }
    }

    /// What follows is in this format.
    pub(crate) fn agree(&mut self, format: WireFormat) {
        self.format = format;
    }

    /// Takes a structure, to be written with those that come soon.
    ///
    /// # Errors
    /// It cannot be written, or is larger than the peer takes. Others can still be written.
    pub(crate) fn put(&mut self, structure: &Structure) -> Result<(), EncodeError> {
        self.format.encode(structure, &mut self.bytes)
    }

    /// Writes what was taken. Dropping the future may leave a part of it written, and the connection of no use.
    ///
    /// # Errors
    /// When the socket fails.
    pub(crate) async fn flush(&mut self) -> Result<(), LinkError> {
        self.stream.write_all(&self.bytes).await?;
        self.bytes.clear();
        self.bytes.shrink_to(WRITE);
        self.stream.flush().await?;
        Ok(())
    }

    /// Tells the peer that nothing more comes.
    ///
    /// # Errors
    /// When the socket fails.
    pub(crate) async fn shutdown(&mut self) -> Result<(), LinkError> {
        Ok(self.stream.shutdown().await?)
    }
}

/// Writes what comes into the outbox, by `put`, until it is closed and empty; when nothing came for `keep_alive`, a word that
/// there is still somebody.
///
/// # Errors
/// What `put` or the socket says.
pub(crate) async fn write_out<T, W: AsyncWrite + Unpin>(
    outbox: &Outbox<T>,
    writer: &mut CommandWriter<W>,
    keep_alive: Option<Duration>,
    mut put: impl FnMut(T, &mut CommandWriter<W>) -> Result<(), LinkError>,
) -> Result<(), LinkError> {
    let mut taken = VecDeque::new();
    loop {
        let took = match keep_alive {
            Some(rest) => timeout(rest, outbox.take(&mut taken)).await.ok(),
            None => Some(outbox.take(&mut taken).await),
        };
        match took {
            Some(true) => {}
            Some(false) => return Ok(()),
            None => writer.put(&KeepAliveInfo::default().into())?,
        }
        while let Some(item) = taken.pop_front() {
            put(item, writer)?;
            if writer.bytes.len() >= WRITE {
                writer.flush().await?;
            }
        }
        writer.flush().await?;
    }
}
