//! Why a journal is not opened.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::checkpoint::CheckpointError;
use super::scan::ScanError;
use crate::files::is_out_of_handles;

/// Why a journal is not opened. Nothing was changed, but for what [`OpenError::Io`] interrupts.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Somebody has the directory.
    #[error("{} is in use: it is held by {holder}", directory.display())]
    Locked {
        /// The directory.
        directory: PathBuf,
        /// Who has it, in the holder's own words.
        holder: String,
    },
    /// It was to become the repaired copy of another directory, and that was interrupted.
    #[error(
        "{} is what an interrupted repair has left; remove it, and repair {source_directory} again into another directory",
        directory.display()
    )]
    Unfinished {
        /// The directory.
        directory: PathBuf,
        /// What was to be repaired.
        source_directory: String,
    },
    /// Something that was durable cannot be read.
    #[error("{}, offset {offset}: {why}; nothing was changed; {}", file.display(), remedy(directory))]
    Damaged {
        /// Which file is damaged.
        file: PathBuf,
        /// Where in it.
        offset: u64,
        /// What is wrong there.
        why: String,
        /// The directory that is to be repaired.
        directory: PathBuf,
    },
    /// A file is not there, or not as a file of its kind, without which messages would be lost.
    #[error("{}: {why}; nothing was changed; {}", file.display(), remedy(directory))]
    Missing {
        /// Which file.
        file: PathBuf,
        /// What is wrong with it, and what it is needed for.
        why: String,
        /// The directory that is to be repaired.
        directory: PathBuf,
    },
    /// Something has the name of a file of the journal and is none.
    #[error("{}: {why}; nothing was changed; move it away, it is nothing that a broker has written there", path.display())]
    Foreign {
        /// What has the name.
        path: PathBuf,
        /// What it is.
        why: String,
    },
    /// A newer version wrote it.
    #[error("{}: {why}; nothing was changed", file.display())]
    NewerFormat {
        /// Which file.
        file: PathBuf,
        /// Which version it has.
        why: String,
    },
    /// A start writes a checkpoint, and there is no room for it, although all was given up that was kept back for that.
    #[error(
        "{}: a start needs room to write it, and there is none, although all that was kept back was given up: {error}; \
         make some on its disk and start again", path.display()
    )]
    NoRoom {
        /// The checkpoint.
        path: PathBuf,
        /// What the operating system says.
        #[source]
        error: io::Error,
    },
    /// The operating system refused something.
    #[error("{}: {error}{}", path.display(), advice(error))]
    Io {
        /// Which file or directory.
        path: PathBuf,
        /// What it says.
        #[source]
        error: io::Error,
    },
}

fn remedy(directory: &Path) -> String {
    format!(
        "`corriere-store repair {} INTO` brings what can be read into a new directory",
        directory.display()
    )
}

/// What can be done about an error of the operating system, as the end of a sentence; empty where there is nothing to say.
pub(super) fn advice(error: &io::Error) -> &'static str {
    if is_out_of_handles(error) {
        return "; too many files are open: raise the limit of this process (RLIMIT_NOFILE, `ulimit -n`) or of the system \
                (`fs.file-max`)";
    }
    match error.kind() {
        io::ErrorKind::NotADirectory => {
            "; a directory is expected there: move away what is in its place, or name another one"
        }
        io::ErrorKind::IsADirectory => "; a file is expected there: move the directory away",
        io::ErrorKind::PermissionDenied => {
            "; the user of this process has to be able to read and write it, and its directory: change their owner or their \
             permissions, or name another directory"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "; it is on a file system that cannot be written to: mount it so that it can, or name another directory"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; make room on its disk",
        _ => "",
    }
}

impl OpenError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Io { path, error }
    }

    pub(crate) fn scan(error: ScanError, directory: &Path) -> Self {
        let directory = directory.to_owned();
        match error {
            ScanError::Damaged { file, offset, why } => Self::Damaged { file, offset, why, directory },
            ScanError::Missing { file, why } => {
                Self::Missing { file, why: format!("it is missing: {why}"), directory }
            }
            ScanError::NewerFormat { file, offset, version } => Self::NewerFormat {
                file,
                why: format!("offset {offset} was written by a newer version (journal format {version})"),
            },
            ScanError::Io { path, error } => Self::Io { path, error },
        }
    }

    pub(crate) fn checkpoint(error: CheckpointError, file: &Path, directory: &Path) -> Self {
        let file = file.to_owned();
        match error {
            CheckpointError::Newer { .. } => Self::NewerFormat { file, why: error.to_string() },
            CheckpointError::Io(error) => Self::Io { path: file, error },
            CheckpointError::Missing | CheckpointError::Unreadable(_) => {
                let why = format!("the checkpoint of the journal in `journal`: {error}");
                Self::Missing { file, why, directory: directory.to_owned() }
            }
        }
    }
}
