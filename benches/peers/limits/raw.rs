//! A write of 4 KiB and an fdatasync, one after the other: the yardstick.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

const BLOCK: u64 = 4096;
const LENGTH: u64 = 32 << 20;

/// A new file of so many zeros, synced, so that later syncs have no metadata to write.
pub(super) fn preallocated(path: &Path, length: u64) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).read(true).write(true).truncate(true).open(path)?;
    let zeros = vec![0; 1 << 20];
    for _ in 0..length.div_ceil(1 << 20) {
        file.write_all(&zeros)?;
    }
    file.sync_all()?;
    Ok(file)
}

/// The yardstick's file. It goes with it.
#[derive(Debug)]
pub(crate) struct Raw {
    file: File,
    path: PathBuf,
}

impl Raw {
    /// Makes the file in this directory.
    pub(crate) fn new(directory: &Path) -> io::Result<Self> {
        let path = directory.join("raw");
        Ok(Self { file: preallocated(&path, LENGTH)?, path })
    }

    /// Syncs per second, measured for this time.
    pub(crate) fn rate(&self, time: Duration) -> io::Result<f64> {
        let begin = Instant::now();
        let mut syncs = 0;
        while begin.elapsed() < time {
            self.write_and_sync(syncs)?;
            syncs += 1;
        }
        Ok(syncs as f64 / begin.elapsed().as_secs_f64())
    }

    fn write_and_sync(&self, number: u64) -> io::Result<()> {
        self.file.write_all_at(&[7; BLOCK as usize], number * BLOCK % LENGTH)?;
        self.file.sync_data()
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // What is left is in a directory that goes too.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Writes and syncs at a fixed rate per second. Each of the times, in nanoseconds, is from when the write was due, so
/// that a late one counts the time that it had to wait.
pub(crate) fn paced(directory: &Path, rate: f64, time: Duration) -> io::Result<Vec<u64>> {
    let raw = Raw::new(directory)?;
    let mut times = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < time {
        let number = times.len() as u64;
        let due = begin + Duration::from_secs_f64(number as f64 / rate);
        let since = wait_until(due);
        raw.write_and_sync(number)?;
        times.push(since.elapsed().as_nanos() as u64);
    }
    Ok(times)
}

/// Sleeps until a moment. Returns from when to measure: from now, or from that moment if it was over already.
pub(crate) fn wait_until(due: Instant) -> Instant {
    let mut now = Instant::now();
    if now > due {
        return due;
    }
    while now < due {
        thread::sleep(due - now);
        now = Instant::now();
    }
    now
}
