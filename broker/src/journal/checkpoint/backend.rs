//! redb over our files.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::StorageBackend;

use crate::files::DataFile;

/// One of our files, for redb. The lock of the directory stands for its locks.
#[derive(Debug)]
pub(super) struct Backend {
    file: Arc<dyn DataFile>,
    crashed: Arc<AtomicBool>,
}

impl Backend {
    /// Nothing is written any more once `crashed` is set.
    pub(super) fn new(file: Arc<dyn DataFile>, crashed: Arc<AtomicBool>) -> Self {
        Self { file, crashed }
    }

    fn changing(&self) -> io::Result<&dyn DataFile> {
        if self.crashed.load(Ordering::Acquire) {
            return Err(io::Error::other("the store was dropped without being closed"));
        }
        Ok(&*self.file)
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.changing().and_then(|file| file.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.changing().and_then(DataFile::sync_data)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.changing().and_then(|file| file.write_all_at(data, offset))
    }
}
