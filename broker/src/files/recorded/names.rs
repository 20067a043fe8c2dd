//! Which name is which file, for the process and for the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The names of all files, and the changes of them that are not durable.
#[derive(Clone, Debug)]
pub(super) struct Names<F> {
    current: BTreeMap<PathBuf, F>,
    durable: BTreeMap<PathBuf, F>,
    unsynced: Vec<Change<F>>,
}

#[derive(Clone, Debug)]
enum Change<F> {
    Created(PathBuf, F),
    Renamed(PathBuf, PathBuf, F),
    Removed(PathBuf),
}

impl<F> Default for Names<F> {
    fn default() -> Self {
        Self { current: BTreeMap::new(), durable: BTreeMap::new(), unsynced: Vec::new() }
    }
}

impl<F: Clone> Names<F> {
    pub(super) fn get(&self, path: &Path) -> Option<&F> {
        self.current.get(path)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&PathBuf, &F)> {
        self.current.iter()
    }

    pub(super) fn create(&mut self, path: &Path, file: F) {
        self.change(Change::Created(path.to_owned(), file));
    }

    /// Whether there was such a file.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> bool {
        let Some(file) = self.current.get(from).cloned() else { return false };
        // A file renamed to its own name stays.
        if from != to {
            self.change(Change::Renamed(from.to_owned(), to.to_owned(), file));
        }
        true
    }

    /// Whether there was such a file.
    pub(super) fn remove(&mut self, path: &Path) -> bool {
        let there = self.current.contains_key(path);
        if there {
            self.change(Change::Removed(path.to_owned()));
        }
        there
    }

    /// Makes the changes in a directory durable, and the earlier ones elsewhere that they build on.
    pub(super) fn sync(&mut self, directory: &Path) {
        let mut wanted: BTreeSet<PathBuf> = BTreeSet::new();
        let mut durable: Vec<bool> = Vec::with_capacity(self.unsynced.len());
        for change in self.unsynced.iter().rev() {
            let with = change
                .paths()
                .any(|path| path.parent().unwrap_or(path) == directory || wanted.contains(path));
            if with {
                wanted.extend(change.paths().map(Path::to_owned));
            }
            durable.push(with);
        }
        for change in std::mem::take(&mut self.unsynced) {
            if durable.pop().unwrap_or(false) {
                change.apply(&mut self.durable);
            } else {
                self.unsynced.push(change);
            }
        }
    }

    /// How many changes are not durable.
    pub(super) fn unsynced(&self) -> usize {
        self.unsynced.len()
    }

    /// What a power cut leaves when so many of the unsynced changes, the first ones, reached the disk.
    pub(super) fn survivors(&self, changes: usize) -> BTreeMap<PathBuf, F> {
        let mut names = self.durable.clone();
        for change in self.unsynced.iter().take(changes) {
            change.clone().apply(&mut names);
        }
        names
    }

    /// Names that are all durable.
    pub(super) fn durable(names: BTreeMap<PathBuf, F>) -> Self {
        Self { current: names.clone(), durable: names, unsynced: Vec::new() }
    }

    /// The same names for other files.
    pub(super) fn map<G: Clone>(&self, mut other: impl FnMut(&F) -> G) -> Names<G> {
        let named = |names: &BTreeMap<PathBuf, F>, other: &mut dyn FnMut(&F) -> G| {
            names.iter().map(|(path, file)| (path.clone(), other(file))).collect()
        };
        Names {
            current: named(&self.current, &mut other),
            durable: named(&self.durable, &mut other),
            unsynced: self
                .unsynced
                .iter()
                .map(|change| match change {
                    Change::Created(path, file) => Change::Created(path.clone(), other(file)),
                    Change::Renamed(from, to, file) => Change::Renamed(from.clone(), to.clone(), other(file)),
                    Change::Removed(path) => Change::Removed(path.clone()),
                })
                .collect(),
        }
    }

    /// Takes a name away as if it had never been; whether it was there.
    pub(super) fn forget(&mut self, path: &Path) -> bool {
        self.unsynced.retain(|change| change.paths().all(|changed| changed != path));
        self.durable.remove(path);
        self.current.remove(path).is_some()
    }

    fn change(&mut self, change: Change<F>) {
        change.clone().apply(&mut self.current);
        self.unsynced.push(change);
    }
}

impl<F> Change<F> {
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let (one, other) = match self {
            Self::Created(path, _) | Self::Removed(path) => (path, None),
            Self::Renamed(from, to, _) => (from, Some(to)),
        };
        std::iter::once(one.as_path()).chain(other.map(PathBuf::as_path))
    }

    fn apply(self, names: &mut BTreeMap<PathBuf, F>) {
        match self {
            Self::Created(path, file) => drop(names.insert(path, file)),
            Self::Renamed(from, to, file) => {
                names.remove(&from);
                names.insert(to, file);
            }
            Self::Removed(path) => drop(names.remove(&path)),
        }
    }
}
