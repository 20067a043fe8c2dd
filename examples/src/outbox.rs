//! A directory that mails are put into.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;
use tokio::sync::watch;

/// A directory of mails. A mail is in it completely or not at all, whenever process or machine dies, and putting it in again
/// replaces it, so handling the same message twice does no harm.
#[derive(Clone, Debug)]
pub struct Outbox {
    directory: PathBuf,
    failure: watch::Sender<Option<Arc<OutboxError>>>,
}

/// A directory or file could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OutboxError {
    /// Something else has the directory's name.
    #[error("outbox: {} is a file; expected a directory", path.display())]
    NotADirectory {
        /// The file.
        path: PathBuf,
    },
    /// The system says no.
    #[error("outbox: cannot write {}: {source}", path.display())]
    Write {
        /// The directory or file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Outbox {
    /// Opens the outbox, making the directory if it is missing.
    ///
    /// # Errors
    /// When the directory cannot be made, or no file in it.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, OutboxError> {
        let directory = directory.into();
        if directory.exists() && !directory.is_dir() {
            return Err(OutboxError::NotADirectory { path: directory });
        }
        // One name for all, so that the next trial clears away what a process left that died in the middle.
        let trial = directory.join(".trial.part");
        let tried =
            fs::create_dir_all(&directory).and_then(|()| write_or_remove(&trial, b"trial", remove_if_there));
        match tried {
            Ok(()) => Ok(Self { directory, failure: watch::Sender::new(None) }),
            Err(source) => Err(OutboxError::Write { path: directory, source }),
        }
    }

    /// Puts a mail in under this file name: written beside, synced, renamed, and the directory synced. A failure leaves nothing
    /// behind, and what a crash leaves beside is replaced when the mail is put in again.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn put(&self, name: &str, mail: &[u8]) -> Result<(), Arc<OutboxError>> {
        let path = self.directory.join(name);
        let beside = self.directory.join(format!(".{name}.part"));
        let take_in =
            |beside: &Path| fs::rename(beside, &path).and_then(|()| sync_directory(&self.directory));
        write_or_remove(&beside, mail, take_in).map_err(|source| {
            let error = Arc::new(OutboxError::Write { path, source });
            self.failure.send_replace(Some(Arc::clone(&error)));
            error
        })
    }

    /// Waits until a mail could not be put in, here or through a clone, and says why not. Dropping the future loses
    /// nothing.
    pub async fn failed(&self) -> Arc<OutboxError> {
        let mut failure = self.failure.subscribe();
        match failure.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(error)) => Arc::clone(error),
            // The sender is here, so the wait ends with a failure only.
            _ => std::future::pending().await,
        }
    }

    /// Where the mails are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// Writes a file durably and finishes it; when either fails the file is removed.
fn write_or_remove(
    path: &Path,
    bytes: &[u8],
    finish: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let written = File::create(path).and_then(|mut file| {
        file.write_all(bytes)?;
        // Before the rename, which may otherwise survive a power cut that the contents do not.
        file.sync_data()
    });
    written.and_then(|()| finish(path)).inspect_err(|_| {
        // It may never have been made; the first error is the one to tell.
        let _ = fs::remove_file(path);
    })
}

/// Removes a file that another process may have removed just now.
fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Makes what was renamed within a directory survive a power cut.
fn sync_directory(directory: &Path) -> io::Result<()> {
    // Elsewhere directories are no files that could be opened.
    if cfg!(unix) { File::open(directory)?.sync_data() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<std::ffi::OsString> {
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn a_mail_put_in_twice_is_there_once_and_nothing_is_left_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(directory.path().join("made/on/the/way")).unwrap();
        outbox.put("order-1.eml", b"first").unwrap();
        outbox.put("order-1.eml", b"second").unwrap();
        assert_eq!(names(outbox.directory()), ["order-1.eml"]);
        assert_eq!(fs::read(outbox.directory().join("order-1.eml")).unwrap(), b"second");
    }

    #[tokio::test]
    async fn a_mail_that_cannot_be_put_in_is_told_and_nothing_is_left_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        // No file can take the place of a directory.
        fs::create_dir(directory.path().join("order-1.eml")).unwrap();
        let outbox = Outbox::open(directory.path()).unwrap();
        let error = outbox.put("order-1.eml", b"mail").unwrap_err();
        assert!(error.to_string().contains("order-1.eml: "), "{error}");
        assert_eq!(outbox.failed().await.to_string(), error.to_string());
        assert_eq!(names(directory.path()), ["order-1.eml"]);
    }

    #[test]
    fn a_file_in_place_of_the_directory_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        let error = Outbox::open(&file).unwrap_err();
        assert_eq!(error.to_string(), format!("outbox: {} is a file; expected a directory", file.display()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_directory_that_takes_no_files_is_refused_at_once() {
        // Not even the superuser makes files there.
        let error = Outbox::open("/proc/self").unwrap_err();
        assert!(error.to_string().starts_with("outbox: cannot write /proc/self: "), "{error}");
    }
}
