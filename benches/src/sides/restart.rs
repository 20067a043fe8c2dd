//! The restart after a kill under load.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;

use super::started::Started;
use super::{Line, measuring};
use crate::failure::Failure;
use crate::measure::What;

/// Fills a journal for so long, kills who does, and times the next one from its start to its first message.
pub(super) fn measure(consumed: bool, directory: &Path, seconds: f64) -> Result<Line, Failure> {
    let (load, scenario) = if consumed {
        (What::LoadConsumed, "restart-after-kill9-consumed")
    } else {
        (What::LoadWaiting, "restart-after-kill9-waiting")
    };
    let mut filling = Started::new(&mut measuring(load, directory, seconds)?)?;
    filling.line()?;
    thread::sleep(Duration::from_secs_f64(seconds));
    filling.kill()?;
    let tail = tail_bytes(directory).map_err(|source| Failure::file(directory, source))?;

    let begin = Instant::now();
    let mut next = Started::new(&mut measuring(What::FirstMessage, directory, seconds)?)?;
    let mut line = next.line()?;
    let elapsed = begin.elapsed();
    next.kill()?;
    line.insert("scenario".to_owned(), json!(scenario));
    line.insert("seconds_of_load".to_owned(), json!(seconds));
    line.insert("first_message_s".to_owned(), json!(elapsed.as_secs_f64()));
    line.insert("tail_bytes_at_most".to_owned(), json!(tail));
    line.insert(
        "beside".to_owned(),
        json!(format!("{:.2} s with a tail of at most {} MiB", elapsed.as_secs_f64(), tail >> 20)),
    );
    Ok(line)
}

/// What the journal below this directory has behind its checkpoint, at most: the bytes of all its segments that were
/// written to since.
fn tail_bytes(directory: &Path) -> io::Result<u64> {
    let mut segments = Vec::new();
    let mut checkpoint = SystemTime::UNIX_EPOCH;
    let mut open = vec![directory.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if metadata.is_dir() {
                open.push(entry.path());
            } else if name == "state" {
                checkpoint = metadata.modified()?;
            } else if name.ends_with(".journal") && !name.starts_with("spare-") {
                segments.push((metadata.modified()?, metadata.len()));
            }
        }
    }
    Ok(segments.iter().filter(|(modified, _)| *modified >= checkpoint).map(|(_, length)| length).sum())
}
