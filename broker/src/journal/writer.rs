//! The one writer of the journal.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::batch::{self, Batch, SECTOR};
use super::change::Entry;
use super::encoded::Encoded;
use super::error::advice;
use super::lsn::Lsn;
use super::segments::{Segment, Segments, Spare};
use crate::files::{DataFile, is_full, is_out_of_handles, write_anew};

/// Writes batches at the end of the journal.
#[derive(Debug)]
pub(crate) struct Writer {
    segments: Arc<Segments>,
    epoch: u64,
    /// The end of the last batch.
    end: Lsn,
    durable: Lsn,
    /// Whether what was submitted together goes on in the next batch.
    unfinished: bool,
    active: Option<(Segment, Arc<dyn DataFile>)>,
    /// Up to where messages may be written without a look at what is kept back: what ends messages can go on for ever in
    /// segments that are kept back, as long as no message is in them.
    messages_until: Lsn,
    buffer: Vec<u8>,
}

/// What was written.
#[derive(Debug)]
pub(crate) struct Written {
    /// All records in the order in which they stand.
    pub(crate) entries: Vec<Entry>,
    /// The end of the last batch.
    pub(crate) end: Lsn,
}

/// What is to be synced so that all up to `end` is durable. Whoever has it needs no writer for that.
#[derive(Debug)]
pub(crate) struct Unsynced {
    segment: Segment,
    file: Arc<dyn DataFile>,
    from: Lsn,
    end: Lsn,
}

/// What may be used for something that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// As for what is sent: the last [`Segments::RESERVE`] spares stay, and the limit holds.
    Sends,
    /// The same without the limit, for messages that are moved.
    Moves,
    /// All that there is, for what ends messages.
    Ends,
}

/// Why something was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// There is no room for a new file, or too many are open. Nothing was written, and the writer goes on.
    #[error("{}: {error}", path.display())]
    Full { path: PathBuf, error: io::Error },
    /// What is on disk now is unknown; the writer must not be used any more.
    #[error("{}, offset {offset}: {error}{}", path.display(), advice(error))]
    Io { path: PathBuf, offset: u64, error: io::Error },
}

/// A batch to be: these records of these parts.
#[derive(Debug, Default)]
struct Planned {
    /// Whether it begins a new segment.
    in_new_segment: bool,
    parts: Vec<(usize, Range<usize>)>,
    /// Bytes of the records.
    bytes: usize,
    /// Whether it has a part of what is larger than a segment, and nothing else.
    is_split: bool,
    continues: bool,
}

impl Writer {
    /// A batch takes no more unless it is what was submitted at once.
    const BATCH_LIMIT: u64 = 4 * 1024 * 1024;

    /// Goes on where a scan ended. Segments behind `end` become spares, and that of `end` is made as long as it should
    /// be and is synced, so that all up to `end` is durable.
    pub(crate) fn resume(segments: Arc<Segments>, end: Lsn, epoch: u64, durable: Lsn) -> io::Result<Self> {
        for segment in segments.live() {
            if segment.base >= end {
                segments.retire(segment.base)?;
            }
        }
        let mut active = None;
        if let Some(segment) = segments.containing(end)
            && end <= segments.whole_end(&segment)
        {
            let segment = segments.lengthen(segment)?;
            let file = segments.file(segment.base)?;
            if durable < end {
                // Only the last segment can have what is not durable: each is synced before the next one is begun. It is
                // written anew, as a sync that failed before leaves what a later one does not make durable.
                let from = durable.0.saturating_sub(segment.base.0);
                write_anew(&*file, from..end.0 - segment.base.0)?;
                file.sync_data()?;
            }
            active = Some((segment, file));
        }
        let mut writer = Self {
            segments,
            epoch,
            end,
            durable: end,
            unfinished: false,
            active,
            messages_until: Lsn(0),
            buffer: Vec::new(),
        };
        writer.messages_until = writer.messages_until();
        Ok(writer)
    }

    /// Writes all of it or, when that is [`WriteError::Full`], nothing. Nothing of it is durable before [`Writer::sync`].
    pub(crate) fn write(&mut self, parts: &[Encoded], claim: Claim) -> Result<Written, WriteError> {
        let plan = plan(parts, self.room(), self.segments.max_file_length());
        let segments = plan.iter().filter(|batch| batch.in_new_segment).count();
        let large = large_bytes(parts);
        if claim == Claim::Sends {
            let allowed = self.segments.admit(segments, large);
            allowed.map_err(|error| self.of_new_file(self.segments.directory().into(), error))?;
        }
        // The first segment of all does not wait for what is to be kept back behind it.
        let kept_back = if claim == Claim::Ends || self.active.is_none() { 0 } else { Segments::RESERVE };
        let mut spares = Vec::new();
        let looks = self.end >= self.messages_until && parts.iter().any(Encoded::has_message);
        // A large file must not take the room of what is to be kept back either.
        if segments > 0 || (claim != Claim::Ends && (looks || (large > 0 && kept_back > 0))) {
            let taken = self.segments.take_spares(segments, kept_back);
            spares = taken.map_err(|error| self.of_new_file(self.segments.directory().into(), error))?;
        }
        if let Err(error) = self.write_large(parts) {
            self.segments.give_back(spares);
            return Err(error);
        }
        let mut entries = Vec::with_capacity(parts.iter().map(Encoded::records).sum());
        for batch in &plan {
            let spare = if batch.in_new_segment { spares.pop() } else { None };
            if let Err(error) = self.write_batch(batch, spare, parts, &mut entries) {
                self.segments.give_back(spares);
                if let WriteError::Full { .. } = error {
                    self.remove_large(parts);
                }
                return Err(error);
            }
        }
        if segments > 0 || looks {
            self.messages_until = self.messages_until();
        }
        Ok(Written { entries, end: self.end })
    }

    /// Begins the next segment, with nothing in it, for what the limit does not allow together with it: once nothing in the one
    /// before is needed that can be given up, as it cannot while it is written to. Says what was written, if that helps.
    pub(crate) fn leave_segment(&mut self, parts: &[Encoded]) -> Result<Option<Written>, WriteError> {
        let plan = plan(parts, self.room(), self.segments.max_file_length());
        let large = large_bytes(parts);
        let is_begun = matches!(&*plan, [batch] if batch.in_new_segment);
        let is_in_its_way =
            self.segments.check_limit(1, large).is_err() && self.segments.check_limit(1, 0).is_ok();
        if self.active.is_none() || !is_begun || !is_in_its_way {
            return Ok(None);
        }
        let Ok(mut spares) = self.segments.take_spares(1, Segments::RESERVE) else { return Ok(None) };
        let mut entries = Vec::new();
        let empty = Planned { in_new_segment: true, ..Planned::default() };
        match self.write_batch(&empty, spares.pop(), &[], &mut entries) {
            // Too many files are open, and the spare is one again.
            Err(WriteError::Full { .. }) => return Ok(None),
            written => written?,
        }
        self.messages_until = self.messages_until();
        // What it waits for is less now.
        let _ = self.segments.admit(0, large);
        Ok(Some(Written { entries, end: self.end }))
    }

    fn messages_until(&self) -> Lsn {
        match &self.active {
            _ if self.segments.spares() >= Segments::RESERVE => Lsn(u64::MAX),
            // What is kept back is made while the first one is written to. If it cannot be made, what ends these messages
            // finds room in the rest: it may take a sector for each, of which the shortest message takes a fifth.
            Some((segment, _)) if segment.base == Lsn(0) => Lsn(segment.length / 8),
            _ => Lsn(0),
        }
    }

    /// Makes all that was written durable, and says up to where that is.
    pub(crate) fn sync(&mut self) -> Result<Lsn, WriteError> {
        if self.durable < self.end
            && let Some((segment, file)) = &self.active
        {
            let offset = self.durable.0.saturating_sub(segment.base.0);
            file.sync_data().map_err(|error| WriteError::Io { path: segment.path.clone(), offset, error })?;
        }
        // What is not whole is not to be known as durable: a recovery drops it.
        if !self.unfinished {
            self.durable = self.end;
        }
        Ok(self.durable)
    }

    /// What is written and not known as durable, if there is any. Until it is synced no segment may be begun, which is to
    /// say that only what [`Writer::has_room_for`] is written meanwhile.
    pub(crate) fn unsynced(&self) -> Option<Unsynced> {
        let (segment, file) = self.active.as_ref()?;
        (self.durable < self.end && !self.unfinished).then(|| Unsynced {
            segment: segment.clone(),
            file: Arc::clone(file),
            from: self.durable,
            end: self.end,
        })
    }

    /// Up to here all is durable.
    pub(crate) fn note_durable(&mut self, up_to: Lsn) {
        self.durable = self.durable.max(up_to);
    }

    /// Whether the active segment takes these in one batch.
    pub(crate) fn has_room_for(&self, parts: &[Encoded]) -> bool {
        let bytes = parts.iter().map(|part| part.bytes(0..part.records())).sum();
        taken(bytes) <= self.room().min(Self::BATCH_LIMIT)
    }

    /// The end of what was written.
    pub(crate) fn end(&self) -> Lsn {
        self.end
    }

    /// The segment that is written to.
    pub(crate) fn active(&self) -> Option<(PathBuf, Arc<dyn DataFile>)> {
        self.active.as_ref().map(|(segment, file)| (segment.path.clone(), Arc::clone(file)))
    }

    /// Up to which all is durable.
    #[cfg(test)]
    pub(crate) fn durable(&self) -> Lsn {
        self.durable
    }

    /// Bytes that the active segment has left.
    fn room(&self) -> u64 {
        self.active.as_ref().map_or(0, |(segment, _)| segment.base.0 + segment.length - self.end.0)
    }

    /// The files come before the records that say where they are.
    fn write_large(&self, parts: &[Encoded]) -> Result<(), WriteError> {
        let mut written = false;
        for rest in parts.iter().flat_map(Encoded::large) {
            if let Err(error) = self.segments.write_large(rest.stored, &rest.bytes) {
                self.remove_large(parts);
                return Err(self.of_new_file(self.segments.large_path(rest.stored), error));
            }
            written = true;
        }
        if written && let Err(error) = self.segments.sync_names() {
            self.remove_large(parts);
            return Err(self.of_new_file(self.segments.directory().into(), error));
        }
        Ok(())
    }

    /// Removes what was written of files of which there will be no record; if that fails, the next start does it.
    fn remove_large(&self, parts: &[Encoded]) {
        for rest in parts.iter().flat_map(Encoded::large) {
            let _ = self.segments.remove_large(rest.stored);
        }
    }

    fn write_batch(
        &mut self,
        planned: &Planned,
        spare: Option<Spare>,
        parts: &[Encoded],
        entries: &mut Vec<Entry>,
    ) -> Result<(), WriteError> {
        let previous = self.end;
        let mut lsn = previous;
        if let Some(spare) = spare {
            self.sync()?;
            let base = self
                .active
                .as_ref()
                .map_or(previous.0.next_multiple_of(SECTOR), |(segment, _)| segment.base.0 + segment.length);
            let path = self.segments.path(base);
            let activated = self.segments.activate(spare, Lsn(base));
            self.active = Some(activated.map_err(|error| match error {
                // It is a spare again.
                error if is_out_of_handles(&error) && entries.is_empty() => self.of_new_file(path, error),
                error => WriteError::Io { path, offset: 0, error },
            })?);
            lsn = Lsn(base);
        }
        let first = entries.len();
        self.buffer.clear();
        self.buffer.resize(batch::HEADER, 0);
        for (part, records) in &planned.parts {
            parts[*part].place(records.clone(), lsn, &mut self.buffer, entries);
        }
        let batch = Batch {
            epoch: self.epoch,
            lsn,
            previous,
            durable: self.durable,
            // What is longer than a segment is in several, and a segment is not so long.
            length: self.buffer.len() as u32,
            count: (entries.len() - first) as u32,
            continues: planned.continues,
        };
        batch.seal(&mut self.buffer);
        let Some((segment, file)) = &self.active else { return Ok(()) };
        let offset = lsn.0 - segment.base.0;
        file.write_all_at(&self.buffer, offset).map_err(|error| WriteError::Io {
            path: segment.path.clone(),
            offset,
            error,
        })?;
        self.end = batch.end();
        self.unfinished = planned.continues;
        self.buffer.shrink_to(Self::BATCH_LIMIT as usize);
        Ok(())
    }

    fn of_new_file(&self, path: PathBuf, error: io::Error) -> WriteError {
        if is_out_of_handles(&error) {
            let error = io::Error::other(format!("{error}{}", advice(&error)));
            WriteError::Full { path, error }
        } else if is_full(&error) {
            WriteError::Full { path, error }
        } else {
            WriteError::Io { path, offset: 0, error }
        }
    }
}

impl Unsynced {
    /// Syncs it, and says up to where all is durable by that.
    pub(crate) fn sync(&self) -> Result<Lsn, WriteError> {
        let offset = self.from.0.saturating_sub(self.segment.base.0);
        let io = |error| WriteError::Io { path: self.segment.path.clone(), offset, error };
        self.file.sync_data().map_err(io)?;
        Ok(self.end)
    }
}

/// Distributes the parts over batches: each part is in one, unless a whole segment is too small for it. `room` is what
/// the active segment has left, `capacity` what a new one has.
fn plan(parts: &[Encoded], room: u64, capacity: u64) -> Vec<Planned> {
    let mut plan = Plan { batches: Vec::new(), room, capacity };
    for (index, part) in parts.iter().enumerate().filter(|(_, part)| part.records() > 0) {
        let bytes = part.bytes(0..part.records());
        if taken(bytes) > capacity {
            plan.split(index, part);
        } else {
            if !plan.last_takes(bytes) {
                plan.begin(bytes);
            }
            plan.add(index, 0..part.records(), bytes);
        }
    }
    plan.batches
}

struct Plan {
    batches: Vec<Planned>,
    /// What the segment has left from the beginning of the last batch on.
    room: u64,
    capacity: u64,
}

impl Plan {
    fn last_takes(&self, bytes: usize) -> bool {
        self.batches.last().is_some_and(|last| {
            let taken = taken(last.bytes + bytes);
            !last.is_split && taken <= self.room.min(Writer::BATCH_LIMIT)
        })
    }

    fn begin(&mut self, bytes: usize) {
        let behind = self.room - self.batches.last().map_or(0, |last| taken(last.bytes));
        let in_new_segment = taken(bytes) > behind;
        self.room = if in_new_segment { self.capacity } else { behind };
        self.batches.push(Planned { in_new_segment, ..Planned::default() });
    }

    fn add(&mut self, part: usize, records: Range<usize>, bytes: usize) {
        if let Some(last) = self.batches.last_mut() {
            last.parts.push((part, records));
            last.bytes += bytes;
        }
    }

    fn split(&mut self, index: usize, part: &Encoded) {
        for record in 0..part.records() {
            let bytes = part.bytes(record..record + 1);
            let goes_on =
                record > 0 && self.batches.last().is_some_and(|last| taken(last.bytes + bytes) <= self.room);
            if !goes_on {
                if let Some(last) = self.batches.last_mut().filter(|_| record > 0) {
                    last.continues = true;
                }
                self.begin(bytes);
            }
            self.add(index, record..record + 1, bytes);
            if let Some(last) = self.batches.last_mut() {
                last.is_split = true;
            }
        }
    }
}

/// Bytes of the files that large messages get.
fn large_bytes(parts: &[Encoded]) -> u64 {
    parts.iter().flat_map(Encoded::large).map(|rest| rest.bytes.len() as u64).sum()
}

/// Bytes that a batch with so many bytes of records takes.
fn taken(bytes: usize) -> u64 {
    ((batch::HEADER + bytes) as u64).next_multiple_of(SECTOR)
}
