//! Names, directories and locks.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::data_file::RecordedFile;
use super::faults::Operation;
use super::{Node, RecordedFiles, State, lock};
use crate::files::{DataFile, FileSystem, Listed, Lock, LockError, OpenMode, Other};

impl FileSystem for RecordedFiles {
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.faults.alive()?;
        if let Some(file) = path.ancestors().find(|above| state.names.get(above).is_some()) {
            let there = format!("{} is a file", file.display());
            return Err(io::Error::new(io::ErrorKind::NotADirectory, there));
        }
        if !state.directories.contains(path) {
            state.check_writable(path)?;
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

    fn list_others(&self, directory: &Path) -> io::Result<Vec<Other>> {
        let state = self.state();
        state.faults.alive()?;
        state.check_directory(directory)?;
        let within = state.directories.iter().filter(|path| path.parent() == Some(directory));
        let names = within.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        Ok(names.map(|name| Other { name, what: "a directory" }).collect())
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DataFile>> {
        let mut state = self.state();
        state.faults.alive()?;
        state.check_directory(directory_of(path))?;
        if state.directories.contains(path) {
            let directory = format!("{} is a directory", path.display());
            return Err(io::Error::new(io::ErrorKind::IsADirectory, directory));
        }
        if mode != OpenMode::ReadOnly && (mode != OpenMode::Existing || state.names.get(path).is_some()) {
            state.check_writable(path)?;
        }
        let node = match (state.names.get(path), mode) {
            (Some(_), OpenMode::New) => {
                let there = format!("{} is there already", path.display());
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, there));
            }
            (Some(node), _) => Arc::clone(node),
            (None, OpenMode::Existing | OpenMode::ReadOnly) => return Err(missing(path)),
            (None, OpenMode::New | OpenMode::Any) => {
                state.faults.admit(Operation::Create, || format!("create {}", path.display()))?;
                let node = Node::default();
                state.names.create(path, Arc::clone(&node));
                node
            }
        };
        let is_read_only = mode == OpenMode::ReadOnly;
        Ok(Arc::new(RecordedFile { files: self.clone(), node, path: path.to_owned(), is_read_only }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.faults.alive()?;
        state.check_directory(directory_of(to))?;
        if state.names.get(from).is_none() {
            return Err(missing(from));
        }
        state.check_writable(from)?;
        state.check_writable(to)?;
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
        state.check_writable(path)?;
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

    fn lock(&self, path: &Path, holder: &str) -> Result<Box<dyn Lock>, LockError> {
        let mut state = self.state();
        state.faults.alive().map_err(io::Error::from)?;
        state.check_directory(directory_of(path))?;
        state.check_writable(path)?;
        let node = state.names.get(path).cloned().unwrap_or_else(|| {
            let node = Node::default();
            state.names.create(path, Arc::clone(&node));
            node
        });
        state.take(&node, holder)?;
        let mut contents = lock(&node);
        contents.set_length(0);
        contents.write(holder.as_bytes(), 0);
        drop(contents);
        Ok(Box::new(Held { files: self.clone(), node }))
    }

    fn lock_to_read(&self, path: &Path) -> Result<Box<dyn Lock>, LockError> {
        let mut state = self.state();
        state.faults.alive().map_err(io::Error::from)?;
        state.check_directory(directory_of(path))?;
        let node = state.names.get(path).cloned().ok_or_else(|| missing(path))?;
        let contents = lock(&node);
        let mut holder = vec![0; usize::try_from(contents.length()).unwrap_or_default()];
        contents.read(&mut holder, 0);
        drop(contents);
        state.take(&node, &String::from_utf8_lossy(&holder))?;
        Ok(Box::new(Held { files: self.clone(), node }))
    }
}

impl State {
    fn device_of<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        path.ancestors().find(|above| self.devices.contains(*above))
    }

    fn check_writable(&self, path: &Path) -> io::Result<()> {
        match path.ancestors().find(|above| self.read_only.contains(*above)) {
            None => Ok(()),
            Some(directory) => {
                let read_only = format!("{} cannot be written to", directory.display());
                Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, read_only))
            }
        }
    }

    fn take(&mut self, lock: &Node, holder: &str) -> Result<(), LockError> {
        if let Some((_, holder)) = self.locks.iter().find(|(node, _)| Arc::ptr_eq(node, lock)) {
            return Err(LockError::Held { holder: holder.clone() });
        }
        self.locks.push((Arc::clone(lock), holder.to_owned()));
        Ok(())
    }

    pub(super) fn is_at(&self, node: &Node, path: &Path) -> bool {
        self.names.get(path).is_some_and(|there| Arc::ptr_eq(there, node))
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
    node: Node,
}

impl Lock for Held {
    fn is_at(&self, path: &Path) -> io::Result<bool> {
        let state = self.files.state();
        state.faults.alive()?;
        Ok(state.is_at(&self.node, path))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.files.state().locks.retain(|(node, _)| !Arc::ptr_eq(node, &self.node));
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

fn missing(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("there is no {}", path.display()))
}
