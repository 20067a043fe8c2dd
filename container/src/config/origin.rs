//! Where a value came from, in the one text that the `config` crate keeps beside each.

use std::borrow::Cow;

use config::Value;

const CODE: &str = "code";
const VARIABLE: &str = "variable ";
const FILE: &str = "file ";
/// Between what set a value and what was filled into it. In no name of a variable, a key or a file.
const SEPARATOR: char = '\0';

/// Where a value came from.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ValueOrigin<'a> {
    pub(super) base: Base<'a>,
    /// What its placeholders stood for.
    pub(super) fillings: Vec<Filling<'a>>,
}

/// What set a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base<'a> {
    /// The program.
    Code,
    /// An environment variable.
    Variable(&'a str),
    /// The configuration file of this number.
    File(usize),
}

/// What a placeholder stood for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Filling<'a> {
    /// An environment variable.
    Variable(Cow<'a, str>),
    /// What a file holds, by its path as it was written.
    File(Cow<'a, str>),
    /// Another key.
    Key(Cow<'a, str>),
}

/// The origin of what the program set.
pub(super) fn code() -> String {
    CODE.to_owned()
}

/// The origin of what an environment variable says.
pub(super) fn variable(name: &str) -> String {
    format!("{VARIABLE}{name}")
}

/// The origin of what stands in the configuration file of this number.
pub(super) fn file(number: usize) -> String {
    format!("{FILE}{number}")
}

/// The origin of a text that was there before and into which these were filled.
pub(super) fn filled(before: Option<&str>, fillings: &[Filling<'_>]) -> String {
    let mut origin = before.unwrap_or(CODE).to_owned();
    for filling in fillings {
        origin.push(SEPARATOR);
        let (kind, name) = match filling {
            Filling::Variable(name) => ('v', name),
            Filling::File(path) => ('f', path),
            Filling::Key(key) => ('k', key),
        };
        origin.push(kind);
        origin.push_str(name);
    }
    origin
}

/// Where a value came from.
pub(super) fn of(value: &Value) -> ValueOrigin<'_> {
    let mut parts = value.origin().unwrap_or(CODE).split(SEPARATOR);
    let base = parts.next().unwrap_or(CODE);
    let base = match (base.strip_prefix(VARIABLE), base.strip_prefix(FILE)) {
        (Some(name), _) => Base::Variable(name),
        (_, Some(number)) => number.parse().map_or(Base::Code, Base::File),
        _ => Base::Code,
    };
    let fillings = parts
        .filter_map(|part| {
            let mut name = part.chars();
            let kind = name.next()?;
            let name = name.as_str().into();
            match kind {
                'v' => Some(Filling::Variable(name)),
                'f' => Some(Filling::File(name)),
                _ => Some(Filling::Key(name)),
            }
        })
        .collect();
    ValueOrigin { base, fillings }
}

/// The variable that set a value.
pub(super) fn variable_of(value: &Value) -> Option<&str> {
    match of(value).base {
        Base::Variable(name) => Some(name),
        Base::Code | Base::File(_) => None,
    }
}
