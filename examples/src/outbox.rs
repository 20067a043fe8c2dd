//! A directory that mails are put into.

use std::path::{Path, PathBuf};
use std::{fs, io};

use thiserror::Error;

/// A directory of mails. A mail is in it completely or not at all, and putting it in again replaces it, so handling the
/// same message twice does no harm.
#[derive(Clone, Debug)]
pub struct Outbox {
    directory: PathBuf,
}

/// A directory or file could not be written.
#[derive(Debug, Error)]
#[error("outbox: cannot write {}: {source}", path.display())]
pub struct OutboxError {
    /// The directory or file.
    pub path: PathBuf,
    /// Why not.
    pub source: io::Error,
}

impl Outbox {
    /// Opens the outbox, making the directory if it is missing.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, OutboxError> {
        let directory = directory.into();
        match fs::create_dir_all(&directory) {
            Ok(()) => Ok(Self { directory }),
            Err(source) => Err(OutboxError { path: directory, source }),
        }
    }

    /// Puts a mail in under this file name: written beside, then renamed.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn put(&self, name: &str, mail: &[u8]) -> Result<(), OutboxError> {
        let path = self.directory.join(name);
        let beside = self.directory.join(format!(".{name}.part"));
        fs::write(&beside, mail)
            .and_then(|()| fs::rename(&beside, &path))
            .map_err(|source| OutboxError { path, source })
    }

    /// Where the mails are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_put_in_twice_is_there_once_and_nothing_is_left_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(directory.path().join("made/on/the/way")).unwrap();
        outbox.put("order-1.eml", b"first").unwrap();
        outbox.put("order-1.eml", b"second").unwrap();
        let names: Vec<_> =
            fs::read_dir(outbox.directory()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["order-1.eml"]);
        assert_eq!(fs::read(outbox.directory().join("order-1.eml")).unwrap(), b"second");
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        let error = Outbox::open(&file).unwrap_err();
        assert_eq!(error.path, file);
    }
}
