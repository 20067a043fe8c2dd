//! Where a value came from, in the one text that the `config` crate keeps beside each, and whether an error may show it.
//!
//! What the environment holds may be a secret, whatever its key is called, so errors name the variable instead.

use config::{Value, ValueKind};

use super::error::Origin;

const CODE: &str = "code:";
const ENVIRONMENT: &str = "env:";
const FILLED: &str = "filled:";

/// The origin of what the program set.
pub(super) fn code() -> String {
    CODE.to_owned()
}

/// The origin of what an environment variable says.
pub(super) fn environment(variable: &str) -> String {
    format!("{ENVIRONMENT}{variable}")
}

/// The origin of a text into which these environment variables were filled.
pub(super) fn filled(variables: &[String], within: Option<&str>) -> String {
    format!("{FILLED}{}:{}", variables.join(","), within.unwrap_or_default())
}

/// The variable that set a value.
pub(super) fn variable(value: &Value) -> Option<&str> {
    value.origin()?.strip_prefix(ENVIRONMENT)
}

/// What set a value; `in_file` makes the answer for one that a file has.
pub(super) fn of(value: Option<&Value>, in_file: impl FnOnce() -> Origin) -> Origin {
    let origin = value.and_then(Value::origin).map(|origin| match origin.strip_prefix(FILLED) {
        Some(filled) => filled.split_once(':').map_or("", |(_, within)| within),
        None => origin,
    });
    match origin {
        Some(CODE) => Origin::Code,
        Some(origin) => match origin.strip_prefix(ENVIRONMENT) {
            Some(variable) => Origin::Environment { variable: variable.to_owned() },
            None => in_file(),
        },
        None => in_file(),
    }
}

/// For a value that comes from the environment, wholly or in part: what an error says instead of it, to follow "is". A
/// table is shown by its name alone, so it is never hidden.
pub(super) fn hidden(value: &Value) -> Option<String> {
    if matches!(value.kind, ValueKind::Table(_)) { None } else { hidden_within(value) }
}

/// As [`hidden`], for who may show what stands within a table too.
pub(crate) fn hidden_within(value: &Value) -> Option<String> {
    let mut variables = Vec::new();
    collect(value, &mut variables);
    variables.sort_unstable();
    variables.dedup();
    let whole = variable(value).is_some();
    let names: Vec<_> = variables.iter().map(|variable| format!("`{variable}`")).collect();
    match names.as_slice() {
        [] => None,
        [name] if whole => Some(format!("what the environment variable {name} holds")),
        [name] => Some(format!("made of what the environment variable {name} holds")),
        names => Some(format!("made of what the environment variables {} hold", names.join(" and "))),
    }
}

/// The environment variables in a value.
fn collect<'a>(value: &'a Value, variables: &mut Vec<&'a str>) {
    if let ValueKind::Table(table) = &value.kind {
        // One that was made for a variable's key has the variable as its origin too, and holds nothing itself.
        for value in table.values() {
            collect(value, variables);
        }
        return;
    }
    let origin = value.origin().unwrap_or_default();
    if let Some(variable) = origin.strip_prefix(ENVIRONMENT) {
        variables.push(variable);
    } else if let Some((filled, _)) = origin.strip_prefix(FILLED).and_then(|filled| filled.split_once(':')) {
        variables.extend(filled.split(','));
    }
    if let ValueKind::Array(items) = &value.kind {
        for item in items {
            collect(item, variables);
        }
    }
}
