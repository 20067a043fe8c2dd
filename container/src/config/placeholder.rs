//! Placeholders in the texts of a configuration: `${env:NAME}`, `${file:PATH}`, `${table.key}`, each with `:-default`; `$${`
//! stands for `${` itself.
//!
//! What the environment and files hold is data: no placeholder is looked for in it, whichever way it came in.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;

use config::{Map, Value, ValueKind};

use super::key_path;
use super::origin::{self, Filling};
use crate::nearest::nearest;

/// A placeholder that cannot be filled.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) placeholder: String,
    pub(super) reason: String,
    /// The key that it names and that is not there.
    pub(super) undefined: Option<Vec<String>>,
}

/// Why a name stands for nothing.
struct Unfit {
    reason: String,
    undefined: Option<Vec<String>>,
}

impl From<String> for Unfit {
    fn from(reason: String) -> Self {
        Self { reason, undefined: None }
    }
}

/// Fills all placeholders; answers where it could not, and leaves those texts as they are.
pub(super) fn fill(
    tree: &mut Map<String, Value>,
    environment: &HashMap<String, String>,
    directory: &Path,
) -> Vec<(Vec<String>, Fault)> {
    let original = tree.clone();
    let filler = Filler { tree: &original, environment, directory };
    let mut faults = Vec::new();
    for (key, value) in tree.iter_mut() {
        filler.walk(value, &mut vec![key.clone()], &mut faults);
    }
    faults
}

struct Filler<'a> {
    /// The tree before anything was filled.
    tree: &'a Map<String, Value>,
    environment: &'a HashMap<String, String>,
    /// Where relative paths start.
    directory: &'a Path,
}

/// Placeholders that may be filled for one value. It takes a configuration that is made to be large to have more.
const MOST: usize = 1_000;
/// So deep placeholders may stand in defaults, and keys for each other.
const DEEPEST: usize = 32;

/// What was filled into a text, without repetitions.
#[derive(Default)]
struct Fillings {
    all: Vec<Filling<'static>>,
    /// Placeholders so far.
    count: usize,
    depth: usize,
}

impl Fillings {
    fn note(&mut self, filling: Filling<'static>) {
        if !self.all.contains(&filling) {
            self.all.push(filling);
        }
    }
}

impl Filler<'_> {
    fn walk(&self, value: &mut Value, path: &mut Vec<String>, faults: &mut Vec<(Vec<String>, Fault)>) {
        match &value.kind {
            ValueKind::String(text) if text.contains("${") && origin::variable_of(value).is_none() => {
                let mut fillings = Fillings::default();
                match self.text(text, &mut vec![path.clone()], &mut fillings) {
                    Ok(filled) => {
                        let origin = origin::filled(value.origin(), &fillings.all);
                        *value = Value::new(Some(&origin), filled);
                    }
                    Err(fault) => faults.push((path.clone(), fault)),
                }
            }
            _ => self.walk_into(&mut value.kind, path, faults),
        }
    }

    fn walk_into(
        &self,
        kind: &mut ValueKind,
        path: &mut Vec<String>,
        faults: &mut Vec<(Vec<String>, Fault)>,
    ) {
        match kind {
            ValueKind::Table(table) => {
                for (key, value) in table.iter_mut() {
                    path.push(key.clone());
                    self.walk(value, path, faults);
                    path.pop();
                }
            }
            ValueKind::Array(values) => {
                for value in values {
                    self.walk(value, path, faults);
                }
            }
            _ => {}
        }
    }

    /// Fills the placeholders of a text; `within` are the keys that are being filled, outermost first, and `fillings`
    /// takes what is filled in.
    fn text(
        &self,
        text: &str,
        within: &mut Vec<Vec<String>>,
        fillings: &mut Fillings,
    ) -> Result<String, Fault> {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            if let Some(before) = rest[..start].strip_suffix('$') {
                filled.push_str(before);
                filled.push_str("${");
                rest = &rest[start + 2..];
                continue;
            }
            filled.push_str(&rest[..start]);
            let inside = &rest[start + 2..];
            let end = closing_brace(inside).ok_or_else(|| Fault {
                placeholder: rest[start..].to_owned(),
                reason: "has no closing brace".to_owned(),
                undefined: None,
            })?;
            fillings.count += 1;
            fillings.depth += 1;
            if fillings.count > MOST || fillings.depth > DEEPEST {
                return Err(Fault {
                    placeholder: rest[start..start + 2 + end + 1].chars().take(80).collect(),
                    reason: format!(
                        "is one of more than {MOST} in this value, or more than {DEEPEST} deep, counting those that they stand for"
                    ),
                    undefined: None,
                });
            }
            filled.push_str(&self.placeholder(&inside[..end], within, fillings)?);
            fillings.depth -= 1;
            rest = &inside[end + 1..];
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn placeholder(
        &self,
        inside: &str,
        within: &mut Vec<Vec<String>>,
        fillings: &mut Fillings,
    ) -> Result<String, Fault> {
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let fault = |unfit: Unfit| Fault {
            placeholder: format!("${{{inside}}}"),
            reason: unfit.reason,
            undefined: unfit.undefined,
        };
        match (self.named(name, within, fillings).map_err(fault)?, default) {
            // As in a shell, an empty variable is as good as none where there is a default.
            (Some(found), Some(default)) if found.is_empty() && name.starts_with("env:") => {
                self.text(default, within, fillings)
            }
            (Some(found), _) => Ok(found),
            (None, Some(default)) => self.text(default, within, fillings),
            (None, None) => Err(fault(self.absent(name))),
        }
    }

    /// What a name stands for, if it stands for anything.
    fn named(
        &self,
        name: &str,
        within: &mut Vec<Vec<String>>,
        fillings: &mut Fillings,
    ) -> Result<Option<String>, Unfit> {
        if let Some(variable) = name.strip_prefix("env:") {
            let found = self.environment.get(variable).cloned();
            if found.is_some() {
                fillings.note(Filling::Variable(variable.to_owned().into()));
            }
            return Ok(found);
        }
        if let Some(path) = name.strip_prefix("file:") {
            let found = self.file(path)?;
            if found.is_some() {
                fillings.note(Filling::File(path.to_owned().into()));
            }
            return Ok(found);
        }
        self.key(name, within, fillings)
    }

    /// Why a name that stands for nothing does.
    fn absent(&self, name: &str) -> Unfit {
        let did_you_mean = |nearest: Option<String>| {
            nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default()
        };
        if let Some(variable) = name.strip_prefix("env:") {
            if let Some((before, default)) = variable.split_once(':') {
                let meant = format!("${{env:{before}:-{default}}}");
                return format!("has no default, which stands behind `:-`; did you mean `{meant}`?").into();
            }
            let suggestion = did_you_mean(nearest(variable, self.environment.keys().map(String::as_str)));
            return format!("has no default, and the environment has no variable `{variable}`{suggestion}")
                .into();
        }
        if let Some(path) = name.strip_prefix("file:") {
            let path = self.directory.join(path);
            let path = std::path::absolute(&path).unwrap_or(path);
            return format!("has no default, and there is no file `{}`", path.display()).into();
        }
        if self.environment.contains_key(name) {
            let reason = format!(
                "has no default, and the configuration has no key `{name}`; the environment has: did you mean `${{env:{name}}}`?"
            );
            return reason.into();
        }
        let mut known = Vec::new();
        keys(self.tree, &mut Vec::new(), &mut known);
        let suggestion = did_you_mean(nearest(name, known.iter().map(String::as_str)));
        Unfit {
            reason: format!("has no default, and the configuration has no key `{name}`{suggestion}"),
            undefined: key_path::parse(name),
        }
    }

    /// What a file holds, without the line break at its end, which editors write; `None` where there is no such file.
    fn file(&self, path: &str) -> Result<Option<String>, String> {
        let path = self.directory.join(path);
        let unreadable = |error: &dyn std::fmt::Display| {
            let path = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
            format!("names the file `{}`, which cannot be read: {error}", path.display())
        };
        let mut text = match std::fs::read(&path) {
            Ok(bytes) => String::from_utf8(bytes).map_err(|_| unreadable(&"it is not UTF-8"))?,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(&error)),
        };
        if text.ends_with('\n') {
            text.pop();
            if text.ends_with('\r') {
                text.pop();
            }
        }
        Ok(Some(text))
    }

    fn key(
        &self,
        name: &str,
        within: &mut Vec<Vec<String>>,
        fillings: &mut Fillings,
    ) -> Result<Option<String>, Unfit> {
        let path = key_path::parse(name).ok_or_else(|| {
            "is neither `${env:NAME}`, `${file:PATH}` nor the name of a key, `${table.key}`".to_owned()
        })?;
        let Some(value) = self.value(&path) else { return Ok(None) };
        if within.contains(&path) {
            let through: Vec<_> = within.iter().map(|key| format!("`{}`", key_path::written(key))).collect();
            return Err(format!("stands for itself, through {}", through.join(" and ")).into());
        }
        fillings.note(Filling::Key(key_path::written(&path).into()));
        let variable = origin::variable_of(value);
        if let Some(variable) = variable {
            fillings.note(Filling::Variable(variable.to_owned().into()));
        }
        match &value.kind {
            ValueKind::Table(_) | ValueKind::Array(_) | ValueKind::Nil => {
                Err("stands for something that is no text or number".to_owned().into())
            }
            ValueKind::String(text) if variable.is_some() => Ok(Some(text.clone())),
            ValueKind::String(text) => {
                within.push(path);
                let filled = self.text(text, within, fillings).map_err(|fault| Unfit {
                    reason: format!(
                        "stands for a text whose placeholder `{}` {}",
                        fault.placeholder, fault.reason
                    ),
                    undefined: fault.undefined,
                })?;
                within.pop();
                Ok(Some(filled))
            }
            _ => Ok(Some(value.to_string())),
        }
    }

    fn value(&self, path: &[String]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        let mut value = self.tree.get(first)?;
        for segment in rest {
            let ValueKind::Table(table) = &value.kind else { return None };
            value = table.get(segment)?;
        }
        Some(value)
    }
}

/// The keys of all values that could be filled in.
fn keys(table: &Map<String, Value>, path: &mut Vec<String>, known: &mut Vec<String>) {
    for (name, value) in table {
        path.push(name.clone());
        match &value.kind {
            ValueKind::Table(inner) => keys(inner, path, known),
            ValueKind::Array(_) | ValueKind::Nil => {}
            _ => known.push(key_path::written(path)),
        }
        path.pop();
    }
}

/// Where the brace stands that closes a placeholder, past those of placeholders within it.
fn closing_brace(inside: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut characters = inside.char_indices().peekable();
    while let Some((position, character)) = characters.next() {
        match character {
            '$' if matches!(characters.peek(), Some((_, '{'))) => {
                characters.next();
                depth += 1;
            }
            '}' if depth == 0 => return Some(position),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}
