//! Goes through the journal past whatever is damaged or missing in it.

use std::path::PathBuf;

use crate::journal::batch::{self, Batch, Found, SECTOR};
use crate::journal::change::Entry;
use crate::journal::lsn::Lsn;
use crate::journal::record;
use crate::journal::scan::{ScanError, why_invalid};
use crate::journal::segments::{Segment, Segments};
use crate::journal::window::Window;
use crate::store::StoredId;

/// Where to begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct From {
    pub(super) lsn: Lsn,
    /// Batches of an earlier epoch are old bytes.
    pub(super) epoch: u64,
    /// Up to where all was durable, as far as the checkpoint knows.
    pub(super) durable: Lsn,
}

/// A part of the journal, in order.
#[derive(Debug)]
pub(super) enum Piece {
    /// A batch as it was written, with its records.
    Whole(Vec<Entry>),
    /// Bytes that are not as they were written.
    Damaged(Damaged),
    /// These bytes are in no file. Below the checkpoint's tail that is as it should be.
    Missing { file: PathBuf, from: Lsn, to: Lsn },
}

/// Bytes that are not as they were written.
#[derive(Debug)]
pub(super) struct Damaged {
    pub(super) file: PathBuf,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) why: &'static str,
    /// Records in there that are whole.
    pub(super) entries: Vec<Entry>,
    /// What seems to be the others.
    pub(super) lost: Vec<LostRecord>,
}

/// A record whose checksum does not fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct LostRecord {
    pub(super) offset: u64,
    pub(super) length: u32,
    /// Which message it is about, if that is not what is damaged.
    pub(super) stored: Option<StoredId>,
}

/// Visits all of the journal from a place on, up to its torn end. Returns the epoch of the last batch.
pub(super) fn walk(segments: &Segments, from: From, mut visit: impl FnMut(Piece)) -> Result<u64, ScanError> {
    let mut walk = Walk::prepare(segments, from)?;
    let mut reached = from.lsn;
    // What was submitted together, until all of it is there.
    let mut together = Vec::new();
    'segments: for segment in segments.live().into_iter().filter(|segment| segment.end() > from.lsn) {
        let mut place = segment.base.max(from.lsn);
        let end = segment.end();
        let mut window = Window::open(segments, segment)?;
        while place < end {
            let batch = match window.find(place)? {
                Found::Batch(batch) if !walk.is_old(&batch) => batch,
                Found::NewerFormat(version) => {
                    let (file, offset) = window.place(place);
                    return Err(ScanError::NewerFormat { file, offset, version });
                }
                Found::Batch(_) | Found::Torn { .. } | Found::Nothing => {
                    place.0 += SECTOR;
                    continue;
                }
            };
            if batch.previous > reached {
                if reached >= walk.durable {
                    break 'segments;
                }
                visit(Piece::Whole(std::mem::take(&mut together)));
                walk.lost(reached, batch.previous, &mut visit)?;
            }
            walk.read(&mut window, &batch, &mut together, &mut visit)?;
            if !batch.continues {
                visit(Piece::Whole(std::mem::take(&mut together)));
            }
            place = batch.end();
            reached = batch.end();
            walk.epoch = batch.epoch;
        }
    }
    if reached < walk.durable {
        visit(Piece::Whole(together));
        walk.lost(reached, walk.durable, &mut visit)?;
    }
    Ok(walk.epoch)
}

struct Walk<'a> {
    segments: &'a Segments,
    /// The greatest LSN that is known to be durable.
    durable: Lsn,
    /// From where to where nothing stood between two batches, and the epoch of the second one.
    gaps: Vec<(Lsn, Lsn, u64)>,
    /// That of the last batch.
    epoch: u64,
}

impl<'a> Walk<'a> {
    /// Collects what batches know of others.
    fn prepare(segments: &'a Segments, from: From) -> Result<Self, ScanError> {
        let mut walk = Self { segments, durable: from.durable, gaps: Vec::new(), epoch: from.epoch };
        for segment in segments.live().into_iter().filter(|segment| segment.end() > from.lsn) {
            let mut place = segment.base.max(from.lsn);
            let end = segment.end();
            let mut window = Window::open(segments, segment)?;
            while place < end {
                if let Found::Batch(batch) = window.find(place)? {
                    walk.durable = walk.durable.max(batch.known_durable());
                    // Only the first one of a segment has a gap in front of it, so there are few.
                    if batch.previous < batch.lsn {
                        walk.gaps.push((batch.previous, batch.lsn, batch.epoch));
                    }
                    place = batch.end();
                } else {
                    place.0 += SECTOR;
                }
            }
        }
        Ok(walk)
    }

    /// Whether a batch is of an earlier life, which was cut there: what came after that stands in front of it, or in the
    /// next segment, where the rest of this one was too small. Without a checkpoint nothing else tells.
    fn is_old(&self, batch: &Batch) -> bool {
        let mut gaps = self.gaps.iter().filter(|(from, to, _)| (*from..*to).contains(&batch.lsn));
        batch.epoch < self.epoch || gaps.any(|(_, _, epoch)| batch.epoch < *epoch)
    }

    /// Reads the records of a batch; what cannot be understood, though its checksum fits, is visited as damaged.
    fn read(
        &self,
        window: &mut Window,
        batch: &Batch,
        together: &mut Vec<Entry>,
        visit: &mut impl FnMut(Piece),
    ) -> Result<(), ScanError> {
        let before = together.len();
        match window.read(batch, |entry| together.push(entry)) {
            Err(ScanError::Damaged { .. }) => {
                together.truncate(before);
                self.lost(batch.lsn, batch.end(), visit)
            }
            other => other,
        }
    }

    /// Visits what is left of the bytes between two places where a batch ended.
    fn lost(&self, from: Lsn, to: Lsn, visit: &mut impl FnMut(Piece)) -> Result<(), ScanError> {
        let segments = self.segments;
        let mut expected = from;
        for segment in segments.live().into_iter().filter(|segment| segment.end() > from && segment.base < to)
        {
            if segment.base > expected {
                visit(Piece::Missing {
                    file: missing(segments, expected, from),
                    from: expected,
                    to: segment.base,
                });
            }
            expected = segments.whole_end(&segment);
            // The next segment may have been begun where this one ended, with bytes left in it.
            let may_be_unused = segment.base <= from && to > segments.whole_end(&segment);
            let begin = segment.base.max(from);
            let end = segment.end().min(to);
            if let Some(damaged) = self.salvage(segment, begin, end, may_be_unused)? {
                visit(Piece::Damaged(damaged));
            }
        }
        if expected < to {
            visit(Piece::Missing { file: missing(segments, expected, from), from: expected, to });
        }
        Ok(())
    }

    /// Finds the records between two places that are still whole, each by its own checksum.
    fn salvage(
        &self,
        segment: Segment,
        begin: Lsn,
        end: Lsn,
        may_be_unused: bool,
    ) -> Result<Option<Damaged>, ScanError> {
        let mut window = Window::open(self.segments, segment)?;
        let found = window.find(begin)?;
        let (file, offset) = window.place(begin);
        let bytes = window.bytes(begin, end.0 - begin.0)?;
        let mut damaged = Damaged {
            file,
            offset,
            bytes: bytes.len() as u64,
            why: why_invalid(found),
            entries: Vec::new(),
            lost: Vec::new(),
        };
        let mut at = 0;
        while at < bytes.len() {
            let lsn = Lsn(begin.0 + at as u64);
            let rest = &bytes[at..];
            if (offset + at as u64).is_multiple_of(SECTOR)
                && let Found::Batch(batch) = batch::find(rest, lsn)
                && self.is_old(&batch)
            {
                at += batch.length as usize;
            } else if let Ok(record) = record::record_at(rest, lsn)
                && let Ok(change) = record::read_change(record)
            {
                damaged.entries.push(Entry { lsn, length: record.len() as u32, change });
                at += record.len();
            } else if let Some((length, stored)) =
                record::seems_to_be(rest).filter(|(length, _)| ends(rest, *length))
            {
                damaged.lost.push(LostRecord { offset: offset + at as u64, length, stored });
                at += length as usize;
            } else {
                at += 1;
            }
        }
        let is_empty = damaged.entries.is_empty() && damaged.lost.is_empty();
        let is_used = matches!(found, Found::Torn { .. }) || !is_empty;
        Ok(Some(damaged).filter(|_| is_used || !may_be_unused))
    }
}

fn missing(segments: &Segments, expected: Lsn, from: Lsn) -> PathBuf {
    if expected == from { segments.expected(expected) } else { segments.path(expected.0) }
}

/// Whether behind so many bytes another record begins, or a batch ends.
fn ends(bytes: &[u8], length: u32) -> bool {
    let behind = bytes.get(length as usize..).unwrap_or_default();
    behind.first().is_none_or(|first| *first == 0)
        || record::seems_to_be(behind).is_some()
        || batch::begins(behind)
}
