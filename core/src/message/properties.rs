//! Typed properties by name.

use std::sync::Arc;

use super::convert::{FromValue, read_named};
use super::entries::Entries;
use super::{MessageError, Value, property_name};

/// The properties of a message, in the order of their names. Cloning is cheap.
///
/// Names follow the specification's identifier rules, since selectors have to be able to name them: letters of any
/// script, digits, `_` and `$`, no digit first, no word of the selector language. Of the names that begin with `JMS`
/// an application may set `JMSXGroupID`, `JMSXGroupSeq`, `JMSXUserID` and `JMSXAppID`. What arrives over a wire is kept
/// as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties(Entries);

impl Properties {
    /// The property that says what the bytes of an object body are, as a media type.
    pub const CONTENT_TYPE: &str = "content_type";

    /// The property that says which type a body was made of.
    pub const TYPE_NAME: &str = "_type";

    /// Whether an application may give a property this name.
    ///
    /// # Errors
    /// [`MessageError::Name`], with the rule that it breaks.
    pub fn check_name(name: &str) -> Result<(), MessageError> {
        property_name::check_name(name)
    }

    /// The value of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// The value of this name, read as `T`; `None` when it is absent or null. As a `Value` or an `Option`, null is told
    /// from absent.
    ///
    /// # Errors
    /// As [`FromValue::from_value`].
    pub fn read<T: FromValue>(&self, name: &str) -> Result<Option<T>, MessageError> {
        read_named(self.get(name), "property", name)
    }

    /// Sets a value under a name that the specification allows. Null is a value.
    ///
    /// # Errors
    /// [`MessageError::Name`], or [`MessageError::PropertyType`] for a kind of value that this property may not hold.
    pub fn set(&mut self, name: &str, value: Value) -> Result<(), MessageError> {
        property_name::check_name(name)?;
        property_name::check_value(name, &value)?;
        self.set_unchecked(name, value);
        Ok(())
    }

    /// Sets a value under a name as it came over a wire, or one of Corriere's own.
    pub fn set_unchecked(&mut self, name: impl AsRef<str> + Into<Arc<str>>, value: Value) {
        self.0.insert(name, value);
    }

    /// Removes a property and returns what it held.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }

    /// All names and values, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter()
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(name, _)| name)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that the properties are taken to hold in memory.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.size()
    }
}
