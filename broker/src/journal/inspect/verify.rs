//! Is everything as it was written?

use std::path::Path;
use std::sync::Arc;

use super::look::Looked;
use super::walk::{Damaged, From, Piece, walk};
use super::{Finding, InspectError};
use crate::files::FileSystem;
use crate::journal::checkpoint::{CheckpointError, Place};
use crate::journal::error::OpenError;
use crate::journal::index::{Operation, Saved};
use crate::journal::lsn::Lsn;
use crate::journal::reader::read_message;
use crate::journal::scan::{Cut, ScanError};

/// What was verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// How many segments there are.
    pub segments: u64,
    /// How many records are whole.
    pub records: u64,
    /// How many live messages were read.
    pub messages: u64,
    /// What is not as it was written.
    pub findings: Vec<Finding>,
    /// A torn end, which the next start cuts: nothing of it was confirmed as durable.
    pub torn: Option<Finding>,
}

/// Reads every batch and every record of every segment, the checkpoint, and the message of everything that it refers to.
///
/// # Errors
/// It could not be looked at: it is in use, or of a newer version, or reading failed.
pub fn verify(files: &Arc<dyn FileSystem>, directory: &Path) -> Result<Verified, InspectError> {
    let looked = Looked::at(files, directory)?;
    let mut verified = Verified { segments: looked.segments.live().len() as u64, ..Verified::default() };
    let checkpoint = match looked.checkpoint() {
        Err(error @ (CheckpointError::Missing | CheckpointError::Unreadable(_))) => {
            let file = looked.directory.checkpoint();
            verified.findings.push(Finding { file, offset: None, what: format!("the checkpoint: {error}") });
            None
        }
        other => {
            let path = looked.directory.checkpoint();
            Some(other.map_err(|error| OpenError::checkpoint(error, &path, directory))?)
        }
    };
    let place = checkpoint.as_ref().map(|(_, _, place)| *place);
    verified.walk(&looked, place)?;
    if let Some((mut scratch, saved, place)) = checkpoint {
        let mut index = looked.restore(saved);
        match looked.scan(place, &mut index) {
            Ok(scanned) => verified.torn = scanned.cut.map(torn),
            Err(error) => verified.refused(error, directory)?,
        }
        index.drop_open();
        let merged = scratch.merge(index.take_changes(), place);
        let path = looked.directory.checkpoint();
        let saved = merged.map_err(|error| OpenError::checkpoint(error, &path, directory))?;
        verified.read_messages(&looked, &saved);
    }
    Ok(verified)
}

impl Verified {
    fn walk(&mut self, looked: &Looked, place: Option<Place>) -> Result<(), InspectError> {
        let place = place.unwrap_or_default();
        let from = From { lsn: looked.first(), epoch: 0, durable: place.durable };
        let walked = walk(&looked.segments, from, |piece| match piece {
            Piece::Whole(entries) => self.records += entries.len() as u64,
            Piece::Damaged(damaged) => {
                self.records += damaged.entries.len() as u64;
                self.findings.push(of_damage(&damaged));
            }
            // Below the checkpoint's tail segments go one by one.
            Piece::Missing { file, from, to } if to > place.tail && place != Place::default() => {
                self.findings.push(of_missing(file, from, to));
            }
            Piece::Missing { .. } => {}
        });
        for segment in looked.segments.live() {
            if let Some(what) = segment.wrong_length() {
                let (file, offset) = (segment.path, Some(segment.length));
                self.findings.push(Finding { file, offset, what });
            }
        }
        walked.map(drop).map_err(|error| InspectError::scan(error, looked.directory.root()))
    }

    /// Notes why a start would be refused, unless that is noted already.
    fn refused(&mut self, error: ScanError, directory: &Path) -> Result<(), InspectError> {
        let finding = match error {
            ScanError::Damaged { file, offset, why } => Finding { file, offset: Some(offset), what: why },
            ScanError::Missing { file, why } => {
                Finding { file, offset: None, what: format!("it is missing: {why}") }
            }
            other => return Err(InspectError::scan(other, directory)),
        };
        let is_known = |known: &Finding| known.file == finding.file && known.offset == finding.offset;
        if !self.findings.iter().any(is_known) {
            self.findings.push(finding);
        }
        Ok(())
    }

    fn read_messages(&mut self, looked: &Looked, saved: &Saved) {
        let sends = saved.transactions.iter().flat_map(|transaction| &transaction.operations);
        let sends = sends.filter_map(|operation| match operation {
            Operation::Send { stored, reference, .. } => Some((*stored, *reference)),
            Operation::Remove { .. } => None,
        });
        for (stored, reference) in saved.references.iter().copied().chain(sends) {
            let segments = &looked.segments;
            match read_message(segments, stored, &reference) {
                Ok(_) => self.messages += 1,
                Err(error) => {
                    let (file, offset) = looked.place(reference.lsn);
                    let what = format!("{} cannot be read: {error}", saved.name(stored, reference.queue));
                    self.findings.push(Finding { file, offset, what });
                }
            }
        }
    }
}

/// What is to be said of damaged bytes.
pub(super) fn of_damage(damaged: &Damaged) -> Finding {
    let Damaged { file, offset, bytes, why, entries, lost } = damaged;
    let mut what = format!("{bytes} bytes are damaged: {why}; {} records in there are whole", entries.len());
    for record in lost {
        let of = record.stored.map(|stored| format!(", it seems of message {}", stored.0));
        let of = of.unwrap_or_default();
        what += &format!("; a record of {} bytes at offset {} is not{of}", record.length, record.offset);
    }
    Finding { file: file.clone(), offset: Some(*offset), what }
}

pub(super) fn of_missing(file: std::path::PathBuf, from: Lsn, to: Lsn) -> Finding {
    Finding { file, offset: None, what: format!("it is missing, with all from {from} to {to}") }
}

pub(super) fn torn(cut: Cut) -> Finding {
    let what = format!("{} bytes at the end of the journal are torn: {}", cut.bytes, cut.why);
    Finding { file: cut.file, offset: Some(cut.offset), what }
}
