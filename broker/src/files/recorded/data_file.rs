//! An open file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::contents::SECTOR;
use super::faults::{Operation, Refusal};
use super::{Node, RecordedFiles, State, lock};
use crate::files::DataFile;

pub(super) struct RecordedFile {
    pub(super) files: RecordedFiles,
    pub(super) node: Node,
    /// The name by which it was opened, for the log.
    pub(super) path: PathBuf,
    pub(super) is_read_only: bool,
}

impl DataFile for RecordedFile {
    fn len(&self) -> io::Result<u64> {
        let state = self.files.state();
        state.faults.alive()?;
        Ok(lock(&self.node).length())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.check_writable()?;
        let mut state = self.files.state();
        state.faults.admit(Operation::SetLen, || format!("set_len {} to {length}", self.path.display()))?;
        state.check_room(&self.node, length)?;
        lock(&self.node).set_length(length);
        Ok(())
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut state = self.files.state();
        state.faults.admit(Operation::Read, || {
            format!("read {} bytes of {} at {offset}", buffer.len(), self.path.display())
        })?;
        if lock(&self.node).read(buffer, offset) {
            return Ok(());
        }
        let beyond = format!("{} ends before {offset} + {}", self.path.display(), buffer.len());
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, beyond))
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let Some(end) = offset.checked_add(bytes.len() as u64) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        self.check_writable()?;
        let mut state = self.files.state();
        let admitted = state.faults.admit(Operation::Write, || {
            format!("write {} bytes to {} at {offset}", bytes.len(), self.path.display())
        });
        if !matches!(admitted, Err(Refusal::Gone)) {
            state.check_room(&self.node, end)?;
        }
        let mut contents = lock(&self.node);
        match admitted {
            Ok(()) => contents.write(bytes, offset),
            Err(Refusal::Gone) => return Err(Refusal::Gone.into()),
            Err(Refusal::Crash(mut seeded)) => {
                contents.write_some(bytes, offset, |_| seeded.below(2) == 1);
                return Err(Refusal::Gone.into());
            }
            Err(Refusal::Fault(kind)) => {
                let half = bytes.len() / SECTOR / 2;
                contents.write_some(bytes, offset, |sector| sector < half);
                return Err(Refusal::Fault(kind).into());
            }
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.files.state();
        let admitted = state.faults.admit(Operation::SyncData, || format!("sync {}", self.path.display()));
        let mut contents = lock(&self.node);
        match admitted {
            Ok(()) => contents.sync(),
            Err(refusal) => {
                if matches!(refusal, Refusal::Fault(_)) {
                    contents.fail_sync();
                }
                return Err(refusal.into());
            }
        }
        Ok(())
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        let state = self.files.state();
        state.faults.alive()?;
        Ok(state.is_at(&self.node, path))
    }
}

impl RecordedFile {
    fn check_writable(&self) -> io::Result<()> {
        if self.is_read_only {
            let opened = format!("{} was opened to be read", self.path.display());
            return Err(io::Error::other(opened));
        }
        Ok(())
    }
}

impl State {
    /// Whether a file may grow to `length`.
    fn check_room(&self, node: &Node, length: u64) -> io::Result<()> {
        let Some(limit) = self.limit else { return Ok(()) };
        let now = lock(node).length();
        let all: u64 = self.names.iter().map(|(_, node)| lock(node).length()).sum();
        if length > now && all.saturating_add(length - now) > limit {
            let full = format!("the recorded files have {all} of {limit} bytes");
            return Err(io::Error::new(io::ErrorKind::StorageFull, full));
        }
        Ok(())
    }
}

impl fmt::Debug for RecordedFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("RecordedFile").field(&self.path).finish()
    }
}
