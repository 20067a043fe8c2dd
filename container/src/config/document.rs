//! A configuration as it was written: a file's tree, what the environment and the program put on top.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use config::{FileFormat, Format, Map, Value, ValueKind};

use super::error::{ConfigError, Problems};
use super::lines::Lines;
use super::reading::Reading;
use super::{Configuration, environment, key_path, origin, placeholder};

/// A configuration as it was written, before it is checked and read.
///
/// Three layers make it: a file, then environment variables `CORRIERE__TABLE__KEY`, then [`Document::set`]; each wins
/// over those before it, key by key. Shown for debugging it names keys and variables, and no value: any may be a secret.
#[derive(Clone, Default)]
pub struct Document {
    file: String,
    tree: Map<String, Value>,
    lines: Lines,
    environment: HashMap<String, String>,
    set: Vec<(String, Value)>,
}

impl Document {
    /// An empty configuration, with no environment.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a TOML file and takes the process's environment. A relative path starts at the current directory.
    ///
    /// # Errors
    /// [`ConfigError::Unreadable`], [`ConfigError::Syntax`].
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            // From the root, as a relative path is looked for where the program was started, which may be a surprise.
            .map_err(|source| ConfigError::Unreadable {
                path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
                source,
            })?;
        // A variable that is not Unicode can be none of ours, since our keys and values are texts.
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Ok(Self::from_text(&path.display().to_string(), &text)?.with_environment(environment))
    }

    /// Reads a TOML text; `file` is what errors call it. No environment is taken.
    ///
    /// # Errors
    /// [`ConfigError::Syntax`].
    pub fn from_text(file: &str, text: &str) -> Result<Self, ConfigError> {
        let file = file.to_owned();
        let tree = FileFormat::Toml.parse(Some(&file), text).map_err(|error| ConfigError::Syntax {
            file: file.clone(),
            message: error.to_string().trim_end().to_owned(),
        })?;
        Ok(Self { file, tree, lines: Lines::of(text), ..Self::default() })
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
        let mut problems = Problems::default();
        let mut tree = self.tree.clone();
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
        let unfilled = placeholder::fill(&mut tree, &self.environment);
        let reading = Reading::new(&tree, &self.file, &self.lines, problems);
        for (path, fault) in unfilled {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            reading.problem(ConfigError::Placeholder {
                place: reading.place(&path),
                placeholder: fault.placeholder,
                reason: fault.reason,
            });
        }
        reading.check_keys();
        let configuration = Configuration::read(&reading);
        reading.into_problems().into_result(configuration)
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut keys = Vec::new();
        keys_of(&self.tree, &mut Vec::new(), &mut keys);
        let mut variables: Vec<_> = self.environment.keys().collect();
        variables.sort_unstable();
        let set: Vec<_> = self.set.iter().map(|(key, _)| key).collect();
        f.debug_struct("Document")
            .field("file", &self.file)
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
