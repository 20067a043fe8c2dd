//! The files of the journal.

mod large;
mod limit;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::archive;
use super::batch::SECTOR;
use super::hold::Hold;
use super::lsn::Lsn;
use crate::files::{DataFile, FileSystem, OpenMode, fill_with_zeros, is_out_of_handles};
use crate::store::StoredId;

/// The files of the journal: segments, spares that are to be some, and the bodies of large messages.
///
/// Its own lock is never held while a file is written or synced.
#[derive(Debug)]
pub(crate) struct Segments {
    files: Arc<dyn FileSystem>,
    directory: PathBuf,
    max_file_length: u64,
    /// How files that are there are opened.
    mode: OpenMode,
    /// Bytes that segments and large files may have before nothing is sent any more.
    limit: AtomicU64,
    /// Whether they are still those of this process.
    hold: OnceLock<Arc<Hold>>,
    state: Mutex<State>,
}

/// A file of the journal that has batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Where it begins.
    pub(crate) base: Lsn,
    /// Bytes of the file.
    pub(crate) length: u64,
    pub(crate) path: PathBuf,
}

/// A spare that is about to be a segment. It is open already: once something is written, nothing may fail for want of that.
#[derive(Debug)]
pub(super) struct Spare {
    path: PathBuf,
    file: Arc<dyn DataFile>,
}

impl Segment {
    /// Where the file ends.
    pub(crate) fn end(&self) -> Lsn {
        Lsn(self.base.0 + self.length)
    }

    /// What is wrong with its length, which it had before it got its name: no power cut takes any of it.
    pub(crate) fn wrong_length(&self) -> Option<String> {
        let is_wrong = self.length < Segments::SHORTEST || !self.length.is_multiple_of(SECTOR);
        is_wrong.then(|| {
            format!(
                "it has {} bytes, and a segment has a multiple of {SECTOR}, {} at least",
                self.length,
                Segments::SHORTEST
            )
        })
    }

    /// Whether the byte of this place is in the file.
    pub(crate) fn has(&self, lsn: Lsn) -> bool {
        self.base <= lsn && lsn < self.end()
    }
}

#[derive(Debug, Default)]
struct State {
    /// By their bases, with the bytes of each.
    live: BTreeMap<u64, u64>,
    spares: Vec<PathBuf>,
    next_spare: u64,
    large: BTreeMap<StoredId, u64>,
    /// What the limit had no room for when something was refused last: so many segments more, and bytes in large files.
    refused: Option<(usize, u64)>,
    /// Those used last, the last one at the end.
    open: Vec<(u64, Arc<dyn DataFile>)>,
}

impl Segments {
    /// Spares that are kept back for what is no send.
    pub(crate) const RESERVE: usize = 2;

    /// Spares beyond so many are removed instead of kept.
    const MOST_SPARES: usize = 8;

    /// Segments that are open at the same time.
    const MOST_OPEN: usize = 32;

    /// Bytes of a segment at most, as a batch of what is split may fill one and has its length in four bytes.
    pub(super) const LONGEST: u64 = 1 << 30;

    /// Bytes of a segment at least.
    const SHORTEST: u64 = 8 * SECTOR;

    /// No segment begins there or behind it, so that no sum of a place and a length is too large.
    const NO_BASE: u64 = 1 << 62;

    /// The files of `directory`, which is made if it is not there. Spares that were not finished are removed.
    pub(crate) fn open(
        files: Arc<dyn FileSystem>,
        directory: &Path,
        max_file_length: u64,
    ) -> io::Result<Self> {
        files.create_directory(directory)?;
        let looked = Self::look(files, directory, max_file_length)?;
        let segments = Self { mode: OpenMode::Existing, ..looked };
        for listed in segments.files.list(directory)? {
            if listed.name.ends_with(".new") {
                segments.files.remove(&directory.join(listed.name))?;
            }
        }
        let mut state = segments.lock();
        let spares = std::mem::take(&mut state.spares);
        for spare in spares {
            let length = segments.files.open(&spare, OpenMode::Existing)?.len()?;
            if length == segments.max_file_length {
                state.spares.push(spare);
            } else {
                segments.files.remove(&spare)?;
            }
        }
        drop(state);
        Ok(segments)
    }

    /// The files of `directory` as they are; nothing is changed.
    pub(crate) fn look(
        files: Arc<dyn FileSystem>,
        directory: &Path,
        max_file_length: u64,
    ) -> io::Result<Self> {
        let mut state = State::default();
        for listed in files.list(directory)? {
            let Some((name, kind)) = listed.name.rsplit_once('.') else { continue };
            let number = || u64::from_str_radix(name, 16).ok().filter(|_| name.len() == 16);
            match kind {
                "journal" => {
                    if let Some(spare) =
                        name.strip_prefix("spare-").and_then(|number| number.parse::<u64>().ok())
                    {
                        state.next_spare = state.next_spare.max(spare + 1);
                        state.spares.push(directory.join(&listed.name));
                    } else if let Some(base) = number().filter(|base| *base < Self::NO_BASE) {
                        state.live.insert(base, listed.length);
                    }
                }
                "large" => {
                    if let Some(stored) = number() {
                        state.large.insert(StoredId(stored), listed.length);
                    }
                }
                _ => {}
            }
        }
        Ok(Self {
            hold: OnceLock::new(),
            files,
            directory: directory.to_owned(),
            mode: OpenMode::ReadOnly,
            max_file_length: max_file_length.clamp(Self::SHORTEST, Self::LONGEST).next_multiple_of(SECTOR),
            limit: AtomicU64::new(u64::MAX),
            state: Mutex::new(state),
        })
    }

    /// Bytes of a segment to be.
    pub(crate) fn max_file_length(&self) -> u64 {
        self.max_file_length
    }

    /// A record longer than this is a large one.
    pub(crate) fn large_from(&self) -> u64 {
        self.max_file_length / 4
    }

    /// Where the files are.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes a spare, filled with zeros and synced.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`] when there is no room for it; what was written of it is removed.
    pub(crate) fn prepare_spare(&self) -> io::Result<()> {
        self.check_hold()?;
        let number = {
            let mut state = self.lock();
            state.next_spare += 1;
            state.next_spare
        };
        let unfinished = self.directory.join(format!("spare-{number}.new"));
        let spare = self.directory.join(format!("spare-{number}.journal"));
        let file = self.open_file(&unfinished, OpenMode::New)?;
        let made = fill_with_zeros(&*file, 0, self.max_file_length)
            .and_then(|()| file.sync_data())
            .and_then(|()| self.files.rename(&unfinished, &spare));
        if let Err(error) = made {
            // Its room is given back; if that fails too, the next start does it.
            let _ = self.files.remove(&unfinished);
            return Err(error);
        }
        self.lock().spares.push(spare);
        Ok(())
    }

    /// From now on nothing gets a name where `hold` says that it is not ours.
    pub(crate) fn set_hold(&self, hold: &Arc<Hold>) {
        let _ = self.hold.set(Arc::clone(hold));
    }

    fn check_hold(&self) -> io::Result<()> {
        self.hold.get().map_or(Ok(()), |hold| hold.check())
    }

    /// How many spares are ready.
    pub(crate) fn spares(&self) -> usize {
        self.lock().spares.len()
    }

    /// The segments in the order of their bases; the last one is written to.
    pub(crate) fn live(&self) -> Vec<Segment> {
        self.lock().live.iter().map(|(base, length)| self.segment(*base, *length)).collect()
    }

    /// The last segment that begins at or below this place.
    pub(crate) fn containing(&self, lsn: Lsn) -> Option<Segment> {
        self.lock().live.range(..=lsn.0).next_back().map(|(base, length)| self.segment(*base, *length))
    }

    /// The first segment that begins at or above this place.
    pub(crate) fn from(&self, lsn: Lsn) -> Option<Segment> {
        self.lock().live.range(lsn.0..).next().map(|(base, length)| self.segment(*base, *length))
    }

    /// Takes a segment out of the journal: into `archive`, or to be a spare, or away when there are many.
    ///
    /// # Errors
    /// What the operating system says; [`io::ErrorKind::InvalidInput`] for the last segment, which is written to.
    pub(crate) fn recycle(&self, base: Lsn, archive: Option<&Path>) -> io::Result<()> {
        if self.lock().live.keys().next_back() == Some(&base.0) {
            let last = format!("segment {base} is the last one and stays");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, last));
        }
        let Some(archive) = archive else { return self.retire(base) };
        let Some(length) = self.forget(base) else { return Ok(()) };
        let archived = archive::archive(&*self.files, &self.path(base.0), archive, &segment_name(base.0));
        if archived.is_err() {
            self.lock().live.insert(base.0, length);
        }
        archived
    }

    /// Takes a segment out of the journal, whichever it is.
    pub(super) fn retire(&self, base: Lsn) -> io::Result<()> {
        let Some(length) = self.forget(base) else { return Ok(()) };
        let spare = {
            let mut state = self.lock();
            state.next_spare += 1;
            let wanted = length == self.max_file_length && state.spares.len() < Self::MOST_SPARES;
            wanted.then(|| self.directory.join(format!("spare-{}.journal", state.next_spare)))
        };
        let path = self.path(base.0);
        let retired = match &spare {
            Some(spare) => self.files.rename(&path, spare),
            None => self.files.remove(&path),
        };
        let mut state = self.lock();
        match retired {
            Ok(()) => state.spares.extend(spare),
            Err(_) => drop(state.live.insert(base.0, length)),
        }
        retired
    }

    /// Takes so many spares for oneself, and makes what is missing; as many as `kept_back` must be left.
    pub(super) fn take_spares(&self, count: usize, kept_back: usize) -> io::Result<Vec<Spare>> {
        let taken = loop {
            {
                let mut state = self.lock();
                if state.spares.len() >= count + kept_back {
                    let left = state.spares.len() - count;
                    break state.spares.split_off(left);
                }
            }
            self.prepare_spare()?;
        };
        let opened = taken.iter().map(|path| {
            let file = self.open_file(path, OpenMode::Existing)?;
            Ok(Spare { path: path.clone(), file })
        });
        let opened: io::Result<Vec<_>> = opened.collect();
        if opened.is_err() {
            self.lock().spares.extend(taken);
        }
        opened
    }

    /// Spares that were taken and not needed.
    pub(super) fn give_back(&self, spares: Vec<Spare>) {
        self.lock().spares.extend(spares.into_iter().map(|spare| spare.path));
    }

    /// Makes a spare that was taken the segment that begins at `base`, durably. Where too many files are open for that, it is
    /// a spare again.
    pub(super) fn activate(&self, spare: Spare, base: Lsn) -> io::Result<(Segment, Arc<dyn DataFile>)> {
        self.check_hold()?;
        let path = self.path(base.0);
        self.files.rename(&spare.path, &path)?;
        if let Err(error) = self.with_handles(|| self.files.sync_directory(&self.directory)) {
            if is_out_of_handles(&error) {
                self.files.rename(&path, &spare.path)?;
                self.give_back(vec![spare]);
            }
            return Err(error);
        }
        self.lock().live.insert(base.0, self.max_file_length);
        self.keep_open(base, &spare.file);
        Ok((self.segment(base.0, self.max_file_length), spare.file))
    }

    /// Makes a segment that was cut short as long as one should be.
    pub(super) fn lengthen(&self, segment: Segment) -> io::Result<Segment> {
        if segment.length >= self.max_file_length {
            return Ok(segment);
        }
        let file = self.file(segment.base)?;
        fill_with_zeros(&*file, segment.length, self.max_file_length)?;
        file.sync_data()?;
        self.lock().live.insert(segment.base.0, self.max_file_length);
        Ok(Segment { length: self.max_file_length, ..segment })
    }

    /// The file of a segment.
    pub(crate) fn file(&self, base: Lsn) -> io::Result<Arc<dyn DataFile>> {
        let open = {
            let mut state = self.lock();
            let at = state.open.iter().position(|(of, _)| *of == base.0);
            at.map(|at| state.open.remove(at).1)
        };
        let file = match open {
            Some(file) => file,
            None => self.open_file(&self.path(base.0), self.mode)?,
        };
        self.keep_open(base, &file);
        Ok(file)
    }

    /// How many segments are open for later.
    #[cfg(test)]
    pub(crate) fn open_files(&self) -> usize {
        self.lock().open.len()
    }

    fn keep_open(&self, base: Lsn, file: &Arc<dyn DataFile>) {
        let mut state = self.lock();
        state.open.retain(|(of, _)| *of != base.0);
        if state.open.len() >= Self::MOST_OPEN {
            state.open.remove(0);
        }
        state.open.push((base.0, Arc::clone(file)));
    }

    fn open_file(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DataFile>> {
        self.with_handles(|| self.files.open(path, mode))
    }

    /// Where too many files are open, closes those that are open for later, and tries again.
    fn with_handles<T>(&self, operation: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match operation() {
            Err(error) if is_out_of_handles(&error) => {
                let open = std::mem::take(&mut self.lock().open);
                drop(open);
                operation()
            }
            other => other,
        }
    }

    /// Gives up a spare for the room that it takes; false when there are no more than `kept`.
    pub(crate) fn give_up_spare(&self, kept: usize) -> io::Result<bool> {
        let spare = {
            let mut state = self.lock();
            if state.spares.len() <= kept {
                return Ok(false);
            }
            state.spares.pop()
        };
        spare.map_or(Ok(false), |spare| self.files.remove(&spare).map(|()| true))
    }

    /// Where a segment ends, or would end were it not cut short.
    pub(crate) fn whole_end(&self, segment: &Segment) -> Lsn {
        Lsn(segment.base.0 + segment.length.max(self.max_file_length))
    }

    /// The segment that has this place, or should have it were it not cut short; or the file that is missing.
    pub(crate) fn locate(&self, lsn: Lsn) -> Result<Segment, PathBuf> {
        self.containing(lsn).filter(|segment| lsn < self.whole_end(segment)).ok_or_else(|| self.expected(lsn))
    }

    /// Where a segment that is not there should be. Bases are multiples of the length unless that was changed.
    pub(crate) fn expected(&self, lsn: Lsn) -> PathBuf {
        self.path(lsn.0 - lsn.0 % self.max_file_length)
    }

    /// The path of the segment that begins there.
    pub(super) fn path(&self, base: u64) -> PathBuf {
        self.directory.join(segment_name(base))
    }

    fn segment(&self, base: u64, length: u64) -> Segment {
        Segment { base: Lsn(base), length, path: self.path(base) }
    }

    fn forget(&self, base: Lsn) -> Option<u64> {
        let mut state = self.lock();
        state.open.retain(|(of, _)| *of != base.0);
        state.live.remove(&base.0)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No one panics while holding it, and every change is complete in itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn segment_name(base: u64) -> String {
    format!("{base:016x}.journal")
}
