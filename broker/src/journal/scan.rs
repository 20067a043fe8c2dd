//! Reads the journal from a place to its end.

use std::io;
use std::path::PathBuf;

use super::batch::{Batch, Found, SECTOR};
use super::change::Entry;
use super::lsn::Lsn;
use super::segments::{Segment, Segments};
use super::window::Window;

/// Where the tail begins, as the checkpoint knows it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tail {
    /// Up to which the checkpoint is true: the end of a batch.
    pub(crate) from: Lsn,
    /// Up to which the journal is known to be durable; at least `from`.
    pub(crate) durable: Lsn,
    /// The epoch in which `from` became the tail. A batch behind it with a lower one is of an earlier life.
    pub(crate) epoch: u64,
}

/// What a scan found.
#[derive(Debug)]
pub(crate) struct Scanned {
    /// The end of the last batch, where writing goes on.
    pub(crate) end: Lsn,
    /// Up to which all was known to be durable; at most `end`.
    pub(crate) durable: Lsn,
    /// The greatest of any batch, at least the tail's.
    pub(crate) epoch: u64,
    /// How many records were visited.
    pub(crate) records: u64,
    /// What was written behind `end` and is not valid.
    pub(crate) cut: Option<Cut>,
}

/// A torn tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) file: PathBuf,
    pub(crate) offset: u64,
    /// Bytes that were written there, as far as one can tell.
    pub(crate) bytes: u64,
    pub(crate) why: String,
}

/// Why a journal cannot be read to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScanError {
    /// Something durable is not as it was written.
    #[error("{}, offset {offset}: {why}", file.display())]
    Damaged { file: PathBuf, offset: u64, why: String },
    /// A segment is not there.
    #[error("{} is missing: {why}", file.display())]
    Missing { file: PathBuf, why: String },
    /// A newer version wrote it.
    #[error(
        "{}, offset {offset}: written by a newer version (journal format {version}); this one reads 1",
        file.display()
    )]
    NewerFormat { file: PathBuf, offset: u64, version: u8 },
    /// Reading failed.
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

/// Visits the records behind the tail in order. What was submitted together is visited as a whole or not at all.
///
/// Records have been visited when this fails.
///
/// # Errors
/// Not all that was durable can be read.
pub(crate) fn scan(
    segments: &Segments,
    tail: Tail,
    mut visit: impl FnMut(Entry),
) -> Result<Scanned, ScanError> {
    let mut chain = Chain::new(segments, tail);
    let mut scanned =
        Scanned { end: tail.from, durable: tail.durable, epoch: tail.epoch, records: 0, cut: None };
    let mut together = Vec::new();
    while let Some(batch) = chain.next(|entry| together.push(entry))? {
        scanned.durable = scanned.durable.max(batch.known_durable());
        if !batch.continues {
            scanned.end = batch.end();
            scanned.epoch = batch.epoch;
            scanned.records += together.len() as u64;
            together.drain(..).for_each(&mut visit);
        }
    }
    let behind = Behind::look(segments, scanned.end, chain.position, scanned.epoch)?;
    scanned.durable = scanned.durable.max(behind.durable);
    if scanned.durable > scanned.end {
        return Err(refusal(segments, chain.position, scanned.durable, &behind));
    }
    scanned.epoch = scanned.epoch.max(behind.epoch);
    scanned.cut = behind.first.map(|(file, offset)| {
        let why = match behind.at_position {
            _ if chain.position > scanned.end => "what was submitted together is not all there",
            found => why_invalid(found),
        };
        Cut { file, offset, bytes: behind.written, why: why.to_owned() }
    });
    Ok(scanned)
}

/// Refuses a segment of the tail that was cut short: what it lacks would be taken for torn.
///
/// # Errors
/// [`ScanError::Damaged`].
pub(crate) fn check_lengths(segments: &Segments, tail: Lsn) -> Result<(), ScanError> {
    for segment in segments.live().into_iter().filter(|segment| segments.whole_end(segment) > tail) {
        if let Some(why) = segment.wrong_length() {
            return Err(ScanError::Damaged { file: segment.path, offset: segment.length, why });
        }
    }
    Ok(())
}

/// The valid batches, one after the other.
struct Chain<'a> {
    segments: &'a Segments,
    position: Lsn,
    epoch: u64,
    window: Option<Window>,
}

impl<'a> Chain<'a> {
    fn new(segments: &'a Segments, tail: Tail) -> Self {
        Self { segments, position: tail.from, epoch: tail.epoch, window: None }
    }

    /// The next batch, with its records; `None` where there is no valid one.
    fn next(&mut self, visit: impl FnMut(Entry)) -> Result<Option<Batch>, ScanError> {
        let here = self.segments.containing(self.position).filter(|here| here.has(self.position));
        let next = self.segments.from(Lsn(here.as_ref().map_or(self.position.0, |here| here.base.0 + 1)));
        let places = [here.map(|here| (here, self.position)), next.map(|next| (next.clone(), next.base))];
        for (segment, place) in places.into_iter().flatten() {
            let position = self.position;
            let window = match &mut self.window {
                Some(window) if window.segment.base == segment.base => window,
                window => window.insert(Window::open(self.segments, segment)?),
            };
            match window.find(place)? {
                Found::Batch(batch) if batch.previous == position && batch.epoch >= self.epoch => {
                    window.read(&batch, visit)?;
                    self.position = batch.end();
                    self.epoch = batch.epoch;
                    return Ok(Some(batch));
                }
                Found::NewerFormat(version) => {
                    let (file, offset) = window.place(place);
                    return Err(ScanError::NewerFormat { file, offset, version });
                }
                Found::Batch(_) | Found::Torn { .. } | Found::Nothing => {}
            }
        }
        Ok(None)
    }
}

/// What stands behind the last valid batch.
struct Behind {
    /// What stands where the next batch was to be.
    at_position: Found,
    /// The greatest that any batch knows.
    durable: Lsn,
    epoch: u64,
    /// Where something stands that was written in the last life.
    first: Option<(PathBuf, u64)>,
    /// Bytes of all of that.
    written: u64,
    /// The first thing of the last life from the position on: a batch that is whole, or one that is not.
    first_whole: Option<Batch>,
    first_torn: Option<(Lsn, Found)>,
}

impl Behind {
    /// Looks at all from `end` on; the next batch was to be at `position`, and batches below `epoch` are of an earlier
    /// life.
    fn look(segments: &Segments, end: Lsn, position: Lsn, epoch: u64) -> Result<Self, ScanError> {
        let mut behind = Self {
            at_position: Found::Nothing,
            durable: Lsn(0),
            epoch,
            first: None,
            written: 0,
            first_whole: None,
            first_torn: None,
        };
        for segment in segments.live().into_iter().filter(|segment| segment.end() > end) {
            let (base, segment_end) = (segment.base, segment.end());
            let mut window = Window::open(segments, segment)?;
            let mut place = base.max(end);
            while place < segment_end {
                let found = window.find(place)?;
                if place == position {
                    behind.at_position = found;
                }
                let (of, length) = match found {
                    Found::Batch(batch) => {
                        behind.durable = behind.durable.max(batch.known_durable());
                        behind.epoch = behind.epoch.max(batch.epoch);
                        (batch.epoch, batch.length)
                    }
                    Found::Torn { epoch, length } => (epoch, length),
                    Found::NewerFormat(_) | Found::Nothing => (0, 0),
                };
                if length > 0 && of >= epoch {
                    if place >= position && behind.first_whole.is_none() && behind.first_torn.is_none() {
                        match found {
                            Found::Batch(batch) => behind.first_whole = Some(batch),
                            _ => behind.first_torn = Some((place, found)),
                        }
                    }
                    behind.written += u64::from(length).min(segment_end.0 - place.0);
                    behind.first.get_or_insert_with(|| window.place(place));
                }
                place = match found {
                    Found::Batch(batch) => batch.end(),
                    _ => Lsn(place.0 + SECTOR),
                };
            }
        }
        Ok(behind)
    }
}

/// The journal cannot be read at `position`, though all up to `durable` was durable.
fn refusal(segments: &Segments, position: Lsn, durable: Lsn, behind: &Behind) -> ScanError {
    let known = format!("the journal was durable up to {durable}");
    let damaged = |segment: Segment, lsn: Lsn, found: Found| ScanError::Damaged {
        file: segment.path,
        offset: lsn.0 - segment.base.0,
        why: format!("{}, and {known}", why_invalid(found)),
    };
    if let Some((lsn, found)) = behind.first_torn
        && let Some(segment) = segments.containing(lsn)
    {
        return damaged(segment, lsn, found);
    }
    // What ended where the next whole batch says is what cannot be read.
    let lost =
        behind.first_whole.map_or(position, |next| Lsn(next.previous.0.saturating_sub(1)).max(position));
    if let Ok(segment) = segments.locate(lost) {
        let lsn = segment.base.max(position);
        return damaged(segment, lsn, behind.at_position);
    }
    let file = match segments.locate(position) {
        Ok(here) => segments.path(segments.whole_end(&here).0),
        Err(expected) => expected,
    };
    ScanError::Missing { file, why: format!("{known}, and what stood behind {position} is not there") }
}

/// What is wrong with what was found where the next batch was to be.
pub(super) fn why_invalid(found: Found) -> &'static str {
    match found {
        Found::Batch(_) => "the batch there does not follow the one before it",
        Found::Torn { .. } => "the checksum of the batch there does not fit",
        Found::NewerFormat(_) | Found::Nothing => "no batch begins there",
    }
}
