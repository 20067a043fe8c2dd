//! The directory that holds the broker's journal.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Where the broker keeps its messages.
#[derive(Debug)]
pub(crate) enum Data {
    /// A directory of the user's, which stays.
    Kept(PathBuf),
    /// A fresh one, which goes with this value, so that the run stands alone.
    Temporary(TempDir),
}

impl Data {
    pub(crate) fn open(directory: Option<&Path>) -> io::Result<Self> {
        match directory {
            Some(directory) => Ok(Self::Kept(directory.to_owned())),
            None => TempDir::with_prefix("order_pipeline-").map(Self::Temporary),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(directory) => directory.path(),
        }
    }
}

/// What becomes of it, for people.
impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept(path) => write!(f, "kept in {}", path.display()),
            Self::Temporary(_) => f.write_str("removed; `--data DIR` keeps it"),
        }
    }
}
