//! What can be wrong with a checkpoint.

use std::io;

use super::VERSION;

/// Why there is no checkpoint to go on with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckpointError {
    /// There is none.
    #[error("it is missing")]
    Missing,
    /// It cannot be understood.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// It was written by a newer version.
    #[error("it was written by a newer version (checkpoint format {found}, this one knows {VERSION})")]
    Newer {
        /// The version that it says.
        found: u64,
    },
    /// Reading or writing it failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

pub(super) fn unreadable(error: impl Into<redb::Error>) -> CheckpointError {
    match error.into() {
        redb::Error::Io(error) if !is_damage(&error) => CheckpointError::Io(error),
        other => CheckpointError::Unreadable(other.to_string()),
    }
}

/// Whether an error of reading speaks of the bytes in the file and not of the disk.
pub(super) fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput
    )
}

pub(super) fn io_error(error: redb::Error) -> io::Error {
    match error {
        redb::Error::Io(error) => error,
        other => io::Error::other(other),
    }
}
