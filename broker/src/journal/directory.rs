//! Where everything is in the directory of a broker, and who has it. Nothing in it names its own path, so a copied or
//! moved one works.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs, io, process};

use super::error::OpenError;
use super::segments::Segments;
use crate::files::{FileSystem, Listed, Lock, LockError, OpenMode, Other};

/// The directory of a broker.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    root: PathBuf,
}

impl Directory {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The segments, spares and large messages.
    pub(crate) fn journal(&self) -> PathBuf {
        self.root.join("journal")
    }

    /// The checkpoint.
    pub(crate) fn checkpoint(&self) -> PathBuf {
        self.root.join("kr-store").join("state")
    }

    /// What consumers have in their hands.
    pub(crate) fn attempts(&self) -> PathBuf {
        self.root.join("attempts")
    }

    /// Says, while it is there, that this was to become the repaired copy of another directory and has not.
    pub(crate) fn unfinished(&self) -> PathBuf {
        self.root.join("unfinished-repair")
    }

    /// Refuses what a repair that was interrupted has left.
    pub(crate) fn check_finished(&self, files: &dyn FileSystem) -> Result<(), OpenError> {
        let path = self.unfinished();
        let file = match files.open(&path, OpenMode::ReadOnly) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened.map_err(OpenError::io(&path))?,
        };
        let mut source = Vec::new();
        if let Ok(length) = file.len() {
            source.resize(usize::try_from(length.min(4_096)).unwrap_or_default(), 0);
            // What cannot be read is shown as nothing: that it is there is enough.
            let _ = file.read_exact_at(&mut source, 0);
        }
        let source = match String::from_utf8_lossy(&source) {
            // It was interrupted before it could say what.
            source if source.is_empty() => "what was to be repaired".to_owned(),
            source => source.into_owned(),
        };
        Err(OpenError::Unfinished { directory: self.root.clone(), source_directory: source })
    }

    /// Makes the directories that are not there, and takes the lock; it ends with what is returned.
    pub(crate) fn lock(&self, files: &dyn FileSystem) -> Result<Box<dyn Lock>, OpenError> {
        for directory in [self.root.clone(), self.root.join("kr-store"), self.journal()] {
            files.create_directory(&directory).map_err(OpenError::io(&directory))?;
        }
        files.lock(&self.lock_file(), &holder()).map_err(|error| self.not_locked(error))
    }

    /// Takes the lock for one who only reads, and makes nothing but the file for it; where that cannot be written to, as it
    /// is, and where it cannot be made either, none: no broker is at work there.
    pub(crate) fn lock_to_read(&self, files: &dyn FileSystem) -> Result<Option<Box<dyn Lock>>, OpenError> {
        let path = self.lock_file();
        let taken = match files.lock(&path, &holder()) {
            Err(LockError::Io(error)) if cannot_be_written(&error) => files.lock_to_read(&path),
            taken => taken,
        };
        match taken {
            Err(LockError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            taken => taken.map(Some).map_err(|error| self.not_locked(error)),
        }
    }

    pub(crate) fn lock_file(&self) -> PathBuf {
        self.root.join("lock")
    }

    fn not_locked(&self, error: LockError) -> OpenError {
        match error {
            LockError::Held { holder } => OpenError::Locked { directory: self.root.clone(), holder },
            LockError::Io(error) => OpenError::Io { path: self.lock_file(), error },
        }
    }

    /// Refuses what has a name of the journal's and cannot be a file of it: it would be passed over, and be in the way later.
    pub(crate) fn check_kinds(&self, files: &dyn FileSystem) -> Result<(), OpenError> {
        let journal = self.journal();
        let foreign = |name: &str, why: String| Err(OpenError::Foreign { path: journal.join(name), why });
        for Other { name, what } in files.list_others(&journal).map_err(OpenError::io(&journal))? {
            if is_spare(&name) || is_kept(&name) {
                return foreign(&name, format!("it is {what}, and a file is expected there"));
            }
        }
        for Listed { name, length } in files.list(&journal).map_err(OpenError::io(&journal))? {
            if name.ends_with(".journal") && length > Segments::LONGEST {
                let most = Segments::LONGEST;
                return foreign(&name, format!("it has {length} bytes, and a segment has {most} at most"));
            }
        }
        Ok(())
    }

    /// A file of the journal without which messages could be missing, if there is one.
    pub(crate) fn any_record(&self, files: &dyn FileSystem) -> Result<Option<PathBuf>, OpenError> {
        let kept = self.names(files)?.find(|name| !is_spare(name) && is_kept(name));
        Ok(kept.map(|name| self.journal().join(name)))
    }

    /// Removes the spares of a journal that begins anew: what is in them could be taken for its own.
    pub(crate) fn remove_spares(&self, files: &dyn FileSystem) -> Result<(), OpenError> {
        while self.drop_spare(files)? {}
        let journal = self.journal();
        files.sync_directory(&journal).map_err(OpenError::io(&journal))
    }

    /// Removes a spare for the room that it takes; false when there is none.
    pub(crate) fn drop_spare(&self, files: &dyn FileSystem) -> Result<bool, OpenError> {
        let Some(spare) = self.names(files)?.find(|name| is_spare(name)) else { return Ok(false) };
        let path = self.journal().join(spare);
        files.remove(&path).map(|()| true).map_err(OpenError::io(&path))
    }

    fn names(&self, files: &dyn FileSystem) -> Result<impl Iterator<Item = String> + use<>, OpenError> {
        let journal = self.journal();
        let listed = files.list(&journal).map_err(OpenError::io(&journal))?;
        Ok(listed.into_iter().map(|file| file.name))
    }
}

fn is_spare(name: &str) -> bool {
    name.starts_with("spare-")
}

fn is_kept(name: &str) -> bool {
    name.ends_with(".journal") || name.ends_with(".large")
}

fn cannot_be_written(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Who we are, for whoever finds the directory locked.
fn holder() -> String {
    let program = env::current_exe().ok();
    let program =
        program.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let program = program.map(|program| format!(" ({program})")).unwrap_or_default();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.as_deref().map(str::trim).filter(|host| !host.is_empty());
    let host = host.map(|host| format!(" on {host}")).unwrap_or_default();
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    format!("process {}{program}{host} since {}", process::id(), utc(seconds))
}

/// Seconds since 1970 as `2026-11-29 23:51:34 UTC`.
fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March have their leap day at the end; counted from the year 0, in cycles of 400.
    let days = days + 719_468;
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + cycle * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_the_calendar_has_them() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(1_709_251_199), "2024-02-29 23:59:59 UTC");
        assert_eq!(utc(1_796_082_694), "2026-11-30 23:51:34 UTC");
    }

    #[test]
    fn the_holder_is_named_with_its_process_and_since_when() {
        let holder = holder();
        assert!(holder.starts_with(&format!("process {} (", process::id())), "{holder}");
        assert!(holder.contains(" since 20"), "{holder}");
    }
}
