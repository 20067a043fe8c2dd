//! The file of the checkpoint, which is longer than redb knows.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    /// Bytes of the file. Only changed with `known` locked, which takes long; who writes the journal reads it meanwhile.
    whole: AtomicU64,
    /// Bytes that redb knows of.
    known: Mutex<u64>,
}

impl Extent {
    pub(super) fn new(file: Arc<dyn DataFile>, crashed: Arc<AtomicBool>) -> io::Result<Self> {
        // A process that ended while the file grew may have left a part of a page, with nothing in it.
        let whole = file.len()? / PAGE * PAGE;
        let (in_doubt, known) = (AtomicBool::new(false), Mutex::new(whole));
        Ok(Self { file, crashed, in_doubt, whole: AtomicU64::new(whole), known })
    }

    /// The file itself.
    pub(crate) fn file(&self) -> &dyn DataFile {
        &*self.file
    }

    /// Bytes of the file.
    pub(crate) fn whole(&self) -> u64 {
        self.whole.load(Ordering::Acquire)
    }

    /// Makes the file at least so long, durably.
    ///
    /// # Errors
    /// What the operating system says; it is as long as it was then.
    pub(crate) fn reserve(&self, bytes: u64) -> io::Result<()> {
        let bytes = bytes.next_multiple_of(PAGE);
        let _known = lock(&self.known);
        if bytes <= self.whole() {
            return Ok(());
        }
        self.changing()?;
        self.lengthen(bytes)?;
        self.sync()?;
        self.whole.store(bytes, Ordering::Release);
        Ok(())
    }

    /// Gives back what is beyond so many bytes, as far as redb does not know of it.
    pub(crate) fn trim(&self, bytes: u64) -> io::Result<()> {
        let known = lock(&self.known);
        let bytes = bytes.next_multiple_of(PAGE).max(*known);
        if bytes < self.whole() {
            self.changing()?.set_len(bytes)?;
            self.whole.store(bytes, Ordering::Release);
        }
        Ok(())
    }

    /// The same file for a redb that opens it anew.
    pub(super) fn reopen(&self) {
        *lock(&self.known) = self.whole();
        self.in_doubt.store(false, Ordering::Relaxed);
    }

    pub(super) fn is_in_doubt(&self) -> bool {
        self.in_doubt.load(Ordering::Relaxed)
    }

    pub(super) fn known(&self) -> u64 {
        *lock(&self.known)
    }

    /// Redb wants so many bytes. It grows into what is there already; what it no longer wants stays for the next time.
    pub(super) fn set_known(&self, bytes: u64) -> io::Result<()> {
        let mut known = lock(&self.known);
        self.changing()?;
        if bytes > self.whole() {
            // Written and not only said: a file that is not whole may find no room when its middle is written.
            self.lengthen(bytes)?;
            self.whole.store(bytes, Ordering::Release);
        }
        *known = bytes;
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

    fn lengthen(&self, to: u64) -> io::Result<()> {
        let written = fill_with_zeros(&*self.file, self.whole(), to);
        if written.is_err() {
            // If this fails too there is only more of it, which the next start finds.
            let _ = self.file.set_len(self.whole());
        }
        written
    }
}
