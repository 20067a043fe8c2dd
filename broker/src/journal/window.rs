//! A segment in memory, as far as it is being read.

use std::path::PathBuf;
use std::sync::Arc;

use super::batch::{self, Batch, Found};
use super::change::Entry;
use super::fields::Fault;
use super::lsn::Lsn;
use super::record;
use super::scan::ScanError;
use super::segments::{Segment, Segments};
use crate::files::DataFile;

/// A segment that is read from its beginning on, some of it in memory.
pub(super) struct Window {
    pub(super) segment: Segment,
    file: Arc<dyn DataFile>,
    /// The bytes from `start` on.
    bytes: Vec<u8>,
    start: u64,
}

impl Window {
    const LENGTH: u64 = 1024 * 1024;

    /// Nothing is read yet.
    pub(super) fn open(segments: &Segments, segment: Segment) -> Result<Self, ScanError> {
        let opened = segments.file(segment.base);
        let file = opened.map_err(|error| ScanError::Io { path: segment.path.clone(), error })?;
        Ok(Self { segment, file, bytes: Vec::new(), start: 0 })
    }

    /// What stands there.
    pub(super) fn find(&mut self, lsn: Lsn) -> Result<Found, ScanError> {
        let header = self.bytes(lsn, batch::HEADER as u64)?.first_chunk();
        let Some(length) = header.and_then(|header| batch::length_at(header, lsn)) else {
            return Ok(Found::Nothing);
        };
        Ok(batch::find(self.bytes(lsn, length.into())?, lsn))
    }

    /// Visits the records of a batch that was found here.
    pub(super) fn read(&mut self, batch: &Batch, mut visit: impl FnMut(Entry)) -> Result<(), ScanError> {
        let bytes = self.bytes(batch.lsn, batch.length.into())?;
        let mut at = batch::HEADER;
        let mut next = || {
            let lsn = Lsn(batch.lsn.0 + at as u64);
            let record = record::record_at(&bytes[at..], lsn).map_err(|fault| (lsn, fault))?;
            let change = record::read_change(record).map_err(|fault| (lsn, fault))?;
            at += record.len();
            visit(Entry { lsn, length: record.len() as u32, change });
            Ok(())
        };
        let read = (0..batch.count).try_for_each(|_| next());
        let read = read.and_then(|()| match bytes.len() - at {
            0 => Ok(()),
            _ => Err((batch.lsn, "it has more bytes than its records")),
        });
        read.map_err(|(lsn, fault): (Lsn, Fault)| {
            let (file, offset) = self.place(lsn);
            ScanError::Damaged { file, offset, why: fault.to_owned() }
        })
    }

    /// The file of this place, and where in it that is.
    pub(super) fn place(&self, lsn: Lsn) -> (PathBuf, u64) {
        (self.segment.path.clone(), lsn.0 - self.segment.base.0)
    }

    /// So many bytes from there on, or those that there are.
    pub(super) fn bytes(&mut self, lsn: Lsn, length: u64) -> Result<&[u8], ScanError> {
        let offset = lsn.0 - self.segment.base.0;
        let length = length.min(self.segment.length.saturating_sub(offset));
        let have = self.start..self.start + self.bytes.len() as u64;
        if offset < have.start || offset + length > have.end {
            let ahead = length.max(Self::LENGTH).min(self.segment.length.saturating_sub(offset));
            self.bytes.resize(ahead as usize, 0);
            self.start = offset;
            let read = self.file.read_exact_at(&mut self.bytes, offset);
            read.map_err(|error| ScanError::Io { path: self.segment.path.clone(), error })?;
        }
        let from = (offset - self.start) as usize;
        Ok(&self.bytes[from..from + length as usize])
    }
}
