//! Names, directories and locks.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::data_file::RecordedFile;
use super::faults::Operation;
use super::{RecordedFiles, State, lock};
use crate::files::{DataFile, FileSystem, Listed, LockError, OpenMode};

impl FileSystem for RecordedFiles {
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.faults.alive()?;
        if let Some(file) = path.ancestors().find(|above| state.names.get(above).is_some()) {
            let there = format!("{} is a file", file.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, there));
        }
        state.directories.extend(path.ancestors().map(Path::to_owned));
        Ok(())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<Listed>> {
        let state = self.state();
        state.faults.alive()?;
        state.check_directory(directory)?;
        let within = state.names.iter().filter(|(path, _)| directory_of(path) == directory);
        let listed = within.filter_map(|(path, node)| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            Some(Listed { name, length: lock(node).length() })
        });
        Ok(listed.collect())
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DataFile>> {
        let mut state = self.state();
        state.faults.alive()?;
        state.check_directory(directory_of(path))?;
        if state.directories.contains(path) {
            let directory = format!("{} is a directory", path.display());
            return Err(io::Error::new(io::ErrorKind::IsADirectory, directory));
        }
        let node = match (state.names.get(path), mode) {
            (Some(_), OpenMode::New) => {
                let there = format!("{} is there already", path.display());
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, there));
            }
            (Some(node), _) => Arc::clone(node),
            (None, OpenMode::Existing) => return Err(missing(path)),
            (None, OpenMode::New | OpenMode::Any) => {
                state.faults.admit(Operation::Create, || format!("create {}", path.display()))?;
                let node = super::Node::default();
                state.names.create(path, Arc::clone(&node));
                node
            }
        };
        Ok(Arc::new(RecordedFile { files: self.clone(), node, path: path.to_owned() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.faults.alive()?;
        state.check_directory(directory_of(to))?;
        if state.names.get(from).is_none() {
            return Err(missing(from));
        }
        if state.device_of(from) != state.device_of(to) {
            let other = format!("{} is on another device than {}", to.display(), from.display());
            return Err(io::Error::new(io::ErrorKind::CrossesDevices, other));
        }
        let what = || format!("rename {} to {}", from.display(), to.display());
        state.faults.admit(Operation::Rename, what)?;
        state.names.rename(from, to);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.faults.alive()?;
        if state.names.get(path).is_none() {
            return Err(missing(path));
        }
        state.faults.admit(Operation::Remove, || format!("remove {}", path.display()))?;
        state.names.remove(path);
        Ok(())
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.faults.alive()?;
        state.check_directory(directory)?;
        state.faults.admit(Operation::SyncDirectory, || format!("sync directory {}", directory.display()))?;
        state.names.sync(directory);
        Ok(())
    }

    fn lock(&self, path: &Path, holder: &str) -> Result<Box<dyn Debug + Send + Sync>, LockError> {
        let mut state = self.state();
        state.faults.alive().map_err(io::Error::from)?;
        state.check_directory(directory_of(path))?;
        if let Some(holder) = state.locks.get(path) {
            return Err(LockError::Held { holder: holder.clone() });
        }
        let node = state.names.get(path).cloned().unwrap_or_else(|| {
            let node = super::Node::default();
            state.names.create(path, Arc::clone(&node));
            node
        });
        let mut contents = lock(&node);
        contents.set_length(0);
        contents.write(holder.as_bytes(), 0);
        state.locks.insert(path.to_owned(), holder.to_owned());
        Ok(Box::new(Held { files: self.clone(), path: path.to_owned() }))
    }
}

impl State {
    fn device_of<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        path.ancestors().find(|above| self.devices.contains(*above))
    }

    fn check_directory(&self, directory: &Path) -> io::Result<()> {
        let root = directory.parent().is_none();
        if root || self.directories.contains(directory) { Ok(()) } else { Err(missing(directory)) }
    }
}

/// A lock, which ends with this.
#[derive(Debug)]
struct Held {
    files: RecordedFiles,
    path: PathBuf,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.files.state().locks.remove(&self.path);
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

fn missing(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("there is no {}", path.display()))
}
