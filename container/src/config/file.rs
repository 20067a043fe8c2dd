//! The files of a configuration.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{FileFormat, Format, Map, Value};

use super::error::{ConfigError, Problems};
use super::place::{NamedSource, Origin, Place};
use super::positions::Positions;
use super::source::{Part, Source};
use super::{environment, origin};
use crate::nearest::nearest;

/// The variable that names the profiles.
pub(super) const PROFILE: &str = "CORRIERE_PROFILE";

/// A TOML file that was read.
#[derive(Clone, Debug)]
pub(super) struct ConfigFile {
    pub(super) named: NamedSource,
    pub(super) positions: Positions,
    /// Its values, each with its origin in this file.
    pub(super) tree: Map<String, Value>,
}

impl ConfigFile {
    /// Reads a TOML text, which is the file of this number in its configuration.
    pub(super) fn of_text(number: usize, name: &str, text: &str) -> Result<Self, ConfigError> {
        // Some editors write one, which no TOML has.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let named = |source| NamedSource { name: name.to_owned(), source: Arc::new(source) };
        let positions = match Positions::of(text) {
            Ok(positions) => positions,
            Err(errors) => {
                let named = named(Source::broken_file(text));
                let mut problems = Problems::default();
                let mut lines = Vec::new();
                for fault in errors {
                    let (line, _) = named.source.line_and_column(fault.range.start);
                    // What follows on the line of a fault is mostly that fault again.
                    if !lines.contains(&line) {
                        lines.push(line);
                        let place = named.place(String::new(), Some(fault.range));
                        problems.push(ConfigError::Syntax { place, message: fault.message });
                    }
                }
                return Err(problems.into_error());
            }
        };
        let named = named(Source::file(text, &positions));
        let tree = FileFormat::Toml.parse(Some(&origin::file(number)), text).map_err(|error| {
            ConfigError::Syntax { place: named.place(String::new(), None), message: error.to_string() }
        })?;
        Ok(Self { named, positions, tree })
    }

    fn read(number: usize, path: &Path) -> Result<Self, ConfigError> {
        // From the root, as a relative path is looked for where the program was started, which may be a surprise.
        let bytes = std::fs::read(path).map_err(|source| ConfigError::Unreadable {
            path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            source,
        })?;
        let name = path.display().to_string();
        match std::str::from_utf8(&bytes) {
            Ok(text) => Self::of_text(number, &name, text),
            Err(error) => {
                let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
                let position = Source::broken_file(&valid).line_and_column(valid.len());
                Err(ConfigError::NotUtf8 { origin: Origin::File { name, position: Some(position) } })
            }
        }
    }
}

/// Reads a configuration file and those of its profiles, which lie beside it: `config.prod.toml` beside `config.toml`.
pub(super) fn read_all(
    path: &Path,
    environment: &HashMap<String, String>,
) -> Result<Vec<ConfigFile>, ConfigError> {
    let mut problems = Problems::default();
    let mut files = Vec::new();
    let mut read = |number, path: &Path| match ConfigFile::read(number, path) {
        Ok(file) => files.push(file),
        Err(error) => problems.push(error),
    };
    read(0, path);
    let mut missing = Vec::new();
    if let Some((variable, value)) = environment::profiles(environment) {
        for (number, profile) in value.split(',').map(str::trim).filter(|name| !name.is_empty()).enumerate() {
            let place = || {
                let (source, range) = Source::variable(variable, value, false);
                let part = Part { source: Arc::new(source), range };
                let origin = Origin::Environment { variable: variable.to_owned() };
                Place::new(variable.to_owned(), origin).of_part(Some(part)).within(profile)
            };
            let profile = profile.to_owned();
            if !profile.chars().all(|character| character.is_alphanumeric() || "_-".contains(character)) {
                missing.push(ConfigError::ProfileName { place: place(), profile });
                continue;
            }
            let file = beside(path, &profile);
            if file.exists() {
                read(number + 1, &file);
            } else {
                let known = profiles_beside(path);
                let nearest = nearest(&profile, known.iter().map(String::as_str));
                let path = std::path::absolute(&file).unwrap_or(file);
                missing.push(ConfigError::MissingProfile { place: place(), profile, path, known, nearest });
            }
        }
    }
    missing.into_iter().for_each(|error| problems.push(error));
    problems.into_result(files)
}

/// The file of a profile.
fn beside(path: &Path, profile: &str) -> PathBuf {
    let (stem, extension) = parts(path);
    path.with_file_name(format!("{stem}.{profile}{extension}"))
}

/// The profiles whose files lie beside the configuration.
fn profiles_beside(path: &Path) -> Vec<String> {
    let (stem, extension) = parts(path);
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut profiles: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            let rest = name.strip_prefix(&stem)?.strip_prefix('.')?.strip_suffix(&extension)?;
            (!rest.is_empty()).then(|| rest.to_owned())
        })
        .collect();
    profiles.sort();
    profiles
}

/// `config` and `.toml` of `config.toml`.
fn parts(path: &Path) -> (String, String) {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let extension = path.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
    (stem, extension.unwrap_or_default())
}
