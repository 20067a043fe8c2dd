//! The directory that is measured in.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::failure::Failure;

/// A new directory below `parent`, which goes with its handle.
pub(crate) fn fresh(parent: &Path) -> Result<TempDir, Failure> {
    let failure = |source| Failure::file(parent, source);
    fs::create_dir_all(parent).map_err(failure)?;
    let parent = parent.canonicalize().map_err(failure)?;
    // Where there is no such list, nobody can tell.
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    if kind_of(&mounts, &parent) == Some("tmpfs") {
        return Err(Failure::InMemory(parent));
    }
    tempfile::Builder::new().prefix("figures-").tempdir_in(&parent).map_err(failure)
}

/// The kind of the file system that a directory lies in.
fn kind_of<'a>(mounts: &'a str, directory: &Path) -> Option<&'a str> {
    let mounted = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let around = mounted.filter(|(place, _)| directory.starts_with(place));
    // Of two at the same place the later one hides the other.
    around.max_by_key(|(place, _)| place.len()).map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_from_a_disk_that_it_is_mounted_on() {
        let mounts =
            "/dev/vda / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n/dev/vdb /dev/shm/disk xfs rw 0 0\n";
        assert_eq!(kind_of(mounts, Path::new("/dev/shm/x")), Some("tmpfs"));
        assert_eq!(kind_of(mounts, Path::new("/dev/shmx")), Some("ext4"));
        assert_eq!(kind_of(mounts, Path::new("/dev/shm/disk/x")), Some("xfs"));
    }
}
