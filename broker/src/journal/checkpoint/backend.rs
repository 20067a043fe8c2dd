//! redb over our files.

use std::io;
use std::sync::Arc;

use redb::StorageBackend;

use super::extent::Extent;

/// The file of the checkpoint, for redb. The lock of the directory stands for its locks.
#[derive(Debug)]
pub(super) struct Backend(pub(super) Arc<Extent>);

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.known())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_known(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}
