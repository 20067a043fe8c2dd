//! Files on a disk.

use std::fs::{self, File, FileType, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use super::{DataFile, FileSystem, Listed, Lock, LockError, OpenMode, Other};

/// The operating system's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

#[derive(Debug)]
struct DiskFile(File);

#[derive(Debug)]
struct DiskLock(File);

impl FileSystem for Disk {
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        let missing = path.ancestors().take_while(|above| !above.as_os_str().is_empty() && !above.is_dir());
        let made: Vec<&Path> = missing.collect();
        fs::create_dir_all(path).map_err(|error| in_the_place_of_a_directory(path).unwrap_or(error))?;
        for directory in made {
            let above = directory.parent().filter(|above| !above.as_os_str().is_empty());
            self.sync_directory(above.unwrap_or(Path::new(".")))?;
        }
        Ok(())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<Listed>> {
        let mut listed = Vec::new();
        for (name, metadata) in entries(directory)? {
            if metadata.is_file() {
                listed.push(Listed { name, length: metadata.len() });
            }
        }
        Ok(listed)
    }

    fn list_others(&self, directory: &Path) -> io::Result<Vec<Other>> {
        let others = entries(directory)?.into_iter().filter(|(_, metadata)| !metadata.is_file());
        Ok(others.map(|(name, metadata)| Other { name, what: what_is(metadata.file_type()) }).collect())
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DataFile>> {
        check_is_file(path)?;
        let mut options = OpenOptions::new();
        options.read(true).write(mode != OpenMode::ReadOnly);
        match mode {
            OpenMode::Existing | OpenMode::ReadOnly => {}
            OpenMode::New => drop(options.create_new(true)),
            OpenMode::Any => drop(options.create(true).truncate(false)),
        }
        Ok(Arc::new(DiskFile(options.open(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        File::open(directory)?.sync_all()
    }

    fn lock(&self, path: &Path, holder: &str) -> Result<Box<dyn Lock>, LockError> {
        check_is_file(path)?;
        // Not truncated before it is ours: what is in it is the holder's.
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut file = take(file)?;
        file.set_len(0)?;
        file.write_all(holder.as_bytes())?;
        Ok(Box::new(DiskLock(file)))
    }

    fn lock_to_read(&self, path: &Path) -> Result<Box<dyn Lock>, LockError> {
        check_is_file(path)?;
        Ok(Box::new(DiskLock(take(File::open(path)?)?)))
    }
}

impl Lock for DiskLock {
    fn is_at(&self, path: &Path) -> io::Result<bool> {
        is_at(&self.0, path)
    }
}

fn take(mut file: File) -> Result<File, LockError> {
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            file.read_to_string(&mut holder)?;
            Err(LockError::Held { holder })
        }
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// All that a directory has, in the order of the names; links are not followed.
fn entries(directory: &Path) -> io::Result<Vec<(String, Metadata)>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        entries.push((entry.file_name().to_string_lossy().into_owned(), entry.metadata()?));
    }
    entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    Ok(entries)
}

/// What is in the place of this directory or of one above it, if that is why it cannot be made.
fn in_the_place_of_a_directory(path: &Path) -> Option<io::Error> {
    let there = path.ancestors().find_map(|above| Some((above, fs::symlink_metadata(above).ok()?)))?;
    let (above, metadata) = there;
    let what = format!("{} is {}", above.display(), what_is(metadata.file_type()));
    (!above.is_dir()).then(|| io::Error::new(io::ErrorKind::NotADirectory, what))
}

/// Anything else could keep who opens it waiting for ever.
fn check_is_file(path: &Path) -> io::Result<()> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    let kind = match metadata.file_type() {
        file if file.is_file() => return Ok(()),
        directory if directory.is_dir() => io::ErrorKind::IsADirectory,
        _ => io::ErrorKind::Other,
    };
    Err(io::Error::new(kind, format!("it is {}", what_is(metadata.file_type()))))
}

fn what_is(kind: FileType) -> &'static str {
    if kind.is_file() {
        "a file"
    } else if kind.is_dir() {
        "a directory"
    } else if kind.is_symlink() {
        "a symbolic link"
    } else {
        "a pipe, a socket or a device"
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let there = match fs::metadata(path) {
        Ok(there) => there,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    let this = file.metadata()?;
    Ok((this.dev(), this.ino()) == (there.dev(), there.ino()))
}

#[cfg(unix)]
impl DataFile for DiskFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.0, buffer, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.0, bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        is_at(&self.0, path)
    }
}
