//! The limit of what segments and large files may have, and when what is sent has room.

use std::io;
use std::sync::atomic::Ordering;

use super::Segments;
use crate::files::{OpenMode, is_out_of_handles};

impl Segments {
    /// Lets segments and large files have so many bytes before nothing is sent any more; never less than two segments.
    pub(crate) fn set_limit(&self, bytes: Option<u64>) {
        let limit = bytes.map_or(u64::MAX, |bytes| bytes.max(2 * self.max_file_length));
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Whether the limit allows so many more segments and bytes in large files.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`], with what is allowed and what there is.
    pub(in crate::journal) fn check_limit(&self, segments: usize, large: u64) -> io::Result<()> {
        let limit = self.limit.load(Ordering::Relaxed);
        if limit == u64::MAX || (segments == 0 && large == 0) {
            return Ok(());
        }
        let state = self.lock();
        let bytes = state.live.values().chain(state.large.values()).sum::<u64>();
        if bytes + segments as u64 * self.max_file_length + large <= limit {
            return Ok(());
        }
        let reason = format!("it has {bytes} bytes, and the store limit is {limit}");
        Err(io::Error::new(io::ErrorKind::StorageFull, reason))
    }

    /// The same for what is to be sent, which is known when it is refused: once it fits, there is room again.
    ///
    /// # Errors
    /// As [`Segments::check_limit`].
    pub(in crate::journal) fn admit(&self, segments: usize, large: u64) -> io::Result<()> {
        self.check_limit(segments, large).inspect_err(|_| self.lock().refused = Some((segments, large)))
    }

    /// Whether another segment can be begun by what is sent, or what was refused last be written.
    pub(crate) fn has_room(&self) -> bool {
        let refused = self.lock().refused;
        let fits = |(segments, large)| self.check_limit(segments, large).is_ok();
        let is_allowed = fits((1, 0)) || refused.is_some_and(fits);
        self.spares() > Self::RESERVE && is_allowed && self.can_open()
    }

    /// Whether there are handles for what has to be opened. One that another took meanwhile is met by the writer.
    fn can_open(&self) -> bool {
        let spare = self.lock().spares.last().cloned();
        let opened = spare.map(|spare| self.files.open(&spare, OpenMode::ReadOnly));
        !opened.is_some_and(|opened| opened.is_err_and(|error| is_out_of_handles(&error)))
    }
}
