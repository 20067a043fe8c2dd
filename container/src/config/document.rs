//! A configuration as it was written: the trees of its files, and what the environment and the program put on top.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use config::{Map, Value, ValueKind};

use super::error::{ConfigError, Problems};
use super::file::{self, ConfigFile};
use super::reading::Reading;
use super::{Configuration, Listing, environment, key_path, origin, placeholder, secret};

/// A configuration as it was written, before it is checked and read.
///
/// Its layers are a file, the files of the profiles in their order, environment variables `CORRIERE__TABLE__KEY`, then
/// [`Document::set`]; each wins over those before it, key by key. Shown for debugging it names keys and variables, and no
/// value: any may be a secret.
#[derive(Clone, Default)]
pub struct Document {
    /// The configuration's own, then those of its profiles.
    files: Vec<ConfigFile>,
    /// Where the paths of `${file:PATH}` start.
    directory: PathBuf,
    /// Whether there is a file that those of profiles would lie beside.
    has_profiles: bool,
    environment: HashMap<String, String>,
    set: Vec<(String, Value)>,
}

impl Document {
    /// An empty configuration, with no environment.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a TOML file, takes the process's environment, and reads the files of the profiles that its variable
    /// `CORRIERE_PROFILE` names: for `prod,eu` beside `config.toml` these are `config.prod.toml` and `config.eu.toml`. A
    /// relative path starts at the current directory.
    ///
    /// # Errors
    /// [`ConfigError::Unreadable`], [`ConfigError::NotUtf8`], [`ConfigError::Syntax`], [`ConfigError::MissingProfile`],
    /// [`ConfigError::ProfileName`]; of several files together as [`ConfigError::Several`].
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        // A variable that is not Unicode can be none of ours, since our keys and values are texts.
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self::from_file_in(path, environment)
    }

    /// As [`Document::from_file`], in this environment instead of the process's.
    ///
    /// # Errors
    /// As [`Document::from_file`].
    pub fn from_file_in<I, K, V>(path: impl AsRef<Path>, environment: I) -> Result<Self, ConfigError>
    where
        I: IntoIterator<Item = (K, V)>,
        K: Into<String>,
        V: Into<String>,
    {
        let path = path.as_ref();
        let environment = environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let files = file::read_all(path, &environment)?;
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Self { files, directory, has_profiles: true, environment, set: Vec::new() })
    }

    /// Reads a TOML text; `file` is what errors call it. No environment is taken, and there are no profiles.
    ///
    /// # Errors
    /// [`ConfigError::Syntax`].
    pub fn from_text(file: &str, text: &str) -> Result<Self, ConfigError> {
        Ok(Self { files: vec![ConfigFile::of_text(0, file, text)?], ..Self::default() })
    }

    /// The same configuration under this environment instead.
    #[must_use]
    pub fn with_environment<I, K, V>(mut self, environment: I) -> Self
    where
        I: IntoIterator<Item = (K, V)>,
        K: Into<String>,
        V: Into<String>,
    {
        self.environment = environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        self
    }

    /// Sets a key such as `templates.order_template.receive_timeout`, over the file and the environment. A name with
    /// unusual characters stands in quotes: `templates."order.template".receive_timeout`. It is checked with all others
    /// by [`Document::read`].
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<ValueKind>) {
        self.set.push((key.into(), Value::new(Some(&origin::code()), value)));
    }

    /// Checks and reads everything. `listeners` are the ids under which `[listeners.ID]` can stand.
    ///
    /// # Errors
    /// All that is wrong, as [`ConfigError::Several`] when it is more than one thing.
    pub fn read(&self, listeners: &[&str]) -> Result<Configuration, ConfigError> {
        let (configuration, problems) = self.read_partly(listeners);
        problems.into_result(configuration)
    }

    /// As [`Document::read`]: what could be read, and all that is wrong.
    pub(crate) fn read_partly(&self, listeners: &[&str]) -> (Configuration, Problems) {
        let (configuration, (), problems) = self.reading(listeners, |_, _| ());
        (configuration, problems)
    }

    /// As [`Document::read`], with what a person is shown of it.
    ///
    /// # Errors
    /// As [`Document::read`].
    pub fn list(&self, listeners: &[&str]) -> Result<Listing, ConfigError> {
        let list = |reading: &Reading<'_>, configuration: &Configuration| {
            let preset = configuration.broker.as_ref().and_then(|broker| broker.preset);
            let files = self.files.iter().map(|file| file.named.name.clone()).collect();
            Listing::of(files, reading, preset)
        };
        let (_, listing, problems) = self.reading(listeners, list);
        problems.into_result(listing)
    }

    /// Whether the environment asks for a check in place of a start, by `CORRIERE_CHECK=1`.
    ///
    /// # Errors
    /// [`ConfigError::Value`] when the variable holds neither yes nor no.
    pub(crate) fn asks_for_a_check(&self) -> Result<bool, ConfigError> {
        environment::asks_for_a_check(&self.environment)
    }

    fn reading<T>(
        &self,
        listeners: &[&str],
        then: impl FnOnce(&Reading<'_>, &Configuration) -> T,
    ) -> (Configuration, T, Problems) {
        let mut problems = Problems::default();
        let mut tree = Map::new();
        for file in &self.files {
            lay_over(&mut tree, &file.tree);
        }
        if environment::profiles(&self.environment).is_some() && !self.has_profiles {
            problems.push(ConfigError::ProfileWithoutFile);
        }
        let mut set = Vec::new();
        for (key, value) in &self.set {
            match key_path::parse(key) {
                Some(path) => set.push((path, value)),
                None => problems.push(ConfigError::KeyPath { key: key.clone() }),
            }
        }
        // A variable can name what only the program gave, although the program has the last word.
        let mut named = tree.clone();
        put_all(&mut named, &set);
        environment::overlay(&mut tree, &named, &self.environment, listeners, &mut problems);
        put_all(&mut tree, &set);
        // What the placeholders stand for is needed even where some cannot be filled, so that one pass finds all faults.
        let unfilled = placeholder::fill(&mut tree, &self.environment, &self.directory);
        let keys = unfilled.iter().map(|(path, _)| path.clone()).collect();
        let reading = Reading::new(&tree, &self.files, &self.environment, keys, problems);
        for (path, fault) in unfilled {
            let place = |path: &[String]| {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                reading.place(&path)
            };
            reading.problem(ConfigError::Placeholder {
                place: place(&path).within(&fault.placeholder),
                definition: fault.undefined.as_deref().map(place),
                placeholder: secret::without_default(&path, fault.placeholder),
                reason: fault.reason,
            });
        }
        reading.check_keys();
        let configuration = Configuration::read(&reading);
        let made = then(&reading, &configuration);
        (configuration, made, reading.into_problems())
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut keys = Vec::new();
        for file in &self.files {
            keys_of(&file.tree, &mut Vec::new(), &mut keys);
        }
        keys.dedup();
        let mut variables: Vec<_> = self.environment.keys().collect();
        variables.sort_unstable();
        let set: Vec<_> = self.set.iter().map(|(key, _)| key).collect();
        f.debug_struct("Document")
            .field("files", &self.files.iter().map(|file| &file.named.name).collect::<Vec<_>>())
            .field("keys", &keys)
            .field("environment", &variables)
            .field("set", &set)
            .finish()
    }
}

fn keys_of<'a>(table: &'a Map<String, Value>, path: &mut Vec<&'a str>, keys: &mut Vec<String>) {
    for (name, value) in table {
        path.push(name);
        match &value.kind {
            ValueKind::Table(inner) => keys_of(inner, path, keys),
            _ => keys.push(key_path::written(path)),
        }
        path.pop();
    }
}

/// Puts the values of a later file over those of earlier ones, table by table.
fn lay_over(tree: &mut Map<String, Value>, later: &Map<String, Value>) {
    for (name, value) in later {
        match (tree.get_mut(name).map(|value| &mut value.kind), &value.kind) {
            (Some(ValueKind::Table(there)), ValueKind::Table(later)) => lay_over(there, later),
            _ => {
                tree.insert(name.clone(), value.clone());
            }
        }
    }
}

fn put_all(tree: &mut Map<String, Value>, set: &[(Vec<String>, &Value)]) {
    for (path, value) in set {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        put(tree, &path, (*value).clone());
    }
}

/// Puts a value at a path, making the tables on the way.
pub(super) fn put(table: &mut Map<String, Value>, path: &[&str], value: Value) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        table.insert((*first).to_owned(), value);
        return;
    }
    let origin = value.origin().map(str::to_owned);
    let inner = table
        .entry((*first).to_owned())
        .or_insert_with(|| Value::new(origin.as_ref(), Map::<String, Value>::new()));
    if !matches!(inner.kind, ValueKind::Table(_)) {
        *inner = Value::new(origin.as_ref(), Map::<String, Value>::new());
    }
    if let ValueKind::Table(inner) = &mut inner.kind {
        put(inner, rest, value);
    }
}
