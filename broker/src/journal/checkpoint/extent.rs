//! The file of the checkpoint, which is longer than redb knows.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::files::{DataFile, fill_with_zeros};
use crate::journal::status::lock;

/// What redb has the length of its file in: it refuses one that is no multiple of it.
pub(super) const PAGE: u64 = 4_096;

/// The file of the checkpoint and how long it is: on the disk, where all of it is written, and as redb knows it.
///
/// What it has beyond the latter is kept back for redb to grow into. A redb that opens the file takes all of it over.
#[derive(Debug)]
pub(crate) struct Extent {
    file: Arc<dyn DataFile>,
    /// Set when the process ends without closing it: nothing is written from then on.
    crashed: Arc<AtomicBool>,
    /// Whether a write or a sync failed, so that what is on the disk is in doubt. A later sync would not tell of it again.
    in_doubt: AtomicBool,
    /// Held by whoever changes how long the file is.
    lengths: Mutex<Lengths>,
}

#[derive(Debug)]
struct Lengths {
    /// Bytes of the file.
    whole: u64,
    /// Bytes that redb knows of.
    known: u64,
}

impl Extent {
    pub(super) fn new(file: Arc<dyn DataFile>, crashed: Arc<AtomicBool>) -> io::Result<Self> {
        // A process that ended while the file grew may have left a part of a page, with nothing in it.
        let whole = file.len()? / PAGE * PAGE;
        let lengths = Mutex::new(Lengths { whole, known: whole });
        Ok(Self { file, crashed, in_doubt: AtomicBool::new(false), lengths })
    }

    /// The file itself.
    pub(crate) fn file(&self) -> &dyn DataFile {
        &*self.file
    }

    /// Bytes of the file.
    pub(crate) fn whole(&self) -> u64 {
        lock(&self.lengths).whole
    }

    /// Makes the file at least so long, durably.
    ///
    /// # Errors
    /// What the operating system says; it is as long as it was then.
    pub(crate) fn reserve(&self, bytes: u64) -> io::Result<()> {
        let bytes = bytes.next_multiple_of(PAGE);
        let mut lengths = lock(&self.lengths);
        if bytes <= lengths.whole {
            return Ok(());
        }
        self.changing()?;
        self.lengthen(&lengths, bytes)?;
        self.sync()?;
        lengths.whole = bytes;
        Ok(())
    }

    /// Gives back what is beyond so many bytes, as far as redb does not know of it.
    pub(crate) fn trim(&self, bytes: u64) -> io::Result<()> {
        let mut lengths = lock(&self.lengths);
        let bytes = bytes.next_multiple_of(PAGE).max(lengths.known);
        if bytes < lengths.whole {
            self.changing()?.set_len(bytes)?;
            lengths.whole = bytes;
        }
        Ok(())
    }

    /// The same file for a redb that opens it anew.
    pub(super) fn reopen(&self) {
        let mut lengths = lock(&self.lengths);
        lengths.known = lengths.whole;
        self.in_doubt.store(false, Ordering::Relaxed);
    }

    pub(super) fn is_in_doubt(&self) -> bool {
        self.in_doubt.load(Ordering::Relaxed)
    }

    pub(super) fn known(&self) -> u64 {
        lock(&self.lengths).known
    }

    /// Redb wants so many bytes. It grows into what is there already; what it no longer wants stays for the next time.
    pub(super) fn set_known(&self, bytes: u64) -> io::Result<()> {
        let mut lengths = lock(&self.lengths);
        self.changing()?;
        if bytes > lengths.whole {
            // Written and not only said: a file that is not whole may find no room when its middle is written.
            self.lengthen(&lengths, bytes)?;
            lengths.whole = bytes;
        }
        lengths.known = bytes;
        Ok(())
    }

    pub(super) fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }

    pub(super) fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.doubting(|file| file.write_all_at(data, offset))
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.doubting(|file| file.sync_data())
    }

    fn doubting(&self, change: impl FnOnce(&dyn DataFile) -> io::Result<()>) -> io::Result<()> {
        if self.is_in_doubt() {
            return Err(io::Error::other("an earlier write or sync of it failed"));
        }
        let changed = self.changing().and_then(change);
        if changed.is_err() {
            self.in_doubt.store(true, Ordering::Relaxed);
        }
        changed
    }

    fn changing(&self) -> io::Result<&dyn DataFile> {
        if self.crashed.load(Ordering::Acquire) {
            return Err(io::Error::other("the store was dropped without being closed"));
        }
        Ok(&*self.file)
    }

    fn lengthen(&self, lengths: &Lengths, to: u64) -> io::Result<()> {
        let written = fill_with_zeros(&*self.file, lengths.whole, to);
        if written.is_err() {
            // If this fails too there is only more of it, which the next start finds.
            let _ = self.file.set_len(lengths.whole);
        }
        written
    }
}
