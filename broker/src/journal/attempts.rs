//! What each consumer has in its hands, so that a message whose handler ends the process is not delivered for ever.
//!
//! A slot is 32 bytes: stored id u64, delivery u32, CRC-32C u32 of these twelve, and zeros. One that is clear, torn or
//! damaged says nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::files::{DataFile, FileSystem, OpenMode, is_full};
use crate::store::{Attempt, AttemptSlot, StoredId};

const SLOT: usize = 32;

/// Bytes that the file has at least.
const KEPT: usize = 128 * SLOT;

/// The file of the slots.
#[derive(Debug)]
pub(crate) struct Attempts {
    file: Arc<dyn DataFile>,
    path: PathBuf,
    failed: AtomicBool,
}

impl Attempts {
    /// The file at `path`, which is made if it is not there, and what it says.
    pub(crate) fn open(files: &dyn FileSystem, path: &Path) -> io::Result<(Self, Vec<Attempt>)> {
        let file = files.open(path, OpenMode::Any)?;
        let found = read(&*file)?;
        Ok((Self { file, path: path.to_owned(), failed: AtomicBool::new(false) }, found))
    }

    /// What the file at `path` says; nothing where there is none.
    pub(crate) fn read(files: &dyn FileSystem, path: &Path) -> io::Result<Vec<Attempt>> {
        match files.open(path, OpenMode::ReadOnly) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            opened => read(&*opened?),
        }
    }

    /// The file itself, which stays open.
    pub(crate) fn file(&self) -> Arc<dyn DataFile> {
        Arc::clone(&self.file)
    }

    /// Writes a slot; `None` clears it. Not synced.
    pub(crate) fn note(&self, slot: AttemptSlot, attempt: Option<Attempt>) {
        let bytes = attempt.map_or([0; SLOT], encode);
        let written = self.file.write_all_at(&bytes, u64::from(slot.0) * SLOT as u64);
        if let Err(error) = written
            && !self.failed.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                file = %self.path.display(), %error,
                "deliveries during which the process ends are not counted: the attempt could not be noted"
            );
        }
    }

    /// Clears all slots. There is room for the first ones from then on, so that they can be noted on a full disk, too.
    pub(crate) fn clear(&self) -> io::Result<()> {
        let length = self.file.len()?;
        if length > KEPT as u64 {
            self.file.set_len(KEPT as u64)?;
        }
        match self.file.write_all_at(&[0; KEPT], 0) {
            Err(error) if is_full(&error) && length > 0 => self.file.set_len(0),
            Err(error) if is_full(&error) => Ok(()),
            written => written,
        }
    }
}

fn read(file: &dyn DataFile) -> io::Result<Vec<Attempt>> {
    let mut found = Vec::new();
    let mut chunk = vec![0; 1_024 * SLOT];
    let length = file.len()?;
    let mut at = 0;
    while at + SLOT as u64 <= length {
        let rest = usize::try_from(length - at).unwrap_or(usize::MAX);
        let bytes = &mut chunk[..rest.min(1_024 * SLOT) / SLOT * SLOT];
        file.read_exact_at(bytes, at)?;
        found.extend(bytes.chunks_exact(SLOT).filter_map(decode));
        at += bytes.len() as u64;
    }
    Ok(found)
}

fn encode(attempt: Attempt) -> [u8; SLOT] {
    let mut slot = [0; SLOT];
    slot[..8].copy_from_slice(&attempt.stored.0.to_le_bytes());
    slot[8..12].copy_from_slice(&attempt.delivery.to_le_bytes());
    let crc = crc32c::crc32c(&slot[..12]);
    slot[12..16].copy_from_slice(&crc.to_le_bytes());
    slot
}

fn decode(slot: &[u8]) -> Option<Attempt> {
    let (stored, rest) = slot.split_first_chunk()?;
    let (delivery, rest) = rest.split_first_chunk()?;
    let (crc, _) = rest.split_first_chunk()?;
    let fits = crc32c::crc32c(&slot[..12]) == u32::from_le_bytes(*crc);
    let attempt =
        Attempt { stored: StoredId(u64::from_le_bytes(*stored)), delivery: u32::from_le_bytes(*delivery) };
    fits.then_some(attempt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{RecordedFiles, Survival};

    const PATH: &str = "attempts";

    fn attempt(stored: u64, delivery: u32) -> Attempt {
        Attempt { stored: StoredId(stored), delivery }
    }

    fn found(files: &RecordedFiles) -> Vec<Attempt> {
        Attempts::open(files, Path::new(PATH)).unwrap().1
    }

    #[test]
    fn what_was_noted_last_in_each_slot_survives_the_end_of_the_process() {
        let files = RecordedFiles::new();
        let (attempts, none) = Attempts::open(&files, Path::new(PATH)).unwrap();
        assert_eq!(none, []);
        for slot in 0..3_000 {
            attempts.note(AttemptSlot(slot), Some(attempt(u64::from(slot) + 7, 1)));
        }
        attempts.note(AttemptSlot(2), Some(attempt(1, 5)));
        attempts.note(AttemptSlot(1), None);
        let found = found(&files.survive(Survival::Process));
        assert_eq!(found.len(), 2_999);
        assert_eq!(found[..3], [attempt(7, 1), attempt(1, 5), attempt(10, 1)]);
    }

    #[test]
    fn a_slot_that_is_torn_or_damaged_says_nothing_and_the_others_do() {
        let files = RecordedFiles::new();
        let (attempts, _) = Attempts::open(&files, Path::new(PATH)).unwrap();
        for slot in 0..3 {
            attempts.note(AttemptSlot(slot), Some(attempt(u64::from(slot), 1)));
        }
        for bit in 0..16 * 8 {
            files.flip(PATH, 32 + bit / 8, (bit % 8) as u8);
            assert_eq!(found(&files), [attempt(0, 1), attempt(2, 1)], "bit {bit}");
            files.flip(PATH, 32 + bit / 8, (bit % 8) as u8);
        }
        files.truncate(PATH, 95);
        assert_eq!(found(&files), [attempt(0, 1), attempt(1, 1)]);
    }

    #[test]
    fn cleared_slots_are_gone() {
        let files = RecordedFiles::new();
        let (attempts, _) = Attempts::open(&files, Path::new(PATH)).unwrap();
        attempts.note(AttemptSlot(9), Some(attempt(1, 1)));
        attempts.clear().unwrap();
        assert_eq!(found(&files), []);
        attempts.note(AttemptSlot(0), Some(attempt(2, 3)));
        assert_eq!(found(&files), [attempt(2, 3)]);
    }
}
