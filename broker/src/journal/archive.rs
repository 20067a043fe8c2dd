//! Moves what the journal needs no more into the archive, which may be on another file system.

use std::io;
use std::path::Path;

use crate::files::{FileSystem, OpenMode};

/// Moves the file `from` into the directory `archive`, which is made if it is not there. At every moment one of the two has
/// all of it, under the name `name` in the archive.
///
/// # Errors
/// What the operating system says; the next call goes on with whatever was done.
pub(super) fn archive(files: &dyn FileSystem, from: &Path, archive: &Path, name: &str) -> io::Result<()> {
    files.create_directory(archive)?;
    let to = archive.join(name);
    match files.rename(from, &to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            // Another name until it is whole, so that nobody takes a part of it for the segment.
            let part = archive.join(format!("{name}.part"));
            let moved = copy(files, from, &part).and_then(|()| files.rename(&part, &to));
            if let Err(error) = moved {
                // Its room is given back; if that fails too, the next call writes over it.
                let _ = files.remove(&part);
                return Err(error);
            }
            files.sync_directory(archive)?;
            files.remove(from)
        }
        // It was moved before, by a call of which only the sync failed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => files.sync_directory(archive),
        renamed => renamed.and_then(|()| files.sync_directory(archive)),
    }
}

/// Writes the bytes of a file to another one, durably.
fn copy(files: &dyn FileSystem, from: &Path, to: &Path) -> io::Result<()> {
    const CHUNK: u64 = 1024 * 1024;
    let (from, to) = (files.open(from, OpenMode::Existing)?, files.open(to, OpenMode::Any)?);
    to.set_len(0)?;
    let length = from.len()?;
    let mut chunk = vec![0; usize::try_from(length.min(CHUNK)).unwrap_or(usize::MAX)];
    let mut at = 0;
    while at < length {
        let bytes = &mut chunk[..(length - at).min(CHUNK) as usize];
        from.read_exact_at(bytes, at)?;
        to.write_all_at(bytes, at)?;
        at += bytes.len() as u64;
    }
    to.sync_data()
}
