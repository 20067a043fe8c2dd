//! Placeholders in the texts of a configuration: `${env:NAME}`, `${table.key}`, each with `:-default`; `$${` stands for
//! `${` itself.
//!
//! What the environment holds is data: no placeholder is looked for in it, whichever way it came in.

use std::collections::HashMap;

use config::{Map, Value, ValueKind};

use super::{key_path, origin};

/// A placeholder that cannot be filled.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) placeholder: String,
    pub(super) reason: String,
}

/// Fills all placeholders; answers where it could not, and leaves those texts as they are.
pub(super) fn fill(
    tree: &mut Map<String, Value>,
    environment: &HashMap<String, String>,
) -> Vec<(Vec<String>, Fault)> {
    let original = tree.clone();
    let filler = Filler { tree: &original, environment };
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
}

impl Filler<'_> {
    fn walk(&self, value: &mut Value, path: &mut Vec<String>, faults: &mut Vec<(Vec<String>, Fault)>) {
        match &value.kind {
            ValueKind::String(text) if text.contains("${") && origin::variable(value).is_none() => {
                let mut variables = Vec::new();
                match self.text(text, &mut vec![path.clone()], &mut variables) {
                    Ok(filled) if variables.is_empty() => value.kind = filled.into(),
                    Ok(filled) => {
                        let origin = origin::filled(&variables, value.origin());
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

    /// Fills the placeholders of a text; `within` are the keys that are being filled, outermost first, and `variables`
    /// takes those of the environment that are in it.
    fn text(
        &self,
        text: &str,
        within: &mut Vec<Vec<String>>,
        variables: &mut Vec<String>,
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
            })?;
            filled.push_str(&self.placeholder(&inside[..end], within, variables)?);
            rest = &inside[end + 1..];
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn placeholder(
        &self,
        inside: &str,
        within: &mut Vec<Vec<String>>,
        variables: &mut Vec<String>,
    ) -> Result<String, Fault> {
        let fault = |reason: String| Fault { placeholder: format!("${{{inside}}}"), reason };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let found = if let Some(variable) = name.strip_prefix("env:") {
            let found = self.environment.get(variable).cloned();
            note(variables, found.is_some().then_some(variable));
            found
        } else if name.starts_with("file:") {
            return Err(fault("reads a file, which is not available yet".to_owned()));
        } else {
            self.key(name, within, variables).map_err(fault)?
        };
        match (found, default) {
            (Some(found), _) => Ok(found),
            (None, Some(default)) => self.text(default, within, variables),
            (None, None) => Err(fault(match name.strip_prefix("env:") {
                Some(variable) => format!("has no default, and the environment has no variable `{variable}`"),
                None => format!("has no default, and the configuration has no key `{name}`"),
            })),
        }
    }

    fn key(
        &self,
        name: &str,
        within: &mut Vec<Vec<String>>,
        variables: &mut Vec<String>,
    ) -> Result<Option<String>, String> {
        let path = key_path::parse(name)
            .ok_or_else(|| "is neither `${env:NAME}` nor the name of a key, `${table.key}`".to_owned())?;
        let Some(value) = self.value(&path) else { return Ok(None) };
        if within.contains(&path) {
            let through: Vec<_> = within.iter().map(|key| format!("`{}`", key_path::written(key))).collect();
            return Err(format!("stands for itself, through {}", through.join(" and ")));
        }
        let from_environment = origin::variable(value);
        note(variables, from_environment);
        match &value.kind {
            ValueKind::Table(_) | ValueKind::Array(_) | ValueKind::Nil => {
                Err("stands for something that is no text or number".to_owned())
            }
            ValueKind::String(text) if from_environment.is_some() => Ok(Some(text.clone())),
            ValueKind::String(text) => {
                within.push(path);
                let filled = self.text(text, within, variables).map_err(|fault| {
                    format!("stands for a text whose placeholder `{}` {}", fault.placeholder, fault.reason)
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

fn note(variables: &mut Vec<String>, variable: Option<&str>) {
    if let Some(variable) = variable.filter(|variable| variables.iter().all(|noted| noted != variable)) {
        variables.push(variable.to_owned());
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
