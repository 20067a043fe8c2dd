//! Where in a configuration something stands.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::error::ConfigError;
use super::source::{Part, Source};

/// Where in the configuration: a key, and what set it.
///
/// Shown, it is one line; an error that has a place shows its line of the file, or its variable, as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place(Box<PlaceParts>);

// Boxed because nearly every error has one, and errors should be small to return.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PlaceParts {
    key: String,
    origin: Origin,
    /// What an error says instead of the value.
    hidden: Option<String>,
    part: Option<Part>,
    /// What the placeholders in its value stand for, and where that stands.
    notes: Vec<String>,
}

/// What set a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// A file.
    File {
        /// Its name as it was given.
        name: String,
        /// The line and the column, both from 1, when they are known.
        position: Option<(usize, usize)>,
    },
    /// An environment variable.
    Environment {
        /// Its name.
        variable: String,
    },
    /// A call in the program.
    Code,
    /// An attribute in the program.
    Attribute {
        /// Its file, line and column, with colons between them.
        location: &'static str,
    },
}

impl Place {
    /// A key that was set, or should have been, in the program.
    #[must_use]
    pub fn in_code(key: impl Into<String>) -> Self {
        Self::new(key.into(), Origin::Code)
    }

    /// A key of an attribute in the program.
    pub(crate) fn in_attribute(key: impl Into<String>, location: &'static str) -> Self {
        Self::new(key.into(), Origin::Attribute { location })
    }

    pub(super) fn new(key: String, origin: Origin) -> Self {
        Self(Box::new(PlaceParts { key, origin, hidden: None, part: None, notes: Vec::new() }))
    }

    /// The same with the part of a source that it is.
    pub(super) fn of_part(mut self, part: Option<Part>) -> Self {
        self.0.part = part;
        self
    }

    /// The same with what an error says instead of the value.
    pub(super) fn hiding(mut self, hidden: Option<String>) -> Self {
        self.0.hidden = hidden;
        self
    }

    /// The same with what the placeholders in its value stand for.
    pub(super) fn noting(mut self, notes: Vec<String>) -> Self {
        self.0.notes = notes;
        self
    }

    /// The key with its tables, such as `templates.order_template.receive_timeout`.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.0.key
    }

    /// What set it.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// What the placeholders in its value stand for.
    pub(super) fn notes(&self) -> &[String] {
        &self.0.notes
    }

    /// Where the value is a secret: what an error says instead of it.
    pub(crate) fn hidden(&self) -> Option<&str> {
        self.0.hidden.as_deref()
    }

    /// The place of a text within the value, of an option of a URL say.
    #[must_use]
    pub(crate) fn within(&self, text: &str) -> Self {
        let mut within = self.clone();
        within.0.part = within.0.part.map(|part| part.within(text));
        if let (Origin::File { position, .. }, Some(part)) = (&mut within.0.origin, &within.0.part) {
            *position = Some(part.line_and_column());
        }
        within
    }

    /// On lines of its own behind an error: what stands there, with a mark under it; nothing where that is not known.
    pub(crate) fn excerpt(&self) -> impl fmt::Display {
        Excerpt(self.clone())
    }

    /// The error for a value that stands here and is not what it should be: the given one, unless that could show a secret.
    pub(crate) fn error(
        &self,
        expected: impl FnOnce() -> String,
        open: impl FnOnce(Self) -> ConfigError,
    ) -> ConfigError {
        match self.hidden() {
            Some(found) => {
                ConfigError::Value { place: self.clone(), found: found.to_owned(), expected: expected() }
            }
            None => open(self.clone()),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PlaceParts { key, origin, .. } = &*self.0;
        match origin {
            Origin::Code => write!(f, "`{key}`"),
            origin => write!(f, "`{key}` ({origin})"),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, position: Some((line, column)) } => write!(f, "{name}:{line}:{column}"),
            Self::File { name, position: None } => f.write_str(name),
            Self::Environment { variable } => write!(f, "environment variable {variable}"),
            Self::Code => f.write_str("the program"),
            Self::Attribute { location } => f.write_str(location),
        }
    }
}

struct Excerpt(Place);

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PlaceParts { part, notes, .. } = &*self.0.0;
        if let Some(part) = part {
            write!(f, "{part}")?;
        }
        notes.iter().try_for_each(|note| write!(f, "\n      = {note}"))
    }
}

/// A file that is part of a configuration.
#[derive(Clone, Debug)]
pub(super) struct NamedSource {
    pub(super) name: String,
    pub(super) source: Arc<Source>,
}

impl NamedSource {
    /// The place of a part of it.
    pub(super) fn place(&self, key: String, range: Option<Range<usize>>) -> Place {
        let part = range.map(|range| Part { source: Arc::clone(&self.source), range });
        let position = part.as_ref().map(Part::line_and_column);
        Place::new(key, Origin::File { name: self.name.clone(), position }).of_part(part)
    }
}
