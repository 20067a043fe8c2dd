//! Files on a disk.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use super::{DataFile, FileSystem, Listed, LockError, OpenMode};

/// The operating system's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

#[derive(Debug)]
struct DiskFile(File);

impl FileSystem for Disk {
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        let missing = path.ancestors().take_while(|above| !above.as_os_str().is_empty() && !above.is_dir());
        let made: Vec<&Path> = missing.collect();
        fs::create_dir_all(path)?;
        for directory in made {
            let above = directory.parent().filter(|above| !above.as_os_str().is_empty());
            self.sync_directory(above.unwrap_or(Path::new(".")))?;
        }
        Ok(())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<Listed>> {
        let mut listed = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_file() {
                let name = entry.file_name().to_string_lossy().into_owned();
                listed.push(Listed { name, length: metadata.len() });
            }
        }
        listed.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(listed)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DataFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        match mode {
            OpenMode::Existing => {}
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

    fn lock(&self, path: &Path, holder: &str) -> Result<Box<dyn Debug + Send + Sync>, LockError> {
        // Not truncated before it is ours: what is in it is the holder's.
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0)?;
                file.write_all(holder.as_bytes())?;
                Ok(Box::new(file))
            }
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                file.read_to_string(&mut holder)?;
                Err(LockError::Held { holder })
            }
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }
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
}
