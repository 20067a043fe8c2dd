//! A configuration as it was written: a file's tree, what the environment and the program put on top.

use std::collections::HashMap;
use std::path::Path;

use config::{FileFormat, Format, Map, Value};

use super::error::{ConfigError, Problems};
use super::lines::Lines;
use super::reading::Reading;
use super::{Configuration, environment, placeholder};

/// A configuration as it was written, before it is checked and read.
///
/// Three layers make it: a file, then environment variables `CORRIERE__TABLE__KEY`, then [`Document::set`]; each wins
/// over those before it, key by key.
#[derive(Clone, Debug, Default)]
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
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
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

    /// Sets a key such as `templates.order_template.receive_timeout`, over the file and the environment. It is checked
    /// with all others by [`Document::read`].
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<config::ValueKind>) {
        self.set.push((key.into(), Value::new(Some(&Reading::CODE.to_owned()), value)));
    }

    /// Checks and reads everything. `listeners` are the ids under which `[listeners.ID]` can stand.
    ///
    /// # Errors
    /// All that is wrong, as [`ConfigError::Several`] when it is more than one thing.
    pub fn read(&self, listeners: &[&str]) -> Result<Configuration, ConfigError> {
        let mut problems = Problems::default();
        let mut tree = self.tree.clone();
        environment::overlay(&mut tree, &self.environment, listeners, &mut problems);
        for (key, value) in &self.set {
            let path: Vec<&str> = key.split('.').collect();
            put(&mut tree, &path, value.clone());
        }
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
    if !matches!(inner.kind, config::ValueKind::Table(_)) {
        *inner = Value::new(origin.as_ref(), Map::<String, Value>::new());
    }
    if let config::ValueKind::Table(inner) = &mut inner.kind {
        put(inner, rest, value);
    }
}
