//! Looks at a broker's directory without a broker: is it whole, what is in it, why is a file kept, and what can be saved.
//!
//! Each of these takes the lock of the directory, and changes nothing in it.

mod describe;
mod dump;
mod explain;
mod look;
mod repair;
#[cfg(test)]
mod tests;
mod verify;
mod walk;

use std::fmt;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

pub use dump::{Dumped, dump};
pub use explain::explain;
pub use repair::{Repaired, repair};
pub use verify::{Verified, verify};

use super::error::OpenError;
use super::scan::ScanError;

/// Something that is not as it was written, or not there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The file.
    pub file: PathBuf,
    /// Where in it, unless it is about all of it.
    pub offset: Option<u64>,
    /// What is wrong there, and what is lost by it.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(offset) = self.offset {
            write!(f, ", offset {offset}")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// Why a directory could not be looked at.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InspectError {
    /// There is no journal in it.
    #[error(
        "{} is not the directory of a broker: there is no `journal` in it; expected `<data_directory>/<broker name>`",
        directory.display()
    )]
    NoJournal {
        /// The directory.
        directory: PathBuf,
    },
    /// What was to be a new directory has something in it.
    #[error("{} is not empty; what is repaired goes into a new directory", directory.display())]
    NotEmpty {
        /// The directory.
        directory: PathBuf,
    },
    /// It is in use, damaged, or of a newer version.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// What was found could not be written out.
    #[error("the output failed: {0}")]
    Output(io::Error),
}

impl InspectError {
    fn scan(error: ScanError, directory: &std::path::Path) -> Self {
        Self::Open(OpenError::scan(error, directory))
    }
}
